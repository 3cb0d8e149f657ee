"""Depth of calls: number of different functions and files of this project that one repeated call goes through.

    python tools/depth.py
    python tools/depth.py --names   # lists the functions, too

Functions on all threads count. Comprehensions and functions of libraries do not.
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
PACKAGES = tuple(str(ROOT / folder) for folder in ("shared/drillrank", "llama_index_ext", "langchain_ext"))
NOT_COUNTED = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<module>")
QUESTION = "In which residential district was Alan Turing born?"
TEXTS = {
    "Alan Turing": "Alan Turing was a mathematician. He was born in Maida Vale.",
    "Maida Vale": "Maida Vale is a residential district of London.",
    "Ada Lovelace": "Ada Lovelace wrote the first program.",
    "Basel": "Basel lies on the Rhine, a river.",
    "Emma": "Emma is a novel that Jane Austen wrote.",
}
MANUAL = "\n\n".join(f"# {title}\n\n{text}\n\nMore on {title} follows." for title, text in TEXTS.items())


def trace_call(call: Callable[[], object]) -> tuple[set[CodeType], set[str]]:
    """Return the functions and files that a call goes through when it is repeated."""
    call()
    functions: set[CodeType] = set()

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGES) and code.co_name not in NOT_COUNTED:
            functions.add(code)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]  # None ends it
    return functions, {code.co_filename for code in functions}


def list_core_calls(folder: Path) -> dict[str, Callable[[], object]]:
    """Return the measured calls of the core and the command line, by name."""
    from drillrank import D3, UPR, Passage, PathSearch, PromptRank
    from drillrank.cli import main
    from drillrank.multihop.mentions import TitleMentions

    passages = [Passage(text, id=title, title=title) for title, text in TEXTS.items()]
    upr, search = UPR(), PathSearch(PromptRank(), passages, links=TitleMentions())
    d3 = D3()
    prepared = d3.prepare([MANUAL])
    (folder / "manual.md").write_text(MANUAL)

    def ask() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            main(["ask", str(folder), QUESTION])

    return {
        "UPR.rank": lambda: upr.rank(QUESTION, passages),
        "UPR.rank with scores": lambda: upr.rank(QUESTION, passages, scores=[1.0] * len(passages)),
        "PathSearch.search": lambda: search.search(QUESTION),
        "D3.retrieve": lambda: d3.retrieve(QUESTION, prepared),
        "drillrank ask": ask,
    }


def list_llama_index_calls() -> dict[str, Callable[[], object]]:
    """Return the measured calls of the LlamaIndex components, by name."""
    from llama_index.core import Document, MockEmbedding, VectorStoreIndex
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

    import llama_index_ext

    hits = [NodeWithScore(node=TextNode(text=text), score=1.0) for text in TEXTS.values()]
    reranker, embedding = llama_index_ext.UPRRerank(top_n=3), MockEmbedding(embed_dim=8)
    parser = llama_index_ext.MultiViewNodeParser()
    sections = VectorStoreIndex.from_documents([Document(text=MANUAL)], embed_model=embedding, transformations=[parser])
    nodes = [TextNode(text=text, id_=title, metadata={"title": title}) for title, text in TEXTS.items()]
    passages = VectorStoreIndex(nodes, embed_model=embedding)
    d3_over_documents = llama_index_ext.D3Retriever([Document(text=MANUAL)])
    d3_over_store = llama_index_ext.D3Retriever(source=sections)
    paths = llama_index_ext.PromptRankRetriever(source=passages)
    return {
        "UPRRerank, LlamaIndex": lambda: reranker.postprocess_nodes(hits, QueryBundle(QUESTION)),
        "D3Retriever, LlamaIndex": lambda: d3_over_documents.retrieve(QUESTION),
        "D3Retriever over a store, LlamaIndex": lambda: d3_over_store.retrieve(QUESTION),
        "PromptRankRetriever, LlamaIndex": lambda: paths.retrieve(QUESTION),
    }


def list_langchain_calls() -> dict[str, Callable[[], object]]:
    """Return the measured calls of the LangChain components, by name."""
    from langchain_core.documents import Document
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.vectorstores import InMemoryVectorStore

    import langchain_ext

    documents = [Document(text, id=title, metadata={"title": title}) for title, text in TEXTS.items()]
    reranker, embedding = langchain_ext.UPRRerank(top_n=3), DeterministicFakeEmbedding(size=8)
    sections = InMemoryVectorStore(embedding)
    sections.add_documents(langchain_ext.MultiViewTextSplitter().split_documents([Document(MANUAL)]))
    passages = InMemoryVectorStore(embedding)
    passages.add_documents(documents)
    d3_over_documents = langchain_ext.D3Retriever(documents=[Document(MANUAL)])
    d3_over_store = langchain_ext.D3Retriever(source=sections)
    paths = langchain_ext.PromptRankRetriever(source=passages)
    return {
        "UPRRerank, LangChain": lambda: reranker.compress_documents(documents, QUESTION),
        "D3Retriever, LangChain": lambda: d3_over_documents.invoke(QUESTION),
        "D3Retriever over a store, LangChain": lambda: d3_over_store.invoke(QUESTION),
        "PromptRankRetriever, LangChain": lambda: paths.invoke(QUESTION),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(f"{'one repeated call goes through':38}{'functions':>10}{'files':>7}")
    with tempfile.TemporaryDirectory() as folder:
        calls = list_core_calls(Path(folder)) | list_llama_index_calls() | list_langchain_calls()
        for name, call in calls.items():
            functions, files = trace_call(call)
            print(f"{name:38}{len(functions):10}{len(files):7}")
            if "--names" in sys.argv:
                for code in sorted(functions, key=lambda code: (code.co_filename, code.co_firstlineno)):
                    print(f"    {Path(code.co_filename).relative_to(ROOT)}:{code.co_firstlineno} {code.co_name}")
