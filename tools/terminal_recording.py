"""What a new user sees, as docs/ask.svg: `drillrank ask ./contracts "termination notice period"`.

python tools/terminal_recording.py
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from drillrank.cli import main, terminal  # noqa: E402
from tests import pdf_files  # noqa: E402
from tests.word_files import word_file  # noqa: E402

TARGET = ROOT / "docs" / "ask.svg"
COMMAND = ("ask", "./contracts", "termination notice period", "--no-cache", "--embed", "none")
SHOWN = '$ drillrank ask ./contracts "termination notice period"'
LEASE = (
    ("1 Premises", "The landlord lets the workshop in Mill Lane to the tenant."),
    ("2 Rent", "The rent is due on the third working day of each month."),
    ("3 Term and termination", "The lease runs for five years and is renewed by a year at a time."),
    (
        "4 Notice",
        "Either party may give notice of termination in writing; the notice period is six months to the end of a "
        "quarter.",
    ),
)
MAINTENANCE = (
    ("Maintenance agreement", 1),
    ("Services", 2),
    ("The contractor inspects the lifts twice a year and repairs them within one working day of a report.", 0),
    ("Duration", 2),
    ("The agreement is renewed each January. The period of notice is three months.", 0),
    ("Good cause", 2),
    ("Termination without notice is possible where the contractor misses two inspections in a row.", 0),
)
SUPPLY = """1. Delivery

The supplier delivers on Mondays.

2. Price

Prices are fixed for a year.
"""


def contracts() -> dict[str, bytes]:
    """A PDF with a page for each section, a Word file and a plain text."""
    pages = [[pdf_files.Text(title, size=16, bold=True), *pdf_files.lines(text, y=110)] for title, text in LEASE]
    return {
        "lease.pdf": pdf_files.pdf_of(pages).content(),
        "maintenance.docx": word_file(MAINTENANCE),
        "supply.txt": SUPPLY.encode(),
    }


def recording() -> str:
    """The SVG."""
    before, console = Path.cwd(), terminal.console
    with tempfile.TemporaryDirectory() as folder:
        try:
            os.chdir(folder)
            Path("contracts").mkdir()
            for name, content in contracts().items():
                Path("contracts", name).write_bytes(content)
            with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
                terminal.console = terminal.Terminal(record=True, width=100, file=nowhere, force_terminal=True)
                terminal.console.print(Text(SHOWN))
                if main(COMMAND) != 0:
                    raise SystemExit("The command failed.")
                return terminal.console.export_svg(title="drillrank", unique_id="ask")
        finally:
            os.chdir(before)
            terminal.console = console


if __name__ == "__main__":
    TARGET.write_text(recording(), encoding="utf-8")
    sys.stdout.write(f"{TARGET}\n")
