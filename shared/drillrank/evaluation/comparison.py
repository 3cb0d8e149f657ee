"""Compare components on one's own questions: what each brings, whether that is more than noise, and what it costs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from drillrank.errors import InvalidInput, check_positive
from drillrank.evaluation.comparison_result import Comparison, Cost, Reach
from drillrank.evaluation.contenders import Contender, Found, as_found, contender
from drillrank.evaluation.corpus import Bm25, Corpus, CorpusSource, check_gold, read_corpus
from drillrank.evaluation.explaining import Explainer
from drillrank.evaluation.measures import check_measures, default_measures, gold_ids, values
from drillrank.evaluation.questions import Question, QuestionSource, read_questions
from drillrank.evaluation.records import Records, fingerprint
from drillrank.evaluation.running import FIRST_STAGE, FirstStage, OnProgress, Run, run_all
from drillrank.evaluation.statistics import Floats, Pair, difference, holm, questions_that_would_tell, verdict
from drillrank.passages import Passage

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
    first stage itself takes part as `"first stage"`. A component that looks for itself is compared as it is.

    Args:
        questions: A `.jsonl` or `.csv` file or mappings: `question`, one at least of `gold` (ids of passages), `spans`
            (texts that are evidence) and `answers`, and perhaps `id`, `candidates` and their `scores`.
        components: What is compared, by the names of the report: one of ours by name, a dotted path, a mapping with
            `component` and settings, or an object (see `drillrank.evaluation.contenders.contender`). A list of names
            or paths will do.
        corpus: Files, folders, or passages; None where the questions bring their candidates or `first_stage` finds
            them elsewhere.
        first_stage: A retriever of either host, a dotted path to one, or a function from a question to passages. None
            is BM25 over the corpus.
        candidates: How many the first stage finds for each question.
        measures: Names; None for all that the questions say something for (`drillrank.evaluation.measures`).
        primary: The measure that decides; the first one by default.
        columns: What the file calls a column that has another name there.
        prices: What a million tokens cost, `{"prompt": ..., "completion": ...}`; for components that tell them.
        results: A JSON Lines file where each result is kept; what is there is not computed again. Delete it where a
            component has changed without its settings.
        on_progress: Is told of every question, `(done, all)`.

    Returns:
        The comparison: values, differences with intervals and verdicts, costs. It is partial, with a warning, where a
        component failed or Ctrl-C ended it.

    Raises:
        InvalidInput: a row, a component or a measure cannot be used; the message names it.
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
    ready = _contenders(components, searched)
    records = Records(results, fingerprint(asked, searched.passages, candidates))
    run = run_all(asked, ready, stage, searched, records, on_progress)
    explainer = None
    if not run.interrupted:
        explaining = [*ready, *([stage.contender] if stage.contender else [])]
        explainer = Explainer({one.name: one for one in explaining}, searched, records, run.results)
    return replace(_compared(asked, ready, searched, run, names, primary, prices), explainer=explainer)


def _contenders(components: Mapping[str, Any] | Iterable[str], corpus: Corpus) -> list[Contender]:
    named = components if isinstance(components, Mapping) else None
    if named is None:
        listed = [components] if isinstance(components, str) else list(components)
        named = {str(item): item for item in listed}
    if not named or FIRST_STAGE in named:
        raise InvalidInput(f"Name the components to compare, {FIRST_STAGE!r} takes part anyway; not {list(named)}.")
    return [contender(str(name), given, corpus) for name, given in named.items()]


def _check_prices(prices: Prices | None) -> None:
    for name, price in (prices or {}).items():
        if name not in ("prompt", "completion") or not isinstance(price, int | float) or not price >= 0:
            raise InvalidInput(f"Prices are those of a million prompt and completion tokens; not {name!r}: {price!r}.")


def candidates_by(given: Any, questions: Sequence[Question], corpus: Corpus, n: int) -> FirstStage:
    """How the candidates of a question are found.

    Raises:
        InvalidInput: some questions have candidates and some have none, or there is nothing to find them in.
    """
    bring = [question.candidates is not None for question in questions]
    if all(bring):
        return FirstStage("given", lambda question: _given(question, corpus))
    if any(bring):
        place = questions[bring.index(False)].place
        raise InvalidInput(f"{place} has no candidates, and other questions have: give them for all, or for none.")
    if given is not None:
        one = contender(FIRST_STAGE, given, corpus)
        if one.reranks:
            raise InvalidInput("A first stage finds passages for a question; what was given reranks them.")
        return FirstStage(f"{one.spec} {n}", lambda question: _cut(one.found(question.text, [], None, corpus), n), one)
    if not corpus.passages:
        raise InvalidInput("Nothing is there to rank: give a corpus, a first_stage, or questions with candidates.")
    bm25 = Bm25(corpus)
    return FirstStage(f"bm25 {n}", lambda question: as_found(bm25(question.text, n), corpus.passages, FIRST_STAGE))


def _given(question: Question, corpus: Corpus) -> Found:
    passages = [item if isinstance(item, Passage) else corpus.passages[item] for item in question.candidates or ()]
    return Found(passages, list(question.scores or [None] * len(passages)))


def _cut(found: Found, n: int) -> Found:
    return Found(found.passages[:n], found.scores[:n], found.details[:n], found.usage, explains=found.explains)


def _compared(
    questions: Sequence[Question],
    contenders: Sequence[Contender],
    corpus: Corpus,
    run: Run,
    names: Sequence[str],
    primary: str,
    prices: Prices | None,
) -> Comparison:
    passages = {question.id: known_passages(question, corpus, run) for question in questions}
    gold = {question.id: gold_ids(question, passages[question.id]) for question in questions}
    found = measured(questions, run, names, gold, passages)
    shown = {one.name: one.depth if one.reranks else 0 for one in contenders}
    seconds = {one.name: one.seconds for one in contenders}
    return Comparison(
        questions=tuple(questions),
        gold=gold,
        measures=tuple(names),
        primary=primary,
        values=found,
        pairs=_pairs(found, names),
        costs={
            name: Cost.of(list(results.values()), seconds.get(name, 0.0), prices)
            for name, results in run.results.items()
        },
        reach={
            name: Reach.of(questions, gold, run.results[FIRST_STAGE], results, shown.get(name))
            for name, results in run.results.items()
        },
        results=run.results,
        problems=tuple(run.problems),
        complete=run.complete,
        passages=passages,
    )


def measured(
    questions: Sequence[Question],
    run: Run,
    names: Sequence[str],
    gold: Mapping[str, set[str]],
    passages: Mapping[str, Mapping[str, Passage]],
) -> dict[str, dict[str, Floats]]:
    """Of each component and measure one value for each question, shape (questions,); NaN where it did not answer."""
    found: dict[str, dict[str, Floats]] = {}
    for component, results in run.results.items():
        places = [place for place, question in enumerate(questions) if question.id in results]
        some = [questions[place] for place in places]
        rankings = {question.id: results[question.id].ids for question in some}
        texts = {
            id_: [passages[id_][name].titled_text for name in ids if name in passages[id_]]
            for id_, ids in rankings.items()
        }
        found[component] = {}
        for name, column in values(names, some, gold, rankings, texts).items():
            found[component][name] = np.full(len(questions), np.nan)
            found[component][name][places] = column
    return found


def known_passages(question: Question, corpus: Corpus, run: Run) -> Mapping[str, Passage]:
    """All passages that a question could be answered from: the corpus, and what was given or found elsewhere."""
    known = {item.id: item for item in question.candidates or () if isinstance(item, Passage)}
    for results in run.results.values():
        record = results.get(question.id)
        for id_, (title, text) in (record.texts if record else {}).items():
            known.setdefault(id_, Passage(text, id=id_, title=title))
    if not known:
        return corpus.passages
    return {**corpus.passages, **known}


def _pairs(found: Mapping[str, Mapping[str, Floats]], names: Sequence[str]) -> list[Pair]:
    """Every pair under every measure; Holm's correction is over the pairs of one measure."""
    pairs: list[Pair] = []
    for name in names:
        compared = []
        for before, after in combinations(found, 2):
            differences = found[after][name] - found[before][name]
            differences = differences[np.isfinite(differences)]
            if len(differences):
                compared.append((before, after, differences, difference(differences)))
        adjusted = holm([item.p for *_, item in compared])
        for (before, after, differences, item), p in zip(compared, adjusted, strict=True):
            needed = questions_that_would_tell(differences, len(compared))
            pairs.append(Pair(before, after, name, item, p, verdict(item.mean, p), needed))
    return pairs
