"""No prompt is above its budget, whatever the documents are like; and no paragraph is lost to that."""

from __future__ import annotations

import os
import re
import warnings

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from drillrank import D3, StoredChunk, parse_document
from drillrank.drilldown.outline import outline
from drillrank.drilldown.rebuilding import rebuild_sections
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.prompts import truncate_middle, truncate_to_budget
from drillrank.structure.cutting import cut_text
from drillrank.structure.reassembly import reassemble
from drillrank.text import count_tokens
from tests.drillrank.helpers import UNITS, Says, paragraph_d3
from tests.examples import examples

COUNTERS = [count_tokens, lambda text: len(text.encode("utf-8", "surrogatepass")) // 2, lambda text: len(text.split())]
EXAMPLES = int(os.environ.get("DRILLRANK_FUZZ", "0"))

words = st.sampled_from(["the", "Dr. Who", "code", "4711", "naïve", "尺寸", "🦊", "e.g.", "\u0301", "§", "x" * 30, "."])
texts = (
    st.lists(words, max_size=90).map(" ".join)
    | st.builds(lambda word, times: word * times, words, st.integers(1, 400))  # a sentence without blanks
    | st.lists(words, max_size=60).map("\n".join)
    | st.text(st.characters(codec=None), max_size=80)
)
headings = st.builds(
    lambda level, text: f"{'#' * level} {text}", st.integers(1, 4), texts.map(lambda t: " ".join(t.split()))
)
markdown = st.lists(headings | texts, max_size=7).map("\n\n".join)
html = st.lists(texts.map(lambda text: f"<h2>{text[:40]}</h2><p>{text} <b>and</b> {text}</p>"), max_size=3).map("".join)


def all_of_it(prompt: str) -> str:
    names = re.findall(r"^\* Section: (.*)$", prompt, re.MULTILINE)
    return ", ".join(names or re.findall(r"^\[(\d+)\] ", prompt, re.MULTILINE))


@settings(max_examples=EXAMPLES or examples(60))
@given(
    st.lists(markdown | html, max_size=3),
    st.integers(90, 700),
    st.sampled_from(["names", "json"]),
    st.sampled_from(["base", "hierbase"]),
    st.sampled_from([None, "llm"]),
    st.integers(1, 50),
    st.sampled_from(["Which code?", "Which of the codes is it? " * 5]),
    st.sampled_from(COUNTERS),
    st.sampled_from(UNITS),
)
def test_no_prompt_is_above_its_budget(
    documents, budget, sections_by, strategy, summarise, calls, question, count, unit
):
    prompts = []

    def llm(prompt):
        prompts.append(prompt)
        return prompt[:300] if "summarization" in prompt else all_of_it(prompt)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DrillrankWarning)
        refused = ""
        try:
            limits = {"max_prompt_tokens": budget, "max_calls": calls, "tokens": count}
            asked = {"paragraphs": strategy, "sections_by": sections_by, "summarizer": summarise, "unit": unit}
            D3(llm, settings=limits | asked).retrieve(question, documents)
        except InvalidInput as error:
            refused = str(error)
    assert not refused or (budget < 300 and "max_prompt_tokens" in refused)
    assert all(count(prompt) <= budget for prompt in prompts)


@settings(max_examples=EXAMPLES or examples(40))
@given(markdown | html, st.integers(120, 500), st.sampled_from(UNITS))
def test_pieces_tile_their_paragraph_and_are_exact_slices(text, budget, unit):
    whole = outline([text], unit)
    ready = D3(settings={"max_prompt_tokens": budget, "unit": unit}).prepare([text])
    assert [section.passage for section in ready.outline.sections] == [section.passage for section in whole]
    source = parse_document(text)
    for section, parts in zip(whole, ready.outline.sections, strict=True):
        pieces = iter([(piece.source, piece.passage) for piece in parts.paragraphs])
        for paragraph, shown in zip(section.paragraphs, section.readable, strict=True):
            own = []
            while sum(len(piece.text) for _, piece in own) < len(shown.text):
                own.append(next(pieces))
            assert "".join(piece.text for _, piece in own) == shown.text
            for piece, _ in own:
                start, end = piece.metadata["start"], piece.metadata["end"]
                if piece is own[0][0] and "part" not in piece.metadata:
                    assert piece.id == paragraph.id
                if "part" in piece.metadata:  # of HTML's rendering
                    part = piece.metadata["part"].rpartition(".")[2]
                    assert piece.id in (paragraph.id if len(own) == 1 else None, f"{paragraph.id}:{part}")
                    assert (start, end) == (paragraph.metadata["start"], paragraph.metadata["end"])
                else:
                    assert source.text[start:end] == piece.text
                    assert piece.id == f"0:{start}"
        assert next(pieces, None) is None
    ids = [paragraph.source.id for paragraph in ready.outline.paragraphs]
    assert len(ids) == len(set(ids))


@settings(max_examples=EXAMPLES or examples(60))
@given(texts, st.integers(4, 60), st.sampled_from([*COUNTERS, lambda text: len(text.encode("utf-8", "surrogatepass"))]))
def test_cutting_and_shortening_keep_the_limit(text, limit, count):
    spans = cut_text(text, limit, count)
    assert "".join(text[start:end] for start, end in spans) == text
    assert all(count(text[start:end]) <= limit or end - start == 1 for start, end in spans)
    assert (len(spans) == 1) is (count(text) <= limit or len(text) == 1)
    short = truncate_middle(text, limit, count)
    assert count(short) <= limit
    begin, gap, end = short.rpartition(" … ")
    assert short == text or (text.startswith(begin) and text.endswith(end)) or gap == ""


def words_in(text):
    return len(re.findall(r"\w+", text))


@given(st.text("ab. ", max_size=60), st.integers(0, 12), st.sampled_from([words_in, lambda text: len(text.split())]))
@example("x" * 99 + " y " + "z" * 99, 2, words_in)
def test_the_longest_ends_that_fit_are_kept_within_eight_characters_for_a_token(text, limit, count):
    """Or the gap alone where only that fits, or else nothing."""
    short = truncate_middle(text, limit, count)
    if count(text) <= limit:
        assert short == text
        return
    ends = [f"{text[:n]} … {text[-n:]}" for n in range(1, min(len(text) // 2, 8 * limit) + 1)]
    nothing = "…" if count("…") <= limit else ""
    assert short == next((end for end in reversed(ends) if count(end) <= limit), nothing)


def squared(text):
    """More than the parts have together."""
    return len(text.split()) ** 2


sentences = st.lists(
    st.lists(st.sampled_from(["Basel", "lies", "on", "the", "Rhine"]), min_size=1, max_size=7), min_size=1, max_size=9
)


@given(sentences, st.integers(1, 9), st.sampled_from([lambda text: len(text.split()), squared]))
def test_each_piece_is_as_many_sentences_as_fit_and_of_long_ones_words(sentences, limit, count):
    parts = []
    for words in sentences:
        whole = count(" ".join(words)) <= limit
        parts += [" ".join(words) + ". "] if whole else [f"{word} " for word in words[:-1]] + [f"{words[-1]}. "]
    pieces = [""]
    for part in parts:
        if pieces[-1] and count(pieces[-1] + part) > limit:
            pieces.append("")
        pieces[-1] += part
    text = "".join(parts)
    assert [text[start:end] for start, end in cut_text(text, limit, count)] == pieces


@given(sentences, st.integers(0, 40), st.sampled_from([lambda text: len(text.split()), squared]))
def test_what_is_fitted_into_a_prompt_fits_or_is_nothing(sentences, limit, count):
    text, prompt = " ".join(word for words in sentences for word in words), "Read {} now".format
    shown = truncate_to_budget(text, limit, prompt, count)
    assert count(prompt(shown)) <= limit or not shown
    assert shown == text or count(prompt(text)) > limit


def test_stored_pieces_are_bounded_too():
    text = "A sentence of words. " * 300
    source = StoredChunk(None, "a", f"# A\n\n{text}", ("", "a"), "section", "raw", path="A", start=0)
    rendering = StoredChunk(None, "b", text, ("", "b"), "section", "raw", path="B", start=7, end=9)
    sections = rebuild_sections([reassemble([source]), reassemble([rendering])])
    ready = D3(settings={"max_prompt_tokens": 300}).prepare(sections)
    first, second = (
        [p.source for p in ready.outline.paragraphs if p.source.metadata["document"] == number] for number in (0, 1)
    )
    assert len(first) > 5
    assert all(p.text == f"# A\n\n{text}"[p.metadata["start"] : p.metadata["end"]] for p in first)
    assert "".join(p.text for p in second) == text
    assert len({p.metadata["part"] for p in second}) == len({p.id for p in second}) == len(second) > 5


def test_an_endless_heading_is_shown_without_its_middle():
    long = "Chapter about " + "very " * 3000 + "long names"
    text = f"# {long}\n\nOne.\n\n## Sub {long}\n\nTwo.\n\n# B\n\nThree."
    llm = Says(all_of_it)
    with pytest.warns(DrillrankWarning, match="texts are too long for a prompt"):
        found = paragraph_d3(llm, settings={"max_prompt_tokens": 250}).retrieve("Which chapter?", [text])
    assert any("without their middle" in problem for problem in found.problems)
    assert {item.passage.text for item in found} == {"One.", "Two.", "Three."}
    assert all(count_tokens(prompt) <= 250 for prompt in llm.prompts)
