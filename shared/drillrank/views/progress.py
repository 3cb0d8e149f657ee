"""Ask an LLM for views: several calls at once, from synchronous code too, and with a progress bar if wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from drillrank.calling import blocking, method_of
from drillrank.dialogue import LLM, Dialogue, arun
from drillrank.workers import Workers

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

Result = TypeVar("Result")


def ask(dialogue: Dialogue[Result], llm: LLM, *, workers: int | Workers = 4, show_progress: bool = False) -> Result:
    """Drive a dialogue with at most `workers` calls at once, each on a thread. Same result as `drillrank.dialogue.run`.

    Raises:
        InvalidInput: `llm` cannot be called, or `workers` is below 1.

    >>> def shout():
    ...     replies = yield ["hello", "bye"]
    ...     return [reply.text for reply in replies]
    >>> ask(shout(), str.upper)
    ['HELLO', 'BYE']
    """
    answering = aask(dialogue, method_of(llm, "complete") or llm, workers=workers, show_progress=show_progress)
    with ThreadPoolExecutor(1) as thread:  # the caller's thread may have a running event loop
        return thread.submit(copy_context().run, asyncio.run, answering).result()


async def aask(
    dialogue: Dialogue[Result], llm: LLM, *, workers: int | Workers = 4, show_progress: bool = False
) -> Result:
    """As `ask`, without blocking the event loop; `acomplete` is awaited where the LLM has it.

    Raises:
        InvalidInput: `llm` cannot be called, or `workers` is below 1.
    """
    if not show_progress:
        return await arun(dialogue, llm, workers=workers)
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("Writing views", total=0)
        counted = _counted(llm, lambda: progress.advance(task))
        return await arun(_announced(dialogue, progress, task), counted, workers=workers)


def _announced(dialogue: Dialogue[Result], progress: Progress, task: TaskID) -> Dialogue[Result]:
    """The dialogue, its prompts added to the bar's total."""
    replies: Any = None
    total = 0
    while True:
        try:
            prompts = dialogue.send(replies)
        except StopIteration as stop:
            result: Result = stop.value
            return result
        total += len(prompts)
        progress.update(task, total=total)
        replies = yield prompts


def _counted(llm: LLM, advance: Callable[[], None]) -> LLM:
    """The LLM, every call counted, failed ones too."""
    complete: Any = method_of(llm, "acomplete", "complete")
    on_a_thread = blocking(complete)
    if on_a_thread is not None:

        def answer(prompt: str) -> Any:
            try:
                return on_a_thread(prompt)
            finally:
                advance()

        return answer

    async def answer_later(prompt: str) -> Any:
        try:
            return await complete(prompt)
        finally:
            advance()

    return answer_later
