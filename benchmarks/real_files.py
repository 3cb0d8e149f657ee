"""Real files of every kind: the share that is read, the time per file, and the reasons for skipping the others.

`--data` names one or more folders, separated by the path separator of the system (":" on Linux). By default these are
the folders of documentation and the Python packages of this machine. Up to 200 files of each registered format are
read, and up to 20 of each other kind. Each file is read as `drillrank ask` reads it. The benchmark reports every file
that raises another error than one of drillrank, and every document whose sections do not tile its text.
"""

from __future__ import annotations

import os
import random
import re
import site
import statistics
import sys
import sysconfig
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from drillrank.errors import DrillrankError, DrillrankWarning
from drillrank.structure import Document, read_document, registered_formats
from tests.pumping import TooSlowError, cpu_limit

FILES = 200  # of each format
OTHER_FILES = 20  # of each kind that is not registered
CANDIDATES = 20_000  # of each kind, before files are drawn from as many folders as possible
BYTES = 20_000_000
CPU_SECONDS = 60.0
OTHER_KINDS = [
    ".doc",
    ".ppt",
    ".xls",
    ".odt",
    ".odp",
    ".msg",
    ".mbox",
    ".png",
    ".jpg",
    ".gif",
    ".svg",
    ".zip",
    ".gz",
    ".xml",
    ".toml",
    ".ini",
    ".sqlite",
    ".so",
    ".woff2",
]


@dataclass
class Kind:
    """Results for the files of one kind.

    Attributes:
        seconds: Time that each file took.
        read: Number of files that were read.
        warned: Number of files that were read with a warning.
        reasons: Number of skipped files by reason.
        faults: Files that raise another error or break an invariant, with what is wrong.
    """

    seconds: list[float] = field(default_factory=list)
    read: int = 0
    warned: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def main(data: str = "", questions: int = FILES) -> None:
    """Read the files and print a table.

    Args:
        data: Folders, separated by the path separator; empty for those of this machine.
        questions: Number of files of each format.
    """
    folders = [Path(name) for name in data.split(os.pathsep)] if data else default_folders()
    console = Console(width=140)
    known_suffixes = {suffix: format.name for format in registered_formats() for suffix in format.suffixes}
    files_by_suffix = find_files(folders, [*known_suffixes, *OTHER_KINDS])
    files_by_kind: dict[str, list[Path]] = defaultdict(list)
    for suffix, files in files_by_suffix.items():
        files_by_kind[known_suffixes.get(suffix, suffix)] += files
    results: dict[str, Kind] = {}
    for name in [*dict.fromkeys(known_suffixes.values()), *OTHER_KINDS]:
        files = files_by_kind.get(name, [])
        limit = questions if name in known_suffixes.values() else OTHER_FILES
        if files:
            results[name] = read_files(spread(files)[:limit])
            print(f"{name}: {results[name].read} of {len(results[name].seconds)}", file=sys.stderr, flush=True)
    console.print(as_table(results))
    for name, kind in results.items():
        for fault in kind.faults:
            console.print(f"FAULT {name}: {escape(fault)}", soft_wrap=True)


def default_folders() -> list[Path]:
    """Return the folders of this machine that are likely to contain documents."""
    names = ["/usr/share/doc", "/usr/share/nodejs", "/usr/lib/node_modules", "/usr/share/info", "/usr/share/help"]
    names += [*site.getsitepackages(), sysconfig.get_path("stdlib")]
    return [Path(name) for name in names if Path(name).is_dir()]


def find_files(folders: Iterable[Path], suffixes: Iterable[str]) -> dict[str, list[Path]]:
    """Return the files below some folders by suffix, without links, empty files and huge ones."""
    files_by_suffix: dict[str, list[Path]] = {suffix: [] for suffix in suffixes}
    for folder in folders:
        for root, _, names in os.walk(folder):
            for name in names:
                files = files_by_suffix.get(os.path.splitext(name)[1].lower())
                path = Path(root, name)
                if files is None or len(files) >= CANDIDATES or path.is_symlink():
                    continue
                if path.is_file() and 0 < path.stat().st_size <= BYTES:
                    files.append(path)
    return files_by_suffix


def spread(files: Sequence[Path]) -> list[Path]:
    """Order files so that each folder has its turn, in an order that is the same every time."""
    rng = random.Random(0)
    by_folder: dict[Path, list[Path]] = defaultdict(list)
    for file in sorted(files):
        by_folder[file.parent].append(file)
    queues = list(by_folder.values())
    rng.shuffle(queues)
    for queue in queues:
        rng.shuffle(queue)
    longest = max(map(len, queues), default=0)
    return [queue[turn] for turn in range(longest) for queue in queues if turn < len(queue)]


def read_files(files: Iterable[Path]) -> Kind:
    """Read files one after the other."""
    kind = Kind()
    for file in files:
        begin = time.perf_counter()
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", DrillrankWarning)
                with cpu_limit(CPU_SECONDS):
                    document = read_document(file)
        except DrillrankError as problem:
            kind.reasons[reason(str(problem), file)] += 1
        except TooSlowError:
            kind.faults.append(f"{file}: more than {CPU_SECONDS} s")
        except Exception as problem:  # the benchmark is here to find these
            kind.faults.append(f"{file}: {type(problem).__name__}: {problem!s:.200}")
        else:
            kind.read += 1
            kind.warned += bool(caught)
            kind.faults += [f"{file}: {fault}" for fault in broken_invariants(document)]
        kind.seconds.append(time.perf_counter() - begin)
    return kind


def broken_invariants(document: Document) -> Iterator[str]:
    """Yield how a document breaks the rules that every document keeps."""
    text, sections = document.text, document.sections()
    bounds = [0, *(section.end for section in sections)]
    if text and ([section.start for section in sections] != bounds[:-1] or bounds[-1] != len(text)):
        yield "the sections do not tile the text"
    end = 0
    for block in (block for section in sections for block in document.blocks(section)):
        if not end <= block.start < block.end <= len(text):
            yield f"the block {block.start} to {block.end} is not behind the one that ends at {end}, or not in the text"
            return
        end = block.end
    if not any(character.isalnum() for character in text):
        yield "the document has no letter and no digit"


def reason(message: str, file: Path) -> str:
    """Return a message without the file's name, and without numbers and quotations that differ between files."""
    message = message.replace(str(file), "").replace(file.name, "").strip(" :")
    message = re.sub(r"'[^']{1,80}'|\"[^\"]{1,80}\"", "'...'", message)
    return re.sub(r"\d[\d,.]*", "N", message)[:110]


def as_table(results: dict[str, Kind]) -> Table:
    """Return the table of results."""
    table = Table("kind", title="Real files, by kind")
    for name in ("files", "read", "share", "warned", "median s", "slowest s"):
        table.add_column(name, justify="right")
    table.add_column("skipped, by reason")
    for name, kind in results.items():
        count = len(kind.seconds)
        row = [name, count, kind.read, f"{kind.read / count:.0%}", kind.warned]
        times = [f"{statistics.median(kind.seconds):.3f}", f"{max(kind.seconds):.2f}"]
        reasons = "\n".join(f"{number} {escape(text)}" for text, number in kind.reasons.most_common())
        table.add_row(*map(str, row), *times, reasons)
    return table
