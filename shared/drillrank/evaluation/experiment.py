"""Ask all systems the same questions over the same candidates. Results that are already known are reused."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from drillrank.drilldown.answering import answer
from drillrank.errors import InvalidInput, check_positive, warn
from drillrank.evaluation.corpora import CorpusSource, read_corpus
from drillrank.evaluation.measures import EvidenceRanks, compute_measures, gold_labels
from drillrank.evaluation.questions import Question, QuestionSource, check_questions, read_questions
from drillrank.evaluation.results_file import QuestionResult, ResultsFile, component_spec, digest, fingerprint
from drillrank.evaluation.systems import Rank, Scores, System, Task, build_system
from drillrank.likelihood.chat import load_llm
from drillrank.llm import LLM
from drillrank.passages import Passage
from drillrank.progress import OnProgress
from drillrank.vectors import BM25Index, Floats, top
from drillrank.views import merge_views

FIRST_STAGE, BM25, FUSION = "first stage", "BM25", "first stage + BM25"
"""Names of the systems that take part in every comparison."""

_MAX_KEPT = 100  # results of each question; those of the first stage are all kept, since others rank them
_MAX_FAILURES = 5  # in a row; each failure of an unreachable server takes minutes
_N_NAMED = 3  # problems in a warning
_CITATION = re.compile(r"(?<!\s)\s*\[[\d, ]+\]")


@dataclass
class ExperimentResults:
    """Results of an experiment.

    Attributes:
        results: Results by component, then by question id. Failed ones have an `error`.
        problems: Messages about what went wrong.
        is_interrupted: True if Ctrl-C ended the run. Some results are missing then.
        candidates: Candidates that rerankers saw, by question, with the first stage's scores if it gave them all.
    """

    results: dict[str, dict[str, QuestionResult]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    is_interrupted: bool = False
    candidates: dict[str, tuple[list[Passage], Scores]] = field(default_factory=dict)


class Experiment:
    """Questions, corpus and first stage of a comparison, with earlier results.

    Args:
        questions: As for `compare`.
        corpus: As for `compare`.
        first_stage: As for `compare`.
        candidates: As for `compare`.
        columns: As for `compare`.
        results: As for `compare`.
        llm: As for `compare`.

    Raises:
        InvalidInput: An argument cannot be used.
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
        check_questions(self.questions, self.corpus)
        self.labels_by_id = gold_labels(self.questions, self.corpus.documents.values())
        self.results_file = ResultsFile(results, fingerprint(self.questions, self.corpus.passages, candidates))
        self._n_candidates, self._llm = candidates, None if llm is None else load_llm(llm)
        self._llm_spec = "" if llm is None else f" {component_spec(llm)}"
        self._documents = tuple(dict.fromkeys(question.document for question in self.questions))
        self.first_stage = self._build_first_stage(first_stage)

    def build_system(self, name: str, specification: Any) -> System:
        """Load a component: see `drillrank.evaluation.systems.build_system`."""
        return build_system(name, specification, self.corpus, self._documents)

    def _build_first_stage(self, specification: Any) -> System:
        """Return the system that finds candidates. Candidates of the questions are taken unchanged."""
        n, has_candidates = self._n_candidates, [question.candidates is not None for question in self.questions]
        if all(has_candidates):
            return System(FIRST_STAGE, "given", True, _keep_candidates)
        if any(has_candidates):
            row_name = self.questions[has_candidates.index(False)].row_name
            raise InvalidInput(
                f"{row_name} has no candidates, and other questions have. Give them for all questions or for none."
            )
        if specification is not None:
            system = self.build_system(FIRST_STAGE, specification)
            if system.reranks:
                raise InvalidInput("first_stage must find passages for a question, got a reranker. Pass a retriever.")
            return replace(system, specification={**system.specification, "most": n}, depth=n)
        if not self.corpus.passages:
            raise InvalidInput("There is nothing to rank. Pass a corpus, a first_stage, or questions with candidates.")
        return System(FIRST_STAGE, f"{BM25} {n}", False, self._search_bm25(), n)

    def _search_bm25(self) -> Rank:
        """Return a BM25 search of the corpus, or of the document that a question is about."""
        indexes = {name: _BM25(self.corpus.within(name).passages.values()) for name in self._documents}
        return lambda task: indexes[task.document].search(task.query, self._n_candidates)

    def baselines(self) -> list[System]:
        """Return BM25, and its reciprocal rank fusion with the first stage; nothing if the first stage is BM25.

        BM25 searches the corpus if the first stage does, and ranks the candidates that questions name.
        """
        n, spec = self._n_candidates, f"{BM25} {self._n_candidates}"
        if self.first_stage.specification == spec:
            return []
        corpus_passages = self.corpus.passages
        searches = bool(corpus_passages) and not self.first_stage.reranks
        whole_corpus = _BM25(corpus_passages.values())
        search = self._search_bm25()

        def rank_by_bm25(task: Task) -> list[tuple[Passage, float]]:
            if searches:
                results: list[tuple[Passage, float]] = search(task)
                return results
            is_known = all(passage.id in corpus_passages for passage in task.candidates)
            return (whole_corpus if is_known else _BM25(task.candidates)).rank(task.query, task.candidates)

        def rank_by_fusion(task: Task) -> list[tuple[Passage, float]]:
            rankings = {FIRST_STAGE: task.candidates, BM25: [passage for passage, _ in rank_by_bm25(task)]}
            passages = {passage.id: passage for ranking in rankings.values() for passage in ranking}
            id_lists = {name: [passage.id for passage in ranking] for name, ranking in rankings.items()}
            merged = merge_views(id_lists, max(n, len(task.candidates)), weights={})
            return [(passages[one.section_id], one.score) for one in merged]

        return [System(BM25, spec, not searches, rank_by_bm25), System(FUSION, spec, True, rank_by_fusion)]

    def run(self, systems: Sequence[System], on_progress: OnProgress | None = None) -> ExperimentResults:
        """Ask every system every question, over the candidates of the first stage.

        Systems take turns at being asked first, so that an interruption leaves pairs of results, and no system profits
        from warm caches. A system that raises an error loses that question. After five errors in a row, it is not asked
        again. Ctrl-C ends the run and keeps its results.
        """
        everyone = (self.first_stage, *systems)
        run = ExperimentResults({system.name: {} for system in everyone})
        specs = {system.name: component_spec(system.specification) + self._llm_spec for system in everyone}
        n_failures = dict.fromkeys(specs, 0)
        try:
            for index, question in enumerate(self.questions):
                first = self._ask_once(self.first_stage, question, run, specs, n_failures)
                scores = [score for score in first.scores if score is not None]
                has_scores = bool(scores) and len(scores) == len(first.scores)
                passages = first.passages(question.known_passages(self.corpus))
                run.candidates[question.id] = passages, scores if has_scores else None
                turn = index % len(systems)
                for system in (*systems[turn:], *systems[:turn]):
                    self._ask_once(system, question, run, specs, n_failures)
                if on_progress is not None:
                    on_progress(index + 1, len(self.questions))
        except KeyboardInterrupt:
            run.is_interrupted = True
            n_done = min(len(results) for results in run.results.values())
            run.problems.append(f"Interrupted: {n_done} of {len(self.questions)} questions are compared.")
        if run.problems:
            n_more = len(run.problems) - _N_NAMED
            more = f"; and {n_more} more" if n_more > 0 else ""
            warn(f"The comparison is not complete: {'; '.join(run.problems[:_N_NAMED])}{more}")
        return run

    def _ask_once(
        self,
        system: System,
        question: Question,
        run: ExperimentResults,
        specs: Mapping[str, str],
        n_failures: dict[str, int],
    ) -> QuestionResult:
        """Return a result from the file, or ask the system. Add it to the run."""
        task = self._task(question, run)
        is_reranker = system.reranks and system.name != FIRST_STAGE
        texts = [[p.id, p.title, p.text] for p in task.candidates]
        seen = digest([*texts, task.scores]) if is_reranker else ""
        result = QuestionResult(system.name, specs[system.name], question.id, candidates=seen)
        if is_reranker and run.results[FIRST_STAGE][question.id].error:
            result.error = "the first stage failed"
        elif earlier := self.results_file.get(system.name, result.spec, question.id, seen):
            result = earlier
        elif n_failures[system.name] == _MAX_FAILURES:
            result.error = f"given up after {_MAX_FAILURES} failures in a row"
        else:
            self._ask(result, system, question, task)
            self.results_file.add(result)
            n_failures[system.name] = n_failures[system.name] + 1 if result.error else 0
            if result.error:
                run.problems.append(f"{system.name} failed on {question.row_name}: {result.error}")
            if n_failures[system.name] == _MAX_FAILURES:
                run.problems.append(f"{system.name} failed {_MAX_FAILURES} times in a row and was given up.")
        run.results[system.name][question.id] = result
        return result

    def _task(self, question: Question, run: ExperimentResults) -> Task:
        """Return the task of a question: with the candidates of the first stage, or those of the question for it."""
        if question.id in run.candidates:
            passages, scores = run.candidates[question.id]
        else:
            known_passages = question.known_passages(self.corpus)
            items = question.candidates or ()
            passages = [item if isinstance(item, Passage) else known_passages[item] for item in items]
            scores = question.scores
        return Task(question.text, passages, scores, question.document)

    def _ask(self, result: QuestionResult, system: System, question: Question, task: Task) -> None:
        """Fill in the passages that the system returns and the LLM's answer from them, or the error."""
        start = time.perf_counter()
        try:
            returned, _ = system.ask(task, self.corpus.within(question.document))
            result.seconds = time.perf_counter() - start
            if self._llm is not None and question.answers:
                cited_answer = answer(question.text, returned.passages, self._llm)
                result.answer = _CITATION.sub("", cited_answer.text)
                result.answer_usage = cited_answer.usage.as_metadata()
        except (Exception, SystemExit) as error:  # any error of a component costs one question, not the comparison
            result.error = f"{type(error).__name__}: {error}"[:500]
            return
        kept = returned.passages[: None if system.name == FIRST_STAGE else _MAX_KEPT]
        result.ids, result.scores = [passage.id for passage in kept], returned.scores[: len(kept)]
        result.usage, result.is_explainable = returned.usage, returned.is_explainable
        result.texts = {p.id: (p.title, p.text) for p in kept if p.id not in self.corpus.passages}

    def measure(
        self, names: Sequence[str], results: Mapping[str, QuestionResult]
    ) -> tuple[dict[str, Floats], dict[str, EvidenceRanks]]:
        """Measure the results of one system, independently of other systems.

        Returns:
            For each measure an array of shape `(questions,)`, NaN for questions that were not asked or have no value;
            and, by question id, the ranks of the items of the evidence.
        """
        questions = [question for question in self.questions if question.id in results]
        rankings = {one.id: results[one.id].passages(one.known_passages(self.corpus)) for one in questions}
        ranks: dict[str, EvidenceRanks] = {id_: self.labels_by_id[id_].ranks(rankings[id_]) for id_ in rankings}
        answers = {id_: text for id_ in rankings if (text := results[id_].answer) is not None}
        is_asked = [question.id in results for question in self.questions]
        columns = {name: np.full(len(is_asked), np.nan) for name in names}
        values = compute_measures(names, questions, self.labels_by_id, rankings, ranks, answers)
        for name, column in values.items():
            columns[name][is_asked] = column
        return columns, ranks


def _keep_candidates(task: Task) -> Sequence[Any]:
    """Return the candidates in their order, with their scores if they are known."""
    return list(zip(task.candidates, task.scores, strict=True)) if task.scores else task.candidates


class _BM25:
    """BM25 index of passages with their titles."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._passages = list(passages)
        self._index_by_id = {passage.id: index for index, passage in enumerate(self._passages)}
        self._bm25 = BM25Index([passage.titled_text for passage in self._passages])

    def search(self, query: str, n: int) -> list[tuple[Passage, float]]:
        """Return the best passages with their scores."""
        scores = self._bm25.scores(query)
        return [(self._passages[index], float(scores[index])) for index in top(scores, n)]

    def rank(self, query: str, candidates: Sequence[Passage]) -> list[tuple[Passage, float]]:
        """Rank some of the passages."""
        scores = self._bm25.scores(query)
        scored = [(passage, float(scores[self._index_by_id[passage.id]])) for passage in candidates]
        return sorted(scored, key=lambda item: -item[1])
