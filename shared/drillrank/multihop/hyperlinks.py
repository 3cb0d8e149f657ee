"""Links to the pages that the hyperlinks of a text point to."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import unquote, urljoin, urlsplit
from zlib import crc32

from drillrank.corpus.names import NameRow
from drillrank.multihop.links import NamedLinks, Names
from drillrank.passages import Passage, Path
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


@dataclass(frozen=True)
class Hyperlinks(NamedLinks):
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
    >>> list(Hyperlinks().bind([turing, vale])(turing))
    ['2']
    """

    keys: Sequence[str] = ADDRESS_KEYS
    kind: ClassVar[str] = "hyperlink"

    def list_names(self, passage: Passage, /) -> Iterator[NameRow]:
        """Where a passage is found: its address and its file name, both with its heading, too, and its title."""
        address = _address(self._address_of(passage))
        heading = _slug(_heading(passage))
        yield f"at {address}#{heading}", 0.0
        if address:  # passages without are no page
            yield f"at {address}", 0.0
            name, which = posixpath.basename(address), float(crc32(address.encode(errors="replace")))
            yield f"file {name}", which
            yield f"file {name}#{heading}", which
        if passage.title.strip():
            yield f"title {_folded(passage.title)}", 0.0

    def find_targets(self, names: Names, _query: str, path: Path, /) -> list[str]:
        """Ids of the passages that the last one's text links to, in the order of the links."""
        passage = path.passages[-1]
        base = self._address_of(passage)
        return list(dict.fromkeys(id_ for link in find_hyperlinks(passage.text) for id_ in _linked(names, link, base)))

    def _address_of(self, passage: Passage) -> str:
        return _with_slashes(next((value for key in self.keys if (value := _text(passage.metadata, key))), ""))


def _linked(names: Names, link: str, base: str) -> Iterable[str]:
    """Ids of the passages that a link leads to, from a page with the address `base`."""
    try:
        parts = urlsplit(urljoin(base, _with_slashes(link)))
    except ValueError:  # such as an unclosed bracket in the host
        return ()
    if parts.scheme not in ("", "http", "https", "file"):
        return ()
    address = _address(parts._replace(fragment="").geturl())
    last = posixpath.basename(unquote(parts.path).rstrip("/"))
    under = f"#{_slug(unquote(parts.fragment))}"
    titles = [f"title {_folded(last)}", f"title {_folded(posixpath.splitext(last)[0])}"]
    pages = [f"at {address}", *([f"file {last}"] if last and not parts.netloc else [])]
    known = names.look_up([*pages, *(page + under for page in pages), *titles])
    for page in pages:
        if page == "at " or (page in known and (page == pages[0] or len({*known[page].values()}) == 1)):
            of_heading = known.get(page + under, ()) if parts.fragment else ()
            return of_heading or (() if address == _address(base) else known.get(page, ()))  # not the own page
    return next((known[title] for title in titles if title in known), ())


def find_hyperlinks(text: str) -> list[str]:
    """The addresses that the Markdown links, autolinks and HTML anchors of a text name, in order.

    >>> find_hyperlinks('See [whales](/whales), <http://a.b> and <a href="owls.html">owls</a>; `[no](link)`.')
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
