"""Links from what a text mentions: the titles of others, and names that others mention, too.

    P(d' | d, q) = Σ_m P(m | d, q) P(d' | m),    P(m | d, q) ∝ exp(a c(m, q))

m is a title or a name that d mentions, and c(m, q) the share of the question's words, by their rarity, that the best
sentence of d around the mention holds: "directed by Ada Holm" is followed for a question about a director. Words of the
titles and of the mention do not count; "son" stands for "father", as `relations.tsv` has it. A name leads to each of
the passages that mention it, but `titled` times as likely to those that have it in their title; a rare name leads
somewhere, a common one nowhere in particular. Names that the question holds are no news, and are not followed.
"""

from __future__ import annotations

import itertools
import math
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

from drillrank.data import read_table
from drillrank.likelihood.unigram import UNLISTED, background
from drillrank.multihop.links import Mention, links_from_metadata
from drillrank.passages import MIN_TITLE_LENGTH, PARENTHETICAL, Passage, Path, counted_name, short_title
from drillrank.text import name_tokens, terms

CONTEXT, TITLED = 4.0, 10.0  # chosen on training questions (docs/links.md)
_MOST_PASSAGES = 100  # a name that more of them mention hardly tells where to go, and bounds the work of a hop
_MOST_TARGETS = 100  # the likeliest passages that one path leads to
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
    weights, own = word_weights(query), frozenset(terms(passage.title))
    scores = [math.exp(context * _share(weights, own | item.name, item.sentences)) for item in mentioned]
    found = defaultdict[str, float](float)
    for item, score in zip(mentioned, scores, strict=True):
        for target, chance in item.targets.items():
            found[target] += score / sum(scores) * chance
    return dict(sorted(found.items(), key=lambda target: -target[1]))


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
    return {word: frozenset(terms(others)) for asked, others in rows.items() for word in terms(asked)}


def _share(weights: Mapping[str, float], dropped: frozenset[str], sentences: Iterable[frozenset[str]]) -> float:
    """c(m, q)."""
    wanted = {word: weight for word, weight in weights.items() if weight and word not in dropped}
    relatives = _relatives()
    held = (
        sum(w for word, w in wanted.items() if word in said or not said.isdisjoint(relatives.get(word, ())))
        for said in sentences
    )
    return max(held, default=0.0) / (sum(wanted.values()) or 1.0)


class _Sentences:
    """The sentences of a passage, by the place of a token; their terms are told apart when they are first wanted."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = tokens
        self._ends = [
            place + 1
            for place, (before, token, after) in enumerate(zip(tokens, tokens[1:], tokens[2:], strict=False), 1)
            if token in _STOPS and len(before) > 2 and not after[0].islower()
        ]  # no initial, no abbreviation of one or two letters
        self._terms: dict[int, frozenset[str]] = {}

    def at(self, places: Iterable[int]) -> list[frozenset[str]]:
        """The terms of the sentences that hold these tokens."""
        return [self._terms_of(number) for number in dict.fromkeys(bisect_right(self._ends, place) for place in places)]

    def _terms_of(self, number: int) -> frozenset[str]:
        if number not in self._terms:
            start, end = [0, *self._ends, len(self._tokens)][number : number + 2]
            self._terms[number] = frozenset(terms(" ".join(self._tokens[start:end])))
        return self._terms[number]


@dataclass(frozen=True, slots=True)
class TitleMentions:
    """Links a passage to those whose title its text mentions, in the order of the mentions.

    A title counts without its trailing parenthetical, with the same letters and case, at word borders, from 4
    characters on; white space around punctuation does not matter. Titles inside each other all count, the longest
    first. Passages that share a title are all linked; a passage's own title links to nothing. Other names of a
    passage (`aliases`), from 2 characters on, stand for it where they are no title.

    `over(passages)` files the names in a tree of words, once. One pass over a text then finds all of them: the time
    depends on the text's length, hardly on the number of titles.

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

    def over(self, passages: Sequence[Passage], /) -> TitleIndex:
        """Links to these passages."""
        kinds = [(self.aliases, aliases), (self.inflected, inflections)]
        other_names = [names for counts, names in kinds if counts]
        return TitleIndex(passages, other_names=other_names, context=self.context)


class TitleIndex:
    """The titles of some passages; called with a passage, it tells the ids of those that the text mentions.

    Args:
        passages: Where the titles are from.
        fold_case: Take letters of either case for the same.
        other_names: Functions from a passage to names that stand for it where they are no title.
        context: As for `TitleMentions`.
    """

    def __init__(
        self,
        passages: Sequence[Passage],
        *,
        fold_case: bool = False,
        other_names: Sequence[Callable[[Passage], Sequence[str]]] = (),
        context: float = CONTEXT,
    ) -> None:
        self._fold_case, self._context = fold_case, context
        self._among: Container[str] | None = None
        self._following: list[dict[str, int]] = [{}]  # nodes of the tree: from the next token to the next node
        self._titled: dict[int, list[str]] = {}  # ids of the passages whose title ends at a node
        self._called: dict[int, list[str]] = {}  # of those with another name that ends there
        self._mentioned: dict[tuple[str, str], list[Mentioned]] = {}  # by the passages that were followed
        for passage in passages:
            self._file(short_title(passage), MIN_TITLE_LENGTH, passage.id, self._titled)
            for name in dict.fromkeys(name for names in other_names for name in names(passage)):
                self._file(name, _MIN_ALIAS_LENGTH, passage.id, self._called)

    def __call__(self, passage: Passage, /) -> Iterable[str]:
        """Ids of the passages whose titles are mentioned."""
        return dict.fromkeys(id_ for _, ids in self._found(passage, name_tokens(passage.text)) for id_ in ids)

    def follow(self, query: str, path: Path, /) -> Iterable[Mention]:
        """The passages whose titles the path's last one mentions, likeliest first."""
        last = path.passages[-1]
        if (mentioned := self._mentioned.get((last.id, last.titled_text))) is None:
            tokens = name_tokens(last.text)
            sentences = _Sentences(tokens)
            places = defaultdict[tuple[str, ...], list[int]](list)
            names: dict[tuple[str, ...], str] = {}
            for (start, end), ids in self._found(last, tokens):
                places[tuple(ids)].append(start)
                names[tuple(ids)] = " ".join(tokens[start:end])
            mentioned = self._mentioned[last.id, last.titled_text] = [
                Mentioned(frozenset(terms(names[ids])), sentences.at(at), dict.fromkeys(ids, 1 / len(ids)))
                for ids, at in places.items()
            ]
        return itertools.starmap(Mention, chances(query, last, mentioned, self._context).items())

    def _found(self, passage: Passage, tokens: Sequence[str]) -> Iterator[tuple[tuple[int, int], Sequence[str]]]:
        """Mentions of others than the passage itself."""
        own = self._folded(name_tokens(short_title(passage)))
        for start, end, ids in self.mentions(tokens):
            if passage.id not in ids and self._folded(tokens[start:end]) != own:
                yield (start, end), ids

    def within(self, ids: Container[str]) -> TitleIndex:
        """The titles of the passages with these ids alone, in the same tree."""
        view = copy(self)
        view._among, view._mentioned = ids, {}
        return view

    def mentions(self, tokens: Sequence[str]) -> Iterator[tuple[int, int, Sequence[str]]]:
        """Where each title begins and ends among the tokens, with its passages' ids; of one start the longest first."""
        tokens = self._folded(tokens)
        following, titled, called = self._following, self._titled, self._called
        first = following[0]
        for start in [position for position, token in enumerate(tokens) if token in first]:
            mentioned = []
            end, node = start + 1, first.get(tokens[start])
            while node is not None:
                if ids := self._seen(titled.get(node, ())) or self._seen(called.get(node, ())):
                    mentioned.append((start, end, ids))
                node = following[node].get(tokens[end]) if end < len(tokens) else None
                end += 1
            if mentioned:
                yield from reversed(mentioned)

    def _file(self, name: str, shortest: int, passage_id: str, ending: dict[int, list[str]]) -> None:
        if tokens := self._folded(counted_name(name, shortest)):
            node = 0
            for token in tokens:
                node = self._node_after(node, token)
            ending.setdefault(node, []).append(passage_id)

    def _seen(self, ids: Sequence[str]) -> Sequence[str]:
        return ids if self._among is None else [id_ for id_ in ids if id_ in self._among]

    def _folded(self, tokens: Sequence[str]) -> Sequence[str]:
        return [token.casefold() for token in tokens] if self._fold_case else tokens

    def _node_after(self, node: int, token: str) -> int:
        after = self._following[node].get(token)
        if after is None:
            after = self._following[node][token] = len(self._following)
            self._following.append({})
        return after


@dataclass(frozen=True, slots=True)
class NameMentions:
    """Links a passage to those that mention a name that it mentions itself, with how likely a reader takes each.

    A name is a run of words that begin with a capital, in the title or the text, whichever letters follow; a word that
    the passages mostly write small ("The") is none. Names that the question holds, and those that more than 100
    passages mention, are not followed. A path leads to the 100 likeliest passages at most; the search chooses those
    that explain most of what the path has left unexplained.

    Args:
        context: a, how much the words around a mention count; 0 follows each alike.
        titled: How many times as likely a name leads to a passage that has it in its title.

    >>> wesson = Passage("He played for the Houston Astros.", id="1", title="Barry Wesson")
    >>> series = Passage("It was won by the Houston Astros.", id="2", title="2017 World Series")
    >>> links = NameMentions().over([wesson, series])
    >>> list(links.follow("Whose team won the series?", Path((wesson,))))
    [Mention(id='2', chance=1.0)]
    """

    context: float = CONTEXT
    titled: float = TITLED
    kind: ClassVar[str] = "name mention"

    def over(self, passages: Sequence[Passage], /) -> NameIndex:
        """Links to these passages."""
        return NameIndex(passages, context=self.context, titled=self.titled)


class NameIndex:
    """The names that some passages mention; follows a path's last passage, which need not be one of them.

    Args:
        passages: Where the names are from.
        context: As for `NameMentions`.
        titled: As for `NameMentions`.
    """

    def __init__(self, passages: Sequence[Passage], *, context: float = CONTEXT, titled: float = TITLED) -> None:
        self._context, self._titled = context, titled
        tokens = list(map(_tokens, passages))
        written, capital = Counter[str](), Counter[str]()
        for words in tokens:
            written.update(word.lower() for word in words)
            capital.update(word.lower() for word in words if word[0].isupper())
        self._small = {word for word, count in capital.items() if 2 * count <= written[word]}
        self._among: Container[str] | None = None
        self._mentioned: dict[tuple[str, str], list[tuple[str, Mentioned]]] = {}  # by the passages that were followed
        self._weights: dict[str, dict[str, float]] = {}  # of the passages that mention each name
        for passage, words in zip(passages, tokens, strict=True):
            in_title = frozenset(map(str.lower, name_tokens(passage.title)))
            for name in self._names_among(words):
                self._weights.setdefault(name, {})[passage.id] = titled if in_title.issuperset(name.split()) else 1.0
        self._weights = {name: of for name, of in self._weights.items() if 1 < len(of) <= _MOST_PASSAGES + 1}

    def follow(self, query: str, path: Path, /) -> Iterable[Mention]:
        """The passages that a name of the path's last one leads to, likeliest first."""
        last = path.passages[-1]
        if (named := self._mentioned.get((last.id, last.titled_text))) is None:
            named = self._mentioned[last.id, last.titled_text] = list(self._named(last))
        asked = f" {' '.join(name_tokens(query)).lower()} "
        found = chances(query, last, [item for name, item in named if f" {name} " not in asked], self._context)
        return itertools.islice(itertools.starmap(Mention, found.items()), _MOST_TARGETS)

    def within(self, ids: Container[str], /) -> NameIndex:
        """The names of the passages with these ids alone; what counts as a name stays."""
        view = copy(self)
        view._among, view._mentioned = ids, {}
        return view

    def _named(self, passage: Passage) -> Iterator[tuple[str, Mentioned]]:
        """The names that lead from a passage to others."""
        tokens = _tokens(passage)
        sentences = _Sentences(tokens)
        for name, places in self._names_among(tokens).items():
            of = {
                id_: weight
                for id_, weight in self._weights.get(name, {}).items()
                if id_ != passage.id and (self._among is None or id_ in self._among)
            }
            if 0 < len(of) <= _MOST_PASSAGES:
                total = sum(of.values())
                targets = {id_: weight / total for id_, weight in of.items()}
                yield name, Mentioned(frozenset(terms(name)), sentences.at(places), targets)

    def _names_among(self, words: Sequence[str]) -> dict[str, list[int]]:
        """Distinct names in the order of their first mention, in small letters, with the places of each."""
        names: dict[str, list[int]] = {}
        run: list[str] = []
        for place, word in enumerate([*words, "."]):
            if word[0].isupper() and len(word) > 1 and word.lower() not in self._small:
                run.append(word.lower())
            elif run:
                names.setdefault(" ".join(run), []).append(place - 1)
                run = []
        return names


def _tokens(passage: Passage) -> list[str]:
    """Words and punctuation marks; a title and the text after it are no run."""
    return [*name_tokens(passage.title), ".", *name_tokens(passage.text)]
