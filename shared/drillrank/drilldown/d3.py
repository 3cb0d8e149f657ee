"""D3: drill down a document's outline to the sections, and in the sections to the paragraphs, that hold the evidence.

Nair et al. (2023), "Drilling Down into the Discourse Structure with LLMs for Long Document Question Answering". With an
LLM, sections and paragraphs are its choice; without one, likelihood's (see `drillrank.drilldown.evidence`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, get_args

from drillrank.dialogue import LLM, Dialogue, Usage, arun, conversation, run
from drillrank.drilldown.asking import AnswerBy, Asking
from drillrank.drilldown.condensing import Condenser, Summarise
from drillrank.drilldown.drill import Drill, Plan, Step, Strategy
from drillrank.drilldown.evidence import Embed, Evidence, load_evidence_model
from drillrank.drilldown.outline import BEGINNING, Outline, OutlineSection, outline
from drillrank.drilldown.pieces import LEAST, bounded
from drillrank.drilldown.prepared import Drillable
from drillrank.errors import DrillrankWarning, InvalidInput, check_positive
from drillrank.likelihood import LanguageModel
from drillrank.passages import Passage, Ranked, check_query, check_top_n
from drillrank.prompts import (
    PARAGRAPH_JSON_PROMPT,
    PARAGRAPH_PROMPT,
    SECTION_ID_PROMPT,
    SECTION_JSON_PROMPT,
    SECTION_PROMPT,
    Template,
    check_places,
    filled,
)
from drillrank.rerank.monot5 import MonoT5
from drillrank.rerank.upr import UPR
from drillrank.structure import Document
from drillrank.tokens import Tokens, token_counter
from drillrank.workers import Workers

Documents = Drillable | Sequence[Document | str] | Sequence[OutlineSection]


_PROMPTS: dict[AnswerBy, tuple[str, str]] = {
    "names": (SECTION_PROMPT, PARAGRAPH_PROMPT),
    "ids": (SECTION_ID_PROMPT, PARAGRAPH_PROMPT),
    "json": (SECTION_JSON_PROMPT, PARAGRAPH_JSON_PROMPT),
}


class EvidenceRanking(list[Ranked[Passage]]):
    """Evidence paragraphs, best first.

    Attributes:
        usage: What the LLM calls cost.
        steps: What was offered and chosen on the way, and what went wrong.
        problems: All that went wrong, each with its step and what was done instead. Where there are any, each entry's
            `details` hold them, too.
    """

    def __init__(self, ranking: Sequence[Ranked[Passage]], usage: Usage, steps: Sequence[Step] = ()) -> None:
        super().__init__(ranking)
        self.usage = usage
        self.steps = tuple(steps)
        self.problems = tuple(f"{step.kind}: {problem}" for step in self.steps for problem in step.problems)
        if self.problems:
            self[:] = [replace(item, details={**item.details, "problems": self.problems}) for item in self]


class D3:
    """Finds evidence paragraphs in long structured documents by drilling down their sections.

    Args:
        llm: Chooses sections and paragraphs: a function from prompt to answer, sync or async, or an object with
            `complete` and, if it has one, `acomplete`. None chooses by likelihood.
        lm: A language model, or its specification: scores paragraphs, and chooses where there is no LLM or it fails. A
            lexical model that has not been fitted is fitted with the documents' sections and paragraphs, on a copy.
        paragraphs: How paragraphs of the chosen sections are chosen (section 3.3.2): `"base"`, `"hierbase"`,
            `"monot5"`, `"base+monot5"`, `"monot5+base"` or `"likelihood"`; by default base with an LLM, likelihood
            without.
        embed: A function from texts to an array of shape (texts, dimensions); its cosines join the likelihood.
        monot5: The ranker of the strategies that name it; by default `MonoT5(lm)`.
        sections: How many sections are opened where likelihood chooses them.
        documents: Of more documents than this, only those with the best paragraphs by likelihood are drilled into.
        guard_tokens: Tokens of paragraphs outside the chosen sections, best by likelihood, that are candidates too:
            a summary may have lost what they say. 0 for none.
        summarise: Summaries in the outline: None for sentences of the text, a function from texts to summaries, or
            `"llm"`. They are made once for each document, by the first question about it.
        summary_words: Longest summary; 36 words come to about 42 tokens on average.
        max_prompt_tokens: Budget of a prompt; none is above it. An outline that does not fit is read level by level,
            paragraphs that do not fit go into several prompts. One of more than half of what the instruction leaves,
            such as a page without blank lines, is cut at its sentences when documents are prepared: each piece counts
            as a paragraph. One section or paragraph needs no call.
        tokens: What counts the tokens of a text: see `drillrank.tokens.token_counter`.
        max_calls: Most calls for one question, summaries apart; with fewer calls than it takes, the likeliest sections
            or paragraphs are asked about.
        sections_by: Whether the LLM names sections or gives their numbers; `"json"` asks for numbers as JSON,
            for those of paragraphs too, and holds an LLM with `complete_json(prompt, schema)` to its schema.
        on_empty: What an answer that chooses nothing means: `"nothing"`, or `"likelihood"`'s choice instead.
        on_failure: For a call that fails or an answer that cannot be read: `"likelihood"`'s choice (of a
            summary, sentences of the text), or `"raise"`.
        workers: Most LLM calls at once, all questions of this object together.
        section_prompt: With `{outline}` and `{question}`, or a function of these that returns a prompt; the paper's, or
            one for numbers or JSON, by default.
        paragraph_prompt: With `{paragraphs}` and `{question}`, or a function of these.

    Scores are mean log-likelihoods per question token (with `embed`, plus cosines and a prior for length, spread over
    the tokens: see `drillrank.drilldown.evidence`), or MonoT5's where it has the last word; comparable within one
    question only. `details` holds those of `UPR` or `MonoT5`, `guarded`, without an LLM `section_score` and
    `section_rank`, and `problems` if anything went wrong; `nothing_matched`
    without an LLM or `embed`, if no paragraph holds a word of the question: then the documents' order stays.

    Raises:
        InvalidInput: a setting is out of its range, or a strategy lacks the model it needs.

    >>> manual = '''# Manual
    ...
    ... Read me first.
    ...
    ... ## Battery
    ...
    ... The battery lasts nine hours.
    ...
    ... Charge it over night.
    ...
    ... ## Screen
    ...
    ... Clean the screen with a dry cloth.
    ... '''
    >>> [item.passage.text for item in D3().retrieve("How many hours does the battery last?", [manual])]
    ['The battery lasts nine hours.']
    >>> llm = lambda prompt: "Battery" if "section names" in prompt else "2"
    >>> found = D3(llm).retrieve("When should I charge it?", [manual])
    >>> [item.passage.text for item in found], found.usage.calls
    (['Charge it over night.'], 2)
    """

    def __init__(
        self,
        llm: LLM | None = None,
        lm: str | LanguageModel = "unigram",
        *,
        paragraphs: Strategy | None = None,
        embed: Embed | None = None,
        monot5: MonoT5 | None = None,
        sections: int = 8,
        documents: int = 8,
        guard_tokens: int = 0,
        summarise: Summarise = None,
        summary_words: int = 36,
        max_prompt_tokens: int = 4000,
        tokens: Tokens = None,
        max_calls: int = 40,
        sections_by: AnswerBy = "names",
        on_empty: Literal["nothing", "likelihood"] = "nothing",
        on_failure: Literal["likelihood", "raise"] = "likelihood",
        workers: int = 4,
        section_prompt: Template | None = None,
        paragraph_prompt: Template | None = None,
    ) -> None:
        strategy: Strategy = paragraphs or ("base" if llm is not None else "likelihood")
        _check_one_of(strategy, Strategy, "paragraphs")
        _check_one_of(on_empty, Literal["nothing", "likelihood"], "on_empty")
        _check_one_of(on_failure, Literal["likelihood", "raise"], "on_failure")
        check_positive(sections=sections, documents=documents, max_prompt_tokens=max_prompt_tokens, max_calls=max_calls)
        if guard_tokens != 0:
            check_positive(guard_tokens=guard_tokens)
        if llm is None and ("base" in strategy or summarise == "llm"):
            raise InvalidInput(f"paragraphs={strategy!r} with summarise={summarise!r} needs an LLM: give llm.")
        self.lm = load_evidence_model(lm)
        self._llm = llm
        self._workers = Workers(workers)
        self._embed = embed
        self._limits = max_prompt_tokens, max_calls
        self._on_failure: Literal["likelihood", "raise"] = on_failure
        self._on_empty: Literal["nothing", "likelihood"] = on_empty
        self._count = token_counter(tokens)
        section_default, paragraph_default = default_prompts(sections_by)
        self._plan = Plan(
            with_llm=llm is not None,
            paragraphs=strategy,
            monot5=(monot5 or MonoT5(self.lm)) if "monot5" in strategy else None,
            sections=sections,
            documents=documents,
            guard_tokens=guard_tokens,
            answer_by=sections_by,
            section_prompt=check_places(section_prompt or section_default, "outline", "question"),
            paragraph_prompt=check_places(paragraph_prompt or paragraph_default, "paragraphs", "question"),
            condenser=Condenser(summarise, summary_words, max_prompt_tokens, self._count, on_failure),
        )

    def prepare(self, documents: Sequence[Document | str] | Sequence[OutlineSection]) -> Drillable:
        """Parse and index documents once, for many questions; `embed` runs here.

        Args:
            documents: Parsed documents or strings, or the sections of documents that live elsewhere.

        Raises:
            InvalidInput: an item is none of these, or the embeddings are not one vector a text.
        """
        sections = [item for item in documents if isinstance(item, OutlineSection)]
        if not sections or len(sections) < len(documents):
            sections = outline(documents)  # type: ignore[arg-type]  # it says what is wrong with the others
        sections = [bounded(section, self._longest(), self._count) for section in sections]
        tree = Outline(sections)
        names = [entry.name for entry in tree.leaves(range(len(sections)))]
        named = [
            replace(
                section,
                passage=_under(name, section.passage),
                readable=tuple(_under(name, p) for p in section.readable),
            )
            for name, section in zip(names, sections, strict=True)
        ]
        readable = [paragraph for section in named for paragraph in section.readable]
        texts = [passage.titled_text for section in named for passage in (section.passage, *section.readable)]
        lm = self.lm.fitted(texts)
        owners = [at for at, section in enumerate(named) for _ in section.readable]
        evidence = Evidence(readable, lm, self._embed, owners)
        proposals = evidence
        if lm.reads_instructions:
            proposals = Evidence(readable, load_evidence_model().fit(texts))
        return Drillable(tree, evidence, proposals, UPR(lm), tuple(section.passage for section in named))

    def _longest(self) -> int:
        """Tokens of the longest paragraph: the other half of what the instruction leaves is for the question."""
        instruction = filled(self._plan.paragraph_prompt, paragraphs="", question="")
        return max((self._limits[0] - self._count(instruction)) // 2, LEAST)

    def retrieve(
        self,
        question: str,
        documents: Documents,
        top_n: int | None = None,
        *,
        llm: LLM | None = None,
        on_step: Callable[[Step], object] | None = None,
    ) -> EvidenceRanking:
        """Evidence paragraphs, best first; ties keep the documents' order.

        Whatever the LLM answers, and whether it answers at all, the result holds paragraphs of the documents, each
        once. What went wrong is in `problems` and in one `DrillrankWarning`.

        Args:
            question: The question.
            documents: What `prepare` returned, or what it takes.
            top_n: Most paragraphs to return. None returns all that the LLM chose; where likelihood chooses, as many
                as make the expected F1 largest.
            llm: Is asked in place of the one given before; it carries what belongs to this question only.
            on_step: Called with each step as soon as it is done, on a worker thread in asynchronous use.

        Raises:
            InvalidInput: the question is blank or too long for a prompt, `top_n` is below 1, a document cannot be used,
                or the LLM is asynchronous.
            LLMFailure: a call failed or was unusable, and `on_failure` is `"raise"`; the call's own error is its cause.
        """
        usage = Usage(count=self._count)
        dialogue = self.dialogue(question, documents, top_n, on_step=on_step, usage=usage)
        return run(dialogue, llm or self._llm or _no_llm, usage, workers=self._workers)

    async def aretrieve(
        self,
        question: str,
        documents: Documents,
        top_n: int | None = None,
        *,
        llm: LLM | None = None,
        on_step: Callable[[Step], object] | None = None,
    ) -> EvidenceRanking:
        """As `retrieve`, without blocking the event loop; prompts of one step are asked at the same time."""
        usage = Usage(count=self._count)
        dialogue = self.dialogue(question, documents, top_n, on_step=on_step, usage=usage)
        return await arun(dialogue, llm or self._llm or _no_llm, workers=self._workers, usage=usage)

    @conversation
    def dialogue(
        self,
        question: str,
        documents: Documents,
        top_n: int | None = None,
        *,
        on_step: Callable[[Step], object] | None = None,
        usage: Usage | None = None,
    ) -> Dialogue[EvidenceRanking]:
        """What `retrieve` runs, for other dialogues to hold: it yields prompts and returns the ranking.

        Args:
            question: The question.
            documents: As for `retrieve`.
            top_n: As for `retrieve`.
            on_step: As for `retrieve`.
            usage: Where the caller counts, to be found in the result.
        """
        check_query(question)
        check_top_n(top_n)
        ready = documents if isinstance(documents, Drillable) else self.prepare(documents)
        asking = Asking(question, *self._limits, self._on_failure, self._on_empty, self._count)
        drill = Drill(self._plan, ready, asking, on_step)
        ranking = yield from drill.ranking(top_n)
        found = EvidenceRanking(ranking, usage or Usage(count=self._count), drill.steps)
        if problems := found.problems:
            warnings.warn(
                f"Drilling down for {question!r:.100}: {'; '.join(problems[:5])}"
                f"{f'; and {len(problems) - 5} more' if len(problems) > 5 else ''}.",
                DrillrankWarning,
                stacklevel=2,
            )
        return found


def default_prompts(sections_by: AnswerBy) -> tuple[str, str]:
    """The section step's and the paragraph step's prompt for a kind of answer.

    Raises:
        InvalidInput: there is no such kind.
    """
    _check_one_of(sections_by, AnswerBy, "sections_by")
    return _PROMPTS[sections_by]


def _under(name: str, passage: Passage) -> Passage:
    """The passage as it is scored: under its name in the outline, which leaves out what is above all sections."""
    return replace(passage, title="" if name == BEGINNING else name)


def _no_llm(prompt: str) -> str:
    raise AssertionError(f"the LLM-free mode asked for {prompt!r:.100}")


def _check_one_of(value: object, options: object, name: str) -> None:
    if value not in get_args(options):
        raise InvalidInput(f"{name} is one of {', '.join(get_args(options))}; not {value!r}.")
