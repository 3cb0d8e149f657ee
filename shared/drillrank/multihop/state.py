"""The search for one question: where paths lead, how likely a reader takes them, and what each passage explains.

    log P(q | c) = Σ_t (1 - α) log mean_d p(q_t | d) + α log max_d p(q_t | d)     over the passages d of c

A word that the path explains already gains nothing from one more passage, so that the words it has not explained, the
residual question, decide where it goes on. Each passage is read once a question, however many paths it might lengthen.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from itertools import combinations
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from drillrank.explanation import Term
from drillrank.explanation.terms import PATH
from drillrank.llm import Retrieve
from drillrank.multihop.links import Mention, PathLinks, Target, link_kinds, targets_of
from drillrank.multihop.prior import Reader
from drillrank.passages import Passage, Path, Ranked
from drillrank.rerank.base import divisor, name_of
from drillrank.vectors import top

Floats = npt.NDArray[np.float64]
LENGTH, ALIGNED = "length of the path", "which passage explains which word"


class PathWithPrior(NamedTuple):
    """A path that waits for its score, with the logarithm of its prior."""

    path: Path
    log_prior: float


@runtime_checkable
class DocumentModel(Protocol):
    """A language model that tells what each document alone says about each token of a question."""

    @property
    def reads_meaning(self) -> bool:
        """Whether a document without a word of the question may be likelier than one with some."""
        ...

    def document_log_probs(self, target: str, texts: Sequence[str], /) -> Floats:
        """Log p(q_t | d), shape (texts, tokens of the target)."""
        ...


class Residual:
    """What the paths of one question explain of it, and would with one passage more.

    Args:
        model: A fitted model.
        query: The question.
        aligned: α.
    """

    def __init__(self, model: DocumentModel, query: str, aligned: float = 0.0) -> None:
        self._model, self._query, self._aligned = model, query, aligned
        self._read: dict[str, Floats] = {}
        self._alignments: dict[tuple[str, ...], float] = {}

    def read(self, passages: Iterable[Passage]) -> None:
        """Score what has not been read, all of it together."""
        new = [text for text in dict.fromkeys(passage.titled_text for passage in passages) if text not in self._read]
        if new:
            self._read |= zip(new, self._model.document_log_probs(self._query, new), strict=True)

    def log_likelihoods(self, path: Path, passages: Sequence[Passage]) -> Floats:
        """Of the question after the path with each of the passages, shape (passages,); all have been read."""
        known = np.array([self._read[passage.titled_text] for passage in path.passages])
        added = np.array([self._read[passage.titled_text] for passage in passages])
        means = np.logaddexp(np.logaddexp.reduce(known), added) - np.log(len(known) + 1)
        tokens: Floats = means + self._aligned * (np.maximum(known.max(axis=0), added) - means)
        total: Floats = tokens.sum(axis=1)
        return total

    def alignment(self, path: Path) -> float:
        """α Σ_t log (max_d p(q_t | d) / mean_d p(q_t | d)) of passages that have been read."""
        if len(path.passages) == 1 or not self._aligned:
            return 0.0
        if (ids := path.ids) not in self._alignments:
            known = np.array([self._read[passage.titled_text] for passage in path.passages])
            means = np.logaddexp.reduce(known) - np.log(len(known))
            self._alignments[ids] = self._aligned * float((known.max(axis=0) - means).sum())
        return self._alignments[ids]

    def places(self, path: Path) -> list[int]:
        """The place of each passage, which have been read: first the one that explains most, then what adds most."""
        left = {place: self._read[passage.titled_text] for place, passage in enumerate(path.passages)}
        places, explained = [0] * len(left), np.full(len(next(iter(left.values()))), -np.inf)
        for number in range(len(left)):
            gains = {place: round(float(np.maximum(explained, read).sum()), 9) for place, read in left.items()}
            best = max(gains, key=gains.__getitem__)
            explained = np.maximum(explained, left.pop(best))
            places[best] = number
        return places


class Search:
    """The state of one question's search.

    Args:
        query: The question.
        links: Where paths go on.
        own: The passages that the links and the prior know, by id.
        reachable: Passages at hand, by id.
        reader: The prior; None for none.
        residual: What passages explain.
        aligns: Whether α counts in the scores.
        similar: The similarity of each text to the question, where that chooses among links; None lets the likelihood.
    """

    def __init__(
        self,
        query: str,
        links: PathLinks,
        own: MutableMapping[str, Passage],
        reachable: ChainMap[str, Passage],
        reader: Reader | None,
        residual: Residual,
        aligns: bool,
        similar: Mapping[str, float] | None = None,
    ) -> None:
        self.reachable, self.residual = reachable, residual
        self.led_to: dict[tuple[str, ...], Sequence[Passage]] = {}  # from paths whose links have been fetched
        self._query, self._kinds, self._own, self._reader = query, link_kinds(links), own, reader
        self._aligns, self._similar = aligns, similar
        self._weight = reader.prior.weight if reader else 0.0
        self._targets: dict[tuple[str, ...], list[tuple[str, tuple[Target, ...]]]] = {}
        self._chances: dict[tuple[tuple[str, ...], bool], list[tuple[str, Mapping[str, float]]]] = {}
        self._missing: dict[tuple[str, ...], list[str]] = {}

    def targets(self, path: Path) -> list[tuple[str, tuple[Target, ...]]]:
        """Where a path's links of each kind lead; asked once, for the search, the prior and the pairs."""
        if path.ids not in self._targets:
            self._targets[path.ids] = [(kind, targets_of(of, self._query, path)) for kind, of in self._kinds]
        return self._targets[path.ids]

    def follow(self, _query: str, path: Path, /) -> Iterable[Target]:
        """Where a path's links lead."""
        return [target for _, targets in self.targets(path) for target in targets]

    def name(self, paths: Sequence[Path], passages: Sequence[Passage]) -> None:
        """Let paths lead to passages that were named as missing, each as likely as the next."""
        for passage in passages:
            self.reachable.setdefault(passage.id, passage)
        for path in paths:
            self._missing[path.ids] = [passage.id for passage in passages if passage.id not in path.ids]

    def start(self, passage: Passage) -> PathWithPrior:
        """The path of one passage."""
        of = self._reader
        return PathWithPrior(Path((passage,)), self._weight * (of.start(passage.id) + of.length(1)) if of else 0.0)

    def extended(
        self, kept: Sequence[Ranked[Path]], following: Sequence[Sequence[Passage]], most: int
    ) -> list[PathWithPrior]:
        """Each path, longer by each of the `most` passages after which the question is likeliest; ties keep the order.

        Args:
            kept: The paths.
            following: Where each of them may go on.
            most: How many passages each path is followed by at most.
        """
        others = [
            list({passage.id: passage for passage in passages if passage.id not in item.passage.ids}.values())
            for item, passages in zip(kept, following, strict=True)
        ]
        self.residual.read(passage for item in kept for passage in item.passage.passages)
        self.residual.read(passage for passages in others for passage in passages)
        longer = []
        for item, passages in zip(kept, others, strict=True):
            if passages:
                steps = self._steps(item.passage, [passage.id for passage in passages])
                if self._similar is None:
                    scores = self.residual.log_likelihoods(item.passage, passages) + steps
                else:
                    scores = np.array([self._similar.get(passage.titled_text, 0.0) for passage in passages])
                best = top(scores.round(9), most)  # rounding must not choose between equal ones
                longer += [self._longer(item, passages[place], steps[place]) for place in best]
        return longer

    def pairs(self, best: Sequence[Ranked[Path]]) -> list[PathWithPrior]:
        """Any two of the best passages as a path, the better one first, if neither links to the other."""
        self.residual.read(item.passage.passages[0] for item in best)
        linked = {item.passage.ids: self._linked(item.passage) for item in best}
        return [
            self._longer(one, other.passage.passages[0], self._steps(one.passage, other.passage.ids)[0])
            for one, other in combinations(best, 2)
            if linked[one.passage.ids].isdisjoint(other.passage.ids)
            and linked[other.passage.ids].isdisjoint(one.passage.ids)
        ]

    def taken(self, path: Path) -> Term:
        """How the path came to each of its passages, with what each step adds to the score, after the search."""
        of, first = self._reader, path.passages[0]
        steps = [Term(name_of(first), self._weight * of.start(first.id) if of else 0.0, text="start")]
        for place, passage in enumerate(path.passages[1:], 1):
            before = Path(path.passages[:place])
            [log_prior] = self._steps(before, [passage.id])
            steps.append(Term(name_of(passage), log_prior, text=self._kind(before, passage.id)))
        if of:
            steps.append(Term(LENGTH, self._weight * of.length(len(path.passages)), text="and"))
        if of and self._aligns and len(path.passages) > 1:
            self.residual.read(path.passages)
            steps.append(Term(ALIGNED, self.residual.alignment(path), text="and"))
        return Term.sum(PATH, steps)

    def ranked_passages(self, paths: Sequence[Ranked[Path]]) -> list[Ranked[Passage]]:
        """Each passage of ranked paths once, with the score and the details of its best path.

        Those of one path come by what each adds to those before it.
        """
        self.residual.read(passage for item in paths for passage in item.passage.passages)
        best: dict[str, tuple[int, int, Passage]] = {}
        for number, item in enumerate(paths):
            if any(passage.id not in best for passage in item.passage.passages):
                for place, passage in zip(self.residual.places(item.passage), item.passage.passages, strict=True):
                    best.setdefault(passage.id, (number, place, passage))
        order = sorted(best, key=lambda name: best[name][:2])
        return [
            Ranked(best[name][2], paths[best[name][0]].score, rank, {**paths[best[name][0]].details})
            for rank, name in enumerate(order, 1)
        ]

    def _kind(self, path: Path, id_: str) -> str:
        """By which kind of link a path leads to a passage; of several the first."""
        for kind, chances in self._chances_of(path):
            if id_ in chances:
                return kind
        retrieval = [kind for kind, targets in self.targets(path) if any(isinstance(of, Retrieve) for of in targets)]
        led_to = {passage.id for passage in self.led_to.get(path.ids, ())}
        return retrieval[0] if retrieval and id_ in led_to else "jump"

    def _steps(self, path: Path, ids: Sequence[str]) -> list[float]:
        """What a path's step to each of the passages adds to its score."""
        if self._reader is None:
            return [0.0] * len(ids)
        chances = [of for _, of in self._chances_of(path)]
        return [self._weight * self._reader.step(name, chances) for name in ids]

    def _longer(self, item: Ranked[Path], passage: Passage, step: float) -> PathWithPrior:
        """The path with one passage more."""
        path, log_prior = item.passage.extended(passage), item.details["log_prior"] + step
        if self._reader is not None:
            of_length = self._reader.length(len(path.passages)) - self._reader.length(len(path.passages) - 1)
            log_prior += self._weight * of_length
        if self._aligns:
            log_prior += self.residual.alignment(path) - self.residual.alignment(item.passage)
        return PathWithPrior(path, log_prior)

    def _linked(self, path: Path) -> set[str]:
        """Where links lead that are no guess."""
        return {name for kind, chances in self._chances_of(path) if kind != "name mention" for name in chances}

    def _chances_of(self, path: Path) -> list[tuple[str, Mapping[str, float]]]:
        """Where the path's links of each kind lead, with the chance of each; what a retrieval brought is a jump."""
        ids = path.ids
        fetched = ids in self.led_to
        if (ids, fetched) in self._chances:
            return self._chances[ids, fetched]
        first, *rest = (*self.reachable.maps, self._own) if not fetched else self.reachable.maps
        found = self._chances[ids, fetched] = []
        for kind, targets in self.targets(path):
            chances: dict[str, float] = {}
            for target in targets:
                if isinstance(target, Retrieve):
                    continue
                name, chance = target if isinstance(target, Mention) else (target, 0.0)
                name = name if isinstance(name, str) else name.id
                at = first.get(name) or next((known[name] for known in rest if name in known), None)
                if at is not None and at.id not in ids:
                    chances[at.id] = chances.get(at.id, 0.0) + chance
            if chances:
                alike = 0.0 if any(chances.values()) else 1 / len(chances)
                found.append((kind, {name: chance or alike for name, chance in chances.items()}))
        if missing := self._missing.get(ids):
            found.append(("named as missing", dict.fromkeys(missing, 1 / len(missing))))
        return found


def log_posterior(item: Ranked[Path]) -> float:
    """Log P(q | c) P(c | q): the score is this for each token of the question."""
    return item.score * divisor(item.details)
