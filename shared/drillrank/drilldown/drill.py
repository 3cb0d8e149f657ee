"""One question's way down: documents, sections, paragraphs (D3, Nair et al. 2023, section 3), and what was left."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import groupby, islice
from typing import Any

import numpy as np

from drillrank.drilldown.condensing import SectionSummarizer
from drillrank.drilldown.evidence import distinct
from drillrank.drilldown.outline import BEGINNING, OutlinePath
from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.drilldown.selection import By, Deputy, Item, Likelihoods, Selection
from drillrank.drilldown.settings import BOOLEAN_PROMPT, WITHOUT_SECTIONS, Strategy
from drillrank.drilldown.versions import parse_date
from drillrank.explanation import Explanation, Explanations, Node
from drillrank.explanation.terms import Outcome, on_one_line
from drillrank.llm import Requests
from drillrank.passages import Passage, Ranked, ranked
from drillrank.rerank.base import Scored, log_probability
from drillrank.structure.references import Label, caption_label, heading_labels, references
from drillrank.vectors import Floats

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
_BEGINNING = 70  # characters of a paragraph that are shown
_ALONE = "nothing else to choose"
_CHOSEN: dict[Deputy | None, str] = {
    None: "the LLM's choice",
    "budget": "no call was left (budget): likelihood's choice",
    "failure": "the LLM's answer was unusable: likelihood's choice",
}
_LEFT: dict[Deputy | None, str] = {
    None: "not the LLM's choice",
    "budget": "not asked about (budget): others are likelier",
    "failure": "the LLM's answer was unusable: not likelihood's choice",
}


Reasons = Callable[[], dict[int, str]]


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


class Drill:
    """Drills into prepared documents for one question.

    Args:
        selection: Asks the LLM; with the settings.
        ready: The documents.
        summarizer: Makes the summaries of the outline; None where there is no LLM to choose.
        on_step: Callback, called with each step.
    """

    def __init__(
        self,
        selection: Selection,
        ready: PreparedDocuments,
        summarizer: SectionSummarizer | None,
        on_step: Callable[[Step], object] | None,
    ) -> None:
        self._selection, self._settings, self.question = selection, selection.settings, selection.question
        self._paragraphs_by: By = "json" if self._settings.sections_by == "json" else "ids"  # they have no names
        self._ready = ready
        self._summarizer = summarizer
        self._on_step = on_step
        self._judged: dict[int, Scored] = {}  # by the stage that had the last word, if that gives scores
        self.steps: list[Step] = []
        # For explanations, worked out if somebody asks for one: why sections and paragraphs were chosen, and scores.
        self._section_reasons: list[Reasons] = []
        self._paragraph_reasons: list[Reasons] = []
        self._section_scores: dict[int, float] = {}
        self._likelihoods: tuple[Sequence[int], Floats] = (), np.zeros(0)

    def likely(self, top_n: int | None) -> list[Ranked[Passage]]:
        """The evidence by likelihood alone, best first: of all paragraphs, or of those of the likeliest sections."""
        ready, wanted = self._ready, self._settings.sections
        scope = self._proposed_documents()
        scores = self._likelihoods_of_sections(scope)
        order = sorted(range(len(scope)), key=scores.__getitem__, reverse=True)
        opened = sorted(scope[location] for location in order[:wanted])
        if wanted is not None:
            leaves = ready.outline.leaves(scope[location] for location in order[:wanted])
            self._note(Step("sections", len(scope), tuple(leaf.name for leaf in leaves)))
        chosen, guarded = self._candidates(scope, opened)
        chosen = (self._monot5 if self._settings.paragraphs == "monot5" else self._likelihood)(chosen, top_n)
        shown = scope
        if wanted is None:  # all were open: what tells is where the evidence stands
            opened = np.unique(ready.section_of[chosen]).tolist()
            drilled = {ready.outline.sections[at].path[0] for at in opened}
            shown = [at for at in scope if ready.outline.sections[at].path[0] in drilled]
        ranks = [scope[location] for location in order]
        self._section_reasons.append(partial(_by_rank, "likelihood", ranks, set(opened)))
        self._section_scores = dict(zip(scope, scores, strict=True))
        found = {at: (self._section_scores[at], rank) for rank, at in enumerate(ranks, 1)}
        return self._ranked(shown, opened, chosen, guarded, found, top_n)

    def by_llm(self, top_n: int | None) -> Requests[list[Ranked[Passage]]]:
        """The evidence with an LLM, best first."""
        self._selection.check(*self._settings.prompts)
        strategy: Any = self._settings.paragraphs
        scope = self._proposed_documents()
        opened = scope if strategy in WITHOUT_SECTIONS else (yield from self._sections(scope))
        chosen, guarded = self._candidates(scope, opened)
        alone = len(chosen) == 1  # nothing for the LLM to choose
        for stage in _STAGES[strategy]:
            if stage in ("monot5", "likelihood"):
                chosen = (self._monot5 if stage == "monot5" else self._likelihood)(chosen, top_n)
                alone = len(chosen) == 1
            elif not alone:
                chosen = yield from self._paragraphs(chosen, stage)
        return self._ranked(scope, opened, chosen, guarded, None, top_n)

    def _candidates(self, scope: Sequence[int], opened: Sequence[int]) -> tuple[list[int], set[int]]:
        """Paragraphs of the opened sections, and those that the guard adds; and which these are."""
        guarded = set(self._guarded(scope, opened)) if self._settings.guard_tokens else set()
        return sorted({*self._ready.inside(opened), *guarded}), guarded

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
        ready = self._ready
        if not self._judged:
            by_likelihood = ready.evidence.scored(self.question, chosen)
            self._judged = {at: by_likelihood[location] for location, at in enumerate(chosen)}
        details = []
        for position in chosen:
            section = ready.section_of[position]
            version = ready.versions.details(ready.outline.sections[section].path[0])
            item_details: dict[str, Any] = {**self._judged[position][1], "guarded": position in guarded, **version}
            if likely is None:
                item_details["nothing_matched"] = False
            elif section in likely:
                item_details["section_score"], item_details["section_rank"] = likely[section]
            metadata = ready.readable[position].metadata
            if metadata.get("start") is not None:  # unknown for records that do not have offsets
                item_details["span"] = (metadata["start"], metadata["end"])
            details.append(item_details)
        scores = [self._judged[at][0] for at in chosen]
        found = ranked([ready.readable[at] for at in chosen], scores, details, top_n)
        self._scope, self._opened, self._guards, self._chosen = set(scope), set(opened), guarded, chosen
        self._evidence = {chosen[item.details["position"]] for item in found}
        return found

    @property
    def answerable(self) -> float | None:
        """As `EvidenceRanking` has it."""
        evidence = self._ready.evidence
        return evidence.levels(self.question).answerable if evidence.by_words and self._summarizer is None else None

    def explain(self, found: Sequence[Ranked[Passage]]) -> Explanations:
        """Why evidence of this question stands where it stands, and what was opened, read and left on the way."""
        positions = [self._chosen[item.details["position"]] for item in found]
        explained: Sequence[Explanation] = (
            self._settings.monot5.explain(self.question, found)
            if self._settings.monot5 is not None and self._settings.paragraphs != "monot5+base"
            else self._ready.evidence.explain(self.question, found, positions)
        )
        named = [
            replace(item, name=": ".join(filter(None, (entry.passage.title, self._beginning(at)))))
            for item, entry, at in zip(explained, found, positions, strict=True)
        ]
        return Explanations(named, self.question, self._tree())

    def _beginning(self, position: int) -> str:
        return on_one_line(self._ready.readable[position].text, _BEGINNING)

    def _tree(self) -> Iterator[Node]:
        """Documents, sections and the paragraphs that were read, in pre-order."""
        ready, outline, opened = self._ready, self._ready.outline, self._opened
        of_sections = _together(self._section_reasons)
        of_paragraphs = dict.fromkeys([*ready.inside(sorted(opened)), *self._guards], _ALONE)
        of_paragraphs |= _together(self._paragraph_reasons)
        scores = dict(zip(self._likelihoods[0], self._likelihoods[1].tolist(), strict=True))
        scores |= {at: score for at, (score, _) in self._judged.items()}
        paths = [outline.sections[at].path for at in opened]
        above_opened = {path[:length] for path in paths for length in range(2, len(path))}
        behind = set(self._chosen) - self._evidence
        seen: set[OutlinePath] = set()
        for at, section in enumerate(outline.sections):
            path = section.path
            if path[:1] not in seen:
                name = outline.document_name(path[0], ready.names.get(path[0]))
                reason = "drilled into" if at in self._scope else "others have likelier paragraphs (max_documents)"
                outcome: Outcome = "opened" if at in self._scope else "left"
                yield Node(name, "document", 0, outcome, reason, id=str(path[0]))
            hidden = outline.hidden(path[0])  # headings that name the document
            if at in self._scope:
                for above in (path[:length] for length in range(2 + hidden, len(path)) if path[:length] not in seen):
                    outcome = "opened" if above in above_opened else "left"
                    yield Node(str(above[-1]), "section", len(above) - 1 - hidden, outcome, "no text of its own")
                outcome = "opened" if at in opened else "left"
                depth, name = max(len(path) - 1 - hidden, 1), str(path[-1]) if len(path) > 1 else BEGINNING
                yield Node(name, "section", depth, outcome, of_sections.get(at, _ALONE), self._section_scores.get(at))
            seen |= {path[:length] for length in range(1, len(path) + 1)}
            for position in ready.inside([at]):
                if position not in of_paragraphs or not (at in opened or position in self._guards):
                    continue
                why = of_paragraphs[position]
                if position in self._guards:
                    why = f"outside, found by the guard; {why}"
                if position in behind:
                    why += f"; behind the first {len(self._evidence)}"
                outcome = "evidence" if position in self._evidence else "read"
                id_ = ready.paragraphs[position].id
                yield Node(self._beginning(position), "paragraph", depth + 1, outcome, why, scores.get(position), id_)

    # Documents

    def _proposed_documents(self) -> list[int]:
        """Sections of the likeliest documents, if there are more documents than to be drilled into."""
        ready = self._ready
        of_document: dict[int | str, list[int]] = {}
        for position, section in enumerate(ready.outline.sections):
            of_document.setdefault(section.path[0], []).append(position)
        as_of = self._settings.as_of
        outdated = ready.versions.find_outdated(
            of_document, self.question, None if as_of is None else parse_date(as_of)
        )
        current = [document for document in of_document if document not in outdated]
        limit = self._settings.max_documents
        if limit is None or len(current) <= limit:
            return [position for document in current for position in of_document[document]]
        numbers = {document: number for number, document in enumerate(of_document)}
        document_of = np.array([numbers[section.path[0]] for section in ready.outline.sections])
        posteriors = ready.evidence.log_posteriors(self.question, document_of[ready.section_of])
        likely = dict(zip(of_document, posteriors.tolist(), strict=True))
        likeliest = set(sorted(current, key=likely.__getitem__, reverse=True)[:limit])
        self._note(Step("documents", len(current), tuple(map(str, sorted(likeliest, key=list(of_document).index)))))
        return [position for document, inside in of_document.items() if document in likeliest for position in inside]

    # Sections

    def _sections(self, scope: Sequence[int]) -> Requests[list[int]]:
        """Sections chosen by the LLM, level by level where one prompt cannot hold them all."""
        outline, selection, by = self._ready.outline, self._selection, self._settings.sections_by or "names"
        prompt, _ = self._settings.prompts
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
            likely = self._likelihoods_of([self._ready.inside(entry.sections) for entry in level])
            found, new_problems, deputies = yield from selection.choose(prompt, items, likely, by=by, spare=1)
            self._section_reasons.append(partial(_by_llm, [e.sections for e in level], found, deputies))
            selected = [level[position] for position in found]
            names = tuple(entry.name for entry in selected)
            self._note(Step("sections", len(level), names, tuple(problems + new_problems)))
            problems = []
            chosen += [entry.sections[0] for entry in selected if len(entry.sections) == 1]
            level = [below for entry in selected if len(entry.sections) > 1 for below in outline.below(entry)]
        return sorted(set(chosen))

    def _summaries(self, scope: Sequence[int]) -> Requests[tuple[dict[int, str], list[str]]]:
        """Summaries of sections by position, made document by document."""
        assert self._summarizer is not None
        sections = self._ready.outline.sections
        known: dict[int, str] = {}
        problems: list[str] = []
        for _, inside in groupby(scope, lambda position: sections[position].path[0]):
            positions = list(inside)
            passages = [sections[at].passage for at in positions]
            texts, new_problems = yield from self._summarizer.summarize(passages, self._ready.evidence.language)
            known.update(zip(positions, texts, strict=True))
            problems += new_problems
        return known, problems

    def _likelihoods_of_sections(self, scope: Sequence[int]) -> list[float]:
        """Log of the posterior of sections, by words, up to a constant, over the question's tokens."""
        evidence = self._ready.evidence
        posteriors = evidence.log_posteriors(self.question, self._ready.section_of)
        return (posteriors[list(scope)] / max(len(evidence.levels(self.question).words), 1)).tolist() if scope else []

    def _guarded(self, scope: Sequence[int], opened: Sequence[int]) -> list[int]:
        """The best paragraphs outside the opened sections that the allowance holds: a summary may have lost them."""
        outside = self._ready.inside(sorted({*scope}.difference(opened)))
        order = self._likelihoods_of([(at,) for at in outside]).order(range(len(outside)))
        left = self._settings.guard_tokens
        selected = []
        for position in (outside[location] for location in order[:_GUARDED]):
            tokens = self._selection.count(self._ready.readable[position].text)
            if tokens <= left:
                left -= tokens
                selected.append(position)
        self._note_paragraphs("guard", outside, selected)
        return selected

    # Paragraphs

    def _paragraphs(self, candidates: Sequence[int], stage: str) -> Requests[list[int]]:
        """BASE over the paragraphs' text, or over their summaries."""
        if not candidates:
            return []
        readable = [self._ready.readable[position] for position in candidates]
        texts: Sequence[str] = [passage.text for passage in readable]
        problems: Sequence[str] = ()
        if stage == "summaries":
            assert self._summarizer is not None
            texts, problems = yield from self._summarizer.summarize(readable, self._ready.evidence.language)
        alone = stage == "one by one"
        found, new_problems, deputies = yield from self._selection.choose(
            BOOLEAN_PROMPT if alone else self._settings.prompts[1],
            [Item(text) for text in texts],
            self._likelihoods_of([(at,) for at in candidates]),
            by="yes" if alone else self._paragraphs_by,
            spare=int(stage == "summaries"),
        )
        self._paragraph_reasons.append(partial(_by_llm, [(at,) for at in candidates], found, deputies))
        chosen = [candidates[position] for position in found]
        self._note_paragraphs(stage, candidates, chosen, [*problems, *new_problems])
        return chosen

    def _monot5(self, candidates: Sequence[int], top_n: int | None) -> list[int]:
        """What the model calls relevant, at least its best; before BASE, its best that fit into one prompt."""
        settings = self._settings
        if settings.monot5 is None or not candidates:
            return list(candidates)
        ranking = settings.monot5.rank(self.question, [self._ready.readable[position] for position in candidates])
        order = [candidates[item.details["position"]] for item in ranking]
        if settings.paragraphs == "monot5+base":
            items = [Item(self._ready.readable[position].text) for position in order]
            selected = order[: self._selection.holds(settings.prompts[1], items, self._paragraphs_by)]
        else:
            selected = order[: top_n or max(1, sum(log_probability(item) >= _RELEVANT for item in ranking))]
            self._judged = {at: (item.score, item.details) for at, item in zip(order, ranking, strict=True)}
        self._paragraph_reasons.append(partial(_by_rank, "relevance", order, selected))
        self._note_paragraphs("monot5", candidates, selected)
        return sorted(selected)

    def _likelihood(self, candidates: Sequence[int], top_n: int | None) -> list[int]:
        """The best by likelihood: `top_n`, or as many as make the expected F1 largest."""
        scored = self._ready.evidence.scored(self.question, candidates)
        places = np.argsort(-scored.means, kind="stable").tolist()
        order = [candidates[location] for location in places]
        most = top_n or self._ready.best or self._ready.evidence.best(scored.totals)
        alike: Mapping[int, Sequence[int]] = dict.fromkeys(range(min(most, len(order))), ())
        if not self._settings.repeats:
            alike = distinct((self._ready.readable[at].text for at in order), most)
        self._judged = {}
        for rank, others in alike.items():
            score, details = scored[places[rank]]
            also = tuple(self._ready.paragraphs[order[at]].metadata for at in others)
            self._judged[order[rank]] = score, {**details, **({"also_at": also} if also else {})}
        best = list(self._judged)
        self._likelihoods = candidates, scored.means
        self._paragraph_reasons.append(partial(_by_rank, "likelihood", order, best))
        if self._settings.follow and self._ready.evidence.by_words:
            self._follow(best, dict(zip(candidates, scored.totals.tolist(), strict=True)), top_n)
        selected = list(self._judged)
        self._note_paragraphs("likelihood", candidates, selected)
        return sorted(selected)

    def _follow(self, best: Sequence[int], totals: Mapping[int, float], top_n: int | None) -> None:
        """Behind each of the best what it points to, with the score of what points there."""
        judged: dict[int, Scored] = {}
        for at, source in islice(self._followed(best, totals), top_n):
            if source is None:
                judged[at] = self._judged[at]
                continue
            score, details = judged[source]
            more = {
                "followed": self._ready.paragraphs[source].id,
                "matched": self._ready.evidence.matched(self.question, at),
                "total": float(np.nextafter(details["total"], -np.inf)),
            }
            more |= {key: details[key] for key in ("tokens", "nothing_matched")}
            judged[at] = float(np.nextafter(score, -np.inf)), more
        self._judged = judged

    def _followed(self, best: Sequence[int], totals: Mapping[int, float]) -> Iterator[tuple[int, int | None]]:
        """The best, and behind each the likeliest paragraph of what it points to, such as "see Section 4".

        Yields:
            Each position, none twice, and the position that pointed to it; None for the best themselves.
        """
        ready, seen = self._ready, set[int]()
        sections, labelled = ready.outline.sections, cache(self._labelled)
        for at in best:
            if at in seen:
                continue
            seen.add(at)
            yield at, None
            if labels := references(ready.readable[at].text):
                path = sections[ready.section_of[at]].path
                places = labelled(path[0])
                inside = {position for label in labels for position in places.get(label, ()) if position in totals}
                elsewhere = sorted(at for at in inside if sections[ready.section_of[at]].path != path)
                target = max(elsewhere, key=totals.__getitem__, default=at)
                if target not in seen:
                    seen.add(target)
                    yield target, at

    def _labelled(self, document: int | str) -> dict[Label, list[int]]:
        """Positions of a document's paragraphs by what their sections, or they themselves as captions, are called."""
        found: dict[Label, list[int]] = {}
        labels = cache(heading_labels)
        for number, section in enumerate(self._ready.outline.sections):
            if section.path[0] == document:
                above = {label for heading in section.path[1:] for label in labels(str(heading))}
                for position in self._ready.inside([number]):
                    caption = caption_label(self._ready.readable[position].text)
                    for label in above if caption is None else {*above, caption}:
                        found.setdefault(label, []).append(position)
        return found

    def _likelihoods_of(self, paragraphs: Sequence[Sequence[int]]) -> Likelihoods:
        return Likelihoods(self._ready.evidence, self.question, paragraphs)

    # What happened

    def _note_paragraphs(
        self, kind: str, offered: Sequence[int], chosen: Sequence[int], problems: Sequence[str] = ()
    ) -> None:
        ids = tuple(self._ready.paragraphs[position].id for position in chosen)
        self._note(Step(kind, len(offered), ids, tuple(problems)))

    def _note(self, step: Step) -> None:
        self.steps.append(step)
        if self._on_step:
            self._on_step(step)


def _by_rank(by: str, order: Sequence[int], selected: Collection[int]) -> dict[int, str]:
    """Why a model left some of what it ranked."""
    chosen = set(selected)
    ranks = {at: f"{by}: rank {rank} of {len(order)}" for rank, at in enumerate(order, 1)}
    return {at: rank if at in chosen else f"{rank}; kept: {len(chosen)}" for at, rank in ranks.items()}


def _by_llm(
    offered: Sequence[Sequence[int]], selected: Sequence[int], deputies: Mapping[int, Deputy]
) -> dict[int, str]:
    """Why the LLM, or likelihood in its place, chose some of what it was offered; a chapter has several positions."""
    found: dict[int, str] = {}
    chosen = set(selected)
    for at, positions in enumerate(offered):
        why = (_CHOSEN if at in chosen else _LEFT)[deputies.get(at)]
        if len(positions) > 1:
            why = _ALONE if at in chosen else f"{why}, with its chapter"
        found |= dict.fromkeys(positions, why)
    return found


def _together(reasons: Sequence[Reasons]) -> dict[int, str]:
    """The last reason of each."""
    return {at: why for given in reasons for at, why in given().items()}
