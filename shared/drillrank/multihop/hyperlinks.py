"""Links from the hyperlinks that the author of a text set."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from copy import copy
from urllib.parse import unquote, urljoin, urlsplit

from drillrank.passages import Passage
from drillrank.structure.html import html_links
from drillrank.structure.markdown import markdown_links

# As the readers of LlamaIndex and the loaders of LangChain call them, the most telling first.
ADDRESS_KEYS = ("url", "source_url", "source", "file_path", "path", "file_name", "filename")
_HEADING_KEYS = ("anchor", "drillrank_section_path", "section_path")
_ANCHOR = re.compile(r"<a\s[^<>]*href", re.IGNORECASE)
_NOT_IN_SLUG = re.compile(r"[^\w\- ]")
_BACKSLASH = re.compile(r"\\|%5C", re.IGNORECASE)
_DRIVE = re.compile(r"[a-zA-Z]:[\\/]")
_INDEX_PAGE = re.compile(r"(?<=/)index\.x?html?$")


class Hyperlinks:
    """Links a passage to those that its Markdown links, autolinks and HTML anchors point to.

    A link is read relative to the passage's own address, which is the first of `keys` that its metadata holds. It
    leads to the passages with that address, whatever the scheme; with a fragment (`#early-life`) to those among them
    under that heading, if there are any: the metadata `anchor`, the last heading in `drillrank_section_path`, or the
    title. Where no address is known that way, the last part of the link decides: a file name that one document has, or
    else a title (`/wiki/Alan_Turing`). A page that was cut into many passages is linked as a whole; path search then
    follows the best of them.

    Args:
        keys: Metadata keys with a passage's address: a URL, a path, or a file name.

    >>> turing = Passage("Born in [Maida Vale](vale.md#history).", id="1", metadata={"file_path": "lives/turing.md"})
    >>> vale = Passage("Laid out long ago.", id="2", title="History", metadata={"file_path": "lives/vale.md"})
    >>> list(Hyperlinks().over([turing, vale])(turing))
    ['2']
    """

    kind = "hyperlink"

    def __init__(self, keys: Sequence[str] = ADDRESS_KEYS) -> None:
        self._keys = tuple(keys)

    def over(self, passages: Sequence[Passage], /) -> AddressIndex:
        """Links to these passages."""
        return AddressIndex(passages, self._keys)


class AddressIndex:
    """The addresses of some passages; called with a passage, it tells the ids that the hyperlinks in its text reach."""

    def __init__(self, passages: Sequence[Passage], keys: Sequence[str] = ADDRESS_KEYS) -> None:
        self._keys = tuple(keys)
        self._among: Container[str] | None = None
        self._at: dict[str, dict[str, list[str]]] = {}  # address, heading: ids
        self._files: dict[str, set[str]] = {}  # file name: addresses
        self._titled: dict[str, list[str]] = {}
        for passage in passages:
            address = _address(self._own(passage))
            headings = self._at.setdefault(address, {})
            headings.setdefault(_slug(_heading(passage)), []).append(passage.id)
            if address:
                self._files.setdefault(posixpath.basename(address), set()).add(address)
            if passage.title.strip():
                self._titled.setdefault(_folded(passage.title), []).append(passage.id)

    def __call__(self, passage: Passage, /) -> Iterable[str]:
        """Ids of the passages that are linked to, in the order of the links."""
        base = self._own(passage)
        return dict.fromkeys(id_ for link in hyperlinks(passage.text) for id_ in self._reached(link, base))

    def within(self, ids: Container[str]) -> AddressIndex:
        """The addresses of the passages with these ids alone, in the same tables."""
        view = copy(self)
        view._among = ids
        return view

    def _seen(self, ids: Iterable[str]) -> list[str]:
        return [id_ for id_ in ids if self._among is None or id_ in self._among]

    def _known(self, address: str) -> bool:
        headings = self._at.get(address, {})
        return bool(headings) and (self._among is None or any(map(self._seen, headings.values())))

    def _own(self, passage: Passage) -> str:
        return _with_slashes(next((value for key in self._keys if (value := _text(passage.metadata, key))), ""))

    def _reached(self, link: str, base: str) -> Iterable[str]:
        try:
            parts = urlsplit(urljoin(base, _with_slashes(link)))
        except ValueError:  # such as an unclosed bracket in the host
            return ()
        if parts.scheme not in ("", "http", "https", "file"):
            return ()
        address = _address(parts._replace(fragment="").geturl())
        last = posixpath.basename(unquote(parts.path).rstrip("/"))
        if not self._known(address) and not parts.netloc:
            files = [known for known in self._files.get(last, ()) if self._known(known)]
            address = files[0] if len(files) == 1 else address
        if self._known(address):
            headings = self._at[address]
            of_heading = self._seen(headings.get(_slug(unquote(parts.fragment)), ())) if parts.fragment else ()
            if of_heading or address == _address(base):  # the own page, or no address: passages without are no page
                return of_heading
            return [id_ for ids in headings.values() for id_ in self._seen(ids)]
        titles = (_folded(last), _folded(posixpath.splitext(last)[0]))
        return next((ids for title in titles if (ids := self._seen(self._titled.get(title, ())))), ())


def hyperlinks(text: str) -> list[str]:
    """The addresses that the Markdown links, autolinks and HTML anchors of a text name, in order.

    >>> hyperlinks('See [whales](/whales), <http://a.b> and <a href="owls.html">owls</a>; `[no](link)`.')
    ['/whales', 'http://a.b', 'owls.html']
    """
    found = [(at, target) for at, target, _ in markdown_links(text)] if "]" in text or "<" in text else []
    if _ANCHOR.search(text):
        found += [(at, target) for at, target, _ in html_links(text)]
    return list(dict.fromkeys(target for _, target in sorted(found, key=lambda link: link[0])))


def _address(url: str) -> str:
    """What two spellings of an address have in common: host and path, without scheme, escapes and index page."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    path = _INDEX_PAGE.sub("", unquote(parts.path)).rstrip("/")
    return f"{parts.netloc.lower()}{path and posixpath.normpath(path)}{parts.query and '?' + parts.query}"


def _with_slashes(address: str) -> str:
    address = address.strip()
    return _BACKSLASH.sub("/", address[2:] if _DRIVE.match(address) else address)


def _heading(passage: Passage) -> str:
    found = next((value for key in _HEADING_KEYS if (value := _text(passage.metadata, key))), passage.title)
    return found.rpartition(" > ")[2]


def _slug(heading: str) -> str:
    """As GitHub and most site generators make an anchor from a heading."""
    return _NOT_IN_SLUG.sub("", heading.strip().casefold()).replace(" ", "-")


def _folded(title: str) -> str:
    return " ".join(title.replace("_", " ").split()).casefold()


def _text(metadata: Mapping[str, object], key: str) -> str:
    value = metadata.get(key)
    return value if isinstance(value, str) else ""
