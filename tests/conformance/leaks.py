"""A world of two tenants: what a store holds at the moment, what may be seen of it, and what is heard of the rest.

Every sentence carries a mark that names its tenant, document, place and version. A mark that is heard though its
sentence is another tenant's, restricted, redacted, deleted or of an older version, has leaked.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import pytest

from drillrank.errors import DrillrankError

TENANTS = ("a", "b")
DOCUMENTS = ("guide", "rules")
PLACES = 3
OPEN, RESTRICTED = 1, 9
QUESTION = "When does the harbour open, what is its fee, and where do the keys lie?"
HEADINGS = ("Harbour opening", "Harbour fee", "Harbour keys")
SENTENCES = (
    "The harbour opens at dawn, says {mark}. See [the fee](../rules/1.md) and the Harbour keys.",
    "The harbour fee is paid to {mark}. Read Harbour opening, or [the keys](../guide/2.md).",
    "The keys of the harbour lie with {mark}. See [opening](../guide/0.md) and the Harbour fee.",
)
_MARK = re.compile(r"q[ab](?:guide|rules)\dv\d+q")


def mark(tenant: str, document: str, place: int, version: int) -> str:
    """A word that stands nowhere else."""
    return f"q{tenant}{document}{place}v{version}q"


def passage(tenant: str, document: str, place: int, version: int) -> str:
    """A sentence of a document, at a place."""
    return SENTENCES[place].format(mark=mark(tenant, document, place, version))


def whole(tenant: str, document: str, version: int) -> str:
    """A document of as many sections as there are places."""
    parts = [f"## {HEADINGS[place]}\n\n{passage(tenant, document, place, version)}\n" for place in range(PLACES)]
    return "\n".join(["# The harbour\n", *parts])


Record = TypeVar("Record")


class Host(Protocol[Record]):
    """What a host's records and stores are to the world."""

    def made(self, tenant: str, document: str, version: int) -> list[tuple[int | None, Record]]:
        """What a document is stored as, each piece with the place that it is of."""

    def with_level(self, record: Record, level: int) -> Record:
        """A copy of it under a level."""

    def with_text(self, record: Record, text: str) -> Record:
        """A copy of it that says something else."""

    def text(self, record: Record) -> str:
        """What it says."""

    def add(self, records: Sequence[Record]) -> None:
        """Store them."""

    def delete(self, records: Sequence[Record]) -> None:
        """Out of the store with them."""


@dataclass
class StoredChunk(Generic[Record]):
    """A record in the store, and what the world knows of it."""

    record: Record
    tenant: str
    document: str
    place: int | None
    level: int


class World(Generic[Record]):
    """Writes to a store, and knows what is in it."""

    def __init__(self, host: Host[Record]) -> None:
        self.host = host
        self.pieces: list[StoredChunk[Record]] = []
        self.versions = 0
        for tenant in TENANTS:
            for document in DOCUMENTS:
                self.write(tenant, document)

    def write(self, tenant: str, document: str) -> None:
        """Store a document, in place of what there was of it; its last place is restricted."""
        self.delete(tenant, document)
        self.versions += 1
        new = []
        for place, record in self.host.made(tenant, document, self.versions):
            level = RESTRICTED if place == PLACES - 1 else OPEN
            new.append(StoredChunk(self.host.with_level(record, level), tenant, document, place, level))
        self._store(new)

    def delete(self, tenant: str, document: str) -> None:
        """Out of the store with a document."""
        self._take(lambda piece: (piece.tenant, piece.document) == (tenant, document))

    def redact(self, tenant: str, document: str, place: int) -> None:
        """A transformation behind the parser: it sees texts, not what a view may have kept of another."""
        taken = self._take(lambda piece: (piece.tenant, piece.document, piece.place) == (tenant, document, place))
        for piece in taken:
            piece.record = self.host.with_text(piece.record, _MARK.sub("somebody", self.host.text(piece.record)))
        self._store(taken)

    def restrict(self, tenant: str, document: str, place: int, level: int = RESTRICTED) -> None:
        """Another level for what is in the store."""
        taken = self._take(lambda piece: (piece.tenant, piece.document, piece.place) == (tenant, document, place))
        for piece in taken:
            piece.record, piece.level = self.host.with_level(piece.record, level), level
        self._store(taken)

    def _take(self, chosen: Callable[[StoredChunk[Record]], bool]) -> list[StoredChunk[Record]]:
        taken = [piece for piece in self.pieces if chosen(piece)]
        self.pieces = [piece for piece in self.pieces if not chosen(piece)]
        if taken:
            self.host.delete([piece.record for piece in taken])
        return taken

    def _store(self, pieces: list[StoredChunk[Record]]) -> None:
        self.pieces += pieces
        if pieces:
            self.host.add([piece.record for piece in pieces])

    @property
    def visible(self) -> list[str]:
        """The texts that tenant a may see, as the store holds them."""
        seen = [piece for piece in self.pieces if piece.tenant == "a" and piece.level < RESTRICTED]
        return [self.host.text(piece.record) for piece in seen]

    def check(self, heard: Heard) -> None:
        """What was heard is only what may be seen, and every result is (a part of) what the store holds.

        Raises:
            AssertionError: names the marks that leaked, and where.
        """
        texts = self.visible
        allowed = set(_MARK.findall("\n".join(texts)))
        leaked = {
            (where, one) for where, said in heard.everything() for one in set(_MARK.findall(said)) if one not in allowed
        }
        assert not leaked, f"{sorted(leaked)} in {heard.around(leaked)}"
        strange = [text for text in heard.results if not any(text.strip() in held for held in texts)]
        assert not strange, f"{strange} is not what the store holds: {texts}"


@dataclass
class Heard:
    """All that comes out of a component, in whatever way.

    Attributes:
        results: Texts of results.
        said: Other strings, with a word for where they were heard.
    """

    results: list[str] = field(default_factory=list)
    said: list[tuple[str, str]] = field(default_factory=list)

    def hear(self, where: str, *said: object) -> None:
        """Note strings, or what others look like."""
        self.said += [(where, one if isinstance(one, str) else repr(one)) for one in said]

    def everything(self) -> list[tuple[str, str]]:
        """Where, and what."""
        return [*(("result", text) for text in self.results), *self.said]

    def around(self, leaked: set[tuple[str, str]]) -> list[str]:
        """Where the marks stand."""
        found = [(where, said, one) for where, said in self.everything() for at, one in leaked if at == where]
        return [
            f"{where}: ...{said[max(0, said.index(one) - 150) : said.index(one) + 60]}..."
            for where, said, one in found
            if one in said
        ][:4]


class _Listening(logging.Handler):
    def __init__(self, heard: Heard, unheard: Sequence[str]) -> None:
        super().__init__(logging.DEBUG)
        self._heard, self._unheard = heard, tuple(unheard)

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith(self._unheard):
            self._heard.hear(f"log of {record.name}", record.getMessage())


@contextmanager
def listening(*unheard: str) -> Iterator[Heard]:
    """Hears log records at every level, warnings, and errors of ours, which go no further.

    Args:
        unheard: Loggers of the host whose words are not a component's.
    """
    heard = Heard()
    root, handler = logging.getLogger(), _Listening(heard, unheard or ("asyncio",))
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                yield heard
            except DrillrankError as error:
                heard.hear("error", str(error), *map(str, error.args))
            heard.hear("warning", *(str(warning.message) for warning in caught))
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def reasoner(prompt: str) -> str:
    """What an LLM says to any component: all that is offered, one follow-up question, or an answer."""
    if re.search(r"^\* Section: |^\[\d+\]", prompt, re.MULTILINE):
        names = re.findall(r"^\* Section: (.*)$", prompt, re.MULTILINE)
        return ", ".join(names or re.findall(r"^\[(\d+)\]", prompt, re.MULTILINE))
    if "Follow up: What is the harbour fee?" in prompt:
        return "So the final answer is: dawn"
    return "Yes.\nFollow up: What is the harbour fee?"


def story(world: World[Any]) -> Iterator[str]:
    """What happens to a store over time; between its chapters questions are asked."""
    yield "as it was filled"
    world.redact("a", "guide", 0)
    yield "after a redaction"
    world.write("a", "rules")
    world.write("b", "guide")
    yield "after an update"
    world.restrict("a", "rules", 1)
    yield "after a restriction"
    world.delete("a", "guide")
    yield "after a deletion"
    world.delete("a", "rules")
    yield "after all is gone"


async def check_story(world: World[Any], ask: Callable[[bool], Awaitable[Heard]]) -> None:
    """What is heard between the chapters of the story is what may be seen then, and something while there is any.

    Args:
        world: To which it happens.
        ask: Asks a component, synchronously and asynchronously in turn.
    """
    for number, chapter in enumerate(story(world)):
        heard = await ask(number % 2 == 1)
        world.check(heard)
        assert bool(heard.results) is (chapter != "after all is gone"), chapter


WAYS = ("declared", "function", "inherited")
Entry = tuple[Any, Any]
"""The form of the records, and what builds a component over them."""


def variants(*tables: Mapping[str, Mapping[str, Entry]]) -> dict[str, Entry]:
    """All entries of tables, by class and name."""
    return {
        f"{cls} {name}": entry for table in tables for cls, entries in table.items() for name, entry in entries.items()
    }


def cases(stores: Mapping[str, tuple[Any, tuple[Any, ...]]]) -> list[Any]:
    """Every component over every store, its filter in every way: the store's values, the way, whether the source is
    the user's own without a filter, and the entry.

    Args:
        stores: By name the module with a host's tables, and values of a parameter each.
    """
    return [
        pytest.param(*values, way, theirs and way != "inherited", *entry, id=f"{store}-{way}-{name}")
        for store, (leaks, values) in stores.items()
        for way in WAYS
        for theirs, table in ((True, leaks.OVER_RETRIEVERS), (False, leaks.OVER_STORES))
        for name, entry in variants(table).items()
        if theirs or way != "inherited"
    ]
