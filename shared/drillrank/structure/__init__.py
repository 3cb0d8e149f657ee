"""Parse a document into a section tree with exact spans."""

from drillrank.structure.document import Block, Document, Section, breadcrumb
from drillrank.structure.files import read_document
from drillrank.structure.links import Link, section_links
from drillrank.structure.pages import Pages
from drillrank.structure.parse import parse_document
from drillrank.structure.references import is_reference_section
from drillrank.structure.sentences import sentences

__all__ = [
    "Block",
    "Document",
    "Link",
    "Pages",
    "Section",
    "breadcrumb",
    "is_reference_section",
    "parse_document",
    "read_document",
    "section_links",
    "sentences",
]
