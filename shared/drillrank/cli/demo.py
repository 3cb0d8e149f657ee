"""`drillrank demo`: the handbook cut, indexed, searched and reranked, alone and through both frameworks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from drillrank.cli import terminal
from drillrank.cli.outline import print_tree
from drillrank.cli.terminal import EXCERPT, excerpt
from drillrank.drilldown.d3 import D3
from drillrank.errors import InvalidInput, MissingExtra, require
from drillrank.likelihood import LanguageModel, load_language_model
from drillrank.passages import Passage, check_query
from drillrank.rerank.upr import UPR
from drillrank.structure import Document, breadcrumb, parse_document
from drillrank.views import MultiViewIndex, SectionChunk, section_chunks

DEMO_QUESTION = "Why must the logarithms of the two probabilities be added and not multiplied when passages are paired?"
_CANDIDATES = 10


def run_demo(question: str) -> None:
    """Find evidence in the handbook: with the core alone, then through LlamaIndex and LangChain."""
    started = time.perf_counter()
    check_query(question)
    text = _handbook()
    document = parse_document(text)
    chunks = section_chunks(document, "handbook")
    index, lm = MultiViewIndex(chunks), load_language_model("unigram")
    terminal.console.rule("Sections")
    print_tree(["handbook.md"], [document])
    _print_views(question, chunks, index)
    _print_reranking(question, chunks, index, lm)
    _print_evidence(question, document, lm)
    terminal.console.rule("The same question through both frameworks")
    hosts = {"LlamaIndex": _through_llama_index, "LangChain": _through_langchain}
    for host, ask in hosts.items():
        try:
            found = ask(text, question)
        except MissingExtra as missing:
            terminal.console.print(f"{host}: {escape(str(missing))}")
            continue
        table = Table("section", "score", title=f"{host}: three views, then UPRRerank")
        for path, score in found:
            table.add_row(escape(path), f"{score:.3f}")
        terminal.console.print(table)
    terminal.console.print(
        f"\nDone in {time.perf_counter() - started:.1f} s, with the embedded model: no torch, no download."
    )


def _through_llama_index(text: str, question: str) -> list[tuple[str, float]]:
    components = require("llama_index_ext", "llama-index")
    schema = require("llama_index.core.schema", "llama-index")
    nodes = components.MultiViewNodeParser().get_nodes_from_documents([schema.Document(text=text, id_="handbook")])
    found = components.MultiViewRetriever(nodes, top_n=_CANDIDATES).retrieve(question)
    reranked = components.UPRRerank(top_n=3).postprocess_nodes(found, query_str=question)
    return [(node.node.metadata["drillrank_section_path"], node.score) for node in reranked]


def _through_langchain(text: str, question: str) -> list[tuple[str, float]]:
    components = require("langchain_ext", "langchain")
    documents: list[Any] = components.MultiViewTextSplitter().create_documents([text])
    found = components.MultiViewRetriever(documents=documents, top_n=_CANDIDATES).invoke(question)
    reranked = components.UPRRerank(top_n=3).compress_documents(found, question)
    return [(item.metadata["drillrank_section_path"], item.metadata["relevance_score"]) for item in reranked]


def _handbook() -> str:
    """The handbook, beside this module in an installed package, in `docs` in a checkout."""
    here = Path(__file__).parents[1]
    for place in (here / "handbook.md", here.parents[1] / "docs" / "handbook.md"):
        if place.is_file():
            return place.read_text(encoding="utf-8")
    raise InvalidInput("The handbook is missing from this installation: install drillrank again.")


def _print_views(question: str, chunks: Sequence[SectionChunk], index: MultiViewIndex) -> None:
    best = index.search(question, 1)[0].section_id
    table = Table("view", "indexed text", title="One section in three views")
    for chunk in chunks:
        if chunk.section_id == best:
            table.add_row(chunk.view, escape(excerpt(chunk.text, 4 * EXCERPT)))
    terminal.console.print(table)


def _print_reranking(question: str, chunks: Sequence[SectionChunk], index: MultiViewIndex, lm: LanguageModel) -> None:
    terminal.console.rule(f"Question: {escape(question)}")
    sections = {chunk.section_id: chunk for chunk in chunks if chunk.view == "raw"}
    hits = index.search(question, _CANDIDATES)
    passages = [
        Passage(sections[hit.section_id].text, id=hit.section_id, title=breadcrumb(sections[hit.section_id].path))
        for hit in hits
    ]
    table = Table("rank", "was", "score", "was", "views", "section", title="Sections, reranked by likelihood")
    ranking = UPR(lm).rank(question, passages)
    if any(item.details.get("nothing_matched") for item in ranking):
        terminal.console.print("Nothing matched: no section has a word of the question.")
    for item in ranking:
        hit = hits[item.details["position"]]
        table.add_row(
            str(item.rank),
            str(item.details["position"] + 1),
            f"{item.score:.3f}",
            f"{hit.score:.4f}",
            hit.matched_views.replace(" ", "\n"),
            escape(item.passage.title or excerpt(item.passage.text)),
        )
    terminal.console.print(table)


def _print_evidence(question: str, document: Document, lm: LanguageModel) -> None:
    table = Table("score", "where", "evidence", title="Evidence paragraphs, by drilling down")
    for item in D3(model=lm).retrieve(question, [document], 3):
        place = item.passage.metadata
        where = f"{place['start']}–{place['end']}\n{item.passage.title}"
        table.add_row(f"{item.score:.3f}", escape(where), escape(excerpt(item.passage.text, 5 * EXCERPT)))
    terminal.console.print(table)
