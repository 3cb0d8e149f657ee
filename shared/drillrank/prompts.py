"""Prompts as text with cuttable documents, and what rankers ask with its source.

A prompt is a tuple of parts: strings (instructions, prefixes, demonstrations, questions) are never shortened;
`Evidence` parts are documents, which a token budget may shorten from their end. A model's control tokens, such as
`<|im_start|>`, are control tokens in `Wording` alone; in other strings and in documents they are text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from drillrank.errors import InvalidInput
from drillrank.passages import Passage, Path

# UPR (Sachan et al. 2022), as BRMGR (Du et al.) section II uses it for retrieved passages.
UPR_PROMPT = "Passage: {title} {text}. Please write a question based on this passage."

# BRMGR equation 5 conditions a generated passage on the question and gives no wording; this one is ours.
GENERATED_PROMPT = "Question: {question} Please write a passage that answers this question."
# In front of it, where retrieved passages are evidence too.
EVIDENCE_PREFIX, EVIDENCE_SUFFIX = "Passage: ", "\n\n"

# PromptRank (Khalifa et al. 2023), Table A1: instructions in falling order of R@2 on 128 examples of HotpotQA.
PROMPTRANK_INSTRUCTIONS = (
    "{path} Review previous documents and ask some question. Question:",
    "{path} Review the previous documents and answer question. Question:",
    "{path} Read the previous documents and write the following question. Question:",
    "{path} Search previous documents and ask the question. Question:",
    "To analyze the documents and ask question. {path} Question:",
    "{path} To read the previous documents and write a question. Question:",
    "{path} Read previous documents and write your exam question. Question:",
    "{path} Read the previous documents and ask this question. Question:",
    "Read two documents and answer a question. {path} Question:",
    "Identify all documents and ask question. {path} Question:",
)
# PromptRank section 2.1: each document of the path behind a fixed prefix.
PATH_DOCUMENT_PREFIX = "Document: "

# PromptRank section 2.2 and A.2: a span-filling T5 completes <X> and <Y>; then "based on them" is dropped.
INSTRUCTION_SEARCH_TEMPLATES = (
    "Task: <X> documents <Y> question based on them. Question:",
    "Task: <X> previous documents and <Y> question based on them. Question:",
)

# MonoT5 (Nogueira et al. 2020): P("true") against P("false") after this prompt.
MONOT5_PROMPT = "Query: {query} Document: {text} Relevant:"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A document inside a prompt: what the target is to be explained by, and what a budget may shorten.

    Attributes:
        text: The document's text.
        max_tokens: Tokens of the language model that it may keep; None for no limit of its own.
    """

    text: str
    max_tokens: int | None = None


class Wording(str):
    """Wording of whoever wrote the prompt, who is trusted: a control token in it is one for the model, too."""


Prompt = tuple["str | Evidence", ...]

Template = str | Callable[..., str]
"""A prompt with places: a string with `{name}` in it, or a function of keyword arguments, as a host's templates are."""


def prompt_text(prompt: Prompt) -> str:
    """The whole prompt as one string, nothing shortened.

    >>> prompt_text(("Passage: ", Evidence("Some text"), "."))
    'Passage: Some text.'
    """
    return "".join(part if isinstance(part, str) else part.text for part in prompt)


@dataclass(frozen=True, slots=True)
class PassageTemplate:
    """Fixed words before and after a passage, and how its title and text are joined.

    Attributes:
        before: Fixed wording in front of the passage.
        separator: Between title and text; None if the template has no title.
        after: Fixed wording behind the passage.
    """

    before: str
    separator: str | None
    after: str

    @staticmethod
    def parse(template: str) -> PassageTemplate:
        """Read `... {title} {text} ...`; `{title}` may be left out.

        Raises:
            InvalidInput: there is no `{text}`, a placeholder is unknown or repeated, or the title follows the text.

        >>> PassageTemplate.parse("Passage: {title} {text}. Ask a question.")
        PassageTemplate(before='Passage: ', separator=' ', after='. Ask a question.')
        """
        if not isinstance(template, str):
            raise InvalidInput(f"A passage template is a string, not {template!r}.")
        names = re.findall(r"\{(\w*)\}", template)
        if names == ["text"]:
            before, after = template.split("{text}")
            return PassageTemplate(before, None, after)
        if names == ["title", "text"]:
            before, rest = template.split("{title}")
            separator, after = rest.split("{text}")
            return PassageTemplate(before, separator, after)
        raise InvalidInput(
            f"A passage template holds {{text}} once, and before it, if wanted, {{title}} once; not {template!r}."
        )

    def fill(self, passage: Passage, max_tokens: int | None = None) -> Prompt:
        """The prompt for one passage; a passage without a title leaves the separator out."""
        if self.separator is None or not passage.title:
            text = passage.text
        else:
            text = f"{passage.title}{self.separator}{passage.text}"
        return (Wording(self.before), Evidence(text, max_tokens), Wording(self.after))


def path_prompt(path: Path, instruction: str, max_document_tokens: int | None = None) -> Prompt:
    """`Document: d1 Document: d2 ...` in its place in the instruction; blank documents are left out.

    PromptRank section 2.1.

    >>> path = Path((Passage("a", title="T"), Passage(" "), Passage("b")))
    >>> prompt_text(path_prompt(path, "{path} Ask. Question:"))
    'Document: T a Document: b Ask. Question:'
    """
    before, after = instruction.split("{path}")
    parts: list[str | Evidence] = [Wording(before)]
    for passage in path.passages:
        if passage.titled_text.strip():
            parts.append(f" {PATH_DOCUMENT_PREFIX}" if len(parts) > 1 else PATH_DOCUMENT_PREFIX)
            parts.append(Evidence(passage.titled_text, max_document_tokens))
    return (*parts, Wording(after))


def filled(template: Template, **values: str) -> str:
    """A template with its `{name}` places filled at once: braces in the values, which are data, stay as they are.

    >>> filled("{question} Items: {items}", question="What is {items}?", items="a {b}")
    'What is {items}? Items: a {b}'
    """
    if callable(template):
        return template(**values)
    return re.sub(r"\{(\w+)\}", lambda place: values.get(place[1], place[0]), template)


def check_places(template: Template, *names: str) -> Template:
    """The template itself, once it is known to hold all of the places; a framework's, by its `format`, too.

    Raises:
        InvalidInput: it is neither a string nor a function, lacks one of them, or cannot be filled with them.
    """
    fill = None if isinstance(template, str) else getattr(template, "format", template)
    if callable(fill):
        marks = {name: f"here goes the {name}" for name in names}
        try:
            prompt = fill(**marks)
        except Exception as cause:
            said = f"{type(cause).__name__}: {cause}"
            raise InvalidInput(f"This prompt cannot be filled with {' and '.join(names)}: {said}.") from cause
        missing = [name for name, mark in marks.items() if not isinstance(prompt, str) or mark not in prompt]
    else:
        missing = [name for name in names if not isinstance(template, str) or f"{{{name}}}" not in template]
    if missing:
        raise InvalidInput(f"This prompt is a string that holds {{{missing[0]}}}; not {template!r:.200}.")
    return template


def check_instructions(instructions: Sequence[str]) -> tuple[str, ...]:
    """Instructions for paths, each with `{path}` once.

    Raises:
        InvalidInput: none is given, or one does not hold `{path}` exactly once.
    """
    if isinstance(instructions, str) or not instructions:
        raise InvalidInput(f"Instructions are a non-empty list of strings, not {instructions!r}.")
    for instruction in instructions:
        if not isinstance(instruction, str) or instruction.count("{path}") != 1:
            raise InvalidInput(f"An instruction holds {{path}} exactly once; not {instruction!r}.")
    return tuple(instructions)


def fill_question(template: str, question: str) -> str:
    """A template with the question at its last `{question}`; earlier ones belong to the wording, as in demonstrations.

    Raises:
        InvalidInput: the template is no string, or has no place for the question.

    >>> fill_question("What is {question} for? Answer: {question}", "Why?")
    'What is {question} for? Answer: Why?'
    """
    before, after = _around_question(template)
    return f"{before}{question}{after}"


def check_question_templates(templates: Sequence[str]) -> tuple[str, ...]:
    """Templates for questions, each with a place for one.

    Raises:
        InvalidInput: none is given, or one has no `{question}`.
    """
    if isinstance(templates, str) or not templates:
        raise InvalidInput(f"Prompts are a non-empty list of strings, not {templates!r:.200}.")
    for template in templates:
        _around_question(template)
    return tuple(templates)


def generated_prompt(
    template: str, question: str, passages: Sequence[Passage] = (), max_passage_tokens: int | None = None
) -> Prompt:
    r"""What a generated passage is conditioned on: the question, and passages in front of it if there are any.

    BRMGR equation 5. All are evidence, the question too: it is what the passage is to be explained by.

    Raises:
        InvalidInput: the template has no place for the question.

    >>> prompt_text(generated_prompt("Question: {question} Answer:", "Why?", [Passage("So.")]))
    'Passage: So.\n\nQuestion: Why? Answer:'
    """
    before, after = _around_question(template)
    parts: list[str | Evidence] = []
    for passage in passages:
        if passage.titled_text.strip():
            parts += [EVIDENCE_PREFIX, Evidence(passage.titled_text, max_passage_tokens), EVIDENCE_SUFFIX]
    return (*parts, Wording(before), Evidence(question), Wording(after))


def _around_question(template: str) -> tuple[str, str]:
    before, place, after = template.rpartition("{question}") if isinstance(template, str) else ("", "", "")
    if not place:
        raise InvalidInput(f"A template for a question is a string that holds {{question}}; not {template!r:.200}.")
    return before, after
