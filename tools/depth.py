"""How deep a call is: the distinct functions, and files, of this project that one warm call passes.

    python tools/depth.py

Comprehensions, lambdas' callers in libraries and the standard library do not count; functions on other threads do.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

ROOT = Path(__file__).resolve().parents[1]
OURS = tuple(str(ROOT / folder) for folder in ("shared/drillrank", "llama_index_ext", "langchain_ext"))
NO_FUNCTIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<module>")
QUESTION = "In which residential district was Alan Turing born?"
TEXTS = {
    "Alan Turing": "Alan Turing was a mathematician. He was born in Maida Vale.",
    "Maida Vale": "Maida Vale is a residential district of London.",
    "Ada Lovelace": "Ada Lovelace wrote the first program.",
    "Basel": "Basel lies on the Rhine, a river.",
    "Emma": "Emma is a novel that Jane Austen wrote.",
}
MANUAL = "\n\n".join(f"# {title}\n\n{text}\n\nMore on {title} follows." for title, text in TEXTS.items())


def passed(call: Callable[[], object]) -> tuple[set[CodeType], set[str]]:
    """The functions and files that a call passes, once it is warm."""
    call()
    functions: set[CodeType] = set()

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(OURS) and code.co_name not in NO_FUNCTIONS:
            functions.add(code)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]  # None takes it away
    return functions, {code.co_filename for code in functions}


def calls(folder: Path) -> dict[str, Callable[[], object]]:
    """What is measured, by name."""
    from langchain_core.documents import Document as LangChainDocument
    from llama_index.core import Document
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

    import langchain_ext
    import llama_index_ext
    from drillrank import D3, UPR, Passage, PathSearch, PromptRank
    from drillrank.cli import main
    from drillrank.multihop.text_links import TitleMentions

    passages = [Passage(text, id=title, title=title) for title, text in TEXTS.items()]
    nodes = [NodeWithScore(node=TextNode(text=text), score=1.0) for text in TEXTS.values()]
    documents = [LangChainDocument(text) for text in TEXTS.values()]
    upr, search = UPR(), PathSearch(PromptRank(), passages, links=TitleMentions())
    in_llama_index, in_langchain = llama_index_ext.UPRRerank(top_n=3), langchain_ext.UPRRerank(top_n=3)
    d3 = D3()
    ready = d3.prepare([MANUAL])
    d3_llama_index = llama_index_ext.D3Retriever([Document(text=MANUAL)])
    d3_langchain = langchain_ext.D3Retriever(documents=[LangChainDocument(MANUAL)])
    (folder / "manual.md").write_text(MANUAL)

    def ask() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            main(["ask", str(folder), QUESTION])

    return {
        "UPR.rank": lambda: upr.rank(QUESTION, passages),
        "UPR.rank with scores": lambda: upr.rank(QUESTION, passages, scores=[1.0] * len(passages)),
        "UPRRerank, LlamaIndex": lambda: in_llama_index.postprocess_nodes(nodes, QueryBundle(QUESTION)),
        "UPRRerank, LangChain": lambda: in_langchain.compress_documents(documents, QUESTION),
        "PathSearch.search": lambda: search.search(QUESTION),
        "D3.retrieve": lambda: d3.retrieve(QUESTION, ready),
        "D3Retriever, LlamaIndex": lambda: d3_llama_index.retrieve(QUESTION),
        "D3Retriever, LangChain": lambda: d3_langchain.invoke(QUESTION),
        "drillrank ask": ask,
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(f"{'one warm call passes':28}{'functions':>10}{'files':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for name, call in calls(Path(folder)).items():
            functions, files = passed(call)
            print(f"{name:28}{len(functions):10}{len(files):7}")
            if "--names" in sys.argv:
                for code in sorted(functions, key=lambda code: (code.co_filename, code.co_firstlineno)):
                    print(f"    {Path(code.co_filename).relative_to(ROOT)}:{code.co_firstlineno} {code.co_name}")
