"""References between paragraphs: what a good paragraph points to, such as "see Section 4", follows right behind it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from itertools import islice

import numpy as np

from drillrank.drilldown.outline import Outline, Paragraph
from drillrank.drilldown.selection import QuestionContext
from drillrank.drilldown.trace import ScoredParagraph
from drillrank.structure.references import Label, caption_label, heading_labels, references


def follow_references(
    context: QuestionContext,
    best: Mapping[Paragraph, ScoredParagraph],
    totals: Mapping[Paragraph, float],
    path_starts: Collection[int] = (),
) -> dict[Paragraph, ScoredParagraph]:
    """Insert, after each of the best paragraphs, the likeliest paragraph that it refers to.

    The inserted paragraph scores just below the one that refers to it. Its `followed` detail is the id of that one.

    Args:
        context: The question.
        best: The best paragraphs, best first.
        totals: Total score of each candidate. Only candidates are inserted.
        path_starts: Indices of paragraphs that already lead to one of another document, right behind them.

    Returns:
        At most `top_n` paragraphs, best first.
    """
    scored: dict[Paragraph, ScoredParagraph] = {}
    for paragraph, source in islice(_with_targets(context.outline, best, totals, path_starts), context.top_n):
        if source is None:
            scored[paragraph] = best[paragraph]
            continue
        of_source = scored[source]
        details = {key: of_source.details[key] for key in ("tokens", "nothing_matched")}
        details |= {
            "followed": source.passage.id,
            "matched": context.likelihoods.scorer.contains_question_word(context.question, paragraph.index),
            "total": float(np.nextafter(of_source.details["total"], -np.inf)),
        }
        scored[paragraph] = ScoredParagraph(float(np.nextafter(of_source.score, -np.inf)), details)
    return scored


def _with_targets(
    outline: Outline,
    best: Mapping[Paragraph, ScoredParagraph],
    totals: Mapping[Paragraph, float],
    path_starts: Collection[int],
) -> Iterator[tuple[Paragraph, Paragraph | None]]:
    """Yield each best paragraph with None, then the paragraph that it refers to with the best one. None comes twice."""
    seen: set[Paragraph] = set()
    paragraphs_by_label = cache(lambda document: _index_labels(outline, document))
    for paragraph in best:
        if paragraph in seen:
            continue
        seen.add(paragraph)
        yield paragraph, None
        labels = references(paragraph.passage.text) if paragraph.index not in path_starts else ()
        if not labels:
            continue
        path = outline.section(paragraph).path
        labelled = paragraphs_by_label(path[0])
        targets = {target for label in labels for target in labelled.get(label, ()) if target in totals}
        elsewhere = sorted(
            (target for target in targets if outline.section(target).path != path), key=lambda target: target.index
        )
        likeliest = max(elsewhere, key=totals.__getitem__, default=paragraph)
        if likeliest not in seen:
            seen.add(likeliest)
            yield likeliest, paragraph


def _index_labels(outline: Outline, document: int | str) -> dict[Label, list[Paragraph]]:
    """Return a document's paragraphs by the labels of their sections and, for captions, by their own."""
    paragraphs_by_label: dict[Label, list[Paragraph]] = {}
    labels_of = cache(heading_labels)
    for section in outline.sections:
        if section.path[0] != document:
            continue
        of_section = {label for heading in section.path[1:] for label in labels_of(str(heading))}
        for paragraph in section.paragraphs:
            caption = caption_label(paragraph.passage.text)
            for label in of_section if caption is None else {*of_section, caption}:
                paragraphs_by_label.setdefault(label, []).append(paragraph)
    return paragraphs_by_label
