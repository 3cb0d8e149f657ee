"""What the bare install must do, run by `test_packaging.py` with the names that it may import as arguments.

Everything else is refused, as if it were not installed.
"""

from __future__ import annotations

import importlib.abc
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-it-works.md"
QUESTION = "How is a passage smoothed?"
SAMPLES = {"html": "<h1>Foxes</h1><p>They hunt.", "latex": "\\section{Foxes} They hunt.", "text": "Foxes hunt."}


class Refused(importlib.abc.MetaPathFinder):
    def __init__(self, allowed):
        self.allowed = {*allowed, *sys.stdlib_module_names, "drillrank", "llama_index_ext", "langchain_ext"}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in self.allowed:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def work():
    import drillrank
    from drillrank import D3, UPR, Passage, PathSearch, PromptRank, load_language_model, parse_document
    from drillrank.cli import main
    from drillrank.errors import MissingExtra
    from drillrank.generation import cluster_prompts
    from drillrank.views import MultiViewIndex, section_chunks

    assert all(getattr(drillrank, name) for name in drillrank.__all__)
    chunks = section_chunks(parse_document(PAGE.read_text(encoding="utf-8")), "how-it-works")
    for retriever in ("bm25", "tfidf"):
        assert MultiViewIndex(chunks, retriever).search(QUESTION)
    for format_, sample in SAMPLES.items():
        assert D3().retrieve("Where are foxes?", [parse_document(sample, format_)]), format_
    passages = [Passage(chunk.text, id=str(number)) for number, chunk in enumerate(chunks) if chunk.view == "raw"]
    model = load_language_model("unigram").fit([passage.text for passage in passages])
    assert UPR(model).rank(QUESTION, passages)
    assert PathSearch(PromptRank(model), passages).search(QUESTION, 3)
    assert main(["ask", str(PAGE), QUESTION]) == 0
    assert main(["components"]) == main(["doctor"]) == 0
    try:
        cluster_prompts([("Who wrote Emma?", "Jane Austen did.")])
    except MissingExtra as missing:
        print(missing)
    else:
        raise AssertionError("cluster_prompts worked without scikit-learn")


if __name__ == "__main__":  # pytest looks for doctests here, too
    sys.meta_path.insert(0, Refused(sys.argv[1:]))
    work()
