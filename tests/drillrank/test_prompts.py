from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.drilldown import answering, settings
from drillrank.prompts import check_placeholders, check_question_templates, fill_question, fill_template
from drillrank.rerank.relevance import MONOT5_PROMPT
from drillrank.rerank.upr import UPR
from drillrank.views import KEYWORD_PROMPT, SUMMARY_PROMPT
from tests.drillrank.helpers import refuses

fragments = st.sampled_from(
    ["{text}", "{title}", "{path}", "{0}", "{", "}", "{{x}}", "%s", "$a", "\\1", "word", " ", "\n"]
)
data = st.lists(fragments, max_size=5).map("".join) | st.text(max_size=8)


NO_PASSAGE = ["", "no place", "{title}", "{text} {text}", "{text} {title}", "{title} {title} {text}", "{text} {body}"]
NO_PASSAGE += ["{text} {}"]
test_templates_that_cannot_be_filled = refuses(
    *((lambda template=template: UPR(template=template), "template of a passage") for template in NO_PASSAGE),
    (lambda: check_placeholders("{a}", "a", "b"), r"must contain {b}, got '{a}'"),
    (lambda: check_placeholders("{b}", "a", "b"), r"must contain {a}, got '{b}'"),
    (lambda: check_placeholders("a b", "a", "b"), r"must contain {a}"),
    (lambda: check_placeholders(None, "a", "b"), r"must contain {a}, got None"),
    (lambda: check_placeholders(lambda a, b: a, "a", "b"), r"must contain {b}"),
    (lambda: check_placeholders(lambda a, b: None, "a", "b"), r"must contain {a}"),
    (lambda: check_placeholders(lambda a: a, "a", "b"), r"^The template .* cannot be filled: TypeError: .*'b'"),
    (lambda: check_placeholders(SimpleNamespace(format="{a}".format), "a", "b"), r"must contain \{b\}"),
    *((lambda these=these: check_question_templates(these), r"be a non-empty list|must contain {question}")
      for these in ([], (), "{question}", None, ["{question}", "none"], [5], [None])),
)  # fmt: skip


@given(data, data, data)
def test_places_are_filled_at_once_and_what_is_no_place_stays(question, items, around):
    around = around.replace("{text}", "{unknown}")
    template = f"{around}{{question}} and {{items}}{around}"
    assert fill_template(template, question=question, items=items) == f"{around}{question} and {items}{around}"
    assert (
        fill_template(lambda *, question, items: question + items, question=question, items=items) == question + items
    )


def test_templates_that_can_be_filled_come_back():
    of_a_framework = SimpleNamespace(format="{a} and {b}".format)
    assert check_placeholders(of_a_framework, "a", "b") is of_a_framework
    assert check_question_templates(["{question}?", "a {question}"]) == ("{question}?", "a {question}")


@given(data, data, data)
def test_a_question_stands_at_the_last_of_its_places(before, question, after):
    assert fill_question(f"{before}{{question}}{after}", question) == before + question + after
    assert fill_question("{question}{question}" + after, question) == "{question}" + question + after


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
