"""The settings of `D3`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from drillrank.corpus.documents import Unit
from drillrank.drilldown.versions import parse_date
from drillrank.errors import InvalidInput, OnFailure, check_limits, check_positive
from drillrank.prompts import Template, check_places
from drillrank.rerank.relevance import MonoT5, Relevance
from drillrank.settings import Settings, check_one_of
from drillrank.text import Tokens, token_counter
from drillrank.views import HuggingFaceSummarizer, Summarizer, check_summarizer

Strategy = Literal[
    "base", "hierbase", "monot5", "base+monot5", "monot5+base", "likelihood",
    "paragraph", "chunk", "map-reduce", "map-reduce-optimised",
]  # fmt: skip
WITHOUT_SECTIONS: tuple[Strategy, ...] = ("paragraph", "chunk", "map-reduce", "map-reduce-optimised")
"""Strategies that read all sections: what the paper compares D3 with."""
SummarizeBy = Summarizer | Literal["llm"] | None
AnswerBy = Literal["names", "json"]

# D3 (Nair et al. 2023) section 3.3 and its experiment settings: the section step and the paragraph step.
SECTION_PROMPT = (
    "Document section structure:\n{outline}\n\nQuestion: {question}\n\nList all section names that may be relevant "
    "for answering the question. Respond with comma-separated section name list. Provide an empty response if none "
    "of the sections are relevant."
)
PARAGRAPH_PROMPT = (
    "{paragraphs}\n\nQuestion: {question}\n\nFind paragraph ids that contains relevant information for answering the "
    "question. Respond with comma-separated id list. Provide an empty response if none of the paragraphs are relevant."
)
# Of one paragraph: the paper gives no wording, this one is ours.
BOOLEAN_PROMPT = (
    "{paragraphs}\n\nQuestion: {question}\n\nDoes the paragraph contain relevant information for answering the "
    "question? Respond with yes or no."
)
# The same with numbers, which no model can misspell, for LLMs that can be held to a JSON schema; the wording is ours.
_AS_JSON = 'Respond with a JSON object whose "ids" is the list of their numbers, empty if none of them are relevant.'
SECTION_JSON_PROMPT = (
    "Document section structure:\n{outline}\n\nQuestion: {question}\n\nList the ids of all sections that may be "
    f"relevant for answering the question. {_AS_JSON}"
)
PARAGRAPH_JSON_PROMPT = (
    "{paragraphs}\n\nQuestion: {question}\n\nFind paragraph ids that contains relevant information for answering the "
    f"question. {_AS_JSON}"
)

_PROMPTS: dict[AnswerBy, tuple[str, str]] = {
    "names": (SECTION_PROMPT, PARAGRAPH_PROMPT),
    "json": (SECTION_JSON_PROMPT, PARAGRAPH_JSON_PROMPT),
}

MAX_DOCUMENTS = 8  # whose outlines an LLM is shown, or that are read as a whole in a store, by default


@dataclass(frozen=True, kw_only=True)
class D3Settings(Settings):
    """How `D3` drills down.

    Attributes:
        paragraphs: How paragraphs of the chosen sections are chosen (section 3.3.2): `"base"`, `"hierbase"`,
            `"monot5"`, `"base+monot5"`, `"monot5+base"` or `"likelihood"`; None is base with an LLM, likelihood
            without. Or, to compare with, of all sections, without a look at the outline: `"paragraph"` (a prompt each
            that asks for yes or no), `"chunk"` (base on one prompt after the other; the paper's have 3,500 tokens),
            `"map-reduce"` (paragraph, then base over what is left), `"map-reduce-optimised"` (chunk, then base).
        unit: Unit of evidence of documents in memory: `"paragraph"`, as in the paper, or `"passage"`: consecutive
            blocks of up to about 1,200 characters, short sections joined (`drillrank.structure.passages`).
        monot5: The ranker of the strategies that name it; None makes one of the model.
        sections: Without an LLM, read the paragraphs of so many sections only, the likeliest; None reads all.
        max_documents: Of more documents than this, only the likeliest are drilled into (`drilldown.levels`); None is 8
            with an LLM, all without.
        as_of: A year, month or day such as `"2023-06"`: documents of later are not read, and of several versions of one
            that of this time is (`D3.prepare`). None takes the newest.
        answerable: Where words alone decide: the probability that the documents speak of the question, from which on
            `found` is True. By .16, of 141 questions about reports, papers and READMEs 5% were refused; asked of
            reports of other companies, 66% of 47; of documents of another kind, 97% of 141 (docs/drill-down.md).
        repeats: Without an LLM: whether paragraphs that say the same, with the same numbers, come each for itself; else
            the first stands for all, and its `also_at` says where else they stand.
        follow: Without an LLM, where words decide: whether what a paragraph points to, such as "see Section 4", comes
            right behind it: the likeliest paragraph there, if the document has it. Its `followed` is the id of the
            paragraph that points to it, whose score it has.
        guard_tokens: Tokens of paragraphs outside the chosen sections, best by likelihood, that are candidates too: a
            summary may have lost what they say. 0 for none.
        summarizer: Summaries in the outline: None for sentences of the text, a function from texts to summaries, or
            `"llm"`. They are made once for each document, by the first question about it.
        summary_words: Longest summary of sentences in words; 36 words come to about 42 tokens on average.
        summarize_above: Words up to which a text is its own summary, and a summarizer is not asked; None for
            `summary_words`.
        written_words: Longest summary that a summarizer writes; longer ones keep some of their sentences. None for any
            length.
        whole_paths: Whether names of sections begin with the sole heading above all of them, which is the document's
            title; else it is left out, as it tells no section apart.
        max_prompt_tokens: Budget of a prompt; none is above it. An outline that does not fit is read level by level,
            paragraphs that do not fit go into several prompts. One of more than half of what the instruction leaves,
            such as a page without blank lines, is cut at its sentences when documents are prepared: each part counts as
            a paragraph. One section or paragraph needs no call.
        tokens: What counts the tokens of a text: see `drillrank.text.token_counter`.
        max_calls: Most calls for one question, summaries apart; with fewer calls than it takes, the likeliest sections
            or paragraphs are asked about.
        sections_by: Whether the LLM names sections or gives their numbers; `"json"` asks for numbers as JSON, for those
            of paragraphs too, and holds an LLM with `complete_json(prompt, schema)` to its schema. None is `"json"`
            where a server can hold its LLM to a schema (`ServedLLM`) and the prompts are ours, else `"names"`.
        on_failure: For a call that fails or an answer that cannot be read: `"continue"` with likelihood's choice (of a
            summary, sentences of the text), or `"raise"`.
        workers: Most LLM calls at the same time: of one question, or of one call with documents.
        section_prompt: Asks for sections: a template with `{outline}` and `{question}`, or a function of these that
            returns a prompt; None is the paper's, or one for numbers or JSON.
        paragraph_prompt: Asks for paragraphs: a template with `{paragraphs}` and `{question}`, or a function of these.
        preset: `"paper"`: as published, where the other settings leave it open. Every section goes to a summarizer,
            bart-large-cnn, names of sections hold all headings, and the LLM is asked for names.

    Raises:
        InvalidInput: a setting is out of its range, or a prompt lacks a place.

    >>> D3Settings.from_dict({"sections": 3}).sections
    3
    """

    paragraphs: Strategy | None = None
    unit: Unit = "paragraph"
    monot5: MonoT5 | Relevance | None = None
    sections: int | None = None
    max_documents: int | None = None
    as_of: str | None = None
    answerable: float = 0.16
    repeats: bool = False
    follow: bool = True
    guard_tokens: int = 0
    summarizer: SummarizeBy = None
    summary_words: int = 36
    summarize_above: int | None = None
    written_words: int | None = None
    whole_paths: bool = False
    max_prompt_tokens: int = 4000
    tokens: Tokens = None
    max_calls: int = 40
    sections_by: AnswerBy | None = None
    on_failure: OnFailure = "continue"
    workers: int = 4
    section_prompt: Template | None = None
    paragraph_prompt: Template | None = None
    preset: Literal["paper"] | None = None

    def __post_init__(self) -> None:
        if self.preset == "paper":
            paper = {"summarize_above": 0, "sections_by": "names"}
            paper = {name: value for name, value in paper.items() if getattr(self, name) is None} | {
                "whole_paths": True
            }
            for name, value in paper.items():
                object.__setattr__(self, name, value)
            if self.summarizer is None:
                object.__setattr__(self, "summarizer", HuggingFaceSummarizer(min_tokens=0))
        elif self.preset is not None:
            raise InvalidInput(f'preset is "paper" or None, not {self.preset!r:.200}.')
        if self.paragraphs is not None:
            check_one_of(Strategy, paragraphs=self.paragraphs)
        check_one_of(Unit, unit=self.unit)
        if self.sections_by is not None:
            check_one_of(AnswerBy, sections_by=self.sections_by)
        check_one_of(OnFailure, on_failure=self.on_failure)
        for name, flag in (("whole_paths", self.whole_paths), ("repeats", self.repeats), ("follow", self.follow)):
            if not isinstance(flag, bool):
                raise InvalidInput(f"{name} is True or False, not {flag!r:.200}.")
        if self.monot5 is not None and not isinstance(self.monot5, MonoT5 | Relevance):
            raise InvalidInput(f"monot5 is a MonoT5 or a Relevance, not {self.monot5!r:.100}.")
        check_positive(
            summary_words=self.summary_words,
            max_prompt_tokens=self.max_prompt_tokens,
            max_calls=self.max_calls,
        )
        if not isinstance(self.answerable, int | float) or not 0 <= self.answerable <= 1:
            raise InvalidInput(f"answerable is a probability from 0 to 1, not {self.answerable!r:.200}.")
        if self.as_of is not None:
            parse_date(self.as_of)
        check_limits(sections=self.sections, max_documents=self.max_documents, written_words=self.written_words)
        if self.summarize_above != 0:
            check_limits(summarize_above=self.summarize_above)
        if self.guard_tokens != 0:
            check_positive(guard_tokens=self.guard_tokens)
        if self.summarizer is not None and self.summarizer != "llm":
            check_summarizer(self.summarizer)
        token_counter(self.tokens)
        check_positive(workers=self.workers)
        if self.section_prompt is not None:
            check_places(self.section_prompt, "outline", "question")
        if self.paragraph_prompt is not None:
            check_places(self.paragraph_prompt, "paragraphs", "question")
        super().__post_init__()

    @property
    def prompts(self) -> tuple[Template, Template]:
        """The section step's and the paragraph step's prompt."""
        for_sections, for_paragraphs = _PROMPTS[self.sections_by or "names"]
        return self.section_prompt or for_sections, self.paragraph_prompt or for_paragraphs
