"""The search for one question: where paths lead, how likely a reader takes them, and what each passage explains.

    log P(q | c) = Σ_t (1 - α) log mean_d p(q_t | d) + α log max_d p(q_t | d)     over the passages d of c

A word that the path explains already gains nothing from one more passage, so that the words it has not explained, the
residual question, decide where it goes on. Each passage is read once a question, however many paths it might lengthen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from drillrank.errors import InvalidInput
from drillrank.explanation import Explanation, Explanations, Term
from drillrank.explanation.terms import PATH
from drillrank.llm import Requests, RetrievalRequest
from drillrank.multihop.links import FollowFunction, LinkTarget, fetch_targets, list_targets
from drillrank.multihop.prior import RandomSurfer
from drillrank.passages import Passage, Path, Ranked
from drillrank.rerank.base import divisor, name_of
from drillrank.rerank.promptrank import PromptRank
from drillrank.vectors import Floats, top

LENGTH, ALIGNED = "length of the path", "which passage explains which word"


class CandidatePath(NamedTuple):
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


class TokenCoverage:
    """What the paths of one question explain of it, and would with one passage more.

    Args:
        model: A fitted model.
        query: The question.
        aligned: α.
    """

    def __init__(self, model: DocumentModel, query: str, aligned: float = 0.0) -> None:
        self._model, self._query, self._aligned = model, query, aligned
        self._rows: dict[str, int] = {}  # by the ids of passages
        self._read: Floats = np.empty((0, 0))

    def read(self, passages: Iterable[Passage]) -> None:
        """Score what has not been read, all of it together, texts that are equal once."""
        new = [passage for passage in passages if passage.id not in self._rows]
        if texts := dict.fromkeys(passage.titled_text for passage in new):
            rows = dict(zip(texts, range(len(self._read), len(self._read) + len(texts)), strict=True))
            found = self._model.document_log_probs(self._query, list(texts))
            self._read = np.concatenate([self._read, found]) if len(self._read) else found
            self._rows |= {passage.id: rows[passage.titled_text] for passage in new}

    def _of(self, passages: Iterable[Passage]) -> Floats:
        """Log p(q_t | d) of passages that have been read, shape (passages, tokens)."""
        return self._read[[self._rows[passage.id] for passage in passages]]

    def longer(self, path: Path, passages: Sequence[Passage]) -> tuple[Floats, Floats]:
        """Log-likelihoods of the question after the path with each of the passages, and the alignments of these paths.

        Both of shape (passages,); all have been read. Alignment is α Σ_t log (max_d p(q_t | d) / mean_d p(q_t | d)).
        """
        known, added = self._of(path.passages), self._of(passages)
        means = np.logaddexp(np.logaddexp.reduce(known), added) - np.log(len(known) + 1)
        gains = np.maximum(known.max(axis=0), added) - means
        return (means + self._aligned * gains).sum(axis=1), self._aligned * gains.sum(axis=1)

    def alignment(self, path: Path) -> float:
        """That of a path of passages that have been read."""
        if len(path.passages) == 1:
            return 0.0
        [alignment] = self.longer(Path(path.passages[:-1]), path.passages[-1:])[1].tolist()
        return float(alignment)

    def by_gain(self, path: Path) -> list[Passage]:
        """The passages of a path, which have been read: first the one that explains most, then what adds most."""
        left, ordered = list(path.passages), []
        if len(left) == 1:
            return left
        explained: Floats = np.array(-np.inf)
        while left:
            with_each = np.maximum(explained, self._of(left))
            at = int(with_each.sum(axis=1).round(9).argmax())
            explained = with_each[at]
            ordered.append(left.pop(at))
        return ordered


class SearchState:
    """The state of one question's search; called with some of what it found, it explains that.

    Args:
        query: The question.
        prompt_rank: Scores the paths.
        kinds: Where paths go on, by the kinds of links.
        reachable: Passages at hand, by id; what is fetched is added.
        pool: More of them.
        reader: The prior; None for none.
        namesakes: How much worse than a namesake passages fit the question.
        residual: What passages explain.
        aligns: Whether α counts in the scores.
        similar: The similarity of each text to the question, where that chooses among links; None lets the likelihood.
    """

    def __init__(
        self,
        query: str,
        prompt_rank: PromptRank,
        kinds: Sequence[tuple[str, FollowFunction]],
        reachable: dict[str, Passage],
        pool: Mapping[str, Passage],
        reader: RandomSurfer | None,
        namesakes: Callable[[Iterable[Passage]], Mapping[str, float]],
        residual: TokenCoverage,
        aligns: bool,
        similar: Mapping[str, float] | None = None,
    ) -> None:
        self.residual, self._reachable, self._pool = residual, reachable, pool
        self._query, self._prompt_rank, self._kinds, self._reader = query, prompt_rank, kinds, reader
        self._namesakes, self._aligns, self._similar = namesakes, aligns, similar
        self._weight = reader.prior.weight if reader else 0.0
        self._targets: dict[tuple[str, ...], list[tuple[str, tuple[LinkTarget, ...] | Mapping[str, float]]]] = {}
        self._led_to: dict[tuple[str, ...], Sequence[Passage]] = {}  # from paths whose links have been fetched
        self._chances: dict[tuple[str, ...], list[tuple[str, Mapping[str, float]]]] = {}
        self._missing: dict[tuple[str, ...], list[str]] = {}
        self._alignments: dict[tuple[str, ...], float] = {}

    def starts(self, passages: Iterable[Passage]) -> list[CandidatePath]:
        """The paths of one passage."""
        passages = list(passages)
        if (of := self._reader) is None:
            return [CandidatePath(Path((passage,)), 0.0) for passage in passages]
        of.title_penalties.update(self._namesakes(passages))
        steps, length = of.log_steps([passage.id for passage in passages], ()), of.log_length(1)
        return [
            CandidatePath(Path((passage,)), self._weight * (step + length))
            for passage, step in zip(passages, steps, strict=True)
        ]

    def follow(self, paths: Sequence[Path], retrieving: int) -> Requests[list[list[Passage]]]:
        """Where the links of paths lead, what is not at hand fetched; only the first ones may ask for retrievals."""
        targets = []
        for location, path in enumerate(paths):
            of_path = [target for _, of_kind in self._targets_of(path) for target in of_kind]
            if location >= retrieving:
                of_path = [target for target in of_path if not isinstance(target, RetrievalRequest)]
            targets.append(of_path)
        reached = yield from fetch_targets(paths, targets, self._reachable, self._pool)
        self._led_to |= zip((path.ids for path in paths), reached, strict=True)
        return reached

    def name(self, paths: Sequence[Path], passages: Sequence[Passage]) -> None:
        """Let paths lead to passages that were named as missing, each as likely as the next."""
        for passage in passages:
            if passage.id not in self._pool:
                self._reachable.setdefault(passage.id, passage)
        for path in paths:
            self._missing[path.ids] = [passage.id for passage in passages if passage.id not in path.ids]

    def extended(
        self, beam: Sequence[Ranked[Path]], following: Sequence[Sequence[Passage]], most: int
    ) -> list[CandidatePath]:
        """Each path, longer by each of the `most` passages after which the question is likeliest; ties keep the order.

        Args:
            beam: The paths.
            following: Where each of them may go on.
            most: How many passages each path is followed by at most.
        """
        others = []
        for item, passages in zip(beam, following, strict=True):
            ids = item.passage.ids
            others.append(list({passage.id: passage for passage in passages if passage.id not in ids}.values()))
        distinct = {passage.id: passage for passages in others for passage in passages}.values()
        self.residual.read([*(passage for item in beam for passage in item.passage.passages), *distinct])
        if self._reader:
            self._reader.title_penalties.update(self._namesakes(distinct))
        longer = []
        for item, passages in zip(beam, others, strict=True):
            if passages:
                steps = self._steps(item.passage, [passage.id for passage in passages])
                likelihoods, alignments = self.residual.longer(item.passage, passages)
                if self._similar is None:
                    scores = likelihoods + steps
                else:
                    scores = np.array([self._similar.get(passage.titled_text, 0.0) for passage in passages])
                best = top(scores.round(9), most)  # rounding must not choose between equal ones
                longer += [self._longer(item, passages[at], steps[at], float(alignments[at])) for at in best]
        return longer

    def pairs(self, best: Sequence[Ranked[Path]]) -> list[CandidatePath]:
        """Any two of the best passages as a path, the better one first, if neither links to the other, but by names."""
        self.residual.read(item.passage.passages[0] for item in best)
        linked = {
            (item.passage.ids[0], name)
            for item in best
            for kind, chances in self._chances_of(item.passage)
            for name in chances
            if kind != "name mention"
        }
        paired = []
        for location, one in enumerate(best[:-1]):
            others = [other.passage.passages[0] for other in best[location + 1 :]]
            steps = self._steps(one.passage, [passage.id for passage in others])
            alignments = self.residual.longer(one.passage, others)[1].tolist()
            for other, step, alignment in zip(others, steps, alignments, strict=True):
                if linked.isdisjoint([(*one.passage.ids, other.id), (other.id, *one.passage.ids)]):
                    paired.append(self._longer(one, other, step, alignment))
        return paired

    def ranked_passages(self, paths: Sequence[Ranked[Path]]) -> list[Ranked[Passage]]:
        """Each passage of ranked paths once, with the score and the details of its best path.

        Those of one path come by what each adds to those before it.
        """
        self.residual.read(passage for item in paths for passage in item.passage.passages)
        found: dict[str, Ranked[Passage]] = {}
        for item in paths:
            if not all(name in found for name in item.passage.ids):
                for passage in self.residual.by_gain(item.passage):
                    if passage.id not in found:
                        found[passage.id] = Ranked(passage, item.score, len(found) + 1, {**item.details})
        return list(found.values())

    def __call__(self, ranking: Sequence[Ranked[Any]]) -> Explanations:
        """What each token of the question adds, in which document of the path, and how a reader takes that path.

        Raises:
            InvalidInput: an entry is not of this search.
        """
        paths = list(map(self._path, ranking))
        read = [at for at, item in enumerate(ranking) if item.details.get("model") != "unigram"]  # not by a cascade
        paths_read = [paths[at] for at in read]
        entries = self._prompt_rank.explanations(
            self._query,
            paths_read,
            self._prompt_rank.likelihoods(self._query, paths_read),
            [ranking[at] for at in read],
            range(len(read)),
            list(map(self._taken, paths_read)),
        )
        explained = dict(zip(read, entries, strict=True))
        return Explanations((explained.get(at) or _pruned(item) for at, item in enumerate(ranking)), self._query)

    def _path(self, item: Ranked[Any]) -> Path:
        """The path that brought an entry."""
        if isinstance(item.passage, Path):
            return item.passage
        try:
            return Path(tuple(self._reachable.get(name) or self._pool[name] for name in item.details["path"]))
        except KeyError:
            raise InvalidInput(
                f"Passage {item.passage.id!r:.200} is not of this search: explain what it returned."
            ) from None

    def _taken(self, path: Path) -> Term:
        """How the path came to each of its passages, with what each step adds to the score, after the search."""
        of, first = self._reader, path.passages[0]
        steps = [Term(name_of(first), self._weight * of.log_start(first.id) if of else 0.0, text="start")]
        for location, passage in enumerate(path.passages[1:], 1):
            before = Path(path.passages[:location])
            [log_prior] = self._steps(before, [passage.id])
            steps.append(Term(name_of(passage), log_prior, text=self._kind(before, passage.id)))
        if of:
            steps.append(Term(LENGTH, self._weight * of.log_length(len(path.passages)), text="and"))
        if of and self._aligns and len(path.passages) > 1:
            self.residual.read(path.passages)
            steps.append(Term(ALIGNED, self.residual.alignment(path), text="and"))
        return Term.sum(PATH, steps)

    def _kind(self, path: Path, id_: str) -> str:
        """By which kind of link a path leads to a passage; of several the first."""
        for kind, chances in self._chances_of(path):
            if id_ in chances:
                return kind
        retrieval = [
            kind for kind, targets in self._targets_of(path) if any(isinstance(of, RetrievalRequest) for of in targets)
        ]
        led_to = {passage.id for passage in self._led_to.get(path.ids, ())}
        return retrieval[0] if retrieval and id_ in led_to else "jump"

    def _steps(self, path: Path, ids: Sequence[str]) -> list[float]:
        """What a path's step to each of the passages adds to its score."""
        if self._reader is None:
            return [0.0] * len(ids)
        chances = [of for _, of in self._chances_of(path)]
        return [self._weight * step for step in self._reader.log_steps(ids, chances)]

    def _longer(self, item: Ranked[Path], passage: Passage, step: float, alignment: float) -> CandidatePath:
        """The path with one passage more."""
        path, log_prior = item.passage.with_passage(passage), item.details["log_prior"] + step
        if self._reader is not None:
            of_length = self._reader.log_length(len(path.passages)) - self._reader.log_length(len(path.passages) - 1)
            log_prior += self._weight * of_length
        if self._aligns:
            log_prior += alignment - self._alignments.get(item.passage.ids, 0.0)
            self._alignments[path.ids] = alignment
        return CandidatePath(path, log_prior)

    def _targets_of(self, path: Path) -> list[tuple[str, tuple[LinkTarget, ...] | Mapping[str, float]]]:
        """Where a path's links of each kind lead; asked once, for the search, the prior and the pairs."""
        if path.ids not in self._targets:
            self._targets[path.ids] = [(kind, list_targets(follow, self._query, path)) for kind, follow in self._kinds]
        return self._targets[path.ids]

    def _chances_of(self, path: Path) -> list[tuple[str, Mapping[str, float]]]:
        """Where the links of each kind of a path lead that have been fetched, with the chance of each passage.

        What a retrieval brought is a jump.
        """
        if path.ids in self._chances:
            return self._chances[path.ids]
        found = self._chances[path.ids] = []
        reachable, pool = self._reachable, self._pool
        ids = path.ids
        for kind, targets in self._targets_of(path):
            chances: dict[str, float] = {}
            for target, chance in targets.items() if isinstance(targets, Mapping) else zip(targets, repeat(0.0)):
                if not isinstance(target, RetrievalRequest):
                    name = target if isinstance(target, str) else target.id
                    at = reachable.get(name) or pool.get(name)
                    if at is not None and at.id not in ids:
                        chances[at.id] = chances.get(at.id, 0.0) + chance
            if chances:  # which are told of all of a kind, or of none
                found.append((kind, {name: chance or 1 / len(chances) for name, chance in chances.items()}))
        if missing := self._missing.get(path.ids):
            found.append(("named as missing", dict.fromkeys(missing, 1 / len(missing))))
        return found


def _pruned(item: Ranked[Any]) -> Explanation:
    note = "The cascade left this path to the pruning model: its score says how far it is behind, and no more."
    per = divisor(item.details)
    term = Term("order of the pruning model", item.score * per)
    return Explanation(item.rank, item.score, name_of(item.passage), (term,), per, note)
