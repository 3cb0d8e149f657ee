"""Result of a comparison: measures, differences, costs and explanations, as tables and as data."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console, Group
from rich.markup import escape
from rich.table import Column, Table

from drillrank.errors import InvalidInput
from drillrank.evaluation.experiment import FIRST_STAGE
from drillrank.evaluation.measures import EvidenceRanks, GoldLabels, answer_type
from drillrank.evaluation.questions import Question
from drillrank.evaluation.results_file import QuestionResult
from drillrank.evaluation.statistics import Pair
from drillrank.explanation import Explanations
from drillrank.explanation.explanations import SCORING
from drillrank.passages import Passage
from drillrank.vectors import Floats

N_SHOWN = 3  # results of a question that are shown and explained

Prices = Mapping[str, float]
"""Price of a million tokens: `{"prompt": ..., "completion": ...}`."""


class Cost(NamedTuple):
    """Cost of a component over all questions.

    Attributes:
        p50: Median time of a question, in seconds.
        p95: 95th percentile of that time.
        per_second: Questions per second, one after the other.
        preparing: Time of loading and indexing, in seconds.
        prompt_tokens: Tokens in all prompts of an LLM; None if the component counts none.
        completion_tokens: Tokens in all answers of the LLM; None as above.
        calls: Number of calls of the LLM; None as above.
        money: Price of all tokens, including those of answers; None without prices or tokens.
        answer_tokens: Tokens of the LLM that answers from the results; None without one.
        n_questions: Number of questions that the component answered.
    """

    p50: float
    p95: float
    per_second: float
    preparing: float
    prompt_tokens: int | None
    completion_tokens: int | None
    calls: int | None
    money: float | None
    answer_tokens: int | None = None
    n_questions: int = 0

    def per_question(self, *totals: int | None) -> float | None:
        """Return the mean of a sum over the questions; None if the component counts none."""
        counts = [total for total in totals if total is not None]
        return sum(counts) / self.n_questions if counts and self.n_questions else None

    @staticmethod
    def of(results: Sequence[QuestionResult], preparing: float, prices: Prices | None) -> Cost:
        """Return the cost of the results of all questions."""
        seconds = [result.seconds for result in results] or [0.0]
        p50, p95 = map(float, np.percentile(seconds, [50, 95]))
        usages = [result.usage for result in results if result.usage]
        answer_usages = [result.answer_usage for result in results if result.answer_usage]
        prompt, completion, calls = _add_usages(usages)
        answer_prompt, answer_completion, _ = _add_usages(answer_usages)
        money = None
        if prices and (usages or answer_usages):
            paid = (prompt + answer_prompt) * prices.get("prompt", 0)
            money = (paid + (completion + answer_completion) * prices.get("completion", 0)) / 1e6
        per_second = len(results) / sum(seconds) if sum(seconds) else 0.0
        answer_tokens = answer_prompt + answer_completion if answer_usages else None
        cost = Cost(p50, p95, per_second, preparing, None, None, None, money, answer_tokens, len(results))
        return cost._replace(prompt_tokens=prompt, completion_tokens=completion, calls=calls) if usages else cost


def _add_usages(usages: Sequence[Mapping[str, int]]) -> list[int]:
    keys = ("prompt_tokens", "completion_tokens", "llm_calls")
    return [sum(usage.get(key, 0) for usage in usages) for key in keys]


class OracleRecall(NamedTuple):
    """Shares of the questions that show where evidence is lost.

    Attributes:
        some: Some evidence is among the candidates. No reranker can do better.
        complete: All evidence is among the candidates.
        inverted: Evidence is among the candidates, and the component does not rank it first.
    """

    some: float
    complete: float
    inverted: float

    @staticmethod
    def of(
        candidate_ranks: Mapping[str, EvidenceRanks], ranks: Mapping[str, EvidenceRanks], depth: int | None = None
    ) -> OracleRecall:
        """Return the shares from the ranks of the evidence by question.

        Args:
            candidate_ranks: Ranks among the candidates; among its own results for a component that searches.
            ranks: Ranks in the component's results.
            depth: Number of candidates that the component saw; None for all.
        """
        n_questions = len(ranks) or 1
        is_seen = {id_: [rank < (depth or math.inf) + 1 for rank in candidate_ranks[id_]] for id_ in ranks}
        n_inverted = sum(any(is_seen[id_]) and 1 not in ranks[id_] for id_ in ranks)
        n_some, n_complete = sum(map(any, is_seen.values())), sum(map(all, is_seen.values()))
        return OracleRecall(n_some / n_questions, n_complete / n_questions, n_inverted / n_questions)


class Explained(NamedTuple):
    """Explanations of a component's first results, or the reason why there are none.

    Attributes:
        why: The explanations; None if there is a note.
        note: Reason for a reader.
        is_failure: True if an error is the reason.
    """

    why: Explanations | None
    note: str = ""
    is_failure: bool = False


@dataclass(frozen=True)
class Comparison:
    """Result of `compare`. `print` shows means, costs, differences and advice.

    Attributes:
        questions: The questions.
        evidence: Evidence of each question, by the question's id.
        ranks: Rank of each item of the evidence, by component and question id.
        measures: Names of the measures.
        primary: The measure that decides.
        values: For each component and measure an array of shape `(questions,)`: 0 if the component failed, NaN if it
            was not asked, or if the measure has no value for the question.
        pairs: All pairs of components, except those of baselines alone, under every measure.
        costs: Cost by component.
        oracle_recall: Shares by component that show where evidence is lost.
        results: Results by component and question id.
        problems: Messages about what went wrong.
        advice: Conclusions from the tests, in words.
        passages: Passages of the corpus and of the questions, by question id and passage id.
        explain: Function that asks a component again for explanations; None if the comparison was interrupted.
    """

    questions: tuple[Question, ...]
    evidence: Mapping[str, GoldLabels]
    ranks: Mapping[str, Mapping[str, EvidenceRanks]]
    measures: tuple[str, ...]
    primary: str
    values: Mapping[str, Mapping[str, Floats]]
    pairs: Sequence[Pair]
    costs: Mapping[str, Cost]
    oracle_recall: Mapping[str, OracleRecall]
    results: Mapping[str, Mapping[str, QuestionResult]]
    problems: tuple[str, ...]
    advice: Sequence[str]
    passages: Mapping[str, Mapping[str, Passage]]
    explain: Callable[[QuestionResult, Question], Explanations] | None = field(default=None, repr=False, compare=False)

    @property
    def failed(self) -> dict[str, int]:
        """Number of failed questions by component."""
        return {name: sum(bool(result.error) for result in results.values()) for name, results in self.results.items()}

    @property
    def unjudged(self) -> dict[str, int]:
        """Number of results by component that gold ids do not judge.

        These are neither in the corpus nor among the candidates that the question names. Without both, they are not
        among those that the first stage finds.
        """
        counts = dict.fromkeys(self.results, 0)
        for question in self.questions:
            first = self.results[FIRST_STAGE].get(question.id)
            judged_ids = self.passages[question.id] or {*getattr(first, "ids", ())}
            for name, results in self.results.items():
                if question.gold and question.id in results:
                    counts[name] += sum(id_ not in judged_ids for id_ in results[question.id].ids)
        return counts

    @property
    def complete(self) -> bool:
        """True if every component answered every question."""
        return not self.problems

    @property
    def components(self) -> tuple[str, ...]:
        """Names of the first stage, the baselines and the components, in this order."""
        return tuple(self.values)

    def mean(self, component: str, measure: str | None = None) -> float:
        """Return the mean over the questions that have a value; NaN if there are none."""
        values = self.values[component][measure or self.primary]
        finite = values[np.isfinite(values)]
        return float(finite.mean()) if len(finite) else float("nan")

    def pair(self, before: str, after: str, measure: str | None = None) -> Pair:
        """Return the comparison of two components, in the order in which they were passed.

        Raises:
            InvalidInput: The pair was not compared, or they have no question in common.
        """
        for pair in self.pairs:
            if (pair.before, pair.after, pair.measure) == (before, after, measure or self.primary):
                return pair
        names = f"{', '.join(self.components):.200}"
        raise InvalidInput(f"before and after must be in the order {names}, got {before!r:.200} and {after!r:.200}.")

    def extremes(self, before: str, after: str, n: int = 5) -> tuple[list[Question], list[Question]]:
        """Return the questions for which `after` is worse than `before` by most, and those for which it is better."""
        changes = self.values[after][self.primary] - self.values[before][self.primary]
        order = [int(index) for index in np.argsort(changes, kind="stable") if np.isfinite(changes[index])]
        worse = [self.questions[index] for index in order if changes[index] < 0][:n]
        better = [self.questions[index] for index in reversed(order) if changes[index] > 0][:n]
        return worse, better

    def explained(self, component: str, question: Question) -> Explained:
        """Explain the first results of a component, which is asked again over the same candidates.

        An error becomes a note.
        """
        result = self.results[component][question.id]
        if result.error:
            return Explained(None, f"It failed: {result.error}", is_failure=True)
        if not result.is_explainable:
            return Explained(None, "It cannot explain its results; the table shows what it returned.")
        if self.explain is None:
            return Explained(None, "Not explained.")
        try:
            return Explained(self.explain(result, question))
        except Exception as error:  # any error of a component costs one explanation, not the report
            return Explained(None, f"Not explained: {type(error).__name__}: {error}"[:500], is_failure=True)

    def to_dict(self) -> dict[str, Any]:
        """Return means, pairs, costs, values and answers as JSON values; NaN becomes None."""
        return {
            "complete": self.complete,
            "scoring": SCORING,
            "problems": list(self.problems),
            "questions": len(self.questions),
            "primary": self.primary,
            "advice": list(self.advice),
            "components": {name: self._component_to_dict(name) for name in self.components},
            "pairs": [{**pair._asdict(), "difference": pair.difference._asdict()} for pair in self.pairs],
            "values": {
                question.id: {
                    name: {measure: _finite(values[measure][index]) for measure in self.measures}
                    for name, values in self.values.items()
                }
                for index, question in enumerate(self.questions)
            },
            "answers": {
                name: {id_: result.answer for id_, result in results.items() if result.answer is not None}
                for name, results in self.results.items()
            },
        }

    def _component_to_dict(self, name: str) -> dict[str, Any]:
        return {
            "means": {measure: _finite(self.mean(name, measure)) for measure in self.measures},
            "cost": self.costs[name]._asdict(),
            "oracle_recall": self.oracle_recall[name]._asdict(),
            "failed": self.failed[name],
            "unjudged": self.unjudged[name],
        }

    def tables(self) -> dict[str, tuple[list[str], list[list[str]]]]:
        """Return the tables of the terminal and the report: by title the names of the columns, and the rows.

        Components are columns, because there are more measures than a terminal has room for.
        """
        return {
            "Means and costs": (["", *self.components], self._mean_rows()),
            f"Differences in {self.primary}": (
                ["pair", "difference", "95 % interval", "p, corrected", "verdict", "questions", "would tell"],
                [_pair_row(pair) for pair in self.pairs if pair.measure == self.primary],
            ),
        }

    def _mean_rows(self) -> list[list[str]]:
        costs = [self.costs[name] for name in self.components]
        recall = [self.oracle_recall[name] for name in self.components]
        figures: dict[str, tuple[str, Sequence[float | None]]] = {
            **{measure: (".3f", [self.mean(name, measure) for name in self.components]) for measure in self.measures},
            **self._rows_by_type(),
            "some evidence was there": (".1%", [one.some for one in recall]),
            "all evidence was there": (".1%", [one.complete for one in recall]),
            "there, but not first": (".1%", [one.inverted for one in recall]),
            "failed": (",", [*self.failed.values()]),
            "unjudged": (",", [*self.unjudged.values()]),
            "tokens per question": (
                ",.1f",
                [cost.per_question(cost.prompt_tokens, cost.completion_tokens) for cost in costs],
            ),
            "calls per question": (",.2f", [cost.per_question(cost.calls) for cost in costs]),
            "tokens per answer": (",.1f", [cost.per_question(cost.answer_tokens) for cost in costs]),
            "money": (".4f", [cost.money for cost in costs]),
            "p50 ms": (".2f", [1000 * cost.p50 for cost in costs]),
            "p95 ms": (".2f", [1000 * cost.p95 for cost in costs]),
            "questions/s": (",.1f", [cost.per_second for cost in costs]),
            "indexing s": (".2f", [cost.preparing for cost in costs]),
        }
        return [
            [name, *("–" if one is None else f"{one:{form}}" for one in row)]
            for name, (form, row) in figures.items()
            if {*row} != {None}
        ]

    def _rows_by_type(self) -> dict[str, tuple[str, Sequence[float | None]]]:
        """Return a row for each type of questions or answers; none if there are no types."""
        measure = "AnswerF1" if "AnswerF1" in self.measures else self.primary
        means = [self.means_by_type(name, measure) for name in self.components]
        kinds = dict.fromkeys(kind for by_type in means for kind in by_type)
        return {f"{measure}, {kind}": (".3f", [by_type.get(kind) for by_type in means]) for kind in kinds}

    def means_by_type(self, component: str, measure: str | None = None) -> dict[str, float]:
        """Return the mean of a measure by type of question.

        A question with a type for each of its answers counts under that of the right answer that the LLM's answer
        matches best, as in QASPER's evaluator. It does not count if no LLM answers.
        """
        values_by_type: dict[str, list[float]] = {}
        values, results = self.values[component][measure or self.primary], self.results[component]
        for question, value in zip(self.questions, values.tolist(), strict=True):
            answer = results[question.id].answer if question.id in results else None
            if math.isfinite(value) and question.types and (len(question.types) == 1 or answer is not None):
                values_by_type.setdefault(answer_type(question, answer), []).append(value)
        return {kind: sum(some) / len(some) for kind, some in sorted(values_by_type.items())}

    def __rich__(self) -> Group:
        tables = []
        for title, (names, rows) in self.tables().items():  # folded, since an ellipsis would hide digits
            tables.append(Table(*(Column(escape(name), overflow="fold") for name in names), title=escape(title)))
            for row in rows:
                tables[-1].add_row(*map(escape, row))
        return Group(*tables, *map(escape, self.advice))

    def __str__(self) -> str:
        console = Console(file=io.StringIO(), width=120, emoji=False)
        with console.capture() as capture:
            console.print(self)
        return capture.get()


def _pair_row(pair: Pair) -> list[str]:
    return [
        f"{pair.before} → {pair.after}",
        f"{pair.difference.mean:+.3f}",
        f"{pair.difference.low:+.3f} to {pair.difference.high:+.3f}",
        f"{pair.adjusted_p:.4f}",
        pair.verdict,
        f"{pair.difference.questions:,}",
        f"{pair.needed:,}" if pair.needed and pair.verdict == "cannot tell" else "–",
    ]


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
