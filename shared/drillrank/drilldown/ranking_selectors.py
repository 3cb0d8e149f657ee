"""Selectors that need no LLM: question likelihood and MonoT5.

D3 (Nair et al. 2023), section 3.3.2, has MonoT5. Likelihood as a selector is ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drillrank.drilldown.following import follow_references
from drillrank.drilldown.outline import ListedSection, Paragraph
from drillrank.drilldown.paragraph_scores import group_near_duplicates
from drillrank.drilldown.prompts import ListedText, SelectionPrompt
from drillrank.drilldown.selection import QuestionContext, report_paragraphs
from drillrank.drilldown.trace import ScoredParagraph, Selection, Step, StepReport
from drillrank.llm import Requests
from drillrank.passages import Passage, Ranked
from drillrank.rerank.relevance import MonoT5, Relevance
from drillrank.rerank.scales import log_probability

_RELEVANT = math.log(0.5)  # a paragraph above this is rather relevant than not
_MAX_GUARD_CANDIDATES = 50  # best paragraphs that the guard considers


class KeepAllSections:
    """Selector that keeps all sections."""

    def select(
        self,
        context: QuestionContext,  # noqa: ARG002
        sections: Sequence[ListedSection],
    ) -> Requests[Selection[ListedSection]]:
        """Return all sections."""
        yield from ()  # no LLM requests
        return Selection(sections)


@dataclass(frozen=True)
class LikeliestSections:
    """Selector that keeps the sections with the highest question likelihood.

    Attributes:
        n: Number of sections to keep.
    """

    n: int

    def select(self, context: QuestionContext, sections: Sequence[ListedSection]) -> Requests[Selection[ListedSection]]:
        """Return the likeliest sections."""
        yield from ()  # no LLM requests
        ranking = rank_sections(context, sections)
        best = list(ranking)[: self.n]
        names = tuple(entry.name for entry in context.outline.leaves(best))
        report = StepReport("sections", len(sections), names)
        context.report(report)
        kept = [section for section in sections if section in set(best)]
        return Selection(kept, [Step(report, sections, kept, "likelihood", list(ranking))])


def rank_sections(context: QuestionContext, sections: Sequence[ListedSection]) -> dict[ListedSection, float]:
    """Return sections best first, each with its log-posterior per question token."""
    posteriors = context.likelihoods.score_groups(context.outline.section_of)  # [n_sections]
    n_tokens = max(context.likelihoods.n_tokens, 1)
    scores = {section: float(posteriors[section.index]) / n_tokens for section in sections}
    return dict(sorted(scores.items(), key=lambda pair: pair[1], reverse=True))


def select_guard_paragraphs(
    context: QuestionContext, sections: Sequence[ListedSection], selected: Sequence[ListedSection], max_tokens: int
) -> list[Paragraph]:
    """Return the likeliest paragraphs outside the selected sections, up to `max_tokens` tokens in total.

    A summary may not mention them.
    """
    if max_tokens == 0:
        return []
    opened = set(selected)
    outside = [paragraph for section in sections if section not in opened for paragraph in section.paragraphs]
    ranking = context.likelihoods.rank([(paragraph,) for paragraph in outside])
    guard: list[Paragraph] = []
    tokens_left = max_tokens
    for index in ranking[:_MAX_GUARD_CANDIDATES]:
        n_tokens = context.budget.count_tokens(outside[index].passage.text)
        if n_tokens <= tokens_left:
            tokens_left -= n_tokens
            guard.append(outside[index])
    context.report(report_paragraphs("guard", outside, guard))
    return guard


@dataclass(frozen=True)
class LikelihoodSelector:
    """Selector that keeps the paragraphs with the highest score, each text once.

    Attributes:
        repeats: True to keep paragraphs that say the same as a better one.
        follows_references: True to insert, after each of the best, the paragraph that it refers to.
    """

    repeats: bool = False
    follows_references: bool = True

    def select(self, context: QuestionContext, paragraphs: Sequence[Paragraph]) -> Requests[Selection[Paragraph]]:
        """Return the best `top_n` paragraphs, or as many as maximize the expected F1."""
        yield from ()  # no LLM requests
        scorer = context.likelihoods.scorer
        scores = context.likelihoods.score(paragraphs)
        # The posterior is that of the texts themselves, as for the documents of a corpus that are not read.
        n_best = context.top_n or context.n_best or scorer.count_best(scores.own_totals)
        if context.paths:
            row_by_index = {paragraph.index: row for row, paragraph in enumerate(paragraphs)}
            scores = scores.with_paths(context.paths, row_by_index)
            ends = tuple(paragraphs[row].passage.id for row in scores.path_by_row)
            context.report(StepReport("links", len(context.paths), ends))
        order = np.argsort(-scores.means, kind="stable").tolist()
        best_indices = {paragraphs[row].index for row in order[:n_best]}
        joined = [path for path in scores.path_by_row.values() if path.is_joined and path.start in best_indices]
        if context.top_n is None:  # no path is cut
            n_best += len(joined)

        best: dict[Paragraph, ScoredParagraph] = {}
        for rank, repeating_ranks in self._group(paragraphs, order, n_best).items():
            score, details = scores[order[rank]]
            also_at = tuple(paragraphs[order[other]].passage.metadata for other in repeating_ranks)
            extra: dict[str, Any] = {"also_at": also_at} if also_at else {}
            if path := scores.path_by_row.get(order[rank]):
                start = context.outline.paragraphs[path.start]
                extra["path"] = start.passage.id, paragraphs[order[rank]].passage.id
                extra["link"] = {**details["link"], "document": context.outline.section(start).path[0]}
            best[paragraphs[order[rank]]] = ScoredParagraph(score, {**details, **extra})
        kept = best
        if self.follows_references and scorer.is_lexical:
            totals = dict(zip(paragraphs, scores.totals.tolist(), strict=True))
            kept = follow_references(context, best, totals, {path.start for path in joined})

        in_document_order = sorted(kept, key=lambda paragraph: paragraph.index)
        report = report_paragraphs("likelihood", paragraphs, list(kept))
        context.report(report)
        ranking = [paragraphs[index] for index in order]
        all_scores = dict(zip(paragraphs, scores.means.tolist(), strict=True))
        step = Step(report, paragraphs, sorted(best, key=lambda paragraph: paragraph.index), "likelihood", ranking)
        return Selection(in_document_order, [step], kept, all_scores)

    def _group(self, paragraphs: Sequence[Paragraph], order: Sequence[int], n_best: int) -> Mapping[int, Sequence[int]]:
        """Return the ranks of the best different paragraphs, each with the ranks of those that say the same."""
        if self.repeats:
            return dict.fromkeys(range(min(n_best, len(order))), ())
        return group_near_duplicates((paragraphs[index].passage.text for index in order), n_best)


@dataclass(frozen=True)
class MonoT5Selector:
    """Selector that keeps the paragraphs that MonoT5 classifies as relevant, or the best one if there are none.

    Attributes:
        model: The ranker.
    """

    model: MonoT5 | Relevance

    def select(self, context: QuestionContext, paragraphs: Sequence[Paragraph]) -> Requests[Selection[Paragraph]]:
        """Return the best `top_n` paragraphs, or the relevant ones."""
        yield from ()  # no LLM requests
        if not paragraphs:
            return Selection(paragraphs)
        ranking = _rank_paragraphs(self.model, context, paragraphs)
        order = list(ranking)
        n_relevant = sum(log_probability(entry) >= _RELEVANT for entry in ranking.values())
        selected = set(order[: context.top_n or max(1, n_relevant)])
        scores = {paragraph: ScoredParagraph(entry.score, entry.details) for paragraph, entry in ranking.items()}
        return _select_ranked(context, paragraphs, order, selected, scores)


@dataclass(frozen=True)
class MonoT5FittingSelector:
    """Selector that keeps as many of MonoT5's best paragraphs as fit into one prompt.

    Attributes:
        model: The ranker.
        prompt: Prompt of the selector that follows.
    """

    model: MonoT5 | Relevance
    prompt: SelectionPrompt

    def select(self, context: QuestionContext, paragraphs: Sequence[Paragraph]) -> Requests[Selection[Paragraph]]:
        """Return the best paragraphs."""
        yield from ()  # no LLM requests
        if not paragraphs:
            return Selection(paragraphs)
        order = list(_rank_paragraphs(self.model, context, paragraphs))
        texts = [ListedText(paragraph.passage.text) for paragraph in order]
        selected = set(order[: context.budget.count_fitting(self.prompt, texts)])
        return _select_ranked(context, paragraphs, order, selected, {})


def _rank_paragraphs(
    model: MonoT5 | Relevance, context: QuestionContext, paragraphs: Sequence[Paragraph]
) -> dict[Paragraph, Ranked[Passage]]:
    """Return the paragraphs best first, each with its entry in the model's ranking."""
    ranking = model.rank(context.question, [paragraph.passage for paragraph in paragraphs])
    return {paragraphs[entry.details["position"]]: entry for entry in ranking}


def _select_ranked(
    context: QuestionContext,
    paragraphs: Sequence[Paragraph],
    order: Sequence[Paragraph],
    selected: set[Paragraph],
    scores: Mapping[Paragraph, ScoredParagraph],
) -> Selection[Paragraph]:
    kept = [paragraph for paragraph in paragraphs if paragraph in selected]
    best_first = [paragraph for paragraph in order if paragraph in selected]
    report = report_paragraphs("monot5", paragraphs, best_first)
    context.report(report)
    step = Step(report, paragraphs, kept, "relevance", order)
    return Selection(kept, [step], scores, {paragraph: scored.score for paragraph, scored in scores.items()})
