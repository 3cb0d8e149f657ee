"""A fitted model survives every round trip of every component that takes one, or is refused."""

from __future__ import annotations

import pickle

import pytest
from langchain_core.runnables import ConfigurableField

from drillrank import vectors
from drillrank.drilldown.question_terms import LevelIndex
from drillrank.errors import InvalidInput
from drillrank.likelihood import UnigramModel
from drillrank.likelihood.unigram import CollectionModel
from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks

TEXTS = ["Basel lies on the Rhine.", "Zurich lies on a lake.", "A cat sat on the Rhine's bank."]
QUERY = "What lies on the Rhine?"


def fitted():
    return UnigramModel(50).fit(["the Rhine"] * 3 + ["Rhine number " + str(i) for i in range(50)])


@pytest.fixture
def saved(tmp_path):
    return fitted().save(tmp_path)


def outcome(found):
    return [(one.text, pytest.approx(one.score)) for one in found]


@both_frameworks
@pytest.mark.parametrize("name", ["UPRRerank", "BRMGRRerank", "PromptRankRerank"])
def test_rerankers(host, name, saved):
    cls, records = getattr(host.ext, name), [host.record(text, str(i)) for i, text in enumerate(TEXTS)]

    def ranked(component):
        return outcome(host.rerank(component, QUERY, *records))

    expected = ranked(cls(fitted()))
    assert ranked(cls()) != expected
    component, ready = cls(saved), cls(fitted())
    copies = [cls(**component.model_dump()), cls.model_validate_json(component.model_dump_json())]
    if host is LlamaIndex:
        copies += [cls.from_dict(component.to_dict()), cls.from_json(component.to_json())]
    for made in (component, ready):
        copies += [made, pickle.loads(pickle.dumps(made)), made.model_copy(), made.model_copy(deep=True)]
    for copy in copies:
        assert copy.model == saved or isinstance(copy.model, UnigramModel)
        assert ranked(copy) == expected
    with pytest.raises(InvalidInput, match="save"):
        cls(**ready.model_dump())
    with pytest.raises(ValueError, match="save"):  # the host's own, around ours
        cls.model_validate(ready.model_dump())


DOCUMENTS = [LangChain.document(text, str(i)) for i, text in enumerate(TEXTS)]


@pytest.mark.parametrize("name", ["D3Retriever", "BRMGRRetriever", "PromptRankRetriever"])
def test_configurable_retrievers(name, saved):
    expected = outcome(LangChain.retrieve(LangChain.made(name, DOCUMENTS, model=fitted(), top_n=2), QUERY))
    for model in (saved, fitted()):
        made = LangChain.made(name, DOCUMENTS, model=model).configurable_fields(top_n=ConfigurableField(id="top_n"))
        assert outcome(LangChain.retrieve(made.with_config(configurable={"top_n": 2}), QUERY)) == expected


@pytest.fixture
def indexed(monkeypatch):
    """What is indexed: texts given to TF-IDF, BM25 and levels, and collections fitted."""
    found = []

    def counted(cls):
        make = cls.__init__

        def init(self, *args, **kwargs):
            found.append((cls.__name__, args[0] if args else kwargs))
            make(self, *args, **kwargs)

        monkeypatch.setattr(cls, "__init__", init)

    for cls in (vectors.TfidfIndex, vectors.BM25Index, LevelIndex):
        counted(cls)
    of = CollectionModel.of
    monkeypatch.setattr(
        CollectionModel, "of", lambda texts, *rest: found.append(("Collection", texts)) or of(texts, *rest)
    )
    return found


@pytest.mark.parametrize("name", ["D3Retriever", "PromptRankRetriever", "MultiViewRetriever"])
def test_a_setting_of_one_call_does_not_index_the_documents_again(name, indexed):
    documents = [LangChain.document(f"# {text}\n\n{text}", str(i)) for i, text in enumerate(TEXTS)]
    first = LangChain.ext.D3Retriever([LangChain.document("Basel")], top_n=1)
    fields = {"source": first, "documents": documents} if name == "PromptRankRetriever" else {}
    component = LangChain.made(name, documents, **fields)
    expected = [document.page_content for document in component.invoke(QUERY)][:1]
    configurable = component.configurable_fields(top_n=ConfigurableField(id="top_n"))
    indexed.clear()
    found = configurable.with_config(configurable={"top_n": 1}).invoke(QUERY)
    assert [document.page_content for document in found] == expected
    corpus = {text for document in documents for text in document.page_content.splitlines() if text}
    assert not [texts for _, texts in indexed if corpus <= set(map(str, texts))]
    assert not [kind for kind, _ in indexed if kind != "Collection"]
    documents[0].page_content = "# Changed\n\nWhat lies on the Rhine is Basel."
    changed = LangChain.made(name, documents, **fields)
    assert indexed
    assert pickle.loads(pickle.dumps(changed)).invoke(QUERY) == changed.invoke(QUERY)
