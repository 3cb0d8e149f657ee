"""The corpus that both hosts' suites ask about, and models that make faults visible."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable

import pytest

from drillrank.drilldown.paragraph_scores import ParagraphScorer
from drillrank.likelihood import UnigramModel
from drillrank.vectors import BM25Index

QUERY = "Which river does the old town of Basel lie on?"
TEXTS = [
    "Emma is a novel by Jane Austen.",
    "The old town of Basel lies on the Rhine, a river.",
    "A river is a natural flowing watercourse.",
    "Basel is a town in Switzerland.",
    "",
    "Emma is a novel by Jane Austen.",
]
VARIANTS = [f"{QUERY} {word}" for word in ("Emma", "novel", "Switzerland", "town", "a", "river", "Jane", "flowing")]

QUESTION = "Which river flows through Basel?"
BOOK = """# Rivers

Rivers carry water from the hills to the sea.

## The Rhine

The Rhine flows through Basel and Cologne.

It carries more ships than any other river of Europe.

## The Thames

The Thames flows through London.

# Towns

Basel is a town in Switzerland; London is the capital of England.
"""
NOTE = "A note without headings about the Danube and Vienna."
QUESTIONS = [f"{QUESTION} {word}" for word in ("London", "ships", "sea", "hills", "town", "note", "Vienna", "a")]


def pause(name: str) -> None:
    """Take long enough to show whether the event loop waits."""
    time.sleep(0.15)


class Slow:
    """A model that waits before it computes; what it waits for can be set."""

    wait = staticmethod(pause)

    def log_likelihood_batch(self, *arguments):
        self.wait("model")
        return super().log_likelihood_batch(*arguments)

    def next_tokens_batch(self, *arguments):
        self.wait("model")
        return super().next_tokens_batch(*arguments)


class SlowModel(Slow, UnigramModel):
    """The embedded model, slow."""


async def ticks_during(work: Awaitable[object]) -> int:
    """How often the event loop came round while the work was done."""
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.003)
            ticks += 1

    ticking = asyncio.create_task(tick())
    await work
    ticking.cancel()
    return ticks


def section_path(metadata: dict[str, object]) -> object:
    """Headings of a result; D3 writes them without the prefix."""
    return metadata["section_path"] if "section_path" in metadata else metadata["drillrank_section_path"]


def threads_at_work(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by the thread that each piece of the retrievers' computation runs on."""
    threads: list[int] = []
    for owner, name in ((UnigramModel, "log_likelihood_batch"), (ParagraphScorer, "score"), (BM25Index, "scores")):
        compute = getattr(owner, name)

        def recorded(*arguments, compute=compute):
            threads.append(threading.get_ident())
            return compute(*arguments)

        monkeypatch.setattr(owner, name, recorded)
    return threads
