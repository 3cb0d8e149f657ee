"""Selectors that ask an LLM: an outline for sections, lists of texts for paragraphs.

D3 (Nair et al. 2023), sections 3.3.1 and 3.3.2. Each prompt shows as many candidates as fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from drillrank.drilldown.answers import Choice
from drillrank.drilldown.condensing import SectionSummarizer
from drillrank.drilldown.outline import ListedSection, OutlineEntry, Paragraph
from drillrank.drilldown.problems import Problem, ProblemKind, kind_of_failure
from drillrank.drilldown.prompts import ListedText, SelectionPrompt
from drillrank.drilldown.selection import QuestionContext, report_paragraphs
from drillrank.drilldown.trace import FallbackReason, Selection, Step, StepReport
from drillrank.errors import OnFailure, UnusableAnswer, raise_or_fall_back
from drillrank.llm import LLMRequest, Reply, Requests, strip_reasoning, unusable_answer

_MAX_SHOWN = 120  # characters of an answer that could not be used


@dataclass(frozen=True)
class LLMChoice:
    """Choice from one list of candidates.

    Attributes:
        indices: Indices of the chosen candidates, ascending.
        problems: What went wrong and what was done instead.
        fallbacks: By index, why the LLM did not decide about a candidate.
    """

    indices: Sequence[int]
    problems: Sequence[Problem]
    fallbacks: Mapping[int, FallbackReason]


@dataclass(frozen=True)
class LLMChooser:
    """Asks an LLM to choose from a list, in as few prompts as possible. Likelihood chooses if an answer is unusable.

    Attributes:
        prompt: Renders prompts and parses answers.
        on_failure: `"raise"` raises an error if a call fails or an answer is unusable, and `"fallback"` takes
            likelihood's choice. None raises for calls and falls back for answers.
        reserved_calls: Calls to keep for later steps.
    """

    prompt: SelectionPrompt
    on_failure: OnFailure | None = None
    reserved_calls: int = 0

    def choose(
        self, context: QuestionContext, texts: Sequence[ListedText], groups: Sequence[Sequence[Paragraph]], kind: str
    ) -> Requests[LLMChoice]:
        """Ask about all candidates that the budget allows.

        A blank answer chooses nothing, as the prompt says. It is a problem too, since a failing LLM may give one.

        Args:
            context: The question and its budget.
            texts: Text of each candidate.
            groups: Paragraphs of each candidate, for the fallback.
            kind: Name of the candidates, for messages.

        Raises:
            LLMFailure: A call failed or an answer is unusable, and `on_failure` says to raise.
        """
        likelihoods, prompt, step = context.likelihoods, self.prompt, f"choose {kind} (D3)"
        plan = context.budget.plan(prompt, texts, lambda: likelihoods.rank(groups), self.reserved_calls)
        problems = list(plan.problems)
        asked_indices = {index for batch in plan.groups for index in batch}
        fallbacks = {index: FallbackReason.BUDGET for index in range(len(texts)) if index not in asked_indices}
        if not plan.groups:
            return LLMChoice(likelihoods.choose(groups) if texts else [], problems, fallbacks)

        batches = [[plan.listed[index] for index in batch] for batch in plan.groups]
        replies = yield [
            LLMRequest(prompt.render(context.question, batch), prompt.schema, step=step, on_failure=self.on_failure)
            for batch in batches
        ]

        chosen: list[int] = []
        for indices, batch, reply in zip(plan.groups, batches, replies, strict=True):
            choice = prompt.parse(reply.text, batch)
            is_unusable = reply.failure is not None or not choice.usable
            if problem := _find_problem(reply, choice):
                problems.append(problem)
            if is_unusable:
                failure = reply.failure or unusable_answer(step, "it chooses nothing that was offered")
                raise_or_fall_back(failure, self.on_failure)
                # One paragraph alone would always be its own best, so compare it with all.
                rivals = list(range(len(texts))) if prompt.asks_one_by_one else indices
                likely = {rivals[index] for index in likelihoods.choose([groups[rival] for rival in rivals])}
                chosen += [index for index in indices if index in likely]
                fallbacks |= dict.fromkeys(indices, FallbackReason.FAILURE)
            else:
                chosen += [indices[position] for position in choice.positions]
        return LLMChoice(sorted(chosen), problems, fallbacks)


def _find_problem(reply: Reply, choice: Choice) -> Problem | None:
    """Return what was wrong with an answer and what was done instead; None if nothing was wrong."""
    if reply.failure:
        what = "the answer cannot be used" if isinstance(reply.failure, UnusableAnswer) else "the LLM failed"
        return Problem(kind_of_failure(reply.failure), f"{what} ({reply.failure.reason}): chosen by likelihood")
    if not choice.usable:
        beginning = repr(" ".join(reply.text.split())[:_MAX_SHOWN])
        text = f"the answer {beginning} chooses nothing that was offered: chosen by likelihood"
        return Problem(ProblemKind.UNUSABLE_ANSWER, text)
    if not (strip_reasoning(reply.text) or "").strip():
        text = "the answer was blank, which means that nothing is relevant"
        return Problem(ProblemKind.PARTLY_USED_ANSWER, text)
    if choice.unknown:
        listed = ", ".join(map(repr, choice.unknown[:3]))
        more = f" and {len(choice.unknown) - 3} more" if len(choice.unknown) > 3 else ""
        text = f"the answer names what was not offered: {listed}{more}: left out"
        return Problem(ProblemKind.PARTLY_USED_ANSWER, text)
    return None


@dataclass(frozen=True)
class LLMSelector:
    """Selector that keeps the paragraphs that an LLM calls relevant (BASE, section 3.3.2).

    Attributes:
        chooser: Asks the LLM.
        kind: Kind of the step in reports.
        summarizer: Summarizes the paragraphs, which the LLM then sees instead of their texts; None shows the texts.
        asks_about_single: True to ask about a single paragraph too, since an earlier selector chose it by its summary.
    """

    chooser: LLMChooser
    kind: str = "paragraphs"
    summarizer: SectionSummarizer | None = None
    asks_about_single: bool = False

    def select(self, context: QuestionContext, paragraphs: Sequence[Paragraph]) -> Requests[Selection[Paragraph]]:
        """Return the chosen paragraphs."""
        if len(paragraphs) < (1 if self.asks_about_single else 2):
            return Selection(paragraphs)
        passages = [paragraph.passage for paragraph in paragraphs]
        texts, problems = [passage.text for passage in passages], list[Problem]()
        if self.summarizer is not None:
            texts, problems = yield from self.summarizer.summarize(passages, context.language)
        choice = yield from self.chooser.choose(
            context, [ListedText(text) for text in texts], [(paragraph,) for paragraph in paragraphs], "paragraphs"
        )
        kept = [paragraphs[index] for index in choice.indices]
        report = report_paragraphs(self.kind, paragraphs, kept, [*problems, *choice.problems])
        context.report(report)
        return Selection(kept, [Step(report, paragraphs, kept, fallbacks=choice.fallbacks)])


@dataclass(frozen=True)
class OutlineSelector:
    """Selector that shows the LLM section names with summaries (section 3.3.1).

    An outline that one prompt has no room for is read level by level, from chapters to sections.

    Attributes:
        chooser: Asks the LLM.
        summarizer: Summarizes sections.
    """

    chooser: LLMChooser
    summarizer: SectionSummarizer

    def select(self, context: QuestionContext, sections: Sequence[ListedSection]) -> Requests[Selection[ListedSection]]:
        """Return the chosen sections. A single section needs no summary and no call."""
        if len(sections) < 2:
            return Selection(sections)
        outline = context.outline
        summaries, problems = yield from self._summarize(context, sections)
        steps: list[Step[OutlineEntry]] = []
        chosen: set[ListedSection] = set()
        level = outline.top(sections)
        while level:
            leaves = outline.leaves(section for entry in level for section in entry.sections)
            if len(leaves) == 1:
                chosen.update(leaves[0].sections)
                break
            leaf_texts = [ListedText(summaries[leaf.sections[0]], leaf.name) for leaf in leaves]
            if context.budget.fits(self.chooser.prompt, leaf_texts):
                level = leaves
            texts = [ListedText(outline.summary(entry, summaries), entry.name) for entry in level]
            groups = [[paragraph for section in entry.sections for paragraph in section.paragraphs] for entry in level]
            choice = yield from self.chooser.choose(context, texts, groups, "sections")
            selected = [level[index] for index in choice.indices]
            names = tuple(entry.name for entry in selected)
            report = StepReport("sections", len(level), names, (*problems, *choice.problems))
            context.report(report)
            steps.append(Step(report, level, selected, fallbacks=choice.fallbacks))
            problems = []
            chosen.update(entry.sections[0] for entry in selected if len(entry.sections) == 1)
            level = [below for entry in selected if len(entry.sections) > 1 for below in outline.below(entry)]
        return Selection([section for section in sections if section in chosen], steps)

    def _summarize(
        self, context: QuestionContext, sections: Sequence[ListedSection]
    ) -> Requests[tuple[dict[ListedSection, str], list[Problem]]]:
        """Return summaries by section, made document by document, and what went wrong."""
        by_document: dict[int | str, list[ListedSection]] = {}
        for section in sections:
            by_document.setdefault(section.path[0], []).append(section)
        summaries: dict[ListedSection, str] = {}
        problems: list[Problem] = []
        for of_document in by_document.values():
            passages = [section.passage for section in of_document]
            texts, new_problems = yield from self.summarizer.summarize(passages, context.language)
            summaries.update(zip(of_document, texts, strict=True))
            problems += new_problems
        return summaries, problems
