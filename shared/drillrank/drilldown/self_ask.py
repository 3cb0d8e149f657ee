"""Self-ask: a question is answered by follow-up questions, each answered from what a retriever finds.

Press et al. (2022), "Measuring and Narrowing the Compositionality Gap in Language Models"; D3 (Nair et al. 2023,
section 5.2) puts its retriever where the paper has a search engine.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from drillrank.drilldown.answering import ANSWER_PROMPT, Reader, check_room
from drillrank.errors import InvalidInput, OnFailure, check_positive, warn
from drillrank.likelihood.chat import load_llm
from drillrank.llm import (
    LLM,
    LLMRequest,
    Reply,
    Requests,
    RetrievalRequest,
    Usage,
    arun,
    is_async,
    run,
    strip_reasoning,
)
from drillrank.passages import Passage, Ranked, check_query
from drillrank.prompts import Template, check_placeholders, fill_template, truncate_to_budget
from drillrank.settings import check_one_of
from drillrank.text import WORD, Tokens, token_counter

# The scaffold is the paper's, the worked examples are ours. The model goes on writing
# behind the transcript; what it says after "Follow up:" is asked of a retriever.
SELF_ASK_PROMPT = """Question: Which of the two rivers is longer, the Rhine or the Thames?
Are follow up questions needed here: Yes.
Follow up: How long is the Rhine?
Intermediate answer: The Rhine is 1,230 km long.
Follow up: How long is the Thames?
Intermediate answer: The Thames is 346 km long.
So the final answer is: The Rhine

Question: In which country was the author of Emma born?
Are follow up questions needed here: Yes.
Follow up: Who is the author of Emma?
Intermediate answer: Jane Austen wrote Emma.
Follow up: In which country was Jane Austen born?
Intermediate answer: Jane Austen was born in England.
So the final answer is: England

Question: Who wrote Emma?
Are follow up questions needed here: No.
So the final answer is: Jane Austen

Question: {question}
Are follow up questions needed here:{transcript}"""

_FOLLOW_UP = re.compile(
    r"follow[\s-]*up(?:\s+question)?\s*\d*\W{0,3}:[\s*_]*(?![\s*_])(?P<said>[^\n]*\w[^\n]*)", re.IGNORECASE
)
_FINAL = re.compile(r"final\s+answer(?:\s+is\b|\W{0,3}:)[\s:*_]*(?![\s:*_])(?P<said>[^\n]*\w[^\n]*)", re.IGNORECASE)
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
        usage: What all LLM calls cost, those of a retriever included whose results have a `usage`, as those of `D3`.
        problems: What the LLM did wrong and what was done about it.
    """

    answer: str
    steps: tuple[FollowUp, ...]
    usage: Usage = field(default_factory=Usage)
    problems: tuple[str, ...] = ()


@dataclass
class _Progress:
    """How far one question has got."""

    question: str
    usage: Usage
    steps: list[FollowUp] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    transcript: str = ""


class SelfAsk:
    r"""Answers multi-hop questions by asking and answering follow-up questions.

    Args:
        llm: Asks and answers: a function from prompt to answer, sync or async, or an object with `complete` and, if it
            has one, `acomplete`.
        retrieve: From a question to passages, rankings of passages or strings, best first, as a list or one after the
            other. A function, sync or async, or an object with `retrieve` and, if it has one, `aretrieve`. What
            `lambda question: d3.retrieve(question, documents)` spends counts here, too.
        max_steps: Most follow-up questions; then the final answer is asked for.
        max_prompt_tokens: Budget of a prompt. An answer is read from as many whole passages as fit; if not even the
            first one does, its middle is left out, as it is of a transcript that is too long.
        tokens: What counts the tokens of a text: see `drillrank.text.token_counter`.
        prompt: Asks for the next step: a template with `{question}` and `{transcript}`, which ends the prompt; or a
            function of these.
        answer_prompt: Asks for an answer from passages: a template with `{contents}` and `{question}`, or a function of
            these.
        on_failure: Where a call fails, or brings nothing of use: `"continue"` with what there is without it, and a
            `DrillrankWarning`; or `"raise"`.

    Raises:
        InvalidInput: a setting is out of its range, or a prompt lacks a place.

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
        llm: LLM | str,
        retrieve: object,
        *,
        max_steps: int = 5,
        max_prompt_tokens: int = 3000,
        tokens: Tokens = None,
        prompt: Template = SELF_ASK_PROMPT,
        answer_prompt: Template = ANSWER_PROMPT,
        on_failure: OnFailure = "continue",
    ) -> None:
        check_positive(max_steps=max_steps, max_prompt_tokens=max_prompt_tokens)
        check_one_of(OnFailure, on_failure=on_failure)
        self.llm = load_llm(llm)
        self.retrieve = retrieve
        self.max_steps = max_steps
        self.max_prompt_tokens = max_prompt_tokens
        self.prompt = check_placeholders(prompt, "question", "transcript")
        self.answer_prompt = check_placeholders(answer_prompt, "contents", "question")
        self.on_failure = on_failure
        self._count = token_counter(tokens)
        self._reader = Reader(self.answer_prompt, max_prompt_tokens, self._count, cites=False)
        self._handlers("retrieve", "aretrieve")

    def answer(self, question: str) -> SelfAskAnswer:
        """The final answer, whatever the LLM says; one `DrillrankWarning` tells what went wrong.

        Raises:
            InvalidInput: the question is blank or too long for a prompt, the retriever returns something else than
                passages, or the LLM or the retriever is asynchronous.
            LLMFailure: a call failed, and `on_failure` is `"raise"`.
        """
        *_, last = self.stream(question)
        return cast("SelfAskAnswer", last)

    async def aanswer(self, question: str) -> SelfAskAnswer:
        """As `answer`, without blocking the event loop; what is not asynchronous runs on worker threads."""
        return cast("SelfAskAnswer", [item async for item in self.astream(question)][-1])

    def stream(self, question: str) -> Iterator[FollowUp | SelfAskAnswer]:
        """Each follow-up question as soon as it is answered, and the final answer at the end; see `answer`."""
        handlers = self._handlers("retrieve", "aretrieve", synchronous=True)
        progress = _Progress(question, Usage(count=self._count))
        while True:
            item = run(self._next(progress), self.llm, handlers, usage=progress.usage)
            yield item
            if isinstance(item, SelfAskAnswer):
                return

    async def astream(self, question: str) -> AsyncIterator[FollowUp | SelfAskAnswer]:
        """As `stream`, without blocking the event loop."""
        handlers = self._handlers("aretrieve", "retrieve")
        progress = _Progress(question, Usage(count=self._count))
        while True:
            item = await arun(self._next(progress), self.llm, handlers, usage=progress.usage)
            yield item
            if isinstance(item, SelfAskAnswer):
                return

    def _handlers(self, *names: str, synchronous: bool = False) -> dict[type, Callable[[RetrievalRequest], Any]]:
        """The retriever, by the first of these methods that it has, or itself a function."""
        methods = [getattr(self.retrieve, name, None) for name in names]
        function: Any = next(filter(callable, [*methods, self.retrieve]), None)
        if function is None:
            raise InvalidInput(f"retrieve is a function from a question to passages, not {self.retrieve!r:.100}.")
        if synchronous and is_async(function):
            raise InvalidInput(f"{self.retrieve!r:.100} cannot be asked synchronously: use the asynchronous method.")
        return {RetrievalRequest: lambda request: function(request.query)}

    def _next(self, progress: _Progress) -> Requests[FollowUp | SelfAskAnswer]:
        """The next follow-up question with its answer; at the end, the final answer."""
        question, steps, problems = progress.question, progress.steps, progress.problems
        if not steps:
            check_room(
                check_query(question),
                self._count,
                self.max_prompt_tokens,
                fill_template(self.prompt, question=question, transcript=""),
                fill_template(self.answer_prompt, contents="", question=question),
            )
        final = ""
        if len(steps) < self.max_steps:
            reply = yield from self._ask(self._asking(question, progress.transcript), problems)
            follow_up, final = next_move(reply)
            if any(follow_up.casefold() == step.question.casefold() for step in steps):
                problems.append(f"it asked {follow_up!r:.80} again: no more follow-up questions")
            elif follow_up:
                step = yield from self._answered(follow_up, progress)
                steps.append(step)
                opening = " Yes." if len(steps) == 1 else ""
                answer = step.answer or "not known"
                progress.transcript += f"{opening}\nFollow up: {step.question}\nIntermediate answer: {answer}"
                return step
        if not final:  # the steps are used up, or it said something else: let it finish the sentence
            opening = "" if steps else " No."
            prompt = self._asking(question, f"{progress.transcript}{opening}{_CONCLUDE}")
            final = conclusion((yield from self._ask(prompt, problems)))
        if not final:
            problems.append("it gave no final answer: the last answer from passages stands in")
            final = next((step.answer for step in reversed(steps) if step.answer), "")
        if not final:
            final = (yield from self._answered(question, progress)).answer
        if problems:
            warn(f"Self-ask for {question!r:.100}: {'; '.join(problems)}.")
        return SelfAskAnswer(final, tuple(steps), progress.usage, tuple(problems))

    def _answered(self, question: str, progress: _Progress) -> Requests[FollowUp]:
        [found] = yield [RetrievalRequest(question, 0)]
        if isinstance(usage := getattr(found, "usage", None), Usage):
            progress.usage.include(usage)
        if isinstance(found, str) or not isinstance(found, Iterable):
            raise InvalidInput(f"retrieve must return a list of passages, not a {type(found).__name__}.")
        passages = tuple(map(_passage, found))
        answer = ""
        if passages:
            prompt, _ = self._reader.asking(question, passages)
            answer = yield from self._ask(prompt, progress.problems)
        return FollowUp(question, " ".join(answer.split())[:_LONGEST], passages)

    def _asking(self, question: str, transcript: str) -> str:
        """Asks for the next step."""

        def prompt(shown: str) -> str:
            return fill_template(self.prompt, question=question, transcript=shown)

        return prompt(truncate_to_budget(transcript, self.max_prompt_tokens, prompt, self._count))

    def _ask(self, prompt: str, problems: list[str]) -> Requests[str]:
        reply: Reply
        [reply] = yield [LLMRequest(prompt)]
        if reply.failure and self.on_failure == "raise":
            raise reply.failure
        if reply.failure:
            problems.append(str(reply.failure))
        elif not reply.text.strip():
            problems.append("the LLM's answer was blank")
        return strip_reasoning(reply.text) or ""


def next_move(reply: str) -> tuple[str, str]:
    r"""The follow-up question and the final answer in what an LLM said; one of them at most, both may be empty.

    Whichever comes first counts: a model that goes on to answer itself is not listened to.

    >>> next_move("Yes.\nFollow up: How long is the Rhine?\nIntermediate answer: 3 km\nSo the final answer is: 3 km")
    ('How long is the Rhine?', '')
    >>> next_move("No. So the final answer is: Basel.")
    ('', 'Basel.')
    >>> next_move("I am not sure.")
    ('', '')
    """
    follow_up, final = _FOLLOW_UP.search(reply), _FINAL.search(reply)
    if follow_up and (not final or follow_up.start() < final.start()):
        return _plain(follow_up["said"]), ""
    return "", _plain(final["said"]) if final else ""


def conclusion(reply: str) -> str:
    r"""The final answer in what follows "So the final answer is:": after these words, or the first line with a word.

    >>> conclusion("So the final answer is: Basel"), conclusion(" Basel\n\nQuestion: another"), conclusion("...")
    ('Basel', 'Basel', '')
    """
    final = _FINAL.search(reply)
    if final:
        return _plain(final["said"])
    first = next((line for line in reply.splitlines() if WORD.search(line)), "")
    return "" if _FOLLOW_UP.search(first) else _plain(first)


def _plain(text: str) -> str:
    """On one line, without the marks of bold type."""
    return " ".join(text.replace("**", "").replace("__", "").split())[:_LONGEST]


def _passage(found: object) -> Passage:
    if isinstance(found, Ranked):
        found = found.passage
    if isinstance(found, str):
        return Passage(found)
    if not isinstance(found, Passage):
        raise InvalidInput(f"retrieve must return passages, rankings of them or strings; not a {type(found).__name__}.")
    return found
