"""What a comparison found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from drillrank.errors import InvalidInput
from drillrank.evaluation.evidence import Evidence
from drillrank.evaluation.explaining import Explained, Explainer, stored
from drillrank.evaluation.questions import Question
from drillrank.evaluation.records import Record
from drillrank.evaluation.running import FIRST_STAGE
from drillrank.evaluation.statistics import Floats, Pair
from drillrank.passages import Passage

Ranks = Sequence[float]


class Cost(NamedTuple):
    """What a component cost.

    Attributes:
        p50: Median seconds of a question.
        p95: 95th percentile.
        per_second: Questions a second, one after the other.
        preparing: Seconds of loading and indexing.
        prompt_tokens: Of an LLM, in all; None where the component told none.
        completion_tokens: As said.
        calls: As said.
        money: By the prices given; None without prices or tokens.
    """

    p50: float
    p95: float
    per_second: float
    preparing: float
    prompt_tokens: int | None
    completion_tokens: int | None
    calls: int | None
    money: float | None

    @staticmethod
    def of(records: Sequence[Record], preparing: float, prices: Mapping[str, float] | None) -> Cost:
        """From the records of all questions."""
        seconds = [record.seconds for record in records]
        p50, p95 = map(float, np.percentile(seconds, [50, 95])) if seconds else (0.0, 0.0)
        told = [record.usage for record in records if record.usage]
        prompt, completion, calls = (
            sum(usage.get(key, 0) for usage in told) if told else None
            for key in ("prompt_tokens", "completion_tokens", "llm_calls")
        )
        money = None
        if prices and prompt is not None and completion is not None:
            money = (prompt * prices.get("prompt", 0) + completion * prices.get("completion", 0)) / 1e6
        per_second = len(seconds) / sum(seconds) if sum(seconds) else 0.0
        return Cost(p50, p95, per_second, preparing, prompt, completion, calls, money)


class OracleRecall(NamedTuple):
    """Where evidence was lost, as shares of the questions.

    Attributes:
        some: Some evidence is among the candidates; no reranker can do better.
        complete: All evidence is.
        inverted: There is evidence among what the component was given, and it does not put it first.
    """

    some: float
    complete: float
    inverted: float

    @staticmethod
    def of(given: Mapping[str, Ranks], found: Mapping[str, Ranks], shown: int | None = None) -> OracleRecall:
        """From the ranks of the evidence, by question: among the candidates, of which it was shown so many, and found.

        What looks for itself is measured by what it found.
        """
        n = len(found) or 1
        there = {id_: [rank < (shown or math.inf) + 1 for rank in given[id_]] for id_ in found}
        inverted = sum(any(there[id_]) and 1 not in ranks for id_, ranks in found.items())
        return OracleRecall(sum(map(any, there.values())) / n, sum(map(all, there.values())) / n, inverted / n)


@dataclass(frozen=True)
class Comparison:
    """What `compare` found.

    Attributes:
        questions: As they were read.
        evidence: Of each question, by its id.
        ranks: By component and question id: the rank at which each item of the evidence is found.
        measures: Names.
        primary: The measure that decides.
        values: Of each component and measure, one value for each question, shape (questions,); 0 where it failed, NaN
            where it was not asked, since Ctrl-C ended the run.
        pairs: Every pair of components with at least one that was asked for, under every measure.
        costs: By component.
        oracle_recall: By component.
        results: The records, by component and question id.
        problems: What went wrong.
        advice: In words, from the tests: what helps, what hurts a good first stage, and what to try next.
        passages: Those of the corpus and of the questions, by question id and id.
        explainer: Asks the components again for explanations; None where they are gone, as in a copy or a pickle.
    """

    questions: tuple[Question, ...]
    evidence: Mapping[str, Evidence]
    ranks: Mapping[str, Mapping[str, Ranks]]
    measures: tuple[str, ...]
    primary: str
    values: Mapping[str, Mapping[str, Floats]]
    pairs: Sequence[Pair]
    costs: Mapping[str, Cost]
    oracle_recall: Mapping[str, OracleRecall]
    results: Mapping[str, Mapping[str, Record]]
    problems: tuple[str, ...]
    advice: Sequence[str]
    passages: Mapping[str, Mapping[str, Passage]]
    explainer: Explainer | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "explainer": None}

    @property
    def failed(self) -> dict[str, int]:
        """By component: how many questions it failed on."""
        return {name: sum(bool(record.error) for record in found.values()) for name, found in self.results.items()}

    @property
    def unjudged(self) -> dict[str, int]:
        """By component: how many results gold ids say nothing about.

        They are neither in the corpus nor among the candidates that the question names; without both, not among those
        that the first stage finds.
        """
        counts = dict.fromkeys(self.results, 0)
        for question in self.questions:
            known = self.passages[question.id] or {*getattr(self.results[FIRST_STAGE].get(question.id), "ids", ())}
            for name, found in self.results.items():
                if question.gold and question.id in found:
                    counts[name] += sum(id_ not in known for id_ in found[question.id].ids)
        return counts

    @property
    def complete(self) -> bool:
        """Whether every component answered every question."""
        return not self.problems

    @property
    def components(self) -> tuple[str, ...]:
        """The first stage and everything beside it, what was asked for last."""
        return tuple(self.values)

    def mean(self, component: str, measure: str | None = None) -> float:
        """Mean over the questions that it was asked; NaN if there is none."""
        found = self.values[component][measure or self.primary]
        asked = found[np.isfinite(found)]
        return float(asked.mean()) if len(asked) else float("nan")

    def pair(self, before: str, after: str, measure: str | None = None) -> Pair:
        """Two components side by side, in the order in which they were given.

        Raises:
            InvalidInput: there is no such pair, or they have no question in common.
        """
        for pair in self.pairs:
            if (pair.before, pair.after, pair.measure) == (before, after, measure or self.primary):
                return pair
        known = f"{', '.join(self.components):.200}"
        raise InvalidInput(f"{before!r:.200} and {after!r:.200} are not compared in this order: {known}.")

    def extremes(self, before: str, after: str, n: int = 5) -> tuple[list[Question], list[Question]]:
        """The questions that `after` answers worse than `before` by most, and those that it answers better."""
        change = self.values[after][self.primary] - self.values[before][self.primary]
        order = [int(place) for place in np.argsort(change, kind="stable") if np.isfinite(change[place])]
        worse = [self.questions[place] for place in order if change[place] < 0][:n]
        better = [self.questions[place] for place in reversed(order) if change[place] > 0][:n]
        return worse, better

    def explained(self, component: str, question: Question) -> Explained:
        """Why the first few results of a component stand where they stand.

        The component is asked again, over the same candidates, and once for each question; with `results` the file
        keeps what it said. What goes wrong is told and not raised.
        """
        record = self.results[component][question.id]
        return stored(record) if self.explainer is None else self.explainer.explained(record, question)

    def to_dict(self) -> dict[str, Any]:
        """For machines: means, pairs, costs, values and explanations; NaN is None.

        Explanations are those that a report has asked for, by component and question.
        """
        return {
            "complete": self.complete,
            "problems": list(self.problems),
            "questions": len(self.questions),
            "primary": self.primary,
            "advice": list(self.advice),
            "components": {
                name: {
                    "means": {measure: _number(self.mean(name, measure)) for measure in self.measures},
                    "cost": self.costs[name]._asdict(),
                    "oracle_recall": self.oracle_recall[name]._asdict(),
                    "failed": self.failed[name],
                    "unjudged": self.unjudged[name],
                }
                for name in self.components
            },
            "pairs": [{**pair._asdict(), "difference": pair.difference._asdict()} for pair in self.pairs],
            "values": {
                question.id: {
                    name: {measure: _number(found[measure][place]) for measure in self.measures}
                    for name, found in self.values.items()
                }
                for place, question in enumerate(self.questions)
            },
            "explanations": {
                name: {id_: record.explanation for id_, record in records.items() if record.explanation}
                for name, records in self.results.items()
            },
        }


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
