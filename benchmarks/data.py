"""The benchmark data, beside the checkout or where DRILLRANK_DATA points."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from drillrank import Passage

_HERE = Path(__file__).resolve().parents[1]


def data_folder() -> Path:
    return Path(os.environ.get("DRILLRANK_DATA", _HERE.parent / "shared" / "data"))


@lru_cache(maxsize=8)
def read(name: str) -> list[dict[str, Any]]:
    with gzip.open(data_folder() / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def rerank_pool(dataset: str) -> list[Passage]:
    """The passages of SQuAD or NQ."""
    return [Passage(item["text"], id=item["id"], title=item["title"]) for item in read(f"rerank/{dataset}_passages")]


def drawn(dataset: str, count: int | None) -> list[dict[str, Any]]:
    """So many questions of SQuAD or NQ, drawn with a seed, in the order of the file; None is all."""
    rows = read(f"rerank/{dataset}")
    if count is None or count >= len(rows):
        return rows
    return [rows[place] for place in sorted(random.Random(15).sample(range(len(rows)), count))]


def multihop_pool(dataset: str) -> list[Passage]:
    return [
        Passage(item["text"], id=item["id"], title=item["title"], links=tuple(item["links"]))
        for item in read("multihop/passages")
        if item["dataset"] == dataset
    ]


def stratified(rows: Sequence[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Return questions drawn with a seed, each type as often as in all rows, in the order of the rows."""
    by_type: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        by_type.setdefault(row["type"], []).append(index)
    chosen = [
        index
        for _, indices in sorted(by_type.items())
        for index in random.Random(15).sample(indices, round(count * len(indices) / len(rows)))
    ]
    return [rows[index] for index in sorted(chosen)]
