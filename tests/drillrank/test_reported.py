"""What hosts report of a call's cost: read in every form, believed where it can be, counted where it cannot."""

from __future__ import annotations

import pickle
from collections import UserDict
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.dialogue import Reply, Usage
from drillrank.reported import Answer, reported_tokens
from drillrank.tokens import count_tokens

FORMS = [
    ("prompt_tokens", "completion_tokens"),
    ("input_tokens", "output_tokens"),
    ("prompt_token_count", "candidates_token_count"),
]
MAKES = {"dict": dict, "mapping": UserDict, "object": lambda fields: SimpleNamespace(**fields)}


@pytest.mark.parametrize("names", FORMS, ids=lambda names: names[0])
@pytest.mark.parametrize("outer", MAKES.values(), ids=MAKES)
@pytest.mark.parametrize("inner", MAKES.values(), ids=MAKES)
@pytest.mark.parametrize("place", ["usage", "usage_metadata", "token_usage", None])
def test_every_form_is_read(names, outer, inner, place):
    usage = inner(dict(zip(names, (12, 3), strict=True)) | {"total_tokens": 15})
    assert reported_tokens(usage if place is None else outer({"id": "x", place: usage})) == (12, 3)


def test_parts_that_are_told_apart_add_up():
    cached = {"input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": None}
    assert reported_tokens({"usage": cached | {"output_tokens": 2}}) == (105, 2)
    thought = {"prompt_token_count": 5, "candidates_token_count": 2, "thoughts_token_count": 40}
    assert reported_tokens({"usage_metadata": thought}) == (5, 42)


def test_the_first_report_that_tells_counts():
    nothing = {"usage": None, "usage_metadata": {"prompt_token_count": 0}}
    assert reported_tokens(nothing, {"prompt_tokens": 7}, {"prompt_tokens": 8, "completion_tokens": 2}) == (7, 2)


class Hostile:
    def __getattr__(self, name):
        raise RuntimeError(name)


NAMES = st.sampled_from(
    ["usage", "usage_metadata", "token_usage", *(n for form in FORMS for n in form), "cache_read_input_tokens"]
)
NONSENSE = st.one_of(
    st.none(), st.booleans(), st.integers(max_value=0), st.floats(), st.text(max_size=3), st.builds(Hostile)
)


def junk(values):
    return st.recursive(
        values,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(NAMES, inner, max_size=5),
            st.dictionaries(NAMES, inner, max_size=5).map(lambda fields: SimpleNamespace(**fields)),
        ),
        max_leaves=15,
    )


@given(st.lists(junk(NONSENSE), max_size=3))
def test_nonsense_reports_nothing(reports):
    assert reported_tokens(*reports) == (None, None)


@given(st.lists(junk(NONSENSE | st.integers(1, 9)), max_size=3))
def test_whatever_is_reported_is_a_number_or_nothing(reports):
    for tokens in reported_tokens(*reports):
        assert tokens is None or (type(tokens) is int and tokens > 0)


@given(
    st.lists(
        st.tuples(st.text(max_size=9), st.text(max_size=9), *[st.none() | st.integers(-3, 99) | st.booleans()] * 2)
    ),
    st.booleans(),
)
def test_usage_takes_what_is_reported_and_counts_the_rest(calls, exact):
    usage = Usage(count=len) if exact else Usage()
    count = len if exact else count_tokens
    prompts = completions = 0
    counted = False
    for prompt, text, prompted, completed in calls:
        usage.add(prompt, Reply(Answer(text, prompted, completed)))
        for reported, told in ((prompted, prompt), (completed, text)):
            if type(reported) is not int or reported <= 0:
                counted |= count(told) > 0
        prompts += prompted if type(prompted) is int and prompted > 0 else count(prompt)
        completions += completed if type(completed) is int and completed > 0 else count(text)
    assert (usage.prompt_tokens, usage.completion_tokens, usage.calls) == (prompts, completions, len(calls))
    assert usage.estimated == (counted and not exact)
    assert usage.as_metadata().get("tokens_estimated", False) is usage.estimated


def test_an_answer_is_a_string_that_survives_a_copy():
    answer = pickle.loads(pickle.dumps(Answer("42", 7, 1)))
    assert (answer, answer.prompt_tokens, answer.completion_tokens) == ("42", 7, 1)
