"""PromptRank as a LangChain document compressor."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.callbacks import Callbacks
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables.config import ensure_config, set_config_context
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore
from pydantic import Field, InstanceOf

from drillrank import Passage
from drillrank.hosts.reranking import OfPaths
from drillrank.multihop.path_rerank import LINKS_IN_TEXTS, TextLinkName
from drillrank.rerank.prior import Prior
from drillrank.vectors import Embed
from langchain_ext._documents import document_names, passage_of
from langchain_ext._embedding import embedding_of
from langchain_ext._filters import Filter, Guard
from langchain_ext._rerank import LikelihoodCompressor
from langchain_ext._retriever import Retriever
from langchain_ext.promptrank_documents import DocumentPaths
from langchain_ext.settings import PromptRankRerankSettings


class PromptRankRerank(LikelihoodCompressor, OfPaths):
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
        embed: An embedding model, or a function from texts to vectors: meaning then counts, too.
        prior: As for `UPRRerank`.
        score: As for `UPRRerank`.
        explain: Whether results say why they stand where they stand.
        model_options: Options of the language model.
        settings: What is rarely touched: `langchain_ext.settings.PromptRankRerankSettings`. Its `instructions`,
            `ensemble` and `temperature` are what `tune` finds.

    `docstore`, `retriever`, `filter` and `embed` are no part of the serialised configuration. Inside a run every hop
    dispatches the custom event `promptrank_hop`.

    >>> from langchain_core.documents import Document
    >>> turing = Document(page_content="Alan Turing was born in Maida Vale.", metadata={"title": "Alan Turing"})
    >>> vale = Document(page_content="It is a district of London.", metadata={"title": "Maida Vale"})
    >>> london = Document(page_content="London is the capital of England.", metadata={"title": "London"})
    >>> question = "Which London district was Turing born in?"
    >>> ranking = PromptRankRerank().compress_documents([london, vale, turing], question)
    >>> [document.metadata["title"] for document in ranking]
    ['Alan Turing', 'Maida Vale', 'London']
    """

    links: tuple[TextLinkName, ...] = Field(default=LINKS_IN_TEXTS, description="What links a document to others.")
    prior: Prior | None = Field(default=None, description="What documents' scores say, as for UPRRerank.")
    docstore: InstanceOf[BaseStore] | InstanceOf[VectorStore] | None = Field(  # type: ignore[type-arg]
        default=None, exclude=True, description="Knows linked documents by id."
    )
    retriever: Retriever | None = Field(default=None, exclude=True, description="Finds more documents for each path.")
    filter: Filter | None = Field(default=None, exclude=True, description="Which documents may be seen.")
    embed: InstanceOf[Embeddings] | Embed | None = Field(
        default=None, exclude=True, description="An embedding model, or a function from texts to vectors."
    )
    settings: InstanceOf[PromptRankRerankSettings] = Field(
        default=PromptRankRerankSettings(), description="What is rarely touched."
    )

    def _prepare(self) -> None:
        Guard(self.filter)  # says now what is wrong with it
        super()._prepare()

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
        [name] = document_names([document])
        return passage_of(document, name, self.settings.title_key, self.settings.metadata_fields)

    def _embedding(self) -> Embed | None:
        return embedding_of(self.embed)

    def _host(self) -> DocumentPaths:
        guard = Guard(self.filter, self.retriever, ensure_config())
        settings = self.settings
        return DocumentPaths(guard, self.retriever, self.docstore, None, settings.title_key, settings.metadata_fields)
