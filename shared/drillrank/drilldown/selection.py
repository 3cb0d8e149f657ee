"""Selection an LLM to choose from a list: as few prompts as the budget allows, and an answer whatever it says.

D3 (Nair et al. 2023), sections 3.3.1 and 3.3.2: one prompt holds as many items as fit. No prompt is above its budget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

from drillrank.drilldown.answers import Choice, chosen_ids, chosen_names, said_yes
from drillrank.drilldown.evidence import Evidence
from drillrank.drilldown.settings import AnswerBy, OnEmpty
from drillrank.drilldown.tree import Deputy
from drillrank.drilldown.truncation import LEAST, fitting, shortened
from drillrank.errors import InvalidInput, LLMFailure, OnFailure
from drillrank.llm import Ask, Reply, Requests, strip_reasoning
from drillrank.prompts import Template, filled
from drillrank.text import TokenCount, count_tokens

By = AnswerBy | Literal["yes"]

_SPARE = 8  # tokens for what is put between items, and for the number after a name that is there twice
_SHOWN = 120  # characters of an answer that could not be used

IDS_SCHEMA = {
    "title": "RelevantIds",
    "description": "What is relevant for answering the question.",
    "type": "object",
    "properties": {"ids": {"type": "array", "items": {"type": "integer"}, "description": "Numbers, or an empty list."}},
    "required": ["ids"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Likelihoods:
    """Likelihood's view of items for one question: the choice where the LLM leaves a gap.

    Items are given by their places in a list. Nothing is scored before it is asked for.

    Attributes:
        evidence: Of the documents.
        question: The question.
        paragraphs: Of each item, positions of the paragraphs in it; a paragraph has itself.
    """

    evidence: Evidence
    question: str
    paragraphs: Sequence[Sequence[int]]

    def order(self, positions: Sequence[int]) -> list[int]:
        """All of them, those with the best paragraphs first."""
        best: dict[int, float] = {}
        for total, at in self._totals(positions):
            best[at] = max(total, best.get(at, total))
        return sorted(positions, key=best.__getitem__, reverse=True)

    def choose(self, positions: Sequence[int]) -> list[int]:
        """Those that hold what it takes for evidence."""
        totals = sorted(self._totals(positions), key=lambda pair: pair[0], reverse=True)
        return sorted({at for _, at in totals[: self.evidence.best([total for total, _ in totals])]})

    def _totals(self, positions: Sequence[int]) -> list[tuple[float, int]]:
        """S of each paragraph, and the place of its item."""
        inside = [(paragraph, at) for at in positions for paragraph in self.paragraphs[at]]
        scored = self.evidence.scored(self.question, [paragraph for paragraph, _ in inside])
        return [(total, at) for total, (_, at) in zip(scored.totals.tolist(), inside, strict=True)]


@dataclass(frozen=True, slots=True)
class Item:
    """Something to choose: a section with its summary, or a paragraph, which has no name."""

    text: str
    name: str = ""


class Chosen(NamedTuple):
    """What was chosen.

    Attributes:
        positions: Of the chosen items, rising.
        problems: What went wrong.
        deputies: Of items that likelihood decided about: why not the LLM.
    """

    positions: list[int]
    problems: list[str]
    deputies: dict[int, Deputy]


@dataclass(slots=True)
class Selection:
    """Budgets and policies of one question, and the calls that are left.

    Attributes:
        question: The question.
        max_prompt_tokens: Budget of one prompt; an item that is longer alone is shown without its middle.
        calls_left: How many more prompts may be sent.
        on_failure: Where a call fails or its answer cannot be read: `"continue"` with likelihood's choice, or raise.
        on_empty: What an answer means that chooses nothing: just that, or the choice of likelihood.
        count: Counts the tokens of a text.
    """

    question: str
    max_prompt_tokens: int
    calls_left: int
    on_failure: OnFailure = "continue"
    on_empty: OnEmpty = "nothing"
    count: TokenCount = count_tokens

    def check(self, *templates: Template) -> None:
        """Make sure that the question leaves room for something to choose from.

        Raises:
            InvalidInput: it does not.
        """
        room = min(map(self._room, templates))
        if room < LEAST:
            raise InvalidInput(
                f"The question has {self.count(self.question)} tokens; with its instruction it leaves {max(room, 0)} "
                f"of max_prompt_tokens={self.max_prompt_tokens} for what there is to choose from. Shorten it, or allow "
                "longer prompts."
            )

    def fits(self, template: Template, items: Sequence[Item], by: By) -> bool:
        """Whether one prompt can hold all items."""
        items = _distinct(items)
        return sum(map(self._size, items)) <= self._room(template) and self._over(template, items, by) <= 0

    def holds(self, template: Template, items: Sequence[Item], by: By) -> int:
        """How many of the first items one prompt can hold; at least one."""
        sizes = list(map(self._size, items))
        count = len(packed(sizes, range(len(items)), self._room(template))[0]) if items else 0
        while count > 1 and self._over(template, items[:count], by) > 0:
            count -= 1
        return count

    def choose(
        self, template: Template, items: Sequence[Item], likely: Likelihoods, *, by: By = "ids", spare: int = 0
    ) -> Requests[Chosen]:
        """Ask about all items, in several prompts at once if need be.

        Where too few calls are left for all, the likeliest items are asked about, and a problem says so. A blank answer
        chooses nothing, as the prompt has it, but a model that fails may give one, too: it is a problem.

        Args:
            template: With `{question}`, and `{outline}` or `{paragraphs}` where the items go.
            items: What to choose from.
            likely: The choice to fall back on.
            by: Whether the answer holds the items' names, or their numbers, or these as JSON; `"yes"` asks about each
                item alone, and the answer is yes or no.
            spare: Calls to leave for later steps.

        Raises:
            LLMFailure: a call failed or its answer was unusable, and `on_failure` is `"raise"`; the call's own error is
                its cause.
        """
        items, problems = self._offered(template, items, by)
        everything = range(len(items))
        groups = self._groups(template, items, likely, self.calls_left - spare, by, problems)
        queried = {at for group in groups for at in group}
        deputies: dict[int, Deputy] = {at: "budget" for at in everything if at not in queried}
        if not groups:
            return Chosen(likely.choose(everything) if items else [], problems, deputies)
        self.calls_left -= len(groups)
        schema = IDS_SCHEMA if by == "json" else None
        replies = yield [Ask(self._showing(template, [items[at] for at in group], by), schema) for group in groups]
        chosen: list[int] = []
        for group, reply in zip(groups, replies, strict=True):
            names = [items[at].name for at in group]
            choice = _read(reply.text, names, by)
            unusable = reply.failure is not None or not choice.usable
            by_likelihood = unusable or (not choice.positions and self.on_empty == "likelihood" and by != "yes")
            if problem := _problem(reply, choice):
                if unusable and self.on_failure == "raise":
                    raise reply.failure or LLMFailure(f"The LLM was asked to choose: {problem}.")
                problems.append(f"{problem}: chosen by likelihood" if by_likelihood else problem)
            if by_likelihood:
                best = likely.choose(group if by != "yes" else everything)
                chosen += [at for at in group if at in best]
                deputies |= dict.fromkeys(group, "failure" if unusable else "empty")
            else:
                chosen += [group[position] for position in choice.positions]
        return Chosen(sorted(chosen), problems, deputies)

    def _offered(self, template: Template, items: Sequence[Item], by: By) -> tuple[list[Item], list[str]]:
        """The items under different names, those that are too long for a prompt without their middle."""
        room = self._room(template)
        names = [shortened(item.name, room // 2 - _SPARE, self.count) for item in items]
        offered = _distinct([Item(item.text, name) for item, name in zip(items, names, strict=True)])
        cut = 0
        for at, item in enumerate(offered):
            if self._size(item) > room - 2 * _SPARE:  # near enough to the budget to be counted as it is shown
                alone = partial(self._alone, template, item.name, by)
                offered[at] = Item(fitting(item.text, self.max_prompt_tokens, alone, self.count), item.name)
            cut += (item.text, items[at].name) != (offered[at].text, names[at])
        problem = f"{cut} of {len(items)} items are too long for a prompt: shown without their middle"
        return offered, [problem] if cut else []

    def _alone(self, template: Template, name: str, by: By, text: str) -> str:
        return self._showing(template, [Item(text, name)], by)

    def _groups(
        self,
        template: Template,
        items: Sequence[Item],
        likely: Likelihoods,
        calls: int,
        by: By,
        problems: list[str],
    ) -> list[list[int]]:
        """Positions of the items of each prompt; fewer items if there are fewer calls left than it takes."""
        sizes = list(map(self._size, items))
        everything = range(len(items))
        if by == "yes":
            queried = sorted(likely.order(everything)[:calls]) if calls < len(items) else everything
            if len(queried) < len(items):
                problems.append(f"{len(items)} items need as many calls, {calls} are left: asked about the likeliest")
            return [[at] for at in queried]
        groups = self._within(template, items, sizes, everything, by)
        if len(groups) <= calls:
            return groups
        if calls < 1:
            problems.append(f"no call was left to ask about {len(items)} items: chosen by likelihood")
            return []
        order = likely.order(everything)
        room = self._room(template)
        few, many = 1, len(items)  # `few` fit, `many` do not
        while many - few > 1:
            middle = (few + many) // 2
            if len(packed(sizes, sorted(order[:middle]), room)) <= calls:
                few = middle
            else:
                many = middle
        while len(groups := self._within(template, items, sizes, sorted(order[:few]), by)) > calls:
            few -= 1
        problems.append(f"{len(items)} items need more than the {calls} calls left: asked about the likeliest {few}")
        return groups

    def _within(
        self, template: Template, items: Sequence[Item], sizes: Sequence[int], positions: Sequence[int], by: By
    ) -> list[list[int]]:
        """The positions in groups; sizes are estimates, so each prompt is counted as a whole."""
        room = self._room(template)
        while True:
            groups = packed(sizes, positions, room)
            several = [[items[at] for at in group] for group in groups if len(group) > 1]  # one alone has been counted
            over = max((self._over(template, group, by) for group in several), default=0)
            if over <= 0:
                return groups
            room -= over

    def _over(self, template: Template, items: Sequence[Item], by: By) -> int:
        """By how many tokens the prompt with these items is above the budget."""
        return self.count(self._showing(template, items, by)) - self.max_prompt_tokens

    def _showing(self, template: Template, items: Sequence[Item], by: By) -> str:
        return self._prompt(template, "\n".join(_shown(items, by)))

    def _room(self, template: Template) -> int:
        return self.max_prompt_tokens - self.count(self._prompt(template, ""))

    def _size(self, item: Item) -> int:
        return self.count(f"* Section: {item.name}\n{item.text}\n")

    def _prompt(self, template: Template, items: str) -> str:
        return filled(template, question=self.question, outline=items, paragraphs=items)


def packed(sizes: Sequence[int], positions: Sequence[int], room: int) -> list[list[int]]:
    """The positions in order, as many in each group as fit into the room; one that does not fit goes alone.

    >>> packed([3, 4, 9, 1, 1], range(5), room=7)
    [[0, 1], [2], [3, 4]]
    """
    groups: list[list[int]] = []
    left = 0
    for position in positions:
        if not groups or sizes[position] > left:
            groups.append([])
            left = room
        groups[-1].append(position)
        left -= sizes[position]
    return groups


def _distinct(items: Sequence[Item]) -> list[Item]:
    """The items, equal names told apart by numbers."""
    taken = {item.name for item in items}
    seen: Counter[str] = Counter()
    distinct = []
    for item in items:
        seen[item.name] += 1
        name = item.name
        while item.name and seen[item.name] > 1 and name in taken:
            name = f"{item.name} ({seen[item.name]})"
            seen[item.name] += name in taken
        taken.add(name)
        distinct.append(Item(item.text, name))
    return distinct


def _shown(items: Sequence[Item], by: By) -> list[str]:
    """The lines of a prompt."""
    if by == "names":
        return [f"* Section: {item.name}\n{item.text}" for item in items]
    if by == "yes":
        return [item.text for item in items]
    return [
        f"[{number}] {item.name}\n{item.text}" if item.name else f"[{number}] {item.text}"
        for number, item in enumerate(items, start=1)
    ]


def _read(answer: str, names: Sequence[str], by: By) -> Choice:
    if by == "yes":
        return said_yes(answer)
    return chosen_names(answer, names) if by == "names" else chosen_ids(answer, len(names))


def _problem(reply: Reply, choice: Choice) -> str:
    if reply.failure:
        return f"{reply.failure}"
    if not choice.usable:
        return f"the answer {' '.join(reply.text.split())[:_SHOWN]!r} chooses nothing that was offered"
    if not (strip_reasoning(reply.text) or "").strip():
        return "the answer was blank, which stands for nothing relevant"
    if choice.unknown:
        listed = ", ".join(map(repr, choice.unknown[:3]))
        more = f" and {len(choice.unknown) - 3} more" if len(choice.unknown) > 3 else ""
        return f"the answer names what was not offered: {listed}{more}: left out"
    return ""
