"""Runs the Python of README files. Each one ranks two texts as `best`, of which the one on the warranty must be first.

python tools/readme_examples.py README...
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

for file in sys.argv[1:]:
    blocks = re.findall(r"^```python\n(.*?)^```", Path(file).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec("\n".join(blocks), names)
    assert blocks, file
    assert "two years" in repr(names["best"][0]), (file, names["best"])
    assert len(names["best"]) == 1
    print(f"{file}: {len(blocks)} example")
