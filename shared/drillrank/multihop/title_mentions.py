"""Links from the titles that a text mentions."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import ClassVar

from drillrank.multihop.title_names import aliases, inflections
from drillrank.passages import MIN_TITLE_LENGTH, Passage, counted_name, short_title
from drillrank.text import name_tokens

_MIN_ALIAS_LENGTH = 2


@dataclass(frozen=True, slots=True)
class TitleMentions:
    """Links a passage to those whose title its text mentions, in the order of the mentions.

    A title counts without its trailing parenthetical, with the same letters and case, at word borders, from 4
    characters on; white space around punctuation does not matter. Titles inside each other all count, the longest
    first. Passages that share a title are all linked; a passage's own title links to nothing. Other names of a
    passage (`title_names.aliases`), from 2 characters on, stand for it where they are no title.

    `over(passages)` files the names in a tree of words, once. One pass over a text then finds all of them: the time
    depends on the text's length, hardly on the number of titles.

    Args:
        aliases: Whether other names count.
        inflected: Whether titles of several words count in small letters and in the plural, too ("cruise missiles" for
            "Cruise missile"), as those of glossaries and of kinds of things are mentioned (English).

    >>> turing = Passage("He was born in London and worked for the NPL.", id="1", title="Alan Turing")
    >>> london = Passage("A town on the Thames.", id="2", title="London (England)")
    >>> npl = Passage("It measures.", id="3", title="National Physical Laboratory (NPL)")
    >>> list(TitleMentions().over([turing, london, npl])(turing))
    ['2', '3']
    """

    aliases: bool = True
    inflected: bool = False
    kind: ClassVar[str] = "title mention"

    def over(self, passages: Sequence[Passage], /) -> TitleIndex:
        """Links to these passages."""
        kinds = [(self.aliases, aliases), (self.inflected, inflections)]
        return TitleIndex(passages, other_names=[names for counts, names in kinds if counts])


class TitleIndex:
    """The titles of some passages; called with a passage, it tells the ids of those that the text mentions.

    Args:
        passages: Where the titles are from.
        fold_case: Take letters of either case for the same.
        other_names: Functions from a passage to names that stand for it where they are no title.
    """

    def __init__(
        self,
        passages: Sequence[Passage],
        *,
        fold_case: bool = False,
        other_names: Sequence[Callable[[Passage], Sequence[str]]] = (),
    ) -> None:
        self._fold_case = fold_case
        self._among: Container[str] | None = None
        self._following: list[dict[str, int]] = [{}]  # nodes of the tree: from the next token to the next node
        self._titled: dict[int, list[str]] = {}  # ids of the passages whose title ends at a node
        self._called: dict[int, list[str]] = {}  # of those with another name that ends there
        for passage in passages:
            self._file(short_title(passage), MIN_TITLE_LENGTH, passage.id, self._titled)
            for name in dict.fromkeys(name for names in other_names for name in names(passage)):
                self._file(name, _MIN_ALIAS_LENGTH, passage.id, self._called)

    def __call__(self, passage: Passage, /) -> Iterable[str]:
        """Ids of the passages whose titles are mentioned."""
        tokens = name_tokens(passage.text)
        own = self._folded(name_tokens(short_title(passage)))
        found: dict[str, None] = {}
        for start, end, ids in self.mentions(tokens):
            if passage.id not in ids and self._folded(tokens[start:end]) != own:
                found |= dict.fromkeys(ids)
        return found

    def within(self, ids: Container[str]) -> TitleIndex:
        """The titles of the passages with these ids alone, in the same tree."""
        view = copy(self)
        view._among = ids
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
