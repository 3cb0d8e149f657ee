"""Path search over a collection that lies in Ray actors, one for each shard, with the paths and scores of one process.

    from sharded import ActorShards

    from drillrank import PathSearch, PromptRank
    from drillrank.multihop.shards import ShardedCorpus

    corpus = ShardedCorpus(ActorShards(read_part, 8))  # read_part(0) .. read_part(7): what each shard reads
    search = PathSearch(PromptRank(), first_stage=corpus)

`read_part` returns pairs of a place in the whole collection and a passage, from your storage;
`drillrank.multihop.shards.divided` makes such parts of a list. Only statistics of words, candidates and linked passages
travel. An actor that dies is started again by Ray, reads its part once more, and is asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ray

from drillrank.collection_statistics import CollectionStatistics
from drillrank.multihop.shards import Numbered, Shard

ReadPart = Callable[[int], Sequence[Numbered]]


class Board:
    """Keeps the statistics of all shards for processes that start later."""

    def __init__(self) -> None:
        self._whole: CollectionStatistics | None = None

    def write(self, whole: CollectionStatistics) -> None:
        """Pin them up."""
        self._whole = whole

    def read(self) -> CollectionStatistics | None:
        """What is pinned up; None until all shards have counted."""
        return self._whole


class ShardActor:
    """A shard in a process of its own.

    Args:
        read_part: Reads the part of a number.
        number: Of this shard.
        board: The actor with the statistics of all shards.
    """

    def __init__(self, read_part: ReadPart, number: int, board: Any) -> None:
        self._shard = Shard(read_part(number))
        whole = ray.get(board.read.remote())
        if whole is not None:  # this process takes the place of one that died
            self._shard.join(whole)

    def ask(self, method: str, given: Sequence[Any]) -> Any:
        """What a method of the shard says."""
        return getattr(self._shard, method)(*given)


class ActorShards:
    """Starts the actors, and asks them, as `ShardedCorpus` wants to.

    Args:
        read_part: Called in each actor with its number, also when it is started again.
        shards: How many actors.
        options: Of the actors, such as `num_cpus` or `memory`.
    """

    def __init__(self, read_part: ReadPart, shards: int, **options: Any) -> None:
        self._board = ray.remote(Board).options(num_cpus=0, max_restarts=-1).remote()
        actor = ray.remote(ShardActor).options(**{"max_restarts": -1, "max_task_retries": -1, **options})
        self.actors = [actor.remote(read_part, number, self._board) for number in range(shards)]

    def __call__(self, method: str, *given: Any) -> list[Any]:
        """The answers of all shards."""
        if method == "join":  # before the shards hear of it: one that starts from here on joins by itself
            ray.get(self._board.write.remote(*given))
        sent = ray.put(given)  # once for all actors of a machine
        return ray.get([actor.ask.remote(method, sent) for actor in self.actors])
