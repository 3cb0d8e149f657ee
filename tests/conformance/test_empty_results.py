"""Questions without a result, and results without a word of the question: one warning or one mark for each question."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from llama_index.core.schema import MetadataMode

from drillrank.errors import DrillrankWarning
from tests.conformance.frameworks import LlamaIndex, both_frameworks

TEXT = "# Doors\n\nThe code is 1234.\n\n# Windows\n\nThey are closed.\n"
QUESTION = "What is the code of the door?"
FUNCTION = "a function"
KEYS = "keys and values"


class Empty(NamedTuple):
    """A component whose question has no result.

    Attributes:
        name: Name of the component, and the reason.
        build: Function from a framework to the component.
        message: Text of the only warning for a question; None if there is none.
    """

    name: str
    build: Callable[[Any], Any]
    message: str | None


def guide(host: Any, text: str = TEXT, tenant: str = "a") -> Any:
    return host.document(text, "guide", tenant=tenant)


def views(host: Any, *names: str) -> list[Any]:
    """Return the views of the guide with these names."""
    return [record for record in host.split([guide(host)]) if record.metadata["drillrank_view"] in names]


def hidden(name: str, kind: str, where: str, tenant: str = "b") -> Callable[[Any], Any]:
    """Return a builder of a component whose filter shows the records of one tenant. The guide is tenant a's."""

    def build(host: Any) -> Any:
        filters = host.filters(tenant=tenant) if kind == KEYS else lambda record: record.metadata["tenant"] == tenant
        records = host.split([guide(host)]) if name == "MultiViewRetriever" else [guide(host)]
        if where == "documents":
            fields: dict[str, Any] = {"documents": records}
        else:
            fields = {"source": host.index(*records) if where == "a store" else host.finds(lambda question: records)}
        if name == "BRMGRRetriever":
            fields |= {"llm": host.llm(["So it is."]), "n_generated": 1}
        return getattr(host.ext, name)(**fields, filters=filters)

    return build


def over(name: str, records: Callable[[Any], list[Any]], is_store: bool = False, **fields: Any) -> Callable[[Any], Any]:
    """Return a builder of a component over a store with these records, or over a retriever that returns them."""

    def build(host: Any) -> Any:
        found = records(host)
        source = host.index(*found) if is_store else host.finds(lambda question: found)
        return getattr(host.ext, name)(source=source, **fields)

    return build


def summaries_of_another_guide(host: Any) -> Any:
    """Build a D3Retriever whose source returns summaries of a guide that is not among its documents."""
    summaries = views(host, "summary")
    given = host.split([guide(host, "# Doors\n\nThe code is 9.\n", "b")])
    return host.ext.D3Retriever(given, source=host.finds(lambda question: summaries))


def keywords_for_a_view(host: Any) -> Any:
    return host.ext.MultiViewRetriever(source={"keywords": host.finds(lambda question: views(host, "keywords"))})


HIDDEN = "nothing that the filter|filter removes everything|passes the filter"
PLACES = [
    *(("MultiViewRetriever", where) for where in ("documents", "a retriever", "a store")),
    *(("D3Retriever", where) for where in ("documents", "a retriever", "a store")),
    ("PromptRankRetriever", "a retriever"),
    ("BRMGRRetriever", "a retriever"),
]
CASES = [
    *(
        Empty(
            f"{name}, the filter by {kind} hides all of {where}",
            hidden(name, kind, where),
            f"^{name}: the filter removed all records that the source returned"
            if name in ("PromptRankRetriever", "BRMGRRetriever")
            else HIDDEN,
        )
        for name, where in PLACES
        for kind in (KEYS, FUNCTION)
    ),
    Empty("MultiViewRetriever, an empty store", over("MultiViewRetriever", lambda host: [], is_store=True), "is empty"),
    Empty("D3Retriever, an empty store", over("D3Retriever", lambda host: [], is_store=True), "The source is empty"),
    Empty("MultiViewRetriever, a retriever that finds nothing", over("MultiViewRetriever", lambda host: []), None),
    *(
        Empty(
            f"MultiViewRetriever, {'a store' if is_store else 'a retriever'} without the searched view",
            over("MultiViewRetriever", lambda host: views(host, "keywords", "summary"), is_store, views=["raw"]),
            r"none of the views \['raw'\]",
        )
        for is_store in (False, True)
    ),
    Empty("MultiViewRetriever, views of unknown documents", keywords_for_a_view, "pass documents, too"),
    Empty("D3Retriever, summaries of another guide", summaries_of_another_guide, "Pass their documents as documents"),
    Empty(
        "D3Retriever, views without raw records",
        over("D3Retriever", lambda host: views(host, "summary")),
        "raw records",
    ),
]


def ask(host: Any, build: Callable[[Any], Any], asynchronous: bool = False) -> tuple[list[Any], list[str]]:
    """Return the results of a question, and the warnings while the component was built and asked."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = host.ask(build(host), QUESTION, asynchronous=asynchronous)
    return results, [str(one.message) for one in caught if issubclass(one.category, DrillrankWarning)]


@both_frameworks
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_question_without_a_result_gets_one_warning(host, case, asynchronous):
    results, messages = ask(host, case.build, asynchronous)
    assert [one.metadata.get("drillrank_origin") for one in results] == ["generated"] * case.name.startswith("BRMGR")
    assert len(messages) == (case.message is not None)
    for message in messages:
        assert re.search(case.message, message)
        assert "1234" not in message
    assert "1234" not in str(results)


@both_frameworks
@pytest.mark.parametrize(("name", "where"), PLACES)
def test_a_filter_that_shows_all_gives_no_warning(host, name, where):
    results, messages = ask(host, hidden(name, FUNCTION, where, tenant="a"))
    assert results
    assert messages == []


# Results without a word of the question

TEXTS = ["It was a town of many long streets and squares.", "Whales.", "It was a town."]
SECTIONS = "".join(f"# {title}\n\n{text}\n\n" for title, text in zip("ABC", TEXTS, strict=True))
KEY = "drillrank_nothing_matched"


@both_frameworks
@pytest.mark.parametrize("name", ["UPRRerank", "BRMGRRerank", "PromptRankRerank", "D3Retriever"])
def test_results_without_a_word_of_the_question_are_marked_and_keep_their_order(host, name):
    component = host.made(name, [host.document(SECTIONS)], top_n=3)
    records = [host.record(text, str(number)) for number, text in enumerate(TEXTS)] if name != "D3Retriever" else []
    results = host.ask(component, "Which foxes sing?", *records)
    assert [one.text for one in results] == TEXTS
    assert [one.metadata[KEY] for one in results] == [True] * 3
    again = [host.record(one.text, one.id, **one.metadata) for one in results] if records else []
    assert not any(KEY in one.metadata for one in host.ask(component, "Which town?", *again))


def test_d3_retriever_of_llama_index_shows_the_mark_to_no_model():
    for hit in LlamaIndex.made("D3Retriever", [LlamaIndex.document(SECTIONS)]).retrieve("Which foxes sing?"):
        assert hit.node.get_content(MetadataMode.EMBED) == hit.node.get_content(MetadataMode.LLM) == hit.text
