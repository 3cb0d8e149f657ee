"""Compare components on one's own questions: what each brings, whether that is more than noise, and what it costs."""

from __future__ import annotations

import io
import math
import os
import re
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Collection as Names
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, NamedTuple, Protocol

import numpy as np
from rich.console import Console, Group
from rich.markup import escape
from rich.table import Column, Table

from drillrank.drilldown.answering import answer
from drillrank.errors import DrillrankWarning, InvalidInput, check_positive
from drillrank.evaluation.evidence import Evidence, evidence_of
from drillrank.evaluation.measures import check_measures, default_measures, values
from drillrank.evaluation.questions import (
    Collection,
    CorpusSource,
    Question,
    QuestionSource,
    check_gold,
    read_corpus,
    read_questions,
)
from drillrank.evaluation.records import Record, Records, digest, fingerprint, spec_of
from drillrank.evaluation.statistics import (
    Floats,
    Pair,
    difference,
    holm,
    least_questions,
    questions_that_would_tell,
    verdict,
)
from drillrank.evaluation.systems import System, system
from drillrank.explanation import Explainable, Explanations
from drillrank.likelihood.chat import load_llm
from drillrank.llm import LLM
from drillrank.passages import Passage, Path, Ranked
from drillrank.rerank.promptrank import PromptRank
from drillrank.rerank.upr import UPR
from drillrank.vectors import BM25Index, top
from drillrank.views import merge_views

FIRST_STAGE, BM25, FUSION = "first stage", "BM25", "first stage + BM25"  # what takes part anyway
SHOWN = 3  # results of a question that are shown and explained
_KEPT = 100  # results of each question; of the first stage all, since they are what others rank
_GIVE_UP = 5  # failures in a row
_EQUAL = 0.01  # a difference that nobody notices; of measures between 0 and 1
_MOST_QUESTIONS = 20_000  # that it is worth asking for
_LOST = 0.1  # share of questions without evidence among the candidates from which on they are the problem
_CITATION = re.compile(r"\s*\[[\d, ]+\]")

OnProgress = Callable[[int, int], object]
Prices = Mapping[str, float]
Ranks = Sequence[float]


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
        advice: In words, from the tests: what helps, what hurts a good first stage, and what to try next.
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
        if record.error:
            return Explained(None, f"It failed: {record.error}", failed=True)
        if not record.explains:
            return Explained(None, "It cannot say why; what it told is in the table.")
        if not record.explanation and self.explain is None:
            return Explained(None, "Not explained.")
        try:
            if not record.explanation and self.explain is not None:
                record.explanation = self.explain(record, question).to_dict()
            return Explained(Explanations.from_dict(record.explanation))
        except Exception as problem:  # whatever a component raises costs one explanation, not the report
            return Explained(None, f"Not explained: {type(problem).__name__}: {problem}"[:500], failed=True)

    def to_dict(self) -> dict[str, Any]:
        """For machines: means, pairs, costs, values, answers and explanations; NaN is None.

        Explanations are those that a report has asked for, by component and question.
        """

        def of_records(name: str) -> dict[str, dict[str, Any]]:
            records = {
                of: {id_: getattr(one, name) for id_, one in found.items()} for of, found in self.results.items()
            }
            return {of: {id_: value for id_, value in found.items() if value} for of, found in records.items()}

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
            "answers": of_records("answer"),
            "explanations": of_records("explanation"),
        }

    def tables(self) -> dict[str, tuple[list[str], list[list[str]]]]:
        """What the terminal and the report show: by title the names of the columns, and rows.

        Components are columns, since there are more measures than a terminal has room for.
        """
        numbers = {
            "p50 ms": [1000 * self.costs[of].p50 for of in self.components],
            "p95 ms": [1000 * self.costs[of].p95 for of in self.components],
            "questions/s": [self.costs[of].per_second for of in self.components],
            "indexing s": [self.costs[of].preparing for of in self.components],
        }
        counts: dict[str, Sequence[int | None]] = {
            "failed": [*self.failed.values()],
            "unjudged": [*self.unjudged.values()],
            "tokens in": [self.costs[of].prompt_tokens for of in self.components],
            "tokens out": [self.costs[of].completion_tokens for of in self.components],
            "tokens to answer": [self.costs[of].answer_tokens for of in self.components],
            "calls": [self.costs[of].calls for of in self.components],
        }
        recall = [self.oracle_recall[of] for of in self.components]
        lost = {"some evidence was there": 0, "all evidence was there": 1, "there, but not first": 2}
        rows = [
            *([name, *(f"{self.mean(of, name):.3f}" for of in self.components)] for name in self.measures),
            *([name, *(f"{shares[place]:.1%}" for shares in recall)] for name, place in lost.items()),
            *(
                [name, *("–" if n is None else f"{n:,}" for n in some)]
                for name, some in counts.items()
                if {*some} - {None}
            ),
            *([name, *(f"{number:,.2f}" for number in some)] for name, some in numbers.items()),
        ]
        money = [self.costs[of].money for of in self.components]
        rows += [["money", *("–" if cost is None else f"{cost:.4f}" for cost in money)]] if {*money} - {None} else []
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
        console = Console(file=io.StringIO(), width=120)
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
    is. What a component brought is judged without regard to the others (`drillrank.evaluation.evidence`).

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
    >>> asked = [{"question": "Which river flows through Basel?", "gold": ["2"], "candidates": [town, river]}]
    >>> found = compare(asked, ["UPR"], measures=["AllR@1"])
    >>> found.mean("UPR", "AllR@1"), found.mean("first stage", "AllR@1")
    (1.0, 0.0)
    """
    check_positive(candidates=candidates)
    asked, answered = read_questions(questions, columns), llm is not None
    names = (measures,) if isinstance(measures, str) else tuple(measures or default_measures(asked, answered=answered))
    names = tuple(dict.fromkeys([primary, *names] if primary and primary not in names else names))
    check_measures(names, asked, answered=answered)
    for name, price in (prices or {}).items():
        if name not in ("prompt", "completion") or not isinstance(price, int | float) or not price >= 0:
            raise InvalidInput(
                f"Prices are those of a million prompt and completion tokens; not {name!r:.200}: {price!r:.200}."
            )
    searched = read_corpus(corpus)
    check_gold(asked, searched)
    stage = candidates_by(first_stage, asked, searched, candidates)
    if isinstance(components, Mapping):
        named = {str(name): given for name, given in components.items()}
    else:
        named = {str(item): item for item in ([components] if isinstance(components, str) else components)}
    own = (FIRST_STAGE, BM25, FUSION)
    if not named or not named.keys().isdisjoint(own):
        raise InvalidInput(
            f"Name the components to compare; {', '.join(own)} take part anyway; not {list(named)!r:.200}."
        )
    baselines = _baselines(stage, searched, candidates)
    systems = [*baselines, *(system(name, given, searched) for name, given in named.items())]
    evidence = evidence_of(asked, searched.documents.values())
    records = Records(results, fingerprint(asked, searched.passages, candidates))
    run = run_all(asked, systems, stage, searched, records, on_progress, llm)

    everyone = {one.name: one for one in (stage, *systems)}
    columns_by, ranks = {}, {}
    for name, found in run.results.items():
        columns_by[name], ranks[name] = measured(names, asked, evidence, found, searched)

    def explain(record: Record, question: Question) -> Explanations:
        given = run.candidates[question.id]
        found, why = everyone[record.component].found(question.text, *given, searched, explained=SHOWN)
        if record.ids[:SHOWN] != [passage.id for passage in found.passages[:SHOWN]]:
            raise InvalidInput("asked again, it ranks otherwise: it has changed, or its results differ by chance")
        record.explanation = why.to_dict()
        records.add(record)
        return why

    def recall(name: str) -> OracleRecall:
        reranks = everyone[name].reranks and name != FIRST_STAGE
        return OracleRecall.of(
            ranks[FIRST_STAGE if reranks else name], ranks[name], everyone[name].depth if reranks else None
        )

    compared = Comparison(
        questions=tuple(asked),
        evidence=evidence,
        ranks=ranks,
        measures=names,
        primary=primary or names[0],
        values=columns_by,
        pairs=_pairs(columns_by, names, {FIRST_STAGE, *(one.name for one in baselines)}),
        costs={
            name: Cost.of([one for one in found.values() if not one.error], everyone[name].seconds, prices)
            for name, found in run.results.items()
        },
        oracle_recall={name: recall(name) for name in ranks},
        results=run.results,
        problems=tuple(run.problems),
        advice=(),
        passages={question.id: searched.known(question) for question in asked},
        explain=None if run.interrupted else explain,
    )
    return replace(compared, advice=_advice(compared, named, [one.name for one in baselines]))


def candidates_by(given: Any, questions: Sequence[Question], corpus: Collection, n: int) -> System:
    """The first stage, which finds the candidates of a question; what the questions bring it takes as it is.

    Raises:
        InvalidInput: some questions have candidates and some have none, or there is nothing to find them in.
    """
    bring = [question.candidates is not None for question in questions]
    if all(bring):
        return System(
            FIRST_STAGE, "given", True, lambda _, some, scores: list(zip(some, scores, strict=True)) if scores else some
        )
    if any(bring):
        place = questions[bring.index(False)].place
        raise InvalidInput(f"{place} has no candidates, and other questions have: give them for all, or for none.")
    if given is not None:
        one = system(FIRST_STAGE, given, corpus)
        if one.reranks:
            raise InvalidInput("A first stage finds passages for a question; what was given reranks them.")
        return replace(one, given={**one.given, "most": n}, depth=n)
    if not corpus.passages:
        raise InvalidInput("Nothing is there to rank: give a corpus, a first_stage, or questions with candidates.")
    bm25 = _bm25(corpus.passages.values())
    return System(FIRST_STAGE, f"{BM25} {n}", False, lambda query, *_: bm25(query)[:n], n)


def _bm25(passages: Iterable[Passage]) -> Callable[[str], list[tuple[Passage, float]]]:
    """From a query to all passages that hold a word of it, and others, best first, with their scores."""
    known = list(passages)
    index = BM25Index([passage.titled_text for passage in known])

    def search(query: str) -> list[tuple[Passage, float]]:
        scores = index.scores(query)
        return [(known[place], float(scores[place])) for place in top(scores, len(known))]

    return search


def _baselines(stage: System, corpus: Collection, n: int) -> list[System]:
    """BM25, and its reciprocal rank fusion with the first stage; none where the first stage is BM25.

    BM25 searches the corpus where the first stage does, and ranks the candidates where the questions name them.
    """
    if stage.given == f"{BM25} {n}":
        return []
    whole = _bm25(corpus.passages.values()) if corpus.passages else None
    searches = whole is not None and not stage.reranks

    def bm25(query: str, candidates: Sequence[Passage], _scores: object = None) -> list[tuple[Passage, float]]:
        if whole is not None and searches:
            return whole(query)[:n]
        order = {passage.id: place for place, passage in enumerate(candidates)}
        if whole is None or not order.keys() <= corpus.passages.keys():
            return _bm25(candidates)(query)
        found = [item for item in whole(query) if item[0].id in order]
        return sorted(found, key=lambda item: (-item[1], order[item[0].id]))

    def fusion(query: str, candidates: Sequence[Passage], _scores: object) -> list[tuple[Passage, float]]:
        rankings = {FIRST_STAGE: candidates, BM25: [passage for passage, _ in bm25(query, candidates)]}
        passages = {passage.id: passage for ranking in rankings.values() for passage in ranking}
        ids = {name: [passage.id for passage in ranking] for name, ranking in rankings.items()}
        return [(passages[one.section_id], one.score) for one in merge_views(ids, max(n, len(candidates)), weights={})]

    return [System(BM25, f"{BM25} {n}", not searches, bm25), System(FUSION, f"{BM25} {n}", True, fusion)]


@dataclass
class Run:
    """What was computed.

    Attributes:
        results: By component, then by question id; those that failed have an `error`.
        problems: What went wrong, in words.
        interrupted: Whether Ctrl-C ended it; then some results are missing.
        candidates: What rerankers were shown of each question, and the first stage's scores, if it gave them all.
    """

    results: dict[str, dict[str, Record]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    interrupted: bool = False
    candidates: dict[str, tuple[list[Passage], list[float] | None]] = field(default_factory=dict)


def run_all(
    questions: Sequence[Question],
    systems: Sequence[System],
    first_stage: System,
    corpus: Collection,
    records: Records,
    on_progress: OnProgress | None = None,
    llm: LLM | str | None = None,
) -> Run:
    """Every component's results over the candidates of the first stage; what is known already is not asked again.

    Components take turns at being first, question by question, so that an interruption leaves pairs and none profits
    from warm caches. A component that raises loses that question; after five in a row it is not asked again.
    Ctrl-C ends the run, with what there is.
    """
    run = Run({one.name: {} for one in (first_stage, *systems)})
    in_a_row = dict.fromkeys(run.results, 0)
    reader = None if llm is None else load_llm(llm)
    answered = "" if llm is None else f" {spec_of(llm)}"
    specs = {one.name: spec_of(one.given) + answered for one in (first_stage, *systems)}

    def asked(
        one: System, question: Question, given: Sequence[Passage], scores: Sequence[float] | None, error: str = ""
    ) -> Record:
        name = one.name
        seen = (
            digest([[p.id, p.title, p.text] for p in given] + [scores]) if one.reranks and name != FIRST_STAGE else ""
        )
        record = Record(name, specs[name], question.id, candidates=seen, error=error)
        known = None if error else records.get(name, record.spec, question.id, seen)
        if known is None and in_a_row[name] >= _GIVE_UP:
            record.error = f"given up after {_GIVE_UP} failures in a row"
        elif known is None and not error:
            _ask(record, one, question, given, scores, corpus, reader)
            records.add(record)
        record = run.results[name][question.id] = known or record
        if error:
            return record
        in_a_row[name] = in_a_row[name] + 1 if record.error else 0
        if record.error and in_a_row[name] <= _GIVE_UP:
            run.problems.append(f"{name} failed on {question.place}: {record.error}")
        if in_a_row[name] == _GIVE_UP:
            run.problems.append(f"{name} failed {_GIVE_UP} times in a row and was given up.")
        return record

    try:
        for number, question in enumerate(questions):
            known = corpus.known(question)
            given = [item if isinstance(item, Passage) else known[item] for item in question.candidates or ()]
            first = asked(first_stage, question, given, question.scores)
            told = [score for score in first.scores if score is not None]
            scores = told if told and len(told) == len(first.scores) else None
            candidates, _ = run.candidates[question.id] = first.passages(known), scores
            turn = number % len(systems)
            for one in (*systems[turn:], *systems[:turn]):
                failed = "the first stage failed" if first.error and one.reranks else ""
                asked(one, question, candidates, scores, failed)
            if on_progress is not None:
                on_progress(number + 1, len(questions))
    except KeyboardInterrupt:
        run.interrupted = True
        done = min(len(results) for results in run.results.values())
        run.problems.append(f"Interrupted: {done} of {len(questions)} questions are compared.")
    if run.problems:
        more = f"; and {len(run.problems) - 3} more" if len(run.problems) > 3 else ""
        warnings.warn(
            f"The comparison is not complete: {'; '.join(run.problems[:3])}{more}", DrillrankWarning, stacklevel=3
        )
    return run


def _ask(
    record: Record,
    one: System,
    question: Question,
    given: Sequence[Passage],
    scores: Sequence[float] | None,
    corpus: Collection,
    reader: LLM | None,
) -> None:
    """Fill in the record: what was found and what is answered from it, or what was raised."""
    started = time.perf_counter()
    try:
        found, _ = one.found(question.text, given, scores, corpus)
        record.seconds = time.perf_counter() - started
        if reader is not None and question.answers:
            read = answer(question.text, found.passages, reader)
            record.answer, record.answer_usage = _CITATION.sub("", read.text), read.usage.as_metadata()
    except (Exception, SystemExit) as problem:  # whatever a component raises costs one question, not the comparison
        record.error = f"{type(problem).__name__}: {problem}"[:500]
        return
    kept = found.passages[: None if one.name == FIRST_STAGE else _KEPT]
    record.ids, record.scores = [passage.id for passage in kept], found.scores[: len(kept)]
    record.usage, record.explains = found.usage, found.explains
    record.texts = {p.id: (p.title, p.text) for p in kept if p.id not in corpus.passages}


def measured(
    names: Sequence[str],
    questions: Sequence[Question],
    evidence: Mapping[str, Evidence],
    found: Mapping[str, Record],
    corpus: Collection,
) -> tuple[dict[str, Floats], dict[str, Ranks]]:
    """What the results of one component are worth, whatever others found.

    Returns:
        Of each measure one value for each question, shape (questions,), NaN where it was not asked; and by question id
        the ranks at which the items of the evidence are found.
    """
    places = [place for place, question in enumerate(questions) if question.id in found]
    asked = [questions[place] for place in places]
    rankings = {question.id: found[question.id].passages(corpus.known(question)) for question in asked}
    ranks: dict[str, Ranks] = {id_: evidence[id_].ranks(ranking) for id_, ranking in rankings.items()}
    answers = {id_: text for id_ in rankings if (text := found[id_].answer) is not None}
    columns: dict[str, Floats] = {}
    for name, column in values(names, asked, evidence, rankings, ranks, answers).items():
        columns[name] = np.full(len(questions), np.nan)
        columns[name][places] = column
    return columns, ranks


def _pairs(found: Mapping[str, Mapping[str, Floats]], names: Sequence[str], anyway: Names[str]) -> list[Pair]:
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


def _advice(found: Comparison, components: Mapping[str, Any], baselines: Sequence[str]) -> list[str]:
    """What helps, what hurts a good first stage, what nobody can tell yet, and what to try next."""
    lines = []
    failed, unjudged = found.failed, found.unjudged
    for name, given in components.items():
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
            lines.append(" ".join([*line, *_next(given, helps=pair.verdict == "better")]))
    lost = 1 - found.oracle_recall[FIRST_STAGE].some
    if lost >= _LOST and failed[FIRST_STAGE] < len(found.results[FIRST_STAGE]):  # of what failed nobody knows
        lines.append(
            f"{lost:.0%} of the questions have no evidence among the candidates: no reranker can help them. More "
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


def _next(given: Any, *, helps: bool) -> list[str]:
    """Which setting or model of a component of ours has not been tried; nothing for those of others."""
    own: Mapping[str, Any] = given if isinstance(given, Mapping) else {"component": given}
    kind = own.get("component")
    if kind not in ("UPR", "PromptRank", "PathSearch", "MultiViewIndex", "D3"):
        return []
    lexical = str(own.get("model", "unigram")).partition(":")[0] == "unigram"
    tried = []
    if kind in ("UPR", "PromptRank") and not helps:
        tried += ['prior="retrieval"'] if own.get("prior") is None else []
        tried += ["fitted=true"] if lexical and not own.get("fitted") and own.get("model") is None else []
    if kind not in ("MultiViewIndex", "D3") and lexical:
        tried.append('model="st:..." or "hf:..."')
    return [f"To try next: {', '.join([*tried, f'`drillrank tune --component {kind}`'])}."]


# Why a passage stands where it stands, whatever ranked it


class Explains(Protocol):
    """A ranker that can explain its rankings: `UPR`, `PromptRank`, `PathSearch`, `Relevance`, `MonoT5`, `BRMGR`."""

    def explain(self, query: str, ranking: Sequence[Ranked[Any]], /) -> Explanations:
        """Of what it ranked."""
        ...


def explain(query: str, ranking: Sequence[Any], ranker: Explains | None = None) -> Explanations:
    """Why each entry of a ranking stands where it stands: above all, what each token of the question adds.

    Args:
        query: The question that was asked.
        ranking: What `rank`, `search`, `search_paths` or `retrieve` returned, or some of it. Without what they
            remember, as of a copy or in another list, a model without a collection of its own (`"unigram"`, not fitted)
            needs all candidates: its statistics are theirs.
        ranker: What made it. None is what the ranking remembers, as `ranking.explain()` does, and else `UPR()`, or
            `PromptRank()` for paths.

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
        return ranker.explain(query, ranking)
    if isinstance(ranking, Explainable) and ranking.why is not None:
        found = ranking.explain()
        if found.question != query:
            raise InvalidInput(f"The ranking was made for {found.question!r:.80}, not for {query!r:.80}.")
        return found
    of_paths = any(isinstance(item.passage, Path) for item in ranking)
    return PromptRank().explain(query, ranking) if of_paths else UPR().explain(query, ranking)
