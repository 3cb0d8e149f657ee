"""What an LLM chose, read from whatever it answered: total functions that never raise and never invent an item.

D3 asks for "comma-separated" names or ids. Models also send numbered lists, tables, JSON, ranges, corrections,
refusals, their thoughts, and all of that in many languages. The rules, in the order in which they are applied:

1. Thoughts are left out. Of what remains, what follows the last "Answer:" counts, up to a "Reason:" behind it; a
   "Question:" that the model asks itself behind an answer ends it.
2. JSON is put into words: an id per line, with "no" behind it where the object, or its key, says so; keys that hold
   reasons or scores are left out. A row of a table is its id cell, and behind a colon the others. Where every id has
   a colon and 0 or 1 (n or y), these are verdicts. A box that is not ticked is left out with its line.
3. A name stands for its id: matched exactly, then by its words, by likeness, and inside a sentence. Where names are
   asked for, numbers are none.
4. A number, in digits or in words, is an id if a word such as "paragraph" or a bracket introduces it, if it is joined
   to such a number, or if no word follows but a verb or a conjunction; a short unknown word between two numbers is a
   conjunction, and so is "a" in an answer with Czech or Slovak words. Numbers with dots that are joined before a noun
   are ordinals. Decimals, percentages, dates, counts ("3 paragraphs") and "all 9" are none.
5. The number of a list item is no id if the item begins with one, or if the list counts from 1 and each item has one.
6. Clauses end at full stops, semicolons, line ends and "but". A denial holds for the ids that follow it, or, if none
   follows, for those just before it, in the same clause or the one before; a denial of "the others" is none of these.
   "Except" turns a denial round. A heading that denies holds for its list.
7. What stands behind an id and a colon, dash, bracket or "because" explains it: only a denial of the id is read there.
   What follows a first line of nothing but ids and a blank line explains these.
8. "All" is every item but for the excepted ones, and so are "the others" where only denials came before. "Wait",
   "no, only" and the like take back what was chosen before, unless they deny or add single ids. The last word on an
   id holds. Ids that are only told of ("3 describes owls") count if no other is chosen.
9. An answer that denies that there is anything, and an empty one, choose nothing; ids behind such a sentence explain
   it. Conditions ("if none is relevant") say nothing, nor do clauses on who knows which items are relevant.
10. Any other answer without an id is unreadable.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import chain

from drillrank.drilldown.answer_forms import in_words, without_tables
from drillrank.drilldown.answer_reading import read
from drillrank.drilldown.answer_tokens import tokens_of
from drillrank.drilldown.answer_words import KINDS, plain
from drillrank.llm import strip_reasoning
from drillrank.text import WORD

LIKENESS = 0.88  # of a misspelled name, as `SequenceMatcher.ratio`: 1 is equal

_PART = re.compile(r"[^,;|\n]+")
_SEPARATOR = re.compile(r"[,;|\n]+")
_NUMBER = re.compile(r"^(?:\d+ )+")  # of a heading, once its punctuation is gone
_AROUND = " \t\r\"'`“”‘’«»()[]{}*_#"
_LEADING = re.compile(
    r"(?:[-*•–+]|\(?(?:\d{1,4}|[a-z]|[ivx]{1,5})[.):]|\[\d{1,4}\])\s+|(?:section|name)\s*:\s*", re.IGNORECASE
)
_QUOTED = re.compile(r"""["“„«`]([^"“”„«»`\n]+)["”“»`]|\*\*([^*\n]+)\*\*""")
_SHOWN = 80  # characters of a part of the answer that stands for nothing
_MISSPELLED = 50  # unknown parts from which on no more are compared letter by letter, for the sake of time

_ANSWER = re.compile(
    r"(?:\b(?:final |my |correct )?(?:answer|output|response|result)(?: is| are)?|\bconclusion|\b(?:end)?antwort"
    r"|\bergebnis|\bréponse(?: finale)?|\brespuesta(?: final)?|\brisposta(?: finale)?|\bresposta(?: final)?"
    r"|\b(?:eind)?antwoord|\bodpowiedź|ответ|答案|最终答案|回答|答え|정답|답변|답|الإجابة|الجواب)[ *_`#]{0,4}[:：]"
    r"[ *_`]{0,4}|\bfinal answer(?: is| are)?\b|</?(?:answer|output|result)>|\\boxed|empty[^.\n]{0,80}relevant\.",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"(?:^|(?<=[\n.;!)\]]))[\s*_#>(-]{0,6}(?:(?:here is |here's )?why|reason(?:s|ing)?|explanations?|rationale"
    r"|justification|notes?|begründung|erklärung|explication|raison|justification|razón|explicación|motivo|motivazione|spiegazione|explicação"
    r"|justificativa|uitleg|reden|uzasadnienie|wyjaśnienie|обоснование|пояснение|объяснение|причина|理由|原因|解释|説明|이유|설명"
    r"|السبب|التفسير)[ *_]{0,3}[:：]",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"\n\W*(?:question|q)\b[^:\n]{0,9}:", re.IGNORECASE)
_UNTICKED = re.compile(r"(?m)^[ \t]*(?:[-*+][ \t]+)?(?:\[ \]|☐).*$")
_EMPTY = re.compile(r"(?:^|[:：=])[^\w?!.…]*\.?[^\w?!.…]*\Z")
_TAG = re.compile(r"</?[a-z][a-z_-]{0,30}/?>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Choice:
    """The items that an answer names.

    Attributes:
        positions: Positions of the chosen items, each once, rising.
        unknown: Parts of the answer that stand for no item, shortened.
        usable: False if the answer names nothing and does not say that nothing is relevant either.
    """

    positions: tuple[int, ...]
    unknown: tuple[str, ...] = ()
    usable: bool = True


def chosen_names(answer: str, names: Sequence[str]) -> Choice:
    r"""The names that an answer chooses, by the rules above.

    A part of the answer may match a whole name ("Results > Speed"), or its last heading ("Speed"), with or without
    its number; a heading stands for every name that ends so.

    Args:
        answer: Any string.
        names: What could be chosen, all different.

    >>> names = ["Introduction", "Data, and how we got it", "Results > Speed", "Results > Quality"]
    >>> chosen_names('1. "data, and how we got it"\n2. Speed, Qualty, and the weather', names)
    Choice(positions=(1, 2, 3), unknown=('and the weather',), usable=True)
    >>> chosen_names("None of the sections (Introduction, Results > Speed) is relevant.", names)
    Choice(positions=(), unknown=(), usable=True)
    """
    said = _said(answer)
    if said is None:
        return Choice((), usable=False)
    marked, found, unknown = _Names(names).marked(said)
    return _choice(marked, len(names), found, unknown)


def chosen_ids(answer: str, count: int) -> Choice:
    """The ids from 1 to `count` that an answer chooses, by the rules above, as 0-based positions.

    >>> chosen_ids("[1], 3-4 and 12", 5)
    Choice(positions=(0, 2, 3), unknown=('12',), usable=True)
    >>> chosen_ids("1. Paragraph 2, for it gives 5 reasons. Paragraph 3 is not relevant.", 5).positions
    (1,)
    >>> chosen_ids("None of paragraphs 1-5 is relevant.", 5)
    Choice(positions=(), unknown=(), usable=True)
    >>> chosen_ids("I cannot say.", 5).usable
    False
    """
    said = _said(answer)
    return Choice((), usable=False) if said is None else _choice(said, count)


def _choice(said: str, count: int, names: Sequence[Sequence[int]] | None = None, unknown: Sequence[str] = ()) -> Choice:
    reading = read(*tokens_of(without_tables(said), names), count)
    positions = tuple(sorted(number - 1 for number, chosen in reading.verdicts.items() if chosen))
    unknown = tuple(dict.fromkeys([*unknown, *(text[:_SHOWN] for text in reading.unknown)]))
    if not positions and (reading.nothing or _EMPTY.search(said)):
        return Choice(())
    return Choice(positions, unknown, usable=bool(positions))


def _said(answer: str) -> str | None:
    """What counts of an answer, in words; None if it never gets beyond its thoughts."""
    spoken = strip_reasoning(answer)
    if spoken is None:
        labels = list(_ANSWER.finditer(answer))
        return answer[labels[-1].end() :] if labels else None
    start = 0
    for label in _ANSWER.finditer(spoken):
        if start and _QUESTION.search(spoken, start, label.start()):
            spoken = spoken[: label.start()]  # it goes on with a question of its own
            break
        if WORD.search(spoken, label.end()):
            start = label.end()
    said = spoken[start:]
    reason = _REASON.search(said)
    if reason and WORD.search(said[: reason.start()]):
        said = said[: reason.start()]
    return in_words(_UNTICKED.sub("", _TAG.sub("\n", said)))


class _Names:
    """Names by their spelling, and by the words of the whole name, of its last heading, and of that without number."""

    def __init__(self, names: Sequence[str]) -> None:
        self._exact = {name: (position,) for position, name in enumerate(names)}
        self._by_words: tuple[defaultdict[str, list[int]], ...] = tuple(defaultdict(list) for _ in range(3))
        for position, name in enumerate(names):
            words = _words(name)
            heading = _words(name.rpartition(" > ")[2])
            for table, key in zip(self._by_words, (words, heading, _NUMBER.sub("", heading)), strict=True):
                if key:
                    table[key].append(position)

    def find(self, written: str) -> Sequence[int]:
        """The names that are written so, give or take case, punctuation, numbering and quotes."""
        stripped = written.strip()
        if stripped in self._exact:
            return self._exact[stripped]
        for words in dict.fromkeys((_words(stripped), _bare(stripped))):
            for table in self._by_words:
                if words in table:
                    return table[words]
        return ()

    def resembling(self, written: str) -> Sequence[int]:
        """The names most like it, if they are like enough."""
        best = LIKENESS
        found: tuple[int, ...] = ()
        matcher = SequenceMatcher(autojunk=False)
        matcher.set_seq2(_bare(written))
        for name, positions in chain.from_iterable(table.items() for table in self._by_words):
            matcher.set_seq1(name)
            # The quick ratios are upper bounds.
            if matcher.real_quick_ratio() < best or matcher.quick_ratio() < best:
                continue
            ratio = matcher.ratio()
            if ratio > best:
                best, found = ratio, tuple(positions)
        return found

    def inside(self, written: str) -> list[tuple[int, int, Sequence[int]]]:
        """The names that it holds in quotation marks or letter by letter, each with start and end."""
        found: list[tuple[int, int, Sequence[int]]] = []
        for quoted in _QUOTED.finditer(written):
            positions = self.find(quoted[0])
            if positions:
                found.append((quoted.start(), quoted.end(), positions))
                written = f"{written[: quoted.start()]}{' ' * len(quoted[0])}{written[quoted.end() :]}"
        # Longer ones first, so that no name is found inside another.
        for name in sorted(self._exact, key=len, reverse=True):
            if len(name) > 2 and name in written:
                for at in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", written):
                    found.append((at.start(), at.end(), self._exact[name]))
                    written = f"{written[: at.start()]}{' ' * len(name)}{written[at.end() :]}"
        return sorted(found)

    def marked(self, said: str) -> tuple[str, list[Sequence[int]], list[str]]:
        """The text with a mark for each name in it, what the marks stand for, and the parts that are no name."""
        said = said.replace("\ue000", " ")
        parts = [(match.start(), match.end()) for match in _PART.finditer(said) if match[0].strip()]
        longest = 1 + max((len(_SEPARATOR.findall(name)) for name in self._exact), default=0)
        marks: list[tuple[int, int, Sequence[int]]] = []
        unknown: list[str] = []
        at = 0
        while at < len(parts):
            for count in range(min(longest, len(parts) - at), 0, -1):
                start, end = parts[at][0], parts[at + count - 1][1]
                found = self.find(said[start:end])
                if found:
                    marks.append((start, end, found))
                    break
            else:
                marks += self._guessed(said[start:end], start, unknown)
            at += count
        text: list[str] = []
        at = 0
        for number, (start, end, _) in enumerate(marks):
            text += [said[at:start], f" \ue000{number}\ue001 "]
            at = end
        return "".join([*text, said[at:]]), [positions for _, _, positions in marks], unknown

    def _guessed(self, written: str, start: int, unknown: list[str]) -> list[tuple[int, int, Sequence[int]]]:
        if len(unknown) >= _MISSPELLED:
            return []
        kinds = [KINDS.get(word, "o") for word in plain(written).split()]
        denies = set("xzueba") & set(kinds)
        similar = () if denies else self.resembling(written)
        if similar:
            return [(start, start + len(written), similar)]
        inside = self.inside(written)
        if not inside and "o" in kinds:
            unknown.append(" ".join(written.split())[:_SHOWN])
        return [(start + first, start + last, positions) for first, last, positions in inside]


def _words(text: str) -> str:
    return " ".join(WORD.findall(plain(text)))


def _bare(written: str) -> str:
    """The words of a part of an answer, without a bullet, a number or the word "section" in front."""
    return _words(_LEADING.sub("", written.strip(_AROUND), count=1))
