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
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from operator import itemgetter
from typing import ClassVar, NamedTuple

from drillrank.corpus.names import NameRow
from drillrank.data import read_table
from drillrank.likelihood.unigram import UNLISTED, background
from drillrank.multihop.aliases import find_aliases, inflect_title
from drillrank.multihop.links import NamedLinks, Names
from drillrank.passages import Passage, Path, name_match_tokens, short_title
from drillrank.text import name_tokens, terms, unaccented

CONTEXT, TITLED = 4.0, 10.0  # chosen on training questions (docs/links.md)
_MOST_PASSAGES = 100  # a name that more of them mention hardly tells where to go, and bounds the work of a hop
_MOST_TARGETS = 100  # the likeliest passages that one path leads to
_COMMON = 1e-5  # probability of a word that is no name where it only begins a sentence
_STOPS = {".", "!", "?"}
_MIN_ALIAS_LENGTH = 2


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
    wanted = {word: weight for word, weight in weigh_question_words(query).items() if weight and word not in in_title}
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
def weigh_question_words(query: str) -> dict[str, float]:
    """How much rarer than one word in a hundred each word of a question is; words that are more frequent weigh 0.

    >>> [round(weight) for weight in weigh_question_words("the river").values()]
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
    >>> list(TitleMentions().bind([turing, london, npl])(turing))
    ['2', '3']
    """

    aliases: bool = True
    inflected: bool = False
    context: float = CONTEXT
    kind: ClassVar[str] = "title mention"

    def list_names(self, passage: Passage, /) -> Iterator[NameRow]:
        """The names under which a passage is found: its title counts 1, another name less."""
        title = short_title(passage)
        if tokens := name_match_tokens(title):
            yield " ".join(tokens), 1.0
        others = [*find_aliases(passage), *([] if title.isascii() else [unaccented(title)])] if self.aliases else []
        for name in [*others, *(inflect_title(passage) if self.inflected else ())]:
            if tokens := name_match_tokens(name, _MIN_ALIAS_LENGTH):
                yield " ".join(tokens), 0.5

    def find_targets(self, names: Names, query: str, path: Path, /) -> dict[str, float]:
        """The passages whose titles the path's last one mentions, likeliest first."""
        last = path.passages[-1]
        read = _read(last.title, last.text)
        title = name_tokens(short_title(last))
        places = defaultdict[tuple[str, ...], list[tuple[int, int]]](list)
        for first, behind, found in names.find_mentions(read.tokens[read.text_start :]):
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
    >>> links = NameMentions().bind([wesson, series])
    >>> links.follow("Whose team won the series?", Path((wesson,)))
    {'2': 1.0}
    """

    context: float = CONTEXT
    titled: float = TITLED
    kind: ClassVar[str] = "name mention"
    min_passages: ClassVar[int] = 2

    def list_names(self, passage: Passage, /) -> Iterator[NameRow]:
        """The names that a passage mentions; those in its title count 1."""
        in_title = frozenset(map(unaccented, map(str.lower, name_tokens(passage.title))))
        for name in _Read(passage.title, passage.text).names:
            yield name, 1.0 if in_title.issuperset(name.split()) else 0.0

    def find_targets(self, names: Names, query: str, path: Path, /) -> dict[str, float]:
        """The passages that a name of the path's last one leads to, likeliest first."""
        last = path.passages[-1]
        read = _read(last.title, last.text)
        question = f" {' '.join(unaccented(token.lower()) for token in name_tokens(query))} "
        not_in_question = {name: places for name, places in read.names.items() if f" {name} " not in question}
        mentioned = []
        for name, ids in names.look_up(not_in_question).items():
            if 1 < len(ids) <= _MOST_PASSAGES + (last.id in ids):
                titled = sum(1 for id_, weight in ids.items() if weight and id_ != last.id)
                total = titled * self.titled + len(ids) - (last.id in ids) - titled
                in_title, elsewhere = self.titled / total, 1.0 / total
                targets = {id_: in_title if weight else elsewhere for id_, weight in ids.items() if id_ != last.id}
                mentioned.append(Mentioned(_terms_of(name), read.around(not_in_question[name]), targets))
        return dict(islice(chances(query, last, mentioned, self.context).items(), _MOST_TARGETS))
