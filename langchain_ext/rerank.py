"""Rerankers as LangChain document compressors."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from numbers import Real
from typing import Any, Literal

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore
from pydantic import Field

from drillrank import BRMGR, UPR, LanguageModel, MonoT5, Passage, Relevance
from drillrank.errors import InvalidInput
from drillrank.hosts.metadata import notes, prefixed, reasons
from drillrank.hosts.paths import path_rerank, rank_linked
from drillrank.hosts.reranking import RerankerFields
from drillrank.llm import Requests, arun, run
from drillrank.multihop.path_rerank import LINKS_IN_TEXTS, LinkName, PathRerank, TextLinkName
from drillrank.passages import Ranking
from drillrank.rerank.base import LikelihoodFormula, RetrievalScores
from drillrank.rerank.prior import Prior
from drillrank.rerank.upr import UPR_PROMPT
from drillrank.vectors import Embed
from langchain_ext._filters import DocumentFilter, Filter
from langchain_ext._llm import embedding_of
from langchain_ext._records import document_names, passage_of
from langchain_ext._retriever import Loadable, Retriever, WithSource, with_score
from langchain_ext.promptrank_documents import DocumentPaths
from langchain_ext.settings import (
    BRMGRRerankSettings,
    PromptRankRerankSettings,
    RelevanceRerankSettings,
    RerankSettings,
)


class LikelihoodCompressor(RerankerFields, Loadable, BaseDocumentCompressor):
    """Base of the rerankers.

    Documents come back as copies, best first, with the score in their metadata, and `drillrank_cut_tokens` where the
    model did not read all of one; the given ones are left alone.
    """

    settings: RerankSettings | dict[str, Any] = Field(default=RerankSettings(), description="What is rarely touched.")

    def _passage(self, document: Document, position: int) -> Passage:
        settings = self._settings
        name = document.id or f"document-{position}"
        return passage_of(document, name, settings.title_key, settings.metadata_fields)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Rerank documents, as a run of this component's name; `callbacks` are those of the run that it belongs to.

        Raises:
            InvalidInput: the query is blank, or a source has a filter that cannot be checked on linked documents.
        """
        given, config = self._given(documents, query, callbacks)
        return self.as_runnable().invoke(given, config) if given["documents"] else []

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """As `compress_documents`, without blocking the event loop."""
        given, config = self._given(documents, query, callbacks)
        return await self.as_runnable().ainvoke(given, config) if given["documents"] else []

    def _given(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None
    ) -> tuple[dict[str, Any], RunnableConfig]:
        """The input of a run, and its configuration: in traces it is told what is reranked, and how."""
        documents = list(documents)
        model = self.model.spec if isinstance(self.model, LanguageModel) else self.model
        told = {"candidates": len(documents), "top_n": self.top_n, "model": model}
        metadata = {prefixed(name): value for name, value in told.items()}
        return {"query": query, "documents": documents}, {"callbacks": callbacks, "metadata": metadata}

    def _compressed(self, documents: list[Document], query: str, config: RunnableConfig) -> list[Document]:
        passages = [self._passage(document, position) for position, document in enumerate(documents)]
        return self._best(documents, self._rank(query, passages, self._scores(documents)))

    async def _acompressed(self, documents: list[Document], query: str, config: RunnableConfig) -> list[Document]:
        return await self.language_model.run_in_worker(self._compressed, documents, query, config)

    def _scores(self, documents: Sequence[Document]) -> RetrievalScores:
        """What documents bring under the key under which they leave; their order as evidence where none does."""
        key = self._settings.score_key
        found: list[Any] = [None if key is None else document.metadata.get(key) for document in documents]
        scores = [float(one) if _is_score(one) else None for one in found]
        by_order = getattr(self, "prior", None) == "retrieval" and all(score is None for score in scores)
        return [-float(place) for place in range(len(documents))] if by_order else scores

    def _best(self, documents: Sequence[Document], ranking: Ranking[Passage]) -> list[Document]:
        """What is kept, with the new scores; `details["reached"]` is a document that was not given."""
        key = self._settings.score_key
        best = []
        for item, why in self._selected(ranking):
            reached = item.details.get("reached")
            document = documents[item.details["position"]] if reached is None else reached
            metadata = with_score(document.metadata, key, item.score, notes(item.details) | reasons(why))
            best.append(document.model_copy(update={"metadata": metadata}))
        return best

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
            documents, query = _documents_and_query(given)
            return self._compressed(documents, query, config) if documents else []

        async def arerank(given: dict[str, Any], config: RunnableConfig) -> list[Document]:
            documents, query = _documents_and_query(given)
            return await self._acompressed(documents, query, config) if documents else []

        step: Runnable[Any, list[Document]] = RunnableLambda(rerank, afunc=arerank, name=type(self).__name__)
        if retriever is None:
            return step
        given: Runnable[Any, Any] = RunnableParallel(query=RunnablePassthrough(), documents=retriever)
        return given | step


class UPRRerank(LikelihoodCompressor):
    """Reranks documents by the likelihood of the question, given the document.

    Args:
        model: A `load_language_model` specification, or a ready language model.
        top_n: Documents to keep, 3 by default; None keeps all.
        prior: What the first stage says before the texts are read (see `drillrank.UPR`). LangChain's retrievers keep
            their scores to themselves: `"retrieval"` takes the ranks by the scores that documents bring in their
            metadata under `score_key`, and where none does, or the key is None, their order, so that documents in an
            arbitrary order are ranked with None. `"cosine"` takes such
            scores as the cosines of a sentence encoder, and has nothing to go by where there are none. None leaves
            all that alone.
        score: `"log_likelihood"`, at most 0; `"probability"`; or `"softmax"`.
        explain: Whether results say why they stand where they stand.
        template: Prompt with `{text}` and, if wanted, `{title}` before it.
        max_passage_tokens: Tokens that a passage may keep; None leaves it to the model's own limit.
        prior_weight: How much the prior counts.
        read: With a sum of experts, how many the whole sum reads, as for `drillrank.UPR`; all for `score="softmax"`.
        preset: Score as published code does, as for `drillrank.UPR`.
        model_options: Options of the language model.
        settings: What is rarely touched: `langchain_ext.settings.RerankSettings`.

    Raises:
        InvalidInput: the query is blank, the template is malformed, or there is a prior and a document's score is no
            finite number or no cosine.

    >>> from langchain_core.documents import Document
    >>> documents = [Document(page_content=text) for text in ("Basel lies on the Rhine.", "Emma is a novel.")]
    >>> UPRRerank(top_n=1).compress_documents(documents, "Which novel?")[0].page_content
    'Emma is a novel.'
    """

    prior: Prior | None = Field(default="retrieval", description="What documents' scores, or their order, say.")
    template: str = Field(default=UPR_PROMPT, description="Prompt with `{text}` and, if wanted, `{title}` before it.")
    max_passage_tokens: int | None = Field(default=None, description="Tokens that a passage may keep.")
    prior_weight: float = Field(default=1.0, description="How much the prior counts.")
    read: int | Literal["all"] | None = Field(default=None, description="How many the whole of a sum reads.")
    preset: str | LikelihoodFormula | None = Field(default=None, description="Score as published code does.")

    def _make(self) -> UPR:
        return UPR(
            self.language_model,
            template=self.template,
            max_passage_tokens=self.max_passage_tokens,
            prior=self.prior,
            prior_weight=self.prior_weight,
            read="all" if self.score == "softmax" else self.read,
            preset=self.preset,
        )


class RelevanceRerank(LikelihoodCompressor):
    """Reranks documents by the probability that a language model calls them relevant, asked as it was trained to be.

    Args:
        model: A `load_language_model` specification, or a ready language model; one that tells the probabilities of
            its next token.
        top_n: Documents to keep, 3 by default; None keeps all.
        score: `"log_likelihood"`, the score of the transform: the logarithm of P(relevant) or its log-odds;
            `"probability"`, P(relevant); or `"softmax"`, each one's share of the sum of all P(relevant).
        explain: Whether results say why they stand where they stand.
        preset: How published models are asked, as for `drillrank.Relevance`.
        template: Prompt with `{query}`, `{text}` and, if wanted, `{instruction}`; None is the preset's.
        instruction: What the model is told of the task, where the prompt has a place for it; None is the preset's.
        max_passage_tokens: Tokens that a passage may keep; None leaves it to the model's own limit.
        model_options: Options of the language model.
        settings: What is rarely touched: `langchain_ext.settings.RelevanceRerankSettings`.

    Raises:
        LacksCapability: the model does not tell the probabilities of its next token, as the unigram model.
        InvalidInput: the query is blank, or a setting cannot be used.

    >>> reranker = RelevanceRerank("hf:Qwen/Qwen3-Reranker-0.6B", preset="qwen3-reranker", score="probability")
    >>> reranker.compress_documents([], "Which novel?")  # the model is loaded for the first document
    []
    """

    model: LanguageModel | str = Field(kw_only=False, description="A neural model, or its specification.")
    preset: str = Field(default="yes-no", description="How published models are asked.")
    template: str | None = Field(default=None, description="Prompt with `{query}`, `{text}` and `{instruction}`.")
    instruction: str | None = Field(default=None, description="What the model is told of the task.")
    max_passage_tokens: int | None = Field(default=None, description="Tokens that a passage may keep.")
    settings: RelevanceRerankSettings | dict[str, Any] = Field(
        default=RelevanceRerankSettings(), description="What is rarely touched."
    )

    def _make(self) -> Relevance:
        return Relevance(
            self.language_model,
            preset=self.preset,
            template=self.template,
            instruction=self.instruction,
            max_passage_tokens=self.max_passage_tokens,
            settings=self._settings,
        )


class MonoT5Rerank(LikelihoodCompressor):
    """Reranks documents by the probability that a language model calls them relevant to the question.

    Args:
        model: A `load_language_model` specification, or a ready language model; one that reads instructions.
        top_n: Documents to keep, 3 by default; None keeps all.
        score: `"log_likelihood"`, the logarithm of P(relevant), at most 0; `"probability"`, P(relevant) itself; or
            `"softmax"`, each one's share of the sum of all P(relevant).
        explain: Whether results say why they stand where they stand.
        max_passage_tokens: Tokens that a passage may keep; None leaves it to the model's own limit.
        model_options: Options of the language model.
        settings: What is rarely touched: `langchain_ext.settings.RerankSettings`.

    Raises:
        InvalidInput: the query is blank, or the model reads no instructions, as the unigram model.

    >>> reranker = MonoT5Rerank("hf:castorini/monot5-base-msmarco-10k", score="probability")
    >>> reranker.compress_documents([], "Which novel?")  # the model is loaded for the first document
    []
    """

    model: LanguageModel | str = Field(kw_only=False, description="A neural model, or its specification.")
    max_passage_tokens: int | None = Field(default=None, description="Tokens that a passage may keep.")

    def _make(self) -> Relevance:
        return MonoT5(self.language_model, max_passage_tokens=self.max_passage_tokens)


class BRMGRRerank(LikelihoodCompressor):
    """Merges retrieved documents with documents that an LLM wrote: each kind ranked its own way, then paired by rank.

    A document whose metadata says `"generated"` under `origin_key` was written by an LLM; all others were retrieved.

    Args:
        model: A `load_language_model` specification, or a ready language model.
        top_n: Documents to keep, 3 by default; None keeps all.
        prior: As for `UPRRerank`; it counts for retrieved documents alone.
        score: `"log_likelihood"`, for both documents of a pair the sum of their mean log-likelihoods; `"probability"`,
            its exponential; or `"softmax"`.
        explain: Whether results say why they stand where they stand.
        guard: Drop generated documents that no retrieved one supports: True for support below 0.9, or a limit of your
            own from 0 to 1.
        generated_share: The largest share of generated documents among those returned, from 0 to 1.
        model_options: Options of the language model.
        settings: What is rarely touched: `langchain_ext.settings.BRMGRRerankSettings`.

    Raises:
        InvalidInput: the query is blank, or a template is malformed.

    >>> found = ["Emma is a novel that Jane Austen wrote.", "Basel lies on the Rhine."]
    >>> wrote = ["Emma was written by Charles Dickens.", "Jane Austen wrote the novel Emma."]
    >>> documents = [Document(page_content=text) for text in found]
    >>> documents += [Document(page_content=text, metadata={"drillrank_origin": "generated"}) for text in wrote]
    >>> merged = BRMGRRerank(guard=True, top_n=2).compress_documents(documents, "Who wrote Emma?")
    >>> [document.page_content for document in merged]
    ['Jane Austen wrote the novel Emma.', 'Emma is a novel that Jane Austen wrote.']
    """

    prior: Prior | None = Field(default="retrieval", description="What documents' scores say, as for UPRRerank.")
    guard: bool | float = Field(default=False, description="Drop what an LLM wrote and nothing retrieved supports.")
    generated_share: float = Field(default=1.0, description="Largest share of what an LLM wrote among the results.")
    settings: BRMGRRerankSettings | dict[str, Any] = Field(
        default=BRMGRRerankSettings(), description="What is rarely touched."
    )

    def _passage(self, document: Document, position: int) -> Passage:
        settings = self._settings
        generated = document.metadata.get(settings.origin_key) == "generated"
        passage = super()._passage(document, position)
        text = document.page_content if generated else passage.text  # the LLM did not write the metadata
        return replace(passage, text=text, metadata={"generated": generated})

    def _make(self) -> BRMGR:
        return BRMGR(
            self.language_model,
            prior=self.prior,
            guard=self.guard,
            generated_share=self.generated_share,
            settings=self._settings,
        )

    def _rank(self, query: str, passages: list[Passage], scores: RetrievalScores) -> Ranking[Passage]:
        generated = [passage.metadata["generated"] for passage in passages]
        counted = scores if self.prior else None
        return self.method.rank_mixed(query, passages, generated, self.top_n, scores=counted)  # type: ignore[no-any-return]


class PromptRankRerank(WithSource, LikelihoodCompressor):
    """Reranks documents by the best path of linked documents among them, and beyond them if told where.

    Args:
        model: A `load_language_model` specification, or a ready language model.
        top_n: Documents to keep, 3 by default; None keeps all.
        links: What links a document to others: `"metadata"` (ids that its metadata lists under `links_key`),
            `"hyperlinks"` (Markdown and HTML, to the addresses in the metadata), `"titles"` (its text mentions another
            document's title, metadata `title_key`), `"names"` (they mention the same name).
        store: Linked documents that were not retrieved are fetched from here by id, and may enter the result: a
            store of documents by key, or a vector store that knows `get_by_ids`. There is no default, as a reranker is
            not told where its documents come from.
        source: Each path that is followed leads to three more documents, those that this retriever finds with the
            question and the path's last document as its query; for texts without links.
        filters: Metadata values and operators, as vector stores take them, or a function from a document to True or
            False: no other document is read, whether it is given, fetched over a link or retrieved. What is fetched
            over links obeys the filters of `source`, too.
        embed: An embedding model, or a function from texts to vectors: meaning then counts, too.
        prior: As for `UPRRerank`.
        score: As for `UPRRerank`.
        explain: Whether results say why they stand where they stand.
        model_options: Options of the language model.
        settings: What is rarely touched: `langchain_ext.settings.PromptRankRerankSettings`. Its `instructions`,
            `ensemble` and `temperature` are what `tune` finds.

    `store`, `source`, `filters` and `embed` are no part of the serialised configuration. Every hop dispatches
    the custom event `promptrank_hop`.

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
    store: BaseStore[str, Document] | VectorStore | None = Field(
        default=None, exclude=True, description="Knows linked documents by id."
    )
    source: Retriever | None = Field(default=None, exclude=True, description="Finds more documents for each path.")
    filters: Filter | None = Field(default=None, exclude=True, description="Which documents may be seen.")
    embed: Embeddings | Embed | None = Field(
        default=None, exclude=True, description="An embedding model, or a function from texts to vectors."
    )
    settings: PromptRankRerankSettings | dict[str, Any] = Field(
        default=PromptRankRerankSettings(), description="What is rarely touched."
    )

    def _make(self) -> PathRerank:
        DocumentFilter(self.filters)  # says what is wrong with it
        settings = self._settings
        links: tuple[LinkName, ...] = self.links if self.source is None else (*self.links, "retrieval")
        prompt_rank = settings.prompt_rank(self.language_model, self.prior)
        return path_rerank(settings, prompt_rank, links, embedding_of(self.embed))

    def _passage(self, document: Document, position: int) -> Passage:
        settings = self._settings
        [name] = document_names([document])
        return passage_of(document, name, settings.title_key, settings.metadata_fields)

    def _compressed(self, documents: list[Document], query: str, config: RunnableConfig) -> list[Document]:
        documents = DocumentFilter(self.filters).filter_results(documents)
        return self._best(documents, run(self._requests(documents, query, config))) if documents else []

    async def _acompressed(self, documents: list[Document], query: str, config: RunnableConfig) -> list[Document]:
        documents = await asyncio.to_thread(DocumentFilter(self.filters).filter_results, documents)
        if not documents:
            return []
        ranking = await arun(self._requests(documents, query, config))
        return await asyncio.to_thread(self._best, documents, ranking)

    def _requests(
        self, documents: Sequence[Document], query: str, config: RunnableConfig
    ) -> Requests[Ranking[Passage]]:
        settings = self._settings
        guard = DocumentFilter(self.filters, self.source, config)
        host = DocumentPaths(guard, self.source, self.store, config, settings.title_key, settings.metadata_fields)
        passages = [self._passage(document, position) for position, document in enumerate(documents)]
        return rank_linked(self.method, query, passages, self._scores(documents), host)


def _is_score(stored: object) -> bool:
    """Whether metadata, which anybody may have stored, hold a finite number."""
    return not isinstance(stored, bool) and isinstance(stored, Real) and isfinite(stored)


def _documents_and_query(given: object) -> tuple[list[Document], str]:
    if isinstance(given, Mapping) and {"query", "documents"} <= given.keys():
        return list(given["documents"]), given["query"]
    raise InvalidInput(
        f'A reranker takes {{"query": ..., "documents": [...]}}, not this {type(given).__name__}. Behind a retriever '
        "it has no query: write reranker.as_runnable(retriever) for retriever | reranker."
    )
