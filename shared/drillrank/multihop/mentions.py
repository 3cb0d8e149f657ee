"""Links to the passages whose titles a text mentions, or which mention the same name as the text.

    P(d' | d, q) = Σ_m P(m | d, q) P(d' | m),    P(m | d, q) ∝ exp(a c(m, q))

m is a title or name that d mentions. c(m, q) is the share of the question's words, weighted by rarity, that the best
sentence of d with the mention contains: for a question about a director, "directed by Ada Holm" is followed. Words of
the mention and of the title of d do not count. "son" counts as "father", as listed in `relations.tsv`. A name leads to
each passage that mentions it, and is `titled` times as likely to lead to those with the name in their title. Names in
the question are not followed, since they add nothing to it.

The names of a passage depend on that passage only, so that passages can be added without reading the others again.
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
_MAX_PASSAGES = 100  # of one name: a more frequent name says little, and this limits the work of a hop
_MAX_TARGETS = 100  # of one path
_COMMON = 1e-5  # probability of a word that is not a name at the start of a sentence
_SENTENCE_ENDS = {".", "!", "?"}
_MIN_ALIAS_LENGTH = 2


# Words of questions


@lru_cache(maxsize=64)
def weigh_question_words(query: str) -> dict[str, float]:
    """Return the weight of each word of a question: the log of how much rarer it is than one word in a hundred, or 0.

    >>> [round(weight) for weight in weigh_question_words("the river").values()]
    [0, 5]
    """
    probabilities = background()
    return {word: max(0.0, -math.log(100 * max(probabilities.get(word, 0.0), UNLISTED))) for word in terms(query)}


@lru_cache(maxsize=1)
def _related_terms() -> dict[str, frozenset[str]]:
    """Terms by which texts express a relation that a question names."""
    rows = read_table("relations.tsv")
    return {word: frozenset(terms(others)) for relation, others in rows.items() for word in terms(relation)}


def _covered_share(weights: Mapping[str, float], sentence: frozenset[str]) -> float:
    """Return the share of the weights whose words, or related terms, are in a sentence."""
    related = _related_terms()
    covered = (
        weight for word, weight in weights.items() if word in sentence or not sentence.isdisjoint(related.get(word, ()))
    )
    return sum(covered) / (sum(weights.values()) or 1.0)


# Mentions and their probabilities


class Mention(NamedTuple):
    """Title or name that a passage mentions.

    Attributes:
        name: Terms of the title or name.
        sentences: Terms of each sentence with the mention.
        targets: Probability of each passage that the mention leads to, by id. The sum is 1.
    """

    name: frozenset[str]
    sentences: Sequence[frozenset[str]]
    targets: Mapping[str, float]


def link_probabilities(query: str, passage: Passage, mentions: Sequence[Mention], context: float) -> dict[str, float]:
    """Return P(d' | d, q) of each passage that the mentions lead to, likeliest first.

    Args:
        query: The question.
        passage: d.
        mentions: What d mentions.
        context: a.

    >>> son = Mention(frozenset(), [frozenset(terms("His son was Carl."))], {"carl": 1.0})
    >>> port = Mention(frozenset(), [frozenset(terms("He came from Esbjerg."))], {"esbjerg": 1.0})
    >>> list(link_probabilities("Who was the father of Carl Holm?", Passage(""), [port, son], 4.0))
    ['carl', 'esbjerg']
    """
    title_terms = frozenset(terms(passage.title))
    weights = {
        word: weight for word, weight in weigh_question_words(query).items() if weight and word not in title_terms
    }
    share_by_sentence: dict[frozenset[str], float] = {}  # for mentions without a word of the question
    mention_scores = []
    for mention in mentions:
        if mention.name.isdisjoint(weights):
            for sentence in mention.sentences:
                if sentence not in share_by_sentence:
                    share_by_sentence[sentence] = _covered_share(weights, sentence)
            share = max(map(share_by_sentence.__getitem__, mention.sentences))
        else:
            other_weights = {word: weight for word, weight in weights.items() if word not in mention.name}
            share = max(_covered_share(other_weights, sentence) for sentence in mention.sentences)
        mention_scores.append(math.exp(context * share))
    total, probabilities = sum(mention_scores), dict[str, float]()
    for mention, score in zip(mentions, mention_scores, strict=True):
        mention_probability = score / total
        for target, probability in mention.targets.items():
            probabilities[target] = probabilities.get(target, 0.0) + mention_probability * probability
    return dict(sorted(probabilities.items(), key=itemgetter(1), reverse=True))


# Names and sentences of passages


class PassageTokens:
    """Words and punctuation marks of a passage, with its names and the terms of its sentences.

    Attributes:
        tokens: Tokens of the title, a full stop, and tokens of the text.
        text_start: Index of the first token of the text.
    """

    def __init__(self, title: str, text: str) -> None:
        title_tokens = name_tokens(title)
        self.tokens = tokens = [*title_tokens, ".", *name_tokens(text)]
        self.text_start = len(title_tokens) + 1
        # A full stop after one or two letters is that of an initial or abbreviation.
        self._sentence_ends = [
            index + 1
            for index, (before, token, after) in enumerate(zip(tokens, tokens[1:], tokens[2:], strict=False), 1)
            if token in _SENTENCE_ENDS and len(before) > 2 and not after[0].islower()
        ]
        self._sentence_terms: dict[int, frozenset[str]] = {}

    def list_sentences(self, token_indices: Iterable[int]) -> list[frozenset[str]]:
        """Return the terms of the sentences with these tokens."""
        sentences = []
        for sentence_index in dict.fromkeys(bisect_right(self._sentence_ends, index) for index in token_indices):
            if sentence_index not in self._sentence_terms:
                start, end = [0, *self._sentence_ends, len(self.tokens)][sentence_index : sentence_index + 2]
                self._sentence_terms[sentence_index] = frozenset(terms(" ".join(self.tokens[start:end])))
            sentences.append(self._sentence_terms[sentence_index])
        return sentences

    @cached_property
    def names(self) -> dict[str, list[int]]:
        """Indices of the last token of each name, by the name in lowercase without accents, in order of appearance."""
        indices_by_name: dict[str, list[int]] = {}
        run: list[str] = []
        lowercase_words = {token for token in self.tokens if token[0].islower()}
        starts_sentence = starts_common_title = False
        for index, token in enumerate([*self.tokens, "."]):
            starts_sentence = starts_sentence or index == self.text_start
            word = token.lower()
            is_ordinary = starts_sentence and (word in lowercase_words or _is_common(word))
            if len(token) > 1 and token[0].isupper() and not is_ordinary:
                starts_common_title = starts_common_title or (index == 0 and _is_common(word))
                run.append(unaccented(word))
            elif run:
                forms = [*_name_forms(run), *([run[1:]] if starts_common_title and len(run) > 1 else [])]
                for name in dict.fromkeys(map(" ".join, forms)):
                    indices_by_name.setdefault(name, []).append(index - 1)
                run, starts_common_title = [], False
            starts_sentence = token in _SENTENCE_ENDS and (index == 0 or len(self.tokens[index - 1]) > 2)
        return indices_by_name


def _name_forms(words: list[str]) -> Iterator[list[str]]:
    """Return a name, its first two and its last two words, and of three words the first and the last."""
    yield words
    if len(words) > 2:
        yield from (words[:2], words[-2:])
    if len(words) == 3:
        yield words[::2]


@lru_cache(maxsize=50_000)
def _terms_of_name(name: str) -> frozenset[str]:
    return frozenset(terms(name))


@lru_cache(maxsize=4096)
def _tokenize_passage(title: str, text: str) -> PassageTokens:
    return PassageTokens(title, text)


@lru_cache(maxsize=50_000)
def _is_common(word: str) -> bool:
    probabilities = background()
    return any(probabilities.get(term, 0.0) > _COMMON for term in terms(word))


# Links


@dataclass(frozen=True, slots=True)
class TitleMentions(NamedLinks):
    """Links a passage to the passages whose titles its text mentions, likeliest first.

    A title counts without its trailing parenthetical, if it has at least 4 characters. Letters, case and word borders
    must match; white space around punctuation is ignored. Nested titles all count, the longest first. A shared title
    leads to all its passages. The passage's own title is ignored. Other names of at least 2 characters (`find_aliases`,
    and the title without accents) lead to a passage if they are not a title.

    Args:
        aliases: True to follow other names, too.
        inflected: True to follow titles of several words also in lowercase and in the plural ("cruise missiles" for
            "Cruise missile"), as texts mention entries of glossaries and kinds of things (English).
        context: a, weight of the words around a mention. 0 follows all mentions alike.

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
        """Return the title of a passage with weight 1, and other names with weight 0.5."""
        title = short_title(passage)
        if tokens := name_match_tokens(title):
            yield " ".join(tokens), 1.0
        other_names = list[str]()
        if self.aliases:
            other_names += find_aliases(passage)
            if not title.isascii():
                other_names.append(unaccented(title))
        if self.inflected:
            other_names += inflect_title(passage)
        for name in other_names:
            if tokens := name_match_tokens(name, _MIN_ALIAS_LENGTH):
                yield " ".join(tokens), 0.5

    def find_targets(self, names: Names, query: str, path: Path, /) -> dict[str, float]:
        """Return the passages whose titles the last passage mentions, with P(d' | d, q), likeliest first."""
        last = path.passages[-1]
        passage_tokens = _tokenize_passage(last.title, last.text)
        tokens, text_start = passage_tokens.tokens, passage_tokens.text_start
        title = name_tokens(short_title(last))
        spans_by_targets = defaultdict[tuple[str, ...], list[tuple[int, int]]](list)
        for start, end, weights in names.find_mentions(tokens[text_start:]):
            best_weight = max(weights.values())
            targets = tuple(id_ for id_, weight in weights.items() if weight == best_weight)
            span = start + text_start, end + text_start
            if last.id not in targets and tokens[slice(*span)] != title:
                spans_by_targets[targets].append(span)
        mentions = [
            Mention(
                _terms_of_name(" ".join(tokens[slice(*spans[-1])])),
                passage_tokens.list_sentences(start for start, _ in spans),
                dict.fromkeys(targets, 1 / len(targets)),
            )
            for targets, spans in spans_by_targets.items()
        ]
        return link_probabilities(query, last, mentions, self.context)


@dataclass(frozen=True, slots=True)
class NameMentions(NamedLinks):
    """Links a passage to the passages that mention the same name, with probabilities, likeliest first.

    A name is a sequence of capitalized words in the title or text. Accents and the case of further letters are ignored.
    A word at the start of a sentence is not a name if it is common (English), or if the passage contains it in
    lowercase. Parts of a longer name are names, too: its first two words, its last two words and, of three words, the
    first with the last ("Wojciech Jerzy Has"). If a title begins with a common word, the rest of the title is a name,
    too. Names in the question and names in more than 100 passages are not followed. A path leads to at most 100
    passages.

    Args:
        context: a, weight of the words around a mention. 0 follows all mentions alike.
        titled: Factor of the probability that a name leads to a passage with the name in its title.

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
        """Return the names that a passage mentions, with weight 1 if all words are in its title, or 0."""
        title_words = frozenset(unaccented(token.lower()) for token in name_tokens(passage.title))
        for name in PassageTokens(passage.title, passage.text).names:
            yield name, 1.0 if title_words.issuperset(name.split()) else 0.0

    def find_targets(self, names: Names, query: str, path: Path, /) -> dict[str, float]:
        """Return the passages that share a name with the last passage, with P(d' | d, q), likeliest first."""
        last = path.passages[-1]
        passage_tokens = _tokenize_passage(last.title, last.text)
        question = f" {' '.join(unaccented(token.lower()) for token in name_tokens(query))} "
        indices_by_name = {name: row for name, row in passage_tokens.names.items() if f" {name} " not in question}
        mentions = []
        for name, weights in names.look_up(indices_by_name).items():
            n_others = len(weights) - (last.id in weights)
            if len(weights) > 1 and n_others <= _MAX_PASSAGES:
                n_titled = sum(1 for id_, weight in weights.items() if weight and id_ != last.id)
                total = n_titled * self.titled + n_others - n_titled
                if_titled, otherwise = self.titled / total, 1.0 / total
                targets = {id_: if_titled if weight else otherwise for id_, weight in weights.items() if id_ != last.id}
                sentences = passage_tokens.list_sentences(indices_by_name[name])
                mentions.append(Mention(_terms_of_name(name), sentences, targets))
        return dict(islice(link_probabilities(query, last, mentions, self.context).items(), _MAX_TARGETS))
