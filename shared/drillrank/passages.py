"""Passages, paths of passages, and rankings of them."""

from __future__ import annotations

import hashlib
import math
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar, cast

from drillrank.errors import InvalidInput, check_positive, warn
from drillrank.explanation import Explainable
from drillrank.text import SPACELESS, check_surrogates, name_tokens

PARENTHETICAL = re.compile(r"(?<!\s)\s*\((?P<inside>[^()]*)\)\s*$")
MIN_TITLE_LENGTH = 4  # shorter titles ("It", "Up") are mostly ordinary words
MAX_QUESTION = 20_000  # characters; scoring costs as many tokens for each candidate
MAX_TITLE_TOKENS = 64  # limits the work at each word of a text; texts do not mention longer titles


@dataclass(frozen=True)
class Passage:
    """Unit of evidence.

    Attributes:
        text: Text of the passage.
        id: Identifier. None and an empty string become a stable hash of title and text.
        title: Title, or an empty string.
        links: Identifiers of the passages to which this one links.
        metadata: Any other values, which results contain unchanged. A component reads only the keys that the user
            names, as in `MetadataLinks`.

    Raises:
        InvalidInput: `text`, `title` or `id` is not a string, or `links` is a string.

    >>> Passage("Alan Turing was born in London.", title="Alan Turing").titled_text
    'Alan Turing Alan Turing was born in London.'
    >>> Passage("a").id == Passage("a").id != Passage("b").id
    True
    """

    text: str
    id: str = None  # type: ignore[assignment]  # a string after construction
    title: str = ""
    links: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not isinstance(self.title, str):
            raise InvalidInput(
                f"text and title of a passage must be strings, got {type(self.text).__name__} and "
                f"{type(self.title).__name__} for the passage with the id {self.id!r:.200}."
            )
        if not isinstance(self.id, str | None) or isinstance(cast("object", self.links), str):
            raise InvalidInput(
                f"id of a passage must be a string and links a list of strings, got {self.id!r:.99} and "
                f"{self.links!r:.99}."
            )
        if not self.id:
            content = f"{len(self.title)} {self.title}{self.text}".encode("utf-8", "surrogatepass")
            object.__setattr__(self, "id", hashlib.blake2b(content, digest_size=16).hexdigest())
        object.__setattr__(self, "links", tuple(self.links or ()))

    @cached_property
    def titled_text(self) -> str:
        """Title and text, joined by a space, as a retriever should index them."""
        return f"{self.title} {self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True)
class Path:
    """Chain of passages, in reading order, that together may answer a question.

    Attributes:
        passages: At least one passage.
        ids: Identifiers of the passages.

    Raises:
        InvalidInput: The path is empty, or an item is not a `Passage`.

    >>> path = Path((Passage("one", id="1"),)).with_passage(Passage("two", id="2"))
    >>> path.ids, path.text
    (('1', '2'), 'one two')
    """

    passages: tuple[Passage, ...]
    ids: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "passages", tuple(self.passages))
        if not self.passages or not all(isinstance(passage, Passage) for passage in self.passages):
            raise InvalidInput(f"A path must consist of one or more Passage objects, got {self.passages!r:.200}.")
        object.__setattr__(self, "ids", tuple([passage.id for passage in self.passages]))

    @property
    def text(self) -> str:
        """Titles and texts of the passages, joined by spaces."""
        return " ".join(passage.titled_text for passage in self.passages)

    def with_passage(self, passage: Passage) -> Path:
        """Return this path with one more passage at its end."""
        return Path((*self.passages, passage))


Item = TypeVar("Item", Passage, Path)


@dataclass(slots=True)
class Ranked(Generic[Item]):
    """Entry of a ranking.

    Attributes:
        passage: The ranked object itself, a `Passage` or a `Path`.
        score: Score; higher is better. The ranker documents its scale.
        rank: Rank, 1 for the best entry.
        details: Values that led to the score. `details["position"]` is the index in the input, starting at 0.
    """

    passage: Item
    score: float
    rank: int
    details: dict[str, Any] = field(default_factory=dict)


Ranking = Explainable[Ranked[Item]]
"""Entries, best first, whose ranks `explain` explains."""


def ranked(
    items: Sequence[Item], scores: Sequence[float], details: Sequence[dict[str, Any]], top_n: int | None = None
) -> list[Ranked[Item]]:
    """Sort items by score, best first, and return the first `top_n`. Items with equal scores keep their order.

    Args:
        items: Items to rank.
        scores: Score of each item; higher is better.
        details: Details of each item, to which `"position"` is added.
        top_n: Maximum number of entries; None for all.

    Raises:
        InvalidInput: The three sequences differ in length, a score is NaN, or `top_n` is below 1.

    >>> [(r.passage.text, r.rank) for r in ranked([Passage("a"), Passage("b")], [0.1, 0.2], [{}, {}])]
    [('b', 1), ('a', 2)]
    """
    if not len(items) == len(scores) == len(details):
        raise InvalidInput(
            f"{len(items)} items, {len(scores)} scores and {len(details)} details cannot be paired. Pass one per item."
        )
    check_top_n(top_n)
    scores = list(map(float, scores))
    if any(map(math.isnan, scores)):
        raise InvalidInput(f"scores must be numbers, got NaN for item {[*map(math.isnan, scores)].index(True)}.")
    order = sorted(range(len(items)), key=scores.__getitem__, reverse=True)  # sort is stable, also in reverse
    return [
        Ranked(items[i], scores[i], rank, {**details[i], "position": i})
        for rank, i in enumerate(order[:top_n], start=1)
    ]


_NAMESPACE = uuid.UUID("6a3ad7a8-5dc6-5d2e-8f6c-4a1f6f4ec0a5")


def stable_uuid(*parts: object) -> str:
    """Return a UUID that depends on the parts only, so that a chunk has the same id in every run.

    Some vector stores accept only UUIDs as ids.

    >>> stable_uuid("document", 0) == stable_uuid("document", 0) != stable_uuid("document", 1)
    True
    """
    return str(uuid.uuid5(_NAMESPACE, repr(parts)))


_LARGEST_TOP_N = 2**31 - 1


def check_top_n(top_n: int | None) -> None:
    """Refuse a `top_n` that is neither None nor a positive integer.

    Raises:
        InvalidInput: `top_n` is something else, or does not fit in 32 bits.
    """
    if top_n is not None and not (type(top_n) is int and top_n > 0):
        check_positive(top_n=top_n)
    if top_n is not None and top_n > _LARGEST_TOP_N:
        raise InvalidInput(f"top_n must be at most {_LARGEST_TOP_N}, got {top_n!r:.200}. Pass None for all results.")


def check_query(query: str) -> str:
    """Check a query, and return it.

    Raises:
        InvalidInput: The query is not a string, is blank, or contains a lone surrogate.
    """
    if not isinstance(query, str) or not query.strip():
        raise InvalidInput(f"A query must be a string that is not blank, got {query!r:.200}.")
    if not query.isascii():
        check_surrogates(query, "The query")
    return query


def read_query(query: str) -> str:
    """Check a query, and truncate it to `MAX_QUESTION` characters.

    Raises:
        InvalidInput: The query is not a string, is blank, or contains a lone surrogate.

    Warns:
        DrillrankWarning: The query is longer than that.
    """
    if len(check_query(query)) > MAX_QUESTION:
        warn(f"A question was truncated to {MAX_QUESTION} characters. Ask a shorter one.")
    return query[:MAX_QUESTION]


def by_id(passages: Iterable[Passage]) -> dict[str, Passage]:
    """Return passages by id, in order. Among passages with the same id, the first one counts.

    >>> list(by_id([Passage("a", id="1"), Passage("b", id="2"), Passage("c", id="1")]).values())[0].text
    'a'
    """
    passage_by_id: dict[str, Passage] = {}
    for passage in passages:
        passage_by_id.setdefault(passage.id, passage)
    return passage_by_id


def unique_by_id(passages: Sequence[Passage]) -> dict[str, Passage]:
    """Return passages by id, in order.

    Raises:
        InvalidInput: Two passages have the same id.

    >>> list(unique_by_id([Passage("a", id="1"), Passage("b", id="2")]))
    ['1', '2']
    """
    passage_by_id = by_id(passages)
    n_repeated = len(passages) - len(passage_by_id)
    if n_repeated:
        [(repeated_id, _)] = Counter(passage.id for passage in passages).most_common(1)
        raise InvalidInput(
            f"Ids of passages must be unique, got {n_repeated} that are not, such as {repeated_id!r:.200}. "
            "Give each passage an id of its own."
        )
    return passage_by_id


def as_passages(passages: Iterable[Passage | str]) -> list[Passage]:
    """Convert strings to passages, and keep passages.

    Raises:
        InvalidInput: An item is neither, or the argument is not an iterable of items.

    >>> as_passages(["some text"])[0].text
    'some text'
    """
    if isinstance(passages, (str, Passage)) or not isinstance(passages, Iterable):
        raise InvalidInput(f"Expected a list of passages, got {type(passages).__name__}. Pass a list.")
    converted = []
    for position, passage in enumerate(passages):
        if not isinstance(passage, (str, Passage)):
            raise InvalidInput(
                f"Item {position} must be a Passage or a string, got {passage!r:.100}. Use llama_index_ext for "
                "LlamaIndex nodes and langchain_ext for LangChain documents."
            )
        converted.append(Passage(passage) if isinstance(passage, str) else passage)
    return converted


def short_title(passage: Passage) -> str:
    """Return the title of a passage without a parenthetical at its end.

    >>> short_title(Passage("", title="Mercury (planet)"))
    'Mercury'
    """
    return PARENTHETICAL.sub("", passage.title).strip()


def name_match_tokens(name: str, min_length: int = MIN_TITLE_LENGTH) -> list[str]:
    """Return the tokens that match a name in a text. Empty if the name is too short or too long to match.

    Args:
        name: The name.
        min_length: Minimum length in characters. A character of a script without spaces counts as two.

    >>> name_match_tokens("Silent Pier"), name_match_tokens("Up")
    (['Silent', 'Pier'], [])
    """
    length = len(name) + len(SPACELESS.findall(name))
    tokens = name_tokens(name) if length >= min_length else []
    return tokens if len(tokens) <= MAX_TITLE_TOKENS else []


def title_match_tokens(passage: Passage) -> list[str]:
    """Return the case-folded tokens that match the title of a passage. Empty if it is too short or too long to match.

    >>> title_match_tokens(Passage("", title="Silent Pier (film)")), title_match_tokens(Passage("", title="Up"))
    (['silent', 'pier'], [])
    """
    return [token.casefold() for token in name_match_tokens(short_title(passage))]
