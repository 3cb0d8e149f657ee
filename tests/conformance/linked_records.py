"""Records with links, titles and addresses for path search beside a store, of two tenants; for both hosts."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import strategies as st

QUESTION = "Where did the director of The Silent Pier spend her childhood?"
FILM_TEXT = "The Silent Pier was directed by [Ada Holm](holm.md)."
FILM_METADATA = {"title": "The Silent Pier", "source": "film.md", "links": "holm", "tenant": "a"}
HOLM_TEXT = "She grew up in the port of Esbjerg."
HOLM_METADATA = {"title": "Ada Holm", "source": "holm.md"}

NAMING = "Where did Ada Holm Pier, of The Pier in Esbjerg Port, spend her childhood?"
TITLES = ["Ada Holm", "Ada Holm Pier", "The Pier", "Esbjerg Port"]


class Linked(NamedTuple):
    """What a host's record is made of."""

    id: str
    text: str
    metadata: dict[str, Any]


def _linked(made: list[tuple[str, str, list[str], list[str], str]]) -> list[Linked]:
    return [
        Linked(
            str(number),
            " ".join(words) or "nothing",
            {"tenant": tenant, "title": title, "links": links, "source": source},
        )
        for number, (tenant, title, words, links, source) in enumerate(made)
    ]


RECORDS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.sampled_from(TITLES),
        st.lists(st.sampled_from([*TITLES, "[x](d1.md)", "[y](d2.md#ada-holm)", "port", "childhood"]), max_size=3),
        st.lists(st.sampled_from(["0", "1", "2", "3", "4"]), max_size=2),
        st.sampled_from(["d1.md", "d2.md", "sub/d1.md"]),
    ),
    min_size=2,
    max_size=5,
).map(_linked)
