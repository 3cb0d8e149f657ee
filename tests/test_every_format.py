"""A folder with a file of every format in three languages: asked on the command line and through both hosts."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import langchain_core.documents
import llama_index.core
import pytest

import langchain_ext
import llama_index_ext
from drillrank import cli, read_document
from tests.hostile_pdfs import mapped
from tests.pdf_files import Text, pdf_of
from tests.word_files import word_file

for library in ("liteparse", "pypdfium2"):
    pytest.importorskip(library, reason="needs the extras pdf and office")
pptx = pytest.importorskip("pptx", reason="writes presentations")

# For each language names, what is said of a name, what else is said, and how one asks for it.
LANGUAGES = {
    "english": (
        ["Alderton", "Birchham", "Corfield", "Dunwich", "Elmsby", "Farleigh", "Gorston", "Hartsea"],
        "The lighthouse of {name} is {metres} metres high.",
        ["Notes on the coast", "Fishing boats leave the harbour before sunrise.", "Nobody lives on the island today."],
        "How high is the lighthouse of {name}?",
    ),
    "german": (
        ["Ahrenshof", "Bergsiel", "Cammin", "Dornbusch", "Eidersand", "Fehnhorn", "Greifwarf", "Hörnum"],
        "Der Leuchtturm von {name} ist {metres} Meter hoch.",
        [
            "Notizen zur Küste",
            "Die Fischer fahren vor Sonnenaufgang aus dem Hafen.",
            "Auf der Insel wohnt niemand mehr.",
        ],
        "Wie hoch ist der Leuchtturm von {name}?",
    ),
    "japanese": (
        ["青森", "千葉", "長崎", "広島", "神戸", "金沢", "松山", "静岡"],
        "{name}灯台の高さは{metres}メートルです。",
        ["海岸の記録", "漁船は日の出前に港を出ます。", "島には今は誰も住んでいません。"],
        "{name}灯台の高さは何メートルですか。",
    ),
}


def printed(title: str, texts: list[str]) -> bytes:
    if title.isascii() or "ü" in title:
        shown = [Text(text, y=140 + 40 * at) for at, text in enumerate(texts)]
        return pdf_of([[Text(title, size=18, bold=True), *shown]]).content()
    signs = sorted({*"".join([title, *texts])})  # a font whose codes say in a table what they stand for
    codes = b"".join(
        b"<%02X> <%s>\n" % (at, sign.encode("utf-16-be").hex().encode()) for at, sign in enumerate(signs, 1)
    )
    lines = b"".join(
        b"BT /U 12 Tf 72 %d Td <%s> Tj ET\n"
        % (640 - 40 * at, bytes(signs.index(sign) + 1 for sign in text).hex().encode())
        for at, text in enumerate([title, *texts])
    )
    return mapped(b"%d beginbfchar\n%sendbfchar" % (len(signs), codes), lines)


def packed(parts: dict[str, str]) -> Callable[[Path], None]:
    def write(file: Path) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            for name, text in parts.items():
                archive.writestr(name, text)

    return write


def page(title: str, texts: list[str]) -> str:
    return f"<html><body><h1>{title}</h1>{''.join(f'<p>{text}</p>' for text in texts)}</body></html>"


def write_slides(file: Path, title: str, texts: list[str]) -> None:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[1])
    slide.shapes.title.text = title
    slide.placeholders[1].text = "\n".join(texts)
    presentation.save(str(file))


def write_book(file: Path, title: str, texts: list[str]) -> None:
    contents = (
        '<package><manifest><item id="a" href="a.xhtml"/></manifest><spine><itemref idref="a"/></spine></package>'
    )
    root = '<container><rootfiles><rootfile full-path="a.opf"/></rootfiles></container>'
    packed({"META-INF/container.xml": root, "a.opf": contents, "a.xhtml": page(title, texts)})(file)


WRITERS: dict[str, Callable[[Path, str, list[str]], object]] = {
    "pdf": lambda file, title, texts: file.write_bytes(printed(title, texts)),
    "docx": lambda file, title, texts: file.write_bytes(word_file([(title, 1), *((text, 0) for text in texts)])),
    "pptx": write_slides,
    "epub": write_book,
    "md": lambda file, title, texts: file.write_text("\n\n".join([f"# {title}", *texts]), encoding="utf-8"),
    "html": lambda file, title, texts: file.write_text(page(title, texts), encoding="utf-8"),
    "tex": lambda file, title, texts: file.write_text(
        "\n\n".join([rf"\documentclass{{article}}\begin{{document}}\section{{{title}}}", *texts, r"\end{document}"]),
        encoding="utf-8",
    ),
    "txt": lambda file, title, texts: file.write_text("\n\n".join([title, "=" * len(title), *texts]), encoding="utf-8"),
}
Asked = dict[str, tuple[str, str]]  # by the file's name a question, and what its answer holds


@pytest.fixture(scope="module", params=LANGUAGES)
def folder(request, tmp_path_factory) -> tuple[Path, Asked]:
    """Files of all languages, and the questions of one."""
    made = tmp_path_factory.mktemp("folder")
    asked: Asked = {}
    for number, (language, (names, said, others, question)) in enumerate(LANGUAGES.items()):
        for at, (ending, name) in enumerate(zip(WRITERS, names, strict=True)):
            metres = str(31 + 9 * number + at)
            file = made / f"{language}.{ending}"
            WRITERS[ending](file, others[0], [others[1], said.format(name=name, metres=metres), others[2]])
            if language == request.param:
                asked[file.name] = question.format(name=name), metres
    return made, asked


def test_the_command_line_names_the_file_and_the_passage(folder, capsys):
    files, asked = folder
    for name, (question, metres) in asked.items():
        assert cli.main(["ask", str(files), question, "--json"]) == 0
        first = json.loads(capsys.readouterr().out)["evidence"][0]
        assert (Path(first["file"]).name, metres in first["text"]) == (name, True)


@pytest.fixture(scope="module")
def texts(folder) -> dict[str, str]:
    """What both hosts are given: the texts of all files by name."""
    return {file.name: read_document(file).text for file in sorted(folder[0].iterdir())}


@pytest.mark.parametrize("component", ["D3Retriever", "MultiViewRetriever"])
def test_llama_index(folder, texts, component):
    nodes = [llama_index.core.Document(text=text, id_=name) for name, text in texts.items()]
    given = llama_index_ext.MultiViewNodeParser()(nodes) if component == "MultiViewRetriever" else nodes
    retriever = getattr(llama_index_ext, component)(given, top_n=1)
    for name, (question, metres) in folder[1].items():
        [hit] = retriever.retrieve(question)
        assert (hit.node.ref_doc_id, metres in hit.node.get_content()) == (name, True)


@pytest.mark.parametrize("component", ["D3Retriever", "MultiViewRetriever"])
def test_langchain(folder, texts, component):
    documents = [
        langchain_core.documents.Document(text, id=name, metadata={"source": name}) for name, text in texts.items()
    ]
    if component == "MultiViewRetriever":
        documents = langchain_ext.MultiViewTextSplitter().split_documents(documents)
    retriever = getattr(langchain_ext, component)(documents=documents, top_n=1)
    for name, (question, metres) in folder[1].items():
        [hit] = retriever.invoke(question)
        assert (hit.metadata["source"], metres in hit.page_content) == (name, True)
