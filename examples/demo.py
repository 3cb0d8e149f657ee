"""A page of the documentation cut, indexed, searched, reranked and drilled into, by the core and by both frameworks.

    python examples/demo.py ["another question"]

The embedded model needs no torch and no download.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from drillrank import D3, UPR, Passage, parse_document
from drillrank.errors import MissingExtra, require
from drillrank.structure import Document
from drillrank.views import MultiViewIndex, SectionChunk, section_chunks

PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-it-works.md"
QUESTION = "Why must the logarithms of the two probabilities be added and not multiplied when passages are paired?"
CANDIDATES = 10


def main(question: str = QUESTION) -> None:
    """Find evidence in the page."""
    started = time.perf_counter()
    console = Console(highlight=False)
    text = PAGE.read_text(encoding="utf-8")
    document = parse_document(text)
    console.rule("Sections")
    for section in document.sections():
        console.print(f"{'  ' * section.level}{escape(section.heading)} [dim]{section.start}–{section.end}[/dim]")
    console.rule(f"Question: {escape(question)}")
    chunks = section_chunks(document, "how-it-works")
    index = MultiViewIndex(chunks)
    console.print(views_of_the_best_section(question, chunks, index))
    console.print(reranked_sections(question, chunks, index))
    console.print(evidence(question, document))
    console.rule("The same question through both frameworks")
    for host, ask in {"LlamaIndex": through_llama_index, "LangChain": through_langchain}.items():
        try:
            found = ask(text, question)
        except MissingExtra as missing:
            console.print(f"{host}: {escape(str(missing))}")
            continue
        table = Table("section", "score", title=f"{host}: three views, then UPRRerank")
        for path, score in found:
            table.add_row(escape(path), f"{score:.3f}")
        console.print(table)
    console.print(f"\nDone in {time.perf_counter() - started:.1f} s, with the embedded model: no torch, no download.")


def views_of_the_best_section(question: str, chunks: Sequence[SectionChunk], index: MultiViewIndex) -> Table:
    """List the indexed texts of the section, one row per view."""
    best = index.search(question, 1)[0].section_id
    table = Table("view", "indexed text", title="One section in three views")
    for chunk in chunks:
        if chunk.section_id == best:
            table.add_row(chunk.view, escape(chunk.text[:440]))
    return table


def reranked_sections(question: str, chunks: Sequence[SectionChunk], index: MultiViewIndex) -> Table:
    """The sections that the views find, by the likelihood of the question."""
    texts = {chunk.section_id: chunk for chunk in chunks if chunk.view == "raw"}
    hits = index.search(question, CANDIDATES)
    found = [texts[hit.section_id] for hit in hits]
    passages = [Passage(chunk.text, id=chunk.section_id, title=" > ".join(chunk.path)) for chunk in found]
    table = Table("rank", "was", "score", "views", "section", title="Sections, reranked by likelihood")
    for item in UPR().rank(question, passages):
        was = item.details["position"]
        views = hits[was].matched_views.replace(" ", "\n")
        table.add_row(str(item.rank), str(was + 1), f"{item.score:.3f}", views, escape(item.passage.title))
    return table


def evidence(question: str, document: Document) -> Table:
    """The paragraphs that D3 finds."""
    table = Table("score", "where", "evidence", title="Evidence paragraphs, by drilling down")
    for item in D3().retrieve(question, [document], 3):
        place = item.passage.metadata
        where = f"{place['start']}–{place['end']}\n{item.passage.title}"
        table.add_row(f"{item.score:.3f}", escape(where), escape(item.passage.text[:550]))
    return table


def through_llama_index(text: str, question: str) -> list[tuple[str, float]]:
    """Sections and scores of `UPRRerank` behind `MultiViewRetriever`."""
    components = require("llama_index_ext", "llama-index")
    schema = require("llama_index.core.schema", "llama-index")
    nodes = components.MultiViewNodeParser().get_nodes_from_documents([schema.Document(text=text, id_="how-it-works")])
    found = components.MultiViewRetriever(nodes, top_n=CANDIDATES).retrieve(question)
    reranked = components.UPRRerank(top_n=3).postprocess_nodes(found, query_str=question)
    return [(node.node.metadata["drillrank_section_path"], node.score) for node in reranked]


def through_langchain(text: str, question: str) -> list[tuple[str, float]]:
    """The same in LangChain."""
    components = require("langchain_ext", "langchain")
    documents = components.MultiViewTextSplitter().create_documents([text])
    found = components.MultiViewRetriever(documents=documents, top_n=CANDIDATES).invoke(question)
    reranked = components.UPRRerank(top_n=3).compress_documents(found, question)
    return [(item.metadata["drillrank_section_path"], item.metadata["relevance_score"]) for item in reranked]


if __name__ == "__main__":
    main(*sys.argv[1:])
