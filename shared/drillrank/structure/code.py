"""Source code and configuration files: blocks of code, without headings.

A comment such as "# Usage" is not a heading. The code is divided at blank lines before definitions at the outermost
level, so that a function or class is not cut if it fits into a passage.
"""

from __future__ import annotations

from itertools import pairwise

from drillrank.structure.cutting import line_starts, trimmed_end
from drillrank.structure.document import Block
from drillrank.structure.scan import Scan

_MIN_BLOCK = 200  # characters; shorter parts stay with the next one


def scan_code(text: str) -> Scan:
    r"""Divide source code into blocks that begin with lines at the outermost level, after blank lines.

    >>> code = f"import os\n\n\ndef a():\n    {'x' * 200}\n\n    return\n\n\n# Usage\ndef b():\n    pass\n"
    >>> [code[block.start : block.end][:7] for block in scan_code(code).blocks]
    ['import ', '# Usage']
    """
    starts = line_starts(text)
    first = len(text) - len(text.lstrip())
    begins = [text.rfind("\n", 0, first) + 1 if text else 0]
    is_after_blank_line = False
    for start, end in pairwise(starts):
        line = text[start:end]
        if not line.strip():
            is_after_blank_line = True
            continue
        can_begin = is_after_blank_line and not line[0].isspace() and line[0] not in ")]}"
        if can_begin and start - begins[-1] >= _MIN_BLOCK:
            begins.append(start)
        is_after_blank_line = False
    spans = [(start, trimmed_end(text, start, end)) for start, end in pairwise([*begins, len(text)])]
    return Scan([Block("code", start, end) for start, end in spans if start < end])
