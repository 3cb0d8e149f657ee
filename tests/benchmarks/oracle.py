"""An LLM that answers every prompt of drilling down and of its baselines from the gold evidence."""

from __future__ import annotations

import re

from drillrank import UPR, Passage
from drillrank.drilldown.drill import Drillable
from drillrank.structure import sentences

_SECTION = re.compile(r"^\* Section: (.*)$", re.MULTILINE)
_SUMMARY = re.compile(r"^\* Section: (.*)\n(.*)$", re.MULTILINE)
_PARAGRAPH = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)


class Oracle:
    """Knows which paragraphs are evidence, and recognises sections by name and paragraphs by text."""

    def __init__(self, ready: Drillable, gold: set[str]) -> None:
        positions = [at for at, paragraph in enumerate(ready.paragraphs) if paragraph.id in gold]
        self._all = {" ".join(paragraph.text.split()) for paragraph in ready.readable}
        self._texts = [" ".join(ready.readable[at].text.split()) for at in positions]
        self._names = self._relevant_names(ready, {ready.owners[at] for at in positions})

    @staticmethod
    def _relevant_names(ready: Drillable, sections: set[int]) -> dict[str, list[bool]]:
        """For every name, in order of the entries that bear it: whether evidence is inside."""
        names: dict[str, list[bool]] = {}
        open_ = ready.outline.top()
        while open_:
            entry = open_.pop(0)
            names.setdefault(entry.name, []).append(bool(sections & set(entry.sections)))
            if len(entry.sections) > 1:
                open_ += ready.outline.below(entry)
        return names

    def complete(self, prompt: str) -> str:
        if "section names" in prompt:
            return ", ".join(name for name in _SECTION.findall(prompt) if self._is_relevant(name))
        if "Respond with yes or no" in prompt:
            return "yes" if any(text in " ".join(prompt.split()) for text in self._texts) else "no"
        return ", ".join(number for number, text in _PARAGRAPH.findall(prompt) if self._is_evidence(text))

    def _is_relevant(self, name: str) -> bool:
        again = re.fullmatch(r"(.*) \((\d+)\)", name)
        if name not in self._names and again:
            return self._names[again[1]][int(again[2]) - 1]
        return self._names[name][0]

    def _is_evidence(self, shown: str) -> bool:
        shown = " ".join(shown.split())
        if shown in self._all:
            return shown in self._texts
        start, end = sentences(shown)[0]  # of a summary: a sentence of the paragraph, or its beginning
        return any(shown[start:end] in text for text in self._texts)


class SummaryReader(Oracle):
    """Knows paragraphs, but judges sections by what their summaries show: opens the likeliest three."""

    def __init__(self, ready: Drillable, gold: set[str], question: str) -> None:
        super().__init__(ready, gold)
        self._question = question

    def complete(self, prompt: str) -> str:
        if "section names" not in prompt:
            return super().complete(prompt)
        outline = [Passage(summary, title=name) for name, summary in _SUMMARY.findall(prompt)]
        return ", ".join(item.passage.title for item in UPR().rank(self._question, outline, 3))
