"""Follows the two-minute starts and the pages "coming from ..." of docs/ literally, with what is installed.

cd /tmp && python .../tools/starts.py
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
BLOCK = re.compile(r"^```(python|diff)\n(.*?)^```", re.DOTALL | re.MULTILINE)

if __name__ == "__main__":
    import drillrank

    assert DOCS.parent not in Path(drillrank.__file__).parents, "this is the checkout, not what is installed"
    for page in (*sorted(DOCS.glob("start-*.md")), DOCS / "coming-from.md"):
        started = time.perf_counter()
        blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
        for number, (kind, code) in enumerate(blocks):
            new = re.sub(r"^(?:-.*\n|[+ ]|$)", "", code, flags=re.MULTILINE) if kind == "diff" else code
            exec(compile(new, f"{page.name}, block {number}", "exec"), {"__name__": "start"})
        print(f"{page.stem}: {len(blocks)} blocks in {time.perf_counter() - started:.1f} s", file=sys.stderr)
