"""Links between passages: which passages a path leads to.

The simplest link is a function from a passage to ids. `PathLinks` also depend on the question and the whole path, and
may request a retrieval. Before a search uses `UnboundLinks`, it binds them to the passages that may be linked to.
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
"""Function from a passage to the ids of the passages that it links to, most important first."""

LinkTarget = str | Passage | RetrievalRequest
"""Target of a link: an id, a passage, or a retrieval, whose results are all targets."""

LinkTargets = Iterable[LinkTarget] | Mapping[str, float]
"""Targets of one kind of links, all equally likely, or ids with the probability that a reader follows them."""

ListedTargets = tuple[LinkTarget, ...] | Mapping[str, float]
"""Targets of one kind of links, each once."""


@runtime_checkable
class PathLinks(Protocol):
    """Links that depend on the question or the whole path."""

    def follow(self, query: str, path: Path, /) -> LinkTargets:
        """Return the targets of a path.

        The method reads nothing from the source. For a retrieval, it returns a `RetrievalRequest`.
        """
        ...


@runtime_checkable
class UnboundLinks(Protocol):
    """Links that depend on the passages that may be linked to, such as on their titles."""

    def bind(self, passages: Sequence[Passage], /) -> LinkFunction | PathLinks:
        """Return the links among these passages."""
        ...


LinkSource = LinkFunction | PathLinks | UnboundLinks


# Links that a passage states


def passage_links(passage: Passage) -> Iterable[str]:
    """Return `Passage.links`."""
    return passage.links


@dataclass(frozen=True, slots=True)
class MetadataLinks:
    """Links to the ids that a passage's metadata list, read by `links_from_metadata`.

    Attributes:
        key: Metadata key of the ids.

    >>> MetadataLinks("see_also")(Passage("a", metadata={"see_also": "b, c"}))
    ('b', 'c')
    """

    key: str = "links"
    kind: ClassVar[str] = "metadata"

    def __call__(self, passage: Passage, /) -> Iterable[str]:
        """Return the ids in the order of the metadata."""
        return links_from_metadata(passage.metadata.get(self.key))


def links_from_metadata(value: object) -> tuple[str, ...]:
    """Read ids from a metadata value: a list, or a comma-separated string, for stores without lists.

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
    """Links to the results of a second retrieval, for texts without links.

    The query is the question, followed by the last passage of the path. The first stage of the search answers it, or
    the search's own index.

    Args:
        n: Maximum number of passages that each path leads to, apart from those of the path.

    >>> passage = Passage("It lies on the Rhine.", title="Basel")
    >>> list(RetrievedLinks(n=3).follow("Which sea does its river reach?", Path((passage,))))
    [RetrievalRequest(query='Which sea does its river reach? Basel It lies on the Rhine.', n=4, source=None, where={})]
    """

    n: int = 3
    kind: ClassVar[str] = "second retrieval"

    def __post_init__(self) -> None:
        check_positive(n=self.n)

    def follow(self, query: str, path: Path, /) -> Iterable[LinkTarget]:
        """Return one retrieval."""
        yield RetrievalRequest(f"{query} {path.passages[-1].titled_text}", self.n + len(path.passages))


# Links by names of passages


class Names(Protocol):
    """Names of passages: in memory (`NameTable`) or in a corpus (`Corpus.names`)."""

    def look_up(self, names: Iterable[str], /) -> Mapping[str, Mapping[str, float]]:
        """Return the ids and weights of the passages with each name. Unknown names are left out."""
        ...

    def find_mentions(self, tokens: Sequence[str], /) -> Iterable[tuple[int, int, Mapping[str, float]]]:
        """Return start, end and passages of each name among the tokens. At one start, the longest name is first."""
        ...


class NameTable:
    """Names of passages in memory. The words of a name are joined by single spaces.

    Args:
        passages: The passages.
        list_names: Function from a passage to its names with weights. If a name is listed twice, the first weight
            counts.
        min_passages: Number of passages that must have a name for it to be kept.

    >>> table = NameTable([Passage("", id="1", title="New York")], lambda passage: [(passage.title, 1.0)])
    >>> table.look_up(["York", "New York"])
    {'New York': {'1': 1.0}}
    >>> table.find_mentions(["In", "New", "York"])
    [(1, 3, {'1': 1.0})]
    """

    def __init__(
        self, passages: Iterable[Passage], list_names: Callable[[Passage], Iterable[NameRow]], *, min_passages: int = 1
    ) -> None:
        weights_by_name: dict[str, dict[str, float]] = {}
        for passage in passages:
            for name, weight in list_names(passage):
                weights_by_name.setdefault(name, {}).setdefault(passage.id, weight)
        if min_passages > 1:
            weights_by_name = {name: row for name, row in weights_by_name.items() if len(row) >= min_passages}
        self._weights_by_name = weights_by_name

    @cached_property
    def _prefixes(self) -> set[str]:
        """Beginnings of names, in whole words."""
        return {prefix for name in self._weights_by_name for prefix in accumulate(name.split(" ")[:-1], "{} {}".format)}

    def look_up(self, names: Iterable[str], /) -> dict[str, dict[str, float]]:
        """Return the ids and weights of the passages with each name. Unknown names are left out."""
        return {name: row for name in names if (row := self._weights_by_name.get(name)) is not None}

    def find_mentions(self, tokens: Sequence[str], /) -> list[tuple[int, int, dict[str, float]]]:
        """Return start, end and passages of each name among the tokens. At one start, the longest name is first."""
        weights_by_name, prefixes = self._weights_by_name, self._prefixes
        mentions: list[tuple[int, int, dict[str, float]]] = []
        for start, token in enumerate(tokens):
            if token not in weights_by_name and token not in prefixes:
                continue
            mentions_here = []
            for end, name in enumerate(accumulate(islice(tokens, start, None), "{} {}".format), start + 1):
                if name in weights_by_name:
                    mentions_here.append((start, end, weights_by_name[name]))
                if name not in prefixes:
                    break
            mentions += reversed(mentions_here)
        return mentions


class NamedLinks(ABC):
    """Links that find passages by their names. A corpus stores the names under the `repr` of the links.

    Attributes:
        min_passages: Number of passages that must have a name for it to be kept in memory.
    """

    min_passages: ClassVar[int] = 1
    __slots__ = ()

    @abstractmethod
    def list_names(self, passage: Passage, /) -> Iterable[NameRow]:
        """Return the names of a passage, which must depend on that passage only."""

    @abstractmethod
    def find_targets(self, names: Names, query: str, path: Path, /) -> LinkTargets:
        """Return the targets of a path."""

    def bind(self, passages: Sequence[Passage], /) -> BoundLinks:
        """Return the links to these passages."""
        return BoundLinks(self, NameTable(passages, self.list_names, min_passages=self.min_passages))


@dataclass(frozen=True, slots=True)
class BoundLinks:
    """Links to the passages of a table of names.

    Attributes:
        links: The links.
        names: Names of the passages that may be linked to.
    """

    links: NamedLinks
    names: Names

    def follow(self, query: str, path: Path, /) -> LinkTargets:
        """Return the targets of a path."""
        return self.links.find_targets(self.names, query, path)

    def __call__(self, passage: Passage, /) -> LinkTargets:
        """Return the targets of a passage for an empty question."""
        return self.follow("", Path((passage,)))


# Following links


FollowFunction = Callable[[str, Path], LinkTargets]
"""Function from a question and a path to the targets of the path."""


def bind_links(
    links: LinkSource | Sequence[LinkSource] | None,
    passages: Sequence[Passage],
    names_of: Callable[[NamedLinks], Names] | None = None,
) -> list[tuple[str, FollowFunction]]:
    """Return one function for each kind of links, with the name of the kind in explanations.

    Args:
        links: One kind of links, or several. None is `Passage.links`.
        passages: Passages that may be linked to, as far as they are in memory.
        names_of: Function from links to the names of all passages that may be linked to. None makes a table of the
            names of `passages`.

    Raises:
        InvalidInput: `links` are not links.

    >>> kinds = bind_links([passage_links, MetadataLinks()], [])
    >>> path = Path((Passage("a", links=("x", "y"), metadata={"links": "z"}),))
    >>> [(kind, *follow("", path)) for kind, follow in kinds]
    [('link', 'x', 'y'), ('metadata', 'z')]
    """
    if isinstance(links, list | tuple):
        return [kind for source in links for kind in bind_links(source, passages, names_of)]
    source: object = passage_links if links is None else links
    kind = getattr(source, "kind", getattr(source, "__name__", type(source).__name__))
    if source is passage_links:
        kind = "link"
    if not isinstance(source, type):
        if names_of is not None and isinstance(source, NamedLinks):
            source = BoundLinks(source, names_of(source))
        elif isinstance(source, UnboundLinks) and not isinstance(source, PathLinks):
            source = source.bind(passages)
        if isinstance(source, PathLinks):
            return [(str(kind), source.follow)]
        if callable(source):
            return [(str(kind), partial(_follow_last_passage, source))]
    raise InvalidInput(
        f"links must be a function from a passage to ids, an object with follow(query, path) or bind(passages), or a "
        f"list of these, got {links!r:.100}."
    )


def _follow_last_passage(links: LinkFunction, _query: str, path: Path) -> Iterable[LinkTarget]:
    return list(links(path.passages[-1]))  # a list, so that a dictionary counts as its ids, without probabilities


def list_targets(follow: FollowFunction, query: str, path: Path) -> ListedTargets:
    """Return the targets of one path, each once, with probabilities if the links have any.

    Raises:
        InvalidInput: A target is not an id, a passage or a retrieval.
    """
    targets = follow(query, path)
    if not isinstance(targets, Mapping):
        targets = list(targets)
    for target in targets:
        if not isinstance(target, (str, Passage, RetrievalRequest)):
            raise InvalidInput(f"A link must lead to an id, a Passage or a RetrievalRequest, got {target!r:.100}.")
    return targets if isinstance(targets, Mapping) else tuple(dict.fromkeys(targets))


def fetch_targets(
    paths: Sequence[Path],
    targets: Sequence[Sequence[LinkTarget]],
    source_passage_by_id: dict[str, Passage],
    own_passage_by_id: Mapping[str, Passage] = MappingProxyType({}),
) -> Requests[list[list[Passage]]]:
    """Return the passages that several paths lead to, and make all requests for them at once.

    If a source has another id for a passage than the requested one, it may answer a `LookupRequest` with pairs of the
    requested id and the passage.

    Args:
        paths: The paths.
        targets: Targets of each path.
        source_passage_by_id: Passages that the source has returned before. Passages of the answers are added.
        own_passage_by_id: Passages that need not be fetched.

    Returns:
        The passages of each path, each once, in the order of the links. Unknown ids and the path's own passages are
        left out.
    """

    def add(passage: Passage) -> Passage:
        """Return the first passage that was read with this id."""
        return (
            source_passage_by_id.get(passage.id)
            or own_passage_by_id.get(passage.id)
            or source_passage_by_id.setdefault(passage.id, passage)
        )

    # Step 1: request all ids that are not in memory, and all retrievals
    distinct = dict.fromkeys(target for path_targets in targets for target in path_targets)
    ids = [target for target in distinct if isinstance(target, str)]
    missing_ids = tuple(id_ for id_ in ids if id_ not in source_passage_by_id and id_ not in own_passage_by_id)
    retrievals = [target for target in distinct if isinstance(target, RetrievalRequest)]
    requests = [*([LookupRequest(missing_ids)] if missing_ids else ()), *retrievals]
    answers = list((yield requests) if requests else ())
    if missing_ids:
        requested_ids = set(missing_ids)
        for answer in answers.pop(0):
            id_, passage = answer if isinstance(answer, tuple) else (answer.id, answer)
            if id_ in requested_ids:
                source_passage_by_id[id_] = add(passage)
    retrieved = dict(zip(retrievals, answers, strict=True))

    # Step 2: collect the passages of each path
    passages_by_path = []
    for path, path_targets in zip(paths, targets, strict=True):
        passages: dict[str, Passage] = {}
        for target in path_targets:
            if isinstance(target, str):
                linked = source_passage_by_id.get(target) or own_passage_by_id.get(target)
                if linked is not None:
                    passages[linked.id] = linked
            else:
                targets_of_link = retrieved[target] if isinstance(target, RetrievalRequest) else (target,)
                passages |= {passage.id: add(passage) for passage in targets_of_link}
        for id_ in path.ids:
            passages.pop(id_, None)
        passages_by_path.append(list(passages.values()))
    return passages_by_path
