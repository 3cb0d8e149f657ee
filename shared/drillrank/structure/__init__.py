"""Parse documents into sections and passages with exact spans.

A file takes this way through the modules:

1. `read.py` finds its format in the registry (`formats.py`; ours are listed in `builtin_formats.py`).
2. Files that are not text are converted to Markdown by the format's converter (`pdf.py`, `docx.py`, `spreadsheet.py`,
   ...), in a worker process with limits (`isolation.py`, `worker.py`). Text files are decoded (`encodings.py`).
3. The format's scanner (`markdown.py`, `html.py`, `latex.py`, `plain.py`, ...) finds blocks and headings.
4. `scan.py` sorts the blocks into sections: the `Document` (`document.py`).
5. `passages.py` groups blocks into passages, the unit of evidence. `cutting.py` cuts at lines, sentences and words.

Terms: a *block* is a paragraph, list, table or piece of code. A *section* is a heading with the blocks up to the next
heading. A `DocumentPassage` is a run of blocks up to a size. A `drillrank.Passage` is any text with an id to rank.
`imported.py` reads what other tools have parsed, such as Docling.

Chunks that a store returns (`stored_chunks.py`, `record_store.py`) are put together to documents again by
`reassembly.py`. Text that continues is a *run* (`stored_runs.py`).
"""

from drillrank.structure.cutting import sentences
from drillrank.structure.document import Block, Document, Section, breadcrumb
from drillrank.structure.formats import ConvertedText, Format, register_format, registered_formats
from drillrank.structure.pages import Pages
from drillrank.structure.passages import DocumentPassage, cut_passages
from drillrank.structure.read import PARSER_VERSION, file_key, parse_document, read_document
from drillrank.structure.scan import Heading, Scan

__all__ = [
    "PARSER_VERSION",
    "Block",
    "ConvertedText",
    "Document",
    "DocumentPassage",
    "Format",
    "Heading",
    "Pages",
    "Scan",
    "Section",
    "breadcrumb",
    "cut_passages",
    "file_key",
    "parse_document",
    "read_document",
    "register_format",
    "registered_formats",
    "sentences",
]
