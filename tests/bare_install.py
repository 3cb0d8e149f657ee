"""What the bare install must do, run by `test_packaging.py` with the names that it may import as arguments.

Everything else is refused, as if it were not installed.
"""

from __future__ import annotations

import importlib.abc
import sys
from pathlib import Path

ALLOWED = {*sys.argv[1:], *sys.stdlib_module_names, "drillrank", "llama_index_ext", "langchain_ext"}


class Refused(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in ALLOWED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Refused())

import drillrank  # noqa: E402
from drillrank import D3, UPR, Passage, PathSearch, PromptRank, load_language_model, parse_document  # noqa: E402
from drillrank.cli import main  # noqa: E402
from drillrank.errors import MissingExtra  # noqa: E402
from drillrank.generation import cluster_prompts  # noqa: E402
from drillrank.views import MultiViewIndex, section_chunks  # noqa: E402

HANDBOOK = Path(__file__).resolve().parents[1] / "docs" / "handbook.md"
QUESTION = "How is a passage smoothed?"
SAMPLES = {"html": "<h1>Foxes</h1><p>They hunt.", "latex": "\\section{Foxes} They hunt.", "text": "Foxes hunt."}

assert all(getattr(drillrank, name) for name in drillrank.__all__)
chunks = section_chunks(parse_document(HANDBOOK.read_text(encoding="utf-8")), "handbook")
for retriever in ("bm25", "tfidf"):
    assert MultiViewIndex(chunks, retriever).search(QUESTION)
for format_, sample in SAMPLES.items():
    assert D3().retrieve("Where are foxes?", [parse_document(sample, format_)]), format_
passages = [Passage(chunk.text, id=str(number)) for number, chunk in enumerate(chunks) if chunk.view == "raw"]
model = load_language_model("unigram").fit([passage.text for passage in passages])
assert UPR(model).rank(QUESTION, passages)
assert PathSearch(PromptRank(model), passages).search(QUESTION, 3)
assert main(["ask", str(HANDBOOK), QUESTION]) == 0
assert main(["demo"]) == 0
try:
    cluster_prompts([("Who wrote Emma?", "Jane Austen did.")])
except MissingExtra as missing:
    print(missing)
else:
    raise AssertionError("cluster_prompts worked without scikit-learn")
