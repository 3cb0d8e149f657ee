"""What a path of documents still lacks, named by an LLM: one short call after a hop, and one retrieval.

Where texts have no links, an LLM that has read the first document of a path can say which one to look for next.
                                         IRCoT: Trivedi et al. (2023); as a step of path search: BridgeRAG (2025)
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from drillrank.errors import raise_or_fall_back, warn
from drillrank.llm import LLMRequest, Requests, RetrievalRequest, strip_reasoning, unusable_answer
from drillrank.multihop.path_settings import PathSettings
from drillrank.passages import Passage, Path, as_passages
from drillrank.prompts import fill_template
from drillrank.text import WORD
from drillrank.text import words as words_of

_LONGEST_DOCUMENT, _LONGEST_QUERY = 2000, 300  # characters
_STEP = "name what is missing (path search)"
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


class MissingInformation:
    """What an LLM names as missing on the way of one search.

    Args:
        settings: How it is asked.
        question: The question.

    Attributes:
        queries: What it has named.
        problems: Calls that failed, and answers that could not be used.
    """

    def __init__(self, settings: PathSettings, question: str) -> None:
        self._settings, self._question = settings, question
        self._done = False
        self.queries: list[str] = []
        self.problems: list[str] = []

    def details(self) -> dict[str, Any]:
        """What results tell of it."""
        record: dict[str, Any] = {"missing": tuple(self.queries)}
        return record | ({"problems": tuple(self.problems)} if self.problems else {})

    def find_passages(self, path: Path, n: int) -> Requests[Sequence[Passage]]:
        """Passages for what is missing after a path, `n` at most; none if nothing is, or the LLM says nothing new.

        Once it has said that nothing is missing, it is not asked again.

        Raises:
            LLMFailure: The call failed or its answer has no word, and `on_failure` says to raise.
        """
        if self._done:
            return ()
        documents = "\n\n".join(passage.titled_text[:_LONGEST_DOCUMENT] for passage in path.passages)
        prompt = fill_template(self._settings.missing_prompt, documents=documents, question=self._question)
        [reply] = yield [LLMRequest(prompt, step=_STEP, on_failure=self._settings.on_failure)]
        if reply.failure is not None or not WORD.search(strip_reasoning(reply.text) or ""):
            failure = reply.failure or unusable_answer(_STEP, "it has no word")
            raise_or_fall_back(failure, self._settings.on_failure)
            self.problems.append(f"missing: {failure.reason}")
            warn(f"Path search continues by links alone: the LLM did not name what is missing ({failure.kind}).")
            return ()
        query = parse_missing_query(reply.text)
        self._done = query is None
        if query is None or query in self.queries:
            return ()
        self.queries.append(query)
        [found] = yield [RetrievalRequest(query, n)]
        return as_passages(found)[:n]


def parse_missing_query(answer: str) -> str | None:
    """The search query in an LLM's answer; None where it names nothing that is missing.

    Of several lines the first one counts. Reasoning, labels, quotes, and JSON around the query are left out.

    >>> parse_missing_query('<think>Who?</think>Search query: "birthplace of Ada Holm"')
    'birthplace of Ada Holm'
    >>> parse_missing_query("Nothing is missing.") is None, parse_missing_query("") is None
    (True, True)
    """
    text = (strip_reasoning(answer) or "").strip()
    for line in _lines(text):
        query = _LABEL.sub("", line).strip(_QUOTES)
        if not WORD.search(query):  # a lone combining accent is not a word
            continue
        words = [word.lower() for word in words_of(query)]
        if (set(words) & _NOTHING and set(words) <= _NOTHING | _BESIDE) or query.lower().startswith("n/a"):
            return None
        return query[:_LONGEST_QUERY]
    return None


def _lines(text: str) -> list[str]:
    """The answer's lines without code fences, or the texts in its JSON."""
    bare = re.sub(r"^```\w*\s*|(?<!\s)\s*```$", "", text)
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
