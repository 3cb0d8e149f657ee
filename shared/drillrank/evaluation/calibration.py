"""Calibrate how many passages of a reranker keep the evidence, on questions whose evidence is known."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from drillrank.coverage import Coverage
from drillrank.errors import InvalidInput, warn
from drillrank.evaluation.corpora import CorpusSource
from drillrank.evaluation.experiment import Experiment
from drillrank.evaluation.questions import QuestionSource
from drillrank.progress import OnProgress


def calibrate_coverage(
    questions: QuestionSource,
    corpus: CorpusSource | None = None,
    *,
    share: float = 0.9,
    component: str | Mapping[str, Any] = "UPR",
    first_stage: Any = None,
    candidates: int = 50,
    columns: Mapping[str, str] | None = None,
    results: str | os.PathLike[str] | None = None,
    on_progress: OnProgress | None = None,
) -> Coverage:
    """Calibrate `Coverage` for a reranker on questions whose evidence is known.

    Questions whose evidence is not among the candidates do not count, and a warning reports their number. Of several
    pieces of evidence, the best one counts.

    Args:
        questions: As for `compare`.
        corpus: As for `compare`.
        share: Share of questions whose evidence is kept.
        component: Reranker as for `compare`. Its scores must be those of the reranker that will have the `top_n`.
        first_stage: As for `compare`.
        candidates: As for `compare`.
        columns: As for `compare`.
        results: As for `compare`.
        on_progress: As for `compare`.

    Raises:
        InvalidInput: An argument cannot be used, the component is not a reranker with scores, or there are too few
            questions.

    >>> town = {"id": "1", "text": "Basel is a town. It has a zoo."}
    >>> river = {"id": "2", "text": "The Rhine flows through Basel."}
    >>> rows = [{"question": "Which river flows through Basel?", "gold": ["2"], "candidates": [town, river]}] * 9
    >>> calibrate_coverage([{**row, "id": str(number)} for number, row in enumerate(rows)]).margin
    0.0
    """
    Coverage(share)
    experiment = Experiment(questions, corpus, first_stage, candidates, columns, results)
    reranker = experiment.build_system("reranker", component)
    if not reranker.reranks:
        raise InvalidInput(f"component must be a reranker, got {component!r:.200}. Coverage counts its candidates.")
    records = experiment.run([reranker], on_progress).results[reranker.name]
    distances = []
    for question in experiment.questions:
        record = records.get(question.id)
        scores = [score for score in record.scores if score is not None] if record else []
        if record is None or record.error or not scores or len(scores) < len(record.ids):
            raise InvalidInput(f"component must give every candidate a score, got {component!r:.200}.")
        passages = record.passages(question.known_passages(experiment.corpus))
        ranks = experiment.labels_by_id[question.id].ranks(passages)
        if (best := min(ranks, default=math.inf)) < math.inf:
            distances.append(scores[0] - scores[int(best) - 1])
    if n_missing := len(experiment.questions) - len(distances):
        warn(f"The evidence of {n_missing} questions is not among their candidates. The calibration ignores them.")
    return Coverage.calibrate(share, distances, component if isinstance(component, str) else component["component"])
