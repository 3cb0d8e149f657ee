"""Passages and questions of comparisons, and components that fail."""

from __future__ import annotations

from langchain_core.documents import BaseDocumentCompressor, Document

from drillrank import Passage

WORDS = ["fox", "whale", "owl", "bear", "lynx", "crow", "toad", "wasp", "newt", "hare"]
CORPUS = [
    Passage(f"The {word} lives in region {i}. It eats what others leave.", id=word) for i, word in enumerate(WORDS)
]
QUESTIONS = [
    {"id": f"q{i}", "question": f"Where does the {word} live?", "gold": [word]} for i, word in enumerate(WORDS)
]
BACKWARDS = [
    {**row, "candidates": [other for other in WORDS if other not in row["gold"]] + row["gold"]} for row in QUESTIONS
]


def last_first(query, passages):
    return list(reversed(passages))


class LostIds(BaseDocumentCompressor):
    def compress_documents(self, documents, query, callbacks=None):
        return [Document(page_content=document.page_content) for document in reversed(documents)]
