"""Links to the passages that the hyperlinks of a text point to.

The names of a passage are its address and file name, both also with its heading, and its title. Prefixes keep the
kinds of names apart: `at`, `file` and `title`.
"""

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
from drillrank.structure.hyperlinks import make_slug
from drillrank.structure.markdown import markdown_links

# Keys of the readers of LlamaIndex and the loaders of LangChain, most specific first.
ADDRESS_KEYS = ("url", "source_url", "source", "file_path", "path", "file_name", "filename")
_HEADING_KEYS = ("anchor", "drillrank_section_path", "section_path")
_ANCHOR = re.compile(r"<a\s[^<>]*href", re.IGNORECASE)
_BACKSLASH = re.compile(r"\\|%5C", re.IGNORECASE)
_DRIVE = re.compile(r"[a-zA-Z]:[\\/]")
_INDEX_PAGE = re.compile(r"(?<=/)index\.x?html?$")


@dataclass(frozen=True)
class Hyperlinks(NamedLinks):
    """Links a passage to the passages that its Markdown links, autolinks and HTML anchors point to.

    A link is resolved against the address of its passage: the first of `keys` in the metadata. It leads to the passages
    with the resulting address, whatever the scheme. With a fragment (`#early-life`), it leads to those under that
    heading, if there are any. The heading is the metadata `anchor`, the last heading in `drillrank_section_path`, or
    the title. If no passage has the address, the last part of the link counts: the file name of exactly one document,
    or else a title (`/wiki/Alan_Turing`). A page in many passages is linked as a whole, and path search follows the
    best of them.

    Args:
        keys: Metadata keys of a passage's address: a URL, a path or a file name.

    >>> turing = Passage("Born in [Maida Vale](vale.md#history).", id="1", metadata={"file_path": "lives/turing.md"})
    >>> vale = Passage("Laid out long ago.", id="2", title="History", metadata={"file_path": "lives/vale.md"})
    >>> list(Hyperlinks().bind([turing, vale])(turing))
    ['2']
    """

    keys: Sequence[str] = ADDRESS_KEYS
    kind: ClassVar[str] = "hyperlink"

    def list_names(self, passage: Passage, /) -> Iterator[NameRow]:
        """Return the addresses, file names and title of a passage. The weight of a file name identifies its address."""
        address = _normalize_address(self._read_address(passage))
        heading = make_slug(_read_heading(passage))
        yield f"at {address}#{heading}", 0.0
        if address:  # passages without an address are not one page
            yield f"at {address}", 0.0
            file_name, address_hash = posixpath.basename(address), float(crc32(address.encode(errors="replace")))
            yield f"file {file_name}", address_hash
            yield f"file {file_name}#{heading}", address_hash
        if passage.title.strip():
            yield f"title {_normalize_title(passage.title)}", 0.0

    def find_targets(self, names: Names, _query: str, path: Path, /) -> list[str]:
        """Return the ids of the passages that the hyperlinks of the last passage lead to, in the order of the links."""
        passage = path.passages[-1]
        base = self._read_address(passage)
        links = list_link_targets(passage.text)
        return list(dict.fromkeys(id_ for link in links for id_ in _resolve_link(names, link, base)))

    def _read_address(self, passage: Passage) -> str:
        return _use_slashes(next((value for key in self.keys if (value := _read_text(passage.metadata, key))), ""))


def list_link_targets(text: str) -> list[str]:
    """Return the targets of the Markdown links, autolinks and HTML anchors of a text, in order.

    >>> list_link_targets('See [whales](/whales), <http://a.b> and <a href="owls.html">owls</a>; `[no](link)`.')
    ['/whales', 'http://a.b', 'owls.html']
    """
    links = [(start, target) for start, target, _ in markdown_links(text)] if "]" in text or "<" in text else []
    if _ANCHOR.search(text):
        links += [(start, target) for start, target, _ in html_links(text)]
    return list(dict.fromkeys(target for _, target in sorted(links, key=lambda link: link[0])))


def _resolve_link(names: Names, link: str, base: str) -> Iterable[str]:
    """Return the ids of the passages that a link on the page `base` leads to."""
    try:
        parts = urlsplit(urljoin(base, _use_slashes(link)))
    except ValueError:  # such as an unclosed bracket in the domain
        return ()
    if parts.scheme not in ("", "http", "https", "file"):
        return ()
    address = _normalize_address(parts._replace(fragment="").geturl())
    last_part = posixpath.basename(unquote(parts.path).rstrip("/"))
    fragment = f"#{make_slug(unquote(parts.fragment))}"
    titles = [f"title {_normalize_title(title)}" for title in (last_part, posixpath.splitext(last_part)[0])]
    pages = [f"at {address}", *([f"file {last_part}"] if last_part and not parts.netloc else [])]
    weights_by_name = names.look_up([*pages, *(page + fragment for page in pages), *titles])
    for page in pages:
        # A file name counts only if it belongs to one address.
        is_address = page == pages[0]
        if page == "at " or (page in weights_by_name and (is_address or len({*weights_by_name[page].values()}) == 1)):
            if parts.fragment and (under_heading := weights_by_name.get(page + fragment)):
                return under_heading
            is_own_page = address == _normalize_address(base)
            return () if is_own_page else weights_by_name.get(page, ())
    return next((weights_by_name[title] for title in titles if title in weights_by_name), ())


def _normalize_address(url: str) -> str:
    """Return domain, path and query of an address, without scheme, escapes and index page."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    path = _INDEX_PAGE.sub("", unquote(parts.path)).rstrip("/")
    return f"{parts.netloc.lower()}{path and posixpath.normpath(path)}{parts.query and '?' + parts.query}"


def _use_slashes(address: str) -> str:
    """Return an address without a drive letter and with slashes in place of backslashes."""
    address = address.strip()
    return _BACKSLASH.sub("/", address[2:] if _DRIVE.match(address) else address)


def _read_heading(passage: Passage) -> str:
    path = next((value for key in _HEADING_KEYS if (value := _read_text(passage.metadata, key))), passage.title)
    return path.rpartition(" > ")[2]


def _normalize_title(title: str) -> str:
    return " ".join(title.replace("_", " ").split()).casefold()


def _read_text(metadata: Mapping[str, object], key: str) -> str:
    """Return a metadata value, or an empty string if it is not a string."""
    value = metadata.get(key)
    return value if isinstance(value, str) else ""
