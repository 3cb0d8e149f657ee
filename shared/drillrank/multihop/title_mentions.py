"""Links from the titles that a text mentions."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from copy import copy

from drillrank.passages import Passage

_TOKEN = re.compile(r"\w+|[^\w\s]")
_PARENTHETICAL = re.compile(r"\s*\([^()]*\)\s*$")
_MIN_TITLE_LENGTH = 4  # shorter titles ("It", "Up") are mostly ordinary words
_MAX_TITLE_TOKENS = 64  # bounds the work at each word of a text; nobody mentions a longer title


class TitleMentions:
    """Links a passage to those whose title its text mentions, in the order of the mentions.

    A title counts without its trailing parenthetical, with the same letters and case, at word borders, from 4
    characters on; white space around punctuation does not matter. Titles inside each other all count, the longest
    first. Passages that share a title are all linked; a passage's own title links to nothing.

    `over(passages)` files the titles in a tree of words, once. One pass over a text then finds all of them: the time
    depends on the text's length, hardly on the number of titles.

    >>> turing = Passage("He was born in London.", id="1", title="Alan Turing")
    >>> london = Passage("A town on the Thames.", id="2", title="London (England)")
    >>> list(TitleMentions().over([turing, london])(turing))
    ['2']
    """

    def over(self, passages: Sequence[Passage], /) -> TitleIndex:
        """Links to these passages."""
        return TitleIndex(passages)


class TitleIndex:
    """The titles of some passages; called with a passage, it tells the ids of those that the text mentions.

    Args:
        passages: Where the titles are from.
        fold_case: Take letters of either case for the same.
    """

    def __init__(self, passages: Sequence[Passage], *, fold_case: bool = False) -> None:
        self._fold_case = fold_case
        self._among: Container[str] | None = None
        self._following: list[dict[str, int]] = [{}]  # nodes of the tree: from the next token to the next node
        self._ids: dict[int, list[str]] = {}  # of the passages whose title ends at a node
        for passage in passages:
            tokens = self._folded(_title_tokens(passage))
            if len(_short_title(passage)) >= _MIN_TITLE_LENGTH and 0 < len(tokens) <= _MAX_TITLE_TOKENS:
                node = 0
                for token in tokens:
                    node = self._node_after(node, token)
                self._ids.setdefault(node, []).append(passage.id)

    def __call__(self, passage: Passage, /) -> Iterable[str]:
        """Ids of the passages whose titles are mentioned."""
        tokens = title_tokens(passage.text)
        own = self._folded(_title_tokens(passage))
        found: dict[str, None] = {}
        for start, end, ids in self.mentions(tokens):
            if self._folded(tokens[start:end]) != own:
                found |= dict.fromkeys(ids)
        return found

    def within(self, ids: Container[str]) -> TitleIndex:
        """The titles of the passages with these ids alone, in the same tree."""
        view = copy(self)
        view._among = ids
        return view

    def mentions(self, tokens: Sequence[str]) -> Iterator[tuple[int, int, list[str]]]:
        """Where each title begins and ends among the tokens, with its passages' ids; of one start the longest first."""
        tokens = self._folded(tokens)
        following, ids_at = self._following, self._ids
        first = following[0]
        for start in [position for position, token in enumerate(tokens) if token in first]:
            mentioned = []
            end, node = start + 1, first.get(tokens[start])
            while node is not None:
                if node in ids_at and (ids := self._seen(ids_at[node])):
                    mentioned.append((start, end, ids))
                node = following[node].get(tokens[end]) if end < len(tokens) else None
                end += 1
            if mentioned:
                yield from reversed(mentioned)

    def _seen(self, ids: list[str]) -> list[str]:
        return ids if self._among is None else [id_ for id_ in ids if id_ in self._among]

    def _folded(self, tokens: Sequence[str]) -> Sequence[str]:
        return [token.casefold() for token in tokens] if self._fold_case else tokens

    def _node_after(self, node: int, token: str) -> int:
        after = self._following[node].get(token)
        if after is None:
            after = self._following[node][token] = len(self._following)
            self._following.append({})
        return after


def title_tokens(text: str) -> list[str]:
    """The words and punctuation marks that titles are compared by.

    >>> title_tokens("Malcolm X's life")
    ['Malcolm', 'X', "'", 's', 'life']
    """
    return _TOKEN.findall(text)


def _title_tokens(passage: Passage) -> list[str]:
    return title_tokens(_short_title(passage))


def _short_title(passage: Passage) -> str:
    return _PARENTHETICAL.sub("", passage.title).strip()
