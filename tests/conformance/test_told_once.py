"""What is wrong with a store, or with what was given beside it, a component says once; what is wrong anew, anew."""

from __future__ import annotations

import warnings

import pytest
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo

from drillrank.errors import DrillrankWarning
from drillrank.likelihood import EmbeddingModel
from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks

OAK = "# Oak\n\nThe oak is tall.\n\n# Ash\n\nThe ash is tough.\n\n# Elm\n\nThe elm is rare.\n"
FOX = OAK.replace("oak", "fox").replace("Oak", "Fox")


class Stored:
    """A store of a host, and components over it."""

    def __init__(self, host):
        self.host, self.store = host, host.index()

    def put(self, *records):
        """New ones, or others in place of those of their ids."""
        if self.host is LangChain:
            self.store.add_documents(list(records))
        else:
            known = [record.node_id for record in records if record.node_id in self.store.docstore.docs]
            if known:
                self.store.delete_nodes(known, delete_from_docstore=True)
            self.store.insert_nodes(list(records))
        return list(records)

    def put_views(self, text, id_):
        return self.put(*self.host.sections((id_, text)))

    def over(self, name, given=(), **fields):
        source = self.host.over(self.store) if name == "PromptRankRetriever" else self.store
        return getattr(self.host.ext, name)(list(given), source=source, **fields)


@pytest.fixture(params=[LangChain, LlamaIndex])
def stored(request):
    return Stored(request.param)


def told(host, component, question="How is the oak?"):
    """What is told of three questions, sync and async: of each kind once."""
    heard = []
    for asynchronous in (False, True, False):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert host.ask(component, question, asynchronous=asynchronous)
        heard += [str(warning.message) for warning in caught if issubclass(warning.category, DrillrankWarning)]
    return heard


def test_missing_neighbours_and_sections_are_told_once(stored):
    raws = [
        [record for record in stored.put_views(text, id_) if record.metadata["drillrank_view"] == "raw"]
        for text, id_ in ((OAK, "oak"), (FOX, "fox"))
    ]
    component = stored.over("MultiViewRetriever", top_n=9, expand="neighbours")
    assert told(stored.host, component) == []
    for raw in raws:
        stored.host.delete(stored.store, stored.host.id_of(raw[1]))
        heard = told(stored.host, component)
        assert [("raw record" in one, "around those" in one) for one in heard] == [(True, False), (False, True)]
    assert told(stored.host, component) == []


def test_chunks_of_another_splitter_are_told_once(stored):
    stored.put_views(OAK, "oak")
    component = stored.over("MultiViewRetriever", top_n=9)
    assert told(stored.host, component) == []
    for number in range(2):
        stored.put(stored.host.record(f"The oak is chunk {number}.", source="x"))
        assert ["did not make" in one for one in told(stored.host, component)] == [True] * (number == 0)


def test_chunks_without_offsets_are_told_once_for_each_document(stored):
    component = stored.over("D3Retriever")
    for document in ("x", "y"):
        chunks = [stored.host.record(f"The oak is tall, part {number}.", source=document) for number in range(2)]
        for chunk in chunks if stored.host is LlamaIndex else ():
            chunk.relationships = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
        stored.put(*chunks)
        [heard] = told(stored.host, component)
        assert "Chunks do not say where" in heard, "of the one that is new"
    assert told(stored.host, component) == []


@both_frameworks
@pytest.mark.parametrize(
    ("name", "fields", "said"),
    [
        ("D3Retriever", {}, "Given documents differ"),
        ("PromptRankRetriever", {"links": ["titles"]}, "some of the documents given"),
    ],
)
def test_what_was_given_and_is_stale_is_told_once_and_another_one_anew(host, name, fields, said):
    stored = Stored(host)

    def put(text, id_):
        views = name == "D3Retriever"
        return stored.put_views(text, id_) if views else stored.put(host.record(text, id_, source="x"))

    component = stored.over(name, [*put(OAK, "oak"), *put(FOX, "fox")], **fields)
    assert told(host, component) == []
    for text, id_ in ((OAK.replace("tall", "felled"), "oak"), (FOX.replace("tall", "sly"), "fox")):
        put(text, id_)
        [heard] = told(host, component)
        assert said in heard
    assert told(host, component) == []


def test_warnings_name_no_document_and_results_do(stored):
    component = stored.over("D3Retriever", settings={"score_key": "score"} if stored.host is LangChain else {})
    name = "The diary of Ada Holm"
    chunks = [stored.host.record(f"The oak is tall, part {number}.", source=name) for number in range(2)]
    for chunk in chunks if stored.host is LlamaIndex else ():
        chunk.relationships = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=name)}
    stored.put(*chunks)
    with pytest.warns(DrillrankWarning, match="do not say where") as caught:
        _, events = stored.host.hear(component, "How is the oak?")
    assert name not in "".join(str(warning.message) for warning in caught)
    assert name in "".join(problem for event in events for problem in event.get("problems", ()))


class SlowModel(EmbeddingModel):
    """Model with the specification of an encoder that takes long."""

    spec = "st:slow"


@both_frameworks
def test_encoding_many_passages_is_warned_about_once(host):
    reranker = host.ext.UPRRerank(model=SlowModel(lambda texts: [[float(len(text)), 1.0] for text in texts]))
    records = [host.record(f"The oak is tree {number}.") for number in range(50)]
    assert host.ask(reranker, "How is the oak?", *records[:49])
    with pytest.warns(DrillrankWarning, match="takes seconds for 50 passages") as caught:
        results = [host.ask(reranker, "How is the oak?", *records) for _ in range(2)]
    assert len(caught) == 1
    assert results[0] == results[1]
