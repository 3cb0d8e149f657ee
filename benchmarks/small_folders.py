"""Folders of one to five short documents: how often is the answer in the single best result?

Data: 22 folders written by hand, in this file, with 38 questions in English. Each question is asked with `top_n=1`. It
counts as right if the result contains the answer and not the text of another version. Three groups:

- Newest version: documents of one or two paragraphs that differ in a number, 10 questions; the newest answers.
- Earlier version: the same folders, asked with `as_of` or with a date in the question, 9 questions.
- Notes: one to five short notes; some questions share no word with their answer, 19 questions.

Rows: D3 with paragraphs and with passages over the documents in memory, and the command `ask`. Model: unigram, English;
no encoder. (`ask` uses an encoder if one is installed, and says so.)
"""

from __future__ import annotations

import contextlib
import io
import json
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from drillrank import D3, read_document
from drillrank.cli import main as run_command
from drillrank.errors import DrillrankWarning

NEWEST, EARLIER, NOTES = "newest version", "earlier version", "notes"
GROUPS = (NEWEST, EARLIER, NOTES)


@dataclass(frozen=True)
class Case:
    """Question about a small folder.

    Attributes:
        group: One of `GROUPS`.
        question: The question.
        answer: String that the best result must contain.
        as_of: Date for `as_of`; None for today.
        wrong: String that the best result must not contain, such as the number of another version; "" for none.
    """

    group: str
    question: str
    answer: str
    as_of: str | None = None
    wrong: str = ""


Folder = tuple[Mapping[str, str], list[Case]]

TRAVEL = "# Travel policy\n\nHotels cost at most {} euros a night.\n\nAsk your manager before you book a flight.\n"
PRICES = "Repair prices\n\nA new screen costs {} euros.\n\nWe repair bicycles as well.\n"
LEASE = "# Lease\n\nThe rent is {} euros a month.\n\nThe tenant keeps no dogs.\n"
ON_CALL = "# On call\n\nAnswer an alarm within {} minutes.\n\nHand over on Monday morning.\n"
LEAVE = "Every employee gets {} days of paid leave.\n\nUnused leave expires at the end of March.\n"
POOL = "# Pool rules\n\nThe pool closes at {} o'clock.\n\nChildren swim with an adult.\n"
MANUAL = "# Pump\n\nOpen the valve by {} turns.\n\nDrain the tank in winter.\n"
BACKUP = "The server keeps backups for {} weeks.\n"
FOUR = "# Fees\n\nMembers pay {} euros a year.\n\nStudents pay half.\n\nGuests pay at the door.\n\nPay in January.\n"

VERSIONS: list[Folder] = [
    (
        {"travel-policy-2023-01.md": TRAVEL.format(120), "travel-policy-2024-01.md": TRAVEL.format(145)},
        [
            Case(NEWEST, "How much may a hotel cost?", "145 euros", wrong="120 euros"),
            Case(EARLIER, "How much may a hotel cost?", "120 euros", as_of="2023-06", wrong="145 euros"),
        ],
    ),
    (
        {"prices v1.txt": PRICES.format(90), "prices v2.txt": PRICES.format(110)},
        [Case(NEWEST, "What does a new screen cost?", "110 euros", wrong="90 euros")],
    ),
    (
        {f"lease_{year}.txt": LEASE.format(rent) for year, rent in ((2021, 700), (2022, 740), (2023, 790))},
        [
            Case(NEWEST, "How high is the rent?", "790 euros"),
            Case(EARLIER, "How high is the rent?", "740 euros", as_of="2022"),
            Case(EARLIER, "How high is the rent?", "700 euros", as_of="2021-12-31"),
        ],
    ),
    (
        {"on-call 2023-06-01.md": ON_CALL.format(30), "on-call 2024-02-15.md": ON_CALL.format(15)},
        [
            Case(NEWEST, "How fast must an alarm be answered?", "15 minutes"),
            Case(EARLIER, "How fast must an alarm be answered?", "30 minutes", as_of="2024-02-14"),
        ],
    ),
    (
        {"leave FY22.txt": LEAVE.format(25), "leave FY24.txt": LEAVE.format(28)},
        [
            Case(NEWEST, "How many days of paid leave are there?", "28 days"),
            Case(EARLIER, "How many days of paid leave are there?", "25 days", as_of="2023"),
        ],
    ),
    (
        {"pool rules March 2023.md": POOL.format(20), "pool rules April 2024.md": POOL.format(21)},
        [
            Case(NEWEST, "When does the pool close?", "21 o'clock"),
            Case(EARLIER, "When did the pool close in March 2023?", "20 o'clock"),
        ],
    ),
    (
        {"pump rev 3.md": MANUAL.format(4), "pump rev 4.md": MANUAL.format(6)},
        [Case(NEWEST, "How far is the valve opened?", "6 turns")],
    ),
    (
        {"backup-2022.txt": BACKUP.format(4), "backup-2024.txt": BACKUP.format(12)},
        [
            Case(NEWEST, "How long does the server keep backups?", "12 weeks"),
            Case(EARLIER, "How long does the server keep backups?", "4 weeks", as_of="2023"),
        ],
    ),
    (
        {"fees-2023.md": FOUR.format(60), "fees-2024.md": FOUR.format(75)},
        [
            Case(NEWEST, "What do members pay?", "75 euros", wrong="60 euros"),
            Case(EARLIER, "What do members pay?", "60 euros", as_of="2023-12", wrong="75 euros"),
        ],
    ),
    (
        {
            "travel-2024-01.md": TRAVEL.format(130),
            "travel-2025-01.md": TRAVEL.format(150),
            "parking.md": "# Parking\n\nParking costs 8 euros a day.\n",
        },
        [
            Case(NEWEST, "How many euros may one night in a hotel cost?", "150 euros"),
            Case(EARLIER, "How many euros may one night in a hotel cost?", "130 euros", as_of="2024-07"),
        ],
    ),
]

SHORT_NOTES: list[Folder] = [
    (
        {"wifi.txt": "Network: Garden. Password: tulip-42.\n"},
        [
            Case(NOTES, "What is the password?", "tulip-42"),
            Case(NOTES, "How do guests get online?", "tulip-42"),
        ],
    ),
    (
        {"dentist.md": "# Dentist\n\nTuesday at nine, second floor.\n"},
        [
            Case(NOTES, "When is the dentist?", "Tuesday at nine"),
            Case(NOTES, "Which day do I have my appointment?", "Tuesday at nine"),
        ],
    ),
    (
        {"bread.md": "# Bread\n\nBake for 40 minutes.\n", "soup.md": "# Soup\n\nCook for 25 minutes.\n"},
        [
            Case(NOTES, "How long is bread baked?", "40 minutes"),
            Case(NOTES, "How many minutes does the soup take?", "25 minutes"),
        ],
    ),
    (
        {
            "anna.txt": "Anna feeds the cat.\n",
            "ben.txt": "Ben waters the plants.\n",
            "cleo.txt": "Cleo collects the mail.\n",
        },
        [
            Case(NOTES, "Who feeds the cat?", "Anna"),
            Case(NOTES, "Who takes care of the mail?", "Cleo"),
        ],
    ),
    (
        {"car.md": "# Car\n\n## Tyres\n\n2.4 bar in front.\n\n## Oil\n\n5W-30, four litres.\n"},
        [
            Case(NOTES, "What is the pressure of the tyres?", "2.4 bar"),
            Case(NOTES, "Which oil does the car need?", "5W-30"),
        ],
    ),
    (
        {"keys.txt": "The spare key is under the red pot.\n\nThe cellar key hangs behind the door.\n"},
        [
            Case(NOTES, "Where is the spare key?", "red pot"),
            Case(NOTES, "Where does the cellar key hang?", "behind the door"),
        ],
    ),
    (
        {"trash.md": "# Trash\n\n- Paper: first Monday\n- Glass: never collected\n- Plastic: every Friday\n"},
        [Case(NOTES, "When is paper collected?", "first Monday")],
    ),
    (
        {"shopping.txt": "Milk, eggs, flour.\n", "todo.txt": "Call the plumber.\n"},
        [Case(NOTES, "Whom do I have to call?", "plumber")],
    ),
    (
        {
            "berlin.md": "# Berlin office\n\nOpen from 8 to 17.\n",
            "paris.md": "# Paris office\n\nOpen from 9 to 18.\n",
            "rome.md": "# Rome office\n\nOpen from 10 to 19.\n",
            "oslo.md": "# Oslo office\n\nOpen from 7 to 15.\n",
        },
        [Case(NOTES, "When is the Paris office open?", "9 to 18")],
    ),
    (
        {"alarm.txt": "Code 7714. It changes every May.\n"},
        [Case(NOTES, "What number turns the siren off?", "7714")],
    ),
    (
        {
            "printer.md": "# Printer\n\nHold the power button for ten seconds.\n",
            "router.md": "# Router\n\nPull the plug and wait one minute.\n",
            "phone.md": "# Phone\n\nDial 0 for an outside line.\n",
        },
        [Case(NOTES, "How do I restart the router?", "Pull the plug")],
    ),
    (
        {
            "minutes.md": "# Meeting\n\nThe budget was approved.\n\nNext meeting: 4 May.\n",
            "members.md": "# Members\n\nKim, Lou and Sam.\n",
        },
        [
            Case(NOTES, "When is the next meeting?", "4 May"),
            Case(NOTES, "Who are the members?", "Kim, Lou and Sam"),
        ],
    ),
]

FOLDERS = VERSIONS + SHORT_NOTES

Ask = Callable[[Path, Case], str]
"""Function from a folder and a case to the text of the best result."""


def main(outcomes: str | None = None) -> None:
    """Print how many questions each system answers; with `outcomes`, write the failures to this file."""
    systems: dict[str, Ask] = {
        "D3, paragraphs": lambda folder, case: _retrieve_best(folder, case, "paragraph"),
        "D3, passages": lambda folder, case: _retrieve_best(folder, case, "passage"),
        "ask": _ask_best,
    }
    n_cases = Counter(case.group for _, cases in FOLDERS for case in cases)
    table = Table("system", *(f"{group} ({n_cases[group]})" for group in GROUPS), f"all ({n_cases.total()})")
    failures = {}
    for name, ask in systems.items():
        n_right, failures[name] = _count_right(ask)
        table.add_row(name, *(str(n_right[group]) for group in GROUPS), str(n_right.total()))
    Console(width=100).print(table)
    if outcomes:
        Path(outcomes).write_text(json.dumps(failures, indent=1), encoding="utf-8")


def _count_right(ask: Ask) -> tuple[Counter[str], list[str]]:
    """Return the number of right answers by group, and the questions that were not answered."""
    n_right: Counter[str] = Counter()
    failures = []
    for files, cases in FOLDERS:
        with TemporaryDirectory() as directory:
            for name, text in files.items():
                (Path(directory) / name).write_text(text, encoding="utf-8")
            for case in cases:
                result = ask(Path(directory), case)
                is_right = case.answer in result and not (case.wrong and case.wrong in result)
                n_right[case.group] += is_right
                failures += [] if is_right else [f"{case.question} as_of={case.as_of}: {result[:200]!r}"]
    return n_right, failures


def _retrieve_best(folder: Path, case: Case, unit: str) -> str:
    """Return the text of the best result of D3, over the documents in memory."""
    paths = sorted(folder.iterdir())
    d3 = D3(settings={"unit": unit, "as_of": case.as_of})
    prepared = d3.prepare([read_document(path) for path in paths], [path.name for path in paths])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DrillrankWarning)
        return " ".join(ranked.passage.text for ranked in d3.retrieve(case.question, prepared, top_n=1))


def _ask_best(folder: Path, case: Case) -> str:
    """Return the texts that the command `ask` prints."""
    options = ["--json", "--no-cache", "--top-n", "1", *(["--as-of", case.as_of] if case.as_of else [])]
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
        run_command(["ask", *options, str(folder), case.question])
    answers = map(json.loads, output.getvalue().splitlines())
    return " ".join(evidence["text"] for answer in answers for evidence in answer.get("evidence", ()))
