"""Links between passages: which passages a path leads to.

The plain form is a function from a passage to ids. Richer links see the question and the whole path, and may ask for a
retrieval; others must know the passages that may be linked to before they can say anything, and are bound to them once.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from drillrank.errors import InvalidInput, check_positive
from drillrank.llm import Fetch, Requests, Retrieve
from drillrank.passages import Passage, Path

Links = Callable[[Passage], Iterable[str]]
"""From a passage to the ids of the passages that it points to, best known first."""


class Mention(NamedTuple):
    """Where a link of many leads: an id, and how likely a reader takes it who follows one of its kind, 0 to 1."""

    id: str
    chance: float


Target = str | Passage | Mention | Retrieve
"""Where a link leads: an id, with or without its chance, a passage, or whatever a retrieval brings."""


@runtime_checkable
class PathLinks(Protocol):
    """Links that depend on the question or the whole path."""

    def follow(self, query: str, path: Path, /) -> Iterable[Target]:
        """Where a path may go on; computes only, a retrieval is asked for by returning it."""
        ...


@runtime_checkable
class UnboundLinks(Protocol):
    """Links that must know the passages that may be linked to, such as their titles."""

    def over(self, passages: Sequence[Passage], /) -> Links | PathLinks:
        """The links among these passages."""
        ...


LinkSource = Links | PathLinks | UnboundLinks


@runtime_checkable
class Restrictable(Protocol):
    """Bound links that can be narrowed to some of the passages at no cost."""

    def within(self, ids: Container[str], /) -> Links | PathLinks:
        """The links as if only the passages with these ids had been bound."""
        ...


def given_links(passage: Passage) -> Iterable[str]:
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
    [Retrieve(query='Which sea does its river reach? Basel It lies on the Rhine.', n=4, source=None, where={})]
    """

    n: int = 3
    kind: ClassVar[str] = "second retrieval"

    def __post_init__(self) -> None:
        check_positive(n=self.n)

    def follow(self, query: str, path: Path, /) -> Iterable[Target]:
        """One retrieval."""
        yield Retrieve(f"{query} {path.passages[-1].titled_text}", self.n + len(path.passages))


def bound_links(links: LinkSource | Sequence[LinkSource] | None, passages: Sequence[Passage]) -> PathLinks:
    """One object to follow links with.

    Args:
        links: One kind of links, or several, whose targets are combined; None stands for `Passage.links`.
        passages: The passages that may be linked to.

    Raises:
        InvalidInput: something else was given for links.

    >>> links = bound_links([given_links, lambda passage: ["y", "z"]], [])
    >>> list(links.follow("", Path((Passage("a", links=("x", "y")),))))
    ['x', 'y', 'z']
    """
    if links is None:
        return _PassageLinks(given_links)
    if isinstance(links, list | tuple):
        return _CombinedLinks(tuple(bound_links(source, passages) for source in links))
    if isinstance(links, PathLinks | UnboundLinks) and not isinstance(links, type):
        if isinstance(links, PathLinks):
            return links
        found = links.over(passages)
        return _BoundLinks(links, passages, found, bound_links(found, passages))
    if not callable(links) or isinstance(links, type):
        raise InvalidInput(
            f"{links!r:.100} are no links: pass a function from a passage to ids, an object with follow(query, path) "
            "or over(passages), or a list of such."
        )
    return _PassageLinks(links)


def link_kinds(links: PathLinks) -> list[tuple[str, PathLinks]]:
    """The kinds of links that `bound_links` has bound, each with what it is called where a path is explained.

    >>> [kind for kind, _ in link_kinds(bound_links([given_links, MetadataLinks()], []))]
    ['link', 'metadata']
    """
    if isinstance(links, _CombinedLinks):
        return [named for source in links.sources for named in link_kinds(source)]
    source: object = links.source if isinstance(links, _BoundLinks) else links
    source = source.links if isinstance(source, _PassageLinks) else source
    if source is given_links:
        return [("link", links)]
    kind = getattr(source, "kind", None)
    return [(kind if isinstance(kind, str) else getattr(source, "__name__", type(source).__name__), links)]


def restricted_links(links: PathLinks, ids: Container[str]) -> PathLinks:
    """What `bound_links` returned, as if it had been bound to the passages with these ids alone."""
    if isinstance(links, _CombinedLinks):
        return _CombinedLinks(tuple(restricted_links(source, ids) for source in links.sources))
    return links.within(ids) if isinstance(links, _BoundLinks) else links


def linked(
    links: PathLinks,
    query: str,
    paths: Sequence[Path],
    reachable: MutableMapping[str, Passage],
    retrieving: int | None = None,
) -> Requests[list[list[Passage]]]:
    """Follow the links of several paths; the requests of all of them are made together.

    Args:
        links: What `bound_links` returned.
        query: The question.
        paths: Where to start.
        reachable: Passages at hand, by id; those that a request brings are added.
        retrieving: How many paths, from the first, may ask for retrievals; None for all.

    A source that calls what it fetched otherwise answers with pairs: the id that was asked for, and the passage.

    Returns:
        For each path the passages that it leads to, each once, in the order of the links. Its own passages and ids that
        nobody knows are left out, so that cycles end and links to nowhere lead nowhere.
    """
    targets = [targets_of(links, query, path) for path in paths]
    for place in range(len(paths) if retrieving is None else retrieving, len(paths)):
        targets[place] = tuple(target for target in targets[place] if not isinstance(target, Retrieve))
    distinct = dict.fromkeys(target for of_path in targets for target in of_path)
    ids_wanted = dict.fromkeys(target.id if isinstance(target, Mention) else target for target in distinct)
    missing = tuple(target for target in ids_wanted if isinstance(target, str) and target not in reachable)
    retrievals = [target for target in distinct if isinstance(target, Retrieve)]
    requests = [*([Fetch(missing)] if missing else ()), *retrievals]
    answers = list((yield requests) if requests else ())
    if missing:
        wanted = set(missing)
        for found in answers.pop(0):
            name, passage = found if isinstance(found, tuple) else (found.id, found)
            if name in wanted:
                reachable[name] = reachable.setdefault(passage.id, passage)
    retrieved = dict(zip(retrievals, answers, strict=True))

    def passages_at(target: Target) -> Sequence[Passage]:
        if isinstance(target, str | Mention):
            try:
                return (reachable[target if isinstance(target, str) else target.id],)
            except KeyError:
                return ()
        passages = retrieved[target] if isinstance(target, Retrieve) else (target,)
        return [reachable.setdefault(passage.id, passage) for passage in passages]

    following = []
    for path, of_path in zip(paths, targets, strict=True):
        ids = set(path.ids)
        led_to = {passage.id: passage for target in of_path for passage in passages_at(target)}
        following.append([passage for name, passage in led_to.items() if name not in ids])
    return following


def targets_of(links: PathLinks, query: str, path: Path) -> tuple[Target, ...]:
    """Where the links of one path lead, each target once.

    Raises:
        InvalidInput: a target is neither an id nor a passage nor a retrieval.
    """
    return tuple(dict.fromkeys(map(_checked, links.follow(query, path))))


def _checked(target: object) -> Target:
    if not isinstance(target, str | Passage | Mention | Retrieve):
        raise InvalidInput(f"A link leads to an id (a string), to a Passage or to a Retrieve; not {target!r:.100}.")
    return target


@dataclass(frozen=True, slots=True)
class _PassageLinks:
    """The links of a path's last passage."""

    links: Links

    def follow(self, _query: str, path: Path, /) -> Iterable[Target]:
        return self.links(path.passages[-1])


@dataclass(frozen=True, slots=True)
class _BoundLinks:
    """Links that know the passages, with what is needed to bind them to fewer."""

    source: UnboundLinks
    passages: Sequence[Passage]
    links: Links | PathLinks
    bound: PathLinks

    def follow(self, query: str, path: Path, /) -> Iterable[Target]:
        return self.bound.follow(query, path)

    def within(self, ids: Container[str]) -> PathLinks:
        links: object = self.links
        if isinstance(links, Restrictable):
            return bound_links(links.within(ids), self.passages)
        return bound_links(self.source, [passage for passage in self.passages if passage.id in ids])


@dataclass(frozen=True, slots=True)
class _CombinedLinks:
    """The targets of several links, one kind after the other, without repetition."""

    sources: tuple[PathLinks, ...]

    def follow(self, query: str, path: Path, /) -> Iterable[Target]:
        return dict.fromkeys(target for source in self.sources for target in source.follow(query, path))
