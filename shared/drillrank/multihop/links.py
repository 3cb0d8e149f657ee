"""Links between passages: which passages a path leads to.

The plain form is a function from a passage to ids. Richer links see the question and the whole path, and may ask for a
retrieval; others must know the passages that may be linked to before they can say anything, and are bound to them once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate, islice
from types import MappingProxyType
from typing import ClassVar, Protocol, runtime_checkable

from drillrank.corpus.names import NameRow
from drillrank.errors import InvalidInput, check_positive
from drillrank.llm import LookupRequest, Requests, RetrievalRequest
from drillrank.passages import Passage, Path

LinkFunction = Callable[[Passage], Iterable[str]]
"""From a passage to the ids of the passages that it points to, best known first."""


LinkTarget = str | Passage | RetrievalRequest
"""Where a link leads: an id, a passage, or whatever a retrieval brings."""
LinkTargets = Iterable[LinkTarget] | Mapping[str, float]
"""Where links of one kind lead: targets alike, or ids with how likely a reader takes each of them, 0 to 1."""


@runtime_checkable
class PathLinks(Protocol):
    """Links that depend on the question or the whole path."""

    def follow(self, query: str, path: Path, /) -> LinkTargets:
        """Where a path may go on; computes only, a retrieval is asked for by returning it."""
        ...


@runtime_checkable
class UnboundLinks(Protocol):
    """Links that must know the passages that may be linked to, such as their titles."""

    def bind(self, passages: Sequence[Passage], /) -> LinkFunction | PathLinks:
        """The links among these passages."""
        ...


LinkSource = LinkFunction | PathLinks | UnboundLinks


class Names(Protocol):
    """Names, and which passages have them: in memory (`NameTable`), or in a corpus (`Corpus.names`)."""

    def look_up(self, names: Iterable[str], /) -> Mapping[str, Mapping[str, float]]:
        """Those of the names that there are, in their order, with the ids of their passages, and weights."""
        ...

    def find_mentions(self, tokens: Sequence[str], /) -> Iterable[tuple[int, int, Mapping[str, float]]]:
        """Where names begin and end among the tokens, with the ids of `look_up`; of one start the longest first."""
        ...


class NameTable:
    """Names in memory; those of several words have a blank between any two.

    Args:
        passages: Which have names.
        rows: The names of a passage; of equal ones the first counts.
        min_passages: How many passages a name must have to be kept.

    >>> table = NameTable([Passage("", id="1", title="New York")], lambda passage: [(passage.title, 1.0)])
    >>> table.look_up(["York", "New York"])
    {'New York': {'1': 1.0}}
    >>> table.find_mentions(["In", "New", "York"])
    [(1, 3, {'1': 1.0})]
    """

    def __init__(
        self, passages: Iterable[Passage], rows: Callable[[Passage], Iterable[NameRow]], *, min_passages: int = 1
    ) -> None:
        found: dict[str, dict[str, float]] = {}
        for passage in passages:
            for name, weight in rows(passage):
                found.setdefault(name, {}).setdefault(passage.id, weight)
        self._ids = (
            found if min_passages == 1 else {name: ids for name, ids in found.items() if len(ids) >= min_passages}
        )

    @cached_property
    def _prefixes(self) -> set[str]:
        """What is no name, but goes on to be one."""
        return {name for full in self._ids for name in accumulate(full.split(" ")[:-1], "{} {}".format)}

    def look_up(self, names: Iterable[str], /) -> dict[str, dict[str, float]]:
        """Those of the names that there are, with their passages."""
        return {name: ids for name in names if (ids := self._ids.get(name)) is not None}

    def find_mentions(self, tokens: Sequence[str], /) -> list[tuple[int, int, dict[str, float]]]:
        """Where names begin and end among the tokens."""
        ids, prefixes = self._ids, self._prefixes
        found: list[tuple[int, int, dict[str, float]]] = []
        for start, token in enumerate(tokens):
            if token in ids or token in prefixes:
                of_start = []
                for end, name in enumerate(accumulate(islice(tokens, start, None), "{} {}".format), start + 1):
                    if name in ids:
                        of_start.append((start, end, ids[name]))
                    if name not in prefixes:
                        break
                found += reversed(of_start)
        return found


class NamedLinks(ABC):
    """Links to passages by their names, which can be kept on disk; `repr` tells those of one kind from others.

    Attributes:
        min_passages: How many passages must have a name for it to be kept in memory.
    """

    min_passages: ClassVar[int] = 1
    __slots__ = ()

    @abstractmethod
    def list_names(self, passage: Passage, /) -> Iterable[NameRow]:
        """The names of a passage."""

    @abstractmethod
    def find_targets(self, names: Names, query: str, path: Path, /) -> LinkTargets:
        """Where a path goes on, by these names."""

    def bind(self, passages: Sequence[Passage], /) -> BoundLinks:
        """The links to these passages."""
        return BoundLinks(self, NameTable(passages, self.list_names, min_passages=self.min_passages))


@dataclass(frozen=True, slots=True)
class BoundLinks:
    """Links to the passages that have some names; called with a passage, where a path of it alone goes on."""

    links: NamedLinks
    names: Names

    def follow(self, query: str, path: Path, /) -> LinkTargets:
        """Where a path goes on."""
        return self.links.find_targets(self.names, query, path)

    def __call__(self, passage: Passage, /) -> LinkTargets:
        """Where a passage links to, whatever the question."""
        return self.follow("", Path((passage,)))


def passage_links(passage: Passage) -> Iterable[str]:
    """The links that the passage itself carries."""
    return passage.links


@dataclass(frozen=True, slots=True)
class MetadataLinks:
    """Links to the ids that a passage's metadata lists, as `links_from_metadata` reads them.

    >>> MetadataLinks("see_also")(Passage("a", metadata={"see_also": "b, c"}))
    ('b', 'c')
    """

    key: str = "links"
    kind: ClassVar[str] = "metadata"

    def __call__(self, passage: Passage, /) -> Iterable[str]:
        """Ids in the order of the metadata."""
        return links_from_metadata(passage.metadata.get(self.key))


def links_from_metadata(value: object) -> tuple[str, ...]:
    """Ids from a metadata value: a list of ids, or one comma-separated string, since many stores take flat values only.

    >>> links_from_metadata("a, b"), links_from_metadata(["a", 7]), links_from_metadata(None)
    (('a', 'b'), ('a', '7'), ())
    """
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list | tuple | set | frozenset):
        return ()
    return tuple(text for text in (str(item).strip() for item in value if item is not None) if text)


@dataclass(frozen=True, slots=True)
class RetrievedLinks:
    """Links by a second retrieval, whose query is the question with a path's last passage: for texts without links.

    The same retriever answers as for the question itself: the `first_stage` of a `PathSearch`, or its TF-IDF index.

    Args:
        n: Passages that each path leads to, beside its own.

    >>> passage = Passage("It lies on the Rhine.", title="Basel")
    >>> list(RetrievedLinks(n=3).follow("Which sea does its river reach?", Path((passage,))))
    [RetrievalRequest(query='Which sea does its river reach? Basel It lies on the Rhine.', n=4, source=None, where={})]
    """

    n: int = 3
    kind: ClassVar[str] = "second retrieval"

    def __post_init__(self) -> None:
        check_positive(n=self.n)

    def follow(self, query: str, path: Path, /) -> Iterable[LinkTarget]:
        """One retrieval."""
        yield RetrievalRequest(f"{query} {path.passages[-1].titled_text}", self.n + len(path.passages))


FollowFunction = Callable[[str, Path], LinkTargets]
"""From a question and a path to where the path may go on."""


def bind_links(
    links: LinkSource | Sequence[LinkSource] | None,
    passages: Sequence[Passage],
    names: Callable[[NamedLinks], Names] | None = None,
) -> list[tuple[str, FollowFunction]]:
    """The kinds of links, each with what it is called where a path is explained.

    Args:
        links: One kind of links, or several, whose targets are combined; None stands for `Passage.links`.
        passages: The passages that may be linked to.
        names: Where the names of more passages than these are kept.

    Raises:
        InvalidInput: something else was given for links.

    >>> kinds = bind_links([passage_links, MetadataLinks()], [])
    >>> path = Path((Passage("a", links=("x", "y"), metadata={"links": "z"}),))
    >>> [(kind, *follow("", path)) for kind, follow in kinds]
    [('link', 'x', 'y'), ('metadata', 'z')]
    """
    if isinstance(links, list | tuple):
        return [kind for source in links for kind in bind_links(source, passages, names)]
    found: object = passage_links if links is None else links
    name = (
        "link" if found is passage_links else getattr(found, "kind", getattr(found, "__name__", type(found).__name__))
    )
    if not isinstance(found, type):
        if names is not None and isinstance(found, NamedLinks):
            found = BoundLinks(found, names(found))
        elif isinstance(found, UnboundLinks) and not isinstance(found, PathLinks):
            found = found.bind(passages)
        if isinstance(found, PathLinks):
            return [(str(name), found.follow)]
        if callable(found):
            return [(str(name), partial(_of_last, found))]
    raise InvalidInput(
        f"{links!r:.100} are no links: pass a function from a passage to ids, an object with follow(query, path) "
        "or bind(passages), or a list of such."
    )


def _of_last(links: LinkFunction, _query: str, path: Path) -> Iterable[LinkTarget]:
    return list(links(path.passages[-1]))  # a dictionary of a function's is one of ids, without chances


def list_targets(follow: FollowFunction, query: str, path: Path) -> tuple[LinkTarget, ...] | Mapping[str, float]:
    """Where the links of one path lead, each target once.

    Raises:
        InvalidInput: a target is neither an id nor a passage nor a retrieval.
    """
    found = follow(query, path)
    targets = found if isinstance(found, Mapping) else list(found)
    for target in targets:
        if not isinstance(target, (str, Passage, RetrievalRequest)):
            raise InvalidInput(f"A link leads to an id (a string), to a Passage or to a Retrieve; not {target!r:.100}.")
    return targets if isinstance(targets, Mapping) else tuple(dict.fromkeys(targets))


def fetch_targets(
    paths: Sequence[Path],
    targets: Sequence[Sequence[LinkTarget]],
    reachable: dict[str, Passage],
    pool: Mapping[str, Passage] = MappingProxyType({}),
) -> Requests[list[list[Passage]]]:
    """The passages that the links of several paths lead to; the requests of all of them are made together.

    Args:
        paths: Where the links start.
        targets: Where those of each path lead.
        reachable: Passages at hand, by id; those that a request brings are added.
        pool: More of them.

    A source that calls what it fetched otherwise answers with pairs: the id that was asked for, and the passage.

    Returns:
        For each path the passages that it leads to, each once, in the order of the links. Its own passages and ids that
        nobody knows are left out, so that cycles end and links to nowhere lead nowhere.
    """

    def known(passage: Passage) -> Passage:
        """The passage of this id that was there first."""
        return reachable.get(passage.id) or pool.get(passage.id) or reachable.setdefault(passage.id, passage)

    distinct = dict.fromkeys(target for of_path in targets for target in of_path)
    missing = tuple(
        target for target in distinct if isinstance(target, str) and target not in reachable and target not in pool
    )
    retrievals = [target for target in distinct if isinstance(target, RetrievalRequest)]
    requests = [*([LookupRequest(missing)] if missing else ()), *retrievals]
    answers = list((yield requests) if requests else ())
    if missing:
        wanted = set(missing)
        for found in answers.pop(0):
            name, passage = found if isinstance(found, tuple) else (found.id, found)
            if name in wanted:
                reachable[name] = known(passage)
    retrieved = dict(zip(retrievals, answers, strict=True))
    following = []
    for path, of_path in zip(paths, targets, strict=True):
        led_to: dict[str, Passage] = {}
        for target in of_path:
            if isinstance(target, str):
                if (at := reachable.get(target) or pool.get(target)) is not None:
                    led_to[at.id] = at
            else:
                passages = retrieved[target] if isinstance(target, RetrievalRequest) else (target,)
                led_to |= {passage.id: known(passage) for passage in passages}
        for id_ in path.ids:
            led_to.pop(id_, None)
        following.append(list(led_to.values()))
    return following
