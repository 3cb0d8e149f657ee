"""D3 without an LLM: choose sections by question likelihood, then paragraphs of the chosen sections.

section s, then paragraph p of the best sections:  (1/|q|) Σ_t log p(q_t | q_<t, path of headings and text)
                                                Nair et al. (2023), section 3, with likelihood in place of the LLM
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from drillrank.dialogue import Usage
from drillrank.drilldown.outline import OutlineSection, outline
from drillrank.errors import InvalidInput, check_positive
from drillrank.likelihood import LanguageModel, load_language_model
from drillrank.passages import Passage, Ranked, check_query, check_top_n
from drillrank.rerank.upr import UPR
from drillrank.structure import Document


class EvidenceRanking(list[Ranked[Passage]]):
    """Evidence paragraphs, best first, and what the LLM calls for them cost."""

    def __init__(self, ranking: Sequence[Ranked[Passage]], usage: Usage) -> None:
        super().__init__(ranking)
        self.usage = usage


@dataclass(frozen=True, slots=True)
class Drillable:
    """Documents made ready for many questions: their outline, and a ranker with their collection statistics."""

    sections: tuple[OutlineSection, ...]
    ranker: UPR


class D3:
    """Finds evidence paragraphs in long structured documents by drilling down their sections.

    Args:
        llm: None, the LLM-free mode, is the only one so far.
        lm: A language model, or its specification. A lexical model that has not been fitted is fitted with the
            documents' sections and paragraphs, on a copy.
        sections: How many sections are opened.

    Scores are mean log-probabilities per question token, at most 0, comparable within one question only. `details`
    holds those of `UPR` and `section_score`, `section_rank`.

    Raises:
        InvalidInput: `sections` is below 1, or an LLM is given.

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
    >>> result = D3(sections=1).retrieve("How many hours does the battery last?", [manual])
    >>> [item.passage.text for item in result]
    ['The battery lasts nine hours.', 'Charge it over night.']
    """

    def __init__(self, llm: None = None, lm: str | LanguageModel = "unigram", *, sections: int = 8) -> None:
        if llm is not None:
            raise InvalidInput("This version drills down without an LLM: leave llm out; lm chooses by likelihood.")
        check_positive(sections=sections)
        self.lm = load_language_model(lm)
        self._sections = sections

    def prepare(self, documents: Sequence[Document | str]) -> Drillable:
        """Parse and index documents once, for many questions.

        Raises:
            InvalidInput: an item is neither a parsed document nor a string.
        """
        sections = outline(documents)
        passages = [passage for section in sections for passage in (section.passage, *section.paragraphs)]
        return Drillable(tuple(sections), UPR(self.lm.fitted(passage.titled_text for passage in passages)))

    def retrieve(
        self, question: str, documents: Drillable | Sequence[Document | str], top_n: int | None = None
    ) -> EvidenceRanking:
        """Evidence paragraphs of the opened sections, best first; ties keep the documents' order.

        Args:
            question: The question.
            documents: What `prepare` returned, or parsed documents or Markdown strings.
            top_n: Paragraphs to keep; None keeps all of the opened sections.

        Raises:
            InvalidInput: the question is blank, `top_n` is below 1, or a document cannot be used.
        """
        check_query(question)
        check_top_n(top_n)
        prepared = documents if isinstance(documents, Drillable) else self.prepare(documents)
        by_likelihood = prepared.ranker.rank(question, [section.passage for section in prepared.sections])
        opened = sorted(by_likelihood[: self._sections], key=lambda section: section.details["position"])
        owners = [section for section in opened for _ in prepared.sections[section.details["position"]].paragraphs]
        paragraphs = [p for section in opened for p in prepared.sections[section.details["position"]].paragraphs]
        ranking = prepared.ranker.rank(question, paragraphs, top_n)
        for item in ranking:
            owner = owners[item.details["position"]]
            item.details |= {"section_score": owner.score, "section_rank": owner.rank}
        return EvidenceRanking(ranking, Usage())

    async def aretrieve(
        self, question: str, documents: Drillable | Sequence[Document | str], top_n: int | None = None
    ) -> EvidenceRanking:
        """As `retrieve`, on a worker thread."""
        return await asyncio.to_thread(self.retrieve, question, documents, top_n)
