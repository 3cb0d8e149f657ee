"""Drilling down with an LLM: faithful, budgeted, and unimpressed by what the LLM says."""

from __future__ import annotations

import json
import math
import re

import pytest

from drillrank import D3, MonoT5
from drillrank.drilldown.outline import outline
from drillrank.drilldown.settings import D3Settings
from drillrank.errors import DrillrankWarning
from drillrank.text import count_tokens
from tests.drillrank.helpers import Says, Writer, paragraph_d3, quiet

BOOK = "\n\n".join(
    f"# Part {part}\n\nOf part {part}.\n\n"
    + "\n\n".join(
        f"## Chapter {part}.{chapter}\n\nThe code of chapter {part}.{chapter} is {part * 100 + chapter}.\n\n"
        f"It was written in the year {1900 + part * 10 + chapter}.\n\n- one\n- two"
        for chapter in range(1, 5)
    )
    for part in range(1, 4)
)
QUESTION = "What is the code of chapter 2.3?"
TARGET = "The code of chapter 2.3 is 203."

SECTION = re.compile(r"^\* Section: (.*)$", re.MULTILINE)
PARAGRAPH = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)


class Finder:
    """Picks sections whose name, and paragraphs whose text, holds a number; remembers its prompts."""

    def __init__(self, wanted: str = "2.3", chapters: str = "Part 2") -> None:
        self.wanted, self.chapters = wanted, chapters
        self.prompts: list[str] = []

    def complete(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return self.chosen(prompt) or "none"

    def chosen(self, prompt: str) -> str:
        if "section names" in prompt:
            return ", ".join(n for n in SECTION.findall(prompt) if self.wanted in n or n == self.chapters)
        if "ids of all sections" in prompt:
            lines = [(number, name) for number, name in PARAGRAPH.findall(prompt)]
            return ", ".join(number for number, name in lines if self.wanted in name or name == self.chapters)
        return ", ".join(number for number, text in PARAGRAPH.findall(prompt) if self.wanted in text)


def texts(ranking):
    return [item.passage.text for item in ranking]


def outcome(ranking):
    return [(item.passage.id, item.score, item.details) for item in ranking], ranking.usage, ranking.steps


@pytest.mark.parametrize("strategy", ["base", "hierbase"])
@pytest.mark.parametrize("sections_by", ["names", "json"])
@pytest.mark.parametrize("budget", [4000, 250])
def test_finds_what_a_good_llm_finds_in_one_prompt_or_level_by_level(strategy, sections_by, budget):
    llm = Finder()
    asked = {"paragraphs": strategy, "sections_by": sections_by, "max_prompt_tokens": budget}
    found = paragraph_d3(llm, settings=asked).retrieve(QUESTION, [BOOK])
    assert texts(found) == [TARGET]
    assert found.usage.calls == len(llm.prompts)
    assert found.usage.prompt_tokens == sum(map(count_tokens, llm.prompts))
    assert all(not step.problems for step in found.steps)
    assert all(count_tokens(prompt) <= budget for prompt in llm.prompts)
    if budget == 4000:
        assert found.usage.calls == (2 if strategy == "base" else 3)


class Judge(Finder):
    """Also says yes or no of a single paragraph."""

    def chosen(self, prompt: str) -> str:
        if "Respond with yes or no" in prompt:
            return "Yes." if self.wanted in prompt.partition("Question:")[0] else "No."
        return super().chosen(prompt)


@pytest.mark.parametrize(
    ("strategy", "calls"), [("paragraph", 39), ("chunk", 3), ("map-reduce", 40), ("map-reduce-optimised", 4)]
)
async def test_what_d3_is_compared_with_reads_all_sections(strategy, calls):
    llm = Judge()
    d3 = paragraph_d3(llm, settings={"paragraphs": strategy, "max_prompt_tokens": 300})
    found = d3.retrieve(QUESTION, [BOOK])
    assert texts(found) == [TARGET]
    assert found.usage.calls == len(llm.prompts) == calls
    assert all(count_tokens(prompt) <= 300 for prompt in llm.prompts)
    assert not found.problems
    assert {step.kind for step in found.steps} <= {"one by one", "paragraphs"}
    assert "LLM's choice" in str(found.explain())
    assert outcome(await d3.aretrieve(QUESTION, [BOOK])) == outcome(found)


def test_one_by_one_with_few_calls_and_unreadable_answers():
    asked = {"paragraphs": "paragraph", "max_calls": 3}
    with pytest.warns(DrillrankWarning, match="max_calls was reached"):
        found = paragraph_d3(Judge(), settings=asked).retrieve(QUESTION, [BOOK])
    assert texts(found) == [TARGET]
    assert "39 items need as many calls, 3 are left" in found.problems[0]
    with pytest.warns(DrillrankWarning):
        found = paragraph_d3(lambda prompt: "Perhaps.", settings=asked).retrieve(QUESTION, [BOOK])
    assert "chosen by likelihood" in found.problems[-1]
    assert texts(found) == texts(paragraph_d3().retrieve(QUESTION, [BOOK]))
    assert not paragraph_d3(lambda prompt: "No.", settings=asked | {"max_calls": 99}).retrieve("A", [BOOK])


def test_the_papers_prompts_are_asked():
    llm = Finder()
    paragraph_d3(llm).retrieve(QUESTION, [BOOK])
    sections, paragraphs = llm.prompts
    assert sections.startswith("Document section structure:\n* Section: Part 1\nOf part 1.\n* Section: Part 1 > Chap")
    assert sections.endswith(
        "\n\nQuestion: What is the code of chapter 2.3?\n\nList all section names that may be relevant for "
        "answering the question. Respond with comma-separated section name list. Provide an empty response if none of "
        "the sections are relevant."
    )
    assert paragraphs == (
        "[1] Of part 2.\n[2] The code of chapter 2.3 is 203.\n[3] It was written in the year 1923.\n[4] - one\n- two"
        "\n\nQuestion: What is the code of chapter 2.3?\n\nFind paragraph ids that contains relevant information for "
        "answering the question. Respond with comma-separated id list. Provide an empty response if none of the "
        "paragraphs are relevant."
    )


passages = [p for section in outline([BOOK]) for p in section.paragraphs]


@quiet
@pytest.mark.parametrize("strategy", ["base", "hierbase"])
@pytest.mark.parametrize("calls", [1, 2, 3])
def test_the_last_call_is_kept_for_the_paragraphs(strategy, calls):
    before = ["sections", "summaries"][: min(calls, 2 if strategy == "base" else 3) - 1]
    found = paragraph_d3(Finder(), settings={"paragraphs": strategy, "max_calls": calls}).retrieve(QUESTION, [BOOK])
    assert [step.kind for step in found.steps if not step.problems] == [*before, "paragraphs"]
    assert found.usage.calls == len(before) + 1


WORDS = ("stone", "river", "castle", "bridge")


@pytest.mark.parametrize("allowance", [1, 7, 19, 100, 100_000])
def test_the_guard_takes_the_likeliest_50_paragraphs_as_far_as_they_fit(allowance):
    question = "Which stone castle stands above the river?"
    book = "\n\n".join(f"# {n}\n\n{' '.join(WORDS[: n % 5] + ('filler',) * (n % 7 + 1))} {n}." for n in range(80))
    found = paragraph_d3(Finder("none"), settings={"guard_tokens": allowance}).retrieve(question, [book])
    likely = paragraph_d3(settings={"sections": 80}).retrieve(question, [book], top_n=80)
    assert len(likely) == 80
    left, expected = allowance, []
    for item in likely[:50]:
        if count_tokens(item.passage.text) <= left:
            left -= count_tokens(item.passage.text)
            expected.append(item.passage.id)
    [guard] = [step for step in found.steps if step.kind == "guard"]
    assert (guard.chosen, guard.n_candidates) == (tuple(expected), 80)


def test_summaries_by_function_and_by_the_llm_are_made_once_for_each_document():
    long = " ".join(f"Sentence number {n} about stones." for n in range(40))
    document, asked, llm = f"# One\n\n{long}\n\n# Two\n\nShort.", [], Finder("none")
    d3 = paragraph_d3(llm, settings={"summarizer": lambda texts: asked.append(texts) or ["A summary."] * len(texts)})
    for _ in range(2):
        d3.retrieve(QUESTION, [document])
    assert asked == [[outline([document])[0].passage.text]]
    assert "* Section: One\nA summary.\n* Section: Two\nShort." in llm.prompts[0]
    writes = Says(lambda prompt: "Stones, mostly." if "summarization" in prompt else "none")
    d3 = paragraph_d3(writes, settings={"summarizer": "llm"})
    assert [d3.retrieve(QUESTION, [document]).usage.calls for _ in range(2)] == [2, 1]
    assert "* Section: One\nStones, mostly." in writes.prompts[1]


def test_the_paper_by_one_word():
    asked: list[str] = []
    document = "# Book\n\n## One\n\nStone.\n\nStones.\n\n## Two\n\nShort."
    llm = Finder("Two")
    paper = D3Settings(preset="paper", summarizer=lambda texts: [asked.append(text) or "Sum." for text in texts])
    found = D3(llm, settings=paper).retrieve(QUESTION, [document])
    assert texts(found) == ["Short."]
    assert asked == ["Stone.\n\nStones.", "Short."]  # also what is short
    assert llm.prompts[0].startswith(
        "Document section structure:\n* Section: Book > One\nSum.\n* Section: Book > Two\nSum.\n\nQuestion:"
    )
    assert D3Settings(preset="paper").complete().summarizer.name == "facebook/bart-large-cnn"


STONES = "\n\n".join(
    f"# Part {n}\n\n" + " ".join(f"Sentence {m} of part {n} is about stones." for m in range(20)) + "\n\nThe end."
    for n in range(6)
)


class Summariser(Writer):
    """Writes six summaries of `STONES`, and chooses nothing."""

    def complete(self, prompt):
        return super().complete(prompt) if "summarization" in prompt else "none"


@quiet
def test_summaries_that_failed_are_asked_for_again_and_no_others():
    llm = Summariser(fails=2)
    d3 = paragraph_d3(llm, settings={"summarizer": "llm", "on_failure": "fallback"})
    ready = d3.prepare([STONES])
    assert "2 of 6 summaries failed" in d3.retrieve("Which stones?", ready).problems[0]
    assert d3.retrieve("Which stones?", ready).problems == ()
    assert sorted(llm.calls.values()) == [1, 1, 1, 1, 2, 2]


SCHEMA = {
    "title": "RelevantIds",
    "description": "What is relevant for answering the question.",
    "type": "object",
    "properties": {"ids": {"type": "array", "items": {"type": "integer"}, "description": "Numbers, or an empty list."}},
    "required": ["ids"],
    "additionalProperties": False,
}


class Librarian:
    """Chooses by numbers, as JSON."""

    def __init__(self, *answers):
        self.answers, self.schemas = list(answers), []

    def complete(self, prompt):
        raise AssertionError("it offers structured output")

    def complete_json(self, prompt, schema):
        self.schemas.append(schema)
        return self.answers.pop(0)


MANUAL = "# Battery\n\nIt lasts nine hours.\n\nCharge it over night.\n\n# Screen\n\nClean it with a dry cloth."


@pytest.mark.parametrize("as_text", [False, True])
def test_both_steps_may_be_answered_as_json(as_text):
    answers = [{"ids": [1]}, {"ids": [2]}]
    llm = Librarian(*(map(json.dumps, answers) if as_text else answers))
    found = paragraph_d3(llm, settings={"sections_by": "json"}).retrieve("When should I charge it?", [MANUAL])
    assert texts(found) == ["Charge it over night."]
    assert llm.schemas == [SCHEMA, SCHEMA]
    assert found.problems == ()
    assert (
        texts(paragraph_d3(Librarian({"ids": []}), settings={"sections_by": "json"}).retrieve("When?", [MANUAL])) == []
    )
    llm = Librarian({"ids": [77, 1]}, {"ids": [1]})
    with pytest.warns(DrillrankWarning):
        found = paragraph_d3(llm, settings={"sections_by": "json"}).retrieve("How long?", [MANUAL])
    assert texts(found) == ["It lasts nine hours."]
    assert "'77'" in found.problems[0]


@pytest.mark.parametrize("strategy", ["monot5", "base+monot5", "monot5+base"])
@pytest.mark.parametrize("top_n", [None, 1])
def test_chains_with_monot5(strategy, top_n, hash_model):
    """MonoT5 keeps what it calls relevant, or the best; before BASE, as many as one prompt holds."""
    llm, lm = Finder("hapter 2"), hash_model()
    inside = [p for p in passages if p.metadata["section_path"][-1].startswith("Chapter 2")]
    inside += [p for p in passages if p.metadata["section_path"] == ("Part 2",)]
    base = [p for p in inside if "hapter 2" in p.text]
    d3 = paragraph_d3(llm, lm, settings={"paragraphs": strategy, "max_prompt_tokens": 700})
    found = d3.retrieve(QUESTION, [BOOK], top_n)
    assert not paragraph_d3(lambda prompt: "none", lm, settings={"paragraphs": strategy}).retrieve(
        QUESTION, [BOOK], top_n
    )
    kinds = [step.kind for step in found.steps]
    ids = {item.passage.id for item in found}
    if strategy == "monot5+base":
        assert kinds == ["sections", "monot5", "paragraphs"]
        assert ids <= {p.id for p in base}
        return
    pool = inside if strategy == "monot5" else base
    assert kinds == ["sections", *(["paragraphs"] if strategy != "monot5" else []), "monot5"]
    judged = MonoT5(lm).rank(QUESTION, pool)
    count = top_n or max(1, sum(math.exp(item.score) >= 0.5 for item in judged))
    assert [(item.passage.id, item.score) for item in found] == [(i.passage.id, i.score) for i in judged[:count]]


def test_too_few_calls_ask_about_the_likeliest():
    with pytest.warns(DrillrankWarning):
        found = paragraph_d3(Finder(), settings={"max_prompt_tokens": 130, "max_calls": 3}).retrieve(QUESTION, [BOOK])
    assert texts(found) == [TARGET]
    assert any("calls left" in problem for problem in found.problems)
    assert found.usage.calls <= 3


class Marked(str):
    """A prompt that is more than a string."""


def test_what_a_template_returns_is_what_the_llm_is_asked():
    llm = Says("1, 2")
    templates = {
        "section_prompt": lambda outline, question, **_: Marked(f"{question}\n{outline}"),
        "paragraph_prompt": lambda paragraphs, question, **_: Marked(f"{paragraphs}\n{question}"),
    }
    paragraph_d3(llm, settings={"sections_by": "json", **templates}).retrieve(QUESTION, [BOOK])
    assert [type(prompt) for prompt in llm.prompts] == [Marked, Marked]
    assert llm.prompts[0].startswith(f"{QUESTION}\n")
