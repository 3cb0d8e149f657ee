"""Why the passages and paths of a search stand where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from drillrank.errors import InvalidInput
from drillrank.explanation import Explanation, Explanations, Term
from drillrank.multihop.state import Search
from drillrank.passages import Path, Ranked
from drillrank.rerank.base import divisor, name_of
from drillrank.rerank.promptrank import PromptRank


@dataclass(frozen=True)
class PathReasons:
    """Explains what one search has found.

    Attributes:
        query: The question.
        prompt_rank: Scored the paths.
        state: Of the search, after it.
    """

    query: str
    prompt_rank: PromptRank
    state: Search

    def __call__(self, ranking: Sequence[Ranked[Any]]) -> Explanations:
        """What each token of the question adds, in which document of the path, and how a reader takes that path.

        Raises:
            InvalidInput: an entry is not of this search.
        """
        paths = list(map(self._path, ranking))
        read = [at for at, item in enumerate(ranking) if item.details.get("model") != "unigram"]  # not by a cascade
        own = [paths[at] for at in read]
        entries = self.prompt_rank.explanations(
            self.query,
            own,
            self.prompt_rank.likelihoods(self.query, own),
            [ranking[at] for at in read],
            range(len(read)),
            list(map(self.state.taken, own)),
        )
        explained = dict(zip(read, entries, strict=True))
        found = (explained.get(at) or _pruned(item) for at, item in enumerate(ranking))
        return Explanations(found, self.query)

    def _path(self, item: Ranked[Any]) -> Path:
        """The path that brought an entry."""
        if isinstance(item.passage, Path):
            return item.passage
        try:
            return Path(tuple(self.state.reachable[name] for name in item.details["path"]))
        except KeyError:
            raise InvalidInput(
                f"Passage {item.passage.id!r:.200} is not of this search: explain what it returned."
            ) from None


def _pruned(item: Ranked[Any]) -> Explanation:
    note = "The cascade left this path to the pruning model: its score says how far it is behind, and no more."
    per = divisor(item.details)
    term = Term("order of the pruning model", item.score * per)
    return Explanation(item.rank, item.score, name_of(item.passage), (term,), per, note)
