"""Memory of one question to a folder of 78 documents, with a language model that reads the best twenty passages.

Each row is a process of its own, with words and MiniLM in front of the reader, which is in bfloat16 and has a prefix
cache as `drillrank ask` has. `--model A,B` names directories of models, and `--vectors` a folder that keeps MiniLM's
vectors, which then need not be computed. Linux only.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from drillrank import D3, load_language_model
from drillrank.errors import InvalidInput

from .data import data_folder
from .folders import _keep_vectors, _read_folder, read_questions
from .kept import folder_of, named
from .measure import resident
from .minilm import minilm

MODELS = "smollm2,gemma3-270m,qwen-0.5b"
PREFIX_CACHE = "1 GB"


def main(model: str = MODELS, vectors: str | None = None) -> None:
    """Print the peak of the resident memory with each model, and without one."""
    table = Table("reader", "weights, MB", "peak memory, MB", "of which the reader, MB")
    table.title = "One question to 78 documents: words, MiniLM, and a reader of twenty passages in bfloat16"
    without = 0
    for name in ("", *named(model)):
        try:
            folder = folder_of(name) if name else None
        except InvalidInput:
            print(f"{name} is not on this machine, so its row is left out.")
            continue
        command = [sys.executable, "-m", __name__, str(folder or ""), vectors or ""]
        peak = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]) // 1000
        without = without or peak
        weights = sum(file.stat().st_size for file in folder.glob("*.safetensors")) // 10**6 if folder else 0
        table.add_row(name or "none", str(weights), f"{peak:,}", f"{peak - without:,}")
    Console(width=100).print(table)


def measure(model: str, vectors: str) -> None:
    """Answer a question, and print the peak of this process in kB."""
    documents = _read_folder(data_folder() / "folders")
    embed = _keep_vectors(minilm(), Path(vectors) / "MiniLM" if vectors else None)
    options = {"dtype": "bfloat16", "prefix_cache": PREFIX_CACHE}
    language_model = load_language_model(f"unigram+hf:{model}", experts=[{}, options]) if model else "unigram"
    d3 = D3(model=language_model, embed=embed)
    prepared = d3.prepare(list(documents.values()), list(documents))
    [question, *_] = read_questions(data_folder() / "folders")
    d3.retrieve(question["question"], prepared)
    print(resident("VmHWM"))


if __name__ == "__main__":
    measure(*sys.argv[1:])
