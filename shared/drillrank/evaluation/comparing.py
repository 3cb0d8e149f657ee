"""Compare components on your own questions: quality, whether a difference is more than noise, and costs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from drillrank.errors import InvalidInput
from drillrank.evaluation.advice import write_advice
from drillrank.evaluation.comparison import N_SHOWN, Comparison, Cost, OracleRecall, Prices
from drillrank.evaluation.corpora import CorpusSource
from drillrank.evaluation.experiment import BM25, FIRST_STAGE, FUSION, Experiment, ExperimentResults
from drillrank.evaluation.measures import check_measures, default_measures
from drillrank.evaluation.questions import Question, QuestionSource
from drillrank.evaluation.results_file import QuestionResult
from drillrank.evaluation.statistics import Pair, difference, holm, questions_that_would_tell, verdict
from drillrank.evaluation.systems import System, Task
from drillrank.explanation import Explanations
from drillrank.explanation.explanations import find_explainer
from drillrank.llm import LLM
from drillrank.passages import Path
from drillrank.progress import OnProgress
from drillrank.rerank.promptrank import PromptRank
from drillrank.rerank.upr import UPR
from drillrank.vectors import Floats


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
    """Compare components on questions with known evidence.

    All rerankers see the same candidates: those that the questions name, or else those that the first stage finds. The
    first stage takes part as `"first stage"`. So do `"BM25"` and their reciprocal rank fusion, `"first stage + BM25"`,
    unless the first stage is BM25. A component that searches is compared as it is. The results of a component are
    judged independently of the others (`drillrank.evaluation.measures`).

    Args:
        questions: A `.jsonl` or `.csv` file or mappings: `question`, at least one of `gold` (ids of passages), `spans`
            (texts that are evidence) and `answers`, and optionally `id`, `candidates`, their `scores`, `document` (the
            only document to search) and `type`. `drillrank.evaluation.datasets` reads those of public datasets.
        components: Components by name in the report: a drillrank component by name, a dotted path, a mapping with
            `component` and settings, or an object (see `drillrank.evaluation.systems.build_system`). A list of names
            or paths works, too.
        corpus: Files, folders, or passages. None if the questions have candidates, or if `first_stage` finds them.
        first_stage: A retriever of a framework, a dotted path to one, or a function from a question to passages. None
            is BM25 over the corpus.
        candidates: Number of candidates that the first stage finds for each question.
        measures: Names of measures (`drillrank.evaluation.measures`). None takes all for which there are labels.
        primary: The measure that decides, by default the first one.
        columns: Names of columns in the file, if they differ.
        prices: Price of a million tokens, `{"prompt": ..., "completion": ...}`, for components that count them.
        llm: LLM, as for `D3`, that answers each question with `answers` from the results of each component. Its prompt
            contains as many passages as fit, best first. `EM` and `AnswerF1` judge its answers.
        results: A JSON Lines file that keeps each result. Results with the same name, settings, version and candidates
            are not computed again. Others are, with a warning.
        on_progress: Callback, called as `(done, total)` after every question.

    Returns:
        The comparison: values, differences with intervals and verdicts, costs. A question on which a component fails
        counts 0. If a component failed or Ctrl-C ended the run, the comparison is partial, with a warning.

    Raises:
        InvalidInput: A row, a component, a measure or `results` cannot be used. The message names it.
        MissingExtra: ir-measures or scipy is not installed.

    >>> town = {"id": "1", "text": "Basel is a town in Switzerland."}
    >>> river = {"id": "2", "text": "The Rhine is the river that flows through Basel, a town."}
    >>> rows = [{"question": "Which river flows through Basel?", "gold": ["2"], "candidates": [town, river]}]
    >>> comparison = compare(rows, ["UPR"], measures=["AllR@1"])
    >>> comparison.mean("UPR", "AllR@1"), comparison.mean("first stage", "AllR@1")
    (1.0, 0.0)
    """
    # 1. Check the arguments.
    experiment = Experiment(questions, corpus, first_stage, candidates, columns, results, llm)
    names = _choose_measures(measures, primary, experiment.questions, has_llm=llm is not None)
    _check_prices(prices)
    specification_by_name = _name_components(components)
    # 2. Ask every component every question.
    baselines = experiment.baselines()
    systems = [*baselines, *(experiment.build_system(name, one) for name, one in specification_by_name.items())]
    run = experiment.run(systems, on_progress)
    # 3. Measure the results of each component, and test the differences.
    baseline_names = [system.name for system in baselines]
    comparison = _measure(experiment, systems, run, names, primary or names[0], prices, {FIRST_STAGE, *baseline_names})
    # 4. Draw conclusions.
    return replace(comparison, advice=write_advice(comparison, specification_by_name, baseline_names))


def _choose_measures(
    measures: Sequence[str] | None, primary: str | None, questions: Sequence[Question], *, has_llm: bool
) -> tuple[str, ...]:
    """Return the names of the measures, including the one that decides."""
    names: Sequence[str] = [measures] if isinstance(measures, str) else (measures or ())
    names = names or default_measures(questions, has_llm=has_llm)
    names = tuple(dict.fromkeys([primary, *names] if primary and primary not in names else names))
    check_measures(names, questions, has_llm=has_llm)
    return names


def _check_prices(prices: Prices | None) -> None:
    for name, price in (prices or {}).items():
        if name not in ("prompt", "completion") or not isinstance(price, int | float) or not price >= 0:
            raise InvalidInput(
                f'prices must be those of a million "prompt" or "completion" tokens, got {name!r:.99}: {price!r:.99}.'
            )


def _name_components(components: Mapping[str, Any] | Iterable[str]) -> dict[str, Any]:
    """Return the components by name."""
    if not isinstance(components, Mapping):
        components = {str(item): item for item in ([components] if isinstance(components, str) else components)}
    named = {str(name): specification for name, specification in components.items()}
    reserved = (FIRST_STAGE, BM25, FUSION)
    if not named or not named.keys().isdisjoint(reserved):
        raise InvalidInput(
            f"components must name what to compare, other than {', '.join(reserved)}, which take part anyway; got "
            f"{list(named)!r:.200}."
        )
    return named


def _measure(
    experiment: Experiment,
    systems: Sequence[System],
    run: ExperimentResults,
    names: tuple[str, ...],
    primary: str,
    prices: Prices | None,
    baselines: set[str],
) -> Comparison:
    """Return the comparison without advice."""
    everyone = (experiment.first_stage, *systems)
    values, ranks, costs, recall = {}, {}, {}, {}
    for system in everyone:
        results = run.results[system.name]
        values[system.name], own_ranks = experiment.measure(names, results)
        ranks[system.name] = own_ranks
        succeeded = [result for result in results.values() if not result.error]
        costs[system.name] = Cost.of(succeeded, system.seconds, prices)
        recall[system.name] = (
            OracleRecall.of(ranks[FIRST_STAGE], own_ranks, system.depth)
            if system.reranks
            else OracleRecall.of(own_ranks, own_ranks)
        )

    return Comparison(
        questions=tuple(experiment.questions),
        evidence=experiment.labels_by_id,
        ranks=ranks,
        measures=names,
        primary=primary,
        values=values,
        pairs=_compare_pairs(values, names, baselines),
        costs=costs,
        oracle_recall=recall,
        results=run.results,
        problems=tuple(run.problems),
        advice=(),
        passages={question.id: question.known_passages(experiment.corpus) for question in experiment.questions},
        explain=None if run.is_interrupted else _explain_with(experiment, everyone, run),
    )


def _explain_with(
    experiment: Experiment, systems: Sequence[System], run: ExperimentResults
) -> Callable[[QuestionResult, Question], Explanations]:
    """Return a function that asks a system again for explanations of a result."""

    def explain_again(result: QuestionResult, question: Question) -> Explanations:
        [system] = (system for system in systems if system.name == result.component)
        task = Task(question.text, *run.candidates[question.id], question.document)
        again, explanations = system.ask(task, experiment.corpus.within(question.document), N_SHOWN)
        if result.ids[:N_SHOWN] != [passage.id for passage in again.passages[:N_SHOWN]]:
            raise InvalidInput("asked again, it ranks differently: it has changed, or its results vary by chance")
        return explanations

    return explain_again


def _compare_pairs(values: Mapping[str, Mapping[str, Floats]], names: Sequence[str], baselines: set[str]) -> list[Pair]:
    """Compare all pairs except those of baselines alone. Holm's correction is over the pairs of one measure."""
    pairs: list[Pair] = []
    for name in names:
        compared = []
        for before, after in combinations(values, 2):
            differences = values[after][name] - values[before][name]
            differences = differences[np.isfinite(differences)]
            if len(differences) and after not in baselines:
                compared.append((before, after, differences, difference(differences)))
        adjusted_ps = holm([tested.p for *_, tested in compared])
        for (before, after, differences, tested), p in zip(compared, adjusted_ps, strict=True):
            needed = questions_that_would_tell(differences, len(compared))
            pairs.append(Pair(before, after, name, tested, p, verdict(tested.mean, p), needed))
    return pairs


def explain(query: str, ranking: Sequence[Any], ranker: Any = None) -> Explanations:
    """Explain the rank of each entry of a ranking: above all, what each token of the question adds.

    Args:
        query: The question that was asked.
        ranking: Result of `rank`, `search`, `search_paths` or `retrieve`, or a part of it. Copies, and entries in other
            lists, do not remember their ranker. A model without a collection of its own (`"unigram"`, not fitted) then
            needs all candidates, because its statistics are theirs.
        ranker: Ranker that made the ranking: `UPR`, `PromptRank`, `PathSearch`, `Relevance`, `MonoT5` or `BRMGR`. None
            takes the one that the ranking remembers, as `ranking.explain()` does, or else `UPR()`, or `PromptRank()`
            for paths.

    Returns:
        One explanation for each entry, in order. Its `total` equals the score within 1e-6, with a served model within
        1e-4. Notebooks, terminals (rich, or `print`) and pictures (`svg()`) show it.

    Raises:
        InvalidInput: The scores are not those of this ranker, or the ranking was made for another question.

    >>> ranking = UPR().rank("Who wrote Emma?", ["Emma is a novel that Jane Austen wrote.", "Basel lies on the Rhine."])
    >>> best = explain("Who wrote Emma?", ranking)[0]
    >>> max(best.tokens, key=lambda token: token.value).name
    'emma'
    >>> abs(best.total - best.score) < 1e-6
    True
    """
    if ranker is not None:
        explanations: Explanations = ranker.explain(query, ranking)
        return explanations
    explainer = find_explainer(ranking)
    if explainer is not None:
        explanations = explainer(ranking)
        if explanations.question != query:
            raise InvalidInput(f"The ranking was made for {explanations.question!r:.80}, not for {query!r:.80}.")
        return explanations
    has_paths = any(isinstance(item.passage, Path) for item in ranking)
    return PromptRank().explain(query, ranking) if has_paths else UPR().explain(query, ranking)
