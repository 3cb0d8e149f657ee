"""Baselines of the D3 paper (Nair et al. 2023, section 4), through the interface and the accounting of D3 itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.drilldown.selection import Item, Selection
from drillrank.drilldown.settings import PARAGRAPH_PROMPT
from drillrank.llm import Ask, Requests, Usage, run
from drillrank.prompts import filled
from drillrank.vectors import BM25Index, top

from .oracle import Oracle

CHUNK_TOKENS = 3500
# PARAGRAPH and MAP-REDUCE ask about one paragraph at a time; the paper gives no wording, this one is ours.
BOOLEAN_PROMPT = (
    "{paragraph}\n\nQuestion: {question}\n\nDoes the paragraph contain relevant information for answering the "
    "question? Respond with yes or no."
)
Method = Callable[[str, PreparedDocuments, Oracle, Usage], set[str]]
Baseline = Callable[[str, Sequence[str]], Requests[list[int]]]


class _Unlikely:
    """A baseline has no likelihood to fall back on, and the oracle needs none."""

    def order(self, positions: Sequence[int]) -> list[int]:
        raise AssertionError("the oracle left a gap")

    choose = order


def chunk(question: str, texts: Sequence[str]) -> Requests[list[int]]:
    """CHUNK: BASE on fragments of 3,500 tokens."""
    selection = Selection(question, CHUNK_TOKENS, calls_left=10**6)
    found, *_ = yield from selection.choose(PARAGRAPH_PROMPT, [Item(text) for text in texts], _Unlikely())
    return found


def map_reduce_optimized(question: str, texts: Sequence[str]) -> Requests[list[int]]:
    """MAP-REDUCE OPTIMIZED: CHUNK, then BASE over the survivors."""
    survivors = yield from chunk(question, texts)
    found = yield from chunk(question, [texts[at] for at in survivors])
    return [survivors[at] for at in found]


def paragraph(question: str, texts: Sequence[str]) -> Requests[list[int]]:
    """PARAGRAPH: a boolean prompt each."""
    replies = yield [Ask(filled(BOOLEAN_PROMPT, paragraph=text, question=question)) for text in texts]
    return [at for at, reply in enumerate(replies) if reply.text.startswith("yes")]


def map_reduce(question: str, texts: Sequence[str]) -> Requests[list[int]]:
    """MAP-REDUCE: PARAGRAPH, then the survivors together."""
    survivors = yield from paragraph(question, texts)
    found = yield from chunk(question, [texts[at] for at in survivors])
    return [survivors[at] for at in found]


BASELINES: dict[str, Baseline] = {
    "PARAGRAPH": paragraph,
    "CHUNK": chunk,
    "MAP-REDUCE": map_reduce,
    "MAP-REDUCE OPTIMIZED": map_reduce_optimized,
}


def baseline(asking: Baseline) -> Method:
    """A baseline as a method: question, paper, LLM and usage to the ids of the paragraphs that it finds."""

    def method(question: str, ready: PreparedDocuments, oracle: Oracle, usage: Usage) -> set[str]:
        texts = [passage.text for passage in ready.readable]
        return {ready.paragraphs[at].id for at in run(asking(question, texts), oracle, usage=usage)}

    return method


# Without an LLM: rankings of all paragraphs


def bm25(question: str, ready: PreparedDocuments) -> list[str]:
    """BM25 over the paragraphs of the paper."""
    scores = BM25Index([passage.text for passage in ready.readable]).scores(question)
    return [ready.paragraphs[at].id for at in top(scores, 10)]


def dense(question: str, ready: PreparedDocuments) -> list[str]:
    """Cosine of the embeddings that the paper was made ready with."""
    scored = ready.evidence.scored(question, range(len(ready.paragraphs)))
    order = sorted(range(len(scored)), key=lambda at: scored[at][1]["cosine"], reverse=True)
    return [ready.paragraphs[at].id for at in order]
