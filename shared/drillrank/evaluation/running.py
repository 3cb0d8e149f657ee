"""Ask every component every question, all over the same candidates; what is known already is not asked again."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from drillrank.errors import DrillrankWarning
from drillrank.evaluation.contenders import Contender, Found
from drillrank.evaluation.corpus import Corpus
from drillrank.evaluation.questions import Question
from drillrank.evaluation.records import Record, Records
from drillrank.passages import Passage

FIRST_STAGE = "first stage"
KEPT = 100  # results of each question; of the first stage all, since they are what others rank
GIVE_UP = 5  # failures in a row
OnProgress = Callable[[int, int], object]
FindCandidates = Callable[[Question], Found]


class FirstStage(NamedTuple):
    """How candidates are found.

    Attributes:
        spec: What it is.
        find: Finds those of a question.
        contender: The component that does, where one was given.
    """

    spec: str
    find: FindCandidates
    contender: Contender | None = None


@dataclass
class Run:
    """What was computed.

    Attributes:
        results: By component, then by question id.
        problems: What went wrong, in words.
        complete: Whether every component answered every question.
        interrupted: Whether Ctrl-C ended it.
    """

    results: dict[str, dict[str, Record]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    complete: bool = True
    interrupted: bool = False


def run_all(
    questions: Sequence[Question],
    contenders: Sequence[Contender],
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
    run = Run({FIRST_STAGE: {}, **{one.name: {} for one in contenders}})
    failures = dict.fromkeys(run.results, 0)
    try:
        for number, question in enumerate(questions):
            for record in _asked(number, question, contenders, first_stage, corpus, records, failures):
                if record.error:
                    run.problems.append(f"{record.component} failed on {question.place}: {record.error}")
                    failures[record.component] += 1
                    if failures[record.component] == GIVE_UP:
                        run.problems.append(f"{record.component} failed {GIVE_UP} times in a row and was given up.")
                else:
                    failures[record.component] = 0
                    run.results[record.component][question.id] = record
            if on_progress is not None:
                on_progress(number + 1, len(questions))
    except KeyboardInterrupt:
        run.interrupted = True
        done = min(len(results) for results in run.results.values())
        run.problems.append(f"Interrupted: {done} of {len(questions)} questions are compared.")
    run.complete = all(len(results) == len(questions) for results in run.results.values())
    if run.problems:
        more = f"; and {len(run.problems) - 3} more" if len(run.problems) > 3 else ""
        warnings.warn(
            f"The comparison is not complete: {'; '.join(run.problems[:3])}{more}", DrillrankWarning, stacklevel=3
        )
    return run


def _asked(
    number: int,
    question: Question,
    contenders: Sequence[Contender],
    first_stage: FirstStage,
    corpus: Corpus,
    records: Records,
    failures: dict[str, int],
) -> Iterator[Record]:
    spec = first_stage.spec
    first = records.get(FIRST_STAGE, spec, question.id)
    if first is None or first.error:
        if failures[FIRST_STAGE] >= GIVE_UP:
            return
        first = _timed(FIRST_STAGE, spec, question, corpus, lambda: first_stage.find(question), kept=None)
        records.add(first)
    yield first
    if first.error:
        return
    candidates, scores = candidates_of(question, first, corpus)
    turn = number % len(contenders) if contenders else 0
    for one in (*contenders[turn:], *contenders[:turn]):
        found = records.get(one.name, one.spec, question.id)
        if found is None or found.error:
            if failures[one.name] >= GIVE_UP:
                continue
            ask = partial(one.found, question.text, candidates, scores, corpus)
            found = _timed(one.name, one.spec, question, corpus, ask)
            records.add(found)
        yield found


def candidates_of(question: Question, first: Record, corpus: Corpus) -> tuple[list[Passage], list[float] | None]:
    """What every reranker is shown for a question: what the first stage found, and its scores if it told them all."""
    given = {item.id: item for item in question.candidates or () if isinstance(item, Passage)}
    known = [score for score in first.scores if score is not None]
    scores = known if known and len(known) == len(first.scores) else None
    return first.passages({**corpus.passages, **given} if given else corpus.passages), scores


def _timed(
    name: str, spec: str, question: Question, corpus: Corpus, find: Callable[[], Found], kept: int | None = KEPT
) -> Record:
    started = time.perf_counter()
    try:
        found = find()
    except (Exception, SystemExit) as problem:  # whatever a component raises costs one question, not the comparison
        error = f"{type(problem).__name__}: {problem}"[:500]
        return Record(name, spec, question.id, seconds=time.perf_counter() - started, error=error)
    seconds = time.perf_counter() - started
    passages = found.passages[:kept]
    texts = {p.id: (p.title, p.text) for p in passages if p.id not in corpus.passages}
    ids = [p.id for p in passages]
    return Record(
        name, spec, question.id, ids, found.scores[:kept], seconds, found.usage, explains=found.explains, texts=texts
    )
