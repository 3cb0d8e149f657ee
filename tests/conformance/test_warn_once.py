"""Warnings of components of both frameworks: once for each fault, and without text of questions or documents."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo

from drillrank.errors import DrillrankWarning
from drillrank.likelihood import EmbeddingModel
from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks
from tests.conformance.record_lists import Records

QUESTION = "How is the oak?"
OAK = "# Oak\n\nThe oak is tall.\n\n# Ash\n\nThe ash is tough.\n\n# Elm\n\nThe elm is rare.\n"
FOX = OAK.replace("oak", "fox").replace("Oak", "Fox")


class Stored:
    """A store of a framework, and components over it."""

    def __init__(self, host: Any) -> None:
        self.host, self.store = host, host.index()

    def put(self, *records: Any) -> list[Any]:
        """Add records; they replace those of the same ids."""
        if self.host is LangChain:
            self.store.add_documents(list(records))
        else:
            known = [record.node_id for record in records if record.node_id in self.store.docstore.docs]
            if known:
                self.store.delete_nodes(known, delete_from_docstore=True)
            self.store.insert_nodes(list(records))
        return list(records)

    def put_views(self, text: str, id_: str) -> list[Any]:
        return self.put(*self.host.sections((id_, text)))

    def put_chunks(self, document: str) -> None:
        """Add two chunks of a document without their offsets."""
        chunks = [self.host.record(f"The oak is tall, part {number}.", source=document) for number in range(2)]
        for chunk in chunks if self.host is LlamaIndex else ():
            chunk.relationships = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
        self.put(*chunks)

    def over(self, name: str, documents: Any = (), **fields: Any) -> Any:
        source = self.host.over(self.store) if name == "PromptRankRetriever" else self.store
        return getattr(self.host.ext, name)(list(documents), source=source, **fields)

    def ask(self, component: Any) -> Callable[[bool], Any]:
        """Return a function that asks a component, in its synchronous or asynchronous way."""
        return lambda asynchronous: self.host.ask(component, QUESTION, asynchronous=asynchronous)


# A case yields how to ask the component, and the warnings about what has changed since the last question.
Case = Iterator[tuple[Callable[[bool], Any], list[str]]]


def deleted_neighbors(stored: Stored) -> Case:
    raws = [
        [record for record in stored.put_views(text, id_) if record.metadata["drillrank_view"] == "raw"]
        for text, id_ in ((OAK, "oak"), (FOX, "fox"))
    ]
    component = stored.over("MultiViewRetriever", top_n=9, expand="neighbours")
    yield stored.ask(component), []
    for raw in raws:
        stored.host.delete(stored.store, stored.host.id_of(raw[1]))
        yield stored.ask(component), ["raw record", "around those"]


def chunks_of_another_splitter(stored: Stored) -> Case:
    stored.put_views(OAK, "oak")
    component = stored.over("MultiViewRetriever", top_n=9)
    yield stored.ask(component), []
    for number in range(2):
        stored.put(stored.host.record(f"The oak is chunk {number}.", source="x"))
        yield stored.ask(component), ["did not make"][number:]


def no_raw_views(stored: Stored) -> Case:
    class WithoutRaw(Records):
        def search(self, question: str, n: int, where: Any = None) -> Any:
            return [chunk for chunk in super().search(question, 99, where) if chunk.view != "raw"][:n]

    source = WithoutRaw.of(stored.host, stored.host.sections(("oak", OAK)))
    yield stored.ask(stored.host.ext.MultiViewRetriever(source=source)), ["its searches return none"]


def chunks_without_offsets(stored: Stored) -> Case:
    component = stored.over("D3Retriever")
    for document in ("x", "y"):
        stored.put_chunks(document)
        yield stored.ask(component), ["Chunks do not say where"]


def stale_documents(stored: Stored) -> Case:
    component = stored.over("D3Retriever", [*stored.put_views(OAK, "oak"), *stored.put_views(FOX, "fox")])
    yield stored.ask(component), []
    for text, id_ in ((OAK.replace("tall", "felled"), "oak"), (FOX.replace("tall", "sly"), "fox")):
        stored.put_views(text, id_)
        yield stored.ask(component), ["Given documents differ"]


def stale_records(stored: Stored) -> Case:
    def put(text: str, id_: str) -> list[Any]:
        return stored.put(stored.host.record(text, id_, source="x"))

    component = stored.over("PromptRankRetriever", [*put(OAK, "oak"), *put(FOX, "fox")], links=["titles"])
    yield stored.ask(component), []
    for text, id_ in ((OAK.replace("tall", "felled"), "oak"), (FOX.replace("tall", "sly"), "fox")):
        put(text, id_)
        yield stored.ask(component), ["some of the documents given"]


class SlowModel(EmbeddingModel):
    """Model with the specification of an encoder that takes long."""

    spec = "st:slow"


def many_passages(stored: Stored) -> Case:
    host = stored.host
    reranker = host.ext.UPRRerank(model=SlowModel(lambda texts: [[float(len(text)), 1.0] for text in texts]))
    records = [host.record(f"The oak is tree {number}.") for number in range(50)]
    for n, expected in ((49, []), (50, ["takes seconds for 50 passages"])):
        yield (
            lambda asynchronous, n=n: host.ask(reranker, QUESTION, *records[:n], asynchronous=asynchronous),
            expected,
        )


CASES = {
    "MultiViewRetriever, neighbors that were deleted": deleted_neighbors,
    "MultiViewRetriever, chunks of another splitter": chunks_of_another_splitter,
    "MultiViewRetriever, searches without raw texts": no_raw_views,
    "D3Retriever, chunks without offsets": chunks_without_offsets,
    "D3Retriever, documents that differ from the store": stale_documents,
    "PromptRankRetriever, documents that differ from the store": stale_records,
    "UPRRerank, many passages for an encoder": many_passages,
}


def warnings_of_three_questions(ask: Callable[[bool], Any]) -> list[str]:
    """Return the messages of all warnings, after two synchronous questions and an asynchronous one."""
    messages, results = [], []
    for asynchronous in (False, True, False):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            results.append(ask(asynchronous))
        messages += [str(warning.message) for warning in caught if issubclass(warning.category, DrillrankWarning)]
    assert results[0]
    assert results[0] == results[1] == results[2]
    return messages


@both_frameworks
@pytest.mark.parametrize("name", CASES)
def test_a_component_warns_once_about_each_fault(host, name):
    for ask, expected in CASES[name](Stored(host)):
        messages = warnings_of_three_questions(ask)
        assert [
            message if re.search(pattern, message) is None else pattern
            for message, pattern in zip(messages, expected, strict=False)
        ] == expected
        assert len(messages) == len(expected)
        assert warnings_of_three_questions(ask) == []


@both_frameworks
def test_warnings_name_no_document_and_results_do(host):
    stored, name = Stored(host), "The diary of Ada Holm"
    component = stored.over("D3Retriever", settings={"score_key": "score"} if host is LangChain else {})
    stored.put_chunks(name)
    with pytest.warns(DrillrankWarning, match="do not say where") as caught:
        _, events = host.hear(component, QUESTION)
    assert name not in "".join(str(warning.message) for warning in caught)
    assert name in "".join(problem for event in events for problem in event.get("problems", ()))
