"""What was opened, read and left on the way down, and who decided so: a tree of documents, sections and paragraphs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from drillrank.drilldown.outline import BEGINNING, OutlinePath
from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.explanation import Node
from drillrank.explanation.terms import Outcome, on_one_line

Deputy = Literal["budget", "failure", "empty"]
"""Why likelihood decided in the LLM's place: no call was left, the answer was unusable, or it chose nothing."""

ALONE = "nothing else to choose"
_BEGINNING = 70  # characters of a paragraph that are shown
_CHOSEN: dict[Deputy | None, str] = {
    None: "the LLM's choice",
    "budget": "no call was left (budget): likelihood's choice",
    "failure": "the LLM's answer was unusable: likelihood's choice",
    "empty": "the LLM chose nothing: likelihood's choice",
}
_LEFT: dict[Deputy | None, str] = {
    None: "not the LLM's choice",
    "budget": "not asked about (budget): others are likelier",
    "failure": "the LLM's answer was unusable: not likelihood's choice",
    "empty": "the LLM chose nothing: not likelihood's choice",
}
_RANKED_BY = {"sections": "likelihood", "likelihood": "likelihood", "monot5": "relevance"}


@dataclass(frozen=True, slots=True)
class Decision:
    """What one step decided.

    Attributes:
        kind: Of the step.
        offered: Positions of sections or paragraphs; those of one chapter together.
        chosen: Which of these, by their places in `offered`.
        order: All of them, best first, where a model ranked them; empty where an LLM was asked.
        deputies: Why likelihood decided in the LLM's place, by place.
    """

    kind: str
    offered: Sequence[Sequence[int]]
    chosen: Collection[int]
    order: Sequence[int] = ()
    deputies: Mapping[int, Deputy] = field(default_factory=dict)

    def reasons(self) -> Iterator[tuple[Sequence[int], bool, str]]:
        """Of each thing offered: its positions, whether it was chosen, and why."""
        places = {at: rank for rank, at in enumerate(self.order, 1)}
        chosen = set(self.chosen)
        for at, positions in enumerate(self.offered):
            was_chosen, by = at in chosen, self.deputies.get(at)
            if places:
                most = "" if was_chosen else f"; kept: {len(chosen)}"
                yield positions, was_chosen, f"{_RANKED_BY[self.kind]}: rank {places[at]} of {len(places)}{most}"
            else:
                yield positions, was_chosen, _CHOSEN[by] if was_chosen else _LEFT[by]


@dataclass(slots=True)
class Way:
    """One question's way down, as far as it is known.

    Attributes:
        decisions: In their order.
        scope: Sections of the documents that were drilled into.
        opened: Sections.
        guarded: Paragraphs outside of them that are candidates, too.
        evidence: Paragraphs that were found, best first.
        beyond: Paragraphs that were chosen, too, but stand behind the first `top_n`.
        scores: Of sections and of paragraphs, by position, where they were scored.
    """

    decisions: list[Decision] = field(default_factory=list)
    scope: Sequence[int] = ()
    opened: Sequence[int] = ()
    guarded: Collection[int] = ()
    evidence: Sequence[int] = ()
    beyond: Collection[int] = ()
    section_scores: Mapping[int, float] = field(default_factory=dict)
    scores: Mapping[int, float] = field(default_factory=dict)

    def tree(self, ready: PreparedDocuments) -> Iterator[Node]:
        """Documents, sections and the paragraphs that were read, in pre-order."""
        scope, opened, evidence = set(self.scope), set(self.opened), set(self.evidence)
        of_sections, of_paragraphs = self._section_reasons(), self._paragraph_reasons(ready)
        paths = [section.path for section in ready.outline.sections]
        above_opened = {path[:length] for path in map(paths.__getitem__, opened) for length in range(2, len(path))}
        seen: set[OutlinePath] = set()
        for at, path in enumerate(paths):
            if path[:1] not in seen:
                name = ready.outline.document_name(path[0], ready.names.get(path[0]))
                yield _document(name, str(path[0]), at in scope)
            if at in scope:
                hidden = ready.outline.hidden(path[0])  # headings that name the document
                missing = [path[:length] for length in range(2 + hidden, len(path)) if path[:length] not in seen]
                yield from (_heading(above, hidden, above in above_opened) for above in missing)
                outcome: Outcome = "opened" if at in opened else "left"
                depth, name = max(len(path) - 1 - hidden, 1), str(path[-1]) if len(path) > 1 else BEGINNING
                yield Node(name, "section", depth, outcome, of_sections.get(at, ALONE), self.section_scores.get(at))
            seen |= {path[:length] for length in range(1, len(path) + 1)}
            read = ready.inside([at]) if at in opened else sorted(set(self.guarded) & set(ready.inside([at])))
            for position in filter(of_paragraphs.__contains__, read):
                text, id_ = beginning(ready.readable[position].text), ready.paragraphs[position].id
                outcome = "evidence" if position in evidence else "read"
                score = self.scores.get(position)
                yield Node(text, "paragraph", depth + 1, outcome, of_paragraphs[position], score, id_)

    def _section_reasons(self) -> dict[int, str]:
        """Why sections were opened or left: the last decision about one, which may be that about its chapter."""
        known: dict[int, str] = {}
        for decision in self.decisions:
            if decision.kind == "sections":
                for positions, was_chosen, why in decision.reasons():
                    with_chapter = ALONE if was_chosen else f"{why}, with its chapter"
                    known |= dict.fromkeys(positions, why if len(positions) == 1 else with_chapter)
        return known

    def _paragraph_reasons(self, ready: PreparedDocuments) -> dict[int, str]:
        """Why candidates became evidence or did not."""
        guarded = set(self.guarded)
        known = dict.fromkeys([*ready.inside(self.opened), *guarded], ALONE)
        for decision in self.decisions:
            if decision.kind != "sections":
                known |= {at: why for (at,), _, why in decision.reasons()}
        known |= {at: f"{known[at]}; behind the first {len(self.evidence)}" for at in self.beyond}
        return {at: f"outside, found by the guard; {why}" if at in guarded else why for at, why in known.items()}


def beginning(text: str) -> str:
    """How a paragraph begins."""
    return on_one_line(text, _BEGINNING)


def _document(name: str, id_: str, drilled: bool) -> Node:
    if drilled:
        return Node(name, "document", 0, "opened", "drilled into", id=id_)
    return Node(name, "document", 0, "left", "others have likelier paragraphs (max_documents)", id=id_)


def _heading(path: OutlinePath, hidden: int, opened: bool) -> Node:
    return Node(str(path[-1]), "section", len(path) - 1 - hidden, "opened" if opened else "left", "no text of its own")
