"""Selection an LLM to choose from a list: as few prompts as the budget allows, and an answer whatever it says.

D3 (Nair et al. 2023), sections 3.3.1 and 3.3.2: one prompt holds as many items as fit. No prompt is above its budget.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, NamedTuple

from drillrank.drilldown.answers import Choice, chosen_ids, chosen_names, said_yes
from drillrank.drilldown.evidence import Evidence
from drillrank.drilldown.settings import D3Settings
from drillrank.errors import InvalidInput, LLMFailure
from drillrank.llm import LLMRequest, Reply, Requests, strip_reasoning
from drillrank.prompts import MIN_PROMPT_ROOM, Template, fill_template, truncate_middle, truncate_to_budget
from drillrank.text import TokenCount

By = Literal["names", "ids", "json", "yes"]
Deputy = Literal["budget", "failure"]
"""Why likelihood decided in the LLM's place: no call was left, or the answer was unusable."""

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


class Selection:
    """Budgets and policies of one question, and the calls that are left.

    Args:
        question: The question.
        settings: Of `D3`: the budget of a prompt (an item that is longer alone is shown without its middle), of calls,
            and what failures mean.
        count: Counts the tokens of a text.
    """

    def __init__(self, question: str, settings: D3Settings, count: TokenCount) -> None:
        self.question, self.settings, self.count = question, settings, count
        self._calls_left = settings.max_calls
        self._size = cache(lambda item: count(f"* Section: {item.name}\n{item.text}\n"))

    def check(self, *templates: Template) -> None:
        """Make sure that the question leaves room for something to choose from.

        Raises:
            InvalidInput: it does not.
        """
        room = min(map(self._room, templates))
        if room < MIN_PROMPT_ROOM:
            raise InvalidInput(
                f"The question has {self.count(self.question)} tokens; with its instruction it leaves {max(room, 0)} "
                f"of max_prompt_tokens={self.settings.max_prompt_tokens} for what there is to choose from. Shorten it, "
                "or allow longer prompts."
            )

    def fits(self, template: Template, items: Sequence[Item], by: By) -> bool:
        """Whether one prompt can hold all items."""
        return self.holds(template, _distinct(items), by) == len(items)

    def holds(self, template: Template, items: Sequence[Item], by: By) -> int:
        """How many of the first items one prompt can hold; at least one."""
        return len(self._packed(template, items, range(len(items)), by)[0])

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
        groups = self._groups(template, items, likely, self._calls_left - spare, by, problems)
        queried = {at for group in groups for at in group}
        deputies: dict[int, Deputy] = {at: "budget" for at in everything if at not in queried}
        if not groups:
            return Chosen(likely.choose(everything) if items else [], problems, deputies)
        self._calls_left -= len(groups)
        schema = IDS_SCHEMA if by == "json" else None
        replies = yield [
            LLMRequest(self._prompt(template, [items[at] for at in group], by), schema) for group in groups
        ]
        chosen: list[int] = []
        for group, reply in zip(groups, replies, strict=True):
            choice = _read(reply.text, [items[at].name for at in group], by)
            unusable = reply.failure is not None or not choice.usable
            if problem := _problem(reply, choice):
                if unusable and self.settings.on_failure == "raise":
                    raise reply.failure or LLMFailure(f"The LLM was asked to choose: {problem}.")
                problems.append(f"{problem}: chosen by likelihood" if unusable else problem)
            if unusable:
                best = likely.choose(group if by != "yes" else everything)
                chosen += [at for at in group if at in best]
                deputies |= dict.fromkeys(group, "failure")
            else:
                chosen += [group[position] for position in choice.positions]
        return Chosen(sorted(chosen), problems, deputies)

    def _offered(self, template: Template, items: Sequence[Item], by: By) -> tuple[list[Item], list[str]]:
        """The items under different names, those that are too long for a prompt without their middle."""
        room = self._room(template)
        short = [replace(item, name=truncate_middle(item.name, room // 2 - _SPARE, self.count)) for item in items]
        offered = [self._cut(template, item, by) for item in _distinct(short)]
        pairs = zip(items, short, offered, strict=True)
        cut = sum(item.name != named.name or item.text != shown.text for item, named, shown in pairs)
        problem = f"{cut} of {len(items)} items are too long for a prompt: shown without their middle"
        return offered, [problem] if cut else []

    def _cut(self, template: Template, item: Item, by: By) -> Item:
        """The item, without its middle if no prompt can hold it."""
        if self._size(item) <= self._room(template) - 2 * _SPARE:  # else counted as it is shown
            return item

        def prompt(text: str) -> str:
            return self._prompt(template, [replace(item, text=text)], by)

        return replace(item, text=truncate_to_budget(item.text, self.settings.max_prompt_tokens, prompt, self.count))

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
        everything = range(len(items))
        if by == "yes":
            queried = sorted(likely.order(everything)[:calls]) if calls < len(items) else everything
            if len(queried) < len(items):
                problems.append(f"{len(items)} items need as many calls, {calls} are left: asked about the likeliest")
            return [[at] for at in queried]
        groups = self._packed(template, items, everything, by, calls)
        if len(groups) <= calls:
            return groups
        if calls < 1:
            problems.append(f"no call was left to ask about {len(items)} items: chosen by likelihood")
            return []
        order = likely.order(everything)

        def likeliest(number: int) -> list[list[int]]:
            return self._packed(template, items, sorted(order[:number]), by, calls)

        few = bisect_right(range(1, len(items)), calls, key=lambda number: len(likeliest(number)))
        problems.append(f"{len(items)} items need more than the {calls} calls left: asked about the likeliest {few}")
        return likeliest(few)

    def _packed(
        self, template: Template, items: Sequence[Item], positions: Sequence[int], by: By, calls: int | None = None
    ) -> list[list[int]]:
        """The positions in order, as many in each group as a prompt holds; one that fits into none goes alone.

        Sizes are estimates, so each prompt is counted as a whole, unless there are more than so many calls.
        """
        room = self._room(template)
        sizes = {at: self._size(items[at]) for at in positions}
        while True:
            groups = packed(sizes, positions, room)
            if calls is not None and len(groups) > calls:
                return groups
            several = [[items[at] for at in group] for group in groups if len(group) > 1]  # one alone has been counted
            prompts = (self._prompt(template, group, by) for group in several)
            over = max((self.count(prompt) - self.settings.max_prompt_tokens for prompt in prompts), default=0)
            if over <= 0:
                return groups
            room -= over

    def _room(self, template: Template) -> int:
        return self.settings.max_prompt_tokens - self.count(self._prompt(template, [], "ids"))

    def _prompt(self, template: Template, items: Sequence[Item], by: By) -> str:
        shown = "\n".join(_shown(items, by))
        return fill_template(template, question=self.question, outline=shown, paragraphs=shown)


def packed(sizes: Mapping[int, int], positions: Sequence[int], room: int) -> list[list[int]]:
    """The positions in order, as many in each group as fit into the room; one that does not fit goes alone.

    >>> packed(dict(enumerate([3, 4, 9, 1, 1])), range(5), room=7)
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
