"""D3 over stores on servers and in libraries uses the vectors, or the scores of the search, and embeds the question."""

from __future__ import annotations

import pytest

from tests.integration import conftest

RED, BLUE = "# One\n\nIt is red here.", "# Two\n\nIt is blue here."
WITHOUT_VECTORS = (conftest.langchain_pgvector, conftest.langchain_pgvectorstore)  # and their scores are distances


def color(text: str) -> list[float]:
    """Return a unit vector that shows the color a text is about."""
    return [1.0, 0.0] if "red" in text or "warm" in text else [0.0, 1.0]


@pytest.mark.parametrize("store", conftest.STORES, ids=lambda store: store.__name__)
@pytest.mark.parametrize(("question", "name"), [("A warm one?", "red"), ("A cold one?", "blue")])
async def test_cosines_of_a_store_join_the_score(opened, store, question, name):
    stored = opened(store, color, 2)
    host = stored.host
    stored.put([host.document(text, id_, source=id_) for text, id_ in ((RED, "red"), (BLUE, "blue"))])
    retriever = host.ext.D3Retriever(source=stored.source, top_n=2)
    hybrid = host.retrieve(retriever, question)
    if store is not conftest.langchain_pgvector:  # it is either synchronous or asynchronous
        assert await host.aretrieve(retriever, question) == hybrid
    if stored.aclose:
        await stored.aclose()
    lexical = host.retrieve(
        host.ext.D3Retriever(source=stored.source, top_n=2, settings={"use_index_vectors": False}), question
    )
    assert {found.text for found in hybrid} == {found.text for found in lexical} == {RED, BLUE}
    if store in WITHOUT_VECTORS:
        assert hybrid == lexical
        return
    assert name in hybrid[0].text
    assert hybrid[0].score > lexical[0].score + 5
