"""drillrank's own token count beside the encodings of large models: its sum and its scatter over kinds of text.

Set TIKTOKEN_CACHE_DIR to a folder with the encodings' files where there is no network.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank.text import count_tokens, token_counter

from .data import read

ROOT = Path(__file__).resolve().parents[2]
ENCODINGS = ("cl100k_base", "o200k_base")
LANGUAGES = {"German": "de", "French": "fr", "Spanish": "es", "Dutch": "nl", "Russian": "ru", "Arabic": "ar"}


def texts() -> dict[str, Sequence[str]]:
    chosen = random.Random(1)
    return {
        "papers, as Markdown": [paper["markdown"] for paper in chosen.sample(read("longdoc/qasper"), 40)],
        "passages of Wikipedia": [passage["text"] for passage in chosen.sample(read("multihop/passages"), 500)],
        "this project's documents": [file.read_text(encoding="utf-8") for file in ROOT.glob("docs/*.md")],
        "this project's Python": [file.read_text(encoding="utf-8") for file in ROOT.glob("shared/**/*.py")],
        "JSON": [json.dumps(record)[:4000] for record in chosen.sample(read("multihop/passages"), 100)],
        **{f"frequent words, {name}": frequent_words(code, chosen) for name, code in LANGUAGES.items()},
    }


def frequent_words(language: str, chosen: random.Random) -> list[str]:
    """Words as often as pyspellchecker's list has them, in no order."""
    [folder] = importlib.util.find_spec("spellchecker").submodule_search_locations
    counts = json.loads(gzip.decompress((Path(folder) / "resources" / f"{language}.json.gz").read_bytes()))
    return [" ".join(chosen.choices(list(counts), list(counts.values()), k=150)) for _ in range(40)]


def main() -> None:
    table = Table("text", *(f"of {name}: sum / one text's deviation" for name in ENCODINGS), title="Token counts")
    for kind, own in texts().items():
        ours = np.array([count_tokens(text) for text in own])
        cells = []
        for name in ENCODINGS:
            theirs = np.array([token_counter(f"tiktoken:{name}")(text) for text in own])
            cells.append(f"{ours.sum() / theirs.sum():.3f} / {(ours / theirs).std():.3f}")
        table.add_row(kind, *cells)
    Console().print(table)
