"""Parse a document into a section tree with exact spans."""

from drillrank.structure.document import Block, Document, Section, breadcrumb
from drillrank.structure.files import file_key, read_document
from drillrank.structure.links import Link, section_links
from drillrank.structure.pages import Pages
from drillrank.structure.parse import PARSER_VERSION, parse_document
from drillrank.structure.references import is_reference_section
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
