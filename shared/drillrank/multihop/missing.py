"""Missing information of a path, named by an LLM in one short call after a hop, and retrieved.

If texts have no links, an LLM that reads the best path can name the document to search for next.
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
from drillrank.text import words as split_words

_MAX_DOCUMENT_LENGTH, _MAX_QUERY_LENGTH = 2000, 300  # characters
_STEP = "name what is missing (path search)"
_LABEL = re.compile(
    r"^(?:[-*•>#\s]|\d+[.)]\s)*(?:\**(?:(?:search\s+)?query|search(?:\s+for)?|missing|answer)\**\s*[:：]\**)?\s*", re.I
)
_QUOTES = "\"'`“”„‘’«»*_ \t"
# An answer that consists of these words, at least one of them a negation, says that nothing is missing.
_NEGATIONS = {"nothing", "none", "no", "sufficient", "enough", "complete", "na"}
_FILLERS = {
    *("is", "are", "was", "were", "it", "there", "more", "else", "further", "other", "additional", "missing", "needed"),
    *("required", "necessary", "information", "evidence", "document", "documents", "query", "search", "the", "all"),
    *("i", "have", "already", "we", "nothing's", "of", "these", "to", "answer", "question", "and", "that", "now"),
}


class MissingInformation:
    """Queries for missing information that an LLM names during one search.

    Args:
        settings: Settings with the prompt (`missing_prompt`) and the policy for failures (`on_failure`).
        question: The question.

    Attributes:
        queries: Queries that the LLM named.
        problems: Failed calls and unusable answers.
    """

    def __init__(self, settings: PathSettings, question: str) -> None:
        self._settings, self._question = settings, question
        self._is_complete = False
        self.queries: list[str] = []
        self.problems: list[str] = []

    def details(self) -> dict[str, Any]:
        """Return the queries, and the problems if there are any, for the details of results."""
        record: dict[str, Any] = {"missing": tuple(self.queries)}
        return record | ({"problems": tuple(self.problems)} if self.problems else {})

    def find_passages(self, path: Path, n: int) -> Requests[Sequence[Passage]]:
        """Ask the LLM what a path lacks, and return at most `n` passages that a retrieval finds for it.

        There are none if the LLM repeats a query or says that nothing is missing. In the latter case, it is not asked
        again.

        Raises:
            LLMFailure: The call failed or its answer has no word, and `on_failure` says to raise.
        """
        if self._is_complete:
            return ()
        documents = "\n\n".join(passage.titled_text[:_MAX_DOCUMENT_LENGTH] for passage in path.passages)
        prompt = fill_template(self._settings.missing_prompt, documents=documents, question=self._question)
        [reply] = yield [LLMRequest(prompt, step=_STEP, on_failure=self._settings.on_failure)]
        if reply.failure is not None or not WORD.search(strip_reasoning(reply.text) or ""):
            failure = reply.failure or unusable_answer(_STEP, "it has no word")
            raise_or_fall_back(failure, self._settings.on_failure)
            self.problems.append(f"missing: {failure.reason}")
            warn(f"Path search continues by links alone: the LLM did not name what is missing ({failure.kind}).")
            return ()
        query = parse_missing_query(reply.text)
        self._is_complete = query is None
        if query is None or query in self.queries:
            return ()
        self.queries.append(query)
        [passages] = yield [RetrievalRequest(query, n)]
        return as_passages(passages)[:n]


def parse_missing_query(answer: str) -> str | None:
    """Return the search query in an LLM's answer; None if nothing is missing.

    The first line with a word counts. Reasoning, labels, quotes and JSON around the query are removed.

    >>> parse_missing_query('<think>Who?</think>Search query: "birthplace of Ada Holm"')
    'birthplace of Ada Holm'
    >>> parse_missing_query("Nothing is missing.") is None, parse_missing_query("") is None
    (True, True)
    """
    text = (strip_reasoning(answer) or "").strip()
    for line in _split_lines(text):
        query = _LABEL.sub("", line).strip(_QUOTES)
        if not WORD.search(query):  # a lone combining accent is not a word
            continue
        words = {word.lower() for word in split_words(query)}
        if (words & _NEGATIONS and words <= _NEGATIONS | _FILLERS) or query.lower().startswith("n/a"):
            return None
        return query[:_MAX_QUERY_LENGTH]
    return None


def _split_lines(text: str) -> list[str]:
    """Return the lines of an answer without code fences, or of the strings in its JSON."""
    unfenced = re.sub(r"^```\w*\s*|(?<!\s)\s*```$", "", text)
    if unfenced[:1] in "[{":
        try:
            return _list_strings(json.loads(unfenced))
        except (ValueError, RecursionError):
            pass
    return unfenced.splitlines()


def _list_strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.splitlines()
    if isinstance(value, dict):
        value = list(value.values())
    return [text for item in value for text in _list_strings(item)] if isinstance(value, list) else []
