"""What `drillrank ask` takes over a folder of 100 PDFs, for the first question and later ones, and over one long PDF.

`--data` is a folder of PDFs, or a checkout of https://github.com/patronus-ai/financebench, whose reports from A to J
are taken. Each command is a process of its own. "CPU" counts seconds of the processor, which other programs on the
machine change least; memory is that of the largest process of a command. POSIX only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from drillrank.errors import require

FILES = 100
LONG = 1000  # pages
QUESTIONS = (
    "How much did net sales grow?",
    "How much did net sales grow?",
    "Which risks does the company see in its supply chain?",
    "What was the amount of capital expenditure?",
)


def main(data: str) -> None:
    console = Console(width=100)
    given = Path(data)
    files = sorted(given.glob("*.pdf")) or [f for f in sorted(given.glob("pdfs/*.pdf")) if f.name[0] <= "J"]
    with tempfile.TemporaryDirectory() as at:
        here = Path(at)
        folder = here / "reports"
        folder.mkdir()
        for file in files[:FILES]:
            (folder / file.name).symlink_to(file.resolve())
        pages = sum(map(page_count, folder.iterdir()))
        megabytes = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
        title = f"{len(files[:FILES])} PDFs, {megabytes:.0f} MB, {pages:,} pages"
        console.print(asked(folder, pages, title, here / "cache"))
        long = here / "long.pdf"
        joined(files, long)
        pages = page_count(long)
        console.print(asked(long, pages, f"one PDF of {pages:,} pages", here / "cache"))
        start = timed(["--version"], here)
        console.print(f"drillrank --version, for comparison: {start.seconds:.2f} seconds, CPU {start.cpu:.2f}")


@dataclass(frozen=True)
class Cost:
    """What a command took."""

    seconds: float
    cpu: float
    megabytes: float


def asked(what: Path, pages: int, title: str, cache: Path) -> Table:
    """A row for each question."""
    table = Table("question", "seconds", "CPU", "pages a second", "of CPU", "MB", title=title)
    for number, question in enumerate(QUESTIONS):
        cost = timed(["ask", str(what), question, "--json"], cache)
        speed = ["–", "–"] if number else [f"{pages / cost.seconds:.0f}", f"{pages / cost.cpu:.0f}"]
        name = "the same" if number == 1 else question
        table.add_row(name, f"{cost.seconds:.2f}", f"{cost.cpu:.2f}", *speed, f"{cost.megabytes:.0f}")
    return table


def timed(arguments: Sequence[str], cache: Path) -> Cost:
    """Run a command, with all processes that it starts."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "drillrank", *arguments],
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode > 1:
        raise RuntimeError(f"drillrank {' '.join(arguments)} ended with {process.returncode}")
    kilobytes = used.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return Cost(time.perf_counter() - started, used.ru_utime + used.ru_stime, kilobytes / 1000)


def page_count(file: Path) -> int:
    """Pages of a file; none of one that is broken."""
    pdfium = require("pypdfium2", "files")
    try:
        return len(pdfium.PdfDocument(file))
    except pdfium.PdfiumError:
        return 0


def joined(files: Sequence[Path], at: Path) -> None:
    """One file of the first pages of these."""
    pdfium = require("pypdfium2", "files")
    long = pdfium.PdfDocument.new()
    for file in files:
        if page_count(file):
            missing = LONG - len(long)
            document = pdfium.PdfDocument(file)
            long.import_pages(document, list(range(min(missing, len(document)))))
        if len(long) == LONG:
            break
    long.save(at)
