"""Ask every component every question, all over the same candidates; what is known already is not asked again."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from drillrank.errors import DrillrankWarning
from drillrank.evaluation.corpus import Corpus
from drillrank.evaluation.questions import Question
from drillrank.evaluation.records import Record, Records, digest
from drillrank.evaluation.systems import Found, System
from drillrank.passages import Passage

FIRST_STAGE, BM25, FUSION = "first stage", "BM25", "first stage + BM25"  # what takes part anyway
KEPT = 100  # results of each question; of the first stage all, since they are what others rank
GIVE_UP = 5  # failures in a row
OnProgress = Callable[[int, int], object]
FindCandidates = Callable[[Question], Found]


class FirstStage(NamedTuple):
    """How candidates are found.

    Attributes:
        spec: What it is.
        find: Finds those of a question.
        system: The component that does, where one was given.
    """

    spec: str
    find: FindCandidates
    system: System | None = None


@dataclass
class Run:
    """What was computed.

    Attributes:
        results: By component, then by question id; those that failed have an `error`.
        problems: What went wrong, in words.
        interrupted: Whether Ctrl-C ended it; then some results are missing.
    """

    results: dict[str, dict[str, Record]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    interrupted: bool = False


def run_all(
    questions: Sequence[Question],
    systems: Sequence[System],
    first_stage: FirstStage,
    corpus: Corpus,
    records: Records,
    on_progress: OnProgress | None = None,
) -> Run:
    """Every component's results.

    Components take turns at being first, question by question, so that an interruption leaves pairs and none profits
    from warm caches. A component that raises loses that question; after five in a row it is not asked again.
    Ctrl-C ends the run, with what there is.
    """
    run = Run({FIRST_STAGE: {}, **{one.name: {} for one in systems}})
    in_a_row = dict.fromkeys(run.results, 0)

    def asked(
        name: str, spec: str, question: Question, find: Callable[[], Found], given: str = "", kept: int | None = KEPT
    ) -> Record:
        record = records.get(name, spec, question.id, given)
        if record is None and in_a_row[name] >= GIVE_UP:
            record = Record(name, spec, question.id, error=f"given up after {GIVE_UP} failures in a row")
        elif record is None:
            record = _timed(Record(name, spec, question.id, candidates=given), find, kept, corpus)
            records.add(record)
        in_a_row[name] = in_a_row[name] + 1 if record.error else 0
        if record.error and in_a_row[name] <= GIVE_UP:
            run.problems.append(f"{name} failed on {question.place}: {record.error}")
        if in_a_row[name] == GIVE_UP:
            run.problems.append(f"{name} failed {GIVE_UP} times in a row and was given up.")
        run.results[name][question.id] = record
        return record

    try:
        for number, question in enumerate(questions):
            find = partial(first_stage.find, question)
            first = asked(FIRST_STAGE, first_stage.spec, question, find, kept=None)
            candidates, scores = candidates_of(question, first, corpus)
            given = digest([[p.id, p.title, p.text] for p in candidates] + [scores])
            turn = number % len(systems) if systems else 0
            for one in (*systems[turn:], *systems[:turn]):
                if first.error and one.reranks:
                    error = "the first stage failed"
                    run.results[one.name][question.id] = Record(one.name, one.spec, question.id, error=error)
                    continue
                find = partial(one.found, question.text, candidates, scores, corpus)
                asked(one.name, one.spec, question, find, given if one.reranks else "")
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


def candidates_of(question: Question, first: Record, corpus: Corpus) -> tuple[list[Passage], list[float] | None]:
    """What every reranker is shown for a question: what the first stage found, and its scores if it told them all."""
    known = [score for score in first.scores if score is not None]
    scores = known if known and len(known) == len(first.scores) else None
    return first.passages(corpus.known(question)), scores


def _timed(record: Record, find: Callable[[], Found], kept: int | None, corpus: Corpus) -> Record:
    """The record, with what was found or what was raised."""
    started = time.perf_counter()
    try:
        found = find()
    except (Exception, SystemExit) as problem:  # whatever a component raises costs one question, not the comparison
        record.error = f"{type(problem).__name__}: {problem}"[:500]
        return record
    finally:
        record.seconds = time.perf_counter() - started
    record.ids = [passage.id for passage in found.passages[:kept]]
    record.scores = found.scores[:kept]
    record.usage, record.explains = found.usage, found.explains
    record.texts = {p.id: (p.title, p.text) for p in found.passages[:kept] if p.id not in corpus.passages}
    return record
