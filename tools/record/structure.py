"""Documents of every format: sections, blocks, links, pages, sentences."""

from __future__ import annotations

import html
import importlib.util
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

from .building import build, imported
from .data import ROOT, papers
from .drilldown import BOOK, MANUAL
from .taking import Recorder

ODD = {
    "setext": 'Title\n=====\n\nText *so* [a link](http://a.b/c "t").\n\nSub\n---\n\n> quoted\n\n1. one\n2. two\n',
    "front matter": "---\ntitle: A\n---\n\n# B\n\n```py\n# no heading\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    "numbered": "1 INTRODUCTION\n\nSome text here, which goes on.\n\n1.1 Aims\n\nMore text.\n\n2 METHODS\n\nThe end.\n",
    "flat": "ANNUAL REPORT\n\nRevenue rose by 4 %.\n\nRisk factors\n\nMany. See Section 2.\n\nLiquidity\n\nFine.\n",
    "underlined": "Heading\n*******\n\nText.\n\nOther\n.....\n\nText again.\n",
    "empty": "",
    "blank": "  \n\n \t\n",
    "one line": "Nothing but one line.",
    "windows": "# A\r\n\r\nOne.\r\n\r\n## B\r\n\r\nTwo.\r\n",
    "scripts": "# 東京\n\n東京は日本の首都です。人口は約1400万人。\n\n# Größe\n\nStraße und Maß. Es ist z. B. groß.\n",
    "skipped levels": "# A\n\n#### D\n\ndeep\n\n## B\n\nless\n\n# A\n\nagain\n",
    "html fragment": "<h2>One</h2><p>Text &amp; more.</p><ul><li>a</li><li>b <a href='/x'>x</a></li></ul><h3>Two</h3>t",
    "html page": "<!doctype html><html><head><title>T</title><style>p{}</style></head><body><nav>Home</nav><h1>H</h1>"
    "<p>First.<p>Second <b>bold</b>.<table><tr><th>a<td>b</table><pre>code\n  x</pre><script>x</script></body></html>",
    "latex": "\\documentclass{article}\\begin{document}\\title{T}\\maketitle\\section{One}\\label{s}Text with $x^2$ "
    "and \\emph{emphasis}~\\cite{a}.\n\n% comment\n\\subsection*{Two}\\begin{itemize}\\item a\\item b\\end{itemize}"
    "\\begin{tabular}{ll}a & b\\\\c & d\\end{tabular}\\href{http://a.b}{shown}\\end{document}",
    "references": "# Paper\n\nSee Figure 2 and Section 3.\n\n# References\n\n[1] A. Author. A title. 2001.\n",
}


def tests_module(name: str) -> Any:
    """A module of this tree's tests that writes files and imports nothing of the packages."""
    spec = importlib.util.spec_from_file_location(f"recorded_{name}", ROOT / "tests" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # for its dataclasses
    spec.loader.exec_module(module)
    return module


def structure(recorder: Recorder) -> None:
    """Texts in every format, named and guessed, and files."""
    parse = imported("drillrank:parse_document")
    read = recorder.some(papers(), 30)
    for paper in read:
        forms = {
            "markdown": paper["markdown"],
            "html": as_html(paper),
            "latex": as_latex(paper),
            "text": as_text(paper),
        }
        for format_, text in forms.items():
            for given in ("auto", format_):
                recorder.take(f"{format_}, as {given}/{paper['id']}", lambda: shown(
                    build(parse, text, given, metadata=None, max_depth=None)
                ))  # fmt: skip
        recorder.take(f"two levels/{paper['id']}", lambda: shown(
            build(parse, paper["markdown"], "markdown", metadata=None, max_depth=2)
        ))  # fmt: skip
    for name, text in {**ODD, "manual": MANUAL, "book": BOOK}.items():
        for given in ("auto", "markdown", "html", "latex", "text"):
            recorder.take(f"odd, as {given}/{name}", lambda: shown(build(parse, text, given, metadata=None)))
        for key, value in (("file_name", "a.md"), ("file_type", "text/html"), ("source", "a.tex"), ("url", "a.txt")):
            recorder.take(f"odd, by {key}/{name}", lambda: shown(build(parse, text, "auto", metadata={key: value})))
    sentences = imported("drillrank.structure:sentences")
    for paper in read[:10]:
        for number, section in enumerate(paper["sections"]):
            recorder.take(f"sentences/{paper['id']} {number}", lambda: sentences(" ".join(section["paragraphs"])))
    _files(recorder, read)
    _imported(recorder)


def shown(document: Any) -> dict[str, Any]:
    """All that a document says of itself."""
    sections = [
        {
            "path": section.path,
            "level": section.level,
            "span": [section.start, section.end],
            "confidence": section.confidence,
            "body": document.body(section),
            "blocks": [
                [block.kind, block.start, block.end, document.readable(block)] for block in document.blocks(section)
            ],
            "pages": document.page_numbers(section.start, section.end),
        }
        for section in document.sections()
    ]
    joined = "".join(document.slice(section) for section in document.sections())
    return {
        "format": document.format,
        "sections": sections,
        "tiles": joined == document.text,
        "text": document.text,
    }


def as_html(paper: dict[str, Any]) -> str:
    """The paper as a page."""
    lines = [
        f"<html><head><title>{html.escape(paper['title'])}</title></head><body><h1>{html.escape(paper['title'])}</h1>"
    ]
    for section in paper["sections"]:
        level = min(len(section["path"]) + 1, 6)
        lines.append(f"<h{level}>{html.escape(section['path'][-1])}</h{level}>")
        lines += [f"<p>{html.escape(text)}</p>" for text in section["paragraphs"]]
    return "\n".join([*lines, "</body></html>"])


def as_latex(paper: dict[str, Any]) -> str:
    """The paper as a source."""
    names = ("section", "subsection", "subsubsection")
    lines = ["\\documentclass{article}", "\\begin{document}"]
    for section in paper["sections"]:
        lines.append(f"\\{names[min(len(section['path']), 3) - 1]}{{{section['path'][-1]}}}")
        lines += [text.replace("%", "\\%").replace("&", "\\&") + "\n" for text in section["paragraphs"]]
    return "\n".join([*lines, "\\end{document}"])


def as_text(paper: dict[str, Any]) -> str:
    """The paper with numbered headings."""
    numbers: list[int] = []
    lines = [paper["title"], ""]
    for section in paper["sections"]:
        depth = len(section["path"])
        numbers = [*numbers[:depth], *[0] * (depth - len(numbers))]
        numbers[depth - 1] += 1
        lines += [f"{'.'.join(map(str, numbers))} {section['path'][-1]}", ""]
        lines += [f"{text}\n" for text in section["paragraphs"]]
    return "\n".join(lines)


def files(folder: Path, read: Any) -> list[Path]:
    """Files of every kind, the same ones for every tree."""
    pdf, word = tests_module("pdf_files"), tests_module("word_files")
    pages, marks = [], []
    for number, section in enumerate(read[0]["sections"][:8]):
        heading = pdf.Text(section["path"][-1].encode("ascii", "ignore").decode(), size=16, bold=True)
        text = " ".join(section["paragraphs"])[:2500].encode("ascii", "ignore").decode()
        pages.append([heading, *pdf.lines(text, y=110)])
        marks.append(pdf.Mark(heading.text, number, len(section["path"])))
    made = {
        "marked.pdf": pdf.pdf_of(pages, marks).content(),
        "unmarked.pdf": pdf.pdf_of(pages).content(),
        "word.docx": word.word_file(
            [("Animals", 1), ("# of them", 0), ("Foxes", 2), ("They hunt at night.", 0), [["Fox", "42"], ["Owl", "7"]]]
        ),
        "paper.md": read[1]["markdown"].encode(),
        "paper.html": as_html(read[2]).encode(),
        "paper.tex": as_latex(read[3]).encode(),
        "paper.txt": as_text(read[4]).encode(),
        "wide.txt": MANUAL.encode("utf-16"),
        "broken.pdf": b"%PDF-1.7 nothing",
        "latin.txt": "Grüße".encode("latin-1"),
    }
    for name, content in made.items():
        (folder / name).write_bytes(content)
    _presentation(folder / "slides.pptx")
    with zipfile.ZipFile(folder / "book.epub", "w") as archive:
        rootfile = '<container><rootfiles><rootfile full-path="in/a.opf"/></rootfiles></container>'
        archive.writestr("META-INF/container.xml", rootfile)
        archive.writestr(
            "in/a.opf",
            '<package><manifest><item id="one" href="one.xhtml"/><item id="two" href="two.xhtml"/></manifest>'
            '<spine><itemref idref="one"/><itemref idref="two"/></spine></package>',
        )
        for name, text in (("one", "Foxes hunt."), ("two", "Badgers dig.")):
            archive.writestr(f"in/{name}.xhtml", f"<html><body><h1>{name}</h1><p>{text}</p></body></html>")
    return [*(folder / name for name in made), folder / "slides.pptx", folder / "book.epub"]


def _presentation(file: Path) -> None:
    import pptx

    presentation = pptx.Presentation()
    for title, text in (("Foxes", "They hunt."), ("Badgers", "They dig.")):
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = text
    presentation.save(str(file))


def _files(recorder: Recorder, read: Any) -> None:
    reading = imported("drillrank:read_document")
    folder = recorder.folder / "files"
    folder.mkdir()
    while len(read) < 5:
        read = [*read, *read]
    for file in files(folder, read):
        recorder.take(f"file/{file.name}", lambda: shown(reading(file)))
        recorder.take(f"file, one level/{file.name}", lambda: shown(build(reading, file, max_depth=1)))


def _imported(recorder: Recorder) -> None:
    """What other tools parsed."""
    folder = ROOT / "tests" / "drillrank" / "data" / "parsed"
    place = "drillrank.structure.parsed:document_from_"
    for name in ("docling.json", "docling.md", "unstructured.json"):
        text = (folder / name).read_text(encoding="utf-8")
        read = imported(f"{place}{name.partition('.')[0]}")
        recorder.take(
            f"imported/{name}", lambda: shown(read(json.loads(text) if name == "unstructured.json" else text))
        )
    tree = [{"title": "A", "start_index": 1, "end_index": 2, "text": "One.", "nodes": [{"title": "B", "text": "Two."}]}]
    recorder.take("imported/pageindex", lambda: shown(imported(f"{place}pageindex")({"structure": tree}).document))
