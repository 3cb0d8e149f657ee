"""Collections of passages for paths to lead through: their statistics, titles and links, and a fitted scorer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from functools import cached_property

from drillrank.corpus import Corpus
from drillrank.multihop.links import LinkSource, NamedLinks, Names, bind_links
from drillrank.multihop.path_scorer import PathScorer
from drillrank.multihop.prior import SharedTitles, index_titles, list_title_names
from drillrank.multihop.sources import EmptySource
from drillrank.passages import Passage, title_match_tokens, unique_by_id
from drillrank.vectors import CollectionStatistics, TfidfIndex, top

NAMES_VERSION = 1  # raised whenever the names that links are found by change
ScorerFactory = Callable[[Sequence[str] | CollectionStatistics], PathScorer]
"""Function from texts or their statistics to a scorer that is fitted on them."""


class InMemoryPassages(EmptySource):
    """Passages in memory with their index, titles and links.

    Args:
        passages: The passages.
        build_scorer: Builds the scorer.
        links: Kinds of links.

    Attributes:
        by_id: The passages by id.
        scorer: Scorer fitted on the passages.
        size: Number of passages.
        titles: Titles of the passages.
        links: Kinds of links, bound to the passages.
    """

    def __init__(
        self, passages: Sequence[Passage], build_scorer: ScorerFactory, links: LinkSource | Sequence[LinkSource]
    ) -> None:
        self.by_id = unique_by_id(passages)
        self._texts = [passage.titled_text for passage in passages]
        self.scorer = build_scorer(self._texts)
        self.size = len(passages)
        self.titles: Names = index_titles(passages)
        self.links = bind_links(links, passages)
        self._shared_titles = SharedTitles(passages)

    def title_penalties(self, query: str, passages: Iterable[Passage]) -> dict[str, float]:
        """Return the penalty of passages whose title fits the question worse than that of a namesake, by id."""
        return self._shared_titles.title_penalties(query, passages)

    def retrieve(self, query: str, n: int, /) -> list[Passage]:
        """Return the passages that are most similar to a query, or after which it is likeliest."""
        passages = list(self.by_id.values())
        if self.scorer.document_model.reads_meaning:
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
        """Index of the texts. Candidates of another first stage never need it."""
        return TfidfIndex(self._texts, language=self.scorer.language)


class CorpusPassages:
    """Passages of a corpus, which reads what a question needs. Its attributes are those of `InMemoryPassages`."""

    def __init__(self, corpus: Corpus, build_scorer: ScorerFactory, links: LinkSource | Sequence[LinkSource]) -> None:
        self.corpus, self._build_scorer, self._unbound_links = corpus, build_scorer, links
        self.by_id: dict[str, Passage] = {}
        self.titles = corpus.names(f"titles {NAMES_VERSION}", list_title_names)
        self.version: tuple[int, int] | None = None
        self.links = bind_links(links, [], self._bind_names)
        self.with_candidates([])

    def with_candidates(self, candidates: Sequence[Passage]) -> CorpusPassages:
        """Return the corpus as it is now. Links that need passages in memory are bound to the candidates."""
        view = copy(self)
        view.links = bind_links(self._unbound_links, candidates, self._bind_names)
        if (version := self.corpus.version()) != self.version:
            self.statistics = self.corpus.statistics()
            self.scorer = self._build_scorer(self.statistics)
            self.size, self.version = len(self.corpus), version
            view.statistics, view.scorer, view.size = self.statistics, self.scorer, self.size
        return view

    def update(self) -> None:
        """Store the names of new passages."""
        self.titles.update()
        bind_links(self._unbound_links, [], lambda links: self._bind_names(links, update=True))

    def title_penalties(self, query: str, passages: Iterable[Passage]) -> dict[str, float]:
        """Return the penalty of passages whose title fits the question worse than that of a namesake, by id."""
        titles = {" ".join(title) for passage in passages if (title := title_match_tokens(passage))}
        ids = [id_ for id_by_title in self.titles.look_up(titles).values() for id_ in id_by_title]
        return SharedTitles(self.corpus.fetch(ids)).title_penalties(query, passages)

    def _bind_names(self, links: NamedLinks, *, update: bool = False) -> Names:
        names = self.corpus.names(f"{links!r} {NAMES_VERSION}", links.list_names)
        if update:
            names.update()
        return names
