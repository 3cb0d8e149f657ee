"""Questions that systems are asked, all over the same candidates; what is known already is not asked again.

Results stand by question and component in one JSON Lines file, so that nothing computed is lost.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from drillrank.drilldown.answering import answer
from drillrank.errors import InvalidInput, check_positive, warn
from drillrank.evaluation.measures import evidence_of, values
from drillrank.evaluation.questions import (
    CorpusSource,
    Question,
    QuestionSource,
    check_gold,
    read_corpus,
    read_questions,
)
from drillrank.evaluation.systems import Scores, System, system
from drillrank.likelihood import LanguageModel
from drillrank.likelihood.chat import load_llm
from drillrank.limits import read_json
from drillrank.llm import LLM
from drillrank.passages import Passage
from drillrank.progress import OnProgress
from drillrank.vectors import BM25Index, Floats, top
from drillrank.views import merge_views

FIRST_STAGE, BM25, FUSION = "first stage", "BM25", "first stage + BM25"  # what takes part anyway
_KEPT = 100  # results of each question; of the first stage all, since they are what others rank
_GIVE_UP = 5  # failures in a row: each of a server that is away takes minutes
_CITATION = re.compile(r"(?<!\s)\s*\[[\d, ]+\]")

Ranks = Sequence[float]


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
    candidates: dict[str, tuple[list[Passage], Scores]] = field(default_factory=dict)


class Experiment:
    """Questions, what is searched, who finds the candidates, and what is known from before.

    Args:
        questions: As for `compare`.
        corpus: As for `compare`.
        first_stage: As for `compare`.
        candidates: As for `compare`.
        columns: As for `compare`.
        results: As for `compare`.
        llm: As for `compare`.

    Raises:
        InvalidInput: one of them cannot be used.
    """

    def __init__(
        self,
        questions: QuestionSource,
        corpus: CorpusSource | None,
        first_stage: Any,
        candidates: int,
        columns: Mapping[str, str] | None,
        results: str | os.PathLike[str] | None,
        llm: LLM | str | None = None,
    ) -> None:
        check_positive(candidates=candidates)
        self.questions = read_questions(questions, columns)
        self.corpus = read_corpus(corpus)
        check_gold(self.questions, self.corpus)
        self.evidence = evidence_of(self.questions, self.corpus.documents.values())
        self.records = Records(results, fingerprint(self.questions, self.corpus.passages, candidates))
        self._depth, self._llm = candidates, None if llm is None else load_llm(llm)
        self._answered = "" if llm is None else f" {spec_of(llm)}"
        self.first_stage = self._first_stage(first_stage)

    def _first_stage(self, given: Any) -> System:
        """Finds the candidates of a question; what the questions bring it takes as it is."""
        n, bring = self._depth, [question.candidates is not None for question in self.questions]
        if all(bring):
            return System(
                FIRST_STAGE,
                "given",
                True,
                lambda _, some, scores: list(zip(some, scores, strict=True)) if scores else some,
            )
        if any(bring):
            location = self.questions[bring.index(False)].location
            raise InvalidInput(
                f"{location} has no candidates, and other questions have: give them for all, or for none."
            )
        if given is not None:
            one = system(FIRST_STAGE, given, self.corpus)
            if one.reranks:
                raise InvalidInput("A first stage finds passages for a question; what was given reranks them.")
            return replace(one, given={**one.given, "most": n}, depth=n)
        if not self.corpus.passages:
            raise InvalidInput("Nothing is there to rank: give a corpus, a first_stage, or questions with candidates.")
        bm25 = _bm25(self.corpus.passages.values())
        return System(FIRST_STAGE, f"{BM25} {n}", False, lambda query, *_: bm25(query, n), n)

    def baselines(self) -> list[System]:
        """BM25, and its reciprocal rank fusion with the first stage; none where the first stage is BM25.

        BM25 searches the corpus where the first stage does, and ranks the candidates where the questions name them.
        """
        n, known, spec = self._depth, self.corpus.passages, f"{BM25} {self._depth}"
        if self.first_stage.given == spec:
            return []
        whole = _bm25(known.values())
        searches = bool(known) and not self.first_stage.reranks

        def bm25(query: str, candidates: Sequence[Passage], _scores: object = None) -> list[tuple[Passage, float]]:
            if searches:
                return whole(query, n)
            inside = all(passage.id in known for passage in candidates)
            return (whole if inside else _bm25(candidates))(query, n, candidates)

        def fusion(query: str, candidates: Sequence[Passage], _scores: object) -> list[tuple[Passage, float]]:
            rankings = {FIRST_STAGE: candidates, BM25: [passage for passage, _ in bm25(query, candidates)]}
            passages = {passage.id: passage for ranking in rankings.values() for passage in ranking}
            ids = {name: [passage.id for passage in ranking] for name, ranking in rankings.items()}
            merged = merge_views(ids, max(n, len(candidates)), weights={})
            return [(passages[one.section_id], one.score) for one in merged]

        return [System(BM25, spec, not searches, bm25), System(FUSION, spec, True, fusion)]

    def run(self, systems: Sequence[System], on_progress: OnProgress | None = None) -> Run:
        """Every system's results over the candidates of the first stage.

        Systems take turns at being first, question by question, so that an interruption leaves pairs and none profits
        from warm caches. One that raises loses that question; after five in a row it is not asked again. Ctrl-C ends
        the run, with what there is.
        """
        everyone = (self.first_stage, *systems)
        run = Run({one.name: {} for one in everyone})
        specs = {one.name: spec_of(one.given) + self._answered for one in everyone}
        failures = dict.fromkeys(specs, 0)

        def ask(one: System, question: Question, given: Sequence[Passage], scores: Scores) -> Record:
            ranks = one.reranks and one.name != FIRST_STAGE
            seen = digest([[p.id, p.title, p.text] for p in given] + [scores]) if ranks else ""
            record = Record(one.name, specs[one.name], question.id, candidates=seen)
            if ranks and run.results[FIRST_STAGE][question.id].error:
                record.error = "the first stage failed"
            elif known := self.records.get(one.name, record.spec, question.id, seen):
                record = known
            elif failures[one.name] == _GIVE_UP:
                record.error = f"given up after {_GIVE_UP} failures in a row"
            else:
                self._ask(record, one, question, given, scores)
                self.records.add(record)
                failures[one.name] = failures[one.name] + 1 if record.error else 0
                if record.error:
                    run.problems.append(f"{one.name} failed on {question.location}: {record.error}")
                if failures[one.name] == _GIVE_UP:
                    run.problems.append(f"{one.name} failed {_GIVE_UP} times in a row and was given up.")
            run.results[one.name][question.id] = record
            return record

        try:
            for number, question in enumerate(self.questions):
                known = self.corpus.known(question)
                given = [item if isinstance(item, Passage) else known[item] for item in question.candidates or ()]
                first = ask(self.first_stage, question, given, question.scores)
                known_scores = [score for score in first.scores if score is not None]
                scores = known_scores if known_scores and len(known_scores) == len(first.scores) else None
                run.candidates[question.id] = first.passages(known), scores
                turn = number % len(systems)
                for one in (*systems[turn:], *systems[:turn]):
                    ask(one, question, *run.candidates[question.id])
                if on_progress is not None:
                    on_progress(number + 1, len(self.questions))
        except KeyboardInterrupt:
            run.interrupted = True
            done = min(len(results) for results in run.results.values())
            run.problems.append(f"Interrupted: {done} of {len(self.questions)} questions are compared.")
        if run.problems:
            more = f"; and {len(run.problems) - 3} more" if len(run.problems) > 3 else ""
            warn(f"The comparison is not complete: {'; '.join(run.problems[:3])}{more}")
        return run

    def _ask(self, record: Record, one: System, question: Question, given: Sequence[Passage], scores: Scores) -> None:
        """Fill in the record: what was found and what is answered from it, or what was raised."""
        started = time.perf_counter()
        try:
            found, _ = one.found(question.text, given, scores, self.corpus)
            record.seconds = time.perf_counter() - started
            if self._llm is not None and question.answers:
                read = answer(question.text, found.passages, self._llm)
                record.answer, record.answer_usage = _CITATION.sub("", read.text), read.usage.as_metadata()
        except (Exception, SystemExit) as problem:  # whatever a component raises costs one question, not the comparison
            record.error = f"{type(problem).__name__}: {problem}"[:500]
            return
        selected = found.passages[: None if one.name == FIRST_STAGE else _KEPT]
        record.ids, record.scores = [passage.id for passage in selected], found.scores[: len(selected)]
        record.usage, record.explains = found.usage, found.explains
        record.texts = {p.id: (p.title, p.text) for p in selected if p.id not in self.corpus.passages}

    def measured(self, names: Sequence[str], found: Mapping[str, Record]) -> tuple[dict[str, Floats], dict[str, Ranks]]:
        """What the results of one system are worth, whatever others found.

        Returns:
            Of each measure one value for each question, shape (questions,), NaN where it was not asked; and by question
            id the ranks at which the items of the evidence are found.
        """
        questions = [question for question in self.questions if question.id in found]
        rankings = {question.id: found[question.id].passages(self.corpus.known(question)) for question in questions}
        ranks: dict[str, Ranks] = {id_: self.evidence[id_].ranks(ranking) for id_, ranking in rankings.items()}
        answers = {id_: text for id_ in rankings if (text := found[id_].answer) is not None}
        places = [question.id in found for question in self.questions]
        columns = {name: np.full(len(places), np.nan) for name in names}
        for name, column in values(names, questions, self.evidence, rankings, ranks, answers).items():
            columns[name][places] = column
        return columns, ranks


def _bm25(passages: Iterable[Passage]) -> Callable[..., list[tuple[Passage, float]]]:
    """From a query to the best so many passages with their scores, or to some of them in order."""
    known = list(passages)
    places = {passage.id: location for location, passage in enumerate(known)}
    index = BM25Index([passage.titled_text for passage in known])

    def search(query: str, n: int, among: Sequence[Passage] | None = None) -> list[tuple[Passage, float]]:
        scores = index.scores(query)
        if among is None:
            return [(known[location], float(scores[location])) for location in top(scores, n)]
        return sorted(((one, float(scores[places[one.id]])) for one in among), key=lambda item: -item[1])

    return search


# Results

_FORMAT = "drillrank-compare-1"
_BEGINNING = json.dumps({"format": _FORMAT}).encode()[:-1]


@dataclass
class Record:
    """What one component brought for one question.

    Attributes:
        component: Its name.
        spec: What it is (`spec_of`).
        question: The question's id.
        ids: Best first.
        scores: One for each id; None where it gave none.
        seconds: It took, the answer apart.
        usage: Tokens and calls of an LLM, as far as it counts them.
        error: What it raised, if it did; then there are no ids.
        explains: Whether it can say why.
        texts: Title and text of passages that are not in the corpus, by id.
        candidates: A digest of what it was given to rank; empty where it looks for itself.
        answer: What an LLM answers from these passages, where it was asked; empty if it finds no answer.
        answer_usage: Tokens and calls of that answer.
    """

    component: str
    spec: str
    question: str
    ids: list[str] = field(default_factory=list)
    scores: list[float | None] = field(default_factory=list)
    seconds: float = 0.0
    usage: dict[str, int] = field(default_factory=dict)
    error: str = ""
    explains: bool = False
    texts: dict[str, tuple[str, str]] = field(default_factory=dict)
    candidates: str = ""
    answer: str | None = None
    answer_usage: dict[str, int] = field(default_factory=dict)

    def passages(self, known: Mapping[str, Passage]) -> list[Passage]:
        """The passages themselves; those that are not known are in `texts`."""
        return [
            known[id_] if id_ in known else Passage(self.texts[id_][1], id=id_, title=self.texts[id_][0])
            for id_ in self.ids
        ]


def spec_of(given: Any) -> str:
    """What a component is, by its name and a digest of its settings and version: other ones have other results.

    Of an object the settings are the arguments of its class, as far as attributes of these names hold them, and its
    language models. Code is known by its name, and by the version of the package that it stands in.

    >>> spec_of("UPR") == spec_of({"component": "UPR"}) != spec_of({"component": "UPR", "prior": "retrieval"})
    True
    """
    named = given if isinstance(given, Mapping) else {"component": given}
    what = _described(named["component"])
    name = what if isinstance(what, str) else what[0]
    home = re.split(r"[.:]", name)[0]
    versions = [version("drillrank"), str(getattr(sys.modules.get(home), "__version__", ""))]
    return f"{name} {digest([_described({**named, 'component': what}), versions])[:16]}"


def _described(value: Any, depth: int = 3) -> Any:
    """A setting as JSON has it; of an object its class and, so deep, its own settings."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _described(item, depth) for key, item in sorted(value.items())}
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        return [_described(item, depth) for item in items]
    if isinstance(value, LanguageModel):
        return [value.spec, _described(value.options)]
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    kind = type(value)
    try:
        arguments = {*inspect.signature(kind).parameters} if depth else set()
    except (TypeError, ValueError):
        arguments = set()
    names = [item.name for item in fields(value)] if is_dataclass(value) else getattr(value, "__dict__", {})
    attributes = {name: getattr(value, name, None) for name in names}
    settings = {key: item for key, item in attributes.items() if key in arguments or isinstance(item, LanguageModel)}
    return [
        f"{kind.__module__}.{kind.__qualname__}",
        {key: _described(item, depth - 1) for key, item in settings.items()},
    ]


def fingerprint(questions: Sequence[Question], passages: Mapping[str, Passage], depth: int) -> str:
    """Of what is asked of what: other questions, candidates or passages have another one."""
    parts: list[Any] = [depth]
    for question in questions:
        given = [item if isinstance(item, str) else (item.id, item.text) for item in question.candidates or ()]
        parts.append([question.id, question.text, given, question.scores])
    return digest([*parts, *([passage.id, passage.title, passage.text] for passage in passages.values())])


def digest(items: Iterable[Any]) -> str:
    """Of what JSON can hold, item by item."""
    found = hashlib.blake2b(digest_size=16)
    for item in items:
        found.update(json.dumps(item).encode())
    return found.hexdigest()


class Records:
    """A file of results, read at the start and added to; or memory alone.

    Raises:
        InvalidInput: the file holds results of other questions, is something else, or cannot be written.
    """

    def __init__(self, file: str | os.PathLike[str] | None, of: str) -> None:
        self._file = None if file is None else Path(file)
        self._known: dict[tuple[str, str], dict[tuple[str, str], Record]] = {}
        self._warned: set[str] = set()
        if self._file is None:
            return
        with self._open() as lines:
            lines.seek(0)
            content = lines.read()
            complete = content.rfind(b"\n") + 1
            if complete or not _BEGINNING.startswith(content[: len(_BEGINNING)]):
                self._read(content[:complete].splitlines(), of)
            lines.truncate(complete)  # an interruption left half a line
            if not complete:
                lines.write(json.dumps({"format": _FORMAT, "of": of}).encode() + b"\n")

    def _read(self, lines: Sequence[bytes], of: str) -> None:
        try:
            header, *rows = (
                read_json(line.decode(), f"{self._file}, line {number},") for number, line in enumerate(lines, start=1)
            )
            if header != {"format": _FORMAT, "of": of}:
                raise ValueError
            for row in rows:
                self._keep(Record(**row))
        except (ValueError, TypeError) as problem:
            if isinstance(problem, InvalidInput):
                raise
            raise InvalidInput(
                f"{self._file} holds results of other questions, candidates or passages, or none: give another file."
            ) from problem

    def _keep(self, record: Record) -> None:
        """Remember a result; that of a later try replaces an earlier one, and what failed is tried again."""
        if not record.error:
            of_question = self._known.setdefault((record.component, record.question), {})
            of_question[record.spec, record.candidates] = record

    def get(self, component: str, spec: str, question: str, candidates: str = "") -> Record | None:
        """The result, if there is one; a warning where the file has results of another component of this name."""
        known = self._known.get((component, question), {})
        record = known.get((spec, candidates))
        if record is None and known and component not in self._warned:
            self._warned.add(component)
            warn(
                f"{self._file} holds results of {component} with other settings, of another version or over other "
                "candidates: they are computed anew."
            )
        return record

    def add(self, record: Record) -> None:
        """Remember a result and write it down at once."""
        self._keep(record)
        if self._file is not None:
            with self._open() as lines:
                lines.write(json.dumps(asdict(record)).encode() + b"\n")

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        assert self._file is not None
        try:
            with self._file.open("a+b") as lines:
                yield lines
        except OSError as problem:
            raise InvalidInput(
                f"{self._file} cannot be written: {problem.strerror}. What it holds is kept: make room, and run again."
            ) from problem
