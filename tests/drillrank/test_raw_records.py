"""Raw records: of a section that is stored under the old keys and under the new ones, the new record counts."""

from __future__ import annotations

from itertools import permutations

import pytest

from drillrank.hosts.lookups import ById, Holding, run_lookups
from drillrank.hosts.raw_records import at_hand, each_section_once, raw_records
from drillrank.hosts.stored_sections import StoredSection


def record(name, view="raw", old=False):
    return StoredSection(name, "7", view, old, None, name, {}, (), {})


@pytest.mark.parametrize(
    "found", list(permutations([record("old", old=True), record("new"), record("of it", "summary")])), ids=range(6)
)
def test_the_new_record_counts(found):
    assert at_hand(found, resolved=False)["7"].record == "new"
    kept, missing = run_lookups(
        each_section_once(found, lambda one: one, {}, resolved=False, sure=True), lambda lookup: None
    )
    assert (kept, missing) == (["new"], [])


@pytest.mark.parametrize("old", [False, True])
def test_records_are_looked_up_by_id_and_then_by_the_keys_that_there_are(old):
    asked = []

    def answer(lookup):
        asked.append(lookup)
        return [record("new")] if isinstance(lookup, Holding) and "drillrank_view" in lookup.wanted else []

    found, could = run_lookups(raw_records(["7", "7"], lambda one: one, old=old), answer)
    assert (found["7"].record, could) == ("new", True)
    assert asked[0] == ById(("7",))
    assert [sorted(lookup.wanted) for lookup in asked[1:]] == [["section_id", "view"]] * old + [
        ["drillrank_section_id", "drillrank_view"]
    ]
