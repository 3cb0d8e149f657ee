"""All of FinanceBench's reports in one folder, as the command line reads and asks them: time, room, document, page.

`--data` is a checkout of https://github.com/patronus-ai/financebench, `--vectors` a folder for the cache, which a
second run finds filled. doc@k and page@k are those of `which_document`. Published page@5 on this data, of another
split: BGE-M3 .35, with a reranker .44, a fine-tuned one .55.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank import D3
from drillrank.cli.corpus import FileCorpus
from drillrank.cli.sources import list_input_files

from .measure import resident
from .which_document import DOCUMENTS, PAGES, measures

_PARAGRAPHS = 200  # of a ranking: they hold ten different pages
_TIMED = 7  # commands


def main(data: str, vectors: str | None = None, questions: int | None = None) -> None:
    """Print what reading costs, what a question costs, and the table.

    Args:
        data: The checkout.
        vectors: A folder for the cache.
        questions: Only so many.
    """
    console = Console(width=120)
    with TemporaryDirectory() as temporary:
        _print(Path(data), Path(vectors or temporary), questions, console)


def _print(data: Path, cache: Path, most: int | None, console: Console) -> None:
    lines = (data / "data" / "financebench_open_source.jsonl").read_text(encoding="utf-8").splitlines()
    started, before = time.perf_counter(), os.times()
    sources, _ = list_input_files([str(data / "pdfs")])
    files = FileCorpus(sources, cache / "drillrank", "english")
    after = os.times()
    cpu = sum(after[:4]) - sum(before[:4])
    [file] = (cache / "drillrank").glob("*.sqlite")
    console.print(
        f"{len(files.names)} reports of {len(sources)}: {time.perf_counter() - started:.0f} s, {cpu:.0f} CPU s; "
        f"{file.stat().st_size / 1e6:.0f} MB on disk, of {sum(s.path.stat().st_size for s in sources) / 1e6:.0f} MB"
    )
    there = {Path(name).stem: id_ for id_, name in files.names.items()}
    asked = [entry for entry in map(json.loads, lines) if entry["doc_name"] in there][:most]
    d3, rows, seconds = D3(), [], []
    for entry in asked:
        started = time.process_time()
        found = files.ask(d3, lambda ready, entry=entry: d3.retrieve(entry["question"], ready, _PARAGRAPHS))  # type: ignore[misc]
        seconds.append(time.process_time() - started)
        places = [
            (item.passage.metadata["document"], page)
            for item in found
            for page in range(item.passage.metadata["pages"][0], item.passage.metadata["pages"][1] + 1)
        ]
        pages = {int(evidence["evidence_page_num"]) + 1 for evidence in entry["evidence"]}
        rows.append(measures(places, there[entry["doc_name"]], pages))
    table = Table(*(f"doc@{k}" for k in DOCUMENTS), *(f"page@{k}" for k in PAGES), title=f"{len(rows)} questions")
    table.add_row(*(f"{value:.3f}" for value in np.mean(rows, axis=0)))
    console.print(table)
    console.print(
        f"{_PARAGRAPHS} paragraphs a question: {np.median(seconds):.2f} CPU s, peak {resident('VmHWM') / 1000:.0f} MB"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "OMP_NUM_THREADS": "1"}
    warm = []
    for entry in asked[:_TIMED]:
        command = [sys.executable, "-m", "drillrank", "ask", str(data / "pdfs"), entry["question"], "--json"]
        started = time.perf_counter()
        subprocess.run(command, env=environment, check=False, capture_output=True)
        warm.append(time.perf_counter() - started)
    console.print(f"drillrank ask as a process of its own: first {warm[0]:.2f} s, then {np.median(warm[1:]):.2f} s")
