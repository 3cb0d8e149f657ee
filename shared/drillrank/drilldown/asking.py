"""Asking an LLM to choose from a list: as few prompts as the budget allows, and an answer whatever it says.

D3 (Nair et al. 2023), sections 3.3.1 and 3.3.2: one prompt holds as many items as fit, and none is ever cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from drillrank.dialogue import Dialogue, Reply
from drillrank.drilldown.answers import Choice, chosen_ids, chosen_names
from drillrank.errors import LLMFailure
from drillrank.prompts import Template, filled
from drillrank.structured import StructuredPrompt
from drillrank.tokens import TokenCount, count_tokens

_SHOWN = 120  # characters of an answer that could not be used

AnswerBy = Literal["names", "ids", "json"]

IDS_SCHEMA = {
    "title": "RelevantIds",
    "description": "What is relevant for answering the question.",
    "type": "object",
    "properties": {"ids": {"type": "array", "items": {"type": "integer"}, "description": "Numbers, or an empty list."}},
    "required": ["ids"],
    "additionalProperties": False,
}


class Likely(Protocol):
    """What likelihood says about items, given by their positions."""

    def order(self, positions: Sequence[int], /) -> list[int]:
        """All of them, best first."""
        ...

    def choose(self, positions: Sequence[int], /) -> list[int]:
        """Those that it would choose, at least one."""
        ...


@dataclass(frozen=True, slots=True)
class Item:
    """Something to choose: a section with its summary, or a paragraph, which has no name."""

    text: str
    name: str = ""


@dataclass(slots=True)
class Asking:
    """Budgets and policies of one question, and the calls that are left.

    Attributes:
        question: The question.
        max_prompt_tokens: Budget of one prompt; a single item that is longer goes alone, whole.
        calls_left: How many more prompts may be sent.
        on_failure: Where a call fails or its answer cannot be used: choose by likelihood, or raise.
        on_empty: What an answer means that chooses nothing: just that, or the choice of likelihood.
        count: Counts the tokens of a text.
    """

    question: str
    max_prompt_tokens: int
    calls_left: int
    on_failure: Literal["likelihood", "raise"] = "likelihood"
    on_empty: Literal["nothing", "likelihood"] = "nothing"
    count: TokenCount = count_tokens

    def fits(self, template: Template, items: Sequence[Item]) -> bool:
        """Whether one prompt can hold all items."""
        return sum(map(self._size, _distinct(items))) <= self._room(template)

    def holds(self, template: Template, items: Sequence[Item]) -> int:
        """How many of the first items one prompt can hold; at least one."""
        return len(packed(list(map(self._size, items)), range(len(items)), self._room(template))[0]) if items else 0

    def choose(
        self, template: Template, items: Sequence[Item], likely: Likely, *, by: AnswerBy = "ids", spare: int = 0
    ) -> Dialogue[tuple[list[int], list[str]]]:
        """Ask about all items, in several prompts at once if need be.

        Where too few calls are left for all, the likeliest items are asked about, and a problem says so.

        Args:
            template: With `{question}`, and `{outline}` or `{paragraphs}` where the items go.
            items: What to choose from.
            likely: The choice to fall back on.
            by: Whether the answer holds the items' names, or their numbers, or these as JSON.
            spare: Calls to leave for later steps.

        Returns:
            Positions of the chosen items, rising, and what went wrong.

        Raises:
            LLMFailure: a call failed or its answer was unusable, and `on_failure` is `"raise"`.
        """
        items = _distinct(items)
        everything = range(len(items))
        groups, problems = self._groups(template, items, likely, self.calls_left - spare)
        if not groups:
            return likely.choose(everything) if items else [], problems
        self.calls_left -= len(groups)
        prompts = [self._prompt(template, "\n".join(_shown([items[at] for at in group], by))) for group in groups]
        replies = yield [StructuredPrompt(prompt, IDS_SCHEMA) for prompt in prompts] if by == "json" else prompts
        chosen: list[int] = []
        for group, reply in zip(groups, replies, strict=True):
            names = [items[at].name for at in group]
            choice = chosen_names(reply.text, names) if by == "names" else chosen_ids(reply.text, len(group))
            unusable = reply.failure is not None or not choice.usable
            if problem := _problem(reply, choice):
                if unusable and self.on_failure == "raise":
                    raise reply.failure or LLMFailure(problem)
                problems.append(problem)
            if unusable or (not choice.positions and self.on_empty == "likelihood"):
                chosen += likely.choose(group)
            else:
                chosen += [group[position] for position in choice.positions]
        return sorted(chosen), problems

    def _groups(
        self, template: Template, items: Sequence[Item], likely: Likely, calls: int
    ) -> tuple[list[list[int]], list[str]]:
        """Positions of the items of each prompt; fewer items if there are fewer calls left than it takes."""
        room = self._room(template)
        sizes = list(map(self._size, items))
        groups = packed(sizes, range(len(items)), room)
        if len(groups) <= calls:
            longest = max(sizes, default=0)
            if longest > room:
                return groups, [f"an item of {longest} tokens is longer than the {max(room, 0)} left of the budget"]
            return groups, []
        if calls < 1:
            return [], [f"no call was left to ask about {len(items)} items: chosen by likelihood"]
        order = likely.order(range(len(items)))
        few, many = 1, len(items)  # `few` fit, `many` do not
        while many - few > 1:
            middle = (few + many) // 2
            if len(packed(sizes, sorted(order[:middle]), room)) <= calls:
                few = middle
            else:
                many = middle
        problem = f"{len(items)} items need more than the {calls} calls left: asked about the likeliest {few}"
        return packed(sizes, sorted(order[:few]), room), [problem]

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


def _shown(items: Sequence[Item], by: AnswerBy) -> list[str]:
    """The lines of a prompt."""
    if by == "names":
        return [f"* Section: {item.name}\n{item.text}" for item in items]
    return [
        f"[{number}] {item.name}\n{item.text}" if item.name else f"[{number}] {item.text}"
        for number, item in enumerate(items, start=1)
    ]


def _problem(reply: Reply, choice: Choice) -> str:
    if reply.failure:
        return f"{reply.failure}"
    if not choice.usable:
        return f"the answer {' '.join(reply.text.split())[:_SHOWN]!r} chooses nothing that was offered"
    if choice.unknown:
        listed = ", ".join(map(repr, choice.unknown[:3]))
        more = f" and {len(choice.unknown) - 3} more" if len(choice.unknown) > 3 else ""
        return f"the answer names what was not offered: {listed}{more}"
    return ""
