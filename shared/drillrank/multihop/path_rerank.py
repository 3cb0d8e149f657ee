"""Reranking of passages by the paths that their links form."""

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
    """Reranker of passages by their best path of linked passages.

    Passages that share an id share their links and their score. `path_search` does the work.

    Args:
        prompt_rank: Scores the paths, as for `PathSearch`.
        links: Kinds of links to follow, as for `PathSearch`.
        corpus: Passages that may be linked to though they are not among the passages to rank. A lexical model that is
            not fitted takes its statistics from them, or else from the passages to rank.
        embed: As for `PathSearch`.
        preset: As for `PathSearch`.
        settings: Settings of the search.

    Raises:
        InvalidInput: A setting is invalid, or two passages of the corpus share an id.

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
        """True if scores of the first stage count."""
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
        """Rank passages by the maximum score over their paths, best first.

        Passages of one path are ordered by what each adds, as in `PathSearch`. Other ties keep the input order.

        Args:
            query: The question.
            passages: Passages to rank.
            top_n: Maximum number of passages; None for all.
            scores: Score of each passage by the first stage, for a prior that counts scores; as for `UPR.rank`.
            source: Source of linked passages that are neither among the passages to rank nor in the corpus.
            on_hop: Callback that receives every hop.

        Returns:
            The passages, and those that links lead to. The `details["position"]` of the latter are the indices after
            those of the input.

        Raises:
            InvalidInput: The query is blank, `top_n` is below 1, or a score is invalid.
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
        """Rank without blocking the event loop; see `rank`."""
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
        """Return `rank` as a generator of requests, for `drillrank.llm.run` and `arun`."""
        check_query(query)
        check_top_n(top_n)
        candidates = as_passages(passages)
        if not candidates:
            return PathResult((), PathTrace(query))
        ids = by_id(candidates)
        result = yield from self.path_search.requests(query, candidates=candidates, scores=scores)
        best = {item.passage.id: item for item in result}
        items = [*candidates, *(item.passage for item in result if item.passage.id not in ids)]

        def sort_key(index: int) -> tuple[float, int]:
            item = best[items[index].id]
            return -item.score, 0 if item.details["nothing_matched"] else item.rank

        ranking = []
        for rank, index in enumerate(sorted(range(len(items)), key=sort_key)[:top_n], start=1):
            item = best[items[index].id]
            ranking.append(Ranked(items[index], item.score, rank, item.details | {"position": index}))
        return replace(result, ranking=tuple(ranking))
