"""What all rerankers share: fields, documents in and out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import Runnable, RunnableLambda
from pydantic import ConfigDict, Field, PrivateAttr

from drillrank import LanguageModel, Passage, Ranked, load_language_model
from drillrank.hosts.notes import noted
from drillrank.rerank.scale import ScoreScale, selected
from langchain_ext._component import Component


class LikelihoodCompressor(Component, BaseDocumentCompressor):
    """Base of the rerankers: a subclass says how passages are ranked.

    Documents come back as copies, best first, with the score in their metadata, and `drillrank_cut_tokens` where the
    model did not read all of one; the given ones are left alone.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", protected_namespaces=())

    model: str = Field(default="unigram", description="Specification of the language model.")
    model_options: dict[str, Any] = Field(default_factory=dict, description="Options of the language model.")
    top_n: int | None = Field(default=3, gt=0, description="Documents to keep; None keeps all.")
    score: ScoreScale = Field(
        default="log_likelihood",
        description='Mean log-likelihood of the question, its exponential ("probability"), or the posterior over all '
        'candidates ("softmax").',
    )
    score_threshold: float | None = Field(default=None, description="Keep documents whose score is at least this.")
    score_key: str = Field(default="relevance_score", description="Metadata key of the score.")
    title_key: str = Field(default="title", description="Metadata key of the document's title.")
    metadata_fields: tuple[str, ...] = Field(default=(), description="Metadata keys that the model reads, too.")

    _language_model: LanguageModel = PrivateAttr()

    def __init__(self, model: str | LanguageModel = "unigram", **fields: Any) -> None:
        language_model = load_language_model(model, **fields.pop("model_options", {}))
        fields |= {"model": language_model.spec, "model_options": language_model.options}
        super().__init__(**fields)
        self._language_model = language_model

    @abstractmethod
    def _rank(self, query: str, passages: list[Passage]) -> list[Ranked[Passage]]:
        """Rank all passages, by mean log-likelihood."""

    def _passage(self, document: Document, position: int) -> Passage:
        described = [f"{key}: {document.metadata[key]}" for key in self.metadata_fields if key in document.metadata]
        return Passage(
            "\n".join([*described, document.page_content]),
            id=document.id or f"document-{position}",
            title=str(document.metadata.get(self.title_key) or ""),
        )

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Rerank documents; `callbacks` are those of the run that this belongs to, for what is called below.

        Raises:
            InvalidInput: the query is blank.
        """
        documents = list(documents)
        if not documents:
            return []
        ranking = self._rank(query, [self._passage(document, i) for i, document in enumerate(documents)])
        kept = selected(ranking, scale=self.score, threshold=self.score_threshold, top_n=self.top_n)
        return [self._scored(self._before(documents, item), item) for item in kept]

    def _before(self, documents: list[Document], item: Ranked[Passage]) -> Document:
        """What a passage stands for: a given document, or another one that the ranking reached."""
        reached: Document | None = item.details.get("reached")
        return documents[item.details["position"]] if reached is None else reached

    def _scored(self, document: Document, item: Ranked[Passage]) -> Document:
        return document.model_copy(
            update={"metadata": noted(document.metadata, item.details) | {self.score_key: item.score}}
        )

    def as_runnable(self) -> Runnable[dict[str, Any], list[Document]]:
        """This reranker as a Runnable from `{"query": str, "documents": [Document]}` to documents."""

        def rerank(given: dict[str, Any]) -> list[Document]:
            return self.compress_documents(given["documents"], given["query"])

        return RunnableLambda(rerank, name=type(self).__name__)
