"""What a new user sees, as docs/ask.svg: `drillrank ask ./contracts "termination notice period"`.

python tools/terminal_recording.py
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from rich.text import Text

from drillrank.cli import main, terminal

TARGET = Path(__file__).resolve().parents[1] / "docs" / "ask.svg"
COMMAND = ("ask", "./contracts", "termination notice period", "--no-cache")
SHOWN = '$ drillrank ask ./contracts "termination notice period"'
CONTRACTS = {
    "lease.md": """# Lease

## 1 Premises

The landlord lets the workshop in Mill Lane to the tenant.

## 2 Rent

The rent is due on the third working day of each month.

## 3 Term and termination

The lease runs for five years.

Either party may give notice of termination in writing; the notice period is six months to the end of a quarter.
""",
    "maintenance.md": """# Maintenance agreement

## Services

The contractor inspects the lifts twice a year and repairs them within one working day of a report.

## Duration

The agreement is renewed each January. The period of notice is three months.

## Good cause

Termination without notice is possible where the contractor misses two inspections in a row.
""",
    "supply.txt": """1. Delivery

The supplier delivers on Mondays.

2. Price

Prices are fixed for a year.
""",
}


def recording() -> str:
    """The SVG."""
    before, console = Path.cwd(), terminal.console
    with tempfile.TemporaryDirectory() as folder:
        try:
            os.chdir(folder)
            Path("contracts").mkdir()
            for name, text in CONTRACTS.items():
                Path("contracts", name).write_text(text, encoding="utf-8")
            with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
                terminal.console = terminal.Terminal(
                    record=True, width=100, file=nowhere, highlight=False, force_terminal=True
                )
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
