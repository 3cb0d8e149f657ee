"""A PDF file with three pages, and questions about them."""

from __future__ import annotations

from tests.pdf_files import Text, lines

FOX = (
    "The fox hunts mice in the meadow behind the mill. It hears them under the snow from far away and jumps on them.",
    "At night the fox goes along the hedges and looks for eggs, beetles and fallen fruit. When the morning comes and "
    "the village wakes, the fox goes slowly home and",
    "sleeps in its den until the evening. Cubs are born in March and leave in autumn.",
)
BADGER = (
    "The badger digs its sett in the forest with strong claws. Twelve badgers may live together in one sett.",
    "Badgers eat earthworms above all, and sometimes wasps.",
)
OWL = "The owl flies without a sound. Its feathers have soft edges, which break the air into small whirls."
HEADING = {"size": 16, "bold": True}
PARAGRAPHS = {"unit": "paragraph"}
ASKED = {  # question, and the page and section of the answer
    "Where does the badger dig its sett?": (2, "2 Badgers", BADGER[0]),
    "Which eggs and fruit does the fox look for along the hedges?": (1, "1 Foxes", f"{FOX[1]} {FOX[2]}"),
    "Why does the owl fly without a sound?": (3, "3 Owls", OWL),
}


def pages(badger: str = "badger") -> list[list[Text]]:
    first, second = (one.replace("badger", badger) for one in BADGER)
    return [
        [Text("1 Foxes", y=72, **HEADING), *lines(FOX[0], 110), *lines(FOX[1], 160)],
        [*lines(FOX[2], 72), Text("2 Badgers", y=130, **HEADING), *lines(first, 170), *lines(second, 220)],
        [Text("3 Owls", y=72, **HEADING), *lines(OWL, 110)],
    ]


def folded(text: str) -> str:
    return " ".join(text.split())
