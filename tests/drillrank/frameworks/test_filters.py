"""Filters against an evaluation of their own, in Kleene's three values; and our keys beside those of users."""

from __future__ import annotations

import re
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank.errors import InvalidInput
from drillrank.frameworks.filters import parse_filter, require_sync_predicate, split_conditions
from drillrank.frameworks.metadata import is_section, result_metadata, user_metadata, with_result_metadata
from tests.examples import examples

NO, UNKNOWN, YES = 0.0, 0.5, 1.0
ANSWERS = {YES: True, UNKNOWN: None, NO: False}
KEYS = ["tenant", "level", "tags"]
scalars = st.one_of(
    st.sampled_from(["", "a", "A", "ab", "a%b", "b\nc", "1"]),
    st.integers(-1, 2),
    st.sampled_from([0.5, 1.0, True, False]),
)
held_values = st.one_of(scalars, st.none(), st.lists(scalars, max_size=3), st.text("ab", max_size=7))
records = st.dictionaries(st.sampled_from(KEYS), held_values)


several = st.lists(scalars, min_size=1, max_size=3)
patterns = st.sampled_from(["B\nC", "A"]) | st.text("ab%_", max_size=6)
WANTED = {
    **dict.fromkeys(["eq", "ne", "gt", "gte", "lt", "lte", "contains", "not_contains"], scalars),
    **dict.fromkeys(["in", "nin", "any", "all"], several),
    **dict.fromkeys(["like", "ilike", "text_match", "text_match_insensitive"], patterns),
    "between": st.tuples(scalars, scalars),
    "exists": st.booleans(),
    "is_empty": st.just(True),
}
conditions = st.sampled_from([*WANTED]).flatmap(lambda name: st.tuples(st.just(name), WANTED[name]))


def entries(inner: st.SearchStrategy[dict]) -> st.SearchStrategy[dict]:
    lists = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.dictionaries(st.sampled_from(["$and", "$or", "$not"]), lists, min_size=1, max_size=2),
        st.fixed_dictionaries({"$not": inner}),
    )


of_one_key = st.one_of(
    scalars, st.lists(conditions, min_size=1, max_size=2).map(lambda all_: {f"${name}": to for name, to in all_})
)
leaves = st.dictionaries(st.sampled_from(KEYS), of_one_key, min_size=1, max_size=2)
filters = st.recursive(leaves, entries, max_leaves=6)


def judged(filter: dict, record: dict) -> float:
    """And is the least of the values, or the greatest, not what is left to 1."""
    values = []
    for key, value in filter.items():
        listed = [value] if isinstance(value, dict) else value
        if key == "$and":
            values.append(min(judged(one, record) for one in listed))
        elif key == "$or":
            values.append(max(judged(one, record) for one in listed))
        elif key == "$not":
            values.append(1 - max(judged(one, record) for one in listed))
        elif isinstance(value, dict):
            values += [compared(name.removeprefix("$"), record.get(key), wanted) for name, wanted in value.items()]
        else:
            values.append(compared("eq", record.get(key), value))
    return min(values)


def compared(name: str, held: Any, wanted: Any) -> float:
    if name == "exists":
        return float((held is None) is not wanted)
    if name == "is_empty":
        return float(held is None or held == "" or held == [])
    if held is None:
        return UNKNOWN
    if name in ("ne", "nin", "not_contains"):
        return 1 - compared({"ne": "eq", "nin": "in", "not_contains": "contains"}[name], held, wanted)
    if name == "between":
        return min(compared("gte", held, wanted[0]), compared("lte", held, wanted[1]))
    if name in ("gt", "gte", "lt", "lte"):
        return ordered(name, held, wanted)
    if name.startswith("text_match") or name.endswith("like"):
        return matched(name, held, wanted)
    holds, asks = ([value] if not isinstance(value, list) else value for value in (held, wanted))
    if name == "contains":
        if isinstance(held, str):
            return float(wanted in held) if isinstance(wanted, str) else UNKNOWN
        return max([same(one, wanted) for one in holds], default=NO)
    if name == "all":
        return min(max([same(one, ask) for one in holds], default=NO) for ask in asks)
    if name == "any":
        return max([same(one, ask) for one in holds for ask in asks], default=NO)
    return max(same(held, ask) for ask in (asks if name == "in" else [wanted]))


def kind(value: Any) -> str:
    return {bool: "bool", str: "text", list: "list"}.get(type(value), "number")


def same(one: Any, other: Any) -> float:
    if {kind(one), kind(other)} == {"bool", "number"}:
        return UNKNOWN
    return float(kind(one) == kind(other) and one == other)


def ordered(name: str, held: Any, wanted: Any) -> float:
    if kind(held) != kind(wanted):
        return UNKNOWN
    below, above = held < wanted, held > wanted
    return float({"gt": above, "gte": not below, "lt": below, "lte": not above}[name])


def matched(name: str, held: Any, wanted: str) -> float:
    if not isinstance(held, str):
        return UNKNOWN
    if name.endswith(("ilike", "insensitive")):
        held, wanted = held.upper(), wanted.upper()
    if "like" not in name:
        return float(wanted in held)
    return float(
        re.fullmatch("".join(f"(?s:{ {'%': '.*', '_': '.'}.get(c, re.escape(c)) })" for c in wanted), held) is not None
    )


@pytest.mark.parametrize("name", WANTED)
@settings(max_examples=examples(200))
@given(st.data())
def test_each_operator_says_what_the_evaluation_says(name: str, data: st.DataObject):
    held, wanted = data.draw(held_values), data.draw(WANTED[name])
    assert parse_filter({"x": {f"${name}": wanted}})({"x": held}) is ANSWERS[compared(name, held, wanted)]


@settings(max_examples=examples(200))
@given(filters, records)
def test_a_filter_says_what_an_evaluation_in_three_values_says(filter: dict, record: dict):
    assert parse_filter(filter)(record) is ANSWERS[judged(filter, record)]


@settings(max_examples=examples(200))
@given(filters, records)
def test_stated_one_by_one_it_says_the_same(filter: dict, record: dict):
    single = split_conditions(filter)
    assert parse_filter({"$and": single})(record) is parse_filter(filter)(record)
    assert all(len(one) == 1 for one in single)
    assert not any("$and" in one for one in single)


@pytest.mark.parametrize(
    ("filter", "single"),
    [
        ({"level": 1, "$and": [{"tags": "a"}, {"tenant": "b"}]}, [{"level": 1}, {"tags": "a"}, {"tenant": "b"}]),
        ({"$or": [{"level": 1}, {"level": 2, "tags": "a"}]},
         [{"$or": [{"level": 1}, {"$and": [{"level": 2}, {"tags": "a"}]}]}]),
        ({"$not": {"level": 1}}, [{"$not": [{"level": 1}]}]),
    ],
)  # fmt: skip
def test_what_stands_together_is_told_so_only_where_it_must(filter: dict, single: list[dict]):
    assert split_conditions(filter) == single


@pytest.mark.parametrize("text", ["b", "ab", "aab", "a%b", "abab", "ba", "aba", ""])
@pytest.mark.parametrize("pattern", ["%b", "a%b", "%ab", "_%b", "%", "a%", "%a%b", "__b", ""])
def test_like_goes_back_to_the_last_percent_sign(pattern: str, text: str):
    assert parse_filter({"x": {"$like": pattern}})({"x": text}) is bool(matched("like", text, pattern))


def test_filters_stand_inside_filters_up_to_twenty_deep():
    for depth, refused in ((20, nullcontext()), (21, pytest.raises(InvalidInput, match="up to 20 deep"))):
        filter = {"level": 1}
        for _ in range(depth):
            filter = {"$or": [filter]}
        with refused:
            assert parse_filter(filter)({"level": 1})


def test_a_record_that_does_not_say_is_seen_under_neither_a_filter_nor_its_negation():
    for record in ({}, {"tenant": None}, {"tenant": 7}):
        for filter in ({"tenant": {"$gt": "a"}}, {"$not": {"tenant": {"$gt": "a"}}}):
            assert parse_filter(filter)(record) is None


@pytest.mark.parametrize("filter", [{"level": {"$eq": 1}}, {"level": {"$ne": 1}}, {"level": {"$nin": [1, 2]}}])
def test_true_is_neither_1_nor_another_number_as_stores_do_not_agree(filter: dict):
    assert parse_filter(filter)({"level": True}) is None


@pytest.mark.parametrize(
    ("filter", "named"),
    [
        ({"tenant": None}, "'tenant'"),
        ({"tenant": {"$eq": None}}, "'tenant'"),
        ({"tenant": {}}, "'tenant'"),
        ({"tenant": {"$near": 3}}, "'near'"),
        ({"$where": "this.tenant"}, r"\$where"),
        ({"$or": []}, r"\$or"),
        ({"$not": []}, r"\$not"),
        ({"$and": {"tenant": "a"}}, r"\$and"),
        ({"tenant": {"$in": "abc"}}, "'tenant'"),
        *(({"tenant": {name: []}}, "'tenant'") for name in ("$in", "$nin")),
        ({"year": {"$between": [1]}}, "'year'"),
        ({"year": {"$between": [1, 2, 3]}}, "'year'"),
        ({3: "a"}, "3"),
        ({"$or": ["tenant"]}, "tenant"),
        ("tenant = 'a'", "tenant"),
    ],
)
def test_a_filter_that_cannot_be_meant_is_a_clear_error(filter: Any, named: str):
    with pytest.raises(InvalidInput, match=named):
        parse_filter(filter)


def test_an_asynchronous_function_is_no_filter():
    async def mine(record: object) -> bool:
        return False

    with pytest.raises(InvalidInput, match="asynchronous"):
        require_sync_predicate(mine)("a record")
    assert require_sync_predicate(lambda record: record)("a record") is True


of_users = st.dictionaries(
    st.sampled_from(["view", "section_id", "section_path", "section_level", "source_id", "start_index", "path", "x"]),
    st.one_of(st.text(max_size=3), st.integers(), st.none(), st.lists(st.integers(), max_size=2)),
)
our_names = st.dictionaries(
    st.sampled_from(["view", "section_id", "section_path", "source_id", "start", "path", "matched_views"]),
    st.one_of(st.text(max_size=3), st.integers()),
)


@given(of_users, our_names)
def test_what_we_write_stands_beside_what_users_wrote(metadata: dict, ours: dict):
    before = dict(metadata)
    written = with_result_metadata(metadata, **ours)
    assert metadata == before == user_metadata(written) == {key: written[key] for key in metadata}
    assert result_metadata(written) == ours
    assert all(key.startswith("drillrank_") for key in written.keys() - metadata.keys())
    assert with_result_metadata(written, **dict.fromkeys(ours)) == before
    assert result_metadata(before) == {}
    assert not is_section(before)


OLD = {"section_id": "7", "section_path": "Sea", "section_level": 1, "view": "raw", "start_index": 4, "source_id": "s"}


@pytest.mark.parametrize("missing", ["section_id", "section_path", "section_level", "view"])
def test_a_part_of_an_old_record_is_the_users(missing: str):
    part = {key: value for key, value in OLD.items() if key != missing}
    assert result_metadata(part) == {}
    assert user_metadata(part) == part
