"""Evidence for a reader: the best paragraph of a passage, and as much evidence as a token budget allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from drillrank.drilldown.hierarchical_scores import HierarchicalScores
from drillrank.drilldown.outline import Outline, Paragraph
from drillrank.drilldown.selection import QuestionContext
from drillrank.errors import warn
from drillrank.passages import Passage, Ranked
from drillrank.prompts import truncate_middle
from drillrank.text import TokenCount, terms
from drillrank.vectors import Floats

_PARAGRAPH_MU = 100.0  # words; Dirichlet smoothing of a paragraph, so that a short label does not win by its length
_MIN_WORDS = 3  # a shorter paragraph, such as a label, is the best one only if there are no others
_TYPICAL_TOKENS = 20  # of a short unit of evidence
_MIN_CANDIDATES = 10  # for a small budget: the best unit may not fit


def prepare_for_reader(
    context: QuestionContext,
    ranking: Sequence[Ranked[Passage]],
    candidates: Sequence[Paragraph],
    max_tokens: int | None,
) -> tuple[list[Ranked[Passage]], list[Paragraph]]:
    """Fit a ranking into a token budget, and name the best paragraph of each passage.

    Args:
        context: The question.
        ranking: Ranking of some candidates.
        candidates: The paragraphs that were ranked.
        max_tokens: Token limit of all texts together; None for no limit.

    Returns:
        The entries, and the paragraph of each.
    """
    pairs = [(entry, candidates[entry.details["position"]]) for entry in ranking]
    if max_tokens is not None:
        pairs = fill_token_budget(pairs, context.outline, max_tokens, context.budget.count_tokens)
    scores = context.likelihoods.scorer.hierarchical_scores(context.question)
    entries = []
    for entry, paragraph in pairs:
        best = find_best_paragraph(paragraph.passage, scores, context.language)
        details = entry.details if best is None else {**entry.details, "best_paragraph": best}
        entries.append(replace(entry, details=details))
    return entries, [paragraph for _, paragraph in pairs]


def find_best_paragraph(passage: Passage, scores: HierarchicalScores, language: str) -> dict[str, Any] | None:
    """Return the paragraph of a passage in which, or in whose heading, the question's words are likeliest.

    Args:
        passage: Passage whose metadata have `paragraph_spans`.
        scores: Lexical scores of the question.
        language: Language of the stemmer.

    Returns:
        `text`, and `span`, its start and end offset in the document's text. The first paragraph if none contains a
        question word; None if the passage is not made of paragraphs.
    """
    spans: Sequence[Sequence[int | None]] = passage.metadata.get("paragraph_spans", ())
    if not spans:
        return None
    texts = [passage.text[text_start:text_end] for _, _, text_start, text_end in spans]
    log_likelihoods = _log_likelihoods(_prepend_headings(passage.text, spans), scores, language)
    is_fragment = np.array([len(text.split()) < _MIN_WORDS for text in texts])
    if not is_fragment.all():
        log_likelihoods[is_fragment] = -np.inf
    best = int(log_likelihoods.argmax()) if log_likelihoods.max() > -np.inf else int(is_fragment.argmin())
    start, end, *_ = spans[best]
    return {"text": texts[best], **({} if start is None else {"span": (start, end)})}


def _prepend_headings(text: str, spans: Sequence[Sequence[Any]]) -> list[str]:
    """Return paragraphs, each with the heading that the passage's text has above it."""
    heading, end, paragraphs = "", 0, []
    for *_, text_start, text_end in spans:
        heading = text[end:text_start].strip() or heading
        end = text_end
        paragraphs.append(f"{heading}\n{text[text_start:text_end]}")
    return paragraphs


def _log_likelihoods(texts: Sequence[str], scores: HierarchicalScores, language: str) -> Floats:
    """Return log p(question | text) with Dirichlet smoothing by the collection, shape (texts,).

    Texts without a question word have -inf.
    """
    log_likelihoods = np.zeros(len(texts))
    for index, text in enumerate(texts):
        counts = Counter(terms(text, language))
        tf = np.array([counts[word] for word in scores.words], dtype=float)  # [n_tokens]
        if not tf.any():
            log_likelihoods[index] = -np.inf
            continue
        gains = np.log1p(tf / (_PARAGRAPH_MU * scores.counts.collection)).sum()
        log_likelihoods[index] = gains - len(scores.words) * np.log1p(counts.total() / _PARAGRAPH_MU)
    return log_likelihoods


def count_candidates(max_tokens: int) -> int:
    """Return how many units of evidence may fit into a budget, so that short ones can fill it."""
    return max(max_tokens // _TYPICAL_TOKENS, _MIN_CANDIDATES)


def fill_token_budget(
    ranking: Sequence[tuple[Ranked[Passage], Paragraph]],
    outline: Outline,
    max_tokens: int,
    count_tokens: TokenCount,
) -> list[tuple[Ranked[Passage], Paragraph]]:
    """Keep the best entries whose texts have at most `max_tokens` tokens together.

    An entry that does not fit is skipped, so that later ones can. If none fits, the first one loses its middle, and a
    warning says so. Entries that are adjacent in a document follow each other in document order, at the rank of the
    best of them. Titles do not count.

    Args:
        ranking: Entries, best first, with their paragraphs.
        outline: Outline of the paragraphs.
        max_tokens: Token limit of all texts together.
        count_tokens: Counts the tokens of a text.
    """
    chosen: dict[int, tuple[Ranked[Passage], Paragraph]] = {}
    tokens_left = max_tokens
    for entry, paragraph in ranking:
        n_tokens = count_tokens(entry.passage.text)
        if n_tokens <= tokens_left:
            tokens_left -= n_tokens
            chosen[paragraph.index] = (entry, paragraph)
    if not chosen and ranking:
        warn(
            f"No passage or paragraph is short enough for max_tokens={max_tokens}, so the result is the best one "
            "without its middle. Raise max_tokens to get it whole."
        )
        entry, paragraph = ranking[0]
        text = truncate_middle(entry.passage.text, max_tokens, count_tokens)
        chosen[paragraph.index] = (replace(entry, passage=replace(entry.passage, text=text)), paragraph)

    ordered: list[int] = []
    placed: set[int] = set()
    for index in chosen:
        if index not in placed:
            run = _find_run(index, chosen.keys() - placed, outline)
            ordered += run
            placed |= {*run}
    return [(replace(chosen[index][0], rank=rank), chosen[index][1]) for rank, index in enumerate(ordered, start=1)]


def _find_run(index: int, indices: set[int], outline: Outline) -> list[int]:
    """Return the adjacent indices around one of them, in order, within its document."""

    def document(paragraph_index: int) -> int | str:
        return outline.section(outline.paragraphs[paragraph_index]).path[0]

    first = last = index
    while first - 1 in indices and document(first - 1) == document(index):
        first -= 1
    while last + 1 in indices and document(last + 1) == document(index):
        last += 1
    return list(range(first, last + 1))
