"""Rerankers as LangChain document compressors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda, RunnableParallel, RunnablePassthrough
from pydantic import Field

from drillrank import UPR, LanguageModel, Passage, load_language_model
from drillrank.coverage import Coverage
from drillrank.errors import InvalidInput
from drillrank.frameworks.components import (
    BRMGRRerankFields,
    MonoT5Fields,
    RelevanceFields,
    RerankerComponentFields,
    UPRFields,
)
from drillrank.frameworks.constructors import component
from drillrank.frameworks.inputs import clean_question, finite_score
from drillrank.frameworks.metadata import PREFIX, describe_details, describe_explanation
from drillrank.frameworks.sections import select_candidates
from drillrank.likelihood import PrefixEstimate
from drillrank.passages import Ranking
from drillrank.progress import OnProgress
from drillrank.rerank.prior import RetrievalScores
from drillrank.rerank.upr import UPR_PROMPT
from langchain_ext._filters import DocumentFilter
from langchain_ext._records import passage_of
from langchain_ext._retriever import Loadable, with_score
from langchain_ext.settings import BRMGRRerankSettings, RelevanceRerankSettings, RerankSettings


class LikelihoodCompressor(RerankerComponentFields, Loadable, BaseDocumentCompressor):
    """Base class of the rerankers.

    They return copies of the documents, best first, with the score in their metadata, and with `drillrank_cut_tokens`
    if the model did not read all of a document. The views of a section (raw text, keywords, summary) are one candidate:
    the raw document if it is among them, or else the view with the best score or rank.
    """

    settings: RerankSettings | dict[str, Any] = Field(default=RerankSettings(), description="Further settings.")

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Rerank documents in a run with the name of this component. `callbacks` are those of its parent run.

        Raises:
            InvalidInput: The query is blank, or a source has a filter that cannot be checked on linked documents.
        """
        step = RunnableLambda(self._compress, name=type(self).__name__)
        return step.invoke(*self._prepare_run(documents, query, callbacks)) if documents else []

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Rerank documents like `compress_documents`, without blocking the event loop."""
        step = RunnableLambda(self._acompress, name=type(self).__name__)
        return await step.ainvoke(*self._prepare_run(documents, query, callbacks)) if documents else []

    def _prepare_run(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None
    ) -> tuple[dict[str, Any], RunnableConfig]:
        """Return the input and the configuration of a run. Traces show both."""
        model = self.model.spec if isinstance(self.model, LanguageModel) else self.model
        top_n = repr(self.top_n) if isinstance(self.top_n, Coverage) else self.top_n
        counts = {"candidates": len(documents), "top_n": top_n, "model": model}
        metadata = {PREFIX + name: value for name, value in counts.items()}
        return {"query": query, "documents": list(documents)}, {"callbacks": callbacks, "metadata": metadata}

    def _compress(self, inputs: dict[str, Any], config: RunnableConfig) -> list[Document]:
        documents, passages, scores = self._read_input(inputs)
        if not documents:
            return []
        return self._build_results(documents, self._rank(clean_question(inputs["query"]), passages, scores))

    async def _acompress(self, inputs: dict[str, Any], config: RunnableConfig) -> list[Document]:
        return await self.language_model.run_in_worker(self._compress, inputs, config)

    def _read_input(
        self, inputs: dict[str, Any], filter_results: Callable[[Iterable[Document]], list[Document]] = list
    ) -> tuple[list[Document], list[Passage], RetrievalScores]:
        """Return the documents, their passages and their retrieval scores, which are metadata under `score_key`.

        If no document has a score, the prior "retrieval" takes their order.
        """
        if not isinstance(inputs, dict) or not {"query", "documents"} <= inputs.keys():
            raise InvalidInput(
                f'A reranker takes {{"query": ..., "documents": [...]}}, not this {type(inputs).__name__}. '
                "Behind a retriever it has no query: write reranker.as_runnable(retriever) for retriever | reranker."
            )
        permitted = filter_results(DocumentFilter(None).filter_results(inputs["documents"]))
        score_key = self._settings.score_key
        all_scores = [None if score_key is None else finite_score(one.metadata.get(score_key)) for one in permitted]
        candidates = select_candidates([(one.metadata, one.page_content) for one in permitted], all_scores)
        documents = [permitted[candidate.index] for candidate in candidates]
        scores = [all_scores[candidate.best_index] for candidate in candidates]
        passages = [self._passage(document, position) for position, document in enumerate(documents)]
        if getattr(self, "prior", None) == "retrieval" and all(score is None for score in scores):
            return documents, passages, [-float(position) for position in range(len(documents))]
        return documents, passages, scores

    def _passage(self, document: Document, position: int) -> Passage:
        settings = self._settings
        return passage_of(document, document.id or f"document-{position}", settings.title_key, settings.metadata_fields)

    def _build_results(self, documents: Sequence[Document], ranking: Ranking[Passage]) -> list[Document]:
        """Return copies of the best documents. `details["reached"]` is a document that a path search added."""
        results = []
        for item, explanation in self._select_results(ranking):
            reached = item.details.get("reached")
            document = documents[item.details["position"]] if reached is None else reached
            added = describe_details(item.details) | describe_explanation(explanation)
            metadata = with_score(self._own_metadata(document), self._settings.score_key, item.score, added)
            results.append(document.model_copy(update={"metadata": metadata}))
        return results

    def _own_metadata(self, document: Document) -> dict[str, Any]:
        """Return the metadata of a result that do not depend on the ranking."""
        return document.metadata

    def as_runnable(self, retriever: Runnable[str, list[Document]] | None = None) -> Runnable[Any, list[Document]]:
        """Return this reranker as a step of a chain.

        Args:
            retriever: Any Runnable from a question to documents. With a retriever, the step takes the question. A
                reranker needs the question, too, so `retriever | reranker` cannot work. Without a retriever, the step
                takes `{"query": str, "documents": [Document]}`.

        Raises:
            InvalidInput: The step was invoked with another input, such as a retriever's documents.

        >>> from langchain_core.runnables import RunnableLambda
        >>> from langchain_ext import UPRRerank
        >>> texts = ["Basel lies on the Rhine.", "Emma is a novel."]
        >>> retriever = RunnableLambda(lambda question: [Document(page_content=text) for text in texts])
        >>> chain = UPRRerank(top_n=1).as_runnable(retriever) | (lambda documents: documents[0].page_content)
        >>> chain.invoke("Which novel?")
        'Emma is a novel.'
        """
        step = RunnableLambda(self._compress, self._acompress, name=type(self).__name__)
        if retriever is None:
            return step
        retrieve: Runnable[Any, Any] = RunnableParallel(query=RunnablePassthrough(), documents=retriever)
        return RunnableLambda(clean_question) | retrieve | step


class UPRRerank(UPRFields, LikelihoodCompressor):
    """Reranks documents by the likelihood of the question given the document.

    Args:
        model: A `load_language_model` specification, or a language model.
        top_n: Maximum number of results; None returns all documents.
        prior: Prior from the first stage (see `drillrank.UPR`). `"retrieval"` ranks documents by their scores under
            `score_key` in the metadata. LangChain's retrievers usually write none; then the order of the documents
            counts, so use None for documents in an arbitrary order. `"cosine"` reads the scores as cosines of a
            sentence encoder and requires them. None ignores scores and order.
        score: Scale of the new scores: `"log_likelihood"`, at most 0; `"probability"`, its exponential; or
            `"softmax"`, the share among all candidates. For a cut-off on scores, use `"softmax"` or the setting
            `min_share`: likelihoods of a perfect match differ by question, and are small on every scale.
        explain: Explain the rank of each result.
        template: Prompt with `{text}` and optionally `{title}` before it.
        max_passage_tokens: Maximum number of tokens of a passage; None means the model's own limit.
        prior_weight: Weight of the prior.
        read: With a sum of models, number of passages that all of them score, as for `drillrank.UPR`. All passages
            with `score="softmax"`.
        preset: Formula of published code, as for `drillrank.UPR`.
        model_options: Options of the language model.
        settings: Further settings, `langchain_ext.settings.RerankSettings` or a mapping of its fields.

    Raises:
        InvalidInput: The query is blank, the template is malformed, or a score cannot be used for the prior.

    >>> from langchain_core.documents import Document
    >>> documents = [Document(page_content=text) for text in ("Basel lies on the Rhine.", "Emma is a novel.")]
    >>> UPRRerank(top_n=1).compress_documents(documents, "Which novel?")[0].page_content
    'Emma is a novel.'
    """

    def precompute(self, documents: Sequence[Document], on_progress: OnProgress | None = None) -> PrefixEstimate:
        """Compute documents at indexing time, so that a question to them costs its own tokens only.

        Args:
            documents: The documents, with the metadata that they have at the time of the question.
            on_progress: Callback that receives the number of passages done and of all passages.

        Raises:
            LacksCapability: The model has no prefix cache, as in `model_options={"prefix_cache": "1 GB"}`.
            InvalidInput: The documents do not fit into the prefix cache.
        """
        estimate: PrefixEstimate = self.core.precompute(self._list_passages(documents), on_progress)
        return estimate

    def estimate_precompute(self, documents: Sequence[Document]) -> PrefixEstimate:
        """Estimate the bytes that `precompute` keeps and the time that it takes.

        Raises:
            LacksCapability: The model has no prefix cache.
        """
        estimate: PrefixEstimate = self.core.estimate_precompute(self._list_passages(documents))
        return estimate

    def _list_passages(self, documents: Sequence[Document]) -> list[Passage]:
        return self._read_input({"query": "", "documents": documents})[1]


class RelevanceRerank(RelevanceFields, LikelihoodCompressor):
    """Reranks documents by the probability that a language model calls them relevant, with the prompt of its training.

    Args:
        model: A `load_language_model` specification, or a language model. It must compute next-token probabilities, or
            score relevance without a prompt, as cross-encoders (`"ce:<model>"`) and rerank servers
            (`"http://host:port/rerank#<model>"`) do.
        top_n: Maximum number of results; None returns all documents.
        score: Scale of the new scores: `"log_likelihood"`, the logarithm of P(relevant) or its log-odds;
            `"probability"`, P(relevant); or `"softmax"`, the share in the sum of all P(relevant).
        explain: Explain the rank of each result.
        preset: Prompt and answer words of a published model, as for `drillrank.Relevance`.
        template: Prompt with `{query}`, `{text}` and optionally `{instruction}`; None means the preset's.
        instruction: Description of the task, for prompts with `{instruction}`; None means the preset's.
        max_passage_tokens: Maximum number of tokens of a passage; None means the model's own limit.
        model_options: Options of the language model.
        settings: Further settings, `langchain_ext.settings.RelevanceRerankSettings` or a mapping of its fields.

    Raises:
        LacksCapability: The model can do neither, such as the unigram model.
        InvalidInput: The query is blank, or a setting cannot be used.

    >>> reranker = RelevanceRerank("hf:Qwen/Qwen3-Reranker-0.6B", preset="qwen3-reranker", score="probability")
    >>> reranker.compress_documents([], "Which novel?")  # the model is loaded for the first document
    []
    """

    settings: RelevanceRerankSettings | dict[str, Any] = Field(
        default=RelevanceRerankSettings(), description="Further settings."
    )


class MonoT5Rerank(MonoT5Fields, LikelihoodCompressor):
    """Reranks documents by the probability that a MonoT5 model calls them relevant to the question.

    Args:
        model: A `load_language_model` specification, or a language model that reads instructions.
        top_n: Maximum number of results; None returns all documents.
        score: Scale of the new scores: `"log_likelihood"`, the logarithm of P(relevant), at most 0; `"probability"`,
            P(relevant); or `"softmax"`, the share in the sum of all P(relevant).
        explain: Explain the rank of each result.
        max_passage_tokens: Maximum number of tokens of a passage; None means the model's own limit.
        model_options: Options of the language model.
        settings: Further settings, `langchain_ext.settings.RerankSettings` or a mapping of its fields.

    Raises:
        InvalidInput: The query is blank, or the model reads no instructions, such as the unigram model.

    >>> reranker = MonoT5Rerank("hf:castorini/monot5-base-msmarco-10k", score="probability")
    >>> reranker.compress_documents([], "Which novel?")  # the model is loaded for the first document
    []
    """


class GeneratedDocument(Document):
    """Document that an LLM wrote, for `BRMGRRerank`.

    Only the class marks it. A store, or `loads`, returns a plain document, so no stored metadata can pass as generated.

    >>> GeneratedDocument(page_content="Jane Austen wrote the novel Emma.").lc_id()[-1]
    'Document'
    """

    @classmethod
    def lc_id(cls) -> list[str]:
        """Return the id of a plain document, as which `loads` reads this document."""
        return Document.lc_id()


class BRMGRRerank(BRMGRRerankFields, LikelihoodCompressor):
    """Merges retrieved documents with documents that an LLM wrote. Each kind is ranked in its own way, then paired.

    A `GeneratedDocument` was written by an LLM. All other documents were retrieved, whatever their metadata say.
    Results that an LLM wrote have the metadata `drillrank_origin` (setting `origin_key`) with the value `"generated"`.

    Args:
        model: A `load_language_model` specification, or a language model.
        top_n: Maximum number of results; None returns all documents.
        prior: Prior for retrieved documents, as for `UPRRerank`.
        score: Scale of the new scores: `"log_likelihood"`, for both documents of a pair the sum of their mean
            log-likelihoods; `"probability"`, its exponential; or `"softmax"`.
        explain: Explain the rank of each result.
        guard: Drop generated documents that no retrieved document supports. True requires a support of 0.9; a number
            from 0 to 1 sets the minimum support.
        preset: `"paper"` sets what the paper fixes, as for `drillrank.BRMGR`.
        model_options: Options of the language model.
        settings: Further settings, `langchain_ext.settings.BRMGRRerankSettings` or a mapping of its fields.

    Raises:
        InvalidInput: The query is blank, or a template is malformed.

    >>> retrieved = ["Emma is a novel that Jane Austen wrote.", "Basel lies on the Rhine."]
    >>> generated = ["Emma was written by Charles Dickens.", "Jane Austen wrote the novel Emma."]
    >>> documents = [Document(page_content=text) for text in retrieved]
    >>> documents += [GeneratedDocument(page_content=text) for text in generated]
    >>> merged = BRMGRRerank(guard=True, top_n=2).compress_documents(documents, "Who wrote Emma?")
    >>> [document.page_content for document in merged]
    ['Jane Austen wrote the novel Emma.', 'Emma is a novel that Jane Austen wrote.']
    """

    settings: BRMGRRerankSettings | dict[str, Any] = Field(
        default=BRMGRRerankSettings(), description="Further settings."
    )

    def _passage(self, document: Document, position: int) -> Passage:
        passage = super()._passage(document, position)
        generated = isinstance(document, GeneratedDocument)
        text = document.page_content if generated else passage.text  # the LLM did not write the metadata
        return replace(passage, text=text, metadata={"generated": generated})

    def _own_metadata(self, document: Document) -> dict[str, Any]:
        key, metadata = self._settings.origin_key, document.metadata
        if isinstance(document, GeneratedDocument):
            return {**metadata, key: "generated"}
        false_origin = metadata.get(key) == "generated"
        return {name: value for name, value in metadata.items() if name != key} if false_origin else metadata


@component
@dataclass(eq=False, repr=False)
class LikelihoodCrossEncoder(BaseCrossEncoder):
    """Scores (query, text) pairs by the likelihood of the query, for components such as `CrossEncoderReranker`.

    Args:
        model: A `load_language_model` specification, or a language model.
        model_options: Options of the language model.
        template: Prompt with `{text}`.

    Scores are mean log-probabilities per token of the query. They are at most 0, and comparable within one query only.

    >>> pairs = [("Which novel?", "Basel is a town."), ("Which novel?", "Emma, a novel.")]
    >>> scores = LikelihoodCrossEncoder().score(pairs)
    >>> scores[1] > scores[0]
    True
    """

    model: str | LanguageModel = "unigram"
    _: KW_ONLY
    model_options: dict[str, Any] | None = None
    template: str = UPR_PROMPT

    def __post_init__(self) -> None:
        self._upr = UPR(load_language_model(self.model, **(self.model_options or {})), template=self.template)

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        """Return the score of each pair. The pairs of one query are scored together as its candidates.

        Raises:
            InvalidInput: A query is blank.
        """
        indices_by_query: dict[str, list[int]] = {}
        for pair_index, (query, _) in enumerate(text_pairs):
            indices_by_query.setdefault(query, []).append(pair_index)
        texts = [[text_pairs[pair_index][1] for pair_index in indices] for indices in indices_by_query.values()]
        scores = [0.0] * len(text_pairs)
        for indices, ranking in zip(
            indices_by_query.values(), self._upr.rank_many(list(indices_by_query), texts), strict=True
        ):
            for item in ranking:
                scores[indices[item.details["position"]]] = item.score
        return scores
