"""MultiViewNodeParser after other parsers: offsets are those of the document, or there are none; never wrong ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from llama_index.core import Document
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    MarkdownNodeParser,
    SentenceSplitter,
    TokenTextSplitter,
    get_leaf_nodes,
)
from llama_index.core.schema import BaseNode, TransformComponent

from drillrank.errors import DrillrankWarning
from llama_index_ext import D3Retriever, MultiViewNodeParser
from tests.conformance.corpus import BOOK, QUESTION


class WithoutOffsets(TransformComponent):
    """As parsers do that change the text, or know no offsets."""

    def __call__(self, nodes: list[BaseNode], **kwargs: object) -> list[BaseNode]:
        return [node.model_copy(update={"start_char_idx": None, "end_char_idx": None}) for node in nodes]


def sentences(size: int = 40, overlap: int = 0) -> SentenceSplitter:
    return SentenceSplitter(chunk_size=size, chunk_overlap=overlap, include_metadata=False)


def hierarchy(*sizes: int) -> HierarchicalNodeParser:
    return HierarchicalNodeParser.from_defaults(chunk_sizes=list(sizes), chunk_overlap=0, include_metadata=False)


WAYS: dict[str, Callable[[Document], list[BaseNode]]] = {
    "sentences": lambda document: sentences()([document]),
    "overlapping": lambda document: sentences(60, 20)([document]),
    "headings": lambda document: MarkdownNodeParser()([document]),
    "tokens": lambda document: TokenTextSplitter(chunk_size=30, chunk_overlap=5)([document]),
    "twice": lambda document: sentences(12)(MarkdownNodeParser()([document])),
    "a part of twice": lambda document: sentences(12)(MarkdownNodeParser()([document]))[2:4],
    "without offsets": lambda document: WithoutOffsets()(sentences()([document])),
    "without offsets, with the document": lambda document: [document, *WithoutOffsets()(sentences()([document]))],
    "twice, with the document": lambda document: [document, *sentences()(MarkdownNodeParser()([document]))],
    "hierarchy": lambda document: hierarchy(120, 60, 30)([document]),
    "leaves": lambda document: get_leaf_nodes(hierarchy(120, 60, 30)([document])),
}
ALL_PLACED = ("sentences", "overlapping", "headings", "hierarchy")


def cut(nodes: list[BaseNode]) -> tuple[list[BaseNode], list[str]]:
    """The sections, and what is told."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = MultiViewNodeParser()(nodes)
    told = [str(warning.message) for warning in caught if warning.category is DrillrankWarning]
    return [node for node in made if node.metadata["drillrank_view"] == "raw"], told


def check(raw: list[BaseNode], told: list[str], text: str) -> None:
    lacking = [node for node in raw if node.start_char_idx is None]
    for node in raw:
        start, end = node.start_char_idx, node.end_char_idx
        assert (start, end) == (node.metadata.get("drillrank_start"), node.metadata.get("drillrank_end"))
        assert node in lacking or text[start:end] == node.text
    assert len(told) == bool(lacking)


@pytest.mark.parametrize("way", WAYS)
def test_offsets_are_those_of_the_document(way):
    raw, told = cut(WAYS[way](Document(text=BOOK, id_="book")))
    assert raw
    check(raw, told, BOOK)
    if way in ALL_PLACED or "with the document" in way:
        assert told == []
    if way in ("without offsets", "leaves", "twice", "a part of twice"):
        assert all(node.start_char_idx is None for node in raw)
        assert "'book'" in told[0]


WORDS = st.sampled_from(["fox", "hen", "owl", "the fox hunts", "a hen lays", "# Fox", "## Hen", ".", "\n", "\n\n"])


@pytest.mark.parametrize("way", [way for way in WAYS if way != "a part of twice"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(words=st.lists(WORDS, min_size=4, max_size=80))
@example(words=["# Fox"] * 5)
@example(words=["# Fox", "the fox hunts"] * 3)
def test_offsets_of_texts_that_repeat_themselves_are_right_or_missing(way, words):
    text = "# All\n\n" + " ".join(words) + "\n\nThe end."
    raw, told = cut(WAYS[way](Document(text=text, id_="book")))
    check(raw, told, text)


def test_a_pipeline_tells_of_each_document_once():
    parser = MultiViewNodeParser()
    pipeline = IngestionPipeline(
        transformations=[MarkdownNodeParser(), sentences(), WithoutOffsets(), parser], disable_cache=True
    )
    documents = [Document(text=BOOK, id_=f"book {number}") for number in range(2)]
    with pytest.warns(DrillrankWarning, match="of 2 documents") as told:
        pipeline.run(documents=documents)
    assert len(told) == 1
    pipeline.run(documents=documents)  # a second warning would be an error


def test_d3_reads_sections_without_offsets_and_gives_none():
    raw, _ = cut(WAYS["without offsets"](Document(text=BOOK, id_="book")))
    with pytest.warns(DrillrankWarning, match="do not say where"):
        retriever = D3Retriever(raw, top_n=50)
    found = retriever.retrieve(QUESTION)
    assert found
    assert {(hit.node.start_char_idx, hit.node.ref_doc_id) for hit in found} == {(None, "book")}
    whole = D3Retriever([Document(text=BOOK, id_="book")], top_n=50).retrieve(QUESTION)
    said = " ".join(node.text for node in raw)
    assert all(hit.text in said for hit in found)
    assert " ".join(found[0].text.split()) in " ".join(whole[0].text.split()) or found[0].text in BOOK
