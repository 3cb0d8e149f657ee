"""PDF: text with its places and fonts becomes Markdown with headings, tables and pages."""

from drillrank.structure.pdf.isolated import read_pdf

__all__ = ["read_pdf"]
