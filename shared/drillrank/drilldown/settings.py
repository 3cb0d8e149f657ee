"""The settings of `D3`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from drillrank.corpus.documents import DEFAULT_UNIT, Unit
from drillrank.drilldown.evidence_paths import Hops
from drillrank.drilldown.prompts import (
    PARAGRAPH_JSON_PROMPT,
    PARAGRAPH_PROMPT,
    SECTION_JSON_PROMPT,
    SECTION_PROMPT,
)
from drillrank.drilldown.versions import parse_date
from drillrank.errors import InvalidInput, OnFailure, check_limits, check_on_failure, check_positive
from drillrank.prompts import Template, check_placeholders
from drillrank.rerank.relevance import MonoT5, Relevance
from drillrank.settings import Settings, check_one_of
from drillrank.text import Tokens, token_counter
from drillrank.views import HuggingFaceSummarizer, Summarizer, check_summarizer

Strategy = Literal[
    "base", "hierbase", "monot5", "base+monot5", "monot5+base", "likelihood",
    "paragraph", "chunk", "map-reduce", "map-reduce-optimised",
]  # fmt: skip
WITHOUT_SECTIONS: tuple[Strategy, ...] = ("paragraph", "chunk", "map-reduce", "map-reduce-optimised")
"""Strategies that read all sections: the paper's baselines."""
SummarizeBy = Summarizer | Literal["llm"] | None
AnswerBy = Literal["names", "json"]

_PROMPTS: dict[AnswerBy, tuple[str, str]] = {
    "names": (SECTION_PROMPT, PARAGRAPH_PROMPT),
    "json": (SECTION_JSON_PROMPT, PARAGRAPH_JSON_PROMPT),
}

READ, READ_ALONE = 20, 50  # paragraphs that a neural model reads: in a sum with the unigram model, and alone
READ_JUDGED = 8  # paragraphs that a judge reads
MAX_READ = 1000
MAX_DOCUMENTS = 8  # default number of documents whose outlines an LLM sees, or that are read from a store


@dataclass(frozen=True, kw_only=True)
class D3Settings(Settings):
    """Settings of `D3`. None leaves a value to the preset, or to the default that is named here.

    Attributes:
        paragraphs: Strategy that chooses paragraphs of the chosen sections (section 3.3.2): `"base"`, `"hierbase"`,
            `"monot5"`, `"base+monot5"`, `"monot5+base"` or `"likelihood"`. None is base with an LLM and likelihood
            without. The paper's baselines read all sections without an outline: `"paragraph"` (one yes-or-no prompt per
            paragraph), `"chunk"` (base on one prompt after the other; the paper's have 3,500 tokens), `"map-reduce"`
            (paragraph, then base) and `"map-reduce-optimised"` (chunk, then base).
        unit: Unit of evidence: `"passage"`, consecutive paragraphs of up to about 1,200 characters, short sections
            joined (`drillrank.structure.passages`), or `"paragraph"`, the paper's. None is `"passage"`.
        monot5: Ranker of the strategies that name it. None makes one of the model.
        sections: Number of likeliest sections to read, without an LLM. None reads all.
        max_documents: Number of likeliest documents to drill into. None is 8 with an LLM, all without.
        as_of: Year, month or day such as `"2023-06"`. Later documents are not read, and of several versions the one of
            that time is (`D3.prepare`). None reads the newest.
        repeats: True to return paragraphs that say the same, with the same numbers, each on its own, without an LLM.
            Otherwise the first represents all, and its `also_at` lists the others.
        follow: True to insert what a paragraph refers to, such as "see Section 4", right behind it. Lexical scores
            alone must decide. Its `followed` is the id of the paragraph that refers to it.
        hops: 2 follows the links of the best passages to other documents, without an LLM: hyperlinks, and mentions of
            titles, headings, file names and rare names (`evidence_paths`). 1 follows none. None follows those of the
            best passage if it lacks content words of the question. Passages that a link leads to have the details
            `path` and `link`. The paper follows none.
        read: Number of paragraphs that a neural `model` reads, at most 1000: those with the best scores from term
            statistics and embeddings. The others follow in their order, with `read` False in their details. None is 20
            in a sum with the unigram model, such as `"unigram+hf:..."`, 50 for other neural models, and 8 for a judge.
        judge: Ranker that says for each of the best `read` paragraphs whether it contains relevant information, such as
            `Relevance("hf:<directory>")` of a model that follows instructions. Its log-odds, times 2, are added to the
            scores. The model that `D3` ranks by must be the built-in one. Not in the paper.
        guard_tokens: Number of tokens of likely paragraphs outside the chosen sections that become candidates too. A
            summary may omit them. 0 for none.
        summarizer: Summarizer of sections: None takes sentences of the text, or a function from texts to summaries, or
            `"llm"`. Each document is summarized once, for its first question.
        summary_words: Length of a summary of sentences, in words. 36 words are about 42 tokens.
        summarize_above: Number of words up to which a text is its own summary. None is `summary_words`.
        written_words: Limit of a summarizer's summaries, in words; longer ones lose sentences. None for no limit.
        whole_paths: True to begin names of sections with the document's title: the sole heading above all others. None
            is False.
        max_prompt_tokens: Token limit of each prompt. An outline that does not fit is read level by level. Paragraphs
            that do not fit go into several prompts. A paragraph above half the limit is cut at its sentences when
            documents are prepared, and each part counts as a paragraph. A single section or paragraph needs no call.
        tokens: Tokenizer that counts tokens; see `drillrank.text.token_counter`.
        max_calls: Limit on LLM calls per question, without those for summaries. With too few calls, the LLM is asked
            about the likeliest candidates.
        sections_by: `"names"` or `"json"`. With `"json"`, the LLM gives numbers as JSON, and an LLM with
            `complete_json(prompt, schema)` follows its schema. None is `"json"` if a server supports schemas and the
            prompts are ours, else `"names"`.
        on_failure: `"raise"` raises an `LLMFailure` if a call of the LLM fails or its answer is unusable. `"fallback"`
            takes likelihood's choice instead, or sentences of the text as a summary. None raises if a call fails, and
            falls back if an answer is unusable.
        workers: Number of LLM calls at the same time.
        section_prompt: Prompt for sections: a template with `{outline}` and `{question}`, or a function of these. None
            is the paper's, or ours for JSON.
        paragraph_prompt: Prompt for paragraphs: a template with `{paragraphs}` and `{question}`, or a function.
        preset: `"paper"` sets what the paper fixes and the other settings leave open: paragraphs are the unit and are
            cut only if no prompt has room for them, a summarizer (bart-large-cnn) summarizes every section, names of
            sections have all headings, and the LLM answers with names.

    Raises:
        InvalidInput: A setting is out of range, or a prompt lacks a placeholder.

    >>> D3Settings.from_dict({"sections": 3}).sections
    3
    >>> D3Settings(preset="paper", whole_paths=False).complete().unit
    'paragraph'
    """

    paragraphs: Strategy | None = None
    unit: Unit | None = None
    monot5: MonoT5 | Relevance | None = None
    sections: int | None = None
    max_documents: int | None = None
    as_of: str | None = None
    repeats: bool = False
    follow: bool = True
    hops: Hops | None = None
    read: int | None = None
    judge: MonoT5 | Relevance | None = None
    guard_tokens: int = 0
    summarizer: SummarizeBy = None
    summary_words: int = 36
    summarize_above: int | None = None
    written_words: int | None = None
    whole_paths: bool | None = None
    max_prompt_tokens: int = 4000
    tokens: Tokens = None
    max_calls: int = 40
    sections_by: AnswerBy | None = None
    on_failure: OnFailure | None = None
    workers: int = 4
    section_prompt: Template | None = None
    paragraph_prompt: Template | None = None
    preset: Literal["paper"] | None = None

    def __post_init__(self) -> None:
        if self.preset not in ("paper", None):
            raise InvalidInput(f'preset must be "paper" or None, got {self.preset!r:.200}.')
        if self.paragraphs is not None:
            check_one_of(Strategy, paragraphs=self.paragraphs)
        if self.unit is not None:
            check_one_of(Unit, unit=self.unit)
        if self.sections_by is not None:
            check_one_of(AnswerBy, sections_by=self.sections_by)
        check_on_failure(self.on_failure)
        for name, flag in (("repeats", self.repeats), ("follow", self.follow)):
            if not isinstance(flag, bool):
                raise InvalidInput(f"{name} must be True or False, got {flag!r:.200}.")
        if self.hops not in (1, 2, None) or isinstance(self.hops, bool | float):
            raise InvalidInput(f"hops must be 1, 2 or None, got {self.hops!r:.200}. Give 2 to follow links.")
        if not isinstance(self.whole_paths, bool | None):
            raise InvalidInput(f"whole_paths must be True, False or None, got {self.whole_paths!r:.200}.")
        for name, ranker in (("monot5", self.monot5), ("judge", self.judge)):
            if ranker is not None and not isinstance(ranker, MonoT5 | Relevance):
                raise InvalidInput(f"{name} must be a MonoT5 or a Relevance, got {ranker!r:.100}.")
        if self.as_of is not None:
            parse_date(self.as_of)
        self._check_numbers()
        if self.summarizer is not None and self.summarizer != "llm":
            check_summarizer(self.summarizer)
        token_counter(self.tokens)
        if self.section_prompt is not None:
            check_placeholders(self.section_prompt, "outline", "question")
        if self.paragraph_prompt is not None:
            check_placeholders(self.paragraph_prompt, "paragraphs", "question")
        super().__post_init__()

    def _check_numbers(self) -> None:
        check_positive(
            summary_words=self.summary_words,
            max_prompt_tokens=self.max_prompt_tokens,
            max_calls=self.max_calls,
            workers=self.workers,
        )
        check_limits(sections=self.sections, max_documents=self.max_documents, written_words=self.written_words)
        check_limits(read=self.read)
        if self.read is not None and self.read > MAX_READ:
            raise InvalidInput(f"read must be at most {MAX_READ}, got {self.read!r:.200}. Lower it.")
        if self.summarize_above != 0:
            check_limits(summarize_above=self.summarize_above)
        if self.guard_tokens != 0:
            check_positive(guard_tokens=self.guard_tokens)

    def complete(self) -> D3Settings:
        """Return the settings with the values of the preset, or the defaults, for what is None."""
        if self.preset != "paper":
            return replace(self, unit=self.unit or DEFAULT_UNIT, whole_paths=bool(self.whole_paths))
        return replace(
            self,
            unit=self.unit or "paragraph",
            whole_paths=True if self.whole_paths is None else self.whole_paths,
            summarizer=HuggingFaceSummarizer(min_tokens=0) if self.summarizer is None else self.summarizer,
            summarize_above=0 if self.summarize_above is None else self.summarize_above,
            sections_by=self.sections_by or "names",
        )

    @property
    def follows_links(self) -> bool:
        """True if links to other documents may be followed. By default, passages follow them and paragraphs do not."""
        if self.paragraphs not in ("likelihood", None) or self.hops == 1:
            return False
        return self.hops == 2 or (self.unit == "passage" and self.preset is None)

    @property
    def prompts(self) -> tuple[Template, Template]:
        """Templates of the section step and the paragraph step."""
        for_sections, for_paragraphs = _PROMPTS[self.sections_by or "names"]
        return self.section_prompt or for_sections, self.paragraph_prompt or for_paragraphs
