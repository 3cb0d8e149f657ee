"""Parse a document into a section tree with exact spans."""

from drillrank.structure.document import Block, Document, Section, breadcrumb
from drillrank.structure.parse import parse_document
from drillrank.structure.sentences import sentences

__all__ = ["Block", "Document", "Section", "breadcrumb", "parse_document", "sentences"]
