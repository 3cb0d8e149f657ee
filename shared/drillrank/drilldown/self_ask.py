"""Self-ask: a question is answered by follow-up questions, each answered from what a retriever finds.

Press et al. (2022), "Measuring and Narrowing the Compositionality Gap in Language Models"; D3 (Nair et al. 2023,
section 5.2) puts its retriever where the paper has a search engine.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from drillrank.dialogue import LLM, Dialogue, Usage, Workers, arun, run
from drillrank.errors import DrillrankWarning, InvalidInput, check_positive
from drillrank.passages import Passage, Ranked, check_query
from drillrank.prompts import ANSWER_PROMPT, SELF_ASK_PROMPT, check_places, filled
from drillrank.terms import WORD
from drillrank.tokens import count_tokens

Found = Sequence[Any]
Retrieve = Callable[[str], Found | Dialogue[Any]]

_FOLLOW_UP = re.compile(r"follow[\s-]*up(?:\s+question)?\s*\d*\W{0,3}:[\s*_]*(?P<said>[^\n]*\w[^\n]*)", re.IGNORECASE)
_FINAL = re.compile(r"final\s+answer(?:\s+is\b|\W{0,3}:)[\s:*_]*(?P<said>[^\n]*\w[^\n]*)", re.IGNORECASE)
_CONCLUDE = "\nSo the final answer is:"
_LONGEST = 2000  # characters of an answer that go on in the transcript


@dataclass(frozen=True, slots=True)
class FollowUp:
    """One follow-up question.

    Attributes:
        question: As the LLM asked it.
        answer: The LLM's answer from the passages; empty if it gave none.
        passages: What the retriever found.
    """

    question: str
    answer: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class SelfAskAnswer:
    """The final answer and how it came about.

    Attributes:
        answer: The final answer; empty if the LLM never gave one.
        steps: The follow-up questions, in order.
        usage: What all LLM calls cost, the retriever's included where it is a dialogue.
        problems: What the LLM did wrong and what was done about it.
    """

    answer: str
    steps: tuple[FollowUp, ...]
    usage: Usage = field(default_factory=Usage)
    problems: tuple[str, ...] = ()


class SelfAsk:
    r"""Answers multi-hop questions by asking and answering follow-up questions.

    Args:
        llm: Asks and answers: a function from prompt to answer, sync or async, or an object with `complete`.
        retrieve: From a question to passages, rankings of passages or strings, best first; or to a dialogue that ends
            with them, such as `lambda question: d3.dialogue(question, documents)`, whose calls then count here.
        max_steps: Most follow-up questions; then the final answer is asked for.
        max_prompt_tokens: Budget of the passages that one answer is read from: as many as fit, whole, at least one.
        on_failure: For a failed call: `"continue"` with what there is, or `"raise"`.
        workers: Most LLM calls at once, all questions of this object together.
        prompt: With `{question}` and `{transcript}`, which ends the prompt.
        answer_prompt: With `{contents}` and `{question}`.

    Raises:
        InvalidInput: a setting is out of its range.

    >>> def llm(prompt):
    ...     if "Contents: Emma" in prompt:
    ...         return "Jane Austen"
    ...     if "Jane Austen" in prompt.rpartition("Question:")[2]:
    ...         return "So the final answer is: Jane Austen"
    ...     return "Yes.\nFollow up: Who wrote Emma?"
    >>> result = SelfAsk(llm, lambda question: ["Emma is a novel by Jane Austen."]).answer("Whose novel is Emma?")
    >>> result.answer, [(step.question, step.answer) for step in result.steps], result.usage.calls
    ('Jane Austen', [('Who wrote Emma?', 'Jane Austen')], 3)
    """

    def __init__(
        self,
        llm: LLM,
        retrieve: Retrieve,
        *,
        max_steps: int = 5,
        max_prompt_tokens: int = 3000,
        on_failure: Literal["continue", "raise"] = "continue",
        workers: int = 4,
        prompt: str = SELF_ASK_PROMPT,
        answer_prompt: str = ANSWER_PROMPT,
    ) -> None:
        check_positive(max_steps=max_steps, max_prompt_tokens=max_prompt_tokens)
        if on_failure not in ("continue", "raise"):
            raise InvalidInput(f"on_failure is 'continue' or 'raise', not {on_failure!r}.")
        if not callable(retrieve):
            raise InvalidInput(f"retrieve is a function from a question to passages, not {retrieve!r:.100}.")
        self._llm = llm
        self._retrieve = retrieve
        self._max_steps = max_steps
        self._max_prompt_tokens = max_prompt_tokens
        self._on_failure = on_failure
        self._workers = Workers(workers)
        self._prompt = check_places(prompt, "question", "transcript")
        self._answer_prompt = check_places(answer_prompt, "contents", "question")

    def answer(self, question: str, *, on_step: Callable[[FollowUp], None] | None = None) -> SelfAskAnswer:
        """The final answer, whatever the LLM says; one `DrillrankWarning` tells what went wrong.

        Args:
            question: The question.
            on_step: Called with each follow-up question as soon as it is answered.

        Raises:
            InvalidInput: the question is blank, or the retriever returns something else than passages.
            LLMFailure: a call failed, and `on_failure` is `"raise"`.
        """
        usage = Usage()
        return run(self._dialogue(question, on_step, usage), self._llm, usage, workers=self._workers)

    async def aanswer(self, question: str, *, on_step: Callable[[FollowUp], None] | None = None) -> SelfAskAnswer:
        """As `answer`, without blocking the event loop; a plain retriever runs on a worker thread."""
        usage = Usage()
        return await arun(self._dialogue(question, on_step, usage), self._llm, workers=self._workers, usage=usage)

    def _dialogue(
        self, question: str, on_step: Callable[[FollowUp], None] | None, usage: Usage
    ) -> Dialogue[SelfAskAnswer]:
        check_query(question)
        steps: list[FollowUp] = []
        problems: list[str] = []
        transcript = ""
        final = ""
        while len(steps) < self._max_steps:
            said = yield from self._ask(filled(self._prompt, question=question, transcript=transcript), problems)
            follow_up, final = next_move(said)
            if not follow_up:
                break
            if any(follow_up.casefold() == step.question.casefold() for step in steps):
                problems.append(f"it asked {follow_up!r:.80} again: no more follow-up questions")
                break
            step = yield from self._answered(follow_up, problems)
            steps.append(step)
            if on_step:
                on_step(step)
            opening = " Yes." if len(steps) == 1 else ""
            transcript += f"{opening}\nFollow up: {step.question}\nIntermediate answer: {step.answer or 'not known'}"
        if not final:  # the steps are used up, or it said something else: let it finish the sentence
            opening = "" if steps else " No."
            prompt = filled(self._prompt, question=question, transcript=f"{transcript}{opening}{_CONCLUDE}")
            final = conclusion((yield from self._ask(prompt, problems)))
        if not final:
            problems.append("it gave no final answer: the last answer from passages stands in")
            final = next((step.answer for step in reversed(steps) if step.answer), "")
        if not final:
            final = (yield from self._answered(question, problems)).answer
        if problems:
            warnings.warn(f"Self-ask for {question!r:.100}: {'; '.join(problems)}.", DrillrankWarning, stacklevel=2)
        return SelfAskAnswer(final, tuple(steps), usage, tuple(problems))

    def _answered(self, question: str, problems: list[str]) -> Dialogue[FollowUp]:
        found = self._retrieve(question)
        if isinstance(found, Generator):
            found = yield from found
        if isinstance(found, str) or not isinstance(found, Iterable):
            raise InvalidInput(f"retrieve must return a list of passages, not a {type(found).__name__}.")
        passages = tuple(map(_passage, found))
        answer = ""
        if passages:
            contents = self._contents(passages)
            answer = yield from self._ask(filled(self._answer_prompt, contents=contents, question=question), problems)
        return FollowUp(question, " ".join(answer.split())[:_LONGEST], passages)

    def _contents(self, passages: Sequence[Passage]) -> str:
        """Passages, best first, as many as fit; the first one in any case."""
        left = self._max_prompt_tokens
        shown: list[str] = []
        for passage in passages:
            text = f"{passage.title}: {passage.text}" if passage.title else passage.text
            left -= count_tokens(text) + 1
            if shown and left < 0:
                break
            shown.append(text)
        return "\n".join(shown)

    def _ask(self, prompt: str, problems: list[str]) -> Dialogue[str]:
        [reply] = yield [prompt]
        if reply.failure and self._on_failure == "raise":
            raise reply.failure
        if reply.failure:
            problems.append(str(reply.failure))
        return reply.text


def next_move(said: str) -> tuple[str, str]:
    r"""The follow-up question and the final answer in what an LLM said; one of them at most, both may be empty.

    Whichever comes first counts: a model that goes on to answer itself is not listened to.

    >>> next_move("Yes.\nFollow up: How long is the Rhine?\nIntermediate answer: 3 km\nSo the final answer is: 3 km")
    ('How long is the Rhine?', '')
    >>> next_move("No. So the final answer is: Basel.")
    ('', 'Basel.')
    >>> next_move("I am not sure.")
    ('', '')
    """
    follow_up, final = _FOLLOW_UP.search(said), _FINAL.search(said)
    if follow_up and (not final or follow_up.start() < final.start()):
        return _plain(follow_up["said"]), ""
    return "", _plain(final["said"]) if final else ""


def conclusion(said: str) -> str:
    r"""The final answer in what follows "So the final answer is:": behind these words, or the first line with a word.

    >>> conclusion("So the final answer is: Basel"), conclusion(" Basel\n\nQuestion: another"), conclusion("...")
    ('Basel', 'Basel', '')
    """
    final = _FINAL.search(said)
    if final:
        return _plain(final["said"])
    first = next((line for line in said.splitlines() if WORD.search(line)), "")
    return "" if _FOLLOW_UP.search(first) else _plain(first)


def _plain(said: str) -> str:
    """On one line, without the marks of bold type."""
    return " ".join(said.replace("**", "").replace("__", "").split())[:_LONGEST]


def _passage(found: object) -> Passage:
    if isinstance(found, Ranked):
        found = found.passage
    if isinstance(found, str):
        return Passage(found)
    if not isinstance(found, Passage):
        raise InvalidInput(f"retrieve must return passages, rankings of them or strings; not a {type(found).__name__}.")
    return found
