"""Budget of one question: tokens of a prompt, and calls of the LLM. No other module counts them."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from drillrank.drilldown.problems import Problem, ProblemKind
from drillrank.drilldown.prompts import ListedText, SelectionPrompt
from drillrank.errors import InvalidInput
from drillrank.prompts import MIN_PROMPT_ROOM, truncate_middle, truncate_to_budget
from drillrank.text import TokenCount

_SEPARATOR_TOKENS = 8  # between texts, and for the number after a name that appears twice


@dataclass(frozen=True, slots=True)
class PromptPlan:
    """Prompts that the budget pays for.

    Attributes:
        listed: Texts as they are shown, one for each candidate.
        groups: Indices into `listed` for each prompt.
        problems: What the budget did not allow.
    """

    listed: Sequence[ListedText]
    groups: Sequence[Sequence[int]]
    problems: Sequence[Problem]


class Budget:
    """Token limit of each prompt and number of LLM calls left. Each question has its own budget.

    Args:
        question: The question, part of every prompt.
        max_prompt_tokens: Token limit of a prompt.
        max_calls: Limit on the number of calls.
        count_tokens: Function that counts the tokens of a text.
    """

    def __init__(self, question: str, max_prompt_tokens: int, max_calls: int, count_tokens: TokenCount) -> None:
        self.question, self.max_prompt_tokens, self.calls_left = question, max_prompt_tokens, max_calls
        self.count_tokens = count_tokens
        self._size = cache(lambda text: count_tokens(f"* Section: {text.name}\n{text.text}\n"))

    def check_room(self, *prompts: SelectionPrompt) -> None:
        """Check that the question leaves room for candidates in every prompt.

        Raises:
            InvalidInput: The question is too long.
        """
        room = min(map(self._room, prompts))
        if room < MIN_PROMPT_ROOM:
            raise InvalidInput(
                f"The question has {self.count_tokens(self.question)} tokens; with its instruction it leaves "
                f"{max(room, 0)} of max_prompt_tokens={self.max_prompt_tokens} for what there is to choose from. "
                "Shorten it, or allow longer prompts."
            )

    def fits(self, prompt: SelectionPrompt, texts: Sequence[ListedText]) -> bool:
        """Return True if one prompt has room for all texts."""
        return self.count_fitting(prompt, _number_equal_names(texts)) == len(texts)

    def count_fitting(self, prompt: SelectionPrompt, texts: Sequence[ListedText]) -> int:
        """Return how many of the first texts fit into one prompt; at least 1."""
        return len(self._pack(prompt, texts, range(len(texts)))[0])

    def plan(
        self,
        prompt: SelectionPrompt,
        texts: Sequence[ListedText],
        rank_by_likelihood: Callable[[], Sequence[int]],
        reserved_calls: int = 0,
    ) -> PromptPlan:
        """Group texts into as few prompts as possible, and pay for one call each.

        A text that is too long for a prompt loses its middle. If too few calls are left for all texts, only the
        likeliest are asked about.

        Args:
            prompt: Renders the prompts.
            texts: Texts of the candidates, in document order.
            rank_by_likelihood: Returns the indices of all texts, likeliest first. It is called only if calls run short.
            reserved_calls: Calls to keep for later steps.
        """
        listed, n_truncated = self._truncate_all(prompt, texts)
        problems = []
        if n_truncated:
            text = f"{n_truncated} of {len(texts)} items are too long for a prompt: shown without their middle"
            problems.append(Problem(ProblemKind.TRUNCATED_TEXT, text))
        group = self._group_one_by_one if prompt.asks_one_by_one else self._group
        groups, problem = group(prompt, listed, rank_by_likelihood, self.calls_left - reserved_calls)
        self.calls_left -= len(groups)
        if problem:
            problems.append(Problem(ProblemKind.CALL_LIMIT, problem))
        return PromptPlan(listed, groups, problems)

    def _truncate_all(self, prompt: SelectionPrompt, texts: Sequence[ListedText]) -> tuple[list[ListedText], int]:
        """Return the texts with unique names, each short enough for a prompt, and how many lost their middle."""
        longest_name = self._room(prompt) // 2 - _SEPARATOR_TOKENS
        short = [replace(text, name=truncate_middle(text.name, longest_name, self.count_tokens)) for text in texts]
        listed = [self._truncate(prompt, text) for text in _number_equal_names(short)]
        n_truncated = sum(
            text.name != named.name or text.text != truncated.text
            for text, named, truncated in zip(texts, short, listed, strict=True)
        )
        return listed, n_truncated

    def _truncate(self, prompt: SelectionPrompt, text: ListedText) -> ListedText:
        """Drop the middle of a text that no prompt has room for."""
        if self._size(text) <= self._room(prompt) - 2 * _SEPARATOR_TOKENS:  # clearly short enough
            return text

        def render(shortened: str) -> str:
            return prompt.render(self.question, [replace(text, text=shortened)])

        return replace(text, text=truncate_to_budget(text.text, self.max_prompt_tokens, render, self.count_tokens))

    def _group_one_by_one(
        self,
        _prompt: SelectionPrompt,
        listed: Sequence[ListedText],
        rank_by_likelihood: Callable[[], Sequence[int]],
        calls: int,
    ) -> tuple[list[list[int]], str]:
        """Return one group for each text, as far as there are calls, and a problem if there are too few."""
        if calls >= len(listed):
            return [[index] for index in range(len(listed))], ""
        likeliest = sorted(rank_by_likelihood()[: max(calls, 0)])
        problem = f"{len(listed)} items need as many calls, {calls} are left: asked about the likeliest"
        return [[index] for index in likeliest], problem

    def _group(
        self,
        prompt: SelectionPrompt,
        listed: Sequence[ListedText],
        rank_by_likelihood: Callable[[], Sequence[int]],
        calls: int,
    ) -> tuple[list[list[int]], str]:
        """Return as few groups as possible, and a problem if there are too few calls for all texts."""
        groups = self._pack(prompt, listed, range(len(listed)), calls)
        if len(groups) <= calls:
            return groups, ""
        if calls < 1:
            return [], f"no call was left to ask about {len(listed)} items: chosen by likelihood"
        ranking = rank_by_likelihood()

        def pack_likeliest(n: int) -> list[list[int]]:
            return self._pack(prompt, listed, sorted(ranking[:n]), calls)

        n_fitting = bisect_right(range(1, len(listed)), calls, key=lambda n: len(pack_likeliest(n)))
        problem = f"{len(listed)} items need more than the {calls} calls left: asked about the likeliest {n_fitting}"
        return pack_likeliest(n_fitting), problem

    def _pack(
        self, prompt: SelectionPrompt, listed: Sequence[ListedText], indices: Sequence[int], calls: int | None = None
    ) -> list[list[int]]:
        """Return the indices in order, grouped so that each prompt is full. A text that fits nowhere is alone.

        Packing stops early if it needs more than `calls` prompts.
        """
        room = self._room(prompt)
        sizes = {index: self._size(listed[index]) for index in indices}
        while True:
            groups = pack_batches(sizes, indices, room)
            if calls is not None and len(groups) > calls:
                return groups
            # Sizes are estimates, so count each prompt again as a whole. A single text has been counted before.
            batches = [[listed[index] for index in group] for group in groups if len(group) > 1]
            sizes_of_prompts = (self.count_tokens(prompt.render(self.question, batch)) for batch in batches)
            excess = max((size - self.max_prompt_tokens for size in sizes_of_prompts), default=0)
            if excess <= 0:
                return groups
            room -= excess

    def _room(self, prompt: SelectionPrompt) -> int:
        """Return how many tokens the instruction and the question leave in a prompt."""
        return self.max_prompt_tokens - self.count_tokens(prompt.render(self.question, []))


def pack_batches(sizes: Mapping[int, int], indices: Sequence[int], room: int) -> list[list[int]]:
    """Return indices in order, as many in each group as fit into the room. An index that does not fit is alone.

    >>> pack_batches(dict(enumerate([3, 4, 9, 1, 1])), range(5), room=7)
    [[0, 1], [2], [3, 4]]
    """
    groups: list[list[int]] = []
    room_left = 0
    for index in indices:
        if not groups or sizes[index] > room_left:
            groups.append([])
            room_left = room
        groups[-1].append(index)
        room_left -= sizes[index]
    return groups


def _number_equal_names(texts: Sequence[ListedText]) -> list[ListedText]:
    """Return the texts with a number after each name that appeared before, since the LLM chooses by name."""
    taken = {text.name for text in texts}
    times: Counter[str] = Counter()
    numbered = []
    for text in texts:
        times[text.name] += 1
        name = text.name
        while text.name and times[text.name] > 1 and name in taken:
            name = f"{text.name} ({times[text.name]})"
            times[text.name] += name in taken
        taken.add(name)
        numbered.append(ListedText(text.text, name))
    return numbered
