"""D3Retriever over nodes whose offsets are not those of their document: of the host's hierarchical parser, or none."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import Document, MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.node_parser import HierarchicalNodeParser, get_leaf_nodes
from llama_index.core.retrievers import AutoMergingRetriever, BaseRetriever
from llama_index.core.schema import BaseNode, NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

from drillrank.errors import DrillrankWarning
from llama_index_ext import D3Retriever
from tests.examples import examples

PARTS = [
    f"## Lake {number}\n\nThe lake of number {number} has {number * 7} fish and {number * 3} boats at its port.\n\n"
    f"On its shore stand {number} towns, each with a market.\n\n"
    for number in range(30)
]
DOCUMENT = Document(text="# Lakes\n\nOf many kinds.\n\n" + "".join(PARTS), id_="lakes")
QUESTION = "How many fish has the lake of number 7?"
EMBEDDING = MockEmbedding(embed_dim=4)


def cut(*sizes: int) -> list[BaseNode]:
    parser = HierarchicalNodeParser.from_defaults(chunk_sizes=list(sizes), chunk_overlap=0)
    return parser.get_nodes_from_documents([DOCUMENT])


def indexed(nodes: list[BaseNode], leaves: list[BaseNode]) -> tuple[VectorStoreIndex, StorageContext]:
    storage = StorageContext.from_defaults()
    storage.docstore.add_documents(nodes)
    return VectorStoreIndex(leaves, storage_context=storage, embed_model=EMBEDDING), storage


def check(found: list[NodeWithScore], *, placed: bool) -> None:
    assert found
    contents = [(hit.node.get_content(), hit.node.start_char_idx) for hit in found]
    assert len({text for text, _ in contents}) == len(contents), "each paragraph once"
    for text, start in contents:
        assert (start is not None) == placed
        assert start is None or DOCUMENT.text[start : start + len(text)] == text


@settings(max_examples=examples(10), deadline=None)
@given(st.sampled_from([(512, 128), (512, 128, 48), (256, 64), (4096, 96, 40)]))
def test_nodes_of_all_levels_are_one_document(sizes):
    nodes = cut(*sizes)
    assert any(node.parent_node for node in nodes)
    check(D3Retriever(nodes, top_n=9).retrieve(QUESTION), placed=True)


def test_all_levels_in_one_index():
    check(
        D3Retriever(source=VectorStoreIndex(cut(512, 128, 48), embed_model=EMBEDDING), top_n=9).retrieve(QUESTION),
        placed=True,
    )


async def test_leaves_alone_do_not_say_where_they_stand():
    nodes = cut(512, 128, 48)
    index, _ = indexed(nodes, get_leaf_nodes(nodes))
    retriever = D3Retriever(source=index, top_n=9)
    with pytest.warns(DrillrankWarning, match="do not say where") as told:
        found = retriever.retrieve(QUESTION)
    assert len(told) == 1
    check(found, placed=False)
    assert [hit.node for hit in await retriever.aretrieve(QUESTION)] == [hit.node for hit in found]


@pytest.mark.parametrize("lent", ["original", "nodes"])
@pytest.mark.parametrize("merging", [False, True])
def test_leaves_are_placed_by_what_is_given(lent, merging):
    nodes = cut(512, 128, 48)
    index, storage = indexed(nodes, get_leaf_nodes(nodes))
    source: VectorStoreIndex | BaseRetriever = index
    if merging:
        source = AutoMergingRetriever(index.as_retriever(similarity_top_k=12), storage, simple_ratio_thresh=0.4)
    given = [DOCUMENT] if lent == "original" else nodes
    check(D3Retriever(given, source=source, top_n=9).retrieve(QUESTION), placed=True)


def test_parents_in_a_circle_say_nothing():
    first, second = (TextNode(text=f"A fish of {i}.", id_=str(i), start_char_idx=0, end_char_idx=12) for i in range(2))
    for node, parent in ((first, second), (second, first)):
        node.relationships = {
            NodeRelationship.SOURCE: RelatedNodeInfo(node_id="lakes"),
            NodeRelationship.PARENT: RelatedNodeInfo(node_id=parent.node_id),
        }
    with pytest.warns(DrillrankWarning, match="do not say where"):
        found = D3Retriever([first, second], top_n=2).retrieve("fish")
    assert [hit.node.start_char_idx for hit in found] == [None, None]


PARAGRAPHS: Any = {"settings": {"unit": "paragraph"}}


@pytest.mark.parametrize("indexes", [False, True])
def test_a_single_chunk_without_an_offset_is_not_taken_for_its_document(indexes):
    chunk = TextNode(
        text="A fish is a fish.\n\nA boat is none.",
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="lakes")},
    )
    source = VectorStoreIndex([chunk], embed_model=EMBEDDING) if indexes else None
    with pytest.warns(DrillrankWarning, match="do not say where"):
        found = D3Retriever([] if indexes else [chunk], source=source, **PARAGRAPHS).retrieve("fish or boat?")
    assert {hit.node.get_content() for hit in found} == {"A fish is a fish.", "A boat is none."}
    assert {(hit.node.start_char_idx, hit.node.end_char_idx) for hit in found} == {(None, None)}
    assert len({hit.node.node_id for hit in found}) == 2
