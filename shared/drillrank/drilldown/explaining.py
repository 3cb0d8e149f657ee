"""Explanations of D3's evidence: the terms of each score, and the tree of decisions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from drillrank.drilldown.outline import BEGINNING, ListedSection, OutlinePath, Paragraph
from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.drilldown.trace import NO_ALTERNATIVE, Step, StepReport, Trace
from drillrank.explanation import Explanation, Explanations, Node
from drillrank.explanation.terms import Outcome, on_one_line
from drillrank.passages import Passage, Ranked
from drillrank.rerank.relevance import MonoT5, Relevance

_SHOWN_CHARACTERS = 70  # of a paragraph


def explain_evidence(
    trace: Trace, prepared: PreparedDocuments, ranking: Sequence[Ranked[Passage]], judge: MonoT5 | Relevance | None
) -> Explanations:
    """Explain the rank of each evidence paragraph, and list what was kept or dropped on the way.

    Args:
        trace: What was decided.
        prepared: The documents.
        ranking: Evidence of this question, or some of it.
        judge: The model that had the last word, if it was not the likelihood.
    """
    selected = trace.selected_paragraphs
    paragraphs = [selected[entry.details["position"]] for entry in ranking]
    explanations: Sequence[Explanation] = (
        judge.explain(trace.question, ranking)
        if judge is not None
        else prepared.scorer.explain(trace.question, ranking, [paragraph.index for paragraph in paragraphs])
    )
    named = [
        replace(explanation, name=": ".join(filter(None, (paragraph.passage.title, _beginning(paragraph)))))
        for explanation, paragraph in zip(explanations, paragraphs, strict=True)
    ]
    return Explanations(named, trace.question, render_tree(trace, prepared))


def render_tree(trace: Trace, prepared: PreparedDocuments) -> Iterator[Node]:
    """Yield documents, sections and the paragraphs that were read, in pre-order."""
    outline = prepared.outline
    candidates, opened, section_reasons = _explain_sections(trace)
    paragraph_nodes = _ParagraphNodes(trace)
    opened_chapters = {section.path[:n] for section in opened for n in range(2, len(section.path))}
    seen: set[OutlinePath] = set()
    for section in outline.sections:
        path = section.path
        if path[:1] not in seen:
            yield _document_node(trace, prepared, path[0], section in candidates)
        n_hidden = outline.n_title_headings(path[0])
        depth = max(len(path) - 1 - n_hidden, 1)
        if section in candidates:
            chapters = [path[:n] for n in range(2 + n_hidden, len(path))]
            for chapter in (chapter for chapter in chapters if chapter not in seen):
                outcome: Outcome = "opened" if chapter in opened_chapters else "left"
                yield Node(str(chapter[-1]), "section", len(chapter) - 1 - n_hidden, outcome, "no text of its own")
            name = str(path[-1]) if len(path) > 1 else BEGINNING
            outcome = "opened" if section in opened else "left"
            reason = section_reasons.get(section, NO_ALTERNATIVE)
            yield Node(name, "section", depth, outcome, reason, trace.section_scores.get(section))
        seen |= {path[:n] for n in range(1, len(path) + 1)}
        yield from paragraph_nodes.of(section, section in opened, depth + 1)


def _document_node(trace: Trace, prepared: PreparedDocuments, document: int | str, is_candidate: bool) -> Node:
    name = prepared.outline.document_name(document, prepared.names.get(document))
    if is_candidate:
        reason = "drilled into"
    elif document in trace.outdated_documents:
        reason = "not read: another version is, or it is later than as_of"
    elif any(section.path[0] == document for section in trace.candidate_sections):
        reason = "no evidence in it"
    else:
        reason = "others have likelier paragraphs (max_documents)"
    return Node(name, "document", 0, "opened" if is_candidate else "left", reason, id=str(document))


class _ParagraphNodes:
    """Nodes of the paragraphs that were read.

    Args:
        trace: What was decided.
    """

    def __init__(self, trace: Trace) -> None:
        self._scores = trace.all_scores
        self._guards = set(trace.guard_paragraphs)
        self._evidence = set(trace.evidence)
        self._followed = {paragraph for paragraph, scored in trace.scores.items() if "followed" in scored.details}
        self._links = {
            paragraph: scored.details["link"] for paragraph, scored in trace.scores.items() if "link" in scored.details
        }
        self._behind = trace.scores.keys() - self._evidence
        self._reasons: dict[Paragraph, str] = {}
        for selection in trace.paragraph_selections:
            for step in selection.steps:
                self._reasons |= step.reasons()

    def of(self, section: ListedSection, is_open: bool, depth: int) -> Iterator[Node]:
        """Yield the nodes of a section's paragraphs."""
        for paragraph in section.paragraphs:
            if not (is_open or paragraph in self._guards):
                continue
            why = self._reasons.get(paragraph, NO_ALTERNATIVE)
            if paragraph in self._followed:
                why = "referred to by the evidence above it"
            if link := self._links.get(paragraph):
                why = f"{why}; a better passage leads here by the {link['kind']} {on_one_line(link['text'], 40)!r}"
            if paragraph in self._guards:
                why = f"outside, found by the guard; {why}"
            if paragraph in self._behind:
                why += f"; behind the first {len(self._evidence)}"
            outcome: Outcome = "evidence" if paragraph in self._evidence else "read"
            score = self._scores.get(paragraph)
            yield Node(_beginning(paragraph), "paragraph", depth, outcome, why, score, paragraph.passage.id)


def _explain_sections(trace: Trace) -> tuple[set[ListedSection], set[ListedSection], dict[ListedSection, str]]:
    """Return the sections to show, those that were opened, and why each was kept or dropped.

    If all sections were read, only those with evidence count as opened, and only their documents are shown.
    """
    candidates, opened, steps = set(trace.candidate_sections), set(trace.sections.kept), list(trace.sections.steps)
    if trace.section_scores and not steps:
        indices = {paragraph.section_index for paragraph in trace.scores}
        opened = {section for section in trace.candidate_sections if section.index in indices}
        documents = {section.path[0] for section in opened}
        candidates = {section for section in trace.candidate_sections if section.path[0] in documents}
        report = StepReport("sections", len(trace.candidate_sections), ())
        ranking = list(trace.section_scores)
        steps = [Step(report, trace.candidate_sections, list(opened), "likelihood", ranking)]
    reasons: dict[ListedSection, str] = {}
    for step in steps:
        for item, why in step.reasons().items():
            if isinstance(item, ListedSection):
                reasons[item] = why
            elif len(item.sections) == 1:
                reasons[item.sections[0]] = why
            else:  # a kept chapter is decided at the next level
                is_kept = item in step.kept
                reasons |= dict.fromkeys(item.sections, NO_ALTERNATIVE if is_kept else f"{why}, with its chapter")
    return candidates, opened, reasons


def _beginning(paragraph: Paragraph) -> str:
    return on_one_line(paragraph.passage.text, _SHOWN_CHARACTERS)
