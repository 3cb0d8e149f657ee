"""A question whose filter hides everything has no result, and is told why: once, in both hosts."""

from __future__ import annotations

import warnings

import pytest

from drillrank.errors import DrillrankWarning
from tests.conformance.frameworks import both_frameworks

TEXT = "# Doors\n\nThe code is 1234.\n\n# Windows\n\nThey are closed.\n"
QUESTION = "What is the code of the door?"


def made(host, name, where, filters):
    guides = [host.document(TEXT, "guide", tenant="a")]
    given = host.split(guides) if name == "MultiViewRetriever" else guides
    fields = {"llm": host.llm(["So it is."]), "n_generated": 1} if name == "BRMGRRetriever" else {}
    sources = {"given": [], "found": host.finds(lambda question: given), "store": host.index(*given)}
    place = {"documents": given} if where == "given" else {"source": sources[where]}
    return getattr(host.ext, name)(**place, **fields, filters=filters)


@both_frameworks
@pytest.mark.parametrize(
    ("name", "where"),
    [
        *((name, where) for name in ("MultiViewRetriever", "D3Retriever") for where in ("given", "found", "store")),
        ("PromptRankRetriever", "found"),
        ("BRMGRRetriever", "found"),
    ],
)
def test_where_nothing_passes_the_filter_it_is_said_once_a_question_and_else_not_a_word(host, name, where):
    said = "nothing that the filter|filter removes everything|passes the filter"
    if name in ("PromptRankRetriever", "BRMGRRetriever"):
        said = f"{name}: the filter removed all records that the source returned"
    for hides in (host.filters(tenant="b"), lambda record: record.metadata["tenant"] == "b"):
        for asynchronous in (False, True):
            with pytest.warns(DrillrankWarning, match=said) as told:
                found = host.ask(made(host, name, where, hides), QUESTION, asynchronous=asynchronous)
            assert [one.metadata.get("drillrank_origin") for one in found] == ["generated"] * (name[:2] == "BR")
            assert len(told) == 1
            assert "1234" not in f"{told[0].message}{found}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert host.ask(made(host, name, where, lambda record: record.metadata["tenant"] == "a"), QUESTION)
