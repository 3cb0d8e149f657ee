"""The dev data, beside the checkout or where DRILLRANK_DATA points, and what the calls share."""

from __future__ import annotations

import gzip
import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from drillrank import Passage

ROOT = Path(__file__).resolve().parents[2]


@lru_cache(maxsize=8)
def read(name: str) -> list[dict[str, Any]]:
    """The lines of a file."""
    folder = Path(os.environ.get("DRILLRANK_DATA", ROOT.parent / "shared" / "data"))
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@lru_cache(maxsize=3)
def pool(dataset: str) -> list[Passage]:
    """The passages of a multi-hop data set, with their links."""
    return [
        Passage(item["text"], id=item["id"], title=item["title"], links=tuple(item["links"]))
        for item in read("multihop/passages")
        if item["dataset"] == dataset
    ]


@lru_cache(maxsize=2)
def passages(name: str) -> dict[str, Passage]:
    """Those of `"nq"` or `"squad"`, by id."""
    return {
        item["id"]: Passage(item["text"], id=item["id"], title=item["title"])
        for item in read(f"rerank/{name}_passages")
    }


def candidates(name: str, item: dict[str, Any], count: int) -> list[Passage]:
    """The first so many that BM25 found for a question."""
    return [passages(name)[id_] for id_ in item["bm25_top"][:count]]


def cosines(count: int) -> list[float | None]:
    """Scores of a first stage, falling, with ties and one that is not known."""
    found: list[float | None] = [round(0.82 - 0.03 * (place - place % 3 // 2), 4) for place in range(count)]
    found[count // 2] = None
    return found


@lru_cache(maxsize=1)
def papers() -> list[dict[str, Any]]:
    """QASPER papers: title, Markdown, questions."""
    return read("longdoc/qasper")
