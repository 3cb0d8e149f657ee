"""Pages in any cut, output of other tools in any shape, damaged archives: a right result, or an error of drillrank."""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document as LangChainDocument

from drillrank import parse_document, read_document
from drillrank.errors import InvalidInput
from drillrank.frameworks.pages import join_pages, with_pages_of_span
from drillrank.structure import Document, Pages
from drillrank.structure.imported import (
    document_from_docling,
    document_from_llamaparse,
    document_from_pageindex,
    document_from_unstructured,
)
from langchain_ext import D3Retriever
from tests.drillrank.structure.checks import check_spans
from tests.office_files import BOOK, packed, presentation, word
from tests.pdf_files import Mark, Text, lines, pdf_of

fuzz = settings(max_examples=int(os.environ.get("DRILLRANK_FUZZ", "30")), deadline=None)

# Pages

WORDS = "fox|Hen.|1 Owls\n|\n\n|\n| |# of|---\n|A|TERMS\n\n|ends|\r\n|\x0c"
texts = st.lists(st.sampled_from([*WORDS.split("|"), "x" * 60]), min_size=1, max_size=40).map(" ".join)


def cut(text: str, places: list[int]) -> list[str]:
    borders = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[a:b] for a, b in pairwise(borders)]


@fuzz
@given(texts, st.lists(st.integers(0, 400), max_size=6), st.sampled_from(["page", "page_number", "page_label"]))
def test_every_character_of_joined_pages_is_on_its_page(text, places, key):
    pages = cut(text, places)
    first = 0 if key == "page" else 1
    given_pages = [
        (page, {"source": "a.pdf", key: str(n) if key == "page_label" else n}) for n, page in enumerate(pages, first)
    ]
    [one] = join_pages(given_pages)
    assert one.pages is not None
    assert one.pages.numbers == tuple(range(1, len(pages) + 1))
    for number, (start, page) in enumerate(zip(one.pages.starts, pages, strict=True), 1):
        assert one.text[start : start + len(page)] == page
        for at in range(start, start + len(page)):
            assert one.pages.between(at, at + 1) == (number, number)
    between = [one.text[a + len(page) : b] for (a, b), page in zip(pairwise(one.pages.starts), pages, strict=False)]
    assert set(between) <= {"\n", "\n\n"}


@fuzz
@given(st.lists(st.integers(0, 30), min_size=1, max_size=6), st.lists(st.integers(0, 5), min_size=6, max_size=6))
def test_the_pages_of_a_part_are_those_of_the_whole(lengths, numbers):
    starts = [sum(lengths[:at]) for at in range(len(lengths))]
    counted = [sum(numbers[: at + 1]) for at in range(len(lengths))]
    pages = Pages(tuple(starts), tuple(counted), tuple(map(str, counted)))
    assert Pages.from_json(pages.as_json()) == pages
    for start in range(sum(lengths) + 1):
        for end in range(start, sum(lengths) + 2):
            on = [n for n, a, b in zip(counted, starts, [*starts[1:], 10**6], strict=True) if a < end and b > start]
            first, last = pages.between(start, end)
            if start < end:
                assert (first, last) == (on[0], on[-1])
            assert first <= last
            assert with_pages_of_span({}, pages, start, end)["drillrank_first_page"] == first


# What other tools parsed

NAMES = [
    *("text", "label", "level", "children", "$ref", "cref", "prov", "page_no", "marker", "content_layer", "data"),
    *("table_cells", "start_row_offset_idx", "start_col_offset_idx", "body", "texts", "tables", "type", "category"),
    *("element_id", "metadata", "parent_id", "category_depth", "page_number", "text_as_html", "pages", "page", "md"),
    *("markdown", "structure", "title", "nodes", "start_index", "end_index", "summary", "result", "page_index"),
]
STRINGS = ["", " ", "Sea", "1.1 Deep", "section_header", "title", "table", "list_item", "body", "page_header", "Title"]
STRINGS += ["#/texts/0", "#/texts/1", "#/body", f"#/texts/{'9' * 5000}", "#/texts/²", "NarrativeText", "Table", "a"]
STRINGS += ["<table><tr><td>1", "# Sea\n\nWide.", "\ud800", "\x00", "{", "x" * 200]
leaves = st.one_of(st.none(), st.booleans(), st.integers(-2, 5), st.just(10**30), st.floats(), st.sampled_from(STRINGS))
anything = st.recursive(
    leaves,
    lambda below: st.one_of(st.lists(below, max_size=4), st.dictionaries(st.sampled_from(NAMES), below, max_size=5)),
    max_leaves=25,
)


def item(names: list[str], below: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, below))


nodes = st.recursive(
    item(["title", "text", "start_index", "summary"], st.one_of(st.sampled_from(STRINGS), st.integers(0, 3))),
    lambda below: st.fixed_dictionaries(
        {"title": st.sampled_from(STRINGS), "nodes": st.lists(below, max_size=3)},
        optional={"text": leaves, "start_index": leaves, "summary": leaves},
    ),
    max_leaves=8,
)
docling = st.fixed_dictionaries(
    {
        "body": st.one_of(anything, st.just({"children": [{"$ref": "#/texts/0"}, {"$ref": "#/texts/1"}]})),
        "texts": st.lists(item(["text", "label", "level", "children", "prov", "marker", "content_layer"], anything)),
    }
)
SHAPES = {
    document_from_docling: docling,
    document_from_unstructured: st.lists(item(["type", "text", "element_id", "metadata"], anything), max_size=5),
    document_from_llamaparse: st.lists(item(["page", "md", "markdown", "page_number"], leaves), max_size=5),
    document_from_pageindex: st.lists(nodes, max_size=3),
}


@pytest.mark.parametrize("read", SHAPES, ids=lambda read: read.__name__)
def test_output_of_any_shape_is_a_document_or_an_error_of_ours(read):
    @fuzz
    @given(st.one_of(SHAPES[read], anything))
    def holds(output):
        try:
            found = read(output)
        except InvalidInput:
            return
        document = found if isinstance(found, Document) else found.document
        if document.text:
            check_spans(document)

    holds()


# Files


FILES: dict[str, Callable[[], bytes]] = {"docx": word, "pptx": presentation, "epub": lambda: packed(BOOK)}
COUNT = int(os.environ.get("DRILLRANK_FUZZ", "50"))


def damaged(content: bytearray, random: Random) -> None:
    """A byte is another, some are gone, or some stand twice."""
    at = random.randrange(len(content) + 1)
    if random.random() < 0.5 and at < len(content):
        content[at] = random.randrange(256)
    elif random.random() < 0.5:
        del content[at : at + random.randint(1, 60)]
    else:
        content[at:at] = content[random.randrange(len(content) + 1) :][:60]


def marked(parts: dict[str, bytes], random: Random) -> str:
    """Put a word of its own in the place of some text, behind what may be taken for markup."""
    texts = [(name, found) for name, part in parts.items() for found in re.finditer(rb">([^<>]*[a-z][^<>]*)<", part)]
    name, found = random.choice(texts)
    own = f"zq{random.randrange(10**6)}é"
    said = random.choice(["", "a &lt; b ", "# ", "| ", "- ", "\n\n"]) + own
    parts[name] = parts[name][: found.start(1)] + said.encode() + parts[name][found.end(1) :]
    return own


@pytest.mark.timeout(0)
@pytest.mark.filterwarnings("ignore:.*missing or damaged")
@pytest.mark.parametrize("ending", FILES)
def test_archives(ending: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(FILES[ending]())) as archive:
        whole = {name: archive.read(name) for name in archive.namelist()}
    file = tmp_path / f"a.{ending}"
    for seed in range(COUNT):
        random = Random(seed)
        parts = dict(whole)
        own = marked(parts, random) if seed % 2 else ""
        if not own:
            name = random.choice(list(parts))
            content = bytearray(parts[name])
            damaged(content, random)
            parts[name] = bytes(content)
        file.write_bytes(packed(parts))  # type: ignore[arg-type]  # bytes are written, too
        try:
            document = read_document(file)
        except InvalidInput:
            assert not own, seed
            continue
        check_spans(document)
        assert own in document.text, seed


@pytest.mark.timeout(0)
def test_pdf_files() -> None:
    pytest.importorskip("liteparse", reason="needs the extra pdf")
    pytest.importorskip("pypdfium2", reason="needs the extra pdf")
    from drillrank.structure.pdf import read_printed_pages, render_printed_pages

    prose = "The fox hunts mice at night and sleeps by day, which is what most people know of it. " * 3
    cells = [Text(text, x, y) for y in (300, 312, 324) for text, x in (("a", 72), ("12", 300), ("13", 420))]
    pages = [[Text("Foxes", y=72, size=18, bold=True), *lines(prose)], [*lines(prose), *cells]]
    whole = pdf_of(pages, [Mark("Foxes", 0)]).content()
    for seed in range(COUNT):
        random, content = Random(seed), bytearray(whole)
        for _ in range(random.randint(1, 6)):
            damaged(content, random)
        try:
            text, _ = render_printed_pages(read_printed_pages(bytes(content)))
        except InvalidInput:
            continue
        check_spans(parse_document(text, "markdown"))


@pytest.mark.filterwarnings("ignore:The given documents contain no text:drillrank.errors.DrillrankWarning")
@fuzz
@given(texts, st.lists(st.integers(0, 400), min_size=1, max_size=6))
def test_every_paragraph_of_joined_pages_is_on_the_pages_that_hold_its_words(text, places):
    pages = cut(text, places)
    documents = [LangChainDocument(page, metadata={"source": "a.pdf", "page": n}) for n, page in enumerate(pages)]
    [one] = join_pages((document.page_content, document.metadata) for document in documents)
    assert one.pages is not None
    check_spans(parse_document(one.text, metadata={"source": "a.pdf"}))
    for found in D3Retriever(documents=documents, top_n=100).invoke("fox hen owl terms ends"):
        start, end = found.metadata["drillrank_start"], found.metadata["drillrank_end"]
        assert one.text[start:end] == found.page_content
        first, last = found.metadata["drillrank_first_page"], found.metadata["drillrank_last_page"]
        assert found.metadata["page"] == first - 1
        assert found.metadata["start_index"] == start - (one.pages.starts[first - 1] if len(pages) > 1 else 0)
        holding = [
            number
            for number, (a, page) in enumerate(zip(one.pages.starts, pages, strict=True), 1)
            if one.text[max(a, start) : min(a + len(page), end)].strip()
        ]
        assert first <= holding[0] <= holding[-1] <= last
        assert first == holding[0] or not pages[first - 1].strip()
