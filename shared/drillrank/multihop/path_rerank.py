"""Reranking of passages by the paths that their links form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from drillrank.llm import Requests, run
from drillrank.multihop.links import LinkSource
from drillrank.multihop.path_settings import PathSettings
from drillrank.multihop.result import OnHop, PathResult, PathTrace
from drillrank.multihop.search import PathSearch
from drillrank.multihop.sources import EmptySource, PassageSource, handlers
from drillrank.passages import Passage, Ranked, as_passages, by_id, check_query, check_top_n
from drillrank.rerank.base import AsksModel, in_worker
from drillrank.rerank.prior import RetrievalScores
from drillrank.rerank.promptrank import PromptRank
from drillrank.settings import Preset
from drillrank.vectors import Embed


class PathRerank(AsksModel):
    """Reranker of passages by their best path of linked passages: a path search that starts from these passages.

    Passages with the same id have the same links and the same score, those of the first one.

    Args:
        prompt_rank: Ranker that scores the paths.
        links: Kinds of links to follow. None for the default of `PathSearch`.
        corpus: Passages that links may lead to, in addition to the passages to rank. A lexical model that is not fitted
            is fitted with them, or with the passages to rank if there are none.
        embed: Encoder of texts; see `PathSearch`.
        preset: `"paper"` uses the paper's values for `links` and settings that are not passed.
        settings: Settings of the search. `pool` has no effect.

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
        self.prompt_rank, self.language_model = prompt_rank, prompt_rank.language_model
        self.path_search = PathSearch(
            prompt_rank, corpus, links=links, first_stage=EmptySource(), embed=embed, preset=preset, settings=settings
        )

    @property
    def counts_first_stage(self) -> bool:
        """True if scores of the first stage affect the ranking."""
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

        Passages of one path are ordered by how much each explains in addition to those before it. Other ties keep the
        input order.

        Args:
            query: The question.
            passages: Passages to rank.
            top_n: Maximum number of passages; None for all.
            scores: Score of each passage by the first stage, for the `prior` of `PromptRank`. None if only the order of
                the passages is known.
            source: Source from which linked passages are fetched that are neither among the passages to rank nor in the
                corpus. None to leave them out.
            on_hop: Callback that receives every hop with its scored paths.

        Returns:
            The passages to rank, and passages that links lead to. `details["position"]` is the index in the input. The
            indices of linked passages follow those of the input. For `explain` and the other details see `PathSearch`.

        Raises:
            InvalidInput: The query is blank, `top_n` is below 1, or a score is invalid.
        """
        requests = self.requests(query, passages, top_n, scores=scores)
        return run(requests, handlers=handlers(source or EmptySource(), on_hop))

    arank = in_worker(rank)

    def requests(
        self,
        query: str,
        passages: Iterable[Passage | str],
        top_n: int | None = None,
        *,
        scores: RetrievalScores | None = None,
    ) -> Requests[PathResult[Passage]]:
        """Return `rank` as a generator of requests, for `drillrank.llm.run`. For the arguments see `rank`."""
        check_query(query)
        check_top_n(top_n)
        candidates = as_passages(passages)
        if not candidates:
            return PathResult((), PathTrace(query))
        candidate_by_id = by_id(candidates)
        result = yield from self.path_search.requests(query, candidates=candidates, scores=scores)
        item_by_id = {item.passage.id: item for item in result}
        linked_passages = [item.passage for item in result if item.passage.id not in candidate_by_id]
        all_passages = [*candidates, *linked_passages]

        def sort_key(index: int) -> tuple[float, int]:
            item = item_by_id[all_passages[index].id]
            # If nothing matched, passages with equal scores keep the input order.
            return -item.score, 0 if item.details["nothing_matched"] else item.rank

        ranking = []
        for rank, index in enumerate(sorted(range(len(all_passages)), key=sort_key)[:top_n], start=1):
            item = item_by_id[all_passages[index].id]
            ranking.append(Ranked(all_passages[index], item.score, rank, item.details | {"position": index}))
        return replace(result, ranking=tuple(ranking))
