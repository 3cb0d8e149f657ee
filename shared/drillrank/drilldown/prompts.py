"""Prompts that ask an LLM to choose sections or paragraphs, and how their answers are read.

D3 (Nair et al. 2023), section 3.3 and its experiment settings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from drillrank.drilldown.answers import Choice, parse_ids, parse_names, parse_yes_no
from drillrank.prompts import Template, fill_template
from drillrank.rerank.relevance import D3_TASK

SECTION_PROMPT = (
    "Document section structure:\n{outline}\n\nQuestion: {question}\n\nList all section names that may be relevant "
    "for answering the question. Respond with comma-separated section name list. Provide an empty response if none "
    "of the sections are relevant."
)
PARAGRAPH_PROMPT = (
    "{paragraphs}\n\nQuestion: {question}\n\nFind paragraph ids that contains relevant information for answering the "
    "question. Respond with comma-separated id list. Provide an empty response if none of the paragraphs are relevant."
)
BOOLEAN_PROMPT = f"{{paragraphs}}\n\nQuestion: {{question}}\n\n{D3_TASK}"
# Numbers, which no LLM can misspell, for LLMs that follow a JSON schema; the wording is ours.
_AS_JSON = 'Respond with a JSON object whose "ids" is the list of their numbers, empty if none of them are relevant.'
SECTION_JSON_PROMPT = (
    "Document section structure:\n{outline}\n\nQuestion: {question}\n\nList the ids of all sections that may be "
    f"relevant for answering the question. {_AS_JSON}"
)
PARAGRAPH_JSON_PROMPT = (
    "{paragraphs}\n\nQuestion: {question}\n\nFind paragraph ids that contains relevant information for answering the "
    f"question. {_AS_JSON}"
)

IDS_SCHEMA = {
    "title": "RelevantIds",
    "description": "What is relevant for answering the question.",
    "type": "object",
    "properties": {"ids": {"type": "array", "items": {"type": "integer"}, "description": "Numbers, or an empty list."}},
    "required": ["ids"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class ListedText:
    """Section or paragraph in a prompt: its text or summary, and the name of a section."""

    text: str
    name: str = ""


@dataclass(frozen=True)
class SelectionPrompt(ABC):
    """Question to an LLM about listed texts, and how its answer is read.

    Attributes:
        template: Prompt with `{question}`, and `{outline}` or `{paragraphs}`.
        schema: JSON schema of the answer; None for answers in words.
        asks_one_by_one: True if each text has its own prompt.
    """

    template: Template
    schema: Mapping[str, Any] | None = None
    asks_one_by_one: ClassVar[bool] = False

    def render(self, question: str, listed: Sequence[ListedText]) -> str:
        """Return the prompt."""
        text = "\n".join(self._list_lines(listed))
        return fill_template(self.template, question=question, outline=text, paragraphs=text)

    @abstractmethod
    def _list_lines(self, listed: Sequence[ListedText]) -> list[str]:
        """Return the lines of each text."""

    @abstractmethod
    def parse(self, answer: str, listed: Sequence[ListedText]) -> Choice:
        """Return the indices that an answer names, and whether the answer is usable."""


@dataclass(frozen=True)
class NamesPrompt(SelectionPrompt):
    """List of named sections with summaries; the LLM answers with names (section 3.3.1)."""

    template: Template = SECTION_PROMPT

    def _list_lines(self, listed: Sequence[ListedText]) -> list[str]:
        return [f"* Section: {entry.name}\n{entry.text}" for entry in listed]

    def parse(self, answer: str, listed: Sequence[ListedText]) -> Choice:
        """Return the indices of the named sections."""
        return parse_names(answer, [entry.name for entry in listed])


@dataclass(frozen=True)
class NumbersPrompt(SelectionPrompt):
    """Numbered list of paragraphs or named sections (section 3.3.2); the LLM answers with numbers, as text or JSON."""

    template: Template = PARAGRAPH_PROMPT

    def _list_lines(self, listed: Sequence[ListedText]) -> list[str]:
        return [
            f"[{number}] {entry.name}\n{entry.text}" if entry.name else f"[{number}] {entry.text}"
            for number, entry in enumerate(listed, start=1)
        ]

    def parse(self, answer: str, listed: Sequence[ListedText]) -> Choice:
        """Return the indices of the chosen numbers."""
        return parse_ids(answer, len(listed))


@dataclass(frozen=True)
class YesNoPrompt(SelectionPrompt):
    """Single paragraph; the LLM answers yes or no."""

    template: Template = BOOLEAN_PROMPT
    asks_one_by_one = True

    def _list_lines(self, listed: Sequence[ListedText]) -> list[str]:
        return [entry.text for entry in listed]

    def parse(self, answer: str, listed: Sequence[ListedText]) -> Choice:  # noqa: ARG002
        """Return index 0 for yes, nothing for no."""
        return parse_yes_no(answer)
