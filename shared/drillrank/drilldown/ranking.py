"""Last step of D3: score and sort the chosen paragraphs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from drillrank.drilldown.outline import ListedSection, Paragraph
from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.drilldown.selection import QuestionContext
from drillrank.drilldown.trace import ScoredParagraph, Selection
from drillrank.passages import Passage, Ranked, ranked


def score_evidence(
    context: QuestionContext, paragraphs: Sequence[Paragraph], selections: Sequence[Selection[Paragraph]]
) -> Mapping[Paragraph, ScoredParagraph]:
    """Return the chosen paragraphs, in document order, with their scores.

    The score is that of the last selector that has one, or the likelihood if an LLM chose.
    """
    for selection in selections[::-1]:
        if selection.evidence_scores:
            return {paragraph: selection.evidence_scores[paragraph] for paragraph in paragraphs}
    scores = context.likelihoods.score(paragraphs)
    return {paragraph: ScoredParagraph(*scores[index]) for index, paragraph in enumerate(paragraphs)}


def rank_paragraphs(
    prepared: PreparedDocuments,
    scores: Mapping[Paragraph, ScoredParagraph],
    guard: Collection[Paragraph],
    section_scores: Mapping[ListedSection, float],
    top_n: int | None,
) -> list[Ranked[Passage]]:
    """Sort paragraphs by descending score; equal scores keep document order.

    Args:
        prepared: The documents.
        scores: The chosen paragraphs, in document order, with their scores.
        guard: Paragraphs outside the chosen sections.
        section_scores: Sections, best first, with their scores; empty if an LLM chose.
        top_n: Maximum number of results.
    """
    rank_by_section = {section: rank for rank, section in enumerate(section_scores, start=1)}
    details = []
    for paragraph, scored in scores.items():
        section = prepared.outline.section(paragraph)
        of_paragraph: dict[str, Any] = {**scored.details, "guarded": paragraph in guard}
        of_paragraph |= prepared.versions.details(section.path[0])
        if section in rank_by_section:
            of_paragraph |= {"section_score": section_scores[section], "section_rank": rank_by_section[section]}
        if not section_scores:
            of_paragraph["nothing_matched"] = False
        metadata = paragraph.passage.metadata
        if metadata.get("start") is not None:  # records of a store may have no offsets
            of_paragraph["span"] = (metadata["start"], metadata["end"])
        details.append(of_paragraph)
    passages = [paragraph.passage for paragraph in scores]
    return ranked(passages, [scored.score for scored in scores.values()], details, top_n)
