"""What a path search finds passages in: its own pool, or what a retriever brought for one question."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from copy import copy
from functools import partial

from drillrank.corpus import Corpus
from drillrank.multihop.link_prior import NamedPassages, named_in
from drillrank.multihop.links import LinkSource, bound_links, restricted_links
from drillrank.multihop.scoring import PathScorer
from drillrank.passages import Passage, unique_by_id
from drillrank.vectors import CollectionStatistics, TfidfIndex, top


class Collected:
    """Passages with their index and their links, and a scorer that knows their collection statistics."""

    def __init__(
        self,
        passages: Sequence[Passage],
        scorer_of: Callable[[Sequence[str] | CollectionStatistics], PathScorer],
        links: LinkSource | Sequence[LinkSource] | None,
        corpus: Corpus | None = None,
    ) -> None:
        self.by_id = unique_by_id(passages)
        texts = [passage.titled_text for passage in passages]
        self.scorer = scorer_of(texts if corpus is None else corpus.statistics())
        self.links = bound_links(links, passages)
        self._titles = NamedPassages(passages)
        self.named: Callable[[str], Collection[str]] = (
            self._titles if corpus is None else partial(named_in, titles=corpus)
        )
        self.size = len(passages) if corpus is None else len(corpus)
        self._given_links = links
        self._texts = texts
        self._index = (
            None if self.scorer.document_model.reads_meaning else TfidfIndex(texts, language=self.scorer.language)
        )

    def within(self, ids: Collection[str] | None) -> Collected:
        """As if the passages with these ids were all, but for the statistics of words."""
        if ids is None:
            return self
        view = copy(self)
        view.by_id = {name: passage for name, passage in self.by_id.items() if name in ids}
        view.links = restricted_links(self.links, ids)
        view.size = len(view.by_id)
        view.named = self._titles.within(ids)
        return view

    def linking(self, candidates: Sequence[Passage]) -> Collected:
        """The same collection, with links that must know passages bound to these."""
        view = copy(self)
        view.links = bound_links(self._given_links, candidates)
        return view

    def fetch(self, _ids: Sequence[str], /) -> Sequence[Passage]:
        """Nothing: all that there is can be reached already."""
        return ()

    def retrieve(self, query: str, n: int, /) -> list[Passage]:
        """The passages most similar to a query, or after which it is likeliest."""
        passages = list(self.by_id.values())
        if self._index is not None:
            scores = self._index.scores(query)
        else:
            scores = self.scorer.document_model.document_log_probs(query, self._texts).sum(axis=1)
        return [passages[i] for i in top(scores, n)]
