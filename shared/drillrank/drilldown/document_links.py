"""Links between documents: the files that a passage links to, and the titles and names that it mentions.

    P(p' | p, q) = Σ_m P(m | p, q) P(p' | m),    P(m | p, q) ∝ exp(a c(m, q))

m is a hyperlink, the title of a document, a heading, a file name or a rare name in p. c(m, q) is the share of the
question's words, weighted by rarity, that the best sentence around the mention contains. A hyperlink or title leads to
the likeliest passage of its document. A name leads to each other passage that contains it alike.

Only passages of other documents are targets, and only of the documents that were given.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

import numpy as np

from drillrank.corpus.names import NameRow
from drillrank.drilldown.confidence import read_stop_words
from drillrank.likelihood.unigram import UNLISTED, background
from drillrank.passages import Passage
from drillrank.structure.hyperlinks import make_slug
from drillrank.text import terms
from drillrank.vectors import Integers

LinkKind = Literal["link", "title", "name"]
ValueT = TypeVar("ValueT")

CONTEXT = 4.0  # a, as in path search
MIN_TITLE_INFORMATION = 12.0  # nats; a title or heading with less is an ordinary word, such as "Overview"
MIN_NAME_INFORMATION = 10.0  # nats; of a name
MAX_NAME_PASSAGES = 8  # a name in more passages leads nowhere in particular
_MAX_NAMES = 60  # of one passage
_MAX_TITLE_TERMS = 12
_MAX_TITLE_DOCUMENTS = 3  # a heading of more documents, such as "Getting started", leads nowhere in particular
_SENTENCE_END = re.compile(r"[.!?:;](?=\s)|\n+")
_FILE_NAME = re.compile(r"[\w./~-]{0,200}[\w-]\.[A-Za-z][A-Za-z0-9]{0,4}\b")
_WORD = re.compile(r"\w[\w'’-]*")
_INDEX_STEMS = frozenset({"index", "readme", "_index", "home", "default"})
_DRIVE = re.compile(r"^[A-Za-z]:(?=[\\/])")


class LinkedPassages(Protocol):
    """Passages of documents that may link to each other. A position counts the passages of all documents."""

    @property
    def document_names(self) -> Sequence[str]:
        """Names of the documents; "" for a name that is not known."""
        ...

    @property
    def document_of(self) -> Integers:
        """Index of each passage's document, ascending, shape (passages,)."""
        ...

    def read(self, positions: Sequence[int], /) -> Sequence[Passage]:
        """Return passages with readable text. Their metadata may have `links` and `section_paths`."""
        ...

    def find_headings(self, words: Sequence[str], /) -> Iterable[tuple[int, int, Mapping[int, float]]]:
        """Return start, end and positions with weights of each heading among some terms; see `list_heading_names`."""
        ...

    def find_terms(self, words: Sequence[str], /) -> Sequence[Integers]:
        """Return the ascending positions of the passages that contain each term."""
        ...


class OutlinePassages:
    """Passages of documents in memory.

    Args:
        passages: All passages, with readable text.
        names: Name of each document; "" if it is not known.
        document_of: Index of each passage's document, ascending, shape (passages,).
        find_texts: Function from terms to the positions of the passages that contain each.
        language: Language of the stemmer.
    """

    def __init__(
        self,
        passages: Sequence[Passage],
        names: Sequence[str],
        document_of: Integers,
        find_texts: Callable[[Sequence[str]], Sequence[Integers]],
        language: str,
    ) -> None:
        self.document_names, self.document_of = names, document_of
        self._passages, self._find_texts, self._language = passages, find_texts, language

    @cached_property
    def _headings(self) -> dict[str, dict[int, float]]:
        """Positions and weights of the passages under each heading."""
        headings: dict[str, dict[int, float]] = {}
        for position, passage in enumerate(self._passages):
            for name, weight in list_heading_names(passage, self._language):
                headings.setdefault(name, {})[position] = weight
        return headings

    def read(self, positions: Sequence[int], /) -> Sequence[Passage]:
        """Return passages."""
        return [self._passages[position] for position in positions]

    def find_headings(self, words: Sequence[str], /) -> Iterator[tuple[int, int, Mapping[int, float]]]:
        """Yield the headings among some terms; of those with one start, the longest."""
        return find_phrases(words, self._headings)

    def find_terms(self, words: Sequence[str], /) -> Sequence[Integers]:
        """Return the positions of the passages that contain each term."""
        return self._find_texts(words)


@dataclass(frozen=True, slots=True)
class LinkStep:
    """Step from one passage to a passage of another document.

    Attributes:
        position: Position of the target.
        chance: Probability that a reader takes the step, at most 1.
        kind: Kind of the likeliest link.
        text: Text of that link: of a hyperlink, a title or a name.
    """

    position: int
    chance: float
    kind: LinkKind
    text: str


@dataclass(frozen=True, slots=True)
class _Mention:
    """Link or name in a passage.

    Attributes:
        kind: Kind of the link.
        text: Text of the mention.
        targets: Positions to which it leads.
        is_shared: True if the targets share its probability.
    """

    kind: LinkKind
    text: str
    targets: Integers
    is_shared: bool = False


class DocumentLinks:
    """Finds the links of passages to other documents.

    Args:
        passages: The passages of all documents.
        language: Language of the stemmer.
    """

    def __init__(self, passages: LinkedPassages, language: str) -> None:
        self._passages, self._language = passages, language

    @cached_property
    def _files(self) -> FileNames:
        return FileNames(self._passages.document_names, self._language)

    def find_steps(self, question: str, position: int) -> list[LinkStep]:
        """Return the steps from a passage to other documents, in the order of their positions.

        Args:
            question: The question. Links to the question's own words are skipped.
            position: Position of the passage.
        """
        [passage] = self._passages.read([position])
        document = int(self._passages.document_of[position])
        mentions = [
            *self._find_hyperlinks(passage, document),
            *self._find_titles(passage),
            *self._find_names(question, passage),
        ]
        steps: dict[int, dict[tuple[LinkKind, str], float]] = {}
        for mention, probability in zip(mentions, self._weigh(question, passage, mentions), strict=True):
            targets = mention.targets[self._passages.document_of[mention.targets] != document]
            chance = probability / len(targets) if mention.is_shared and len(targets) else probability
            for target in targets.tolist():
                by_link = steps.setdefault(target, {})
                key = mention.kind, mention.text
                by_link[key] = max(by_link.get(key, 0.0), chance)
        return [
            LinkStep(target, min(sum(by_link.values()), 1.0), *max(by_link, key=by_link.__getitem__))
            for target, by_link in sorted(steps.items())
        ]

    # --- Kinds of links

    def _find_hyperlinks(self, passage: Passage, document: int) -> Iterator[_Mention]:
        links: Sequence[tuple[str, str]] = passage.metadata.get("links", ())
        written = [(match[0], match[0]) for match in _FILE_NAME.finditer(passage.text)]
        seen: set[tuple[int, str]] = set()
        sections: dict[int, dict[str, list[int]]] = {}  # so that a document with many links to it is read once
        for target, text in (*links, *written):
            for linked, fragment in self._files.resolve(target, document):
                if linked != document and (linked, fragment) not in seen:
                    seen.add((linked, fragment))
                    targets = self._positions_in(linked)
                    if fragment:
                        if linked not in sections:
                            sections[linked] = self._positions_by_slug(targets.tolist())
                        targets = np.array(sections[linked].get(fragment, targets), dtype=np.intp)
                    yield _Mention("link", text or target, targets)
        for target, text in links:
            if target.startswith("[["):
                for _, _, positions in self._passages.find_headings(
                    terms(target[2:].partition("#")[0], self._language)
                ):
                    yield _Mention("link", text, np.array(sorted(positions), dtype=np.intp))

    def _positions_in(self, document: int) -> Integers:
        """Return the positions of a document."""
        first, end = np.searchsorted(self._passages.document_of, [document, document + 1])
        return np.arange(first, end)

    def _positions_by_slug(self, positions: Sequence[int]) -> dict[str, list[int]]:
        """Return the positions under each heading of some passages, by the fragment that names the heading."""
        positions_by_slug: dict[str, list[int]] = {}
        for position, passage in zip(positions, self._passages.read(positions), strict=True):
            for slug in {make_slug(heading) for path in section_paths(passage) for heading in path}:
                positions_by_slug.setdefault(slug, []).append(position)
        return positions_by_slug

    def _find_titles(self, passage: Passage) -> Iterator[_Mention]:
        words = terms(passage.text, self._language)
        document_of = self._passages.document_of
        covered_until = 0
        for start, end, positions in self._passages.find_headings(words):
            targets = np.array(sorted(positions), dtype=np.intp)
            if start >= covered_until and len({*document_of[targets].tolist()}) <= _MAX_TITLE_DOCUMENTS:
                covered_until = end
                is_title = [positions[target] == 1.0 for target in targets.tolist()]
                all_positions = [self._positions_in(linked) for linked in {*document_of[targets[is_title]].tolist()}]
                title = self._read_heading(words[start:end], int(targets[0]))
                yield _Mention("title", title, np.unique(np.concatenate([targets, *all_positions])))
        for _, _, documents in self._files.find_mentions(words):
            all_positions = [self._positions_in(linked) for linked in documents]
            yield _Mention("title", self._files.title(documents[0]), np.concatenate(all_positions))

    def _read_heading(self, words: Sequence[str], position: int) -> str:
        """Return the heading of a passage that has these terms."""
        [passage] = self._passages.read([position])
        headings = (heading for path in section_paths(passage) for heading in path)
        return next((one for one in headings if terms(one, self._language) == words), " ".join(words))

    def _find_names(self, question: str, passage: Passage) -> Iterator[_Mention]:
        in_question = frozenset(terms(question, self._language))
        names = list_names(passage, self._language)
        names = {name: text for name, text in names.items() if not in_question.issuperset(name)}
        words = list(dict.fromkeys(word for name in names for word in name))
        positions_by_word = dict(zip(words, self._passages.find_terms(words), strict=True)) if words else {}
        for name, text in names.items():
            targets = positions_by_word[name[0]]
            for word in name[1:]:
                targets = np.intersect1d(targets, positions_by_word[word], assume_unique=True)
            if 1 < len(targets) <= MAX_NAME_PASSAGES:
                yield _Mention("name", text, targets, is_shared=True)

    # --- Weights

    def _weigh(self, question: str, passage: Passage, mentions: Sequence[_Mention]) -> list[float]:
        """Return the probability of each mention, from the words of the question around it."""
        weights = {
            word: information(word, self._language)
            for word in {*terms(question, self._language)} - read_stop_words(self._language)
        }
        total = sum(weights.values()) or 1.0
        sentences = [frozenset(terms(part, self._language)) for part in _SENTENCE_END.split(passage.text)]
        shares = [sum(weights.get(word, 0.0) for word in sentence) / total for sentence in sentences]
        score_by_text: dict[str, float] = {}
        for text in {mention.text for mention in mentions}:
            words = frozenset(terms(text, self._language))
            around = [share for sentence, share in zip(sentences, shares, strict=True) if words <= sentence]
            score_by_text[text] = math.exp(CONTEXT * max(around, default=0.0))
        scores = [score_by_text[mention.text] for mention in mentions]
        total_score = sum(scores)
        return [score / total_score for score in scores]


# --- Files


class FileNames:
    """Names of documents, to which links lead.

    A link is relative to the folder of its document. A path from the root (`/guide/start`), a link without an ending
    and the folder of an index page lead to a document if there is only one.

    Args:
        names: Name of each document: a path, an address or a title.
        language: Language of the stemmer.

    >>> files = FileNames(["wiki/a.md", "wiki/parts/b c.md", "wiki/parts/README.md"], "english")
    >>> [files.resolve(link, 0) for link in ("parts/b%20c.md#Use", "../wiki/Parts/", "c.md", "/parts/b c")]
    [[(1, 'use')], [(2, '')], [], [(1, '')]]
    """

    def __init__(self, names: Sequence[str], language: str) -> None:
        self._paths = [_normalize(name) for name in names]
        self._documents_by_key: dict[str, list[int]] = {}
        self._documents_by_stem: dict[str, list[int]] = {}
        self._documents_by_title: dict[str, list[int]] = {}
        for document, path in enumerate(self._paths):
            if not path:
                continue
            for key in _file_keys(path):
                self._documents_by_key.setdefault(key, []).append(document)
            stem = posixpath.basename(_without_suffix(path))
            self._documents_by_stem.setdefault(stem, []).append(document)
            words = terms(self.title(document), language)
            if stem not in _INDEX_STEMS and is_telling(words, MIN_TITLE_INFORMATION, language):
                self._documents_by_title.setdefault(" ".join(words), []).append(document)

    def resolve(self, target: str, document: int) -> list[tuple[int, str]]:
        """Return the documents to which a link leads, each with the slug of the fragment; empty if it leads nowhere.

        Args:
            target: Target as `structure.hyperlinks` returns it.
            document: Index of the document that contains the link.
        """
        if target.startswith("[["):
            page, _, fragment = target[2:].partition("#")
            documents = self._look_up(_normalize(page.replace("_", " ")), document) or self._look_up(
                _normalize(page.replace(" ", "-")), document
            )
            return [(linked, make_slug(fragment)) for linked in documents]
        try:
            parts = urlsplit(_DRIVE.sub("", target.strip()).replace("\\", "/"))
        except ValueError:  # such as an unclosed bracket in the host
            return []
        if parts.scheme.lower() not in ("", "http", "https", "file") or not (parts.path or parts.netloc):
            return []
        fragment = make_slug(unquote(parts.fragment))
        path = unquote(parts.path)
        if parts.netloc and parts.scheme.lower() != "file":
            documents = self._documents_by_key.get(_normalize(target.partition("#")[0]), [])
        elif path.startswith("/"):
            documents = self._look_up(_normalize(path), document)
        else:
            folder = posixpath.dirname(self._paths[document])
            documents = self._exactly(_normalize(posixpath.join(folder, path))) or self._look_up(
                _normalize(posixpath.basename(path.rstrip("/"))), document, unique=True
            )
        return [(linked, fragment) for linked in documents]

    def title(self, document: int) -> str:
        """Return the name of a document without folder and ending, as a text mentions it."""
        return posixpath.basename(_without_suffix(self._paths[document])).replace("_", " ").replace("-", " ")

    def find_mentions(self, words: Sequence[str]) -> Iterator[tuple[int, int, list[int]]]:
        """Yield start, end and documents of each file name that a text mentions without its ending, given its terms."""
        for start, end, documents in find_phrases(words, self._documents_by_title):
            if len(documents) <= _MAX_TITLE_DOCUMENTS:
                yield start, end, documents

    def _exactly(self, path: str) -> list[int]:
        return next((documents for key in _file_keys(path) if (documents := self._documents_by_key.get(key))), [])[:1]

    def _look_up(self, path: str, document: int, *, unique: bool = False) -> list[int]:
        """Return the documents whose path ends with one, the nearest first."""
        stem = posixpath.basename(_without_suffix(path))
        if stem in _INDEX_STEMS and "/" not in path.strip("/"):
            return []
        ending = f"/{_without_suffix(path).strip('/')}"
        candidates = [
            linked
            for linked in self._documents_by_stem.get(stem, ())
            if f"/{_without_suffix(self._paths[linked])}".endswith(ending)
            and _has_same_suffix(path, self._paths[linked])
        ]
        if unique and len(candidates) > 1:
            return []
        base = self._paths[document]
        return sorted(candidates, key=lambda linked: -len(posixpath.commonprefix([base, self._paths[linked]])))[:1]


def _normalize(name: str) -> str:
    """Return what spellings of a path or an address have in common: case and separators do not count."""
    path = _DRIVE.sub("", unquote(name.strip())).replace("\\", "/").casefold()
    scheme, mark, rest = path.partition("://")
    if mark:
        path = rest.partition("?")[0] if scheme in ("http", "https", "file") else path
    path = posixpath.normpath(path) if path else ""
    return "" if path == "." else path


def _file_keys(path: str) -> list[str]:
    """Return the keys of a path: itself, without its ending, and the folder if it is an index page."""
    bare = _without_suffix(path)
    folder, _, stem = bare.rpartition("/")
    return list(dict.fromkeys([path, bare, *([folder] if stem in _INDEX_STEMS and folder else [])]))


def _without_suffix(path: str) -> str:
    base, suffix = posixpath.splitext(path)
    return base if suffix[1:2].isalpha() and len(suffix) <= 6 else path


def _has_same_suffix(link: str, path: str) -> bool:
    """Return True if a link has no ending, or that of the path. Pages of a site are written in other formats."""
    ending = link[len(_without_suffix(link)) :]
    return ending in ("", ".html", ".htm") or path.endswith(ending)


# --- Titles and names


def find_phrases(words: Sequence[str], values: Mapping[str, ValueT]) -> Iterator[tuple[int, int, ValueT]]:
    """Yield start, end and value of the longest phrase of at most 12 terms at each start.

    >>> list(find_phrases(["the", "rain", "gauge"], {"rain": 1, "rain gauge": 2}))
    [(1, 3, 2)]
    """
    for start in range(len(words)) if values else ():
        for end in range(min(start + _MAX_TITLE_TERMS, len(words)), start, -1):
            if (value := values.get(" ".join(words[start:end]))) is not None:
                yield start, end, value
                break


def list_heading_names(passage: Passage, language: str) -> Iterator[NameRow]:
    """Yield the headings of a passage as terms, with 1 for one above all others, else 0.5. Ordinary words are left out.

    >>> passage = Passage("", metadata={"section_paths": [("Rain gauge", "Use it"), ("Rain gauge", "Reed switch")]})
    >>> list(list_heading_names(passage, "english"))
    [('rain gaug', 1.0), ('reed switch', 0.5)]
    """
    headings: dict[str, float] = {}
    for path in section_paths(passage):
        for depth, heading in enumerate(path):
            headings.setdefault(heading, 1.0 if depth == 0 else 0.5)
    for heading, weight in headings.items():
        words = terms(heading, language)
        if len(words) <= _MAX_TITLE_TERMS and is_telling(words, MIN_TITLE_INFORMATION, language):
            yield " ".join(words), weight


def list_names(passage: Passage, language: str) -> dict[tuple[str, ...], str]:
    """Return the names in a text: their terms, with their text. A name is rare in the language.

    Words without a capital are names if the language hardly has them, such as those of machines.

    >>> list(list_names(Passage("It sends to cader, and Bettina Okafor of Cold Harbour knows the way."), "english"))
    [('cader',), ('bettina',), ('okafor',), ('harbour',)]
    """
    names: dict[tuple[str, ...], str] = {}
    run: list[str] = []
    end = 0
    text = passage.text
    for match in [*_WORD.finditer(text), None]:
        word = "" if match is None else match[0]
        gap = "" if match is None else text[end : match.start()]
        is_capital = word[:1].isupper() or word[:1].isdigit()
        if run and (not is_capital or gap.strip(" ") or not gap):
            words = tuple(term for part in run for term in terms(part, language))
            if (
                len(run) > 1
                and 1 < len(words) <= _MAX_TITLE_TERMS
                and is_telling(words, MIN_NAME_INFORMATION, language)
            ):
                names.setdefault(words, " ".join(run))
            run = []
        if match is None:
            break
        if is_capital:
            run.append(word)
        for term in terms(word, language):
            needed = MIN_NAME_INFORMATION if is_capital else -math.log(2 * UNLISTED)
            if len(term) > 2 and not term.isdigit() and information(term, language) >= needed:
                names.setdefault((term,), word)
        end = match.end()
    # A run of rare words adds nothing to its words.
    singles = {name[0] for name in names if len(name) == 1}
    chosen = {name: text for name, text in names.items() if len(name) == 1 or singles.isdisjoint(name)}
    return dict(list(chosen.items())[:_MAX_NAMES])


def section_paths(passage: Passage) -> Collection[Sequence[str]]:
    """Return the heading paths of all sections in a passage."""
    metadata = passage.metadata
    own_path = metadata.get("section_path") or ((passage.title,) if passage.title else ())
    paths: Collection[Sequence[str]] = metadata.get("section_paths") or [own_path]
    return paths


def is_telling(words: Sequence[str], least: float, language: str) -> bool:
    """Return True if some terms have at least `least` nats of information in the language."""
    return sum(information(word, language) for word in words) >= least


@lru_cache(maxsize=50_000)
def information(word: str, language: str) -> float:
    """Return -log p(w|language) of a term, in nats."""
    return -math.log(max(background(language).get(word, 0.0), UNLISTED))
