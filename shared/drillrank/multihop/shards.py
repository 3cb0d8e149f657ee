"""A collection in parts, each in a process of its own: searched as if it were one.

A shard counts its words; the sum of all counts is given back to every shard; from then on its TF-IDF scores are those
of an index over everything, and its best passages can be merged with those of the others.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import add
from typing import Any

from drillrank.collection_statistics import CollectionStatistics
from drillrank.errors import check_positive
from drillrank.multihop.title_mentions import TitleIndex
from drillrank.passages import Passage, as_passages, unique_by_id
from drillrank.retrieval import TfidfIndex, top

Numbered = tuple[int, Passage]
"""A passage with its place in the whole collection, which decides between equal scores."""

Ask = Callable[..., Sequence[Any]]
"""`ask(method, *arguments)` calls that method of every shard and returns their answers, in any order."""


def divided(passages: Iterable[Passage | str], parts: int) -> list[list[Numbered]]:
    """The passages in so many parts of about the same size; equal texts come to one part.

    Raises:
        InvalidInput: `parts` is below 1, or two passages share an id.

    >>> passages = [Passage("a fox", id="1"), Passage("a lake", id="2"), Passage("a fox", id="3")]
    >>> [[passage.id for _, passage in part] for part in divided(passages, 2)]
    [['1', '3'], ['2']]
    """
    check_positive(parts=parts)
    lots: list[list[Numbered]] = [[] for _ in range(parts)]
    for place, passage in enumerate(unique_by_id(as_passages(passages)).values()):
        lots[zlib.crc32(passage.titled_text.encode("utf-8", "surrogatepass")) % parts].append((place, passage))
    return lots


class Shard:
    """One part of a collection; its methods take and return what can be sent between processes.

    Args:
        part: Of what `divided` returned.

    Raises:
        InvalidInput: two passages share an id.
    """

    def __init__(self, part: Sequence[Numbered]) -> None:
        self._places = [place for place, _ in part]
        self._passages = [passage for _, passage in part]
        self._by_id = unique_by_id(self._passages)
        self._titles = TitleIndex(self._passages, fold_case=True)
        self._index: TfidfIndex | None = None

    def statistics(self) -> CollectionStatistics:
        """Of this part."""
        return CollectionStatistics.of(passage.titled_text for passage in self._passages)

    def join(self, whole: CollectionStatistics) -> None:
        """Index the part, once the statistics of all parts are known."""
        self._index = TfidfIndex([passage.titled_text for passage in self._passages], whole)

    def retrieve(self, query: str, n: int) -> list[tuple[float, Numbered]]:
        """The `n` passages most similar to a query, with their cosines.

        Raises:
            RuntimeError: `join` has not been called.
        """
        if self._index is None:
            raise RuntimeError("A shard is searched after join(statistics of all shards).")
        scores = self._index.scores(query)
        return [(float(scores[i]), (self._places[i], self._passages[i])) for i in top(scores, n)]

    def fetch(self, ids: Sequence[str]) -> list[Passage]:
        """The passages with these ids that are here."""
        return [self._by_id[name] for name in ids if name in self._by_id]

    def mentions(self, tokens: Sequence[str]) -> list[tuple[int, int, Sequence[str]]]:
        """Where titles of this part begin and end among the tokens, with the ids of their passages."""
        return list(self._titles.mentions(tokens))


class ShardedCorpus:
    """Shards as one `Corpus`, for `PathSearch(first_stage=...)`: the paths and scores of one process.

    Links that a passage or its metadata list are followed from shard to shard. Links that must know all passages
    (titles, names) see the candidates of a question alone, so write those into `Passage.links` before.

    Args:
        ask: Reaches the shards: a loop, or calls of Ray actors (`examples/ray/sharded.py`). Its errors go through.

    >>> fox = Passage("A red fox lives in Basel.", links=("basel",))
    >>> basel = Passage("It lies on the Rhine.", id="basel", title="Basel")
    >>> shards = [Shard(part) for part in divided([fox, basel, Passage("A whale sings.")], 2)]
    >>> corpus = ShardedCorpus(lambda method, *given: [getattr(shard, method)(*given) for shard in shards])
    >>> [passage.id for passage in corpus.retrieve("Which river is Basel on?", 1)], len(corpus.statistics)
    (['basel'], 3)
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.statistics: CollectionStatistics = reduce(add, ask("statistics"), CollectionStatistics())
        ask("join", self.statistics)

    def retrieve(self, query: str, n: int, /) -> list[Passage]:
        """The `n` passages most similar to a query, best first; ties keep the order of the whole collection."""
        found = [hit for of_shard in self._ask("retrieve", query, n) for hit in of_shard]
        found.sort(key=lambda hit: (-hit[0], hit[1][0]))
        return [passage for _, (_, passage) in found[:n]]

    def fetch(self, ids: Sequence[str], /) -> list[Passage]:
        """The passages with these ids, wherever they are.

        Raises:
            InvalidInput: two shards hold passages of one id.
        """
        asked = list(dict.fromkeys(ids))
        found = [passage for of_shard in self._ask("fetch", asked) for passage in of_shard]
        return list(unique_by_id(found).values())

    def mentions(self, tokens: Sequence[str], /) -> list[tuple[int, int, Sequence[str]]]:
        """Where titles of any shard begin and end among the tokens; of one start the longest first."""
        together: dict[tuple[int, int], list[str]] = {}
        for of_shard in self._ask("mentions", list(tokens)):
            for start, end, ids in of_shard:
                together.setdefault((start, end), []).extend(ids)
        order = sorted(together, key=lambda span: (span[0], -span[1]))
        return [(*span, together[span]) for span in order]
