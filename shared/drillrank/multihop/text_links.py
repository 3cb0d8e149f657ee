"""Links that a text makes: the hyperlinks its author set, references inside its document, and what it mentions.

A text mentions the titles of others, and names that others mention, too:

    P(d' | d, q) = Σ_m P(m | d, q) P(d' | m),    P(m | d, q) ∝ exp(a c(m, q))

m is a title or a name that d mentions, and c(m, q) the share of the question's words, by their rarity, that the best
sentence of d around the mention holds: "directed by Ada Holm" is followed for a question about a director. Words of the
titles and of the mention do not count; "son" stands for "father", as `relations.tsv` has it. A name leads to each of
the passages that mention it, but `titled` times as likely to those that have it in their title; a rare name leads
somewhere, a common one nowhere in particular. Names that the question holds are no news, and are not followed.

Which names a passage has depends on nothing but that passage, so that a pool can grow.
"""

from __future__ import annotations

import math
import posixpath
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from operator import itemgetter
from typing import ClassVar, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit
from zlib import crc32

from drillrank.corpus.names import NameRow
from drillrank.data import read_table
from drillrank.likelihood.unigram import UNLISTED, background
from drillrank.multihop.links import NamedLinks, Names, links_from_metadata
from drillrank.passages import PARENTHETICAL, Passage, Path, name_match_tokens, short_title
from drillrank.structure.html import html_links
from drillrank.structure.markdown import markdown_links
from drillrank.structure.references import Label, caption_label, heading_labels, references
from drillrank.text import name_tokens, terms, unaccented

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
    >>> list(Hyperlinks().over([turing, vale])(turing))
    ['2']
    """

    keys: Sequence[str] = ADDRESS_KEYS
    kind: ClassVar[str] = "hyperlink"

    def rows(self, passage: Passage, /) -> Iterator[NameRow]:
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

    def targets(self, names: Names, _query: str, path: Path, /) -> list[str]:
        """Ids of the passages that the last one's text links to, in the order of the links."""
        passage = path.passages[-1]
        base = self._address_of(passage)
        return list(dict.fromkeys(id_ for link in hyperlinks(passage.text) for id_ in _linked(names, link, base)))

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
    known = names.of([*pages, *(page + under for page in pages), *titles])
    for page in pages:
        if page == "at " or (page in known and (page == pages[0] or len({*known[page].values()}) == 1)):
            of_heading = known.get(page + under, ()) if parts.fragment else ()
            return of_heading or (() if address == _address(base) else known.get(page, ()))  # not the own page
    return next((known[title] for title in titles if title in known), ())


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


_DOCUMENT_KEYS = ("drillrank_source_id", "document", "file_path", "file_name", "source")


@dataclass(frozen=True)
class ReferenceLinks(NamedLinks):
    """Links a passage to the passages of its document that its text refers to, in the order of the references.

    A passage is called by its own heading, the last of `section_path`, `drillrank_section_path` or the title: "8.2
    Term" is Section 8.2, "Note 12. Leases" is Note 12, and both go by their title in quotation marks, too. It is also
    called by a caption, such as "Table 3: ...", that begins one of its lines. Passages that share a label are all
    linked.

    Passages are of one document if they share the first of these metadata that they have: `drillrank_source_id`,
    `document`, `file_path`, `file_name`, `source`. Those without any are all of one.

    >>> term = Passage("Notice is given as Section 8 says.", id="3", title="Lease > 3 Term")
    >>> notice = Passage("In writing.", id="8", title="Lease > 8 Notices")
    >>> list(ReferenceLinks().over([term, notice])(term))
    ['8']
    """

    kind: ClassVar[str] = "reference"

    def rows(self, passage: Passage, /) -> Iterator[NameRow]:
        """What a passage is called in its document."""
        document = _document(passage)
        for label in _labels(passage):
            yield repr((document, label)), 0.0

    def targets(self, names: Names, _query: str, path: Path, /) -> list[str]:
        """Ids of those that the path's last passage refers to, in the order of the references."""
        passage = path.passages[-1]
        document = _document(passage)
        found = names.of([repr((document, label)) for label in references(passage.text)])
        return [id_ for id_ in dict.fromkeys(id_ for ids in found.values() for id_ in ids) if id_ != passage.id]


def _document(passage: Passage) -> str | None:
    return next((str(passage.metadata[key]) for key in _DOCUMENT_KEYS if passage.metadata.get(key) is not None), None)


def _labels(passage: Passage) -> list[Label]:
    path = passage.metadata.get("section_path") or passage.metadata.get("drillrank_section_path") or passage.title
    heading = str(path).rpartition(" > ")[2] if isinstance(path, str) else str(path[-1])
    captions = [label for line in passage.text.splitlines() if (label := caption_label(line))]
    return list(dict.fromkeys([*(heading_labels(heading) if heading else ()), *captions]))


CONTEXT, TITLED = 4.0, 10.0  # chosen on training questions (docs/links.md)
_MOST_PASSAGES = 100  # a name that more of them mention hardly tells where to go, and bounds the work of a hop
_MOST_TARGETS = 100  # the likeliest passages that one path leads to
_COMMON = 1e-5  # probability of a word that is no name where it only begins a sentence
_STOPS = {".", "!", "?"}
_MIN_ALIAS_LENGTH = 2
ALIASES_KEY = "aliases"  # of the metadata
_OPENING = 300  # characters of a text that introduce its subject
_ACRONYM = re.compile(r"[^\W\d_][\w&.-]{1,9}")
_IN_PARENTHESES = re.compile(rf"\(\s*({_ACRONYM.pattern})\s*[),;]")
_WORD = re.compile(r"[^\W_]+")
_MOST_WORDS = 12  # of a name that an acronym stands for
_KNOWN_AS = re.compile(
    r"\b(?:(?:also|better|commonly|formerly|often|originally) (?:known as|called|named)|abbreviated(?: as| to)?)\s+"
    r"(?:[Tt]he\s+)?[\"“'‘]?(?P<name>[A-Z][\w'’-]*(?:\s+(?:(?:of|the|and|de|von)\s+)?[A-Z][\w'’-]*){1,5})"
    r"(?=\s*(?:[\"”’'`,.;:()]|(?:is|are|was|were|or|and)\b))"
)  # of two words or more: one alone is mostly the name of something else, too
_ARTICLE = re.compile(r"(?:The|An?)\s+\S")
_PHRASE = re.compile(r"[A-Z][a-z]+(?:[ -][a-z]+)+")  # written as in a sentence: a kind of thing, not one of its own


def aliases(passage: Passage) -> list[str]:
    """Other names of what a passage is about, each once.

    - what its metadata list as `aliases`: a list, or one string with commas;
    - the acronym that the title's parenthetical holds, or parentheses in the text's opening, where its letters begin
      the title's words; the name before those parentheses, where the title is the acronym;
    - what the opening says that it is "also known as", two words or more (English);
    - the title with its article written small, as inside a sentence.

    >>> aliases(Passage("It was founded in 1948.", title="World Health Organization (WHO)"))
    ['WHO']
    >>> aliases(Passage("The World Health Organization (WHO) was founded in 1948.", title="WHO"))
    ['World Health Organization']
    >>> pier = "The Silent Pier, also known as Thick Fog, is a film."
    >>> aliases(Passage(pier, title="The Silent Pier (film)", metadata={"aliases": "Pier 9"}))
    ['Pier 9', 'Thick Fog', 'the Silent Pier']
    """
    title, opening = short_title(passage), passage.text[:_OPENING]
    names = [
        *links_from_metadata(passage.metadata.get(ALIASES_KEY)),
        *_acronyms(passage.title, title, opening),
        *(found["name"].rstrip("'’-") for found in _KNOWN_AS.finditer(opening)),
        *([_small(title)] if _ARTICLE.match(title) else ()),
    ]
    return [name for name in dict.fromkeys(names) if name != title]


def inflections(passage: Passage) -> list[str]:
    """A title of several words, of which only the first has a capital, in small letters, and its plurals (English).

    >>> inflections(Passage("It flies low.", title="Cruise missile")), inflections(Passage("", title="Silent Pier"))
    (['cruise missile', 'cruise missiles', 'Cruise missiles'], [])
    """
    title = short_title(passage)
    return [_small(title), _plural(_small(title)), _plural(title)] if _PHRASE.fullmatch(title) else []


def _acronyms(full_title: str, title: str, opening: str) -> Iterator[str]:
    if (found := PARENTHETICAL.search(full_title)) and _stands_for(found["inside"], title):
        yield found["inside"]
    for found in _IN_PARENTHESES.finditer(opening):
        if found[1] == title:
            yield from _spelled_out(title, opening[: found.start()])
        elif _stands_for(found[1], title):
            yield found[1]


def _stands_for(acronym: str, name: str) -> bool:
    """Whether an acronym's letters begin the words of a name: all of them, or those with a capital."""
    letters = "".join(filter(str.isalnum, acronym))
    if not _ACRONYM.fullmatch(acronym) or sum(map(str.isupper, letters)) < 2:
        return False
    initials = "".join(word[0] for word in _WORD.findall(name))
    capitals = "".join(letter for letter in initials if not letter.islower())
    return letters.upper() in (initials.upper(), capitals.upper())


def _spelled_out(acronym: str, before: str) -> Iterator[str]:
    """The shortest end of a text that the acronym stands for."""
    for word in list(_WORD.finditer(before))[: -_MOST_WORDS - 1 : -1]:
        name = before[word.start() :].strip()
        if _stands_for(acronym, name):
            yield name
            return


def _small(name: str) -> str:
    return name[0].lower() + name[1:]


def _plural(name: str) -> str:
    if re.search(r"[^aeiou]y$", name):
        return f"{name[:-1]}ies"
    return f"{name}es" if re.search(r"(?:s|x|z|ch|sh)$", name) else f"{name}s"


class Mentioned(NamedTuple):
    """A name that a passage mentions.

    Attributes:
        name: Its words, as terms.
        sentences: The terms of each sentence that mentions it.
        targets: Where it leads, by place or id, with the chance of each; they add up to 1.
    """

    name: frozenset[str]
    sentences: Sequence[frozenset[str]]
    targets: Mapping[str, float]


def chances(query: str, passage: Passage, mentioned: Sequence[Mentioned], context: float) -> dict[str, float]:
    """P(d' | d, q) of each passage that the mentions lead to, likeliest first; `context` is a.

    >>> son = Mentioned(frozenset(), [frozenset(terms("His son was Carl."))], {"carl": 1.0})
    >>> port = Mentioned(frozenset(), [frozenset(terms("He came from Esbjerg."))], {"esbjerg": 1.0})
    >>> list(chances("Who was the father of Carl Holm?", Passage(""), [port, son], 4.0))
    ['carl', 'esbjerg']
    """
    in_title = frozenset(terms(passage.title))
    wanted = {word: weight for word, weight in word_weights(query).items() if weight and word not in in_title}
    known: dict[frozenset[str], float] = {}  # c of sentences, where the mention has none of these words
    scores = []
    for item in mentioned:
        if item.name.isdisjoint(wanted):
            for sentence in item.sentences:
                if sentence not in known:
                    known[sentence] = _share(wanted, sentence)
            share = max(map(known.__getitem__, item.sentences))
        else:
            others = {word: weight for word, weight in wanted.items() if word not in item.name}
            share = max(_share(others, sentence) for sentence in item.sentences)
        scores.append(math.exp(context * share))
    total, found = sum(scores), dict[str, float]()
    for item, score in zip(mentioned, scores, strict=True):
        of_item = score / total
        for target, chance in item.targets.items():
            found[target] = found.get(target, 0.0) + of_item * chance
    return dict(sorted(found.items(), key=itemgetter(1), reverse=True))


@lru_cache(maxsize=64)
def word_weights(query: str) -> dict[str, float]:
    """How much rarer than one word in a hundred each word of a question is; words that are more frequent weigh 0.

    >>> [round(weight) for weight in word_weights("the river").values()]
    [0, 5]
    """
    general = background()
    return {word: max(0.0, -math.log(100 * max(general.get(word, 0.0), UNLISTED))) for word in terms(query)}


@lru_cache(maxsize=1)
def _relatives() -> dict[str, frozenset[str]]:
    """What texts say where questions name a relation."""
    rows = read_table("relations.tsv")
    return {word: frozenset(terms(others)) for relation, others in rows.items() for word in terms(relation)}


def _share(wanted: Mapping[str, float], sentence: frozenset[str]) -> float:
    """The share that one sentence holds of the words that count."""
    relatives = _relatives()
    weights = (w for word, w in wanted.items() if word in sentence or not sentence.isdisjoint(relatives.get(word, ())))
    return sum(weights) / (sum(wanted.values()) or 1.0)


class _Read:
    """A passage's words and punctuation marks, those of the title first, and the terms of its sentences."""

    def __init__(self, title: str, text: str) -> None:
        head = name_tokens(title)
        self.tokens = tokens = [*head, ".", *name_tokens(text)]
        self.text_start = len(head) + 1
        self._ends = [
            location + 1
            for location, (before, token, after) in enumerate(zip(tokens, tokens[1:], tokens[2:], strict=False), 1)
            if token in _STOPS and len(before) > 2 and not after[0].islower()
        ]  # no initial, no abbreviation of one or two letters
        self._terms: dict[int, frozenset[str]] = {}

    def around(self, places: Iterable[int]) -> list[frozenset[str]]:
        """The terms of the sentences that hold these tokens."""
        found = []
        for number in dict.fromkeys(bisect_right(self._ends, location) for location in places):
            if number not in self._terms:
                start, end = [0, *self._ends, len(self.tokens)][number : number + 2]
                self._terms[number] = frozenset(terms(" ".join(self.tokens[start:end])))
            found.append(self._terms[number])
        return found

    @cached_property
    def names(self) -> dict[str, list[int]]:
        """Distinct names in the order of their first mention, in small letters without accents, with their places."""
        names: dict[str, list[int]] = {}
        run: list[str] = []
        small = {token for token in self.tokens if token[0].islower()}
        begins = titled = False
        for location, token in enumerate([*self.tokens, "."]):
            begins = begins or location == self.text_start
            word = token.lower()
            if len(token) > 1 and token[0].isupper() and not (begins and (word in small or _is_common(word))):
                titled = titled or (location == 0 and _is_common(word))
                run.append(unaccented(word))
            elif run:
                forms = [*_forms(run), *([run[1:]] if titled and len(run) > 1 else [])]
                for name in dict.fromkeys(map(" ".join, forms)):
                    names.setdefault(name, []).append(location - 1)
                run, titled = [], False
            begins = token in _STOPS and (location == 0 or len(self.tokens[location - 1]) > 2)
        return names


def _forms(run: list[str]) -> Iterator[list[str]]:
    """A name and its parts: its first two and its last two words, and of three words the first and the last."""
    yield run
    if len(run) > 2:
        yield from (run[:2], run[-2:])
    if len(run) == 3:
        yield run[::2]


@lru_cache(maxsize=50_000)
def _terms_of(name: str) -> frozenset[str]:
    return frozenset(terms(name))


@lru_cache(maxsize=4096)
def _read(title: str, text: str) -> _Read:
    return _Read(title, text)


@lru_cache(maxsize=50_000)
def _is_common(word: str) -> bool:
    general = background()
    return any(general.get(term, 0.0) > _COMMON for term in terms(word))


@dataclass(frozen=True, slots=True)
class TitleMentions(NamedLinks):
    """Links a passage to those whose title its text mentions, in the order of the mentions.

    A title counts without its trailing parenthetical, with the same letters and case, at word borders, from 4
    characters on; white space around punctuation does not matter. Titles inside each other all count, the longest
    first. Passages that share a title are all linked; a passage's own title links to nothing. Other names of a
    passage (`aliases`, and the title without accents), from 2 characters on, stand for it where they are no title.

    Args:
        aliases: Whether other names count.
        inflected: Whether titles of several words count in small letters and in the plural, too ("cruise missiles" for
            "Cruise missile"), as those of glossaries and of kinds of things are mentioned (English).
        context: a, how much the words around a mention count; 0 follows each alike.

    >>> turing = Passage("He was born in London and worked for the NPL.", id="1", title="Alan Turing")
    >>> london = Passage("A town on the Thames.", id="2", title="London (England)")
    >>> npl = Passage("It measures.", id="3", title="National Physical Laboratory (NPL)")
    >>> list(TitleMentions().over([turing, london, npl])(turing))
    ['2', '3']
    """

    aliases: bool = True
    inflected: bool = False
    context: float = CONTEXT
    kind: ClassVar[str] = "title mention"

    def rows(self, passage: Passage, /) -> Iterator[NameRow]:
        """The names under which a passage is found: its title counts 1, another name less."""
        title = short_title(passage)
        if tokens := name_match_tokens(title):
            yield " ".join(tokens), 1.0
        others = [*aliases(passage), *([] if title.isascii() else [unaccented(title)])] if self.aliases else []
        for name in [*others, *(inflections(passage) if self.inflected else ())]:
            if tokens := name_match_tokens(name, _MIN_ALIAS_LENGTH):
                yield " ".join(tokens), 0.5

    def targets(self, names: Names, query: str, path: Path, /) -> dict[str, float]:
        """The passages whose titles the path's last one mentions, likeliest first."""
        last = path.passages[-1]
        read = _read(last.title, last.text)
        title = name_tokens(short_title(last))
        places = defaultdict[tuple[str, ...], list[tuple[int, int]]](list)
        for first, behind, found in names.mentions(read.tokens[read.text_start :]):
            best = max(found.values())
            ids = tuple(id_ for id_, weight in found.items() if weight == best)
            start, end = first + read.text_start, behind + read.text_start
            if last.id not in ids and read.tokens[start:end] != title:
                places[ids].append((start, end))
        mentioned = [
            Mentioned(
                _terms_of(" ".join(read.tokens[slice(*at[-1])])),
                read.around(start for start, _ in at),
                dict.fromkeys(ids, 1 / len(ids)),
            )
            for ids, at in places.items()
        ]
        return chances(query, last, mentioned, self.context)


@dataclass(frozen=True, slots=True)
class NameMentions(NamedLinks):
    """Links a passage to those that mention a name that it mentions itself, with how likely a reader takes each.

    A name is a run of words that begin with a capital, in the title or the text, whichever letters follow; accents do
    not matter. A word that begins a sentence is none if it is common (English), or written small in the same passage.
    Of a longer name the first two and the last two words are names, too, of three words the first and the last
    ("Wojciech Jerzy Has"), and of a title that begins with a common word the rest. Names that the question holds, and
    those that more than 100 passages mention, are not followed. A path leads to the 100 likeliest passages at most; the
    search chooses those that explain most of what the path has left unexplained.

    Args:
        context: a, how much the words around a mention count; 0 follows each alike.
        titled: How many times as likely a name leads to a passage that has it in its title.

    >>> wesson = Passage("He played for the Houston Astros.", id="1", title="Barry Wesson")
    >>> series = Passage("It was won by the Houston Astros.", id="2", title="2017 World Series")
    >>> links = NameMentions().over([wesson, series])
    >>> links.follow("Whose team won the series?", Path((wesson,)))
    {'2': 1.0}
    """

    context: float = CONTEXT
    titled: float = TITLED
    kind: ClassVar[str] = "name mention"
    least: ClassVar[int] = 2

    def rows(self, passage: Passage, /) -> Iterator[NameRow]:
        """The names that a passage mentions; those in its title count 1."""
        in_title = frozenset(map(unaccented, map(str.lower, name_tokens(passage.title))))
        for name in _Read(passage.title, passage.text).names:
            yield name, 1.0 if in_title.issuperset(name.split()) else 0.0

    def targets(self, names: Names, query: str, path: Path, /) -> dict[str, float]:
        """The passages that a name of the path's last one leads to, likeliest first."""
        last = path.passages[-1]
        read = _read(last.title, last.text)
        question = f" {' '.join(unaccented(token.lower()) for token in name_tokens(query))} "
        not_in_question = {name: places for name, places in read.names.items() if f" {name} " not in question}
        mentioned = []
        for name, ids in names.of(not_in_question).items():
            if 1 < len(ids) <= _MOST_PASSAGES + (last.id in ids):
                titled = sum(1 for id_, weight in ids.items() if weight and id_ != last.id)
                total = titled * self.titled + len(ids) - (last.id in ids) - titled
                in_title, elsewhere = self.titled / total, 1.0 / total
                targets = {id_: in_title if weight else elsewhere for id_, weight in ids.items() if id_ != last.id}
                mentioned.append(Mentioned(_terms_of(name), read.around(not_in_question[name]), targets))
        return dict(islice(chances(query, last, mentioned, self.context).items(), _MOST_TARGETS))
