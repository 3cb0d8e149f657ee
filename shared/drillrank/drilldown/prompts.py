"""Prompts that ask an LLM to choose sections or paragraphs, and how their answers are read.

D3 (Nair et al. 2023), section 3.3 and its experiment settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from drillrank.drilldown.answers import Choice, parse_ids, parse_names, parse_yes_no
from drillrank.prompts import Template, fill_template

SECTION_PROMPT = (
    "Document section structure:\n{outline}\n\nQuestion: {question}\n\nList all section names that may be relevant "
    "for answering the question. Respond with comma-separated section name list. Provide an empty response if none "
    "of the sections are relevant."
)
PARAGRAPH_PROMPT = (
    "{paragraphs}\n\nQuestion: {question}\n\nFind paragraph ids that contains relevant information for answering the "
    "question. Respond with comma-separated id list. Provide an empty response if none of the paragraphs are relevant."
)
# The paper gives no wording for one paragraph at a time; this one is ours.
BOOLEAN_PROMPT = (
    "{paragraphs}\n\nQuestion: {question}\n\nDoes the paragraph contain relevant information for answering the "
    "question? Respond with yes or no."
)
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


class SelectionPrompt(Protocol):
    """Question to an LLM about listed texts, and how its answer is read."""

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """JSON schema of the answer; None for answers in words."""

    @property
    def asks_one_by_one(self) -> bool:
        """Return True if each text has its own prompt."""

    def render(self, question: str, listed: Sequence[ListedText]) -> str:
        """Return the prompt."""

    def parse(self, answer: str, listed: Sequence[ListedText]) -> Choice:
        """Return the indices that an answer names, and whether the answer is usable."""


@dataclass(frozen=True)
class NamesPrompt:
    """List of named sections with summaries; the LLM answers with names."""

    template: Template = SECTION_PROMPT
    schema: Mapping[str, Any] | None = None
    asks_one_by_one: bool = False

    def render(self, question: str, listed: Sequence[ListedText]) -> str:
        """Return the prompt of section 3.3.1."""
        return _fill(self.template, question, [f"* Section: {entry.name}\n{entry.text}" for entry in listed])

    def parse(self, answer: str, listed: Sequence[ListedText]) -> Choice:
        """Return the indices of the named sections."""
        return parse_names(answer, [entry.name for entry in listed])


@dataclass(frozen=True)
class NumbersPrompt:
    """Numbered list of paragraphs or named sections; the LLM answers with numbers, as text or as JSON."""

    template: Template = PARAGRAPH_PROMPT
    schema: Mapping[str, Any] | None = None
    asks_one_by_one: bool = False

    def render(self, question: str, listed: Sequence[ListedText]) -> str:
        """Return the prompt of section 3.3.2."""
        lines = [
            f"[{number}] {entry.name}\n{entry.text}" if entry.name else f"[{number}] {entry.text}"
            for number, entry in enumerate(listed, start=1)
        ]
        return _fill(self.template, question, lines)

    def parse(self, answer: str, listed: Sequence[ListedText]) -> Choice:
        """Return the indices of the chosen numbers."""
        return parse_ids(answer, len(listed))


@dataclass(frozen=True)
class YesNoPrompt:
    """Single paragraph; the LLM answers yes or no."""

    template: Template = BOOLEAN_PROMPT
    schema: Mapping[str, Any] | None = None
    asks_one_by_one: bool = True

    def render(self, question: str, listed: Sequence[ListedText]) -> str:
        """Return the prompt for one paragraph."""
        return _fill(self.template, question, [entry.text for entry in listed])

    def parse(self, answer: str, listed: Sequence[ListedText]) -> Choice:  # noqa: ARG002
        """Return index 0 for yes, nothing for no."""
        return parse_yes_no(answer)


def _fill(template: Template, question: str, lines: Sequence[str]) -> str:
    text = "\n".join(lines)
    return fill_template(template, question=question, outline=text, paragraphs=text)
