"""D3 over documents of the frameworks that link to each other: the linked passage directly follows."""

from __future__ import annotations

import pytest

from drillrank.text import count_tokens
from tests.conformance.frameworks import both_frameworks

PAGES = {
    "wiki/quay.md": "# Quay\n\nThe current at the harbour is strong.\n",
    "wiki/sites/harbour.md": (
        "# Harbour site\n\nThe cups there seized; they gave way to [the other kind](../parts/wind.md#power).\n"
    ),
    "wiki/parts/wind.md": "# Anemometers\n\n## Mounting\n\nOn a mast, high up.\n\n## Power\n\nIt draws 28 mA.\n",
    "wiki/parts/lamps.md": "# Lamps\n\nLamps on the quay draw power at night, much of it.\n",
    "wiki/people.md": "# People\n\nQuinlan repairs what salt water breaks.\n",
}
QUESTION = "Which current has the instrument that came when cups at the harbour seized?"


@both_frameworks
@pytest.mark.parametrize("key", ["source", "file_path", "url"])
@pytest.mark.parametrize("limit", [{"top_n": 5}, {"max_tokens": 70}], ids=["top_n", "max_tokens"])
def test_a_linked_page_directly_follows(host, key, limit):
    prefix = "https://example.org/" if key == "url" else ""
    pages = [host.document(text, path, **{key: prefix + path}) for path, text in PAGES.items()]
    titles_by_hops = {}
    for hops in (1, None, 2):
        retriever = host.ext.D3Retriever(pages, settings={"hops": hops}, **limit)
        items = host.both(retriever, QUESTION)
        titles_by_hops[hops] = [item.text.splitlines()[0] for item in items]
        assert all(item.text in PAGES.values() or item.text + "\n" in PAGES.values() for item in items)
        if "max_tokens" in limit:
            assert sum(count_tokens(item.text) for item in items) <= 70
    assert titles_by_hops[1][:2] == ["# Harbour site", "# Quay"]
    assert titles_by_hops[None] == titles_by_hops[2]
    assert titles_by_hops[2][:3] == ["# Harbour site", "# Anemometers", "# Quay"]
