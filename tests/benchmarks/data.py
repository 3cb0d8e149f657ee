"""The benchmark data, beside the checkout or where DRILLRANK_DATA points."""

from __future__ import annotations

import gzip
import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from drillrank import Passage

_HERE = Path(__file__).resolve().parents[2]


def data_folder() -> Path:
    return Path(os.environ.get("DRILLRANK_DATA", _HERE.parent / "shared" / "data"))


@lru_cache(maxsize=8)
def read(name: str) -> list[dict[str, Any]]:
    with gzip.open(data_folder() / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def multihop_pool(dataset: str) -> list[Passage]:
    return [
        Passage(item["text"], id=item["id"], title=item["title"], links=tuple(item["links"]))
        for item in read("multihop/passages")
        if item["dataset"] == dataset
    ]
