"""Self-ask: answer a question by follow-up questions, each answered from retrieved passages.

Press et al. (2022), "Measuring and Narrowing the Compositionality Gap in Language Models". D3 (Nair et al. 2023,
section 5.2) replaces the paper's search engine by its retriever.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from drillrank.drilldown.answering import ANSWER_PROMPT, AnswerPrompt, check_room
from drillrank.drilldown.problems import Problem, ProblemKind, kind_of_failure, warn_about_problems
from drillrank.errors import InvalidInput, OnFailure, check_on_failure, check_positive, raise_or_fall_back
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
    unusable_answer,
)
from drillrank.passages import Passage, Ranked, check_query
from drillrank.prompts import Template, check_placeholders, fill_template, truncate_to_budget
from drillrank.text import WORD, Tokens, token_counter

_WARNINGS = {
    ProblemKind.FAILED_CALL: "Self-ask: calls of the LLM failed. A follow-up question without an answer counts as not "
    "known, and without a final answer, the last answer from passages replaces it. Check that the LLM can be reached.",
    ProblemKind.UNUSABLE_ANSWER: "Self-ask: answers of the LLM cannot be used, because they are blank, repeat a "
    "follow-up question or have no final answer. A follow-up question without an answer counts as not known, and "
    "without a final answer, the last answer from passages replaces it. Use an LLM that follows the prompt.",
}
_PROBLEMS = (
    "`problems` of the result lists each case. In LlamaIndex, it is metadata of the response, and in LangChain a key "
    "of the result."
)

# The scaffold is the paper's, the worked examples are ours. The model continues the transcript. The retriever receives
# the text after "Follow up:".
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
_GIVE_ANSWER = "give the final answer"
_CONCLUDE = "\nSo the final answer is:"
_MAX_ANSWER = 2000  # characters of an answer that are kept in the transcript


@dataclass(frozen=True, slots=True)
class FollowUp:
    """Follow-up question with its answer.

    Attributes:
        question: The question of the LLM.
        answer: The LLM's answer from the passages. Empty if it gave none.
        passages: The retrieved passages.
    """

    question: str
    answer: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class SelfAskAnswer:
    """Final answer with its follow-up questions.

    Attributes:
        answer: The final answer. Empty if the LLM never gave one.
        steps: The follow-up questions, in order.
        usage: Cost of all LLM calls, including those of a retriever whose results have a `usage`, such as `D3`.
        problems: Messages about what the LLM did wrong and what was done instead.
    """

    answer: str
    steps: tuple[FollowUp, ...]
    usage: Usage = field(default_factory=Usage)
    problems: tuple[str, ...] = ()


@dataclass
class _Progress:
    """State of one question."""

    question: str
    usage: Usage
    steps: list[FollowUp] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    transcript: str = ""

    def add(self, step: FollowUp) -> None:
        opening = "" if self.steps else " Yes."
        self.steps.append(step)
        answer = step.answer or "not known"
        self.transcript += f"{opening}\nFollow up: {step.question}\nIntermediate answer: {answer}"


class SelfAsk:
    r"""Answers multi-hop questions by asking and answering follow-up questions.

    Args:
        llm: Asks and answers. A function from prompt to answer, sync or async, or an object with `complete` and, if it
            has one, `acomplete`.
        retrieve: Function from a question to passages, rankings of passages or strings, best first, as a list or an
            iterator. It may be sync or async, or an object with `retrieve` and, if it has one, `aretrieve`. The calls
            of `lambda question: d3.retrieve(question, documents)` count in the usage.
        max_steps: Largest number of follow-up questions. After them, the LLM is asked for the final answer.
        max_prompt_tokens: Largest size of a prompt. Prompts for answers contain as many whole passages as fit. If the
            first passage or the transcript does not fit, its middle is dropped.
        tokens: Token counter; see `drillrank.text.token_counter`.
        prompt: Prompt for the next step. A template with `{question}` and `{transcript}`, which ends the prompt, or a
            function of these.
        answer_prompt: Prompt for an answer from passages. A template with `{contents}` and `{question}`, or a function
            of these.
        on_failure: `"raise"` raises an `LLMFailure` if a call of the LLM fails or its answer is unusable. `"fallback"`
            continues without the answer, with a `DrillrankWarning`. None raises if a call fails, and falls back if an
            answer is unusable. `retrieve` has its own policy if it asks an LLM.

    Raises:
        InvalidInput: A setting is out of its range, or a prompt lacks a placeholder.

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
        on_failure: OnFailure | None = None,
    ) -> None:
        check_positive(max_steps=max_steps, max_prompt_tokens=max_prompt_tokens)
        check_on_failure(on_failure)
        self.llm = load_llm(llm)
        self.retrieve = retrieve
        self.max_steps = max_steps
        self.max_prompt_tokens = max_prompt_tokens
        self.prompt = check_placeholders(prompt, "question", "transcript")
        self.answer_prompt = check_placeholders(answer_prompt, "contents", "question")
        self.on_failure = on_failure
        self._count_tokens = token_counter(tokens)
        self._answer_prompt = AnswerPrompt(self.answer_prompt, max_prompt_tokens, self._count_tokens, has_numbers=False)
        self._make_handlers("retrieve", "aretrieve")  # checks the retriever

    def answer(self, question: str) -> SelfAskAnswer:
        """Return the final answer. If an answer of the LLM is unusable, there is a result, with a `DrillrankWarning`.

        Raises:
            InvalidInput: The question is blank or too long for a prompt, the retriever returns something else than
                passages, or the LLM or the retriever is asynchronous.
            LLMFailure: A call failed or its answer is unusable, and `on_failure` says to raise.
        """
        *_, last = self.stream(question)
        return cast("SelfAskAnswer", last)

    async def aanswer(self, question: str) -> SelfAskAnswer:
        """Run `answer` without blocking the event loop. Synchronous functions run on worker threads."""
        return cast("SelfAskAnswer", [item async for item in self.astream(question)][-1])

    def stream(self, question: str) -> Iterator[FollowUp | SelfAskAnswer]:
        """Yield each follow-up question as soon as it is answered, and the final answer at the end; see `answer`."""
        handlers = self._make_handlers("retrieve", "aretrieve", synchronous=True)
        progress = _Progress(question, Usage(count=self._count_tokens))
        while True:
            item = run(self._take_step(progress), self.llm, handlers, usage=progress.usage)
            yield item
            if isinstance(item, SelfAskAnswer):
                return

    async def astream(self, question: str) -> AsyncIterator[FollowUp | SelfAskAnswer]:
        """Run `stream` without blocking the event loop."""
        handlers = self._make_handlers("aretrieve", "retrieve")
        progress = _Progress(question, Usage(count=self._count_tokens))
        while True:
            item = await arun(self._take_step(progress), self.llm, handlers, usage=progress.usage)
            yield item
            if isinstance(item, SelfAskAnswer):
                return

    def _make_handlers(
        self, *method_names: str, synchronous: bool = False
    ) -> dict[type, Callable[[RetrievalRequest], Any]]:
        """Return the handler of retrievals: the retriever's first method with one of the names, or the retriever."""
        methods = [getattr(self.retrieve, name, None) for name in method_names]
        function: Any = next(filter(callable, [*methods, self.retrieve]), None)
        if function is None:
            raise InvalidInput(
                f"retrieve must be a function from a question to passages, got {self.retrieve!r:.100}. Pass a function "
                "or an object with a `retrieve` method."
            )
        if synchronous and is_async(function):
            raise InvalidInput(
                f"retrieve={self.retrieve!r:.100} is asynchronous. Use the asynchronous method, or a synchronous "
                "retriever."
            )
        return {RetrievalRequest: lambda request: function(request.query)}

    def _take_step(self, progress: _Progress) -> Requests[FollowUp | SelfAskAnswer]:
        """Return the next follow-up question with its answer, or the final answer."""
        if not progress.steps:
            self._check_question(progress.question)
        final_answer = ""
        if len(progress.steps) < self.max_steps:
            prompt = self._fill_prompt(progress.question, progress.transcript)
            reply = yield from self._ask(prompt, "ask a follow-up question", progress.problems)
            follow_up, final_answer = parse_next_move(reply)
            if any(follow_up.casefold() == step.question.casefold() for step in progress.steps):
                text = "the LLM asked a follow-up question again: no more were asked"
                progress.problems.append(Problem(ProblemKind.UNUSABLE_ANSWER, text))
            elif follow_up:
                step = yield from self._answer_from_passages(follow_up, progress)
                progress.add(step)
                return step
        final_answer = final_answer or (yield from self._conclude(progress))
        if progress.problems:
            warn_about_problems(progress.problems, _WARNINGS, _PROBLEMS)
        problems = tuple(map(str, progress.problems))
        return SelfAskAnswer(final_answer, tuple(progress.steps), progress.usage, problems)

    def _check_question(self, question: str) -> None:
        check_room(
            check_query(question),
            self._count_tokens,
            self.max_prompt_tokens,
            fill_template(self.prompt, question=question, transcript=""),
            fill_template(self.answer_prompt, contents="", question=question),
        )

    def _conclude(self, progress: _Progress) -> Requests[str]:
        """Ask for the final answer. Without one, use the last answer from passages, or answer the question itself."""
        opening = "" if progress.steps else " No."
        prompt = self._fill_prompt(progress.question, f"{progress.transcript}{opening}{_CONCLUDE}")
        final_answer = parse_conclusion((yield from self._ask(prompt, _GIVE_ANSWER, progress.problems)))
        if not final_answer:
            raise_or_fall_back(unusable_answer(f"{_GIVE_ANSWER} (self-ask)", "it has no final answer"), self.on_failure)
            text = "the LLM gave no final answer: the last answer from passages replaces it"
            progress.problems.append(Problem(ProblemKind.UNUSABLE_ANSWER, text))
            final_answer = next((step.answer for step in reversed(progress.steps) if step.answer), "")
        if not final_answer:
            final_answer = (yield from self._answer_from_passages(progress.question, progress)).answer
        return final_answer

    def _answer_from_passages(self, question: str, progress: _Progress) -> Requests[FollowUp]:
        [results] = yield [RetrievalRequest(question, 0)]
        if isinstance(usage := getattr(results, "usage", None), Usage):
            progress.usage.include(usage)
        if isinstance(results, str) or not isinstance(results, Iterable):
            raise InvalidInput(f"retrieve must return a list of passages, got a {type(results).__name__}.")
        passages = tuple(map(_as_passage, results))
        answer = ""
        if passages:
            prompt, _ = self._answer_prompt.fill(question, passages)
            answer = yield from self._ask(prompt, "answer from passages", progress.problems)
        return FollowUp(question, " ".join(answer.split())[:_MAX_ANSWER], passages)

    def _fill_prompt(self, question: str, transcript: str) -> str:
        """Return the prompt for the next step."""

        def fill_transcript(transcript: str) -> str:
            return fill_template(self.prompt, question=question, transcript=transcript)

        return fill_transcript(
            truncate_to_budget(transcript, self.max_prompt_tokens, fill_transcript, self._count_tokens)
        )

    def _ask(self, prompt: str, task: str, problems: list[Problem]) -> Requests[str]:
        """Return the LLM's answer; empty after a fallback."""
        step = f"{task} (self-ask)"
        reply: Reply
        [reply] = yield [LLMRequest(prompt, step=step, on_failure=self.on_failure)]
        if reply.failure:
            text = f"the LLM failed to {task} ({reply.failure.reason})"
            problems.append(Problem(kind_of_failure(reply.failure), text))
        elif not reply.text.strip():
            raise_or_fall_back(unusable_answer(step, "it is blank"), self.on_failure)
            problems.append(Problem(ProblemKind.UNUSABLE_ANSWER, "the LLM's answer was blank"))
        return strip_reasoning(reply.text) or ""


def parse_next_move(reply: str) -> tuple[str, str]:
    r"""Return the follow-up question or the final answer in a reply. At most one of them is not empty.

    The first one counts: a model may continue with answers of its own.

    >>> parse_next_move("Yes.\nFollow up: How long is it?\nIntermediate answer: 3 km\nSo the final answer is: 3 km")
    ('How long is it?', '')
    >>> parse_next_move("No. So the final answer is: Basel.")
    ('', 'Basel.')
    >>> parse_next_move("I am not sure.")
    ('', '')
    """
    follow_up, final_answer = _FOLLOW_UP.search(reply), _FINAL.search(reply)
    if follow_up and (not final_answer or follow_up.start() < final_answer.start()):
        return _clean(follow_up["said"]), ""
    return "", _clean(final_answer["said"]) if final_answer else ""


def parse_conclusion(reply: str) -> str:
    r"""Return the final answer in the continuation of "So the final answer is:".

    The answer follows a repetition of these words, or is the first line with a word.

    >>> parse_conclusion("So the final answer is: Basel"), parse_conclusion(" Basel\n\nQuestion: another")
    ('Basel', 'Basel')
    >>> parse_conclusion("...")
    ''
    """
    final_answer = _FINAL.search(reply)
    if final_answer:
        return _clean(final_answer["said"])
    first_line = next((line for line in reply.splitlines() if WORD.search(line)), "")
    return "" if _FOLLOW_UP.search(first_line) else _clean(first_line)


def _clean(text: str) -> str:
    """Return a text on one line, without the marks of bold type."""
    return " ".join(text.replace("**", "").replace("__", "").split())[:_MAX_ANSWER]


def _as_passage(result: object) -> Passage:
    if isinstance(result, Ranked):
        result = result.passage
    if isinstance(result, str):
        return Passage(result)
    if not isinstance(result, Passage):
        raise InvalidInput(
            f"retrieve must return passages, rankings of them or strings, got a {type(result).__name__}."
        )
    return result
