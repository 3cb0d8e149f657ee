"""Raw records of sections, looked up in a store."""

from __future__ import annotations

from drillrank.hosts.sections import StoredSection, raw_records
from drillrank.llm import Fetch, run


def test_records_are_looked_up_by_id_and_then_by_metadata():
    asked = []

    def answer(lookup):
        asked.append(lookup)
        record = StoredSection("record", "7", "raw", None, "text", {})
        return [record] if lookup.where is not None else []

    found, could = run(raw_records(["7", "7"], lambda one: one), handlers={Fetch: answer})
    assert (found["7"].record, could) == ("record", True)
    assert asked == [Fetch(("7",)), Fetch(where={"drillrank_section_id": ("7",), "drillrank_view": "raw"})]
