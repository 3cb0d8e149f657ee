"""A fitted model survives every round trip of every component that takes one, or is refused."""

from __future__ import annotations

import pickle

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import ConfigurableField
from llama_index.core.schema import NodeWithScore, TextNode

import langchain_ext
import llama_index_ext
from drillrank.errors import InvalidInput
from drillrank.likelihood import UnigramModel

TEXTS = ["Basel lies on the Rhine.", "Zurich lies on a lake.", "A cat sat on the Rhine's bank."]
QUERY = "What lies on the Rhine?"
RERANKERS = ["UPRRerank", "BRMGRRerank", "PromptRankRerank"]
RETRIEVERS = ["D3Retriever", "BRMGRRetriever", "PromptRankRetriever"]


def fitted():
    return UnigramModel(50).fit(["the Rhine"] * 3 + ["Rhine number " + str(i) for i in range(50)])


@pytest.fixture
def saved(tmp_path):
    return fitted().save(tmp_path)


def of_langchain(component):
    documents = [Document(page_content=text, id=str(i)) for i, text in enumerate(TEXTS)]
    is_retriever = hasattr(component, "invoke")
    found = component.invoke(QUERY) if is_retriever else component.compress_documents(documents, QUERY)
    return [(document.page_content, document.metadata["relevance_score"]) for document in found]


def of_llama_index(component):
    nodes = [NodeWithScore(node=TextNode(text=text, id_=str(i))) for i, text in enumerate(TEXTS)]
    return [(item.node.text, item.score) for item in component.postprocess_nodes(nodes, query_str=QUERY)]


def retriever(name, **fields):
    documents = [Document(page_content=text, id=str(i)) for i, text in enumerate(TEXTS)]
    if name == "D3Retriever":
        return langchain_ext.D3Retriever(documents=documents, **fields)
    fields["source"] = langchain_ext.D3Retriever(documents=documents, top_n=9)
    if name == "BRMGRRetriever":
        fields |= {"llm": FakeListChatModel(responses=["The Rhine."]), "n_generated": 1}
    return getattr(langchain_ext, name)(**fields)


@pytest.mark.parametrize("name", RERANKERS)
@pytest.mark.parametrize("host", [langchain_ext, llama_index_ext], ids=lambda host: host.__name__)
def test_rerankers(host, name, saved):
    cls = getattr(host, name)
    outcome = of_langchain if host is langchain_ext else of_llama_index
    expected = outcome(cls(fitted()))
    assert outcome(cls()) != expected
    component = cls(saved)
    copies = [component, cls(**component.model_dump()), cls.model_validate_json(component.model_dump_json())]
    copies += [pickle.loads(pickle.dumps(component)), component.model_copy(), component.model_copy(deep=True)]
    if host is llama_index_ext:
        copies += [cls.from_dict(component.to_dict()), cls.from_json(component.to_json())]
    for copy in copies:
        assert copy.model == saved
        assert outcome(copy) == [(text, pytest.approx(score)) for text, score in expected]
    ready = cls(fitted())
    for copy in (pickle.loads(pickle.dumps(ready)), ready.model_copy(), ready.model_copy(deep=True)):
        assert outcome(copy) == expected
    with pytest.raises(InvalidInput, match="save"):
        cls(**ready.model_dump())
    with pytest.raises(ValueError, match="save"):  # the host's own, around ours
        cls.model_validate(ready.model_dump())


@pytest.mark.parametrize("name", RETRIEVERS)
def test_configurable_retrievers(name, saved):
    expected = of_langchain(retriever(name, model=fitted(), top_n=2))
    configurable = retriever(name, model=saved).configurable_fields(top_n=ConfigurableField(id="top_n"))
    chosen = configurable.with_config(configurable={"top_n": 2})
    assert of_langchain(chosen) == [(text, pytest.approx(score)) for text, score in expected]
    again = retriever(name, model=fitted()).configurable_fields(top_n=ConfigurableField(id="top_n"))
    assert of_langchain(again.with_config(configurable={"top_n": 2})) == expected


def built(monkeypatch):
    """Counts what is indexed: texts given to TF-IDF, BM25 and levels, and collections fitted."""
    from drillrank import vectors
    from drillrank.drilldown.levels import LevelIndex
    from drillrank.likelihood.unigram import Collection

    indexed = []

    def counted(cls, position):
        make = cls.__init__

        def init(self, *args, **kwargs):
            indexed.append((cls.__name__, args[position] if args else kwargs))
            make(self, *args, **kwargs)

        monkeypatch.setattr(cls, "__init__", init)

    for cls in (vectors.TfidfIndex, vectors.BM25Index, LevelIndex):
        counted(cls, 0)
    of = Collection.of
    monkeypatch.setattr(
        Collection, "of", lambda texts, *rest: indexed.append(("Collection", texts)) or of(texts, *rest)
    )
    return indexed


def over_documents(name, documents):
    if name == "PromptRankRetriever":
        first = langchain_ext.D3Retriever(documents=[Document(page_content="Basel")], top_n=1)
        return langchain_ext.PromptRankRetriever(source=first, documents=documents)
    if name == "MultiViewRetriever":
        return langchain_ext.MultiViewRetriever(
            documents=langchain_ext.MultiViewTextSplitter().split_documents(documents)
        )
    return langchain_ext.D3Retriever(documents=documents)


@pytest.mark.parametrize("name", ["D3Retriever", "PromptRankRetriever", "MultiViewRetriever"])
def test_a_setting_of_one_call_does_not_index_the_documents_again(name, monkeypatch):
    documents = [Document(page_content=f"# {text}\n\n{text}", id=str(i)) for i, text in enumerate(TEXTS)]
    component = over_documents(name, documents)
    expected = [document.page_content for document in component.invoke(QUERY)][:1]
    configurable = component.configurable_fields(top_n=ConfigurableField(id="top_n"))
    indexed = built(monkeypatch)
    found = configurable.with_config(configurable={"top_n": 1}).invoke(QUERY)
    assert [document.page_content for document in found] == expected
    corpus = {text for document in documents for text in document.page_content.splitlines() if text}
    assert not [texts for _, texts in indexed if corpus <= set(map(str, texts))]
    assert not [kind for kind, _ in indexed if kind != "Collection"]
    documents[0].page_content = "# Changed\n\nWhat lies on the Rhine is Basel."
    changed = over_documents(name, documents)
    assert indexed
    assert pickle.loads(pickle.dumps(changed)).invoke(QUERY) == changed.invoke(QUERY)
