"""Evidence of documents with markup: readable text, and the span of its source."""

from __future__ import annotations

import pytest

from drillrank import D3, Corpus, StoredChunk, parse_document, read_document
from drillrank.drilldown.outline import outline
from drillrank.drilldown.rebuilding import rebuild_sections
from drillrank.structure import Document
from drillrank.structure.passages import cut_passages
from drillrank.structure.reassembly import reassemble
from tests.drillrank.helpers import UNITS, paragraph_d3

HTML = (
    "<html><body><h1>Kettle &amp; pot</h1><p>Fish &amp; <b>chips</b> take ten minutes.</p>"
    "<h2>Care</h2><ul><li>Rinse the <i>lid</i> weekly.</li><li>Dry it.</li></ul></body></html>"
)
LATEX = (
    "\\section{Kettle}\nWater boils in \\emph{nine} minutes at 20~\\% power.\n\n"
    "\\section{Care}\nRinse the \\textbf{lid} weekly.\n"
)
TABLE = "<h1>Prices</h1><table><tr><th>Part<th>Price<tr><td>Lid &amp; knob<td>3 &lt; 4</table>"
MARKDOWN = "# Kettle\n\nWater boils in **nine** minutes.\n\n# Care\n\nRinse the lid weekly.\n"

CASES = [
    (HTML, "html", "How long do fish and chips take?", "Fish & chips take ten minutes.", "Fish &amp; <b>chips</b>"),
    (HTML, "html", "When is the lid rinsed?", "- Rinse the lid weekly.\n- Dry it.", "<li>Rinse the <i>lid</i>"),
    (TABLE, "html", "What is the price of a lid?", "Part | Price\nLid & knob | 3 < 4", "Lid &amp; knob<td>3 &lt; 4"),
    (LATEX, "latex", "When is the lid rinsed?", "Rinse the lid weekly.", "Rinse the \\textbf{lid} weekly."),
    (LATEX, "latex", "How many minutes until water boils?", "nine minutes at 20", "\\emph{nine}"),
    (MARKDOWN, "markdown", "How many minutes until water boils?", "Water boils in **nine** minutes.", "**nine**"),
]


def check_result(item, document: Document, text: str, source: str) -> None:
    assert text in item.passage.text
    assert "<" not in item.passage.text.replace("3 < 4", "")
    assert "\\" not in item.passage.text
    start, end = item.details["span"]
    assert source in document.text[start:end]
    assert (start, end) == (item.passage.metadata["start"], item.passage.metadata["end"])


@pytest.mark.parametrize(("content", "format", "question", "text", "source"), CASES)
@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("unit", UNITS)
def test_evidence_in_memory_is_readable_and_its_span_points_into_the_source(
    content, format, question, text, source, prepared, unit
):
    document = parse_document(content, format)
    d3 = D3(settings={"unit": unit})
    item = d3.retrieve(question, d3.prepare([document]) if prepared else [document])[0]
    check_result(item, document, text, source)


@pytest.mark.parametrize(("content", "format", "question", "text", "source"), CASES)
@pytest.mark.parametrize("unit", UNITS)
def test_evidence_of_a_corpus_is_the_same_as_in_memory(content, format, question, text, source, unit):
    document = parse_document(content, format)
    corpus = Corpus(unit=unit)
    corpus.add([document])
    d3 = D3(settings={"unit": unit})
    item = d3.retrieve(question, corpus)[0]
    check_result(item, document, text, source)
    in_memory = d3.retrieve(question, [document])[0]
    assert (item.passage.text, item.details["span"]) == (in_memory.passage.text, in_memory.details["span"])


@pytest.mark.parametrize("strategy", ["base", "hierbase", "paragraph", "chunk"])
@pytest.mark.parametrize("unit", UNITS)
def test_evidence_that_an_llm_chooses_is_readable(strategy, unit):
    def llm(prompt: str) -> str:
        return "yes" if "yes or no" in prompt else "Care" if "section names" in prompt else "1"

    document = parse_document(HTML, "html")
    for item in D3(llm, settings={"paragraphs": strategy, "unit": unit}).retrieve(
        "When is the lid rinsed?", [document]
    ):
        assert "<" not in item.passage.text
        assert item.details["span"] == (item.passage.metadata["start"], item.passage.metadata["end"])


def test_a_file_that_is_read_gives_readable_evidence(tmp_path):
    path = tmp_path / "a.html"
    path.write_text(HTML)
    document = read_document(str(path))
    item = paragraph_d3().retrieve("How long do fish and chips take?", [document])[0]
    assert item.passage.text == "Fish & chips take ten minutes."
    item = D3().retrieve("How long do fish and chips take?", [document])[0]
    assert item.details["best_paragraph"]["text"] == "Fish & chips take ten minutes."


def test_parts_of_a_long_html_paragraph_have_the_span_of_the_whole_paragraph():
    sentence = "The lid &amp; the knob are <b>new</b>. "
    document = parse_document(f"<h1>Lid</h1><p>{sentence * 300}</p><h1>Pot</h1><p>Old.</p>", "html")
    items = [item for item in D3().retrieve("Which knob is new?", [document], top_n=3) if "knob" in item.passage.text]
    assert len(items) > 1
    assert all("<" not in item.passage.text and "&amp;" not in item.passage.text for item in items)
    assert all(sentence.strip() in document.text[slice(*item.details["span"])] for item in items)


def test_every_result_has_a_span():
    items = D3().retrieve("lid", [MARKDOWN, parse_document(HTML, "html"), "Plain text about a lid."], top_n=9)
    assert len(items) > 2
    assert all(len(item.details["span"]) == 2 for item in items)


# --- Passages as units of evidence

MANUAL = "# Kettle\n\nWater boils in nine minutes.\n\n## Care\n\nOnce a week:\n\n- Rinse the lid.\n- Dry it.\n"


@pytest.mark.parametrize(("content", "format"), [(MANUAL, "markdown"), (HTML, "html"), (LATEX, "latex")])
def test_passages_are_the_units_of_evidence_if_asked_for(content, format):
    document = parse_document(content, format)
    items = D3(settings={"unit": "passage"}).retrieve("When is the lid rinsed?", [document], top_n=9)
    passages = cut_passages(document)
    assert [(item.passage.text, item.details["span"]) for item in items] == [
        (p.text, (p.start, p.end)) for p in passages
    ]
    assert items[0].passage.title == passages[0].title


def test_passages_have_different_ids():
    text = "<h1>Lid</h1><p>" + "The lid is &quot;new&quot; and round. " * 300 + "</p>"
    sections = outline([parse_document(text, "html"), MANUAL], "passage")
    ids = [passage.id for section in sections for passage in section.readable]
    assert len(ids) == len(set(ids)) > 3


def test_an_llm_chooses_passages():
    def llm(prompt: str) -> str:
        return "Kettle" if "section names" in prompt else "1"

    text = MANUAL + "\n# Pot\n\n" + "Old and black. " * 100
    [item] = D3(llm, settings={"unit": "passage"}).retrieve("When is the lid rinsed?", [text])
    assert "Once a week:\n\n- Rinse the lid.\n- Dry it." in item.passage.text


def test_records_are_joined_to_passages_of_their_own_texts():
    text = "".join(f"Kettle {n:02} is new.\n\n" for n in range(100))
    chunks = [
        StoredChunk(
            None, str(start), text[start : start + 19], ("", "a"), "section", "raw", path="Kettles", start=start
        )
        for start in range(0, len(text), 19)
    ]
    sections = rebuild_sections([reassemble(chunks)], unit="passage")
    passages = [passage for section in sections for passage in section.readable]
    assert 1 < len(passages) < 10
    assert all(text[slice(*map(passage.metadata.get, ("start", "end")))] == passage.text for passage in passages)
    assert all(any(chunk.text.strip() in passage.text for passage in passages) for chunk in chunks)
    found = D3().retrieve("Is kettle 77 new?", sections, 1)
    assert "Kettle 77 is new." in found[0].passage.text
    assert "Kettle 77 is new." in found[0].details["best_paragraph"]["text"]
