"""An LLM that answers every prompt of drilling down and of its baselines from the gold evidence."""

from __future__ import annotations

import re
from bisect import bisect_left

from drillrank.drilldown.outline import ListedSection
from drillrank.drilldown.prepared import PreparedDocuments

_SECTION = re.compile(r"^\* Section: (.*)$", re.MULTILINE)
_PARAGRAPH = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)


class Oracle:
    """Knows which paragraphs are evidence, and recognises sections by name and paragraphs by text."""

    def __init__(self, ready: PreparedDocuments, gold: set[str]) -> None:
        paragraphs = ready.outline.paragraphs
        relevant = [paragraph for paragraph in paragraphs if paragraph.passage.id in gold]
        self._texts = {" ".join(paragraph.passage.text.split()): False for paragraph in paragraphs}
        self._texts |= {" ".join(paragraph.passage.text.split()): True for paragraph in relevant}
        self._names = self._relevant_names(ready, {ready.outline.section(paragraph) for paragraph in relevant})

    @staticmethod
    def _relevant_names(ready: PreparedDocuments, sections: set[ListedSection]) -> dict[str, list[bool]]:
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
            return ", ".join(name for name in _SECTION.findall(prompt) if self._is_relevant(name)) or "None"
        if "Respond with yes or no" in prompt:
            shown = " ".join(prompt.split())
            return "yes" if any(gold and text in shown for text, gold in self._texts.items()) else "no"
        return ", ".join(number for number, text in _PARAGRAPH.findall(prompt) if self._is_evidence(text)) or "None"

    def complete_json(self, prompt: str, schema: dict[str, object]) -> dict[str, list[int]]:
        """The same, where numbers are asked for."""
        assert list(schema["required"]) == ["ids"]
        judged = self._is_relevant if "ids of all sections" in prompt else self._is_evidence
        offered = _PARAGRAPH.findall(prompt)
        if judged == self._is_relevant:  # a summary may begin like a numbered line too
            offered = [(number, name) for number, name in offered if self._is_name(name)]
        return {"ids": [int(number) for number, text in offered if judged(text)]}

    def _is_name(self, name: str) -> bool:
        return name in self._names or re.sub(r" \(\d+\)$", "", name) in self._names

    def _is_relevant(self, name: str) -> bool:
        again = re.fullmatch(r"(.*) \((\d+)\)", name)
        if name not in self._names and again:
            return self._names[again[1]][int(again[2]) - 1]
        return self._names[name][0]

    def _is_evidence(self, shown: str) -> bool:
        """A paragraph is known as it stands; a summary of one by the paragraph that holds most of its beginning."""
        shown = " ".join(shown.split())
        if shown in self._texts:
            return self._texts[shown]
        held = {text: _beginning(shown, text) for text in self._texts}
        most = max(held.values())
        return any(self._texts[text] for text in held if held[text] == most)


def _beginning(shown: str, text: str) -> int:
    """How many of its first characters stand together in a text."""
    return bisect_left(range(1, len(shown) + 1), True, key=lambda length: shown[:length] not in text)
