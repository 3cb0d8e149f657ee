"""One question's way down: documents, sections, paragraphs (D3, Nair et al. 2023, section 3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from drillrank.drilldown.condensing import Summariser
from drillrank.drilldown.evidence import TEMPERATURE, distinct
from drillrank.drilldown.following import followed
from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.drilldown.selection import Item, Likelihoods, Selection
from drillrank.drilldown.settings import BOOLEAN_PROMPT, MAX_DOCUMENTS, WITHOUT_SECTIONS, AnswerBy, D3Settings, Strategy
from drillrank.drilldown.tree import Decision, Way, beginning
from drillrank.drilldown.versions import as_date
from drillrank.explanation import Explanation, Explanations
from drillrank.llm import Requests
from drillrank.passages import Passage, Ranked, ranked
from drillrank.rerank.base import Scored, log_probability
from drillrank.rerank.relevance import MonoT5, Relevance

_STAGES: dict[Strategy, tuple[str, ...]] = {
    "base": ("paragraphs",),
    "hierbase": ("summaries", "paragraphs"),
    "monot5": ("monot5",),
    "base+monot5": ("paragraphs", "monot5"),
    "monot5+base": ("monot5", "paragraphs"),
    "likelihood": ("likelihood",),
    "paragraph": ("one by one",),
    "chunk": ("paragraphs",),
    "map-reduce": ("one by one", "paragraphs"),
    "map-reduce-optimised": ("paragraphs", "paragraphs"),
}
_GUARDED = 50  # best paragraphs that the guard looks at
_RELEVANT = math.log(0.5)  # from which on a paragraph is rather relevant than not


@dataclass(frozen=True, slots=True)
class Step:
    """What happened in one step of drilling down.

    Attributes:
        kind: `"documents"`, `"sections"`, `"guard"`, `"summaries"`, `"one by one"`, `"paragraphs"`, `"monot5"` or
            `"likelihood"`.
        offered: How many documents, sections or paragraphs there were to choose from.
        chosen: Names of the chosen documents and sections, ids of the chosen paragraphs.
        problems: What the LLM did wrong and what was done about it; empty if all went well.
    """

    kind: str
    offered: int
    chosen: tuple[str, ...]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """How to drill: the settings of `D3`, and what is made of them once.

    Attributes:
        settings: As they are.
        with_llm: Whether there is an LLM to choose.
        strategy: How paragraphs are chosen.
        monot5: The ranker, where the strategy names one.
        summariser: Makes the summaries.
    """

    settings: D3Settings
    with_llm: bool
    strategy: Strategy
    monot5: MonoT5 | Relevance | None
    summariser: Summariser

    @property
    def paragraphs_by(self) -> AnswerBy:
        """How the LLM answers about paragraphs, which have no names."""
        return "json" if self.settings.sections_by == "json" else "ids"


class Drill:
    """Drills into prepared documents for one question."""

    def __init__(
        self, plan: Plan, ready: PreparedDocuments, selection: Selection, on_step: Callable[[Step], object] | None
    ) -> None:
        self._plan = plan
        self.ready = ready
        self.question = selection.question
        self._selection = selection
        self._on_step = on_step
        self._judged: dict[int, Scored] = {}  # by the stage that had the last word, if that gives scores
        self._trace = Way()
        self.steps: list[Step] = []

    def likely(self, top_n: int | None) -> list[Ranked[Passage]]:
        """The evidence by likelihood alone, best first: of all paragraphs, or of those of the likeliest sections."""
        ready, wanted = self.ready, self._plan.settings.sections
        scope = self._proposed_documents()
        scores = self._section_scores(scope)
        order = sorted(range(len(scope)), key=scores.__getitem__, reverse=True)
        opened = sorted(scope[location] for location in order[:wanted])
        if wanted is not None:
            leaves = ready.outline.leaves(scope[location] for location in order[:wanted])
            self._note(Step("sections", len(scope), tuple(leaf.name for leaf in leaves)))
        chosen, guarded = self._candidates(scope, opened)
        for stage in _STAGES[self._plan.strategy]:
            chosen = (self._monot5 if stage == "monot5" else self._likelihood)(chosen, top_n)
        shown = scope
        if wanted is None:  # all were open: what tells is where the evidence stands
            opened = sorted({ready.section_indices[at] for at in chosen})
            drilled = {ready.outline.sections[at].path[0] for at in opened}
            shown = [at for at in scope if ready.outline.sections[at].path[0] in drilled]
        holding = set(opened)
        opened_places = {location for location, at in enumerate(scope) if at in holding}
        self._trace.decisions.append(Decision("sections", [(at,) for at in scope], opened_places, order))
        self._trace.section_scores = dict(zip(scope, scores, strict=True))
        ranks = {scope[location]: (scores[location], rank) for rank, location in enumerate(order, 1)}
        return self._ranked(shown, opened, chosen, guarded, ranks, top_n)

    def by_llm(self, top_n: int | None) -> Requests[list[Ranked[Passage]]]:
        """The evidence with an LLM, best first."""
        self._selection.check(*self._plan.settings.prompts)
        scope = self._proposed_documents()
        opened = scope if self._plan.strategy in WITHOUT_SECTIONS else (yield from self._sections(scope))
        chosen, guarded = self._candidates(scope, opened)
        alone = len(chosen) == 1  # nothing for the LLM to choose
        for stage in _STAGES[self._plan.strategy]:
            if stage in ("monot5", "likelihood"):
                chosen = (self._monot5 if stage == "monot5" else self._likelihood)(chosen, top_n)
                alone = len(chosen) == 1
            elif not alone:
                chosen = yield from self._paragraphs(chosen, stage)
        return self._ranked(scope, opened, chosen, guarded, None, top_n)

    def _candidates(self, scope: Sequence[int], opened: Sequence[int]) -> tuple[list[int], set[int]]:
        """Paragraphs of the opened sections, and those that the guard adds; and which these are."""
        guarded = set(self._guarded(scope, opened)) if self._plan.settings.guard_tokens else set()
        return sorted({*self.ready.inside(opened), *guarded}), guarded

    def _ranked(
        self,
        scope: Sequence[int],
        opened: Sequence[int],
        chosen: list[int],
        guarded: set[int],
        likely: Mapping[int, tuple[float, int]] | None,
        top_n: int | None,
    ) -> list[Ranked[Passage]]:
        """What was chosen, best first; `likely` are scores and ranks of sections where there is no LLM."""
        ready = self.ready
        if self._judged:
            scored = [self._judged[at] for at in chosen]
        else:
            by_likelihood = ready.evidence.scored(self.question, chosen)
            scored = [by_likelihood[location] for location in range(len(chosen))]
        details = []
        for position, (_, more) in zip(chosen, scored, strict=True):
            section = ready.section_indices[position]
            version = ready.versions.details(ready.outline.sections[section].path[0])
            item_details: dict[str, Any] = {**more, "guarded": position in guarded, **version}
            if likely is None:
                item_details["nothing_matched"] = False
            elif section in likely:
                item_details["section_score"], item_details["section_rank"] = likely[section]
            details.append(item_details)
        scores = [score for score, _ in scored]
        found = ranked([ready.paragraphs[at] for at in chosen], scores, details, top_n)
        trace, self._chosen = self._trace, chosen
        trace.scope, trace.opened, trace.guarded = list(scope), list(opened), guarded
        trace.evidence = [chosen[item.details["position"]] for item in found]
        trace.beyond = set(chosen).difference(trace.evidence)
        judged = {at: score for at, (score, _) in self._judged.items()}
        trace.scores = {**trace.scores, **judged, **dict(zip(chosen, scores, strict=True))}
        return found

    @property
    def answerable(self) -> float | None:
        """As `EvidenceRanking` has it."""
        evidence = self.ready.evidence
        return evidence.levels(self.question).answerable if evidence.by_words and not self._plan.with_llm else None

    def explain(self, found: Sequence[Ranked[Passage]]) -> Explanations:
        """Why evidence of this question stands where it stands, and what was opened, read and left on the way."""
        positions = [self._chosen[item.details["position"]] for item in found]
        plan, question = self._plan, self._selection.question
        explained: Sequence[Explanation] = (
            plan.monot5.explain(question, found)
            if plan.monot5 is not None and self._judged
            else self.ready.evidence.explain(question, found, positions)
        )
        named = [
            replace(item, name=": ".join(filter(None, (entry.passage.title, beginning(self.ready.readable[at].text)))))
            for item, entry, at in zip(explained, found, positions, strict=True)
        ]
        return Explanations(named, question, self._trace.tree(self.ready))

    # Documents

    def _proposed_documents(self) -> list[int]:
        """Sections of the likeliest documents, if there are more documents than to be drilled into."""
        ready = self.ready
        of_document: dict[int | str, list[int]] = {}
        for position, section in enumerate(ready.outline.sections):
            of_document.setdefault(section.path[0], []).append(position)
        as_of = self._plan.settings.as_of
        outdated = ready.versions.outdated(of_document, self.question, None if as_of is None else as_date(as_of))
        limit = self._plan.settings.max_documents or (MAX_DOCUMENTS if self._plan.with_llm else len(of_document))
        current = [document for document in of_document if document not in outdated]
        if len(current) <= limit:
            return [position for document in current for position in of_document[document]]
        posteriors = ready.evidence.levels(self.question).log_posteriors(TEMPERATURE)
        likely = dict(zip(of_document, posteriors.tolist(), strict=True))
        likeliest = set(sorted(current, key=likely.__getitem__, reverse=True)[:limit])
        self._note(Step("documents", len(current), tuple(map(str, sorted(likeliest, key=list(of_document).index)))))
        return [position for document, inside in of_document.items() if document in likeliest for position in inside]

    # Sections

    def _sections(self, scope: Sequence[int]) -> Requests[list[int]]:
        """Sections chosen by the LLM, level by level where one prompt cannot hold them all."""
        outline, selection, by = self.ready.outline, self._selection, self._plan.settings.sections_by or "names"
        prompt, _ = self._plan.settings.prompts
        if len(scope) < 2:  # nothing to choose, and nothing to summarise
            return list(scope)
        summaries, problems = yield from self._summaries(scope)
        chosen: list[int] = []
        level = outline.top(scope)
        while level:
            leaves = outline.leaves(position for entry in level for position in entry.sections)
            if len(leaves) == 1:  # nothing to choose
                chosen.append(leaves[0].sections[0])
                break
            if selection.fits(prompt, [Item(summaries[e.sections[0]], e.name) for e in leaves], by):
                level = leaves
            items = [Item(outline.summary(entry, summaries), entry.name) for entry in level]
            likely = self._likelihoods([self.ready.inside(entry.sections) for entry in level])
            found, new_problems, deputies = yield from selection.choose(prompt, items, likely, by=by, spare=1)
            self._trace.decisions.append(Decision("sections", [e.sections for e in level], found, deputies=deputies))
            selected = [level[position] for position in found]
            self._note(
                Step("sections", len(level), tuple(entry.name for entry in selected), tuple(problems + new_problems))
            )
            problems = []
            chosen += [entry.sections[0] for entry in selected if len(entry.sections) == 1]
            level = [below for entry in selected if len(entry.sections) > 1 for below in outline.below(entry)]
        return sorted(set(chosen))

    def _summaries(self, scope: Sequence[int]) -> Requests[tuple[dict[int, str], list[str]]]:
        """Summaries of sections by position, made document by document."""
        sections = self.ready.outline.sections
        by_document: dict[int | str, list[int]] = {}
        for position in scope:
            by_document.setdefault(sections[position].path[0], []).append(position)
        known: dict[int, str] = {}
        problems: list[str] = []
        for positions in by_document.values():
            passages = [sections[at].passage for at in positions]
            texts, new_problems = yield from self._plan.summariser.condensed(passages, self.ready.evidence.language)
            known.update(zip(positions, texts, strict=True))
            problems += new_problems
        return known, problems

    def _section_scores(self, scope: Sequence[int]) -> list[float]:
        """Log of the posterior of sections, by words, up to a constant, over the question's tokens."""
        levels = self.ready.evidence.levels(self.question)
        posteriors = levels.log_posteriors(TEMPERATURE, np.array(self.ready.section_indices, dtype=np.intp))
        return (posteriors[list(scope)] / max(len(levels.words), 1)).tolist() if scope else []

    def _guarded(self, scope: Sequence[int], opened: Sequence[int]) -> list[int]:
        """The best paragraphs outside the opened sections that the allowance holds: a summary may have lost them."""
        opened_ones = set(opened)
        outside = self.ready.inside([section for section in scope if section not in opened_ones])
        order = self._likelihoods([(at,) for at in outside]).order(range(len(outside)))
        left = self._plan.settings.guard_tokens
        selected = []
        for position in (outside[location] for location in order[:_GUARDED]):
            tokens = self._selection.count(self.ready.readable[position].text)
            if tokens <= left:
                left -= tokens
                selected.append(position)
        self._note(Step("guard", len(outside), tuple(self.ready.paragraphs[at].id for at in selected)))
        return selected

    # Paragraphs

    def _paragraphs(self, candidates: Sequence[int], stage: str) -> Requests[list[int]]:
        """BASE over the paragraphs' text, or over their summaries."""
        if not candidates:
            return []
        readable = [self.ready.readable[position] for position in candidates]
        texts: Sequence[str] = [passage.text for passage in readable]
        problems: Sequence[str] = ()
        if stage == "summaries":
            texts, problems = yield from self._plan.summariser.condensed(readable, self.ready.evidence.language)
        alone = stage == "one by one"
        found, new_problems, deputies = yield from self._selection.choose(
            BOOLEAN_PROMPT if alone else self._plan.settings.prompts[1],
            [Item(text) for text in texts],
            self._likelihoods([(at,) for at in candidates]),
            by="yes" if alone else self._plan.paragraphs_by,
            spare=int(stage == "summaries"),
        )
        self._trace.decisions.append(Decision(stage, [(at,) for at in candidates], found, deputies=deputies))
        chosen = [candidates[position] for position in found]
        self._note_paragraphs(stage, candidates, chosen, [*problems, *new_problems])
        return chosen

    def _monot5(self, candidates: Sequence[int], top_n: int | None) -> list[int]:
        """What the model calls relevant, at least its best; before BASE, its best that fit into one prompt."""
        if self._plan.monot5 is None or not candidates:
            return list(candidates)
        readable = [self.ready.readable[position] for position in candidates]
        ranking = self._plan.monot5.rank(self._selection.question, readable)
        places = [item.details["position"] for item in ranking]
        order = [candidates[location] for location in places]
        if self._plan.strategy == "monot5+base":
            items = [Item(self.ready.readable[position].text) for position in order]
            selected = order[: self._selection.holds(self._plan.settings.prompts[1], items, self._plan.paragraphs_by)]
        else:
            selected = order[: top_n or max(1, sum(log_probability(item) >= _RELEVANT for item in ranking))]
            self._judged = {at: (item.score, item.details) for at, item in zip(order, ranking, strict=True)}
        self._trace.decisions.append(Decision("monot5", [(at,) for at in candidates], places[: len(selected)], places))
        self._note_paragraphs("monot5", candidates, selected)
        return sorted(selected)

    def _likelihood(self, candidates: Sequence[int], top_n: int | None) -> list[int]:
        """The best by likelihood: `top_n`, or as many as make the expected F1 largest."""
        scored = self.ready.evidence.scored(self.question, candidates)
        order = np.argsort(-scored.means, kind="stable").tolist()
        most = top_n or self.ready.best or self.ready.evidence.best(scored.totals)
        readable = (self.ready.readable[candidates[location]].text for location in order)
        each: dict[int, list[int]] = {at: [] for at in range(min(most, len(order)))}
        repeated = each if self._plan.settings.repeats else distinct(readable, most)
        best = [order[at] for at in repeated]
        selected = [candidates[location] for location in best]
        self._judged = {}
        for location, others in zip(best, repeated.values(), strict=True):
            score, details = scored[location]
            also = tuple(self.ready.paragraphs[candidates[order[at]]].metadata for at in others)
            self._judged[candidates[location]] = score, {**details, **({"also_at": also} if also else {})}
        if self._plan.settings.follow and self.ready.evidence.by_words:
            selected = self._with_followed(selected, dict(zip(candidates, scored.totals.tolist(), strict=True)), top_n)
        self._trace.scores = dict(zip(candidates, scored.means.tolist(), strict=True))
        self._trace.decisions.append(Decision("likelihood", [(at,) for at in candidates], best, order))
        self._note_paragraphs("likelihood", candidates, selected)
        return sorted(selected)

    def _with_followed(self, best: Sequence[int], totals: Mapping[int, float], top_n: int | None) -> list[int]:
        """The best, and right behind each what it points to, with the score of what points there."""
        selected = []
        for at, source in islice(followed(self.ready, best, totals), top_n):
            selected.append(at)
            if source is not None:
                score, details = self._judged[source]
                total = float(np.nextafter(details["total"], -np.inf))
                matched = bool(self.ready.evidence.levels(self.question).matched[at])
                from_ = {"followed": self.ready.paragraphs[source].id, "matched": matched, "total": total}
                score = float(np.nextafter(score, -np.inf))
                self._judged[at] = score, {key: details[key] for key in ("tokens", "nothing_matched")} | from_
        self._judged = {at: self._judged[at] for at in selected}
        return selected

    def _likelihoods(self, paragraphs: Sequence[Sequence[int]]) -> Likelihoods:
        return Likelihoods(self.ready.evidence, self.question, paragraphs)

    # What happened

    def _note_paragraphs(
        self, kind: str, offered: Sequence[int], chosen: Sequence[int], problems: Sequence[str] = ()
    ) -> None:
        ids = tuple(self.ready.paragraphs[position].id for position in chosen)
        self._note(Step(kind, len(offered), ids, tuple(problems)))

    def _note(self, step: Step) -> None:
        self.steps.append(step)
        if self._on_step:
            self._on_step(step)
