"""Plain text: no sections, paragraphs between blank lines."""

from __future__ import annotations

from drillrank.structure.document import Block
from drillrank.structure.lines import paragraphs
from drillrank.structure.scan import Scan


def scan_plain(text: str) -> Scan:
    """Find the paragraphs of a plain text."""
    return Scan([Block("paragraph", start, end) for start, end in paragraphs(text)])
