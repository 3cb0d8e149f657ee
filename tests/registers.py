"""Sixty pages of made-up company registers, and forty questions on them; another domain than any that was tuned on.

Firms of one name are registered in two towns; texts call people by their middle names, firms by their trading names,
and leave accents out. Each question needs the pages of two: a firm and its director, owner or town.
"""

from __future__ import annotations

from dataclasses import dataclass

from drillrank import Passage

# Trading name, then for each of the two towns: director, as the register writes the name, and the year.
FIRMS = {
    "Norvik Shipping": ("Blue Anchor", ("Bergen", "Karl Anders Holm", 1971), ("Malmö", "Eva Lund", 1984)),
    "Halden Timber": ("Green Saw", ("Oulu", "Jan Peter Ek", 1962), ("Vaasa", "Inga Maria Falk", 1990)),
    "Stora Glass": ("Clear Pane", ("Växjö", "Nils Åberg", 1955), ("Gävle", "Ida Sofie Krogh", 2003)),
    "Kvist Brewery": ("Old Barrel", ("Aarhus", "Lars Emil Toft", 1921), ("Tromsø", "Rut Vik", 1999)),
    "Sund Ferries": ("White Wake", ("Helsingør", "Per Olav Dahl", 1948), ("Turku", "Aino Elina Salo", 2010)),
    "Brandt Foundry": ("Red Ladle", ("Kiel", "Otto Franz Behn", 1937), ("Lübeck", "Marta Rees", 1976)),
    "Lind Optics": ("Far Lens", ("Uppsala", "Sven Erik Hjort", 1966), ("Tampere", "Kaisa Niemi", 2005)),
    "Moen Dairy": ("Cold Churn", ("Hamar", "Tor Henrik Moe", 1930), ("Viborg", "Gro Anne Skov", 1988)),
}
# Of each director, as the title writes the name: birthplace and what the page tells beside it.
PEOPLE = {
    "Karl Holm": ("Esbjerg", "sailed as a mate"),
    "Eva Lund": ("Visby", "kept a bookshop"),
    "Jan Ek": ("Kalmar", "felled pines"),
    "Inga Falk": ("Lahti", "taught botany"),
    "Nils Åberg": ("Ystad", "painted windows"),
    "Ida Krogh": ("Skagen", "blew vases"),
    "Lars Toft": ("Odense", "grew barley"),
    "Rut Vik": ("Bodø", "played the organ"),
    "Per Dahl": ("Mandal", "mended nets"),
    "Aino Salo": ("Rauma", "rowed for her club"),
    "Otto Behn": ("Husum", "cast bells"),
    "Marta Rees": ("Stade", "drew maps"),
    "Sven Hjort": ("Falun", "ground mirrors"),
    "Kaisa Niemi": ("Kotka", "watched the stars"),
    "Tor Moe": ("Røros", "herded goats"),
    "Gro Skov": ("Ribe", "judged cheese"),
}
TOWNS = (
    "Bergen",
    "Malmö",
    "Oulu",
    "Vaasa",
    "Växjö",
    "Gävle",
    "Aarhus",
    "Tromsø",
    "Helsingør",
    "Turku",
    "Kiel",
    "Lübeck",
)
OWNERS = ("Dovre Holding", "Ørsund Trust", "Kattegat Capital", "Polar Partners")
FILLERS = (
    "Fees of the register",
    "Forms of firms",
    "Annual returns",
    "Liquidators",
    "Auditors",
    "Seals and signatures",
)


@dataclass(frozen=True)
class Asked:
    """A question, the ids of the pages that answer it, and what makes it hard."""

    question: str
    gold: tuple[str, str]
    kind: str


def pages() -> list[Passage]:
    """Firms, directors, towns, owners, former names, and pages on nothing of these; the titles are the ids."""
    found = []
    for number, (firm, (trading, *branches)) in enumerate(FIRMS.items()):
        for town, director, year in branches:
            owner = OWNERS[number % 4] if town == branches[0][0] else "its staff"
            found.append((
                f"{firm} ({town})",
                f"{firm} is a limited company on the register. It was entered in {year}. Its managing director is "
                f"{director}. All shares belong to {owner}.",
            ))  # fmt: skip
        if number < 6:
            town = branches[0][0]
            found.append((
                f"{trading} Works",
                f"{trading} Works, also known as {trading} and Sons, is a dormant company. Its last "
                f"filing came from the office of {PLAIN.get(town, town)}.",
            ))  # fmt: skip
    for place, (name, (birthplace, life)) in enumerate(PEOPLE.items()):
        found.append((name, f"The entry tells that this person was born in {birthplace} and {life}. Number {place}."))
    for place, town in enumerate(TOWNS):
        found.append((town, f"The registry court of this town has {3 + place} clerks and opens at {7 + place % 4}."))
    for place, owner in enumerate(OWNERS):
        found.append((owner, f"A group of investors. Its seat is house {11 + 4 * place} at the harbour."))
    for place, title in enumerate(FILLERS):
        found.append((title, f"The managing director of a company on the register signs sheet {place} of the entry."))
    return [Passage(text, id=title, title=title) for title, text in found]


PLAIN = {"Malmö": "Malmo", "Växjö": "Vaxjo", "Tromsø": "Tromso", "Helsingør": "Helsingor"}


def questions() -> list[Asked]:
    """Sixteen on namesakes, of which twelve need a middle name; eight on owners, six on other names, ten on lives."""
    people = dict(zip((director for _, *both in FIRMS.values() for _, director, _ in both), PEOPLE, strict=True))
    asked = []
    for firm, (_, *branches) in FIRMS.items():
        for town, director, _ in branches:
            title = f"{firm} ({town})"
            kind = "namesake" if director == people[director] else "namesake and middle name"
            question = f"Where was the managing director of the {firm} of {town} born?"
            asked.append(Asked(question, (title, people[director]), kind))
    for number, (firm, (_, (town, *_), _)) in enumerate(FIRMS.items()):
        question = f"At which house is the seat of the group that owns the {firm} of {town}?"
        asked.append(Asked(question, (f"{firm} ({town})", OWNERS[number % 4]), "owner"))
    for trading, *branches in list(FIRMS.values())[:6]:
        question = f"When does the registry court open that got the last filing of {trading} and Sons?"
        asked.append(Asked(question, (f"{trading} Works", branches[0][0]), "other name"))
    directed = [(firm, *branch) for firm, (_, *branches) in FIRMS.items() for branch in branches]
    for firm, town, director, year in directed[:10]:
        life = PEOPLE[people[director]][1]
        question = f"Which company entered in {year} has a managing director who {life}?"
        asked.append(Asked(question, (f"{firm} ({town})", people[director]), "life"))
    return asked
