"""What other tools parsed: recorded output, documented schemas, and anything else.

`data/parsed` was written by docling-core (`add_heading` and its kin, `export_to_dict`, `export_to_markdown`) and by the
element classes of unstructured, with its `set_element_hierarchy` and `elements_to_json`: its `partition` functions want
a download. LlamaParse and PageIndex are held to their documented schemas.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.structure.imported import (
    SearchedText,
    document_from_docling,
    document_from_llamaparse,
    document_from_pageindex,
    document_from_unstructured,
    rebuild_heading_levels,
)
from drillrank.structure.scan import Heading
from drillrank.views import MultiViewChunker
from tests.drillrank.helpers import Says, paragraph_d3, refuses

DATA = Path(__file__).parents[1] / "data" / "parsed"
HARBOUR = ("Harbour report",)
GOODS = "| Goods | Tons |\n| --- | --- |\n| Grain | 412 |"
FROM_DOCLING = [
    (HARBOUR, (1, 1)),
    ((*HARBOUR, "1 Traffic"), (1, 1)),
    ((*HARBOUR, "1 Traffic", "1.1 Cargo"), (2, 3)),
    ((*HARBOUR, "2 Dredging"), (3, 3)),
]


def read(name: str) -> str:
    return (DATA / name).read_text(encoding="utf-8")


def outline_of(document):
    return [(section.path, document.page_numbers(section.start, section.end)) for section in document.sections()]


def test_docling_as_json_dictionary_and_object_and_its_markdown_gets_its_levels_back():
    saved = json.loads(read("docling.json"))
    for form in (read("docling.json"), saved, SimpleNamespace(export_to_dict=lambda: saved)):
        document = document_from_docling(form)
        assert outline_of(document) == FROM_DOCLING
        assert "2024" not in document.text  # a running header
        assert GOODS in document.text
    (cargo,) = paragraph_d3().retrieve("How much grain?", [document], 1)
    assert cargo.passage.metadata["pages"] == (2, 2)
    exported = document_from_docling(read("docling.md"))
    assert exported.text == read("docling.md")
    assert [path for path, _ in outline_of(exported)] == [path for path, _ in FROM_DOCLING]


def test_unstructured_as_dictionaries_and_objects():
    saved = json.loads(read("unstructured.json"))
    for form in (saved, [SimpleNamespace(to_dict=lambda element=element: element) for element in saved]):
        document = document_from_unstructured(form)
        names = [(), ("Traffic",), ("Traffic", "Cargo"), ("Dredging",)]
        pages = [(1, 1), (1, 1), (2, 2), (3, 3)]
        assert outline_of(document) == [((*HARBOUR, *name), page) for name, page in zip(names, pages, strict=True)]
        assert "2024" not in document.text
        assert GOODS in document.text


PAGES = ["# 1 Sea\n\nWide.\n\n# 1.1 Whales\n\nThey", "sing.\n\n# 2 Land\n\nDry."]


@pytest.mark.parametrize(
    "result",
    [
        {"pages": [{"page": number, "md": page} for number, page in enumerate(PAGES, 1)], "job_metadata": {}},
        {"markdown": {"pages": [{"page_number": n, "markdown": page} for n, page in enumerate(PAGES, 1)]}},
        [{"md": page} for page in PAGES],
    ],
)
def test_llamaparse(result):
    for form in (result, json.dumps(result) if isinstance(result, dict) else result):
        document = document_from_llamaparse(form)
        assert outline_of(document) == [(("1 Sea",), (1, 1)), (("1 Sea", "1.1 Whales"), (1, 2)), (("2 Land",), (2, 2))]


DEEP = {"title": "Deep  Sea", "node_id": "0001", "start_index": 2, "end_index": 2, "summary": "Its depth."}
SEA = {
    "title": "Sea",
    "node_id": "0000",
    "start_index": 1,
    "end_index": 2,
    "summary": "About the sea.",
    "nodes": [DEEP],
}
LAND = {"title": "Land", "node_id": "0002", "start_index": 2, "end_index": 3, "summary": "Dry things."}
TREE = {"doc_name": "sea.pdf", "structure": [SEA, LAND]}
BOOK = [
    "Cover\n\nSEA\n\n" + "The sea is wide. " * 30,
    "Salt.\n\nDeep\nsea\n\n" + "It is dark. " * 30 + "\n\nLand\n\nOwls",
    "live here.",
]


def test_pageindex_over_pages_keeps_titles_pages_and_summaries():
    tree = document_from_pageindex(TREE, BOOK)
    found = [((), (1, 1)), (("Sea",), (1, 2)), (("Sea", "Deep Sea"), (2, 2)), (("Land",), (2, 3))]
    assert outline_of(tree.document) == found
    llm = Says(lambda prompt: "Deep Sea" if "section names" in prompt else "1")
    (found,) = paragraph_d3(llm, settings={"summarizer": tree.summaries}).retrieve("Is it dark?", [tree.document])
    assert "About the sea." in llm.prompts[0]
    assert "Its depth." in llm.prompts[0]
    assert "dark" in found.passage.text


def test_pageindex_with_texts_of_its_own():
    deep = {"title": "Deep", "text": "## Deep\nDark."}
    nodes = [{"title": "Sea", "text": "# Sea\nWide.\n\n## Deep\nDark.", "nodes": [deep]}]
    for form in (json.dumps(nodes), nodes[0]):
        assert document_from_pageindex(form).document.text.split() == ["Sea", "Wide.", "Deep", "Dark."]


@given(st.lists(st.text("ab \n", max_size=20), min_size=1, max_size=4), st.data())
def test_pageindex_loses_and_doubles_no_text_of_the_pages(pages, data):
    starts = sorted(data.draw(st.lists(st.integers(1, len(pages)), max_size=4)))
    nodes = [{"title": f"T{at}", "start_index": start, "nodes": []} for at, start in enumerate(starts)]
    nodes = nodes or [{"title": "T", "start_index": 1}]
    document = document_from_pageindex(nodes, pages).document
    titles = {node["title"] for node in nodes}
    assert [word for word in document.text.split() if word not in titles] == " ".join(pages).split()


test_what_is_something_else_is_refused = refuses(
    (lambda: document_from_docling({"texts": []}), "without `body`"),
    (lambda: document_from_docling(7), "mapping"),
    (lambda: document_from_unstructured("text"), "Expected a list"),
    (lambda: document_from_unstructured([{"text": "a"}]), "no type"),
    (lambda: document_from_llamaparse({"pages": [{"md": ""}]}), "No page"),
    (lambda: document_from_llamaparse("no json"), "not JSON"),
    (lambda: document_from_pageindex({"structure": [{"title": "A"}]}), "give the text"),
    (lambda: document_from_pageindex({"structure": [{"title": " "}]}), "no title"),
    (lambda: document_from_pageindex({"doc_name": "a"}), "no structure"),
)


@given(st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["1 A", "1.1 B", "2 C", "Item 7", "D", "E", "D"]))))
def test_rebuilding_keeps_titles_and_what_had_levels(headings):
    given_headings = {at: Heading(*heading) for at, heading in enumerate(headings)}
    found = rebuild_heading_levels(given_headings)
    assert [heading.title for heading in found.values()] == [title for _, title in headings]
    assert all(found[at].level >= heading.level for at, heading in given_headings.items())
    if len({level for level, _ in headings[1:]}) > 1:
        assert found == given_headings


def test_text_of_a_node_behind_its_children_is_its_own():
    child = {"title": "Whales", "text": "Whales\n\nThey  sing."}
    other = {"title": "Cod", "text": "Cod\n\nThey are eaten."}
    text = "Sea\n\nIt is wide.\n\nWhales\n\nThey sing.\n\nIt is deep.\n\nCod\n\nThey are eaten.\n\nIt is salty."
    document = document_from_pageindex([{"title": "Sea", "text": text, "nodes": [child, other]}]).document
    bodies = {section.heading: document.body(section).split("\n\n")[1:] for section in document.sections()}
    bodies = {heading: [part for part in parts if part] for heading, parts in bodies.items()}
    sea = ["It is wide.", "It is deep.", "It is salty."]
    assert bodies == {"Sea": sea, "Whales": ["They  sing."], "Cod": ["They are eaten."]}


@pytest.mark.parametrize("rows", [[["a"]], [["a", "b"], ["1", "2"], ["3", "4"]]])
def test_tables_have_a_head_that_chunks_may_repeat(rows):
    cells = [
        {"start_row_offset_idx": at, "start_col_offset_idx": column, "text": text}
        for at, row in enumerate(rows)
        for column, text in enumerate(row)
    ]
    body = {"body": {"children": [{"$ref": "#/tables/0"}]}}
    html = "<table>" + "".join(f"<tr>{''.join(f'<td>{text}</td>' for text in row)}</tr>" for row in rows) + "</table>"
    elements = [{"type": "Table", "text": "a", "metadata": {"text_as_html": html}}]
    read_docling = document_from_docling({**body, "tables": [{"label": "table", "data": {"table_cells": cells}}]})
    for document in (read_docling, document_from_unstructured(elements)):
        assert [line.strip("| ").split(" | ") for line in document.text.splitlines() if "---" not in line] == rows
        assert document.text.splitlines()[1].startswith("| ---")
        assert MultiViewChunker(max_tokens=8).chunks([("a", document)])


def test_what_docling_says_of_pictures_and_forms():
    notes = [{"kind": "description", "text": "A fox in snow."}]
    saved = {
        "body": {"children": [{"$ref": "#/pictures/0"}, {"$ref": "#/form_items/0"}]},
        "pictures": [{"label": "picture", "annotations": notes, "prov": [{"page_no": 2}]}],
        "form_items": [{"label": "form", "graph": {"cells": [{"text": "Name"}, {"text": "Fox"}]}}],
    }
    document = document_from_docling(saved)
    assert document.text == "A fox in snow.\n\nName\n\nFox"
    assert document.page_numbers(0, 5) == (2, 2)


def test_texts_of_children_are_found_whatever_their_white_space():
    text = SearchedText("Sea\n\nWide  and\tdeep. Wide and deep.")
    assert text.find("Wide and deep.") == (21, 35)  # the exact text is preferred
    assert text.find("Wide and\ndeep.") == (5, 20)
    assert text.find("Wide\nand deep.", 6) == (21, 35)
    assert text.find(" \n") is None
    assert text.find("Narrow") is None


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("## Sea\n\nWide.", "Sea Wide."),
        ("Sea\n\nWide.", "Sea Wide."),
        ("##Sea\n\nWide.", "## Sea Wide."),
        ("#" * 100_000 + "\n\nWide.", "Sea " + "#" * 100_000 + " Wide."),
    ],
)
def test_titles_with_heading_marks_are_found_in_pages(page, text):
    document = document_from_pageindex([{"title": "Sea", "start_index": 1}], [page]).document
    assert " ".join(document.text.split()) == text
