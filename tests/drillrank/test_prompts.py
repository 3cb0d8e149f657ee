from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.drilldown import answering, settings
from drillrank.errors import InvalidInput
from drillrank.prompts import check_places, check_question_templates, fill_question, filled
from drillrank.rerank.relevance import MONOT5_PROMPT
from drillrank.rerank.upr import UPR
from drillrank.views import KEYWORD_PROMPT, SUMMARY_PROMPT

fragments = st.sampled_from(
    ["{text}", "{title}", "{path}", "{0}", "{", "}", "{{x}}", "%s", "$a", "\\1", "word", " ", "\n"]
)
data = st.lists(fragments, max_size=5).map("".join) | st.text(max_size=8)


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


@given(data, data, data)
def test_places_are_filled_at_once_and_what_is_no_place_stays(question, items, around):
    around = around.replace("{text}", "{unknown}")
    template = f"{around}{{question}} and {{items}}{around}"
    assert filled(template, question=question, items=items) == f"{around}{question} and {items}{around}"
    assert filled(lambda *, question, items: question + items, question=question, items=items) == question + items


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


@pytest.mark.parametrize("templates", [[], (), "{question}", None, ["{question}", "none"], [5], [None]])
def test_templates_without_a_place_for_the_question(templates):
    with pytest.raises(InvalidInput, match=r"Prompts are a non-empty list|holds {question}"):
        check_question_templates(templates)
    assert check_question_templates(["{question}?", "a {question}"]) == ("{question}?", "a {question}")


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
