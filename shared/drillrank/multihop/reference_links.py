"""Links from references inside a document: "see Section 8", "Table 3", "Note 12", "§ 5"."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from drillrank.multihop.links import Links
from drillrank.passages import Passage
from drillrank.structure.references import Label, caption_label, heading_labels, references

_DOCUMENT_KEYS = ("drillrank_source_id", "document", "file_path", "file_name", "source")


class ReferenceLinks:
    """Links a passage to the passages of its document that its text refers to, in the order of the references.

    A passage is called by its own heading, the last of `section_path`, `drillrank_section_path` or the title: "8.2
    Term" is Section 8.2, "Note 12. Leases" is Note 12, and both go by their title in quotation marks, too. It is also
    called by a caption, such as "Table 3: ...", that begins one of its lines. Passages that share a label are all
    linked.

    Passages are of one document if they share the first of these metadata that they have: `drillrank_source_id`,
    `document`, `file_path`, `file_name`, `source`. Those without any are all of one.

    >>> term = Passage("Notice is given as Section 8 says.", id="3", title="Lease > 3 Term")
    >>> notice = Passage("In writing.", id="8", title="Lease > 8 Notices")
    >>> list(ReferenceLinks().over([term, notice])(term))
    ['8']
    """

    kind = "reference"

    def over(self, passages: Sequence[Passage], /) -> Links:
        """Links to these passages."""
        called: dict[tuple[Hashable, Label], list[str]] = {}
        for passage in passages:
            document = _document(passage)
            for label in _labels(passage):
                called.setdefault((document, label), []).append(passage.id)

        def links(passage: Passage, /) -> list[str]:
            document = _document(passage)
            found = (called.get((document, label), ()) for label in references(passage.text))
            return [id_ for id_ in dict.fromkeys(id_ for ids in found for id_ in ids) if id_ != passage.id]

        return links


def _document(passage: Passage) -> Hashable:
    return next((str(passage.metadata[key]) for key in _DOCUMENT_KEYS if passage.metadata.get(key) is not None), None)


def _labels(passage: Passage) -> list[Label]:
    path = passage.metadata.get("section_path") or passage.metadata.get("drillrank_section_path") or passage.title
    heading = str(path).rpartition(" > ")[2] if isinstance(path, str) else str(path[-1])
    captions = [label for line in passage.text.splitlines() if (label := caption_label(line))]
    return list(dict.fromkeys([*(heading_labels(heading) if heading else ()), *captions]))
