"""Path search with an embedding model of the host: what it reads, what it finds, and what it costs."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from pydantic import PrivateAttr

import langchain_ext
import llama_index_ext
from drillrank import Passage, PromptRank
from drillrank.errors import InvalidInput
from drillrank.multihop.path_rerank import PathRerank
from tests.conformance.building import build

QUESTION = "In which port did the director of The Silent Pier grow up?"
TEXTS = {
    "film": "The Silent Pier was filmed by Ada Holm.",
    "aunt": "Ada Holm did have an aunt of which we know little.",
    "holm": "Ada Holm knew the harbour of Esbjerg as a child.",
    **{f"whale {number}": f"Whales sing, verse {number}." for number in range(3)},
}
LINKS = {"film": ["holm", "aunt"]}


def vectors(texts: list[str]) -> list[list[float]]:
    return [[0.1, float("port" in text or "harbour" in text)] for text in texts]


class LangChainModel(Embeddings):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.texts += texts
        return vectors(texts)

    def embed_query(self, text: str) -> list[float]:
        return vectors([text])[0]


class LlamaIndexModel(BaseEmbedding):
    _texts: list[str] = PrivateAttr(default_factory=list)

    @property
    def texts(self) -> list[str]:
        return self._texts

    def _get_text_embedding(self, text: str) -> list[float]:
        self._texts.append(text)
        return vectors([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return vectors([query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


DOCUMENTS = [Document(text, id=name, metadata={"links": LINKS.get(name, [])}) for name, text in TEXTS.items()]
NODES = [TextNode(text=text, id_=name, metadata={"links": LINKS.get(name, [])}) for name, text in TEXTS.items()]


class Film(BaseRetriever):
    def _retrieve(self, query_bundle):
        return [NodeWithScore(node=NODES[0])]


def of_langchain(component, asynchronous):
    if isinstance(component, langchain_ext.PromptRankRerank):
        asked = (DOCUMENTS, QUESTION)
        found = (
            asyncio.run(component.acompress_documents(*asked)) if asynchronous else component.compress_documents(*asked)
        )
    else:
        found = asyncio.run(component.ainvoke(QUESTION)) if asynchronous else component.invoke(QUESTION)
    return [(document.id, document.metadata["relevance_score"]) for document in found]


def of_llama_index(component, asynchronous):
    if isinstance(component, llama_index_ext.PromptRankRerank):
        nodes = [NodeWithScore(node=node) for node in NODES]
        asked = {"nodes": nodes, "query_str": QUESTION}
        ask = component.apostprocess_nodes if asynchronous else component.postprocess_nodes
    else:
        asked, ask = {"str_or_query_bundle": QUESTION}, component.aretrieve if asynchronous else component.retrieve
    found = asyncio.run(ask(**asked)) if asynchronous else ask(**asked)
    return [(item.node.node_id, item.score) for item in found]


HOSTS = {
    "langchain": (langchain_ext, LangChainModel, of_langchain),
    "llama_index": (llama_index_ext, LlamaIndexModel, of_llama_index),
}


def retriever(host, **fields):
    if host is langchain_ext:
        return build(langchain_ext.PromptRankRetriever, source=lambda _: DOCUMENTS[:1], documents=DOCUMENTS, **fields)
    return build(llama_index_ext.PromptRankRetriever, source=Film(), documents=NODES, **fields)


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("kind", ["rerank", "retrieve"])
def test_what_a_path_leads_to_is_chosen_by_meaning_each_text_embedded_once(name, kind):
    host, model, ask = HOSTS[name]
    embed = model()
    fields = {"branch": 1, "pairs": 0, "top_n": 2, "links": ("metadata",)}
    made = partial(build, host.PromptRankRerank) if kind == "rerank" else partial(retriever, host)
    component = made(embed=embed, **fields)
    first = ask(component, asynchronous=False)
    assert {found for found, _ in first} == {"film", "holm"}
    assert ask(component, asynchronous=True) == first
    assert sorted(embed.texts) == sorted(TEXTS.values())
    assert ask(made(embed=vectors, **fields), asynchronous=False) == first  # a function is a model, too
    assert {found for found, _ in ask(made(**fields), asynchronous=False)} == {"film", "aunt"}


@pytest.mark.parametrize("name", HOSTS)
def test_scores_are_those_of_the_core(name):
    host, model, ask = HOSTS[name]
    passages = [Passage(text, id=name, links=tuple(LINKS.get(name, ()))) for name, text in TEXTS.items()]
    expected = PathRerank(PromptRank(), embed=vectors).rank(QUESTION, passages)
    found = ask(host.PromptRankRerank(embed=model(), top_n=None), asynchronous=False)
    assert [found_id for found_id, _ in found] == [item.passage.id for item in expected]
    assert [score for _, score in found] == pytest.approx([item.score for item in expected])


@pytest.mark.parametrize("name", HOSTS)
def test_an_embedding_model_is_no_part_of_a_configuration_and_is_kept_by_copies(name):
    host, model, ask = HOSTS[name]
    reranker = host.PromptRankRerank(embed=model(), top_n=2)
    assert "embed" not in (reranker.model_dump() if host is langchain_ext else reranker.to_dict())
    copied = reranker.model_copy(update={"top_n": 1})
    assert ask(copied, asynchronous=False) == ask(reranker, asynchronous=False)[:1]


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("wrong", [5, "openai"])
def test_what_embeds_nothing_is_refused(name, wrong):
    host, *_ = HOSTS[name]
    with pytest.raises((InvalidInput, ValueError), match="embed"):
        host.PromptRankRerank(embed=wrong)
    with pytest.raises((InvalidInput, ValueError), match="embed"):
        retriever(host, embed=wrong)
