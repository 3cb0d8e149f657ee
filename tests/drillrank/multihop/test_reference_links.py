"""Links from references inside a document, in the core and by name in both frameworks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from llama_index.core.schema import NodeWithScore, TextNode

import langchain_ext
import llama_index_ext
from drillrank import Passage
from drillrank.drilldown.outline import outline
from drillrank.multihop.reference_links import ReferenceLinks
from drillrank.structure.references import caption_label, heading_labels, references

CONTRACT = """# Lease\n
## 3 Term\n
The lease ends as Section 8.1 and § 9 say; rents are in Table 2, and Note 12 has Section “Repairs”.\n
## 8 Notices\n\n### 8.1 Form\n\nIn writing.\n
## § 9 Law\n\nScots law.\n
## Rents\n\nTable 2: Rents by year\n
## Note 12 – Costs\n\nNone.\n
## Repairs\n\nThe tenant's.\n"""


def test_every_kind_of_reference_is_followed_in_order():
    passages = [paragraph for section in outline([CONTRACT]) for paragraph in section.paragraphs]
    links = ReferenceLinks().bind(passages)
    texts = {passage.id: passage.text for passage in passages}
    assert [texts[id_] for id_ in links(passages[0])] == [
        "In writing.", "Scots law.", "Table 2: Rents by year", "None.", "The tenant's."
    ]  # fmt: skip
    assert all(not list(links(passage)) for passage in passages[1:])


@pytest.mark.parametrize(
    "text", ["Section of the road", "a table 3 m long is no matter; 3 tables", "the subsection", "footnote 3x"]
)
def test_what_is_no_reference(text):
    assert ("section", "of") not in references(text)
    assert all(label in {("table", "3")} for label in references(text))


NUMBERS = st.lists(st.integers(1, 40), min_size=1, max_size=3).map(lambda parts: ".".join(map(str, parts)))


@given(st.lists(NUMBERS, min_size=2, max_size=6, unique=True), st.data())
def test_a_reference_leads_to_the_section_of_its_number_and_document_alone(numbers, data):
    target = data.draw(st.sampled_from(numbers[1:]))
    word = data.draw(st.sampled_from(["Section ", "section ", "Sec. ", "§", "§ ", "clause "]))
    passages = [
        Passage(
            f"As {word}{target}, says." if number == numbers[0] else "-",
            id=f"{document} {number}",
            title=f"Lease > {number} Term",
            metadata={"file_name": document},
        )
        for document in ("a", "b")
        for number in numbers
    ]
    links = ReferenceLinks().bind(passages)
    assert list(links(passages[0])) == [f"a {target}"]
    assert list(links(passages[len(numbers)])) == [f"b {target}"]


@given(st.text("SectionTable .§123,“”IVX\n:", max_size=80))
def test_any_text_has_labels_without_harm(text):
    assert len(references(text)) == len(set(references(text)))
    assert heading_labels(text)
    caption_label(text)


def test_by_name_in_both_frameworks():
    texts = {"3": "Notice of the end is given as Section 8 says.", "8": "In writing, by letter."}
    meta = {name: {"file_name": "a", "drillrank_section_path": f"Lease > {name} X"} for name in texts}
    question, options = "How is notice given, by letter?", {"links": ("references",), "settings": {"pairs": 0}}
    documents = [Document(text, id=name, metadata=meta[name]) for name, text in texts.items()]
    nodes = [NodeWithScore(node=TextNode(text=text, id_=name, metadata=meta[name])) for name, text in texts.items()]
    documents = langchain_ext.PromptRankRerank(**options).compress_documents(documents, question)
    assert len({document.metadata["relevance_score"] for document in documents}) == 1  # that of the path of both
    nodes = llama_index_ext.PromptRankRerank(**options).postprocess_nodes(nodes, query_str=question)
    assert len({node.score for node in nodes}) == 1
