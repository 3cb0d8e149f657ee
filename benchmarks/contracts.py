"""Twelve contracts that differ in parties, dates and figures only, in one folder: is the right one's clause found?

Six suppliers have two contracts each with the same buyer, of two years; files have numbers for names, so that the first
lines alone say whose a contract is. Thirty questions name the party, and the year where it decides. Found is a question
whose answer stands in the right contract, among the first 1,200 (3,600) characters that are read: by D3, by the same
likelihood over chunks of fixed length, and by BM25 over these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from rich.console import Console
from rich.table import Table

from drillrank import D3, UPR, Passage, parse_document
from drillrank.structure import Document
from drillrank.vectors import BM25Index, top
from drillrank.views import Chunker

LIMITS = (1200, 3600)
SUPPLIERS = ("Hartmann", "Oliveira", "Novak", "Sorensen", "Kimura", "Dupont")
YEARS = (2019, 2022)
BUYER = "Lakeside Foods Ltd"
CONTRACT = """# Supply agreement

This agreement is made on {day} March {year} between {supplier} {form} (the supplier) and {buyer} (the buyer).

The supplier makes {goods}, which the buyer needs in its plants.

## 1 Term

This agreement begins on the day on which both parties have signed it. It ends after {term} months, unless the parties
agree in writing to go on.

Either party may end it earlier with a notice of {notice} days. The notice is given in writing to the address above.

## 2 Price and payment

The price of a tonne is {price} euros, carriage paid. It stays the same for the first twelve months.

Invoices are due within {due} days of the day on which the goods were received. On late payments interest of {interest}
per cent a year is owed.

## 3 Delivery

The goods are delivered to the plant that the buyer names in its order, in at most {lead} working days.

For each day of delay the supplier owes {penalty} per cent of the value of the order, and never more than a tenth of it.

## 4 Quality

The buyer inspects the goods on arrival and tells of defects that can be seen within {inspect} working days.

The supplier warrants that the goods are free of hidden defects for {warranty} months.

## 5 Liability

Neither party is liable for lost profit. In all other cases liability is limited to {limit},000 euros a year.

The supplier holds an insurance against damage to third parties of at least {cover} million euros.

## 6 Confidentiality

What a party learns of the other's business is kept secret, and for {secret} years after the end of this agreement.

## 7 Final provisions

Changes of this agreement are made in writing. If a provision is void, the others stay as they are.

The courts of {court} decide on all disputes that arise from this agreement.
"""
ASKED = (
    ("How many days before must {s} give notice to end the agreement{y}?", "notice of {notice} days"),
    ("What does a tonne cost at {s}{y}?", "{price} euros"),
    ("When are invoices of {s} due{y}?", "within {due} days"),
    ("What does {s} owe for each day that it delivers late{y}?", "{penalty} per cent of the value"),
    ("For how long does {s} warrant that goods have no hidden defects{y}?", "for {warranty} months"),
    ("Up to what sum are {s} and the buyer liable{y}?", "{limit},000 euros a year"),
    ("Which courts decide on disputes with {s}{y}?", "courts of {court}"),
)
Question = tuple[str, int, str]  # with the number of the contract and its words
Ranker = Callable[[str], Iterable[tuple[int, str]]]  # from a question to numbers of contracts and texts


def contracts() -> tuple[list[str], list[Question]]:
    """Texts of the contracts, and the questions."""
    random = Random(12)
    numbers = {
        "term": (24, 36, 48, 60), "notice": (30, 45, 60, 75, 90), "price": range(310, 990), "due": (14, 21, 28, 35, 42),
        "interest": (4, 5, 6, 7, 8), "lead": (5, 6, 8, 10, 12), "penalty": (1, 2, 3), "inspect": (2, 3, 4, 5, 7),
        "warranty": (6, 9, 12, 18, 24), "limit": range(200, 900), "cover": (2, 3, 5, 10), "secret": (2, 3, 5, 7),
        "day": range(1, 29), "court": ("Bergen", "Porto", "Brno", "Lille", "Trier", "Graz", "Ghent", "Turku"),
        "form": ("GmbH", "S.A.", "Ltd"),
        "goods": ("glass bottles", "paper sacks", "steel cans", "labels", "pallets", "cardboard boxes"),
    }  # fmt: skip
    texts: list[str] = []
    questions: list[Question] = []
    for at, supplier in enumerate(SUPPLIERS):
        for of_year, year in enumerate(YEARS):
            told = {name: random.choice(list(values)) for name, values in numbers.items()}
            texts.append(CONTRACT.format(supplier=supplier, year=year, buyer=BUYER, **told))
            for number in range(2 + of_year):
                asked, answer = ASKED[(5 * at + 3 * of_year + 2 * number) % len(ASKED)]
                question = asked.format(s=supplier, y=f" under the agreement of {year}")
                questions.append((question, len(texts) - 1, answer.format(**told)))
    return texts, questions


def main() -> None:
    """Print the table."""
    texts, questions = contracts()
    documents = [parse_document(text, "markdown") for text in texts]
    title = f"{len(questions)} questions, {len(texts)} contracts: answers of the right contract"
    table = Table("method", *(f"within {limit:,} characters" for limit in LIMITS), title=title)
    for name, ranker in rankers(documents).items():
        table.add_row(name, *(str(sum(found(ranker, asked, limit) for asked in questions)) for limit in LIMITS))
    Console(width=120).print(table)


def rankers(documents: list[Document]) -> dict[str, Ranker]:
    """The methods."""
    chunks = [(at, chunk.text) for at, document in enumerate(documents) for chunk in Chunker("fixed", 100)(document)]
    upr, bm25 = UPR(), BM25Index([text for _, text in chunks])
    passages = [Passage(text, id=str(number)) for number, (_, text) in enumerate(chunks)]

    return {
        "D3, paragraphs": _drill_down(documents, "paragraph"),
        "D3, passages": _drill_down(documents, "passage"),
        "UPR over chunks of 100 tokens": lambda question: [
            chunks[int(item.passage.id)] for item in upr.rank(question, passages, 40)
        ],
        "BM25 over chunks of 100 tokens": lambda question: [chunks[at] for at in top(bm25.scores(question), 40)],
    }


def _drill_down(documents: list[Document], unit: str) -> Ranker:
    d3 = D3(settings={"unit": unit})
    prepared = d3.prepare(documents, [f"contract_{number:02}.md" for number in range(1, len(documents) + 1)])
    return lambda question: [
        (ranked.passage.metadata["document"], ranked.passage.text) for ranked in d3.retrieve(question, prepared, 40)
    ]


def found(ranker: Ranker, asked: Question, limit: int) -> bool:
    """Whether the answer stands in the right contract, in the first characters."""
    question, contract, answer = asked
    for at, text in ranker(question):
        read = " ".join(text[:limit].split())
        if at == contract and answer in read:
            return True
        limit -= len(text)
        if limit <= 0:
            return False
    return False
