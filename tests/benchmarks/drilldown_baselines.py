"""Rankings of all paragraphs of a paper, without an LLM."""

from __future__ import annotations

from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.vectors import BM25Index, top


def bm25(question: str, ready: PreparedDocuments) -> list[str]:
    """BM25 over the paragraphs of the paper."""
    scores = BM25Index([passage.text for passage in ready.readable]).scores(question)
    return [ready.paragraphs[at].id for at in top(scores, 10)]


def dense(question: str, ready: PreparedDocuments) -> list[str]:
    """Cosine of the embeddings that the paper was made ready with."""
    scored = ready.evidence.scored(question, range(len(ready.paragraphs)))
    order = sorted(range(len(scored)), key=lambda at: scored[at][1]["cosine"], reverse=True)
    return [ready.paragraphs[at].id for at in order]
