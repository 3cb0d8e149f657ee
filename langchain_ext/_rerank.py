"""What all rerankers share: fields, documents in and out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda, RunnableParallel, RunnablePassthrough
from pydantic import ConfigDict, Field, InstanceOf

from drillrank import Passage, Ranked
from drillrank.errors import InvalidInput
from drillrank.explanation import Explanation
from drillrank.hosts.notes import notes, reasons
from drillrank.hosts.reranking import Reranker
from drillrank.rerank.base import RetrievalScores
from langchain_ext._documents import passage_of
from langchain_ext._retriever import with_score
from langchain_ext.settings import RerankSettings


class LikelihoodCompressor(Reranker, BaseDocumentCompressor):
    """Base of the rerankers.

    Documents come back as copies, best first, with the score in their metadata, and `drillrank_cut_tokens` where the
    model did not read all of one; the given ones are left alone.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", protected_namespaces=())

    top_n: int | None = Field(default=3, gt=0, description="Documents to keep; None keeps all.")
    settings: InstanceOf[RerankSettings] = Field(default=RerankSettings(), description="What is rarely touched.")

    def _passage(self, document: Document, position: int) -> Passage:
        name = document.id or f"document-{position}"
        return passage_of(document, name, self.settings.title_key, self.settings.metadata_fields)

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
        passages = [self._passage(document, i) for i, document in enumerate(documents)]
        kept = self._selected(query, documents, passages, self._retrieval_scores(documents))
        return [self._scored(*one) for one in kept]

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """As `compress_documents`, on a thread."""
        return await self._language_model.run_in_worker(self.compress_documents, documents, query, callbacks)

    def _retrieval_scores(self, documents: Sequence[Document]) -> RetrievalScores:
        """What documents bring under the key under which they leave; their order as evidence where none does."""
        key = self.settings.score_key
        scores = [None if key is None else document.metadata.get(key) for document in documents]
        by_order = getattr(self, "prior", None) == "retrieval" and all(score is None for score in scores)
        return [-float(place) for place in range(len(documents))] if by_order else scores

    def _scored(self, document: Document, item: Ranked[Passage], why: Explanation | None) -> Document:
        told = notes(item.details) | reasons(why)
        metadata = with_score(document.metadata, self.settings.score_key, item.score, told)
        return document.model_copy(update={"metadata": metadata})

    def as_runnable(self, retriever: Runnable[str, list[Document]] | None = None) -> Runnable[Any, list[Document]]:
        """This reranker as a step of a chain.

        Args:
            retriever: Any Runnable from a question to documents. With it the step takes the question: a reranker needs
                it as much as the documents, so it cannot stand behind a retriever and a `|`. Without it the step
                takes `{"query": str, "documents": [Document]}`.

        Raises:
            InvalidInput: when invoked, the input is something else, such as a retriever's documents.

        >>> from langchain_core.runnables import RunnableLambda
        >>> from langchain_ext import UPRRerank
        >>> texts = ["Basel lies on the Rhine.", "Emma is a novel."]
        >>> retriever = RunnableLambda(lambda question: [Document(page_content=text) for text in texts])
        >>> chain = UPRRerank(top_n=1).as_runnable(retriever) | (lambda documents: documents[0].page_content)
        >>> chain.invoke("Which novel?")
        'Emma is a novel.'
        """

        def rerank(given: dict[str, Any], config: RunnableConfig) -> list[Document]:
            return self.compress_documents(*_documents_and_query(given), callbacks=config.get("callbacks"))

        async def arerank(given: dict[str, Any], config: RunnableConfig) -> list[Document]:
            documents, query = _documents_and_query(given)
            return list(await self.acompress_documents(documents, query, callbacks=config.get("callbacks")))

        step: Runnable[Any, list[Document]] = RunnableLambda(rerank, afunc=arerank, name=type(self).__name__)
        if retriever is None:
            return step
        given: Runnable[Any, Any] = RunnableParallel(query=RunnablePassthrough(), documents=retriever)
        return given | step


def _documents_and_query(given: object) -> tuple[list[Document], str]:
    if isinstance(given, Mapping) and {"query", "documents"} <= given.keys():
        return list(given["documents"]), given["query"]
    raise InvalidInput(
        f'A reranker takes {{"query": ..., "documents": [...]}}, not this {type(given).__name__}. Behind a retriever '
        "it has no query: write reranker.as_runnable(retriever) for retriever | reranker."
    )
