from __future__ import annotations

import pickle
import uuid

import pytest
from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.ingestion.pipeline import get_transformation_hash
from llama_index.core.llms import MockLLM
from llama_index.core.schema import MetadataMode, NodeRelationship, TextNode
from llama_index.core.vector_stores.utils import node_to_metadata_dict

import drillrank.text
from llama_index_ext import MultiViewNodeParser
from tests.conformance.text_store import TextStore

BOOK = """Preface without a heading.

# Rivers

Rivers carry water.

## The Rhine

The Rhine flows through Basel.

## The Rhine

A second section of the same name, with the same first words: the Rhine flows through Basel.

# Towns

Basel is a town.
"""


def documents() -> list[Document]:
    return [
        Document(text=BOOK, id_="a", metadata={"source": "a.md"}, excluded_embed_metadata_keys=["source"]),
        Document(text=BOOK, id_="b", metadata={"source": "b.md"}),
    ]


def parsed(**fields):
    return MultiViewNodeParser(**fields).get_nodes_from_documents(documents())


def raw_of(nodes, document_id: str) -> list[TextNode]:
    return [node for node in nodes if node.metadata["drillrank_view"] == "raw" and node.ref_doc_id == document_id]


def test_ids_are_uuids():
    ids = [node.node_id for node in parsed()]
    assert all(str(uuid.UUID(id_)) == id_ for id_ in ids)


def test_a_user_s_id_func_is_honoured():
    nodes = parsed(id_func=lambda i, document: f"{document.id_}-{i}")
    assert [node.node_id for node in nodes][:3] == ["a-0", "a-1", "a-2"]
    assert len({node.node_id for node in nodes}) == len(nodes)
    targets = {node.node_id for node in nodes}
    assert all(node.metadata["drillrank_section_id"] in targets for node in nodes)


def test_neighbours_are_raw_and_of_the_same_document():
    nodes = parsed()
    by_id = {node.node_id: node for node in nodes}
    for document_id in ("a", "b"):
        raw = raw_of(nodes, document_id)
        chain = [raw[0].node_id]
        while following := by_id[chain[-1]].next_node:
            assert by_id[following.node_id].prev_node.node_id == chain[-1]
            chain.append(following.node_id)
        assert chain == [node.node_id for node in raw]
    for node in nodes:
        if node.metadata["drillrank_view"] != "raw":
            assert set(node.relationships) == {NodeRelationship.SOURCE}


def test_parents_and_children_follow_the_section_tree():
    raw = raw_of(parsed(), "a")
    preface, rivers, first, second, towns = raw
    assert rivers.child_nodes is not None
    assert [child.node_id for child in rivers.child_nodes] == [first.node_id, second.node_id]
    assert first.parent_node.node_id == second.parent_node.node_id == rivers.node_id
    assert [child.node_id for child in preface.child_nodes] == [rivers.node_id, towns.node_id]
    assert preface.parent_node is None


def test_relationships_can_be_switched_off():
    for node in parsed(include_prev_next_rel=False, include_metadata=False):
        assert node.prev_node is None
        assert node.next_node is None
        assert "source" not in node.metadata


def test_metadata_is_flat_and_does_not_reach_the_embedding():
    for node in parsed():
        node_to_metadata_dict(node, flat_metadata=True)
        assert node.metadata["source"] in ("a.md", "b.md")
        embedded = node.get_content(metadata_mode=MetadataMode.EMBED)
        assert embedded == (node.text if node.ref_doc_id == "a" else f"source: b.md\n\n{node.text}".strip())
        assert "drillrank_" not in node.get_content(metadata_mode=MetadataMode.LLM)


def test_configuration_round_trips():
    parser = MultiViewNodeParser.from_defaults(
        views=["raw", "summary"], settings={"separator": "/"}, include_metadata=False
    )
    for copy in (
        MultiViewNodeParser.from_dict(parser.to_dict()),
        MultiViewNodeParser.from_json(parser.to_json()),
        pickle.loads(pickle.dumps(parser)),
    ):
        assert copy.to_dict() == parser.to_dict()


def test_a_plain_retriever_returns_the_views():
    nodes = parsed()
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=8))
    assert len(index.as_retriever(similarity_top_k=99).retrieve("Basel?")) == len(nodes)


def test_an_index_lists_no_views_where_the_store_has_the_texts():
    """Some stores return only listed nodes."""
    index = VectorStoreIndex.from_vector_store(TextStore(), embed_model=MockEmbedding(embed_dim=8))
    index.insert_nodes(parsed())
    assert index.index_struct.nodes_dict == {}
    assert index.docstore.docs == {}


def test_show_progress_and_call(capsys):
    assert len(MultiViewNodeParser()(documents(), show_progress=True)) == len(parsed())
    assert "Parsing sections" in capsys.readouterr().err


def test_settings_reach_the_nodes_and_round_trip():
    parser = MultiViewNodeParser(chunking="paragraph", max_tokens=50, context=["headings", "keywords"])
    nodes = parser.get_nodes_from_documents(documents())
    assert MultiViewNodeParser.from_dict(parser.to_dict()).to_dict() == parser.to_dict()
    rhine = next(node for node in nodes if node.metadata["drillrank_view"] == "raw" and "A second section" in node.text)
    assert rhine.metadata["drillrank_context"].startswith("Rivers > The Rhine\n")
    assert "Rivers > The Rhine" in rhine.get_content(metadata_mode=MetadataMode.EMBED)
    assert "drillrank_" not in rhine.get_content(metadata_mode=MetadataMode.LLM)
    assert BOOK[rhine.start_char_idx : rhine.end_char_idx] == rhine.text
    for node in nodes:
        node_to_metadata_dict(node, flat_metadata=True)
        assert node.metadata["drillrank_view"] == "raw" or "drillrank_context" not in node.metadata


class Shout:
    def __call__(self, texts):
        return [text.upper() for text in texts]


def numbered(number, document):
    return f"{document.node_id}/{number}"


@pytest.mark.parametrize(("name", "value"), [("llm", MockLLM()), ("summarizer", Shout()), ("id_func", numbered)])
def test_what_does_not_survive_a_round_trip_is_refused_unless_it_is_given_again(name, value):
    parser = MultiViewNodeParser(**{name: value})
    for restore, stored in (
        (MultiViewNodeParser.from_dict, parser.to_dict()),
        (MultiViewNodeParser.from_json, parser.to_json()),
    ):
        with pytest.raises(ValueError, match=f"from_dict.data, {name}={name}"):
            restore(stored)
    assert getattr(MultiViewNodeParser.from_dict(parser.to_dict(), **{name: value}), name) is value
    assert getattr(MultiViewNodeParser.from_dict(parser.to_dict(), **{name: None}), name) is None
    hashes = [get_transformation_hash(documents(), made) for made in (parser, parser, MultiViewNodeParser())]
    assert hashes[0] == hashes[1] != hashes[2]


def words(text):
    return len(text.split())


def test_what_counts_tokens_is_given_again_after_a_round_trip():
    parser = MultiViewNodeParser(settings={"tokens": words, "separator": "/"})
    with pytest.raises(ValueError, match=r"from_dict.data, settings=settings.*words|words.*settings=settings"):
        MultiViewNodeParser.from_dict(parser.to_dict())
    restored = MultiViewNodeParser.from_dict(parser.to_dict(), settings=parser.settings)
    assert restored.settings == parser.settings


def test_a_name_of_what_counts_tokens_round_trips(monkeypatch):
    parser = MultiViewNodeParser(views=["raw"], chunking="fixed", max_tokens=9, settings={"tokens": words})
    nodes = parser.get_nodes_from_documents(documents())
    assert max(words(node.text) for node in nodes) == 9
    monkeypatch.setattr(drillrank.text, "_tiktoken", lambda spec: str.split)
    named = MultiViewNodeParser(
        views=["raw"], chunking="fixed", max_tokens=9, settings={"tokens": "tiktoken:cl100k_base"}
    )
    restored = MultiViewNodeParser.from_dict(named.to_dict())
    assert restored.settings.tokens == "tiktoken:cl100k_base"
    assert [node.text for node in restored.get_nodes_from_documents(documents())] == [node.text for node in nodes]
    with pytest.raises(ValueError, match="tokens"):
        MultiViewNodeParser(settings={"tokens": 3})
