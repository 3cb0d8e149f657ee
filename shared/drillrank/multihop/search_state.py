"""The state of one question's search: where paths lead, how likely a reader takes them, and where they go on."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import MutableMapping, Sequence
from itertools import combinations
from typing import NamedTuple

from drillrank.explanation import Term
from drillrank.explanation.terms import PATH
from drillrank.llm import Retrieve
from drillrank.multihop.link_prior import Reader
from drillrank.multihop.links import Mention, PathLinks, Target, link_kinds, targets_of
from drillrank.multihop.residual import Residual
from drillrank.multihop.scoring import PathWithPrior
from drillrank.passages import Passage, Path, Ranked
from drillrank.rerank.base import name_of
from drillrank.vectors import top


class SearchState:
    """The state of one question's search.

    Args:
        query: The question.
        links: Where paths go on.
        own: The passages that the links and the prior know, by id.
        reachable: Passages at hand, by id.
        reader: The prior; None for none.
    """

    def __init__(
        self,
        query: str,
        links: PathLinks,
        own: MutableMapping[str, Passage],
        reachable: ChainMap[str, Passage],
        reader: Reader | None,
    ) -> None:
        self.reachable = reachable
        self.led_to: dict[tuple[str, ...], Sequence[Passage]] = {}  # from paths whose links have been fetched
        self._query, self._links, self._own, self._reader = query, links, own, reader
        self._targets: dict[tuple[str, ...], tuple[Target, ...]] = {}
        self._known_targets: dict[tuple[tuple[str, ...], bool], _LinkTargets] = {}
        self._missing: dict[tuple[str, ...], list[str]] = {}

    def follow(self, query: str, path: Path, /) -> tuple[Target, ...]:
        """Where a path's links lead; asked once, since the search, the prior and the pairs all want to know."""
        if path.ids not in self._targets:
            self._targets[path.ids] = targets_of(self._links, query, path)
        return self._targets[path.ids]

    def name(self, paths: Sequence[Path], passages: Sequence[Passage]) -> None:
        """Let paths lead to passages that were named as missing: each as likely as the next, as names are."""
        for passage in passages:
            self.reachable.setdefault(passage.id, passage)
        for path in paths:
            self._missing[path.ids] = [passage.id for passage in passages if passage.id not in path.ids]

    def start(self, passage: Passage) -> PathWithPrior:
        """The path of one passage."""
        log_prior = self._reader.start(passage.id) + self._reader.length(1) if self._reader else 0.0
        return PathWithPrior(Path((passage,)), log_prior)

    def extended(
        self, kept: Sequence[Ranked[Path]], following: Sequence[Sequence[Passage]], residual: Residual, most: int
    ) -> list[PathWithPrior]:
        """Each path, longer by each of the `most` passages after which the question is likeliest; ties keep the order.

        Args:
            kept: The paths.
            following: Where each of them may go on.
            residual: Tells what the path and one passage more explain of the question.
            most: How many passages each path is followed by at most.
        """
        following = [_others(item.passage.ids, passages) for item, passages in zip(kept, following, strict=True)]
        residual.read(
            passage
            for item, passages in zip(kept, following, strict=True)
            for passage in (*item.passage.passages, *passages)
        )
        longer = []
        for item, passages in zip(kept, following, strict=True):
            if passages:
                steps = self._steps(item.passage, [passage.id for passage in passages])
                posteriors = residual.log_likelihoods(item.passage, passages) + steps
                for place in top(posteriors.round(9), most):  # rounding must not choose between equal ones
                    path = item.passage.extended(passages[place])
                    log_prior = item.details["log_prior"] + steps[place] + self._longer(item.passage)
                    longer.append(PathWithPrior(path, log_prior))
        return longer

    def pairs(self, best: Sequence[Ranked[Path]]) -> list[PathWithPrior]:
        """Any two of the best passages as a path, the better one first, if neither links to the other."""
        targets = {item.passage.ids: self._link_targets(item.passage).links for item in best}
        return [
            PathWithPrior(
                one.passage.extended(other.passage.passages[0]),
                one.details["log_prior"] + self._steps(one.passage, other.passage.ids)[0] + self._longer(one.passage),
            )
            for one, other in combinations(best, 2)
            if targets[one.passage.ids].isdisjoint(other.passage.ids)
            and targets[other.passage.ids].isdisjoint(one.passage.ids)
        ]

    def taken(self, path: Path) -> Term:
        """How the path came to each of its passages, with the log-prior of each step, after the search."""
        start, log_prior = self.start(path.passages[0])
        of_length = self._longer(start, len(path.passages) - 1)  # counted at the start: a step is no likelier for it
        steps = [Term(name_of(path.passages[0]), log_prior + of_length, text="start")]
        for place, passage in enumerate(path.passages[1:], 1):
            before = Path(path.passages[:place])
            [log_prior] = self._steps(before, [passage.id])
            steps.append(Term(name_of(passage), log_prior, text=self._kind(before, passage.id)))
        return Term.sum(PATH, steps)

    def _kind(self, path: Path, id_: str) -> str:
        """By which kind of link a path leads to a passage; of several the first."""
        known = ChainMap(self.reachable, self._own)
        retrieval = ""
        for kind, links in link_kinds(self._links):
            for target in targets_of(links, self._query, path):
                if isinstance(target, Retrieve):
                    retrieval = kind
                elif (name := target if isinstance(target, str) else target.id) in known and known[name].id == id_:
                    return kind
        if id_ in self._missing.get(path.ids, ()):
            return "named as missing"
        led_to = {passage.id for passage in self.led_to.get(path.ids, ())}
        return retrieval if retrieval and id_ in led_to else "jump"

    def _steps(self, path: Path, ids: Sequence[str]) -> list[float]:
        """Log-prior of a path's step to each of the passages."""
        if self._reader is None:
            return [0.0] * len(ids)
        targets = self._link_targets(path)
        return [self._reader.step(name, targets.links, targets.mentions) for name in ids]

    def _longer(self, path: Path, passages: int = 1) -> float:
        """What so many passages more add to a path's log-prior by its length alone."""
        if self._reader is None:
            return 0.0
        length = len(path.passages)
        return self._reader.length(length + passages) - self._reader.length(length)

    def _link_targets(self, path: Path) -> _LinkTargets:
        """Where the path's links lead; what a retrieval brought is no link, but a jump."""
        ids = path.ids
        fetched = ids in self.led_to
        if (ids, fetched) in self._known_targets:
            return self._known_targets[ids, fetched]
        targets = self._known_targets[ids, fetched] = _LinkTargets(set(), {})
        known = self.reachable if fetched else ChainMap(self.reachable, self._own)
        for target in self.follow(self._query, path):
            if isinstance(target, Retrieve):
                continue
            try:
                name = known[target if isinstance(target, str) else target.id].id
            except KeyError:
                continue
            if name in ids:
                continue
            if isinstance(target, Mention):
                targets.mentions[name] = targets.mentions.get(name, 0.0) + target.chance
            else:
                targets.links.add(name)
        if missing := self._missing.get(ids):
            share = 2 if targets.mentions else 1  # of the chance, if the path names others itself
            for name in targets.mentions:
                targets.mentions[name] /= share
            for name in missing:
                targets.mentions[name] = targets.mentions.get(name, 0.0) + 1 / (share * len(missing))
        return targets


class _LinkTargets(NamedTuple):
    """Where a path leads: links, and what its names lead to, each with its chance."""

    links: set[str]
    mentions: dict[str, float]


def _others(ids: tuple[str, ...], passages: Sequence[Passage]) -> list[Passage]:
    """Each passage once, without those that have these ids."""
    return list({passage.id: passage for passage in passages if passage.id not in ids}.values())
