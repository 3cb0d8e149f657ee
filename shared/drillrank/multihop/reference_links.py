"""Links to the passages of a document that its text refers to, such as "see Section 8"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from drillrank.corpus.names import NameRow
from drillrank.multihop.links import NamedLinks, Names
from drillrank.passages import Passage, Path
from drillrank.structure.references import Label, caption_label, heading_labels, references

_DOCUMENT_KEYS = ("drillrank_source_id", "document", "file_path", "file_name", "source")


@dataclass(frozen=True)
class ReferenceLinks(NamedLinks):
    """Links a passage to the passages of its document that its text refers to, in the order of the references.

    The labels of a passage are those of its heading: the last heading of `section_path`, of `drillrank_section_path`
    or of the title. "8.2 Term" is Section 8.2, "Note 12. Leases" is Note 12, and the title in quotation marks refers to
    either. A caption at the beginning of a line, such as "Table 3: ...", is a label, too. A reference leads to all
    passages with its label.

    Passages are of one document if they share the first of these metadata that they have: `drillrank_source_id`,
    `document`, `file_path`, `file_name`, `source`. All passages without these are of one document.

    >>> term = Passage("Notice is given as Section 8 says.", id="3", title="Lease > 3 Term")
    >>> notice = Passage("In writing.", id="8", title="Lease > 8 Notices")
    >>> list(ReferenceLinks().bind([term, notice])(term))
    ['8']
    """

    kind: ClassVar[str] = "reference"

    def list_names(self, passage: Passage, /) -> Iterator[NameRow]:
        """Return the labels of a passage, each with its document."""
        document = _read_document(passage)
        for label in _list_labels(passage):
            yield repr((document, label)), 0.0

    def find_targets(self, names: Names, _query: str, path: Path, /) -> list[str]:
        """Return the ids of the passages that the last passage refers to, in the order of the references."""
        passage = path.passages[-1]
        document = _read_document(passage)
        weights_by_name = names.look_up([repr((document, label)) for label in references(passage.text)])
        ids = dict.fromkeys(id_ for weights in weights_by_name.values() for id_ in weights)
        return [id_ for id_ in ids if id_ != passage.id]


def _read_document(passage: Passage) -> str | None:
    return next((str(passage.metadata[key]) for key in _DOCUMENT_KEYS if passage.metadata.get(key) is not None), None)


def _list_labels(passage: Passage) -> list[Label]:
    path = passage.metadata.get("section_path") or passage.metadata.get("drillrank_section_path") or passage.title
    heading = str(path).rpartition(" > ")[2] if isinstance(path, str) else str(path[-1])
    captions = [label for line in passage.text.splitlines() if (label := caption_label(line))]
    return list(dict.fromkeys([*(heading_labels(heading) if heading else ()), *captions]))
