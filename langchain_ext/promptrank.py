"""PromptRank as a LangChain document compressor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from langchain_core.callbacks import Callbacks
from langchain_core.documents import Document
from langchain_core.runnables.config import ensure_config, set_config_context
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore
from pydantic import BaseModel, Field, InstanceOf, PrivateAttr

from drillrank import Passage, PromptRank, Ranked
from drillrank.hosts.paths import LinkedRecordSettings
from drillrank.multihop.path_rerank import LINKS_IN_TEXTS, LinkName, PathRerank, TextLinkName, named_links
from drillrank.multihop.path_settings import link_prior_was_prior
from drillrank.multihop.record_names import GivenPassages, RecordNames
from drillrank.rerank.demonstrations import Demonstration
from drillrank.rerank.first_stage import RetrievalScores
from langchain_ext._documents import document_names
from langchain_ext._filters import Filter, Guard
from langchain_ext._rerank import LikelihoodCompressor
from langchain_ext._retriever import Retriever
from langchain_ext.promptrank_documents import DocumentSource


class PathFields(BaseModel):
    """What components that search paths have beside settings."""

    docstore: InstanceOf[BaseStore] | InstanceOf[VectorStore] | None = Field(  # type: ignore[type-arg]
        default=None, exclude=True, description="Knows linked documents by id."
    )
    filter: Filter | None = Field(default=None, exclude=True, description="Which documents may be seen.")
    demonstrations: tuple[Demonstration, ...] = Field(
        default=(), description="Questions with their gold paths, shown to a neural model before each path."
    )


@link_prior_was_prior
class PromptRankRerank(PathFields, LikelihoodCompressor, LinkedRecordSettings):
    """Reranks documents by the best path of linked documents among them, and beyond them if told where.

    Args:
        model: A `load_language_model` specification, or a ready language model.
        top_n: Documents to keep, 3 by default as in LangChain's own rerankers; None keeps all.
        links: What links a document to others: `"metadata"` (ids that its metadata lists under `links_key`),
            `"hyperlinks"` (Markdown and HTML, to the addresses in the metadata), `"titles"` (its text mentions another
            document's title, metadata `title_key`), `"names"` (they mention the same name).
        docstore: Linked documents that were not retrieved are fetched from here by id, and may enter the result: a
            store of documents by key, or a vector store that knows `get_by_ids`. There is no default, as a reranker is
            not told where its documents come from.
        retriever: Each path that is followed leads to three more documents, those that this retriever finds with the
            question and the path's last document as its query; for texts without links.
        filter: Metadata values and operators, as vector stores take them, or a function from a document to True or
            False: no other document is read, whether it is given, fetched over a link or retrieved. What is fetched
            over links obeys the filter of `retriever`, too.

    The other fields: those of `UPRRerank` but for its template, `demonstrations`, and the settings below
    (`instructions`, `ensemble` and `temperature` are what `tune` finds). With a `prior` the documents' scores or order
    count, as for `UPRRerank`. `docstore`, `retriever` and `filter` are no part of the serialised configuration. Inside
    a run every hop dispatches the custom event `promptrank_hop`.

    >>> from langchain_core.documents import Document
    >>> turing = Document(page_content="Alan Turing was born in Maida Vale.", metadata={"title": "Alan Turing"})
    >>> vale = Document(page_content="It is a district of London.", metadata={"title": "Maida Vale"})
    >>> london = Document(page_content="London is the capital of England.", metadata={"title": "London"})
    >>> question = "Which London district was Turing born in?"
    >>> ranking = PromptRankRerank().compress_documents([london, vale, turing], question)
    >>> [document.metadata["title"] for document in ranking]
    ['Maida Vale', 'Alan Turing', 'London']
    """

    links: tuple[TextLinkName, ...] = Field(default=LINKS_IN_TEXTS, description="What links a document to others.")
    retriever: Retriever | None = Field(default=None, exclude=True, description="Finds more documents for each path.")

    _prompt_rank: PromptRank = PrivateAttr()

    def _prepare(self) -> None:
        Guard(self.filter)  # says now what is wrong with it
        self._prompt_rank = PromptRank.configured(self, self._language_model, demonstrations=self.demonstrations)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Rerank documents; `callbacks` are told of the hops and of what the retriever does.

        Raises:
            InvalidInput: the query is blank, or the retriever has a filter that cannot be checked on linked documents.
        """
        documents = Guard(self.filter).kept(documents)
        if callbacks is None:
            return super().compress_documents(documents, query)
        with set_config_context(ensure_config({"callbacks": callbacks})) as context:
            return context.run(super().compress_documents, documents, query)

    def _passage(self, document: Document, position: int) -> Passage:
        return self._named(document, *document_names([document]))

    def _named(self, document: Document, name: str) -> Passage:
        return replace(super()._passage(document, 0), id=name, metadata=document.metadata)

    def _rank(self, query: str, passages: list[Passage], scores: RetrievalScores) -> list[Ranked[Passage]]:
        guard = Guard(self.filter, self.retriever, ensure_config())
        known = RecordNames(GivenPassages(passages))
        source = DocumentSource(self._named, guard, known, self.retriever, self.docstore)
        search = self.path_rerank()
        counted = scores if search.counts_first_stage else None
        ranking = search.rank(query, passages, scores=counted, source=source, on_hop=partial(source.tell, query))
        for item in ranking:
            if item.details["position"] >= len(passages):
                item.details["reached"] = source.documents[item.passage.id]
        return ranking

    def path_rerank(self, corpus: Sequence[Passage] = ()) -> PathRerank:
        """The search with these settings."""
        names: tuple[LinkName, ...] = (*self.links, "retrieval") if self.retriever else self.links
        links = named_links(names, self.links_key)
        return PathRerank.configured(self, self._prompt_rank, links=links, corpus=corpus)
