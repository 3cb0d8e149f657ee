"""No component of either host holds up the event loop, whatever it is made of: every component goes through.

Whatever a component is made of blocks until the loop has come round: on the loop's own thread it would for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest
from langchain_classic.retrievers.document_compressors import CrossEncoderReranker
from langchain_core.embeddings import Embeddings
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_core.vectorstores import VectorStore as LangChainVectorStore
from llama_index.core import StorageContext
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore

from drillrank.testing import Heartbeat
from tests.conformance.corpus import BOOK, QUESTION
from tests.conformance.frameworks import COMPONENTS, DocumentEmbeddings, LangChain, LlamaIndex
from tests.conformance.readers import Judge, everything


class SlowJudge(Judge):
    """A language model of which every ranker takes all that it says, and takes long to say it."""

    def __init__(self, heart: Heartbeat) -> None:
        super().__init__()
        self._heart = heart

    def log_likelihood_batch(self, *arguments):
        self._heart.wait("model")
        return super().log_likelihood_batch(*arguments)

    def next_tokens_batch(self, *arguments):
        self._heart.wait("model")
        return super().next_tokens_batch(*arguments)


_hearts: list[Heartbeat] = []


class VectorStore(SimpleVectorStore):
    def query(self, query, **kwargs):
        _hearts[-1].wait("store")
        return super().query(query, **kwargs)


class Docstore(SimpleDocumentStore):
    def get_document(self, doc_id, raise_error=True):
        _hearts[-1].wait("docstore")
        return super().get_document(doc_id, raise_error)

    async def aget_document(self, doc_id, raise_error=True):
        return await asyncio.to_thread(self.get_document, doc_id, raise_error)


class LangChainStore(InMemoryVectorStore):
    """Slow to search, as a remote one is."""

    asimilarity_search = LangChainVectorStore.asimilarity_search

    def _similarity_search_with_score_by_vector(self, *given, **more):
        _hearts[-1].wait("store")
        return super()._similarity_search_with_score_by_vector(*given, **more)


class LangChainDocstore(InMemoryStore):
    def mget(self, keys):
        _hearts[-1].wait("docstore")
        return super().mget(keys)

    async def amget(self, keys):
        return await asyncio.to_thread(self.mget, keys)


class OnThisMachine(DocumentEmbeddings):
    """A model without a method that waits; LlamaIndex's are so by their own."""

    aembed_query = Embeddings.aembed_query


class Parts:
    """What components are made of, each of which takes long."""

    def __init__(self, host: Any, heart: Heartbeat) -> None:
        self.host, self.heart = host, heart
        self.records = [host.record(f"The Rhine flows through Basel {n} times.", str(n)) for n in range(2)]
        self.linking = host.changed(self.records[0], links="1")
        self.views = host.sections(("book", BOOK))

    def source(self, *records: Any, asynchronous: bool = False) -> Any:
        found = list(records or self.records)
        return self.host.finds(lambda question: self.heart.wait("retriever") or found, asynchronous)

    def llm(self, asynchronous: bool = False) -> Any:
        def answer(prompt: str) -> str:
            self.heart.wait("llm")
            asked, _, behind = prompt.rpartition(QUESTION)
            if "Follow up" in asked:  # of self-ask
                return "So the final answer is: Basel" if "Intermediate" in behind else "Follow up: What flows there?"
            return everything(prompt) or "[river, town]"

        return self.host.reader(answer, kind=int(asynchronous))

    def docstore(self) -> Any:
        if self.host is LlamaIndex:
            docstore = Docstore()
            docstore.add_documents(self.records)
        else:
            docstore = LangChainDocstore()
            docstore.mset([(record.id, record) for record in self.records])
        return docstore

    def store(self) -> Any:
        def vector(text: str) -> list[float]:
            return [float(len(text)), 1.0]

        def of_question(text: str) -> list[float]:
            self.heart.wait("embedding")
            return [1.0, 0.0]

        if self.host is LlamaIndex:
            storage = StorageContext.from_defaults(vector_store=VectorStore(), docstore=Docstore())
            model = self.host.embedding(vector, of_question)
            return self.host.index(*self.views, embedding=model, storage_context=storage)
        filled = LangChainStore(OnThisMachine(vector, of_question))
        filled.add_documents(self.views)
        return filled

    def summarizer(self, texts: list[str]) -> list[str]:
        self.heart.wait("summarizer")
        return list(texts)


def rerankers(name: str, p: Parts) -> list[tuple[Awaitable[Any], set[str]]]:
    component = getattr(p.host.ext, name)
    made = component(model=SlowJudge(p.heart))
    works = [(p.host.arerank(made, QUESTION, *p.records), {"model"})]
    if p.host is LangChain:
        works.append((made.as_runnable().ainvoke({"query": QUESTION, "documents": p.records}), {"model"}))
    if name == "PromptRankRerank":
        linked = component(links=("metadata",), source=p.source(), store=p.docstore())
        works.append((p.host.arerank(linked, QUESTION, p.linking), {"retriever", "docstore"}))
    return works


def others(name: str, p: Parts) -> list[tuple[Awaitable[Any], set[str]]]:
    component, judge = getattr(p.host.ext, name), {"model": SlowJudge(p.heart)}

    def asked(**fields: Any) -> Awaitable[Any]:
        return p.host.aretrieve(component(**fields), QUESTION)

    def split(**fields: Any) -> Awaitable[Any]:
        long = "\n\n".join(f"# Part {part}\n\n{'The Rhine flows through Basel. ' * 50}" for part in range(2))
        made = component(**fields)
        again = made.acall if p.host is LlamaIndex else made.atransform_documents
        return again([p.host.document(long)])

    if name == "LikelihoodCrossEncoder":
        made = CrossEncoderReranker(model=component(judge["model"]))
        return [(made.acompress_documents(p.records, QUESTION), {"model"})]
    if name.startswith("MultiView"):
        if name != "MultiViewRetriever":
            by_llm = [(split(llm=p.llm(how)), {"llm"}) for how in (False, True)]
            return [*by_llm, (split(summarizer=p.summarizer), {"summarizer"})]
        waiting = {"raw": p.source(*p.views, asynchronous=True)}
        over = [(asked(source=source), {"retriever"}) for source in (p.source(*p.views), waiting)]
        return [*over, (asked(source=p.store()), {"embedding", "store"})]
    works, parts = [], {"retriever", "llm"}
    for how in (False, True):
        source, llm = p.source(asynchronous=how), p.llm(how)
        if name.startswith("SelfAsk"):
            works.append((p.host.aanswer(component(source=source, llm=llm), QUESTION), parts))
        else:
            works.append((asked(source=source, llm=llm, **judge), parts | {"model"}))
        if name == "PromptRankRetriever":
            links = {"links": ("metadata", "retrieval"), "store": p.docstore()}
            linked = asked(source=p.source(p.linking, asynchronous=how), **links, **judge)
            works.append((linked, {"retriever", "docstore", "model"}))
    if name == "D3Retriever":
        works.append((asked(source=p.store(), **judge), {"embedding", "store", "model"}))
    return works


@pytest.mark.parametrize(("host", "name"), COMPONENTS)
async def test_the_loop_comes_round_while_a_component_waits_for_what_it_is_made_of(host, name):
    heart = Heartbeat()
    _hearts[:] = [heart]
    for work, parts in (rerankers if name.endswith("Rerank") else others)(name, Parts(host, heart)):
        heart.waited.clear()
        await heart.during(work)
        assert parts <= heart.waited
        assert not heart.in_vain
