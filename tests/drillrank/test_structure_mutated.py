"""Files and other tools' output, damaged at random: an error of ours or a document, and no text is lost.

50 of each; `DRILLRANK_FUZZ=10000` asks for more.
"""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from drillrank import parse_document, read_document
from drillrank.errors import InvalidInput
from drillrank.structure.imported import document_from_docling, document_from_pageindex, document_from_unstructured
from tests.drillrank.test_structure import check_spans
from tests.drillrank.test_structure_complete import BOOK, packed, presentation, word
from tests.pdf_files import Mark, Text, lines, pdf_of

COUNT = int(os.environ.get("DRILLRANK_FUZZ", "50"))
FILES: dict[str, Callable[[], bytes]] = {"docx": word, "pptx": presentation, "epub": lambda: packed(BOOK)}
WORDS = ["fox", "Sea", "1.1 b", "Item 7", "a b", "", " ", "x\ny"]


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
@pytest.mark.filterwarnings("ignore:.*chapters of")
@pytest.mark.parametrize("ending", FILES)
def test_archives(ending: str, tmp_path: Path) -> None:
    if ending == "docx":
        pytest.importorskip("mammoth", reason="needs the extra office")
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
    from drillrank.structure.pdf import printed_pages, text_of

    prose = "The fox hunts mice at night and sleeps by day, which is what most people know of it. " * 3
    cells = [Text(text, x, y) for y in (300, 312, 324) for text, x in (("a", 72), ("12", 300), ("13", 420))]
    pages = [[Text("Foxes", y=72, size=18, bold=True), *lines(prose)], [*lines(prose), *cells]]
    whole = pdf_of(pages, [Mark("Foxes", 0)]).content()
    for seed in range(COUNT):
        random, content = Random(seed), bytearray(whole)
        for _ in range(random.randint(1, 6)):
            damaged(content, random)
        try:
            text, _ = text_of(printed_pages(bytes(content)))
        except InvalidInput:
            continue
        check_spans(parse_document(text, "markdown"))


def docling(random: Random) -> tuple[Any, list[str]]:
    labels = ["text", "title", "section_header", "list_item", "code", "page_header"]
    texts = [
        {"label": random.choice(labels), "text": random.choice(WORDS) + str(at), "level": random.choice([None, 1, 3])}
        for at in range(random.randint(0, 9))
    ]
    body = {"children": [{"$ref": f"#/texts/{at}"} for at in range(len(texts) + 2)]}
    return {"body": body, "texts": texts}, [str(one["text"]) for one in texts if one["label"] != "page_header"]


def unstructured(random: Random) -> tuple[Any, list[str]]:
    kinds = ["Title", "NarrativeText", "ListItem", "Table", "Footer", "CodeSnippet"]
    elements = [
        {"type": random.choice(kinds), "element_id": str(at), "text": random.choice(WORDS) + str(at)}
        | {"metadata": {"parent_id": str(random.randint(0, 9)), "page_number": random.choice([None, 1, 2])}}
        for at in range(random.randint(0, 9))
    ]
    return elements, [str(one["text"]) for one in elements if one["type"] != "Footer"]


def pageindex(random: Random) -> tuple[Any, list[str]]:
    def nodes(depth: int) -> list[dict[str, Any]]:
        below = nodes(depth + 1) if depth < 3 and random.random() < 0.5 else []
        return [{"title": title, "start_index": random.randint(1, 3), "nodes": below} for title in ("Sea", "fox")]

    pages = [" ".join(random.choice(WORDS) + str(at) for at in range(9)) for _ in range(3)]
    return (nodes(0), pages), pages


@pytest.mark.timeout(0)
@pytest.mark.parametrize(
    ("make", "read"),
    [
        (docling, document_from_docling),
        (unstructured, document_from_unstructured),
        (pageindex, lambda given: document_from_pageindex(*given).document),
    ],
)
def test_what_other_tools_parsed(make, read) -> None:
    for seed in range(COUNT):
        given, texts = make(Random(seed))
        document = read(given)
        check_spans(document)
        assert {word for text in texts for word in text.split()} <= {*document.text.split()}, seed
