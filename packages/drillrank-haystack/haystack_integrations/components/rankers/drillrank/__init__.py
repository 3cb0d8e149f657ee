"""drillrank for Haystack: `from haystack_integrations.components.rankers.drillrank import DrillrankRanker`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict

from drillrank import UPR, Passage

__all__ = ["DrillrankRanker"]


@component
class DrillrankRanker:
    """Rank documents by the likelihood of the query, given the document (UPR).

    The default model is a unigram model, which is part of drillrank and needs neither torch nor a download. If all
    documents have a score, it counts as the prior of the retriever.

    Usage:
        ranker = DrillrankRanker(top_k=5)
        best = ranker.run("Who audits the accounts?", documents)["documents"]

    Args:
        model: Specification of the language model, such as "unigram" or "hf:google/flan-t5-small".
        top_k: Maximum number of documents; None for all.
        title_key: Key of the metadata with a document's title; None if there are no titles.
    """

    def __init__(self, model: str = "unigram", top_k: int | None = 10, title_key: str | None = None) -> None:
        self.model = model
        self.top_k = top_k
        self.title_key = title_key
        self._upr = UPR(model)

    def to_dict(self) -> dict[str, Any]:
        """Serialize the component."""
        return default_to_dict(self, model=self.model, top_k=self.top_k, title_key=self.title_key)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> DrillrankRanker:
        """Create the component from a serialized one."""
        return default_from_dict(cls, data)

    @component.output_types(documents=list[Document])
    def run(self, query: str, documents: list[Document], top_k: int | None = None) -> dict[str, list[Document]]:
        """Return copies of the documents, best first, with the mean log-likelihood of the query as their score.

        Documents without text come last and have no score.

        Args:
            query: The query.
            documents: Documents to rank.
            top_k: Maximum number of documents; that of the component by default.
        """
        limit = self.top_k if top_k is None else top_k
        with_text = [document for document in documents if document.content]
        passages = [
            Passage(document.content, id=str(index), title=str(document.meta.get(self.title_key) or ""))
            for index, document in enumerate(with_text)
        ]
        scores = [document.score for document in with_text]
        ranking = self._upr.rank(query, passages, scores=None if None in scores else scores) if passages else []
        ranked = [replace(with_text[int(item.passage.id)], score=item.score) for item in ranking]
        without_text = [replace(document, score=None) for document in documents if not document.content]
        return {"documents": [*ranked, *without_text][:limit]}
