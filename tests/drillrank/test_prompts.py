from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.drilldown import answering, settings
from drillrank.errors import InvalidInput
from drillrank.passages import Passage, Path
from drillrank.prompts import Evidence, check_places, check_question_templates, fill_question, filled, prompt_text
from drillrank.rerank.brmgr import generated_prompt
from drillrank.rerank.demonstrations import path_prompt
from drillrank.rerank.promptrank import PROMPTRANK_INSTRUCTIONS, check_instructions
from drillrank.rerank.relevance import MONOT5_PROMPT
from drillrank.rerank.upr import UPR, UPR_PROMPT
from drillrank.views import KEYWORD_PROMPT, SUMMARY_PROMPT

fragments = st.sampled_from(
    ["{text}", "{title}", "{path}", "{0}", "{", "}", "{{x}}", "%s", "$a", "\\1", "word", " ", "\n"]
)
data = st.lists(fragments, max_size=5).map("".join) | st.text(max_size=8)
wording = st.text(st.characters(codec="utf-8", exclude_characters="{}"), max_size=8)


def asked(hash_model, template, passage, limit=None):
    model = hash_model()
    UPR(model, template=template, max_passage_tokens=limit).rank("why?", [passage])
    [request] = model.requests
    return request.prompt


@given(wording, wording, wording, data, data)
def test_a_filled_template_is_its_wording_around_the_passage(hash_model, before, separator, after, title, text):
    template = before + "{title}" + separator + "{text}" + after
    document = title + separator + text if title else text
    prompt = asked(hash_model, template, Passage(text, title=title), 7)
    assert prompt == (before, Evidence(document, 7), after)
    assert prompt_text(prompt) == before + document + after


@given(wording, wording, data, data)
def test_a_template_without_a_title_leaves_the_title_out(hash_model, before, after, title, text):
    prompt = asked(hash_model, before + "{text}" + after, Passage(text, title=title))
    assert prompt == (before, Evidence(text), after)


def test_the_prompt_of_the_paper(hash_model):
    prompt = prompt_text(asked(hash_model, UPR_PROMPT, Passage("Emma is a novel", title="Jane Austen")))
    assert prompt == "Passage: Jane Austen Emma is a novel. Please write a question based on this passage."


def test_single_braces_around_other_things_are_wording(hash_model):
    assert prompt_text(asked(hash_model, '{"answer": "{text}"}', Passage("yes"))) == '{"answer": "yes"}'


@pytest.mark.parametrize(
    "template",
    [
        "",
        "no place",
        "{title}",
        "{text} {text}",
        "{text} {title}",
        "{title} {title} {text}",
        "{text} {body}",
        "{text} {}",
    ],
)
def test_templates_that_cannot_be_filled(template):
    with pytest.raises(InvalidInput, match="passage template"):
        UPR(template=template)


@given(st.lists(data, min_size=1, max_size=3), st.sampled_from(PROMPTRANK_INSTRUCTIONS), st.none() | st.integers(1, 9))
def test_a_path_stands_in_its_place_with_a_prefix_for_each_document(documents, instruction, limit):
    prompt = path_prompt(Path(tuple(map(Passage, documents))), instruction, limit)
    kept = [document for document in documents if document.strip()]
    before, after = instruction.split("{path}")
    assert prompt_text(prompt) == before + " ".join(f"Document: {document}" for document in kept) + after
    assert [part for part in prompt if isinstance(part, Evidence)] == [Evidence(document, limit) for document in kept]


def test_a_title_belongs_to_the_document():
    path = Path((Passage("text", title="Title"), Passage(" ", title="Only a title"), Passage("\n")))
    assert prompt_text(path_prompt(path, "{path}!")) == "Document: Title text Document: Only a title  !"


def test_the_instructions_of_the_paper():
    assert check_instructions(PROMPTRANK_INSTRUCTIONS) == PROMPTRANK_INSTRUCTIONS
    assert len(set(PROMPTRANK_INSTRUCTIONS)) == 10
    assert PROMPTRANK_INSTRUCTIONS[0] == "{path} Review previous documents and ask some question. Question:"
    assert all(instruction.endswith(" Question:") for instruction in PROMPTRANK_INSTRUCTIONS)


def test_instructions_become_a_tuple():
    assert check_instructions(["{path} a", "b {path}"]) == ("{path} a", "b {path}")


@pytest.mark.parametrize(
    "instructions", [[], (), "{path} Question:", None, ["{path}", "none"], ["{path} {path}"], [""]]
)
def test_instructions_that_hold_no_path(instructions):
    with pytest.raises(InvalidInput):
        check_instructions(instructions)


@given(data, data, data)
def test_places_are_filled_at_once_and_what_is_no_place_stays(question, items, around):
    around = around.replace("{text}", "{unknown}")
    template = f"{around}{{question}} and {{items}}{around}"
    assert filled(template, question=question, items=items) == f"{around}{question} and {items}{around}"
    assert filled(lambda *, question, items: question + items, question=question, items=items) == question + items


@pytest.mark.parametrize("template", ["{a} and {b}", "{b}{a}{a} {c}", lambda a, b: f"{b} {a}"])
def test_a_template_with_all_its_places_is_given_back(template):
    assert check_places(template, "a", "b") is template


def test_a_template_of_a_framework_is_filled_by_its_format():
    class FromAFramework:
        def __init__(self, said):
            self.format = said.format

    whole = FromAFramework("{a} and {b}")
    assert check_places(whole, "a", "b") is whole
    with pytest.raises(InvalidInput, match=r"holds \{b\}"):
        check_places(FromAFramework("{a}"), "a", "b")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{a}", r"holds {b}; not '{a}'"),
        ("{b}", r"holds {a}; not '{b}'"),
        ("a b", r"holds {a}"),
        (None, r"holds {a}; not None"),
        (lambda a, b: a, r"holds {b}"),
        (lambda a, b: None, r"holds {a}"),
        (lambda a: a, r"^This prompt cannot be filled with a and b: TypeError: .*'b'"),
    ],
)
def test_a_template_that_lacks_a_place_is_refused(template, message):
    with pytest.raises(InvalidInput, match=message):
        check_places(template, "a", "b")


@given(data, data, data)
def test_a_question_stands_at_the_last_of_its_places(before, question, after):
    assert fill_question(f"{before}{{question}}{after}", question) == before + question + after
    assert fill_question("{question}{question}" + after, question) == "{question}" + question + after


@given(st.lists(st.tuples(data, data), max_size=3), data, st.none() | st.integers(1, 9))
def test_a_generated_passage_is_conditioned_on_the_question_behind_the_passages(documents, question, limit):
    passages = [Passage(text, title=title) for title, text in documents]
    prompt = generated_prompt("Question: {question} Answer:", question, passages, limit)
    shown = [Evidence(passage.titled_text, limit) for passage in passages if passage.titled_text.strip()]
    assert prompt == (
        *(part for evidence in shown for part in ("Passage: ", evidence, "\n\n")),
        "Question: ",
        Evidence(question),
        " Answer:",
    )


@pytest.mark.parametrize("templates", [[], (), "{question}", None, ["{question}", "none"], [5], [None]])
def test_templates_without_a_place_for_the_question(templates):
    with pytest.raises(InvalidInput, match=r"Prompts are a non-empty list|holds {question}"):
        check_question_templates(templates)
    assert check_question_templates(["{question}?", "a {question}"]) == ("{question}?", "a {question}")


@given(st.lists(data | data.map(Evidence), max_size=5))
def test_the_text_of_a_prompt_is_all_of_it(parts):
    expected = "".join(part.text if isinstance(part, Evidence) else part for part in parts)
    assert prompt_text(tuple(parts)) == expected


@pytest.mark.parametrize(
    ("prompt", "placeholders"),
    [
        (SUMMARY_PROMPT, ["section_name", "section_text"]),
        (KEYWORD_PROMPT, ["section_name", "section_text"]),
        (answering.ANSWER_PROMPT, ["contents", "question"]),
        (settings.SECTION_PROMPT, ["outline", "question"]),
        (settings.PARAGRAPH_PROMPT, ["paragraphs", "question"]),
        (MONOT5_PROMPT, ["query", "text"]),
    ],
)
def test_every_prompt_names_each_of_its_placeholders_once(prompt, placeholders):
    assert re.findall(r"\{(\w+)\}", prompt) == placeholders
