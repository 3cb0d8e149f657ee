"""Compare components on one's own questions: what each brings, whether that is more than noise, and what it costs."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console, Group
from rich.markup import escape
from rich.table import Column, Table

from drillrank.errors import InvalidInput
from drillrank.evaluation.experiment import BM25, FIRST_STAGE, FUSION, Experiment, Ranks, Record
from drillrank.evaluation.measures import Evidence, check_measures, default_measures
from drillrank.evaluation.questions import CorpusSource, Question, QuestionSource
from drillrank.evaluation.statistics import Pair, difference, holm, least_questions, questions_that_would_tell, verdict
from drillrank.evaluation.systems import system
from drillrank.explanation import Explanations
from drillrank.explanation.explanations import SCORING, find_explainer
from drillrank.llm import LLM
from drillrank.passages import Passage, Path
from drillrank.progress import OnProgress
from drillrank.rerank.promptrank import PromptRank
from drillrank.rerank.upr import UPR
from drillrank.vectors import Floats

SHOWN = 3  # results of a question that are shown and explained
_EQUAL = 0.01  # a difference that nobody notices; of measures between 0 and 1
_MOST_QUESTIONS = 20_000  # that it is worth asking for
_MISSING = 0.1  # share of questions without evidence among the candidates from which on they are the problem

Prices = Mapping[str, float]


# What was found


class Cost(NamedTuple):
    """What a component cost.

    Attributes:
        p50: Median seconds of a question.
        p95: 95th percentile.
        per_second: Questions a second, one after the other.
        preparing: Seconds of loading and indexing.
        prompt_tokens: Of an LLM, in all; None where the component counts none.
        completion_tokens: As said.
        calls: As said.
        money: By the prices given; None without prices or tokens. Answers are part of it.
        answer_tokens: In prompts and completions of the LLM that answers from what was found; None without one.
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

    @staticmethod
    def of(records: Sequence[Record], preparing: float, prices: Prices | None) -> Cost:
        """From the records of all questions."""
        seconds = [record.seconds for record in records] or [0.0]
        p50, p95 = map(float, np.percentile(seconds, [50, 95]))
        usages, of_answers = [r.usage for r in records if r.usage], [r.answer_usage for r in records if r.answer_usage]
        keys = ("prompt_tokens", "completion_tokens", "llm_calls")
        found, read = ([sum(one.get(key, 0) for one in some) for key in keys] for some in (usages, of_answers))
        money = None
        if prices and (usages or of_answers):
            paid = (found[0] + read[0]) * prices.get("prompt", 0) + (found[1] + read[1]) * prices.get("completion", 0)
            money = paid / 1e6
        per_second = len(records) / sum(seconds) if sum(seconds) else 0.0
        prompt, completion, calls = found if usages else (None, None, None)
        to_answer = read[0] + read[1] if of_answers else None
        return Cost(p50, p95, per_second, preparing, prompt, completion, calls, money, to_answer)


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


class Explained(NamedTuple):
    """Why a component ranked as it did, or why nobody knows.

    Attributes:
        why: Of its first few results; None where there is a note.
        note: For readers.
        failed: Whether something went wrong.
    """

    why: Explanations | None
    note: str = ""
    failed: bool = False


@dataclass(frozen=True)
class Comparison:
    """What `compare` found; `print` shows means, costs, differences and advice.

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
        advice: In words, from the tests: what helps, and what hurts a good first stage.
        passages: Those of the corpus and of the questions, by question id and id.
        explain: Asks a component again for explanations; None where the comparison was interrupted.
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
    explain: Callable[[Record, Question], Explanations] | None = field(default=None, repr=False, compare=False)

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
        known = f"{', '.join(self.components):.200}"
        raise InvalidInput(f"{before!r:.200} and {after!r:.200} are not compared in this order: {known}.")

    def extremes(self, before: str, after: str, n: int = 5) -> tuple[list[Question], list[Question]]:
        """The questions that `after` answers worse than `before` by most, and those that it answers better."""
        change = self.values[after][self.primary] - self.values[before][self.primary]
        order = [int(location) for location in np.argsort(change, kind="stable") if np.isfinite(change[location])]
        worse = [self.questions[location] for location in order if change[location] < 0][:n]
        better = [self.questions[location] for location in reversed(order) if change[location] > 0][:n]
        return worse, better

    def explained(self, component: str, question: Question) -> Explained:
        """Why the first few results of a component stand where they stand.

        The component is asked again, over the same candidates. What goes wrong is told and not raised.
        """
        record = self.results[component][question.id]
        if record.error:
            return Explained(None, f"It failed: {record.error}", failed=True)
        if not record.explains:
            return Explained(None, "It cannot say why; what it told is in the table.")
        if self.explain is None:
            return Explained(None, "Not explained.")
        try:
            return Explained(self.explain(record, question))
        except Exception as problem:  # whatever a component raises costs one explanation, not the report
            return Explained(None, f"Not explained: {type(problem).__name__}: {problem}"[:500], failed=True)

    def to_dict(self) -> dict[str, Any]:
        """For machines: means, pairs, costs, values and answers; NaN is None."""
        return {
            "complete": self.complete,
            "scoring": SCORING,
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
                    name: {measure: _number(found[measure][location]) for measure in self.measures}
                    for name, found in self.values.items()
                }
                for location, question in enumerate(self.questions)
            },
            "answers": {
                name: {id_: one.answer for id_, one in found.items() if one.answer is not None}
                for name, found in self.results.items()
            },
        }

    def tables(self) -> dict[str, tuple[list[str], list[list[str]]]]:
        """What the terminal and the report show: by title the names of the columns, and rows.

        Components are columns, since there are more measures than a terminal has room for.
        """
        costs = [self.costs[of] for of in self.components]
        recall = [self.oracle_recall[of] for of in self.components]
        figures: dict[str, tuple[str, Sequence[float | None]]] = {
            **{name: (".3f", [self.mean(of, name) for of in self.components]) for name in self.measures},
            "some evidence was there": (".1%", [one.some for one in recall]),
            "all evidence was there": (".1%", [one.complete for one in recall]),
            "there, but not first": (".1%", [one.inverted for one in recall]),
            "failed": (",", [*self.failed.values()]),
            "unjudged": (",", [*self.unjudged.values()]),
            "tokens in": (",", [cost.prompt_tokens for cost in costs]),
            "tokens out": (",", [cost.completion_tokens for cost in costs]),
            "calls": (",", [cost.calls for cost in costs]),
            "tokens to answer": (",", [cost.answer_tokens for cost in costs]),
            "money": (".4f", [cost.money for cost in costs]),
            "p50 ms": (".2f", [1000 * cost.p50 for cost in costs]),
            "p95 ms": (".2f", [1000 * cost.p95 for cost in costs]),
            "questions/s": (",.1f", [cost.per_second for cost in costs]),
            "indexing s": (".2f", [cost.preparing for cost in costs]),
        }
        rows = [
            [name, *("–" if one is None else f"{one:{form}}" for one in row)]
            for name, (form, row) in figures.items()
            if {*row} != {None}
        ]
        names = ["pair", "difference", "95 % interval", "p, corrected", "verdict", "questions", "would tell"]
        pairs = [
            [
                f"{pair.before} → {pair.after}",
                f"{pair.difference.mean:+.3f}",
                f"{pair.difference.low:+.3f} to {pair.difference.high:+.3f}",
                f"{pair.adjusted_p:.4f}",
                pair.verdict,
                f"{pair.difference.questions:,}",
                f"{pair.needed:,}" if pair.needed and pair.verdict == "cannot tell" else "–",
            ]
            for pair in self.pairs
            if pair.measure == self.primary
        ]
        return {"Means and costs": (["", *self.components], rows), f"Differences in {self.primary}": (names, pairs)}

    def __rich__(self) -> Group:
        tables = []
        for title, (names, rows) in self.tables().items():  # folded, since an ellipsis would cut digits off
            tables.append(Table(*(Column(escape(name), overflow="fold") for name in names), title=escape(title)))
            for row in rows:
                tables[-1].add_row(*map(escape, row))
        return Group(*tables, *map(escape, self.advice))

    def __str__(self) -> str:
        console = Console(file=io.StringIO(), width=120, emoji=False)
        with console.capture() as shown:
            console.print(self)
        return shown.get()


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


# How it is found


def compare(
    questions: QuestionSource,
    components: Mapping[str, Any] | Iterable[str],
    corpus: CorpusSource | None = None,
    *,
    first_stage: Any = None,
    candidates: int = 50,
    measures: Sequence[str] | None = None,
    primary: str | None = None,
    columns: Mapping[str, str] | None = None,
    prices: Prices | None = None,
    llm: LLM | str | None = None,
    results: str | os.PathLike[str] | None = None,
    on_progress: OnProgress | None = None,
) -> Comparison:
    """Compare components on questions whose evidence is known.

    All rerankers see the same candidates: those that the questions name, else those that the first stage finds. The
    first stage itself takes part as `"first stage"`, and beside it `"BM25"` and their reciprocal rank fusion,
    `"first stage + BM25"`, unless the first stage is BM25 itself. A component that looks for itself is compared as it
    is. What a component brought is judged without regard to the others (`drillrank.evaluation.measures`).

    Args:
        questions: A `.jsonl` or `.csv` file or mappings: `question`, one at least of `gold` (ids of passages), `spans`
            (texts that are evidence) and `answers`, and perhaps `id`, `candidates` and their `scores`.
        components: What is compared, by the names of the report: one of ours by name, a dotted path, a mapping with
            `component` and settings, or an object (see `drillrank.evaluation.systems.system`). A list of names or
            paths will do.
        corpus: Files, folders, or passages; None where the questions bring their candidates or `first_stage` finds
            them elsewhere.
        first_stage: A retriever of either host, a dotted path to one, or a function from a question to passages. None
            is BM25 over the corpus.
        candidates: How many the first stage finds for each question.
        measures: Names; None for all that the questions say something for (`drillrank.evaluation.measures`).
        primary: The measure that decides; the first one by default.
        columns: What the file calls a column that has another name there.
        prices: What a million tokens cost, `{"prompt": ..., "completion": ...}`; for components that count them.
        llm: Answers each question that has `answers` from what each component found, as `D3` takes an LLM: as many
            passages as fit into a prompt, best first. `EM` and `AnswerF1` judge its answers.
        results: A JSON Lines file where each result is kept; what is there under the same name, settings, version and
            candidates is not computed again, what differs in one of them is, with a warning.
        on_progress: Callback, called as `(done, total)` after every question.

    Returns:
        The comparison: values, differences with intervals and verdicts, costs. A question that a component fails on
        counts 0. It is partial, with a warning, where a component failed or Ctrl-C ended it.

    Raises:
        InvalidInput: a row, a component, a measure or `results` cannot be used; the message names it.
        MissingExtra: ir-measures or scipy is not installed.

    >>> town = {"id": "1", "text": "Basel is a town in Switzerland."}
    >>> river = {"id": "2", "text": "The Rhine is the river that flows through Basel, a town."}
    >>> rows = [{"question": "Which river flows through Basel?", "gold": ["2"], "candidates": [town, river]}]
    >>> found = compare(rows, ["UPR"], measures=["AllR@1"])
    >>> found.mean("UPR", "AllR@1"), found.mean("first stage", "AllR@1")
    (1.0, 0.0)
    """
    experiment = Experiment(questions, corpus, first_stage, candidates, columns, results, llm)
    checked_questions, answered = experiment.questions, llm is not None
    names = (
        (measures,)
        if isinstance(measures, str)
        else tuple(measures or default_measures(checked_questions, answered=answered))
    )
    names = tuple(dict.fromkeys([primary, *names] if primary and primary not in names else names))
    check_measures(names, checked_questions, answered=answered)
    for name, price in (prices or {}).items():
        if name not in ("prompt", "completion") or not isinstance(price, int | float) or not price >= 0:
            problem = f"not {name!r:.200}: {price!r:.200}"
            raise InvalidInput(f"Prices are those of a million prompt and completion tokens; {problem}.")
    if not isinstance(components, Mapping):
        components = {str(item): item for item in ([components] if isinstance(components, str) else components)}
    named, anyway = {str(name): given for name, given in components.items()}, (FIRST_STAGE, BM25, FUSION)
    if not named or not named.keys().isdisjoint(anyway):
        problem = f"{', '.join(anyway)} take part anyway; not {list(named)!r:.200}"
        raise InvalidInput(f"Name the components to compare; {problem}.")
    baselines = experiment.baselines()
    systems = [*baselines, *(system(name, given, experiment.corpus) for name, given in named.items())]
    run = experiment.run(systems, on_progress)
    found, ranks, costs, recall = {}, {}, {}, {}
    for one in (experiment.first_stage, *systems):
        records = run.results[one.name]
        found[one.name], ranks[one.name] = experiment.measured(names, records)
        costs[one.name] = Cost.of([record for record in records.values() if not record.error], one.seconds, prices)
        shown = (ranks[FIRST_STAGE], ranks[one.name], one.depth) if one.reranks else (ranks[one.name], ranks[one.name])
        recall[one.name] = OracleRecall.of(*shown)

    def explain(record: Record, question: Question) -> Explanations:
        [one] = (one for one in (experiment.first_stage, *systems) if one.name == record.component)
        again, why = one.found(question.text, *run.candidates[question.id], experiment.corpus, explained=SHOWN)
        if record.ids[:SHOWN] != [passage.id for passage in again.passages[:SHOWN]]:
            raise InvalidInput("asked again, it ranks otherwise: it has changed, or its results differ by chance")
        return why

    compared = Comparison(
        questions=tuple(checked_questions),
        evidence=experiment.evidence,
        ranks=ranks,
        measures=names,
        primary=primary or names[0],
        values=found,
        pairs=_pairs(found, names, {FIRST_STAGE, *(one.name for one in baselines)}),
        costs=costs,
        oracle_recall=recall,
        results=run.results,
        problems=tuple(run.problems),
        advice=(),
        passages={question.id: experiment.corpus.known(question) for question in checked_questions},
        explain=None if run.interrupted else explain,
    )
    return replace(compared, advice=_advice(compared, named, [one.name for one in baselines]))


def _pairs(found: Mapping[str, Mapping[str, Floats]], names: Sequence[str], anyway: set[str]) -> list[Pair]:
    """Every pair but those of what takes part anyway; Holm's correction is over the pairs of one measure."""
    pairs: list[Pair] = []
    for name in names:
        compared = []
        for before, after in combinations(found, 2):
            differences = found[after][name] - found[before][name]
            differences = differences[np.isfinite(differences)]
            if len(differences) and after not in anyway:
                compared.append((before, after, differences, difference(differences)))
        adjusted = holm([item.p for *_, item in compared])
        for (before, after, differences, item), p in zip(compared, adjusted, strict=True):
            needed = questions_that_would_tell(differences, len(compared))
            pairs.append(Pair(before, after, name, item, p, verdict(item.mean, p), needed))
    return pairs


# What to do about it, in words that the intervals bear out


def _advice(found: Comparison, components: Iterable[str], baselines: Sequence[str]) -> list[str]:
    """What helps, what hurts a good first stage, and what nobody can tell yet."""
    lines = []
    failed, unjudged = found.failed, found.unjudged
    for name in components:
        results = found.results[name].values()
        against = {pair.before: pair for pair in found.pairs if (pair.after, pair.measure) == (name, found.primary)}
        if len(results) == failed[name]:
            lines.append(f"{name} answered no question.")
        elif 0 < unjudged[name] == sum(len(record.ids) for record in results):
            lines.append(
                f"Nothing that {name} brought is in the corpus or among the candidates, by id or by text, so gold ids "
                "cannot tell what it is worth: give its passages the corpus's ids, or ask by spans or answers."
            )
        else:
            pair = against[FIRST_STAGE]
            line = [_verdict(pair)]
            best = min((against[one] for one in baselines), key=lambda pair: pair.difference.mean, default=None)
            if best is not None and best.verdict != "better":
                does = "is better" if best.verdict == "worse" else "is not shown to be worse"
                line.append(f"{best.before} {does}: {_change(best)}.")
            if failed[name]:
                line.append(f"It failed on {failed[name]:,} of {len(results):,} questions, which count 0.")
            lines.append(" ".join(line))
    missing = 1 - found.oracle_recall[FIRST_STAGE].some
    if missing >= _MISSING and failed[FIRST_STAGE] < len(found.results[FIRST_STAGE]):  # of what failed nobody knows
        lines.append(
            f"{missing:.0%} of the questions have no evidence among the candidates: no reranker can help them. More "
            "candidates, or another first stage, may."
        )
    if not baselines:
        lines.append("The first stage is BM25: neither BM25 nor its fusion with the first stage stands beside it.")
    return lines


def _change(pair: Pair) -> str:
    mean, low, high, _, _ = pair.difference
    return f"{pair.measure} {mean:+.3f} ({low:+.3f} to {high:+.3f})"


def _verdict(pair: Pair) -> str:
    _, low, high, _, n = pair.difference
    if pair.verdict == "better":
        return f"{pair.after} helps: {_change(pair)}."
    if pair.verdict == "worse":
        return f"{pair.after} hurts a first stage that was better without it: {_change(pair)}. Leave it out."
    if n >= least_questions() and low > -_EQUAL and high < _EQUAL:
        return f"{pair.after} and {pair.before} are practically equal: {_change(pair)}. Take the cheaper one."
    if pair.needed is None:
        more = "there is no difference at all"
    elif pair.needed > _MOST_QUESTIONS:
        more = "so small a difference is not worth the questions that would tell"
    else:
        more = f"about {pair.needed:,} such questions would"
    return f"{pair.after}: {n:,} questions cannot tell, {_change(pair)}; {more}."


# Why a passage stands where it stands, whatever ranked it


def explain(query: str, ranking: Sequence[Any], ranker: Any = None) -> Explanations:
    """Why each entry of a ranking stands where it stands: above all, what each token of the question adds.

    Args:
        query: The question that was asked.
        ranking: What `rank`, `search`, `search_paths` or `retrieve` returned, or some of it. Without what they
            remember, as of a copy or in another list, a model without a collection of its own (`"unigram"`, not fitted)
            needs all candidates: its statistics are theirs.
        ranker: What made it: `UPR`, `PromptRank`, `PathSearch`, `Relevance`, `MonoT5` or `BRMGR`. None is what the
            ranking remembers, as `ranking.explain()` does, and else `UPR()`, or `PromptRank()` for paths.

    Returns:
        One explanation for each entry, in order; `total` equals the score within 1e-6, with a served model within 1e-4.
        It shows itself in notebooks, in terminals (rich, or `print`) and as a picture (`svg()`).

    Raises:
        InvalidInput: the scores are not those of this ranker, for one of the reasons above, or the ranking was made for
            another question.

    >>> ranking = UPR().rank("Who wrote Emma?", ["Emma is a novel that Jane Austen wrote.", "Basel lies on the Rhine."])
    >>> best = explain("Who wrote Emma?", ranking)[0]
    >>> max(best.tokens, key=lambda token: token.value).name
    'emma'
    >>> abs(best.total - best.score) < 1e-6
    True
    """
    if ranker is not None:
        found: Explanations = ranker.explain(query, ranking)
        return found
    explainer = find_explainer(ranking)
    if explainer is not None:
        found = explainer(ranking)
        if found.question != query:
            raise InvalidInput(f"The ranking was made for {found.question!r:.80}, not for {query!r:.80}.")
        return found
    of_paths = any(isinstance(item.passage, Path) for item in ranking)
    return PromptRank().explain(query, ranking) if of_paths else UPR().explain(query, ranking)
