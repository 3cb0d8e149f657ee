"""Rerank a given list of passages by the paths that its own links form."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from drillrank.errors import check_positive
from drillrank.multihop.links import combined, given_links, title_mentions
from drillrank.multihop.search import PathSearch
from drillrank.passages import Passage, Ranked, as_passages, by_id, check_query, check_top_n, ranked
from drillrank.rerank.promptrank import PromptRank


class PathRerank:
    """Orders passages by their best path of linked passages among the given ones.

    Links are the passages' own and mentions of another passage's title. Passages that share an id share their links
    and their score.

    Args:
        prompt_rank: Scores the paths.
        hops: Longest path.
        beam: Paths that are extended after each hop.
        branch: Links followed from each of them.

    Raises:
        InvalidInput: a number is below 1.

    >>> turing = Passage("Alan Turing was born in Maida Vale.", title="Alan Turing", id="turing")
    >>> vale = Passage("It is a residential district of London.", title="Maida Vale", id="vale")
    >>> others = ["Ada Lovelace wrote the first program.", "The Thames is a river.", "Basel lies on the Rhine."]
    >>> ranking = PathRerank(PromptRank()).rank("Which residential district was Turing born?", [*others, vale, turing])
    >>> ranking[0].details["path"]
    ('turing', 'vale')
    """

    def __init__(self, prompt_rank: PromptRank, *, hops: int = 2, beam: int = 5, branch: int = 3) -> None:
        check_positive(hops=hops, beam=beam, branch=branch)  # now, not at the first question
        self._search_in = partial(PathSearch, prompt_rank, hops=hops, beam=beam, branch=branch)

    def rank(self, query: str, passages: Iterable[Passage | str], top_n: int | None = None) -> list[Ranked[Passage]]:
        """All passages by falling score, the maximum over their paths; ties keep the input order.

        Raises:
            InvalidInput: the query is blank, or `top_n` is below 1.
        """
        check_query(query)
        check_top_n(top_n)
        given = as_passages(passages)
        if not given:
            return []
        distinct = list(by_id(given).values())
        links = combined(given_links, title_mentions(distinct))
        search = self._search_in(distinct, links=links, pool=len(distinct))
        best = {item.passage.id: item for item in search.search(query)}
        return ranked(
            given, [best[passage.id].score for passage in given], [best[passage.id].details for passage in given], top_n
        )
