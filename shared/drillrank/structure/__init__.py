"""Parse a document into a section tree with exact spans."""

from drillrank.structure.cutting import sentences
from drillrank.structure.document import Block, Document, Section, breadcrumb
from drillrank.structure.formats import ConvertedText, Format, register_format, registered_formats
from drillrank.structure.pages import Pages
from drillrank.structure.read import PARSER_VERSION, file_key, parse_document, read_document
from drillrank.structure.scan import Heading, Scan

__all__ = [
    "PARSER_VERSION",
    "Block",
    "ConvertedText",
    "Document",
    "Format",
    "Heading",
    "Pages",
    "Scan",
    "Section",
    "breadcrumb",
    "file_key",
    "parse_document",
    "read_document",
    "register_format",
    "registered_formats",
    "sentences",
]
