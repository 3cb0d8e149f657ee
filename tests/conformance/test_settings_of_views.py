"""`embed`, `merge` and `views` of both hosts' retrievers over views: as `MultiViewIndex` has them, in memory or not."""

from __future__ import annotations

from operator import itemgetter

import pytest

from drillrank.structure import parse_document
from drillrank.views import VIEWS, MultiViewChunker, MultiViewIndex
from tests.conformance.corpus import BOOK, QUESTION
from tests.conformance.frameworks import both_frameworks


def vector(text):
    return [float(text.count(letter)) + 1 for letter in "aeiou"]


def embed(texts):
    return list(map(vector, texts))


def found(host, searched, **fields):
    """Where each result stands, and its places in the views."""
    records = host.sections(("book", BOOK))

    def retriever(view=None):
        of_view = [record for record in records if view in (None, record.metadata["drillrank_view"])]
        return host.over(host.index(*of_view, embedding=host.embedding(vector)), 99)

    sources = {
        "memory": dict,
        "store": lambda: {"source": host.index(*records, embedding=host.embedding(vector))},
        "one retriever": lambda: {"source": retriever()},
        "retrievers": lambda: {"source": {view: retriever(view) for view in VIEWS}},
    }
    component = host.ext.MultiViewRetriever(records, **sources[searched](), **fields)
    hits = [one.metadata for one in host.retrieve(component, QUESTION)]
    return [(hit["drillrank_section_path"], {*hit["drillrank_matched_views"].split()}) for hit in hits]


@both_frameworks
@pytest.mark.parametrize("views", [("raw",), ("summary",), ("keywords", "summary"), ("raw", "keywords", "summary")])
@pytest.mark.parametrize(("merge", "top_n"), [("union", 3), ("fusion", 9)])
@pytest.mark.parametrize("searched", ["memory", "store", "one retriever", "retrievers"])
def test_everywhere_as_the_core_has_it(host, views, merge, top_n, searched):
    [chunks] = MultiViewChunker().chunks([("book", parse_document(BOOK))])
    paths = {chunk.id: " > ".join(chunk.path) for chunk in chunks}
    index = MultiViewIndex(chunks, embed=embed, merge=merge, views=views)
    expected = [(paths[hit.section_id], {*hit.matched_views.split()}) for hit in index.search(QUESTION, top_n)]
    fields = {"views": views, "merge": merge, "top_n": top_n}
    if searched == "memory":
        for model in (host.embedding(vector), embed):  # a function is a model, too
            assert found(host, searched, embed=model, **fields) == expected
        return
    hits = found(host, searched, **fields)
    if merge == "fusion":  # among equals a retriever decides otherwise
        assert sorted(hits, key=itemgetter(0)) == sorted(expected, key=itemgetter(0))
    else:  # a store may bring no more of a view than the union takes
        assert {path for path, _ in hits} == {path for path, _ in expected}
        assert {place.split(":")[0] for _, places in hits for place in places} == {*views}
