"""Plain text: no sections, paragraphs between blank lines."""

from __future__ import annotations

from drillrank.structure.document import Block
from drillrank.structure.lines import paragraphs
from drillrank.structure.outline import Outline


def scan_plain(text: str) -> Outline:
    """Find the paragraphs of a plain text."""
    return Outline([Block("paragraph", start, end) for start, end in paragraphs(text)])
