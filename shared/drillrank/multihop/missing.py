"""What a path of documents still lacks, named by an LLM: one short call after a hop, and one retrieval of what it names.

Where texts have no links, an LLM that has read the first document of a path can say which one to look for next.
                                         IRCoT: Trivedi et al. (2023); as a step of path search: BridgeRAG (2025)
"""

from __future__ import annotations

import json
import re
from typing import Any

from drillrank.passages import Path
from drillrank.prompts import MISSING_PROMPT, Template, filled
from drillrank.terms import WORD
from drillrank.thinking import without_thoughts

_LONGEST_DOCUMENT, _LONGEST_QUERY = 2000, 300  # characters
_LABEL = re.compile(
    r"^(?:[-*•>#\s]|\d+[.)]\s)*(?:\**(?:(?:search\s+)?query|search(?:\s+for)?|missing|answer)\**\s*[:：]\**)?\s*", re.I
)
_QUOTES = "\"'`“”„‘’«»*_ \t"
_NOTHING = {"nothing", "none", "no", "sufficient", "enough", "complete", "na"}
_BESIDE = {
    *("is", "are", "was", "were", "it", "there", "more", "else", "further", "other", "additional", "missing", "needed"),
    *("required", "necessary", "information", "evidence", "document", "documents", "query", "search", "the", "all"),
    *("i", "have", "already", "we", "nothing's", "of", "these", "to", "answer", "question", "and", "that", "now"),
}


def missing_prompt(question: str, path: Path, template: Template = MISSING_PROMPT) -> str:
    """Ask what is missing after a path; of each document no more than the beginning.

    Args:
        question: The question.
        path: The documents that were found.
        template: With `{documents}` and `{question}`, or a function of these.
    """
    documents = "\n\n".join(passage.titled_text[:_LONGEST_DOCUMENT] for passage in path.passages)
    return filled(template, documents=documents, question=question)


def missing_query(answer: str) -> str | None:
    """The search query in an LLM's answer; None where it names nothing that is missing.

    Of several lines the first one counts. Thoughts, labels, quotes, and JSON around the query are left out.

    >>> missing_query('<think>Who?</think>Search query: "birthplace of Ada Holm"')
    'birthplace of Ada Holm'
    >>> missing_query("Nothing is missing.") is None, missing_query("") is None
    (True, True)
    """
    said = (without_thoughts(answer) or "").strip()
    for line in _lines(said):
        query = _LABEL.sub("", line, count=1).strip(_QUOTES)
        words = [word.lower() for word in WORD.findall(query)]
        if not words:
            continue
        if set(words) & _NOTHING and set(words) <= _NOTHING | _BESIDE or query.lower().startswith("n/a"):
            return None
        return query[:_LONGEST_QUERY]
    return None


def _lines(said: str) -> list[str]:
    """The answer's lines without code fences, or the texts in its JSON."""
    bare = re.sub(r"^```\w*\s*|\s*```$", "", said)
    if bare[:1] in "[{":
        try:
            return _texts(json.loads(bare))
        except (ValueError, RecursionError):
            pass
    return bare.splitlines()


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.splitlines()
    if isinstance(value, dict):
        value = list(value.values())
    return [text for item in value for text in _texts(item)] if isinstance(value, list) else []
