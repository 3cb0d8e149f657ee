"""Compare components on one's own questions: what each brings, whether that is more than noise, and what it costs."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from drillrank.errors import InvalidInput, check_positive
from drillrank.evaluation.advice import advice
from drillrank.evaluation.comparison_result import Comparison, Cost, OracleRecall, Ranks
from drillrank.evaluation.corpus import Bm25, Corpus, CorpusSource, check_gold, read_corpus
from drillrank.evaluation.evidence import Evidence, evidence_of
from drillrank.evaluation.explaining import Explainer
from drillrank.evaluation.measures import check_measures, default_measures, values
from drillrank.evaluation.questions import Question, QuestionSource, read_questions
from drillrank.evaluation.records import Record, Records, fingerprint, spec_of
from drillrank.evaluation.running import BM25, FIRST_STAGE, FUSION, OnProgress, run_all
from drillrank.evaluation.statistics import Floats, Pair, difference, holm, questions_that_would_tell, verdict
from drillrank.evaluation.systems import System, system
from drillrank.passages import Passage
from drillrank.views import merge_views

Prices = Mapping[str, float]


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
        prices: What a million tokens cost, `{"prompt": ..., "completion": ...}`; for components that tell them.
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
    asked = read_questions(questions, columns)
    names = (measures,) if isinstance(measures, str) else tuple(measures or default_measures(asked))
    primary = primary or names[0]
    if primary not in names:
        names = (primary, *names)
    check_measures(names, asked)
    _check_prices(prices)
    searched = read_corpus(corpus)
    check_gold(asked, searched)
    stage = candidates_by(first_stage, asked, searched, candidates)
    named = _named(components)
    baselines = _baselines(stage, searched, candidates)
    systems = [*baselines, *(system(name, given, searched) for name, given in named.items())]
    evidence = evidence_of(asked, searched.documents.values())
    records = Records(results, fingerprint(asked, searched.passages, candidates))
    run = run_all(asked, systems, stage, searched, records, on_progress)

    measured_by = {name: measured(names, asked, evidence, found, searched) for name, found in run.results.items()}
    found_values = {name: one for name, (one, _) in measured_by.items()}
    ranks = {name: one for name, (_, one) in measured_by.items()}
    rerankers = {one.name: one for one in systems if one.reranks}
    seconds = {one.name: one.seconds for one in systems}
    explaining = {one.name: one for one in (*systems, stage) if one is not None}
    compared = Comparison(
        questions=tuple(asked),
        evidence=evidence,
        ranks=ranks,
        measures=names,
        primary=primary,
        values=found_values,
        pairs=_pairs(found_values, names, {FIRST_STAGE, *(one.name for one in baselines)}),
        costs={
            name: Cost.of([record for record in found.values() if not record.error], seconds.get(name, 0.0), prices)
            for name, found in run.results.items()
        },
        oracle_recall={
            name: OracleRecall.of(ranks[FIRST_STAGE], own, rerankers[name].depth)
            if name in rerankers
            else OracleRecall.of(own, own)
            for name, own in ranks.items()
        },
        results=run.results,
        problems=tuple(run.problems),
        advice=(),
        passages={question.id: searched.known(question) for question in asked},
        explainer=None if run.interrupted else Explainer(explaining, searched, records, run.results),
    )
    return replace(compared, advice=advice(compared, named, [one.name for one in baselines]))


def _named(components: Mapping[str, Any] | Iterable[str]) -> dict[str, Any]:
    if isinstance(components, Mapping):
        named = {str(name): given for name, given in components.items()}
    else:
        named = {str(item): item for item in ([components] if isinstance(components, str) else components)}
    own = (FIRST_STAGE, BM25, FUSION)
    if not named or not named.keys().isdisjoint(own):
        raise InvalidInput(
            f"Name the components to compare; {', '.join(own)} take part anyway; not {list(named)!r:.200}."
        )
    return named


def _check_prices(prices: Prices | None) -> None:
    for name, price in (prices or {}).items():
        if name not in ("prompt", "completion") or not isinstance(price, int | float) or not price >= 0:
            raise InvalidInput(
                f"Prices are those of a million prompt and completion tokens; not {name!r:.200}: {price!r:.200}."
            )


def candidates_by(given: Any, questions: Sequence[Question], corpus: Corpus, n: int) -> System | None:
    """The first stage, which finds the candidates of a question; None where the questions bring them.

    Raises:
        InvalidInput: some questions have candidates and some have none, or there is nothing to find them in.
    """
    bring = [question.candidates is not None for question in questions]
    if all(bring):
        return None
    if any(bring):
        place = questions[bring.index(False)].place
        raise InvalidInput(f"{place} has no candidates, and other questions have: give them for all, or for none.")
    if given is not None:
        one = system(FIRST_STAGE, given, corpus)
        if one.reranks:
            raise InvalidInput("A first stage finds passages for a question; what was given reranks them.")
        return replace(one, spec=f"{one.spec} {n}", depth=n)
    if not corpus.passages:
        raise InvalidInput("Nothing is there to rank: give a corpus, a first_stage, or questions with candidates.")
    bm25 = Bm25(corpus.passages.values())
    return System(FIRST_STAGE, spec_of(f"{BM25} {n}"), False, lambda query, *_: bm25.search(query, n), n)


def _baselines(stage: System | None, corpus: Corpus, n: int) -> list[System]:
    """BM25, and its reciprocal rank fusion with the first stage; none where the first stage is BM25.

    BM25 searches the corpus where the first stage does, and ranks the candidates where the questions name them.
    """
    spec = spec_of(f"{BM25} {n}")
    if stage is not None and stage.spec == spec:
        return []
    whole = Bm25(corpus.passages.values()) if corpus.passages else None

    def bm25(query: str, candidates: Sequence[Passage], _scores: object = None) -> list[tuple[Passage, float]]:
        if whole is not None and stage is not None:
            return whole.search(query, n)
        known = whole is not None and all(passage.id in corpus.passages for passage in candidates)
        return (whole if whole is not None and known else Bm25(candidates)).rank(query, candidates)

    def fusion(query: str, candidates: Sequence[Passage], _scores: object) -> list[tuple[Passage, float]]:
        rankings = {FIRST_STAGE: candidates, BM25: [passage for passage, _ in bm25(query, candidates)]}
        passages = {passage.id: passage for ranking in rankings.values() for passage in ranking}
        ids = {name: [passage.id for passage in ranking] for name, ranking in rankings.items()}
        return [(passages[one.section_id], one.score) for one in merge_views(ids, max(n, len(candidates)), weights={})]

    return [System(BM25, spec, stage is None or whole is None, bm25), System(FUSION, spec, True, fusion)]


def measured(
    names: Sequence[str],
    questions: Sequence[Question],
    evidence: Mapping[str, Evidence],
    found: Mapping[str, Record],
    corpus: Corpus,
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
    columns: dict[str, Floats] = {}
    for name, column in values(names, asked, evidence, rankings, ranks).items():
        columns[name] = np.full(len(questions), np.nan)
        columns[name][places] = column
    return columns, ranks


def _pairs(found: Mapping[str, Mapping[str, Floats]], names: Sequence[str], anyway: Collection[str]) -> list[Pair]:
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
