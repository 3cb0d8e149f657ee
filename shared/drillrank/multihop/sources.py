"""Sources of passages: retrievers, passages in memory, corpora, and the handlers that answer a search's requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from drillrank.corpus import Corpus
from drillrank.errors import InvalidInput
from drillrank.llm import Handlers, LookupRequest, RetrievalRequest
from drillrank.multihop.links import LinkSource, NamedLinks, Names, bind_links
from drillrank.multihop.path_scorer import PathScorer
from drillrank.multihop.prior import SharedTitles, index_titles, list_title_names
from drillrank.multihop.result import Hop, OnHop
from drillrank.passages import Passage, title_match_tokens, unique_by_id
from drillrank.vectors import CollectionStatistics, TfidfIndex, top

NAMES_VERSION = 1  # to be raised when `list_names` of a kind of links, or `list_title_names`, returns other names
ScorerFactory = Callable[[Sequence[str] | CollectionStatistics], PathScorer]
"""Function from texts or their statistics to a scorer that is fitted on them."""

RetrieveFunction = Callable[[str, int], Sequence[Passage]]
"""Function from a query and a number n to at most n passages, best first."""


class PassageSource(Protocol):
    """Retriever that also finds passages by their ids."""

    def retrieve(self, query: str, n: int, /) -> Sequence[Passage]:
        """Return at most `n` passages for a query, best first."""
        ...

    def fetch(self, ids: Sequence[str], /) -> Sequence[Passage] | Sequence[tuple[str, Passage]]:
        """Return the passages with these ids, in any order. Ids without a passage are left out.

        A source whose passages have other ids than the requested ones returns pairs of requested id and passage.
        """
        ...


class EmptySource:
    """Source without passages."""

    def retrieve(self, _query: str, _n: int, /) -> Sequence[Passage]:
        """Return no passages."""
        return ()

    def fetch(self, _ids: Sequence[str], /) -> Sequence[Passage]:
        """Return no passages."""
        return ()


@dataclass(frozen=True)
class _RetrieverSource(EmptySource):
    """Source that retrieves by a plain function and finds no passage by its id."""

    first_stage: RetrieveFunction

    def retrieve(self, query: str, n: int, /) -> Sequence[Passage]:
        return self.first_stage(query, n)


def as_source(first_stage: RetrieveFunction | PassageSource) -> PassageSource:
    """Return a source as it is, and a plain function as a source.

    Raises:
        InvalidInput: The argument is neither.

    >>> as_source(lambda query, n: [Passage(query)]).retrieve("who?", 1)[0].text
    'who?'
    """
    if hasattr(first_stage, "retrieve") and hasattr(first_stage, "fetch"):
        return first_stage
    if not callable(first_stage):
        raise InvalidInput(
            "first_stage must be a function (query, n) -> passages, or an object with retrieve(query, n) and "
            f"fetch(ids), got {first_stage!r:.100}. Pass a retriever."
        )
    return _RetrieverSource(first_stage)


def handlers(source: PassageSource, on_hop: OnHop | None = None) -> Handlers:
    """Return the functions that answer the requests of a search, for `run` and `arun`.

    Args:
        source: Answers `RetrievalRequest` and `LookupRequest`.
        on_hop: Callback that receives each `Hop`.

    >>> from drillrank.llm import LookupRequest, RetrievalRequest, run
    >>> def twice():
    ...     [first], second = yield [RetrievalRequest("who?", 1), LookupRequest(("a",))]
    ...     return first.text, list(second)
    >>> run(twice(), handlers=handlers(as_source(lambda query, n: [Passage(query)])))
    ('who?', [])
    """
    return {
        RetrievalRequest: lambda request: source.retrieve(request.query, request.n),
        LookupRequest: lambda request: source.fetch(request.ids),
        Hop: on_hop or (lambda _: None),
    }


class InMemoryPassages(EmptySource):
    """Passages in memory with their index, titles and links.

    Args:
        passages: The passages.
        build_scorer: Function that builds the scorer.
        links: Kinds of links.
        is_sample: True if the passages are the candidates of one question, and the rest of the collection is unknown.

    Attributes:
        by_id: The passages by id.
        scorer: Scorer fitted on the passages.
        size: Number of passages.
        titles: Titles of the passages.
        links: Kinds of links, bound to the passages.
        title_penalties: Function from a question and passages to the penalties of those passages whose title fits the
            question worse than the same title of another passage, by id.
    """

    def __init__(
        self,
        passages: Sequence[Passage],
        build_scorer: ScorerFactory,
        links: LinkSource | Sequence[LinkSource],
        *,
        is_sample: bool = False,
    ) -> None:
        self.is_sample = is_sample
        self.by_id = unique_by_id(passages)
        self._texts = [passage.titled_text for passage in passages]
        self.scorer = build_scorer(self._texts)
        self._is_embedded = self.scorer.document_model.reads_meaning
        self.size = len(passages)
        self.titles: Names = index_titles(passages)
        self.links = bind_links(links, passages)
        self.title_penalties = SharedTitles(passages).title_penalties

    def retrieve(self, query: str, n: int, /) -> list[Passage]:
        """Return the passages that are most similar to a query by TF-IDF, or by embeddings if a model embeds texts."""
        passages = list(self.by_id.values())
        if self._is_embedded:
            scores = self.scorer.document_model.document_log_probs(query, self._texts).sum(axis=1)
        else:
            scores = self._index.scores(query)
        return [passages[index] for index in top(scores, n)]

    @cached_property
    def statistics(self) -> CollectionStatistics:
        """Statistics of the texts, for TF-IDF."""
        return CollectionStatistics.count(self._texts, self.scorer.language)

    @cached_property
    def _index(self) -> TfidfIndex:
        """TF-IDF index of the texts, which is built only if passages are retrieved from it."""
        return TfidfIndex(self._texts, language=self.scorer.language)


class CorpusPassages:
    """Passages of a corpus, read as a question needs them. For the attributes see `InMemoryPassages`.

    `by_id` is empty, because every passage is fetched from the corpus.
    """

    is_sample = False

    def __init__(self, corpus: Corpus, build_scorer: ScorerFactory, links: LinkSource | Sequence[LinkSource]) -> None:
        self.corpus, self._build_scorer, self._link_sources = corpus, build_scorer, links
        self.by_id: dict[str, Passage] = {}
        self.titles = corpus.names(f"titles {NAMES_VERSION}", list_title_names)
        self.version: tuple[int, int] | None = None
        self.links = bind_links(links, [], self._bind_names)
        self.with_candidates([])

    def with_candidates(self, candidates: Sequence[Passage]) -> CorpusPassages:
        """Return a copy for one question, with the statistics of the corpus as it is now.

        Custom links that are bound to passages in memory are bound to the candidates.
        """
        if (version := self.corpus.version()) != self.version:
            self.statistics = self.corpus.statistics()
            self.scorer = self._build_scorer(self.statistics)
            self.size, self.version = len(self.corpus), version
        view = copy(self)
        view.links = bind_links(self._link_sources, candidates, self._bind_names)
        return view

    def update(self) -> None:
        """Store the names of new passages."""
        self.titles.update()
        bind_links(self._link_sources, [], lambda links: self._bind_names(links, update=True))

    def title_penalties(self, query: str, passages: Iterable[Passage]) -> dict[str, float]:
        """Return the penalties of passages whose title fits worse than the same title of another passage, by id."""
        titles = {" ".join(title) for passage in passages if (title := title_match_tokens(passage))}
        ids = [id_ for id_by_title in self.titles.look_up(titles).values() for id_ in id_by_title]
        return SharedTitles(self.corpus.fetch(ids)).title_penalties(query, passages)

    def _bind_names(self, links: NamedLinks, *, update: bool = False) -> Names:
        names = self.corpus.names(f"{links!r} {NAMES_VERSION}", links.list_names)
        if update:
            names.update()
        return names
