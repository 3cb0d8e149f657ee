"""Ranks given passages by the paths that their own links form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from drillrank.llm import Requests, run
from drillrank.multihop.links import LinkSource
from drillrank.multihop.path_settings import PathSettings
from drillrank.multihop.result import OnHop, PathResult, PathTrace
from drillrank.multihop.search import PathSearch
from drillrank.multihop.sources import EmptySource, PassageSource, handlers
from drillrank.passages import Passage, Ranked, as_passages, by_id, check_query, check_top_n
from drillrank.rerank.base import RetrievalScores
from drillrank.rerank.promptrank import PromptRank
from drillrank.settings import Preset
from drillrank.vectors import Embed


class PathRerank:
    """Orders passages by their best path of linked passages among the given ones, and beyond if told where.

    Passages that share an id share their links and their score. `path_search` does the work.

    Args:
        prompt_rank: Scores the paths, as for `PathSearch`.
        links: One kind of links, or several, whose targets are combined; the passages' own links, their hyperlinks and
            the titles and names that they mention by default.
        corpus: Passages that may be linked to though they are not among the given ones. They also give a lexical
            model that has not been fitted its statistics; without them, the given ones do.
        embed: As for `PathSearch`.
        preset: As for `PathSearch`.
        settings: How paths are searched.

    Raises:
        InvalidInput: a setting cannot be used, or two passages of the corpus share an id.

    >>> turing = Passage("Alan Turing was born in Maida Vale.", title="Alan Turing", id="turing")
    >>> vale = Passage("It is a residential district of London.", title="Maida Vale", id="vale")
    >>> others = ["Ada Lovelace wrote the first program.", "The Thames is a river.", "Basel lies on the Rhine."]
    >>> ranking = PathRerank(PromptRank()).rank("Which residential district was Turing born?", [*others, vale, turing])
    >>> sorted(ranking[0].details["path"])
    ['turing', 'vale']
    """

    def __init__(
        self,
        prompt_rank: PromptRank,
        *,
        links: LinkSource | Sequence[LinkSource] | None = None,
        corpus: Iterable[Passage | str] = (),
        embed: str | Embed | None = None,
        preset: Preset | None = None,
        settings: PathSettings | Mapping[str, Any] = PathSettings(),
    ) -> None:
        self.prompt_rank = prompt_rank
        self.path_search = PathSearch(
            prompt_rank, corpus, links=links, first_stage=EmptySource(), embed=embed, preset=preset, settings=settings
        )

    @property
    def counts_first_stage(self) -> bool:
        """Whether scores of the first stage count."""
        return self.prompt_rank.prior is not None

    def rank(
        self,
        query: str,
        passages: Iterable[Passage | str],
        top_n: int | None = None,
        *,
        scores: RetrievalScores | None = None,
        source: PassageSource | None = None,
        on_hop: OnHop | None = None,
    ) -> PathResult[Passage]:
        """All passages by falling score, the maximum over their paths.

        Those of one path come in the order of their own posterior, as in `PathSearch`; other ties keep the input order.

        Args:
            query: The question.
            passages: What is reranked.
            top_n: How many to return; None returns all.
            scores: The first stage's score of each passage, for a prior that counts it; as for `UPR.rank`.
            source: Where linked passages come from that are neither given nor in the corpus.
            on_hop: Is told of every hop.

        Returns:
            The given passages, and those that were reached over links alone: in the input order these come after the
            given ones, so that their `details["position"]` is beyond them.

        Raises:
            InvalidInput: the query is blank, `top_n` is below 1, or a score cannot be used.
        """
        requests = self.requests(query, passages, top_n, scores=scores)
        return run(requests, handlers=handlers(source or EmptySource(), on_hop))

    async def arank(
        self,
        query: str,
        passages: Iterable[Passage | str],
        top_n: int | None = None,
        *,
        scores: RetrievalScores | None = None,
        source: PassageSource | None = None,
        on_hop: OnHop | None = None,
    ) -> PathResult[Passage]:
        """As `rank`, without blocking the event loop."""
        return await self.prompt_rank.language_model.run_in_worker(
            partial(self.rank, query, passages, top_n, scores=scores, source=source, on_hop=on_hop)
        )

    def requests(
        self,
        query: str,
        passages: Iterable[Passage | str],
        top_n: int | None = None,
        *,
        scores: RetrievalScores | None = None,
    ) -> Requests[PathResult[Passage]]:
        """The same as a generator of requests, for `drillrank.llm.run` and `arun`."""
        check_query(query)
        check_top_n(top_n)
        given = as_passages(passages)
        if not given:
            return PathResult((), PathTrace(query))
        distinct = by_id(given)
        found = yield from self.path_search.requests(query, candidates=given, scores=scores)
        best = {item.passage.id: item for item in found}
        items = [*given, *(item.passage for item in found if item.passage.id not in distinct)]

        def key(location: int) -> tuple[float, int]:
            item = best[items[location].id]
            return -item.score, 0 if item.details["nothing_matched"] else item.rank

        order = sorted(range(len(items)), key=key)[:top_n]
        ordered = [
            Ranked(
                items[location],
                best[items[location].id].score,
                rank,
                best[items[location].id].details | {"position": location},
            )
            for rank, location in enumerate(order, start=1)
        ]
        return replace(found, ranking=tuple(ordered))
