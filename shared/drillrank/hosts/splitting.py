"""Cutting a host's documents into views: namespaces, where they begin in what they were cut from, what pieces say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from drillrank.errors import InvalidInput
from drillrank.hosts.metadata import user_metadata, with_result_metadata
from drillrank.hosts.pages import at_pages, pages_of
from drillrank.hosts.settings import SplitterSettings
from drillrank.llm import Call, Requests
from drillrank.passages import stable_uuid
from drillrank.structure import breadcrumb, parse_document
from drillrank.views import MultiViewChunker, SectionChunk


def check_namespace(namespace: str | None, key: str | None) -> None:
    """Reject a namespace that is no name, and one that is said twice.

    Raises:
        InvalidInput: see above.
    """
    if namespace is not None and key is not None:
        raise InvalidInput("A namespace is given as namespace or read from the metadata under namespace_key, not both.")
    for name, value in (("namespace", namespace), ("namespace_key", key)):
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise InvalidInput(f"{name} is a string that is not blank, or None; not {value!r:.200}.")


def namespace_of(
    metadata: Mapping[str, Any], document: str, *, namespace: str | None = None, key: str | None = None
) -> str | None:
    """The namespace of a document: the one given, or what its metadata hold under the key.

    Args:
        metadata: Of the document.
        document: What an error calls it.
        namespace: Of all documents.
        key: Of the metadata.

    Raises:
        InvalidInput: the document has no string or number under the key, or a blank one.

    >>> namespace_of({"tenant": "a"}, "guide.md", key="tenant")
    'a'
    """
    if key is None:
        return namespace
    value = metadata.get(key)
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise InvalidInput(
            f"Document {document!r:.200} has {value!r:.200} under {key!r:.200}, its namespace_key: a name is needed "
            "there, so that no two namespaces are mixed."
        )
    return str(value)


def in_namespace(document_id: str, namespace: str | None) -> str:
    """What tells a document from all others of all namespaces; its id, where it is in none.

    >>> in_namespace("guide.md", None)
    'guide.md'
    >>> in_namespace("guide.md", "a") == in_namespace("guide.md", "b")
    False
    """
    return document_id if namespace is None else stable_uuid("namespace", namespace, document_id)


_BLANK_LINE, _LETTERS = 2, 12  # characters


@dataclass(frozen=True, slots=True)
class Cut:
    """A text that was cut out of a document, once or again.

    Attributes:
        id: Its own.
        text: Its text.
        document: Id of the document; None, or its own id, if it is one.
        above: Id of what it was cut out of, if that is known not to be the document.
        start: Where it is said to begin, in the document or in what it was cut out of; nobody says in which.
        end: Where it is said to end.
        behind: Id of the text before it, which was cut likewise.
    """

    id: str
    text: str
    document: str | None = None
    above: str | None = None
    start: int | None = None
    end: int | None = None
    behind: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it is a document."""
        return self.document in (None, self.id)

    @property
    def is_placed(self) -> bool:
        """Whether it is said where its text stands, letter by letter."""
        return self.start is not None and self.end is not None and self.end - self.start == len(self.text) > 0


def beginnings(cuts: Sequence[Cut]) -> list[int | None]:
    """Where each of some texts begins in its document; None where that is not certain.

    A document that is among them, or what a text was cut out of, is searched. Where neither is there, what is said is
    taken if all that was cut out of the document, from its beginning on, agrees on it: what was cut twice counts from
    the first cut, so that some claim one place, or none.

    Args:
        cuts: In the order in which they were made.

    >>> page, hen, fox = Cut("page", "A fox. A hen. A fox."), Cut("1", "A hen.", "page"), Cut("2", "A fox.", "page")
    >>> beginnings([page, hen, fox])
    [0, 7, None]
    >>> beginnings([Cut("1", "A fox.", "page", None, 0, 6), Cut("2", "A hen.", "page", None, 0, 6, behind="1")])
    [None, None]
    """
    known = {cut.id: cut for cut in cuts}
    claims: dict[str | None, list[Cut]] = {}
    for cut in cuts:
        if not cut.is_whole and cut.above is None:
            claims.setdefault(cut.document, []).append(cut)
    agreed = {document for document, own in claims.items() if _agree(own)}

    def begin(cut: Cut, below: frozenset[str] = frozenset()) -> int | None:
        if cut.is_whole:
            return 0
        if cut.document in known:
            return _inside(known[cut.document], cut, cut.above is None and cut.document in agreed)
        if cut.above is None:
            return cut.start if cut.document in agreed else None
        above = known.get(cut.above)
        if above is None or above.id in below:
            return None
        first, inside = begin(above, below | {cut.id}), _inside(above, cut, cut.is_placed)
        return None if first is None or inside is None else first + inside

    return [begin(cut) for cut in cuts]


def _inside(whole: Cut, cut: Cut, trusted: bool) -> int | None:
    """Where a text stands that is there once; of several places the one that is said, if that can be trusted."""
    at = whole.text.find(cut.text) if cut.text else -1
    if at < 0 or whole.text.find(cut.text, at + 1) < 0:
        return at if at >= 0 else None
    said = trusted and cut.start is not None and whole.text.startswith(cut.text, cut.start)
    return cut.start if said else None


def _agree(cuts: Sequence[Cut]) -> bool:
    """Whether all may count from the document's beginning: none is left out, each begins after the last, and fits.

    More than a blank line between two is taken for cut out white space where the second one's first letters are
    nowhere else, and else for a sign that it was found in the wrong place.
    """
    before: Cut | None = None
    for cut in cuts:
        if not cut.is_placed or cut.behind != (None if before is None else before.id):
            return False
        if before is not None:
            further = (cut.start or 0) - (before.start or 0)
            shared = before.text[further:]
            if further <= 0 or shared[: len(cut.text)] != cut.text[: len(shared)]:
                return False
            if shared and before.text.find(shared) < further:  # which agrees by chance where a text repeats itself
                return False
            gap = further - len(before.text)
            if gap > _BLANK_LINE and not _stands_once(cut.text[:_LETTERS], cuts):
                return False
        before = cut
    return True


def _stands_once(letters: str, cuts: Sequence[Cut]) -> bool:
    """Whether letters stand in one place of all texts."""
    places = 0
    for text in (cut.text for cut in cuts if letters in cut.text):
        places += 1 if text.find(letters) == text.rfind(letters) else 2
        if places > 1:
            return False
    return places == 1


@dataclass(frozen=True, slots=True)
class Uncut:
    """A document to be cut.

    Attributes:
        name: Different from all others of its namespace.
        namespace: None if there is none.
        text: The document.
        metadata: The host's, which say what format it has and what pages.
    """

    name: str
    namespace: str | None
    text: str
    metadata: Mapping[str, Any]

    def metadata_of(
        self, chunk: SectionChunk, settings: SplitterSettings, begin: int | None = 0, **names: Any
    ) -> dict[str, Any]:
        """The user's metadata, at the piece's pages, and ours.

        Args:
            chunk: The piece.
            settings: Of the splitter.
            begin: Where the document begins in the one that it was cut from; None if nobody knows.
            names: What else of ours the host writes, by bare names.
        """
        start, end = (None, None) if begin is None else (begin + chunk.start, begin + chunk.end)
        own: dict[str, Any] = {
            "section_path": breadcrumb(chunk.path, settings.separator),
            "section_level": chunk.level,
            "section_id": chunk.section_id,
            "view": chunk.view,
            "start": start,
            "end": end,
            "namespace": self.namespace,
        }
        return with_result_metadata(
            at_pages(user_metadata(self.metadata), pages_of(self.metadata), start, end), **own | names
        )


def split(
    chunker: MultiViewChunker, documents: Iterable[Uncut], show_progress: bool
) -> Requests[list[Sequence[SectionChunk]]]:
    """The views of each document."""
    arguments = [_parsed(document) for document in documents], show_progress
    [chunks] = yield [Call(partial(chunker.chunks, *arguments), partial(chunker.achunks, *arguments))]
    return chunks  # type: ignore[no-any-return]


def _parsed(document: Uncut) -> tuple[str, Any]:
    id_ = in_namespace(document.name, document.namespace)
    return id_, parse_document(document.text, metadata=document.metadata)
