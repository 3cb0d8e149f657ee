"""Prompts as text with cuttable documents, and every prompt of the four papers with its source.

A prompt is a tuple of parts: strings (instructions, prefixes, demonstrations, questions) are never shortened;
`Evidence` parts are documents, which a token budget may shorten from their end. A model's control tokens, such as
`<|im_start|>`, are control tokens in `Wording` alone; in other strings and in documents they are text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from drillrank.errors import InvalidInput

# MC-indexing, Figure 8 (summary view) and Figure 9 (keyword view).
SUMMARY_PROMPT = (
    "You are a helpful summarization assistant. Please help me summarize the following section into no more than "
    "10 sentences or 200 words.\n\nSection Name: {section_name}\n\nSection Text: {section_text}"
)
KEYWORD_PROMPT = (
    "You are a helpful keyword extractor. You need to extract keywords from the following section. The keywords "
    "should consist of concepts, entities, or important descriptions that are related to the section text, which "
    "could be used to answer any questions from users.\n\nSection Name: {section_name}\n\n"
    "Section Text:\n**Beginning of text**\n{section_text}\n**End of text**\n\n"
    "Please output format in list format: [...]. Do not output anything else aside from this list."
)

# MC-indexing, Figure 10 (answer) and Figure 11 (pairwise judge).
ANSWER_PROMPT = (
    "You are a helpful question answering assistant. You are good at answering question based on provided contents."
    "\n\nContents: {contents}\n\nQuestion: {question}\n\nInstruction: Assume you do not have any background and "
    "internal knowledge about this given contents and question. You need to answer the question using the given "
    "contents only. The answer need to be short and accurate."
)
JUDGE_PROMPT = (
    "You are a helpful assistant for evaluating answers. Given a question and ground truth answer, there will be two "
    "possible answers. Provide a score from 0-10 for each answer.\n\nQuestion: {question}\n\nGround truth answer: "
    "{reference}\n\nAnswer 1: {answer_1}\n\nAnswer 2: {answer_2}\n\nInstruction: Assume you do not have any "
    "background and internal knowledge about this given contents and question. You need to evaluate each answer and "
    "give a score based on the ground truth answer. You must write out your reasoning of the score based on relevance "
    "to the answer. If both answers are exactly similar, you must ensure the scores and reasoning for both answers are "
    "the same. Finally in a new line, you must return the scores and nothing else. The scores must be returned in the "
    'following json format: {"answer_1_score":"...", "answer_2_score":"..."}'
)

# What a path of documents still lacks (as IRCoT and BridgeRAG ask an LLM between retrievals); the wording is ours.
MISSING_PROMPT = (
    "Documents that were found for a question:\n\n{documents}\n\nQuestion: {question}\n\nThe answer may need one more "
    "document. Name what is still missing as a short search query, with the names that the documents tell. If nothing "
    "is missing, answer: nothing.\n\nSearch query:"
)

# D3 (Nair et al. 2023) section 3.3 and its experiment settings: the section step and the paragraph step.
SECTION_PROMPT = (
    "Document section structure:\n{outline}\n\nQuestion: {question}\n\nList all section names that may be relevant "
    "for answering the question. Respond with comma-separated section name list. Provide an empty response if none "
    "of the sections are relevant."
)
# The same question with numbers in place of names, which no model can misspell; the wording is ours.
SECTION_ID_PROMPT = (
    "Document section structure:\n{outline}\n\nQuestion: {question}\n\nList the ids of all sections that may be "
    "relevant for answering the question. Respond with comma-separated id list. Provide an empty response if none of "
    "the sections are relevant."
)
PARAGRAPH_PROMPT = (
    "{paragraphs}\n\nQuestion: {question}\n\nFind paragraph ids that contains relevant information for answering the "
    "question. Respond with comma-separated id list. Provide an empty response if none of the paragraphs are relevant."
)
# The same for LLMs that can be held to a JSON schema; the wording is ours.
_AS_JSON = 'Respond with a JSON object whose "ids" is the list of their numbers, empty if none of them are relevant.'
SECTION_JSON_PROMPT = (
    "Document section structure:\n{outline}\n\nQuestion: {question}\n\nList the ids of all sections that may be "
    f"relevant for answering the question. {_AS_JSON}"
)
PARAGRAPH_JSON_PROMPT = (
    "{paragraphs}\n\nQuestion: {question}\n\nFind paragraph ids that contains relevant information for answering the "
    f"question. {_AS_JSON}"
)

# Self-ask (Press et al. 2022): the scaffold is the paper's, the worked examples are ours. The model goes on writing
# behind the transcript; what it says after "Follow up:" is asked of a retriever.
SELF_ASK_PROMPT = """Question: Which of the two rivers is longer, the Rhine or the Thames?
Are follow up questions needed here: Yes.
Follow up: How long is the Rhine?
Intermediate answer: The Rhine is 1,230 km long.
Follow up: How long is the Thames?
Intermediate answer: The Thames is 346 km long.
So the final answer is: The Rhine

Question: In which country was the author of Emma born?
Are follow up questions needed here: Yes.
Follow up: Who is the author of Emma?
Intermediate answer: Jane Austen wrote Emma.
Follow up: In which country was Jane Austen born?
Intermediate answer: Jane Austen was born in England.
So the final answer is: England

Question: Who wrote Emma?
Are follow up questions needed here: No.
So the final answer is: Jane Austen

Question: {question}
Are follow up questions needed here:{transcript}"""


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


def fill_question(template: str, question: str) -> str:
    """A template with the question at its last `{question}`; earlier ones belong to the wording, as in demonstrations.

    Raises:
        InvalidInput: the template is no string, or has no place for the question.

    >>> fill_question("What is {question} for? Answer: {question}", "Why?")
    'What is {question} for? Answer: Why?'
    """
    before, after = around_question(template)
    return f"{before}{question}{after}"


def check_question_templates(templates: Sequence[str]) -> tuple[str, ...]:
    """Templates for questions, each with a place for one.

    Raises:
        InvalidInput: none is given, or one has no `{question}`.
    """
    if isinstance(templates, str) or not templates:
        raise InvalidInput(f"Prompts are a non-empty list of strings, not {templates!r:.200}.")
    for template in templates:
        around_question(template)
    return tuple(templates)


def around_question(template: str) -> tuple[str, str]:
    """What stands before and after the last `{question}`.

    Raises:
        InvalidInput: the template is no string, or has no place for the question.
    """
    before, place, after = template.rpartition("{question}") if isinstance(template, str) else ("", "", "")
    if not place:
        raise InvalidInput(f"A template for a question is a string that holds {{question}}; not {template!r:.200}.")
    return before, after
