"""Every component of both frameworks is built, refused and shown alike."""

from __future__ import annotations

import copy
import json

import pytest
from langchain_core.vectorstores import InMemoryVectorStore

from tests.conformance.frameworks import COMPONENTS, DocumentEmbeddings, LangChain, LlamaIndex, both_frameworks

CANARY = "wombat"
NEURAL = ("MonoT5Rerank", "RelevanceRerank")


@pytest.mark.parametrize(("host", "name"), COMPONENTS)
def test_a_repr_is_short_and_has_no_document_text(host, name):
    fields = {"model": "hf:no-such-model"} if name in NEURAL else {}
    shown = repr(host.made(name, [host.document(f"# Fur\n\nThe {CANARY} sleeps.", "a")], **fields))
    assert shown.startswith(f"{name}(")
    assert len(shown) < 200
    assert CANARY not in shown
    assert " at 0x" not in shown


@both_frameworks
def test_a_repr_names_what_differs_from_the_defaults(host):
    reranker = host.ext.UPRRerank(top_n=7, settings={"min_share": 0.2})
    assert repr(reranker) == "UPRRerank(top_n=7, settings=RerankSettings(min_share=0.2))"
    retriever = host.ext.D3Retriever([host.document("A text.")] * 2, max_tokens=90)
    kind = type(host.document("A text.")).__name__
    assert repr(retriever) == f"D3Retriever(documents=<2 {kind}>, max_tokens=90)"


def test_a_repr_names_live_objects_by_type_and_mappings_by_key():
    store = InMemoryVectorStore(DocumentEmbeddings())
    retriever = LangChain.ext.MultiViewRetriever(source=store, filters={"tenant": CANARY})
    assert repr(retriever) == "MultiViewRetriever(source=<InMemoryVectorStore>, filters={'tenant': ...})"


@pytest.mark.parametrize(("host", "name"), COMPONENTS)
@pytest.mark.parametrize("mode", ["validation", "serialization"])
def test_a_json_schema_shows_live_objects_as_opaque(host, name, mode):
    cls = getattr(host.ext, name)
    if not hasattr(cls, "model_json_schema"):
        pytest.skip("no pydantic component")
    schema = cls.model_json_schema(mode=mode)
    assert json.loads(json.dumps(schema)) == schema
    if mode == "validation":
        assert set(schema["properties"]) >= set(cls.model_fields) - {"name"}
        model = schema["properties"].get("model", {})
        assert not model or {"type": "object", "title": "LanguageModel"} in model["anyOf"]


def test_dataclass_components_are_copied_and_subclassed():
    class Mine(LlamaIndex.ext.D3Retriever):
        def __init__(self, label):
            super().__init__([LlamaIndex.document("A text.")], top_n=1)
            self.label = label

    mine = copy.copy(Mine("x"))
    assert (mine.label, repr(mine)) == ("x", "Mine(documents=<1 Document>, top_n=1)")
    assert len(mine.retrieve("Which text?")) == 1
