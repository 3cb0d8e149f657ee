"""Where texts begin in their document that something else cut out of it, as far as that is certain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
