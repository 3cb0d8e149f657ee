"""What a paragraph points to, such as "see Section 4": the likeliest paragraph there follows right behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.structure.references import Label, caption_label, heading_labels, references


def followed(
    ready: PreparedDocuments, chosen: Sequence[int], totals: Mapping[int, float]
) -> Iterator[tuple[int, int | None]]:
    """Positions of paragraphs, each with the likeliest paragraph of what it points to behind it.

    Args:
        ready: The documents.
        chosen: Positions, best first.
        totals: S of what may follow, by position.

    Yields:
        Each position, none twice, and the position that pointed to it; None for what was chosen.
    """
    sections, seen = ready.outline.sections, set[int]()
    places: dict[int | str, dict[Label, list[int]]] = {}
    for at in chosen:
        if at in seen:
            continue
        seen.add(at)
        yield at, None
        if labels := references(ready.readable[at].text):
            path = sections[ready.section_indices[at]].path
            if path[0] not in places:
                places[path[0]] = _labelled(ready, path[0])
            inside = {position for label in labels for position in places[path[0]].get(label, ()) if position in totals}
            elsewhere = sorted(
                position for position in inside if sections[ready.section_indices[position]].path != path
            )
            best = max(elsewhere, key=totals.__getitem__, default=at)
            if best not in seen:
                seen.add(best)
                yield best, at


def _labelled(ready: PreparedDocuments, document: int | str) -> dict[Label, list[int]]:
    """Positions of a document's paragraphs by what their sections, or they themselves as captions, are called."""
    found: dict[Label, list[int]] = {}
    labels = cache(heading_labels)
    for number, section in enumerate(ready.outline.sections):
        if section.path[0] == document:
            above = {label for heading in section.path[1:] for label in labels(str(heading))}
            for position in ready.inside([number]):
                caption = caption_label(ready.readable[position].text)
                for label in above if caption is None else {*above, caption}:
                    found.setdefault(label, []).append(position)
    return found
