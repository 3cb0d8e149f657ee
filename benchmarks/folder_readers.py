"""A language model reads the best twenty passages: which weight, which model, and does it ever do harm?

Five sets. A question counts as answered within N characters if its gold text is in the first N characters of the first
40 results, as in the benchmark `folders`:

- `folders`: 78 documents in one folder, 60 questions.
- `qasper`: papers of the tuning half of QASPER, one at a time; the gold texts are from the middle of the
  paragraphs that annotators marked, one of which is enough.
- `german`: 30 documents in German, 30 questions.
- `project_wiki_dev` and `project_wiki`: two wikis, whose questions mostly need two pages. No weight is chosen on the
  second one.

`--model A,B` names directories of models. Each reads in bfloat16 with UPR's prompt. Its totals are kept (`kept.py`), so
that the tables need no language model. A set that a model has not read is left out if the model is not on this machine.
With `--steps judge`, each model also judges the best eight passages (`D3Settings.judge`), with the preset `"d3"` of
`Relevance`. `--vectors` is a folder that keeps vectors for the next run. `--questions` limits the questions of QASPER.

The first tables have a row for each weight ρ (`drillrank.drilldown.passage_reader`). The last one compares the default
with the ρ that is best on the other sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank import D3, Relevance, parse_document
from drillrank.drilldown.hierarchical_scores import MU
from drillrank.drilldown.passage_reader import READER_WEIGHT
from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.drilldown.settings import READ as DEFAULT_READ
from drillrank.drilldown.settings import READ_JUDGED
from drillrank.errors import InvalidInput
from drillrank.likelihood import LanguageModel, Likelihood, Request, SumOfExperts, UnigramModel
from drillrank.structure import Document
from drillrank.vectors import Floats

from .data import data_folder, read
from .folder_german import DATA as GERMAN
from .folder_german import LANGUAGE, _read_documents
from .folders import DEPTH, _load_encoders, _read_folder, characters_needed
from .kept import KeptModel, named
from .measure import gain
from .minilm import Embed
from .wiki_hops import DEVELOPMENT, TEST, read_questions

LIMITS = (1200, 3600, 6000)  # characters
WEIGHTS = (0.25, 0.5, 1.0, 2.0)  # ρ
READ = (5, 10)  # fewer passages than by default, with the default ρ
MODELS = "smollm2"
QASPER_QUESTIONS = 60
JUDGED_TOKENS = 400  # of a passage
GOLD_CHARACTERS = 80  # of a paragraph of QASPER


class Setting(NamedTuple):
    """One row of a table.

    Attributes:
        set_name: Name of the set.
        encoder: Name of the encoder.
        reader: Name of the model; empty if no model reads.
        weight: ρ; 0 without a model, and with one that judges.
        n_read: Number of passages that the model reads.
    """

    set_name: str
    encoder: str
    reader: str
    weight: float
    n_read: int


Outcomes = dict[Setting, Floats]
"""Characters needed per question, by setting."""


@dataclass(frozen=True)
class EvaluationSet:
    """Documents and questions.

    Attributes:
        folders: Documents by name and the questions to them, one entry per folder or paper.
        language: Language of the documents.
    """

    folders: Sequence[tuple[Mapping[str, Document], Sequence[dict[str, Any]]]]
    language: str = "english"


class ScaledReader(LanguageModel):
    """Model whose log-likelihoods are multiplied by a factor, so that documents are prepared once for all weights."""

    spec = "scaled"

    def __init__(self) -> None:
        self.model: LanguageModel = UnigramModel()
        self.factor = 1.0

    def log_likelihood_batch(
        self, requests: Sequence[Request], temperature: float, include_eos: bool
    ) -> list[Likelihood]:
        """Implement `LanguageModel.log_likelihood_batch`."""
        likelihoods = self.model.log_likelihood_batch(requests, temperature, include_eos)
        factor = self.factor
        return [replace(one, log_probs=factor * one.log_probs, total=factor * one.total) for one in likelihoods]


def main(
    data: str | None = None,
    model: str = MODELS,
    questions: int = QASPER_QUESTIONS,
    vectors: str | None = None,
    steps: str = "",
) -> None:
    """Print a table for each set, and one with weights that were chosen on the other sets."""
    judges = named(model) if "judge" in steps else []
    encoders: dict[str, Embed | None] = {"words": None} | dict(_load_encoders(None, vectors))
    outcomes: Outcomes = {}
    for name, evaluation_set in load_sets(Path(data) if data else data_folder() / "folders", questions):
        try:
            measured = [_measure(name, evaluation_set, *encoder, named(model), judges) for encoder in encoders.items()]
        except InvalidInput as problem:  # a model has not read this set, and is not on this machine
            print(f"{name}: left out. {problem}")
            continue
        for of_encoder in measured:
            outcomes |= of_encoder
        Console(width=120).print(_tabulate_set(name, outcomes))
    Console(width=160).print(_cross_validate(outcomes))


def load_sets(folder: Path, n_questions: int = QASPER_QUESTIONS) -> Iterator[tuple[str, EvaluationSet]]:
    """Yield the sets by name."""
    yield "folders", EvaluationSet([(_read_folder(folder), _read_answerable(folder))])
    yield "qasper", EvaluationSet(list(_load_papers(n_questions)))
    german = {str(number): document for number, document in enumerate(_read_documents(GERMAN / "dev.tar.gz"))}
    yield "german", EvaluationSet([(german, _read_answerable(GERMAN))], LANGUAGE)
    for wiki in (DEVELOPMENT, TEST):
        yield wiki.name, EvaluationSet([(_read_folder(wiki), _read_answerable(wiki))])


def _read_answerable(folder: Path) -> list[dict[str, Any]]:
    return [one for one in read_questions(folder) if one["kind"] != "absent"]


def _load_papers(n_questions: int) -> Iterator[tuple[dict[str, Document], list[dict[str, Any]]]]:
    """Yield papers with the questions that have evidence in their paragraphs, up to `n_questions` in all."""
    n_yielded = 0
    for item in read("longdoc/qasper_tune"):
        questions = []
        for question in item["questions"]:
            places = sorted({tuple(place) for evidence in question["evidence"] for place in evidence})
            golds = [_cut_middle(item["sections"][section]["paragraphs"][number]) for section, number in places]
            if golds:
                questions.append({"question": question["question"], "gold": golds[0], "alt": golds[1:]})
        questions = questions[: n_questions - n_yielded]
        if questions:
            n_yielded += len(questions)
            yield {item["title"]: parse_document(item["markdown"], "markdown")}, questions


def _cut_middle(paragraph: str) -> str:
    """Return the middle of a paragraph. Its beginning may be read as a heading, and its parts in several passages."""
    start = max(len(paragraph) - GOLD_CHARACTERS, 0) // 2
    return paragraph[start : start + GOLD_CHARACTERS]


def _measure(
    name: str,
    evaluation_set: EvaluationSet,
    encoder: str,
    embed: Embed | None,
    models: Sequence[str],
    judges: Sequence[str],
) -> Outcomes:
    """Return the characters needed without a model, with each reader and with each judge."""
    outcomes: dict[Setting, list[float]] = {}
    words = UnigramModel(mu=MU, language=evaluation_set.language)  # as D3 scores by words, with and without a reader
    for documents, questions in evaluation_set.folders:
        names, parsed = list(documents), list(documents.values())
        alone = D3(model=words, embed=embed, settings={"unit": "passage"})
        key = Setting(name, encoder, "", 0.0, 0)
        outcomes.setdefault(key, []).extend(_characters(alone, alone.prepare(parsed, names), questions))
        for model in judges:
            judge = Relevance(KeptModel(model, dtype="bfloat16"), preset="d3", max_passage_tokens=JUDGED_TOKENS)
            d3 = D3(model=words, embed=embed, settings={"unit": "passage", "judge": judge, "read": READ_JUDGED})
            key = Setting(name, encoder, f"{Path(model).name}, judge", 0.0, READ_JUDGED)
            outcomes.setdefault(key, []).extend(_characters(d3, d3.prepare(parsed, names), questions))
        for n_read in (DEFAULT_READ, *READ):
            reader = ScaledReader()
            d3 = D3(
                model=SumOfExperts([words, reader], [1, 1]), embed=embed, settings={"unit": "passage", "read": n_read}
            )
            prepared = d3.prepare(parsed, names)
            for model in models:
                reader.model = KeptModel(model, dtype="bfloat16")
                for weight in WEIGHTS if n_read == DEFAULT_READ else [READER_WEIGHT]:
                    reader.factor = weight / READER_WEIGHT
                    key = Setting(name, encoder, Path(model).name, weight, n_read)
                    outcomes.setdefault(key, []).extend(_characters(d3, prepared, questions))
    return {key: np.array(needed) for key, needed in outcomes.items()}


def _characters(d3: D3, prepared: PreparedDocuments, questions: Sequence[dict[str, Any]]) -> Iterator[float]:
    """Yield the characters after which each question is answered."""
    for question in questions:
        ranking = d3.retrieve(question["question"], prepared, top_n=DEPTH)
        yield characters_needed([ranked.passage.text for ranked in ranking], question)


def _tabulate_set(name: str, outcomes: Outcomes) -> Table:
    """Return the share of questions answered within each number of characters, by setting."""
    rows = {key: needed for key, needed in outcomes.items() if key.set_name == name}
    title = f"{name}, {len(next(iter(rows.values())))} questions: share answered within N characters"
    table = Table(
        "passages by", "reader", "read", "ρ", *(f"{limit:,}" for limit in LIMITS), "mean, less no reader", title=title
    )
    for key, needed in rows.items():
        without = outcomes[key._replace(reader="", weight=0.0, n_read=0)]
        settings = (key.reader, str(key.n_read), f"{key.weight:g}") if key.reader else ("", "", "")
        shares = [f"{(needed <= limit).mean():.3f}" for limit in LIMITS]
        table.add_row(
            key.encoder, *settings, *shares, gain(_answered(needed) - _answered(without)) if key.reader else ""
        )
    return table


def _cross_validate(outcomes: Outcomes) -> Table:
    """Return what readers add on each set, with the default weight and with that which is best on the other sets."""
    title = "share of questions answered, mean over the three limits, less that without a reader"
    table = Table("passages by", "reader", "set", "default ρ", "ρ of other sets", "gain", title=title)
    defaults = [key for key in outcomes if (key.weight, key.n_read) == (READER_WEIGHT, DEFAULT_READ)]
    for encoder, reader in dict.fromkeys((key.encoder, key.reader) for key in defaults):
        all_gains: list[tuple[Floats, Floats]] = []
        for key in (one for one in defaults if (one.encoder, one.reader) == (encoder, reader)):
            weight = _choose_weight(outcomes, key)
            gains = _gain_of(outcomes, key), _gain_of(outcomes, key._replace(weight=weight))
            all_gains.append(gains)
            table.add_row(encoder, reader, key.set_name, gain(gains[0]), f"{weight:g}", gain(gains[1]))
        by_default, by_others = map(np.concatenate, zip(*all_gains, strict=True))
        table.add_row(encoder, reader, "all questions", gain(by_default), "", gain(by_others), end_section=True)
    return table


def _choose_weight(outcomes: Outcomes, key: Setting) -> float:
    """Return the weight with the largest mean gain on the other sets, over all encoders and readers."""

    def mean_gain(weight: float) -> float:
        others = [
            one
            for one in outcomes
            if one.set_name not in (key.set_name, TEST.name) and (one.weight, one.n_read) == (weight, DEFAULT_READ)
        ]
        return float(np.mean([_gain_of(outcomes, one).mean() for one in others] or [0.0]))

    return max(WEIGHTS, key=mean_gain)


def _gain_of(outcomes: Outcomes, key: Setting) -> Floats:
    """Return what a reader adds to the share of limits within which each question is answered."""
    without = outcomes[key._replace(reader="", weight=0.0, n_read=0)]
    return _answered(outcomes[key]) - _answered(without)


def _answered(needed: Floats) -> Floats:
    """Return the share of the limits within which each question is answered."""
    shares: Floats = np.mean([needed <= limit for limit in LIMITS], axis=0)
    return shares
