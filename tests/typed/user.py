# pyright: strict
"""A user's file, as strict type checkers read it: every component built by position, by name, and with settings.

`make types` runs mypy over it, `make pyright` pyright; what `wrong` does, both must refuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from llama_index.core.llms import MockLLM
from llama_index.core.schema import NodeWithScore, TextNode

import langchain_ext
import llama_index_ext
from drillrank import load_language_model, read_document
from drillrank.structure.record_store import RecordStore
from drillrank.structure.stored_chunks import StoredChunk, Where
from drillrank.testing import RecordStoreTests, SampleRecord
from drillrank.vectors import Embed
from langchain_ext.stored_chunks import read_documents

lm = load_language_model()
llm = FakeListChatModel(responses=["a"])
documents = [Document("A text.")]
nodes = [TextNode(text="A text.")]
hits = [NodeWithScore(node=node) for node in nodes]

# Rerankers
llama_index_ext.UPRRerank(lm)
llama_index_ext.UPRRerank(model="unigram", top_n=2, prior=None, score="probability")
llama_index_ext.UPRRerank(settings={"score_threshold": -9.0})
langchain_ext.UPRRerank(lm)
langchain_ext.UPRRerank(model="unigram", top_n=2, prior=None, score="probability")
langchain_ext.UPRRerank(settings={"score_threshold": -9.0})
llama_index_ext.RelevanceRerank("hf:a")
llama_index_ext.RelevanceRerank(model="hf:a", preset="yes-no")
llama_index_ext.RelevanceRerank("hf:a", settings={"score_threshold": 0.5})
langchain_ext.RelevanceRerank("hf:a")
langchain_ext.RelevanceRerank(model="hf:a", preset="yes-no")
langchain_ext.RelevanceRerank("hf:a", settings={"score_threshold": 0.5})
llama_index_ext.MonoT5Rerank("hf:a")
llama_index_ext.MonoT5Rerank(model="hf:a", score="probability")
llama_index_ext.MonoT5Rerank("hf:a", settings={"keep_retrieval_score": True})
langchain_ext.MonoT5Rerank("hf:a")
langchain_ext.MonoT5Rerank(model="hf:a", score="probability")
langchain_ext.MonoT5Rerank("hf:a", settings={"score_key": None})
llama_index_ext.BRMGRRerank(lm)
llama_index_ext.BRMGRRerank(guard=True, preset="paper")
llama_index_ext.BRMGRRerank(settings={"origin_key": "written_by"})
langchain_ext.BRMGRRerank(lm)
langchain_ext.BRMGRRerank(guard=0.5, settings={"generated_share": 0.5})
langchain_ext.BRMGRRerank(settings={"origin_key": "written_by"})
llama_index_ext.PromptRankRerank(lm)
llama_index_ext.PromptRankRerank(links=("titles", "relationships"))
llama_index_ext.PromptRankRerank(settings={"hops": 2})
langchain_ext.PromptRankRerank(lm)
langchain_ext.PromptRankRerank(links=("titles",))
langchain_ext.PromptRankRerank(settings={"hops": 2})
langchain_ext.LikelihoodCrossEncoder(lm)
langchain_ext.LikelihoodCrossEncoder(model="unigram", template="{text}")

# Splitters
llama_index_ext.MultiViewNodeParser()
llama_index_ext.MultiViewNodeParser(llm=MockLLM(), views=("raw",), max_tokens=None)
parser = llama_index_ext.MultiViewNodeParser(settings={"separator": " / "})
langchain_ext.MultiViewTextSplitter(["raw"])
langchain_ext.MultiViewTextSplitter(llm=llm, max_tokens=None)
splitter = langchain_ext.MultiViewTextSplitter(settings={"separator": " / "})

# Readers
llama_index_ext.DrillrankReader(on_error="skip")
langchain_ext.DrillrankLoader(["a.pdf", Path("reports")], on_error="raise")


# A store of a third party, and its tests
class NoStore(RecordStore):
    def search(self, question: str, n: int, where: Where | None = None) -> list[StoredChunk[Document]]:
        return []

    def get(self, ids: Sequence[str]) -> list[StoredChunk[Document]]:
        return []

    def find(self, where: Where) -> list[StoredChunk[Document]] | None:
        return None


class NoStoreTests(RecordStoreTests):
    can_find = False

    def make_store(self, chunks: Sequence[StoredChunk[SampleRecord]], embed: Embed) -> NoStore:
        return NoStore()

    def open_store(self, store: NoStore, tenant: str | None) -> RecordStore:
        return store


langchain_ext.D3Retriever(source=NoStore())
langchain_ext.MultiViewRetriever(source=NoStore())
llama_index_ext.D3Retriever(source=NoStore())
llama_index_ext.MultiViewRetriever(source=NoStore())
chunks = read_documents(documents)


if TYPE_CHECKING:  # they need files
    llama_index_ext.D3Retriever(llama_index_ext.DrillrankReader().load_data("a.pdf"))
    documents += langchain_ext.DrillrankLoader(Path("a.pdf")).load()
    llama_index_ext.D3Retriever([read_document("a.pdf"), *nodes])
    langchain_ext.D3Retriever([read_document("a.pdf"), *documents])
    parser.get_nodes_from_documents([read_document("a.pdf")])
    splitter.split_documents([read_document("a.pdf")])

# Retrievers
d3 = llama_index_ext.D3Retriever(nodes)
llama_index_ext.D3Retriever(documents=nodes, llm=MockLLM(), top_n=None)
llama_index_ext.D3Retriever(source=d3, settings={"as_of": "2023-06"})
drill = langchain_ext.D3Retriever(documents)
langchain_ext.D3Retriever(documents=documents, llm=llm, top_n=None)
langchain_ext.D3Retriever(source=drill, settings={"as_of": "2023-06"})
llama_index_ext.MultiViewRetriever(parser(nodes))
llama_index_ext.MultiViewRetriever(documents=parser(nodes), top_n=2, weights={"raw": 2.0})
llama_index_ext.MultiViewRetriever(source={"raw": d3})
langchain_ext.MultiViewRetriever(splitter.split_documents(documents))
langchain_ext.MultiViewRetriever(documents=splitter.split_documents(documents), top_n=2, weights={"raw": 2.0})
langchain_ext.MultiViewRetriever(source={"raw": drill}, settings={"score_key": None})
llama_index_ext.PromptRankRetriever(nodes, source=d3)
llama_index_ext.PromptRankRetriever(documents=nodes, source=d3, links=("titles", "retrieval"))
llama_index_ext.PromptRankRetriever(source=d3, settings={"hops": 2})
langchain_ext.PromptRankRetriever(documents, source=drill)
langchain_ext.PromptRankRetriever(documents=documents, source=drill, links=("titles", "retrieval"))
langchain_ext.PromptRankRetriever(source=drill, settings={"hops": 2})
llama_index_ext.BRMGRRetriever(d3, MockLLM())
llama_index_ext.BRMGRRetriever(source=d3, llm=MockLLM(), n_generated=2)
llama_index_ext.BRMGRRetriever(d3, settings={"workers": 1})
langchain_ext.BRMGRRetriever(drill, llm)
langchain_ext.BRMGRRetriever(source=drill, llm=llm, n_generated=2)
langchain_ext.BRMGRRetriever(drill, llm, settings={"workers": 1})

# Answers
llama_index_ext.SelfAskQueryEngine(d3, MockLLM())
llama_index_ext.SelfAskQueryEngine(source=d3, llm=MockLLM(), max_steps=2)
langchain_ext.SelfAskChain(drill, llm)
langchain_ext.SelfAskChain(source=drill, llm=llm, max_steps=2)

# What they return
ranked: list[NodeWithScore] = llama_index_ext.UPRRerank().postprocess_nodes(hits, query_str="Which text?")
compressed: list[Document] = list(langchain_ext.UPRRerank().compress_documents(documents, "Which text?"))
found: list[NodeWithScore] = d3.retrieve("Which text?")
evidence: list[Document] = drill.invoke("Which text?")

if TYPE_CHECKING:  # wrong
    llama_index_ext.UPRRerank(top_k=3)  # type: ignore[call-arg]
    llama_index_ext.MonoT5Rerank()  # type: ignore[call-arg]
    llama_index_ext.D3Retriever(nodes, top_n="three")  # type: ignore[arg-type]
    llama_index_ext.PromptRankRetriever(nodes)  # type: ignore[call-arg]
    langchain_ext.UPRRerank(prior="unknown")  # type: ignore[arg-type]
    langchain_ext.D3Retriever([], top_n="three")  # type: ignore[arg-type]
    langchain_ext.BRMGRRetriever(drill)  # type: ignore[call-arg]
    langchain_ext.MultiViewTextSplitter(3)  # type: ignore[arg-type]
