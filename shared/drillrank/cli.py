"""The command line: `drillrank demo`, `drillrank ask FILE... "question"` and `drillrank components`.

Exit status: 0 done, 1 the output was closed early, 2 the input cannot be used. Errors and warnings go to standard
error.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.table import Column, Table
from rich.tree import Tree

from drillrank.drilldown.d3 import D3
from drillrank.errors import DrillrankError, DrillrankWarning, InvalidInput, MissingExtra, require
from drillrank.likelihood import LanguageModel, load_language_model
from drillrank.passages import Passage, check_query, check_top_n
from drillrank.registry import component, components
from drillrank.rerank.upr import UPR
from drillrank.structure import Document, breadcrumb, parse_document, read_document
from drillrank.structure.files import FORMATS
from drillrank.structure.pages import page_range
from drillrank.views import MultiViewIndex, SectionChunk, section_chunks

DEMO_QUESTION = "Why must the logarithms of the two probabilities be added and not multiplied when passages are paired?"
_CANDIDATES = 10
_EXCERPT = 110

# C0 and C1 codes, by which a text could drive the terminal, signs that turn the direction of writing, lone surrogates.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Terminal(Console):
    """Shows control characters as �, whatever they come from; styles are put around the text later."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of a renderable."""
        for text, style, control in super().render(renderable, options):
            yield Segment(_CONTROL.sub("�", text), style, control)


console = Terminal(highlight=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    _make_writable()
    try:
        status = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def _make_writable() -> None:
    """A stream that is closed swallows what it gets, one without Unicode shows ? in place of what it lacks."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115  # open to the end
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _run(arguments: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(
        prog="drillrank",
        description="Find the right evidence without any training.",
        epilog="Exit status: 0 done, 1 the output was closed early, 2 the input cannot be used.",
    )
    parser.add_argument("--version", action="version", version=f"drillrank {version('drillrank')}")
    commands = parser.add_subparsers(required=True, metavar="{demo,ask,components}")
    demo = commands.add_parser("demo", help="find evidence in the handbook, alone and through both frameworks")
    demo.add_argument("question", nargs="?", type=_text, default=DEMO_QUESTION)
    demo.set_defaults(run=lambda given: run_demo(given.question))
    ask = commands.add_parser("ask", help=f"find evidence in files of {FORMATS}")
    ask.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help=f"{FORMATS}; texts in UTF-8, or in UTF-16 with its mark"
    )
    ask.add_argument("question", type=_text, help="what the evidence is for")
    ask.add_argument("--model", default="unigram", help='language model, "unigram" by default')
    ask.add_argument("--top-n", type=int, default=5, help="evidence paragraphs to show, 5 by default")
    ask.set_defaults(run=lambda given: run_ask(given.files, given.question, given.model, given.top_n))
    listed = commands.add_parser("components", help="list the components, or say what there is to set in one")
    listed.add_argument("name", nargs="?", help="a component, such as D3 or UPRRerank")
    listed.set_defaults(run=lambda given: run_components(given.name))
    given = parser.parse_args(arguments)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DrillrankWarning)
        try:
            given.run(given)
        except DrillrankError as error:
            _tell("red", error)
            return 2
        finally:
            for warning in caught:
                _tell("yellow", warning.message)
    return 0


def _text(argument: str) -> str:
    """An argument; as UTF-8 where the terminal's own encoding could not read it."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        return os.fsencode(argument).decode("utf-8", "replace")
    return argument


def _tell(color: str, problem: object) -> None:
    Terminal(stderr=True, highlight=False).print(
        f"[{color}]drillrank:[/{color}] {escape(' '.join(str(problem).split()))}", soft_wrap=True
    )


def run_ask(files: Sequence[Path], question: str, model: str, top_n: int) -> None:
    """Print the section tree, the sections found before and after reranking, and the evidence paragraphs."""
    check_query(question)
    check_top_n(top_n)
    documents = [read_document(file) for file in files]
    lm = load_language_model(model)
    UPR(lm).rank(question, [Passage(question)])  # loads a neural model, so that what is wrong with it is told first
    names = [str(file) for file in files]
    chunks = [
        chunk for name, document in zip(names, documents, strict=True) for chunk in section_chunks(document, name)
    ]
    _print_tree(names, documents)
    _print_reranking(question, chunks, MultiViewIndex(chunks), lm)
    _print_evidence(question, names, documents, lm, top_n)


def run_components(name: str | None) -> None:
    """Print a table of all components, or one of them with its settings."""
    if name is None:
        table = Table(Column("component", no_wrap=True), "job", Column("in the hosts", no_wrap=True), "needs")
        for one in components():
            in_hosts = dict.fromkeys([*one.llama_index, *one.langchain])
            table.add_row(one.name, one.job, "\n".join(in_hosts), "\n".join(one.needs))
        console.print(table)
        return
    one = component(name)
    console.print(f"[bold]{one.name}[/bold] ({one.home}): {one.does}")
    if one.paper is not None:
        console.print(f"{one.paper.authors}, {escape(one.paper.title)}, arXiv {one.paper.arxiv}")
    for host, names in {"llama_index_ext": one.llama_index, "langchain_ext": one.langchain}.items():
        console.print(f"{host}: {', '.join(names)}")
    lists = {"needs": one.needs, "takes": one.takes, "extras": one.extras}
    for said, items in lists.items():
        if items:
            console.print(f"{said}: {', '.join(items)}")
    table = Table("setting", "default", "description")
    for setting in one.settings():
        table.add_row(setting.name, escape(_excerpt(repr(setting.default), 40)), escape(setting.description))
    console.print(table)


def run_demo(question: str) -> None:
    """Find evidence in the handbook: with the core alone, then through LlamaIndex and LangChain."""
    started = time.perf_counter()
    check_query(question)
    text = _handbook()
    document = parse_document(text)
    chunks = section_chunks(document, "handbook")
    index, lm = MultiViewIndex(chunks), load_language_model("unigram")
    _print_tree(["handbook.md"], [document])
    _print_views(question, chunks, index)
    _print_reranking(question, chunks, index, lm)
    _print_evidence(question, ["handbook.md"], [document], lm, 3)
    console.rule("The same question through both frameworks")
    hosts = {"LlamaIndex": _through_llama_index, "LangChain": _through_langchain}
    for host, ask in hosts.items():
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


def _through_llama_index(text: str, question: str) -> list[tuple[str, float]]:
    components = require("llama_index_ext", "llama-index")
    schema = require("llama_index.core.schema", "llama-index")
    nodes = components.MultiViewNodeParser().get_nodes_from_documents([schema.Document(text=text, id_="handbook")])
    found = components.MultiViewRetriever(nodes, top_n=_CANDIDATES).retrieve(question)
    reranked = components.UPRRerank(top_n=3).postprocess_nodes(found, query_str=question)
    return [(node.node.metadata["drillrank_section_path"], node.score) for node in reranked]


def _through_langchain(text: str, question: str) -> list[tuple[str, float]]:
    components = require("langchain_ext", "langchain")
    documents: list[Any] = components.MultiViewTextSplitter().split_text(text)
    found = components.MultiViewRetriever(documents=documents, top_n=_CANDIDATES).invoke(question)
    reranked = components.UPRRerank(top_n=3).compress_documents(found, question)
    return [(item.metadata["drillrank_section_path"], item.metadata["relevance_score"]) for item in reranked]


def _handbook() -> str:
    """The handbook, beside this module in an installed package, in `docs` in a checkout."""
    here = Path(__file__).parent
    for place in (here / "handbook.md", here.parents[1] / "docs" / "handbook.md"):
        if place.is_file():
            return place.read_text(encoding="utf-8")
    raise InvalidInput("The handbook is missing from this installation: install drillrank again.")


def _print_tree(names: Sequence[str], documents: Sequence[Document]) -> None:
    console.rule("Sections")
    for name, document in zip(names, documents, strict=True):
        sections = document.sections()
        root = Tree(f"[bold]{escape(name)}[/bold]: {len(document.text):,} characters, {len(sections)} sections")
        branches: list[tuple[int, Tree]] = [(0, root)]
        for section in sections:
            depth = max(len(section.path), 1)
            while branches[-1][0] >= depth:
                branches.pop()
            pages = document.page_numbers(section.start, section.end)
            place = f"{page_range(pages)}, {section.start}–{section.end}" if pages else f"{section.start}–{section.end}"
            label = f"{escape(section.heading) or '(no heading)'} [dim]{place}[/dim]"
            branches.append((depth, branches[-1][1].add(label)))
        console.print(root)


def _print_views(question: str, chunks: Sequence[SectionChunk], index: MultiViewIndex) -> None:
    best = index.search(question, 1)[0].section_id
    table = Table("view", "indexed text", title="One section in three views")
    for chunk in chunks:
        if chunk.section_id == best:
            table.add_row(chunk.view, escape(_excerpt(chunk.text, 4 * _EXCERPT)))
    console.print(table)


def _print_reranking(question: str, chunks: Sequence[SectionChunk], index: MultiViewIndex, lm: LanguageModel) -> None:
    console.rule(f"Question: {escape(question)}")
    sections = {chunk.section_id: chunk for chunk in chunks if chunk.view == "raw"}
    hits = index.search(question, _CANDIDATES)
    passages = [
        Passage(sections[hit.section_id].text, id=hit.section_id, title=breadcrumb(sections[hit.section_id].path))
        for hit in hits
    ]
    table = Table("rank", "was", "score", "was", "views", "section", title="Sections, reranked by likelihood")
    ranking = UPR(lm).rank(question, passages)
    if any(item.details.get("nothing_matched") for item in ranking):
        console.print("Nothing matched: no section has a word of the question.")
    for item in ranking:
        hit = hits[item.details["position"]]
        table.add_row(
            str(item.rank),
            str(item.details["position"] + 1),
            f"{item.score:.3f}",
            f"{hit.score:.4f}",
            hit.matched_views.replace(" ", "\n"),
            escape(item.passage.title or _excerpt(item.passage.text)),
        )
    console.print(table)


def _print_evidence(
    question: str, names: Sequence[str], documents: Sequence[Document], lm: LanguageModel, top_n: int
) -> None:
    table = Table("score", "where", "evidence", title="Evidence paragraphs, by drilling down")
    for item in D3(model=lm).retrieve(question, documents, top_n):
        place = item.passage.metadata
        pages = f", {page_range(place['pages'])}" if "pages" in place else ""
        where = f"{names[place['document']]}{pages} {place['start']}–{place['end']}\n{item.passage.title}"
        table.add_row(f"{item.score:.3f}", escape(where), escape(_excerpt(item.passage.text, 5 * _EXCERPT)))
    console.print(table)


def _excerpt(text: str, length: int = _EXCERPT) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= length else f"{flat[: length - 1]}…"


if __name__ == "__main__":
    sys.exit(main())
