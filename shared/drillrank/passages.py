"""What is ranked: passages, paths of passages, and the ranked result."""

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
MAX_QUESTION = 20_000  # characters: what a question costs grows with its tokens times the candidates
MAX_TITLE_TOKENS = 64  # bounds the work at each word of a text; nobody mentions a longer title


@dataclass(frozen=True)
class Passage:
    """A unit of evidence.

    Attributes:
        text: The passage itself.
        id: Identifier; None or an empty string stands for a stable hash of title and text.
        title: Title, or an empty string.
        links: Identifiers of the passages that this one points to.
        metadata: Anything else; handed back unchanged, and read by nobody but those who are told a key, such as
            `MetadataLinks`.

    Raises:
        InvalidInput: `text` or `title` is not a string.

    >>> Passage("Alan Turing was born in London.", title="Alan Turing").titled_text
    'Alan Turing Alan Turing was born in London.'
    >>> Passage("a").id == Passage("a").id != Passage("b").id
    True
    """

    text: str
    id: str = None  # type: ignore[assignment]  # always a string once constructed
    title: str = ""
    links: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not isinstance(self.title, str):
            raise InvalidInput(
                f"A passage needs a text and a title that are strings, not {type(self.text).__name__} "
                f"and {type(self.title).__name__} (passage id {self.id!r:.200})."
            )
        if not isinstance(self.id, str | None) or isinstance(cast("object", self.links), str):
            raise InvalidInput(
                f"A passage's id is a string, its links a list of strings; not {self.id!r:.99} and {self.links!r:.99}."
            )
        if not self.id:
            content = f"{len(self.title)} {self.title}{self.text}".encode("utf-8", "surrogatepass")
            object.__setattr__(self, "id", hashlib.blake2b(content, digest_size=16).hexdigest())
        object.__setattr__(self, "links", tuple(self.links or ()))

    @cached_property
    def titled_text(self) -> str:
        """Title and text, joined by a space: what a retriever indexes."""
        return f"{self.title} {self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True)
class Path:
    """A chain of passages, in reading order, that together may answer a question.

    Attributes:
        passages: At least one.
        ids: Their identifiers.

    >>> path = Path((Passage("one", id="1"),)).extended(Passage("two", id="2"))
    >>> path.ids, path.text
    (('1', '2'), 'one two')
    """

    passages: tuple[Passage, ...]
    ids: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "passages", tuple(self.passages))
        if not self.passages or not all(isinstance(passage, Passage) for passage in self.passages):
            raise InvalidInput(f"A path needs at least one passage, and nothing else; not {self.passages!r:.200}.")
        object.__setattr__(self, "ids", tuple([passage.id for passage in self.passages]))

    @property
    def text(self) -> str:
        """The passages' titled texts, joined by spaces."""
        return " ".join(passage.titled_text for passage in self.passages)

    def extended(self, passage: Passage) -> Path:
        """This path with one more passage at its end."""
        return Path((*self.passages, passage))


Item = TypeVar("Item", Passage, Path)


@dataclass(slots=True)
class Ranked(Generic[Item]):
    """One entry of a ranking.

    Attributes:
        passage: The very object that was given (a `Path` where paths were ranked).
        score: Plain float; higher is better. Its scale is documented by the ranker.
        rank: 1 for the best.
        details: What led to the score; `details["position"]` is the 0-based place in the input.
    """

    passage: Item
    score: float
    rank: int
    details: dict[str, Any] = field(default_factory=dict)


Ranking = Explainable[Ranked[Item]]
"""Entries, best first; `explain` says why each stands where it stands."""


def ranked(
    items: Sequence[Item], scores: Sequence[float], details: Sequence[dict[str, Any]], top_n: int | None = None
) -> list[Ranked[Item]]:
    """Order items by falling score; ties keep the input order; then keep the first `top_n`.

    Raises:
        InvalidInput: the three sequences differ in length, a score is not a number, or `top_n` is below 1.

    >>> [(r.passage.text, r.rank) for r in ranked([Passage("a"), Passage("b")], [0.1, 0.2], [{}, {}])]
    [('b', 1), ('a', 2)]
    """
    if not len(items) == len(scores) == len(details):
        raise InvalidInput(f"{len(items)} items, {len(scores)} scores and {len(details)} details cannot be paired.")
    check_top_n(top_n)
    scores = list(map(float, scores))
    if any(map(math.isnan, scores)):
        raise InvalidInput(f"Item {next(i for i, s in enumerate(scores) if math.isnan(s))} has NaN for a score.")
    order = sorted(range(len(items)), key=scores.__getitem__, reverse=True)  # sort is stable, also in reverse
    return [
        Ranked(items[i], scores[i], rank, {**details[i], "position": i})
        for rank, i in enumerate(order[:top_n], start=1)
    ]


_NAMESPACE = uuid.UUID("6a3ad7a8-5dc6-5d2e-8f6c-4a1f6f4ec0a5")


def stable_uuid(*parts: object) -> str:
    """A UUID that depends on the parts alone: the same chunk has the same id in every run.

    Some vector stores accept nothing but UUIDs.

    >>> stable_uuid("document", 0) == stable_uuid("document", 0) != stable_uuid("document", 1)
    True
    """
    return str(uuid.uuid5(_NAMESPACE, repr(parts)))


_LARGEST_TOP_N = 2**31 - 1


def check_top_n(top_n: int | None) -> None:
    """Reject a `top_n` that would silently return nothing.

    Raises:
        InvalidInput: `top_n` is neither None nor a positive integer, or is too large for a computer's integers.
    """
    if top_n is not None and not (type(top_n) is int and top_n > 0):
        check_positive(top_n=top_n)
    if top_n is not None and top_n > _LARGEST_TOP_N:
        raise InvalidInput(f"top_n must be at most {_LARGEST_TOP_N}, got {top_n!r:.200}. None returns all.")


def check_query(query: str) -> str:
    """The query itself, once it is known to hold more than white space.

    Raises:
        InvalidInput: the query is not a string, or blank, or holds half a character (a lone surrogate).
    """
    if not isinstance(query, str) or not query.strip():
        raise InvalidInput(f"A query must be a string that is not blank, not {query!r:.200}.")
    check_surrogates(query, "The query")
    return query


def read_query(query: str) -> str:
    """The query, once it is checked, as far as it is read.

    Raises:
        InvalidInput: as `check_query`.

    Warns:
        DrillrankWarning: it is longer than `MAX_QUESTION` characters.
    """
    if len(check_query(query)) > MAX_QUESTION:
        message = f"A question of {len(query)} characters is read up to character {MAX_QUESTION}."
        warn(message)
    return query[:MAX_QUESTION]


def by_id(passages: Iterable[Passage]) -> dict[str, Passage]:
    """Passages by id, in order; of several with the same id, the first.

    >>> list(by_id([Passage("a", id="1"), Passage("b", id="2"), Passage("c", id="1")]).values())[0].text
    'a'
    """
    distinct: dict[str, Passage] = {}
    for passage in passages:
        distinct.setdefault(passage.id, passage)
    return distinct


def unique_by_id(passages: Sequence[Passage]) -> dict[str, Passage]:
    """Passages by id, in order, where none may hide another.

    Raises:
        InvalidInput: two share an id.
    """
    distinct = by_id(passages)
    if len(distinct) < len(passages):
        twice = next(id_ for id_, times in Counter(passage.id for passage in passages).items() if times > 1)
        raise InvalidInput(
            f"{len(passages) - len(distinct)} passages share their id with another one, such as {twice!r:.200}."
        )
    return distinct


def as_passages(passages: Iterable[Passage | str]) -> list[Passage]:
    """Passages as given; plain strings become passages.

    Raises:
        InvalidInput: an item is neither, or a single string was given in place of a list.

    >>> as_passages(["some text"])[0].text
    'some text'
    """
    if isinstance(passages, (str, Passage)) or not isinstance(passages, Iterable):
        raise InvalidInput(f"Expected a list of passages, not a {type(passages).__name__}.")
    converted = []
    for position, passage in enumerate(passages):
        if not isinstance(passage, (str, Passage)):
            raise InvalidInput(
                f"Item {position} is a {type(passage).__name__}, not a Passage or a string. "
                "Adapters for LlamaIndex nodes and LangChain documents are in llama_index_ext and langchain_ext."
            )
        converted.append(Passage(passage) if isinstance(passage, str) else passage)
    return converted


def short_title(passage: Passage) -> str:
    """The title without its trailing parenthetical.

    >>> short_title(Passage("", title="Mercury (planet)"))
    'Mercury'
    """
    return PARENTHETICAL.sub("", passage.title).strip()


def counted_name(name: str, shortest: int = MIN_TITLE_LENGTH) -> list[str]:
    """The tokens by which a name is found; none if it is too short or too long to count."""
    length = len(name) + len(SPACELESS.findall(name))  # two such characters are a word
    tokens = name_tokens(name) if length >= shortest else []
    return tokens if len(tokens) <= MAX_TITLE_TOKENS else []


def counted_title(passage: Passage) -> list[str]:
    """The tokens by which a passage's title is found, letters of either case being the same; none if it counts not.

    >>> counted_title(Passage("", title="Silent Pier (film)")), counted_title(Passage("", title="Up"))
    (['silent', 'pier'], [])
    """
    return [token.casefold() for token in counted_name(short_title(passage))]
