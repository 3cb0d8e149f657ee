"""Parse a document into a section tree with exact spans."""

from drillrank.structure.document import Block, Document, Section

__all__ = ["Block", "Document", "Section"]
