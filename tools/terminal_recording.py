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
    (
        "1 Premises",
        "The landlord lets the workshop in Mill Lane to the tenant, with the yard behind it and two parking spaces. "
        "The tenant may use the premises as a joinery only. Any other use needs the written consent of the landlord. "
        "The tenant keeps the driveway free for the neighbors at all times, and stores no wood in front of the gate. "
        "The landlord may inspect the premises twice a year and announces each visit a week before.",
    ),
    (
        "2 Rent",
        "The rent is 1,400 euros and is due on the third working day of each month. It includes water and the "
        "cleaning of the yard. The tenant pays for electricity and heating, as the meters show it. If the price index "
        "rises by more than five percent, either party may ask for a new rent, which an expert determines if the "
        "parties do not agree. The tenant pays a deposit of three rents, which earns interest.",
    ),
    (
        "3 Term",
        "The lease begins on the first of May and runs for five years. It is renewed by a year at a time unless a "
        "party objects. The tenant returns the workshop clean and without machines, and repairs the holes of all "
        "fastenings. Fixtures that the landlord approved remain, and the landlord pays what they are worth. Keys are "
        "handed over on the last day. A tenant who stays longer pays a tenth of the rent for each further day.",
    ),
    (
        "4 Notice",
        "Either party may give notice of termination in writing. The notice period is six months to the end of a "
        "quarter. The landlord may terminate the lease without notice if the rent of two months is unpaid. The tenant "
        "may do so if the workshop cannot be used for four weeks. A notice that arrives late counts for the next "
        "quarter. Both parties confirm each notice by letter within two weeks. A notice by phone or e-mail is void.",
    ),
)
MAINTENANCE = (
    ("Maintenance agreement", 1),
    ("Services", 2),
    (
        "The contractor inspects the lifts twice a year and repairs them within one working day of a report. Spare "
        "parts are included up to 200 euros. A log in the machine room lists all inspections and repairs.",
        0,
    ),
    (
        "The owner gives the contractor access to the machine room and names a person who is on the premises during "
        "inspections. The contractor labels each lift that is out of service and informs the owner at once.",
        0,
    ),
    ("Duration", 2),
    (
        "The agreement is renewed each January. The period of notice is three months. Notice is given in writing to "
        "the address of the other party.",
        0,
    ),
    (
        "Termination without notice is possible if the contractor misses two inspections in a row. In this case the "
        "contractor refunds the fees of the quarter.",
        0,
    ),
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
