"""Runs the commands that README.md's tables name, and prints each cell that is not what it was.

    python tools/figures.py [FILE]...

A table stands between `<!-- figures: COMMAND -->` and `<!-- end of figures -->`. Times are not compared: they vary with
the machine.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

MARKED = re.compile(r"<!-- figures: (.*?) -->\n(.*?)<!-- end of figures -->", re.DOTALL)


def rows(text: str) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """The cells of all tables in a text with the heads of their columns, by the first two cells of their rows."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    head: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if cells and not head:
            head = cells
        elif cells and not line.startswith("|---"):
            known = [(name, cell) for name, cell in zip(head, cells, strict=True) if not name.startswith("time")]
            found[cells[0], cells[1] if head[1] == "first stage" else ""] = known
        head = head if cells else []
    return found


def drift(shown: str, printed: str) -> list[str]:
    r"""What differs, a line for each cell or missing row.

    >>> drift("| data | top-1 |\n|---|---|\n| NQ | 0.8 |\n", "| data | top-1 |\n|---|---|\n| NQ | 0.9 |\n")
    ['NQ, top-1: 0.8 is shown, 0.9 is printed']
    """
    now = rows(printed)
    different = []
    for key, cells in rows(shown).items():
        name = ", ".join(filter(None, key))
        if key not in now:
            different.append(f"{name}: is not printed any more")
            continue
        pairs = zip(cells, now[key], strict=True)
        different += [f"{name}, {head}: {a} is shown, {b} is printed" for (head, a), (_, b) in pairs if a != b]
    return different


def main(files: list[str]) -> int:
    """Prints the drift of each file; 1 where there is any."""
    status = 0
    for file in files or ["README.md"]:
        for command, shown in MARKED.findall(Path(file).read_text(encoding="utf-8")):
            words = [sys.executable, *command.split()[1:]]
            printed = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
            different = drift(shown, printed)
            status |= bool(different)
            print(f"{file}, {command}: {len(rows(shown))} rows,", "\n  ".join(different) or "nothing has drifted")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
