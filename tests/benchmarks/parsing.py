"""Parsing: megabytes and sections a second beside the hosts' own splitters, and the time of hostile texts.

One process, the variants in turn. LlamaIndex's MarkdownNodeParser and LangChain's MarkdownHeaderTextSplitter make one
piece per heading, as our raw view does.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from html import escape

from langchain_core.documents import Document as LangChainDocument
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core.node_parser import MarkdownNodeParser
from rich.console import Console
from rich.table import Table

from drillrank import parse_document
from langchain_ext import MultiViewTextSplitter
from llama_index_ext import MultiViewNodeParser
from tests.drillrank.test_structure_linear import HOSTILE

from .data import read
from .measure import medians

PAPERS = 100
SIZE = 500_000  # characters of each generated text
SHORT, LONG = 80_000, 640_000  # characters of the hostile texts
TEXT = "the of foxes whales hunt sing model evidence section paper result (see `code` *very* 42 [link](u)"
WORDS = TEXT.split()

Sections = Sequence[tuple[int, str, Sequence[str]]]
"""Level, heading and paragraphs."""


def papers() -> list[Sections]:
    return [
        [(len(section["path"]), section["path"][-1], section["paragraphs"]) for section in paper["sections"]]
        for paper in read("longdoc/qasper")[:PAPERS]
    ]


def as_html(sections: Sections) -> str:
    body = "".join(
        f"<h{level}>{escape(heading)}</h{level}>\n"
        + "".join(f"<p>{escape(paragraph)}</p>\n" for paragraph in paragraphs)
        for level, heading, paragraphs in sections
    )
    return f"<!doctype html>\n<html><head><title>Paper</title></head>\n<body>\n{body}</body></html>\n"


def as_latex(sections: Sections) -> str:
    ranks = ("section", "subsection", "subsubsection", "paragraph", "subparagraph")
    body = "".join(
        f"\\{ranks[min(level, 5) - 1]}{{{latex_escape(heading)}}}\n\n"
        + "".join(f"{latex_escape(paragraph)}\n\n" for paragraph in paragraphs)
        for level, heading, paragraphs in sections
    )
    return f"\\documentclass{{article}}\n\\begin{{document}}\n{body}\\end{{document}}\n"


def latex_escape(text: str) -> str:
    return "".join(f"\\{character}" if character in "%&$#_{}" else character for character in text)


def generated(make_line: Callable[[random.Random, int], str], lines: int = 30) -> list[str]:
    """Texts of sections with `lines` lines each."""
    chance = random.Random(0)
    texts = []
    for _ in range(10):
        text = ""
        while len(text) < SIZE // 10:
            heading = " ".join(chance.choices(WORDS[:12], k=3))
            text += f"## {heading}\n\n" + "".join(make_line(chance, line) for line in range(lines)) + "\n"
        texts.append(text)
    return texts


def words(chance: random.Random, most: int) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randint(3, most)))


SHAPES: dict[str, Callable[[], list[str]]] = {
    "nested lists": lambda: generated(
        lambda chance, _: "  " * chance.choice((0, 0, 1, 2)) + f"- {words(chance, 12)}\n"
    ),
    "numbered steps, code": lambda: generated(
        lambda chance, i: f"{i + 1}. {words(chance, 12)}\n\n   ```sh\n   run {i}\n   ```\n\n"
    ),
    "wrapped prose": lambda: generated(lambda chance, _: f"{words(chance, 16)}\n"),
    "tables": lambda: generated(
        lambda chance, i: "|-|-|\n" if i == 1 else f"| {words(chance, 6)} | {words(chance, 6)} |\n"
    ),
    "fenced code": lambda: generated(lambda chance, i: "```\n" if i in (0, 29) else f"    {words(chance, 9)}\n"),
    "quotes": lambda: generated(lambda chance, _: f"> {words(chance, 12)}\n"),
    "short sections": lambda: generated(lambda chance, _: f"{words(chance, 12)}\n", lines=1),
}


def main() -> None:
    parsed = papers()
    markdown = [paper["markdown"] for paper in read("longdoc/qasper")[:PAPERS]]
    console = Console()
    table = Table("Markdown", "variant", "MB/s", "sections/s", "MB/s of ours / theirs", title="Raw view of Markdown")
    for name, texts in {"QASPER papers": markdown, **{name: make() for name, make in SHAPES.items()}}.items():
        side_by_side(table, name, texts)
    console.print(table)

    table = Table("format", "MB/s", "sections/s", title=f"parse_document, {PAPERS} QASPER papers in each format")
    for format, texts in {
        "markdown": markdown,
        "html": [as_html(paper) for paper in parsed],
        "latex": [as_latex(paper) for paper in parsed],
        "text": ["\n\n".join(line for _, heading, lines in paper for line in (heading, *lines)) for paper in parsed],
    }.items():
        seconds = medians({format: lambda texts=texts, format=format: [parse_document(t, format) for t in texts]}, 5)
        sections = sum(len(parse_document(text, format).sections()) for text in texts)
        table.add_row(format, f"{megabytes(texts) / seconds[format]:.1f}", f"{sections / seconds[format]:,.0f}")
    console.print(table)

    table = Table(
        "format",
        "text",
        f"s, {SHORT:,}",
        f"s, {LONG:,}",
        "ratio",
        title=f"Hostile texts, {LONG // SHORT} times as long",
    )
    for format, cases in HOSTILE.items():
        for name, make in cases.items():
            short, long = (seconds_to_parse(make(size), format) for size in (SHORT, LONG))
            table.add_row(format, name, f"{short:.3f}", f"{long:.3f}", f"{long / short:.1f}")
    console.print(table)


def side_by_side(table: Table, name: str, texts: Sequence[str]) -> None:
    llama_index = [LlamaIndexDocument(text=text, id_=str(i)) for i, text in enumerate(texts)]
    langchain = [LangChainDocument(text, id=str(i)) for i, text in enumerate(texts)]
    node_parser, splitter, theirs = (
        MultiViewNodeParser(views=["raw"]),
        MultiViewTextSplitter(["raw"]),
        MarkdownNodeParser(),
    )
    variants: dict[str, Callable[[], object]] = {
        "parse_document": lambda: [parse_document(text) for text in texts],
        "MultiViewNodeParser": lambda: node_parser.get_nodes_from_documents(llama_index),
        "MarkdownNodeParser": lambda: theirs.get_nodes_from_documents(llama_index),
        "MultiViewTextSplitter": lambda: splitter.split_documents(langchain),
    }
    rivals = {"MultiViewNodeParser": "MarkdownNodeParser"}
    header_splitter = langchain_header_splitter()
    if header_splitter:
        variants["MarkdownHeaderTextSplitter"] = lambda: [header_splitter(text) for text in texts]
        rivals["MultiViewTextSplitter"] = "MarkdownHeaderTextSplitter"
    seconds = medians(variants, 7)
    sections = sum(len(parse_document(text).sections()) for text in texts)
    for variant, taken in seconds.items():
        ratio = f"{seconds[rivals[variant]] / taken:.2f}" if variant in rivals else ""
        table.add_row(name, variant, f"{megabytes(texts) / taken:.1f}", f"{sections / taken:,.0f}", ratio)
        name = ""
    table.add_section()


def langchain_header_splitter() -> Callable[[str], object] | None:
    """LangChain's splitter, if it is installed."""
    try:
        from langchain_text_splitters import MarkdownHeaderTextSplitter
    except ImportError:
        return None
    return MarkdownHeaderTextSplitter([("#" * level, f"h{level}") for level in range(1, 7)]).split_text


def megabytes(texts: Sequence[str]) -> float:
    return sum(len(text.encode()) for text in texts) / 1e6


def seconds_to_parse(text: str, format: str) -> float:
    started = time.process_time()
    parse_document(text, format)
    return time.process_time() - started
