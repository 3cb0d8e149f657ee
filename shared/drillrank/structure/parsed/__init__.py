"""Documents that other tools have parsed, with the structure that they found.

Nothing here imports those tools: their objects, dictionaries and JSON are read by what they hold.
"""

from drillrank.structure.parsed.docling import document_from_docling
from drillrank.structure.parsed.llamaparse import document_from_llamaparse
from drillrank.structure.parsed.pageindex import PageIndexTree, document_from_pageindex
from drillrank.structure.parsed.unstructured import document_from_unstructured

__all__ = [
    "PageIndexTree",
    "document_from_docling",
    "document_from_llamaparse",
    "document_from_pageindex",
    "document_from_unstructured",
]
