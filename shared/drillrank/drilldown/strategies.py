"""Strategies of the paper as combinations of selectors (Nair et al. 2023, section 3.3.2 and the baselines)."""

from __future__ import annotations

from collections.abc import Sequence

from drillrank.drilldown.condensing import SectionSummarizer
from drillrank.drilldown.llm_selectors import LLMChooser, LLMSelector, OutlineSelector
from drillrank.drilldown.prompts import IDS_SCHEMA, NamesPrompt, NumbersPrompt, SelectionPrompt, YesNoPrompt
from drillrank.drilldown.ranking_selectors import (
    KeepAllSections,
    LikeliestSections,
    LikelihoodSelector,
    MonoT5FittingSelector,
    MonoT5Selector,
)
from drillrank.drilldown.selection import ParagraphSelector, SectionSelector
from drillrank.drilldown.settings import WITHOUT_SECTIONS, D3Settings


def make_prompts(settings: D3Settings) -> tuple[SelectionPrompt, SelectionPrompt]:
    """Return the prompts of the section step and the paragraph step."""
    section_template, paragraph_template = settings.prompts
    if settings.sections_by == "json":
        return NumbersPrompt(section_template, IDS_SCHEMA), NumbersPrompt(paragraph_template, IDS_SCHEMA)
    return NamesPrompt(section_template), NumbersPrompt(paragraph_template)


def make_section_selector(settings: D3Settings, summarizer: SectionSummarizer | None) -> SectionSelector:
    """Return the selector of sections.

    Args:
        settings: Settings with a strategy.
        summarizer: Summarizes sections for the LLM; None if no LLM is given.
    """
    if summarizer is None:
        return KeepAllSections() if settings.sections is None else LikeliestSections(settings.sections)
    if settings.paragraphs in WITHOUT_SECTIONS:
        return KeepAllSections()
    section_prompt, _ = make_prompts(settings)
    return OutlineSelector(LLMChooser(section_prompt, settings.on_failure, reserved_calls=1), summarizer)


def make_paragraph_selectors(settings: D3Settings, summarizer: SectionSummarizer | None) -> Sequence[ParagraphSelector]:
    """Return the selectors of paragraphs, which are applied one after the other.

    Args:
        settings: Settings with a strategy.
        summarizer: Summarizes paragraphs for the LLM; None if no LLM is given.
    """
    _, prompt = make_prompts(settings)
    on_failure, monot5 = settings.on_failure, settings.monot5
    base = LLMSelector(LLMChooser(prompt, on_failure))
    base_again = LLMSelector(LLMChooser(prompt, on_failure), asks_about_single=True)
    from_summaries = LLMSelector(LLMChooser(prompt, on_failure, reserved_calls=1), "summaries", summarizer)
    one_by_one = LLMSelector(LLMChooser(YesNoPrompt(), on_failure), "one by one")
    one_by_one_first = LLMSelector(LLMChooser(YesNoPrompt(), on_failure, reserved_calls=1), "one by one")
    base_first = LLMSelector(LLMChooser(prompt, on_failure, reserved_calls=1))
    likelihood = LikelihoodSelector(settings.repeats, settings.follow)
    selectors: dict[str, Sequence[ParagraphSelector]]
    if monot5 is None:
        selectors = {
            "base": [base],
            "hierbase": [from_summaries, base_again],
            "paragraph": [one_by_one],
            "chunk": [base],
            "map-reduce": [one_by_one_first, base_again],
            "map-reduce-optimised": [base_first, base_again],
        }
        return selectors.get(settings.paragraphs or "", [likelihood])
    selectors = {
        "monot5": [MonoT5Selector(monot5)],
        "base+monot5": [base, MonoT5Selector(monot5)],
        "monot5+base": [MonoT5FittingSelector(monot5, prompt), base],
    }
    return selectors[settings.paragraphs or "monot5"]
