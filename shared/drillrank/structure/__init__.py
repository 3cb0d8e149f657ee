"""Parse a document into a section tree with exact spans."""

from drillrank.structure.document import Block, Document, Section, breadcrumb
from drillrank.structure.pages import Pages
from drillrank.structure.read import PARSER_VERSION, file_key, parse_document, read_document
from drillrank.structure.references import Link, is_reference_section, section_links
from drillrank.structure.sentences import sentences

__all__ = [
    "PARSER_VERSION",
    "Block",
    "Document",
    "Link",
    "Pages",
    "Section",
    "breadcrumb",
    "file_key",
    "is_reference_section",
    "parse_document",
    "read_document",
    "section_links",
    "sentences",
]
