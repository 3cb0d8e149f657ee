"""What a paragraph points to, such as "see Section 4": the likeliest paragraph there follows right behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.structure.references import caption_label, heading_labels, references


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
    for at in chosen:
        if at in seen:
            continue
        seen.add(at)
        yield at, None
        labels = set(references(ready.readable[at].text))
        own = sections[ready.section_indices[at]]
        inside = [
            position
            for number, section in enumerate(sections if labels else ())
            if section.path[0] == own.path[0] and section.path != own.path
            for called in [any(labels.intersection(heading_labels(str(heading))) for heading in section.path[1:])]
            for position in ready.inside([number])
            if called or caption_label(ready.readable[position].text) in labels
        ]
        best = max((position for position in inside if position in totals), key=totals.__getitem__, default=at)
        if best not in seen:
            seen.add(best)
            yield best, at
