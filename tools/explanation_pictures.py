"""One picture of each kind of explanation, as docs/explained/*.svg: what the library says of small examples.

python tools/explanation_pictures.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from drillrank import D3, UPR, MonoT5, Passage, PathSearch, PromptRank
from drillrank.multihop.mentions import TitleMentions
from drillrank.structure import parse_document
from drillrank.views import MultiViewIndex, section_chunks

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "explained"
HEATER = "How long is the heater covered?"
WARRANTY = [
    Passage("The warranty covers the heater for two years. Longer cover is sold apart.", title="Warranty"),
    Passage("Damage by lime scale is left out of the warranty.", title="Exceptions"),
    Passage("Boil vinegar and water once a month.", title="Cleaning"),
]
BORN = "Which residential district was Turing born in?"
LIVES = [
    Passage("Alan Turing was born in Maida Vale in 1912.", title="Alan Turing"),
    Passage("Maida Vale is a residential district of London.", title="Maida Vale"),
    Passage("London is the capital of England.", title="London"),
    Passage("Basel lies on the Rhine.", title="Basel"),
]
NOTICE = "How long is the notice period of the lease?"
JUDGED = [(HEATER, passage.titled_text, place == 0) for place, passage in enumerate(WARRANTY)]


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


def pictures() -> dict[str, str]:
    """The pictures that need no neural model, by name."""
    contracts = list(CONTRACTS.values())
    lease = section_chunks(parse_document(contracts[0]), "lease")
    told = {
        "words": UPR().rank(HEATER, WARRANTY, top_n=2).explain(),
        "path": PathSearch(PromptRank(), LIVES, links=TitleMentions()).search(BORN)[:1].explain(),
        "tree": D3(settings={"sections": 2, "unit": "paragraph"}).retrieve(NOTICE, contracts[:2], top_n=1).explain(),
        "views": MultiViewIndex(lease).search(NOTICE, top_n=2).explain(),
    }
    return {name: explained.svg() for name, explained in told.items()}


def answers() -> str:
    """The picture of a model's yes and no: a tiny MonoT5 that was fine-tuned on these three passages alone."""
    sys.path.insert(0, str(ROOT))
    from tests.drillrank.neural.tiny_monot5 import save_tiny_monot5

    with tempfile.TemporaryDirectory() as folder:
        save_tiny_monot5(Path(folder), JUDGED)
        return MonoT5(f"hf:{folder}").rank(HEATER, WARRANTY, top_n=2).explain().svg()


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, picture in {**pictures(), "answers": answers()}.items():
        (FOLDER / f"{name}.svg").write_text(picture, encoding="utf-8")
