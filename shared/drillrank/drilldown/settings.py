"""The settings of `D3` and `SelfAsk`: names, defaults, descriptions and checks."""

from __future__ import annotations

from typing import Literal

from drillrank.drilldown.condensing import SummarizeBy
from drillrank.embedding import Embed
from drillrank.errors import InvalidInput, OnFailure, check_limits, check_positive
from drillrank.prompts import (
    ANSWER_PROMPT,
    PARAGRAPH_JSON_PROMPT,
    PARAGRAPH_PROMPT,
    SECTION_ID_PROMPT,
    SECTION_JSON_PROMPT,
    SECTION_PROMPT,
    SELF_ASK_PROMPT,
    Template,
    check_places,
)
from drillrank.rerank.monot5 import MonoT5
from drillrank.rerank.relevance import Relevance
from drillrank.settings import LLMSettings, check_one_of, declared, setting
from drillrank.tokens import Tokens, token_counter
from drillrank.views.summaries import check_summarizer

Strategy = Literal["base", "hierbase", "monot5", "base+monot5", "monot5+base", "likelihood"]
AnswerBy = Literal["names", "ids", "json"]
OnEmpty = Literal["nothing", "likelihood"]

_PROMPTS: dict[AnswerBy, tuple[str, str]] = {
    "names": (SECTION_PROMPT, PARAGRAPH_PROMPT),
    "ids": (SECTION_ID_PROMPT, PARAGRAPH_PROMPT),
    "json": (SECTION_JSON_PROMPT, PARAGRAPH_JSON_PROMPT),
}


@declared
class D3Settings(LLMSettings):
    """Settings of `D3`.

    Raises:
        InvalidInput: a setting is out of its range, or a prompt lacks a place.
    """

    paragraphs: Strategy | None = setting(
        default=None,
        description='How paragraphs of the chosen sections are chosen (section 3.3.2): `"base"`, `"hierbase"`, '
        '`"monot5"`, `"base+monot5"`, `"monot5+base"` or `"likelihood"`; None is base with an LLM, likelihood without.',
    )
    embed: Embed | None = setting(
        default=None,
        description="A function from texts to an array of shape (texts, dimensions); its cosines join the likelihood.",
    )
    monot5: MonoT5 | Relevance | None = setting(
        default=None, description="The ranker of the strategies that name it; None makes one of the model."
    )
    sections: int | None = setting(
        default=None,
        description="How many sections are opened where likelihood chooses them; None for eight, and for a quarter of "
        "more than 32.",
    )
    max_documents: int = setting(
        default=8,
        description="Of more documents than this, only those with the best paragraphs by likelihood are drilled into.",
    )
    guard_tokens: int = setting(
        default=0,
        description="Tokens of paragraphs outside the chosen sections, best by likelihood, that are candidates too: a "
        "summary may have lost what they say. 0 for none.",
    )
    summarizer: SummarizeBy = setting(
        default=None,
        description="Summaries in the outline: None for sentences of the text, a function from texts to summaries, or "
        '`"llm"`. They are made once for each document, by the first question about it.',
    )
    summary_words: int = setting(
        default=36, description="Longest summary in words; 36 words come to about 42 tokens on average."
    )
    max_prompt_tokens: int = setting(
        default=4000,
        description="Budget of a prompt; none is above it. An outline that does not fit is read level by level, "
        "paragraphs that do not fit go into several prompts. One of more than half of what the instruction leaves, "
        "such as a page without blank lines, is cut at its sentences when documents are prepared: each part counts as "
        "a paragraph. One section or paragraph needs no call.",
    )
    tokens: Tokens = setting(
        default=None,
        description="What counts the tokens of a text: see `drillrank.tokens.token_counter`.",
    )
    max_calls: int = setting(
        default=40,
        description="Most calls for one question, summaries apart; with fewer calls than it takes, the likeliest "
        "sections or paragraphs are asked about.",
    )
    sections_by: AnswerBy = setting(
        default="names",
        description='Whether the LLM names sections or gives their numbers; `"json"` asks for numbers as JSON, for '
        "those of paragraphs too, and holds an LLM with `complete_json(prompt, schema)` to its schema.",
    )
    on_empty: OnEmpty = setting(
        default="nothing",
        description='What an answer that chooses nothing means: `"nothing"`, or `"likelihood"`\'s choice instead.',
    )
    on_failure: OnFailure = setting(
        default="continue",
        description='For a call that fails or an answer that cannot be read: `"continue"` with likelihood\'s choice '
        '(of a summary, sentences of the text), or `"raise"`.',
    )
    section_prompt: Template | None = setting(
        default=None,
        description="Asks for sections: a template with `{outline}` and `{question}`, or a function of these that "
        "returns a prompt; None is the paper's, or one for numbers or JSON.",
    )
    paragraph_prompt: Template | None = setting(
        default=None,
        description="Asks for paragraphs: a template with `{paragraphs}` and `{question}`, or a function of these.",
    )

    def check(self) -> None:
        """Refuse what cannot be used."""
        super().check()
        if self.paragraphs is not None:
            check_one_of(Strategy, paragraphs=self.paragraphs)
        check_one_of(AnswerBy, sections_by=self.sections_by)
        check_one_of(OnEmpty, on_empty=self.on_empty)
        if self.monot5 is not None and not isinstance(self.monot5, MonoT5 | Relevance):
            raise InvalidInput(f"monot5 is a MonoT5 or a Relevance, not {self.monot5!r:.100}.")
        check_positive(
            max_documents=self.max_documents,
            summary_words=self.summary_words,
            max_prompt_tokens=self.max_prompt_tokens,
            max_calls=self.max_calls,
        )
        check_limits(sections=self.sections)
        if self.guard_tokens != 0:
            check_positive(guard_tokens=self.guard_tokens)
        if self.summarizer is not None and self.summarizer != "llm":
            check_summarizer(self.summarizer)
        token_counter(self.tokens)
        if self.section_prompt is not None:
            check_places(self.section_prompt, "outline", "question")
        if self.paragraph_prompt is not None:
            check_places(self.paragraph_prompt, "paragraphs", "question")

    @property
    def prompts(self) -> tuple[Template, Template]:
        """The section step's and the paragraph step's prompt."""
        for_sections, for_paragraphs = _PROMPTS[self.sections_by]
        return self.section_prompt or for_sections, self.paragraph_prompt or for_paragraphs


@declared
class SelfAskSettings(LLMSettings):
    """Settings of `SelfAsk`.

    Raises:
        InvalidInput: a setting is out of its range, or a prompt lacks a place.
    """

    max_steps: int = setting(default=5, description="Most follow-up questions; then the final answer is asked for.")
    max_prompt_tokens: int = setting(
        default=3000,
        description="Budget of a prompt. An answer is read from as many whole passages as fit; if not even the first "
        "one does, its middle is left out, as it is of a transcript that is too long.",
    )
    tokens: Tokens = setting(
        default=None,
        description="What counts the tokens of a text: see `drillrank.tokens.token_counter`.",
    )
    prompt: Template = setting(
        default=SELF_ASK_PROMPT,
        description="Asks for the next step: a template with `{question}` and `{transcript}`, which ends the prompt; "
        "or a function of these.",
    )
    answer_prompt: Template = setting(
        default=ANSWER_PROMPT,
        description="Asks for an answer from passages: a template with `{contents}` and `{question}`, or a function of "
        "these.",
    )

    def check(self) -> None:
        """Refuse what cannot be used."""
        super().check()
        check_positive(max_steps=self.max_steps, max_prompt_tokens=self.max_prompt_tokens)
        token_counter(self.tokens)
        check_places(self.prompt, "question", "transcript")
        check_places(self.answer_prompt, "contents", "question")
