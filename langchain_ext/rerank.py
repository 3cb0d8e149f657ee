"""Rerankers as LangChain document compressors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import isfinite
from numbers import Real
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda, RunnableParallel, RunnablePassthrough
from pydantic import Field

from drillrank import UPR, LanguageModel, Passage, load_language_model
from drillrank.errors import InvalidInput
from drillrank.frameworks.components import (
    BRMGRRerankFields,
    MonoT5Fields,
    RelevanceFields,
    RerankerComponentFields,
    UPRFields,
)
from drillrank.frameworks.metadata import PREFIX, RANKING_KEYS, RANKING_NOTES, copy_metadata
from drillrank.passages import Ranking, check_query
from drillrank.rerank.base import RetrievalScores
from drillrank.rerank.upr import UPR_PROMPT
from langchain_ext._filters import DocumentFilter
from langchain_ext._retriever import Loadable
from langchain_ext.settings import BRMGRRerankSettings, RelevanceRerankSettings, RerankSettings


class LikelihoodCompressor(RerankerComponentFields, Loadable, BaseDocumentCompressor):
    """Base of the rerankers.

    Documents come back as copies, best first, with the score in their metadata, and `drillrank_cut_tokens` where the
    model did not read all of one; the given ones are left alone.
    """

    settings: RerankSettings | dict[str, Any] = Field(default=RerankSettings(), description="What is rarely touched.")

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Rerank documents, as a run of this component's name; `callbacks` are those of the run that it belongs to.

        Raises:
            InvalidInput: the query is blank, or a source has a filter that cannot be checked on linked documents.
        """
        step = RunnableLambda(self._compress, name=type(self).__name__)
        return step.invoke(*self._run(documents, query, callbacks)) if documents else []

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """As `compress_documents`, without blocking the event loop."""
        step = RunnableLambda(self._acompress, name=type(self).__name__)
        return await step.ainvoke(*self._run(documents, query, callbacks)) if documents else []

    def _run(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None
    ) -> tuple[dict[str, Any], RunnableConfig]:
        """The input of a run, and its configuration: traces show what is reranked, and how."""
        model = self.model.spec if isinstance(self.model, LanguageModel) else self.model
        counts = {"candidates": len(documents), "top_n": self.top_n, "model": model}
        metadata = {PREFIX + name: value for name, value in counts.items()}
        return {"query": query, "documents": list(documents)}, {"callbacks": callbacks, "metadata": metadata}

    def _compress(self, given: dict[str, Any], config: RunnableConfig) -> list[Document]:
        documents, passages, scores = self._read(given)
        return self._best(documents, self._rank(given["query"], passages, scores)) if documents else []

    async def _acompress(self, given: dict[str, Any], config: RunnableConfig) -> list[Document]:
        return await self.language_model.run_in_worker(self._compress, given, config)

    def _read(
        self, given: dict[str, Any], filter_results: Callable[[Iterable[Document]], list[Document]] = list
    ) -> tuple[list[Document], list[Passage], RetrievalScores]:
        """What is ranked, and the scores that documents bring under the key under which they leave.

        Where none brings one, their order counts as evidence.
        """
        if not isinstance(given, dict) or not {"query", "documents"} <= given.keys():
            raise InvalidInput(
                f'A reranker takes {{"query": ..., "documents": [...]}}, not this {type(given).__name__}. Behind a '
                "retriever it has no query: write reranker.as_runnable(retriever) for retriever | reranker."
            )
        documents = filter_results(DocumentFilter(None).filter_results(given["documents"]))  # or says what is none
        settings: Any = self.settings
        passages: list[Passage] = []
        scores: list[float | None] = []
        for position, document in enumerate(documents):
            metadata = document.metadata
            read = [f"{key}: {metadata[key]}" for key in settings.metadata_fields if key in metadata]
            text, title = "\n".join([*read, document.page_content]), str(metadata.get(settings.title_key) or "")
            passages.append(Passage(text, id=document.id or f"document-{position}", title=title))
            value: Any = None if settings.score_key is None else metadata.get(settings.score_key)
            scores.append(_finite_score(value))
        if getattr(self, "prior", None) == "retrieval" and all(score is None for score in scores):
            return documents, passages, [-float(location) for location in range(len(documents))]
        return documents, passages, scores

    def _best(self, documents: Sequence[Document], ranking: Ranking[Passage]) -> list[Document]:
        """What is kept, with the new scores; `details["reached"]` is a document that was not given."""
        settings: Any = self.settings
        best = []
        for item, why in self._selected(ranking):
            reached = item.details.get("reached")
            document = documents[item.details["position"]] if reached is None else reached
            metadata = copy_metadata(document.metadata)
            if settings.score_key is not None:  # else nothing depends on the question
                metadata = {key: value for key, value in metadata.items() if key not in RANKING_KEYS}
                metadata |= {PREFIX + name: item.details[name] for name in RANKING_NOTES if item.details.get(name)}
                metadata |= {settings.score_key: item.score}
                metadata |= {} if why is None else {PREFIX + "explanation": why.to_dict()}
            best.append(document.model_copy(update={"metadata": metadata}))
        return best

    def as_runnable(self, retriever: Runnable[str, list[Document]] | None = None) -> Runnable[Any, list[Document]]:
        """This reranker as a step of a chain.

        Args:
            retriever: Any Runnable from a question to documents. With it the step takes the question: a reranker needs
                it as much as the documents, so it cannot stand behind a retriever and a `|`. Without it the step
                takes `{"query": str, "documents": [Document]}`.

        Raises:
            InvalidInput: when invoked, the input is something else, such as a retriever's documents, or a mapping.

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
        given: Runnable[Any, Any] = RunnableParallel(query=RunnablePassthrough(), documents=retriever)
        return RunnableLambda(check_query) | given | step


class UPRRerank(UPRFields, LikelihoodCompressor):
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


class RelevanceRerank(RelevanceFields, LikelihoodCompressor):
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

    settings: RelevanceRerankSettings | dict[str, Any] = Field(
        default=RelevanceRerankSettings(), description="What is rarely touched."
    )


class MonoT5Rerank(MonoT5Fields, LikelihoodCompressor):
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


class BRMGRRerank(BRMGRRerankFields, LikelihoodCompressor):
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

    settings: BRMGRRerankSettings | dict[str, Any] = Field(
        default=BRMGRRerankSettings(), description="What is rarely touched."
    )

    def _read(
        self, given: dict[str, Any], filter_results: Callable[[Iterable[Document]], list[Document]] = list
    ) -> tuple[list[Document], list[Passage], RetrievalScores]:
        settings: Any = self.settings
        documents, passages, scores = super()._read(given, filter_results)
        for position, document in enumerate(documents):
            generated = document.metadata.get(settings.origin_key) == "generated"
            text = document.page_content if generated else passages[position].text  # the LLM wrote no metadata
            passages[position] = replace(passages[position], text=text, metadata={"generated": generated})
        return documents, passages, scores


class LikelihoodCrossEncoder(BaseCrossEncoder):
    """Scores (query, text) pairs by the likelihood of the query, for `CrossEncoderReranker` and its kin.

    Args:
        model: A `load_language_model` specification, or a ready language model.
        model_options: Options of the language model.
        template: Prompt with `{text}`.

    Scores are mean log-probabilities per question token: at most 0, comparable within one query only.

    >>> pairs = [("Which novel?", "Basel is a town."), ("Which novel?", "Emma, a novel.")]
    >>> scores = LikelihoodCrossEncoder().score(pairs)
    >>> scores[1] > scores[0]
    True
    """

    def __init__(
        self,
        model: str | LanguageModel = "unigram",
        *,
        model_options: dict[str, Any] | None = None,
        template: str = UPR_PROMPT,
    ) -> None:
        self._upr = UPR(load_language_model(model, **(model_options or {})), template=template)

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        """One plain float per pair, in order; the pairs of one query are scored as its candidates.

        Raises:
            InvalidInput: a query is blank.
        """
        places: dict[str, list[int]] = {}
        for location, (query, _) in enumerate(text_pairs):
            places.setdefault(query, []).append(location)
        scores = [0.0] * len(text_pairs)
        rankings = self._upr.rank_many(list(places), [[text_pairs[i][1] for i in of] for of in places.values()])
        for of_query, ranking in zip(places.values(), rankings, strict=True):
            for item in ranking:
                scores[of_query[item.details["position"]]] = item.score
        return scores


def _finite_score(value: object) -> float | None:
    """Return a stored value as a score; None if it is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        score = float(value)
    except OverflowError:
        return None
    return score if isfinite(score) else None
