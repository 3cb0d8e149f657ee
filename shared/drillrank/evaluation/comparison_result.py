"""What a comparison found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from drillrank.errors import InvalidInput
from drillrank.evaluation.advice import advice
from drillrank.evaluation.explaining import Explained, Explainer, stored
from drillrank.evaluation.questions import Question
from drillrank.evaluation.records import Record
from drillrank.evaluation.running import FIRST_STAGE
from drillrank.evaluation.statistics import Floats, Pair
from drillrank.passages import Passage


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


class Reach(NamedTuple):
    """Where evidence was lost, as shares of the questions.

    Attributes:
        ceiling: Some evidence is among the candidates; no reranker can do better.
        complete: All evidence is.
        inverted: There is evidence among what the component was given, and something else stands first.
    """

    ceiling: float
    complete: float
    inverted: float

    @staticmethod
    def of(
        questions: Sequence[Question],
        gold: Mapping[str, set[str]],
        candidates: Mapping[str, Record],
        results: Mapping[str, Record],
        shown: int | None,
    ) -> Reach:
        """From the first stage's records, of which the component was shown so many, and its own.

        What looks for itself (`shown` is 0) is measured by what it found.
        """
        some = everything = inverted = 0
        asked = [q for q in questions if q.id in results and q.id in candidates]
        for question in asked:
            wanted = gold[question.id]
            given = set(results[question.id].ids if shown == 0 else candidates[question.id].ids[:shown])
            some += bool(wanted & given)
            everything += bool(wanted) and wanted <= given
            inverted += (
                bool(wanted & given)
                and results[question.id].ids[:1] != []
                and (results[question.id].ids[0] not in wanted)
            )
        n = len(asked) or 1
        return Reach(some / n, everything / n, inverted / n)


@dataclass(frozen=True)
class Comparison:
    """What `compare` found.

    Attributes:
        questions: As they were read.
        gold: Ids of the evidence, by question id.
        measures: Names.
        primary: The measure that decides.
        values: Of each component and measure, one value for each question, shape (questions,); NaN where it failed.
        pairs: Every pair of components under every measure.
        costs: By component.
        reach: By component.
        results: The records, by component and question id.
        problems: What went wrong.
        complete: Whether every component answered every question.
        passages: By question id: all that there were.
        explainer: Asks the components again for explanations; None where they are gone, as in a copy or a pickle.
    """

    questions: tuple[Question, ...]
    gold: Mapping[str, set[str]]
    measures: tuple[str, ...]
    primary: str
    values: Mapping[str, Mapping[str, Floats]]
    pairs: Sequence[Pair]
    costs: Mapping[str, Cost]
    reach: Mapping[str, Reach]
    results: Mapping[str, Mapping[str, Record]]
    problems: tuple[str, ...]
    complete: bool
    passages: Mapping[str, Mapping[str, Passage]]
    explainer: Explainer | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "explainer": None}

    @property
    def components(self) -> tuple[str, ...]:
        """The first stage and everything beside it."""
        return tuple(self.values)

    def mean(self, component: str, measure: str | None = None) -> float:
        """Mean over the questions that it answered; NaN if there is none."""
        found = self.values[component][measure or self.primary]
        answered = found[np.isfinite(found)]
        return float(answered.mean()) if len(answered) else float("nan")

    def pair(self, before: str, after: str, measure: str | None = None) -> Pair:
        """Two components side by side, in the order in which they were given.

        Raises:
            InvalidInput: there is no such pair, or they have no question in common.
        """
        for pair in self.pairs:
            if (pair.before, pair.after, pair.measure) == (before, after, measure or self.primary):
                return pair
        raise InvalidInput(f"{before!r} and {after!r} are not compared in this order: {', '.join(self.components)}.")

    @property
    def advice(self) -> list[str]:
        """In words, from the intervals: what helps, what hurts a good first stage, and what to try next."""
        pairs = {pair.after: pair for pair in self.pairs if (pair.before, pair.measure) == (FIRST_STAGE, self.primary)}
        specs = {name: next((item.spec for item in self.results[name].values()), "") for name in self.components[1:]}
        strangers = {name for name in specs if any(one.gold for one in self.questions) and self._is_strange(name)}
        ceiling = self.reach[FIRST_STAGE].ceiling if self.results[FIRST_STAGE] else 1.0  # of what failed nobody knows
        return advice(pairs, specs, ceiling, strangers)

    def _is_strange(self, name: str) -> bool:
        """Whether all that a component brought is neither in the corpus nor among the candidates."""
        first = self.results[FIRST_STAGE]
        brought = [(found, id_) for found in self.results[name].values() for id_ in found.ids]
        return bool(brought) and all(
            id_ in found.texts and id_ not in first[found.question].texts for found, id_ in brought
        )

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
            "advice": self.advice,
            "components": {
                name: {
                    "means": {measure: _number(self.mean(name, measure)) for measure in self.measures},
                    "cost": self.costs[name]._asdict(),
                    "reach": self.reach[name]._asdict(),
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
