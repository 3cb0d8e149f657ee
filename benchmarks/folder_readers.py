"""A language model reads the best passages of a folder of mixed documents: which weight, and how many passages?

Data and figures are those of the benchmark `folders`: the share of questions whose answer is within the first N
characters. `--model A,B` names directories of models, "smollm2" by default. Each reads in bfloat16 with UPR's prompt.
Its totals are kept (`kept.py`), so that a second run takes a minute. Rows: words, and words with MiniLM, without a
reader and with one, whose total log-likelihood has the weight ρ (`drillrank.drilldown.passage_reader`). `--vectors` is
a folder that keeps vectors for the next run. One of 60 questions is 1.7 points.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank import D3
from drillrank.drilldown.passage_reader import READER_WEIGHT
from drillrank.likelihood import LanguageModel, SumOfExperts, UnigramModel
from drillrank.structure import Document

from .data import data_folder
from .folders import DEPTH, LIMITS, Embed, Ranker, _load_encoders, _read_folder, characters_needed
from .kept import KeptModel, named

WEIGHTS = (0.125, 0.25, 0.5, 1.0, 2.0, 8.0)  # ρ
READ = (5, 10, 20)


def main(data: str | None = None, model: str = "smollm2", vectors: str | None = None) -> None:
    """Print the share of questions answered within each number of characters."""
    folder = Path(data) if data else data_folder() / "folders"
    questions = [one for one in json.loads((folder / "questions.json").read_text()) if one["kind"] != "absent"]
    documents = _read_folder(folder)
    encoders: dict[str, Embed | None] = {"words": None}
    encoders |= {f"words + 40 cos of {name}": embed for name, embed in _load_encoders(None, vectors).items()}
    readers = {Path(name).name: KeptModel(name, dtype="bfloat16") for name in named(model)}
    title = f"{len(documents)} documents, {len(questions)} questions: share answered within N characters"
    table = Table("passages by", "reader", "read", "ρ", *(f"{limit:,}" for limit in LIMITS), title=title)
    for name, embed in encoders.items():
        for reader, read, weight, rank in _rankers(documents, embed, readers):
            ends = np.array([characters_needed(list(rank(one["question"]))[:DEPTH], one) for one in questions])
            table.add_row(name, reader, read, weight, *(f"{(ends <= limit).mean():.3f}" for limit in LIMITS))
    Console(width=120).print(table)


def _rankers(
    documents: dict[str, Document], embed: Embed | None, readers: dict[str, KeptModel]
) -> Iterable[tuple[str, str, str, Ranker]]:
    """Yield the name of the reader, the number of passages it reads, its weight, and the ranking."""
    yield "", "", "", _ranker(documents, embed, UnigramModel(mu=1000), None)
    for name, reader in readers.items():
        choices = [(max(READ), weight) for weight in WEIGHTS]
        choices += [(n_read, READER_WEIGHT) for n_read in READ[:-1]]
        for n_read, weight in choices:
            model = SumOfExperts([UnigramModel(), reader], [1, weight / READER_WEIGHT])
            yield name, str(n_read), f"{weight:g}", _ranker(documents, embed, model, n_read)


def _ranker(documents: dict[str, Document], embed: Embed | None, model: LanguageModel, n_read: int | None) -> Ranker:
    d3 = D3(model=model, embed=embed, settings={"unit": "passage", "read": n_read})
    prepared = d3.prepare(list(documents.values()), list(documents))
    return lambda question: (ranked.passage.text for ranked in d3.retrieve(question, prepared, top_n=DEPTH))
