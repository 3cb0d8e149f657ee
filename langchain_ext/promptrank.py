"""PromptRank as a LangChain document compressor."""

from __future__ import annotations

from dataclasses import replace

from langchain_core.documents import Document
from pydantic import Field

from drillrank import Passage, PromptRank, Ranked
from drillrank.multihop.links import links_from_metadata
from drillrank.multihop.rerank import PathRerank
from drillrank.prompts import PROMPTRANK_INSTRUCTIONS
from drillrank.rerank.demonstrations import Demonstration
from drillrank.rerank.settings import Ensemble
from langchain_ext._rerank import LikelihoodCompressor


class PromptRankRerank(LikelihoodCompressor):
    """Reranks documents by the best path of linked documents among them (multi-hop questions).

    A document links to the document ids that its metadata lists under `links_key`, and to documents whose title
    (metadata `title_key`) its text mentions.

    Args:
        model: A `load_language_model` specification, or a ready language model.
        top_n: Documents to keep, 3 by default as in LangChain's own rerankers; None keeps all.

    The other fields: those of `UPRRerank` but for its template, and `links_key`, `instructions`,
    `ensemble`, `temperature` (those of `tune`), `demonstrations`, `hops`, `beam`, `branch`.

    >>> from langchain_core.documents import Document
    >>> turing = Document(page_content="Alan Turing was born in Maida Vale.", metadata={"title": "Alan Turing"})
    >>> vale = Document(page_content="It is a district of London.", metadata={"title": "Maida Vale"})
    >>> london = Document(page_content="London is the capital of England.", metadata={"title": "London"})
    >>> question = "Which London district was Turing born in?"
    >>> ranking = PromptRankRerank().compress_documents([london, vale, turing], question)
    >>> [document.metadata["title"] for document in ranking]
    ['Maida Vale', 'Alan Turing', 'London']
    """

    links_key: str = Field(default="links", description="Metadata key with linked ids, a list or comma-separated.")
    instructions: tuple[str, ...] = Field(default=PROMPTRANK_INSTRUCTIONS[:5], description="Prompts that hold {path}.")
    ensemble: Ensemble = Field(default="max", description="How scores under several instructions combine.")
    temperature: float = Field(default=1.0, gt=0, description="Divides the logits before the softmax.")
    demonstrations: tuple[Demonstration, ...] = Field(
        default=(), description="Questions with their gold paths, shown to a neural model before each candidate."
    )
    hops: int = Field(default=2, gt=0, description="Longest path.")
    beam: int = Field(default=5, gt=0, description="Paths extended after each hop.")
    branch: int = Field(default=3, gt=0, description="Links followed from each of them.")

    def _passage(self, document: Document, position: int) -> Passage:
        links = links_from_metadata(document.metadata.get(self.links_key))
        return replace(super()._passage(document, position), links=links)

    def _rank(self, query: str, passages: list[Passage]) -> list[Ranked[Passage]]:
        prompt_rank = PromptRank(
            self._language_model,
            instructions=self.instructions,
            ensemble=self.ensemble,
            temperature=self.temperature,
            demonstrations=self.demonstrations,
        )
        return PathRerank(prompt_rank, hops=self.hops, beam=self.beam, branch=self.branch).rank(query, passages)
