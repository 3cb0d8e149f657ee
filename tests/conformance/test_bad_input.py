"""Arguments and questions that a component of either framework refuses: tables of calls with their messages."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from llama_index.core.schema import TextNode

from drillrank.coverage import Coverage
from drillrank.errors import InvalidInput, LacksCapability
from drillrank.evaluation.settings_file import keyword_arguments
from drillrank.structure.imported import Part, build_document
from tests.conformance.frameworks import COMPONENTS, LangChain, LlamaIndex, Nodes, both_frameworks

QUERY = "Who hunts mice?"
TEXT = "Foxes hunt mice at night."
BOOK = "# Foxes\n\nThey hunt mice.\n\n# Owls\n\nThey hoot at night."
NEURAL = ("MonoT5Rerank", "RelevanceRerank")
SPLITTERS = ("MultiViewNodeParser", "MultiViewTextSplitter")
RERANKERS = ("UPRRerank", "BRMGRRerank", "PromptRankRerank")
RETRIEVERS = ("D3Retriever", "MultiViewRetriever", "BRMGRRetriever", "PromptRankRetriever")
READ_RECORDS = [case for case in COMPONENTS if case.values[1] in (*RERANKERS, *RETRIEVERS)]
NAMES = {
    "SelfAsk": {LangChain: "SelfAskChain", LlamaIndex: "SelfAskQueryEngine"},
    "MultiViewSplitter": {LangChain: "MultiViewTextSplitter", LlamaIndex: "MultiViewNodeParser"},
}
ALMOST = {
    **dict.fromkeys(("SelfAskChain", "SelfAskQueryEngine"), "llm"),
    "MultiViewRetriever": "views",
    "LikelihoodCrossEncoder": "template",
}
SETTINGS = {
    **dict.fromkeys((*RERANKERS, *NEURAL), "min_share"),
    **dict.fromkeys(SPLITTERS, "workers"),
    "D3Retriever": "unit",
    "PromptRankRetriever": "hops",
}


def made(host, name, fields):
    """A component over one book; fields that are none of its arguments are its settings."""
    name = NAMES.get(name, {}).get(host, name)
    fields = {**({"model": "hf:no-such-model"} if name in NEURAL else {}), **fields}
    component = getattr(host.ext, name)
    return host.made(name, [host.document(BOOK, "book")], **keyword_arguments(component, fields))


# The names of components, what their message says, and the fields that each of them refuses.
ARGUMENTS = [
    *(
        (f"{' '.join(RERANKERS)} {' '.join(NEURAL)}", field, {field: value})
        for field, value in (("top_n", 0), ("top_n", -1), ("topn", 3), ("score", "cosine"))
    ),
    (" ".join(RERANKERS), "prior", {"prior": "uniform"}),
    (" ".join(RETRIEVERS), "top_n", *({"top_n": top_n} for top_n in (0, -1, -3))),
    ("D3Retriever", "top_n", {"top_n": "all"}),
    ("D3Retriever", "max_tokens", *({"max_tokens": limit} for limit in (0, -1))),
    ("D3Retriever", "template", *({"section_prompt": text} for text in ("no places", "{question} only"))),
    ("D3Retriever", "source", *({"source": source} for source in (5, "index"))),
    ("D3Retriever", "source", *({"source": source, "documents": []} for source in (5, "index"))),
    ("D3Retriever MultiViewRetriever", "'minilm' is not an encoder", {"embed": "minilm"}),
    ("D3Retriever MultiViewRetriever", "'no/such/folder' must have the files", {"embed": "onnx:no/such/folder"}),
    ("PromptRankRerank PromptRankRetriever", "embed", *({"embed": embed} for embed in (5, "openai"))),
    ("BRMGRRerank BRMGRRetriever", "guard", {"guard": 2}),
    ("BRMGRRerank BRMGRRetriever", "generated_share", {"generated_share": -1}),
    ("BRMGRRerank BRMGRRetriever", "first", {"first": "best"}),
    ("BRMGRRerank", "preset", {"preset": "rankify"}),
    ("BRMGRRerank", "top_n", {"top_n": Coverage(0.9, 1.0)}),
    ("BRMGRRetriever", "n_generated", {"n_generated": 0}),
    ("BRMGRRetriever", "workers", {"workers": 0}),
    ("BRMGRRetriever", "Templates must be a non-empty list of strings, got", {"prompts": []}, {"prompts": "x"}),
    ("BRMGRRetriever", r"A template must contain \{question\}, got 'none'", {"prompts": ["none"]}),
    ("BRMGRRetriever", "temperature must be a finite number above 0, got 0", {"settings": {"temperature": 0}}),
    (
        "UPRRerank",
        "min_share must be a number above 0 and at most 1, got",
        *({"settings": {"min_share": share}} for share in (0, -0.1, 1.5, "0.1", True, float("nan"))),
    ),
    ("UPRRerank", r"drillrank tune QUESTIONS CORPUS --coverage 0\.9", {"top_n": Coverage(0.9)}),
    ("MonoT5Rerank", r"got 'unigram'\. Use a neural", {"model": "unigram"}, {"model": "unigram", "top_n": 2}),
    ("MultiViewRetriever", "source", *({"source": source} for source in ("store", {}, {"title": None}))),
    ("MultiViewRetriever", "expand", {"expand": "all"}),
    ("MultiViewRetriever", "weight", {"weights": {"raw": -1.0}}),
    ("MultiViewRetriever", "views", *({"views": views} for views in ((), ("title",)))),
    ("MultiViewRetriever", "merge", {"merge": "sum"}),
    ("MultiViewSplitter", "views", *({"views": views} for views in ([], ["raw", "title"], "raw"))),
    (
        "MultiViewSplitter",
        "max_tokens",
        *({"chunking": "fixed", "max_tokens": None}, {"max_tokens": 0}, {"max_tokens": 5, "min_tokens": 6}),
    ),
    ("MultiViewSplitter", "context", {"context": ["title"]}),
    ("MultiViewSplitter", "workers", {"settings": {"workers": 0}}),
    ("MultiViewSplitter", "tokens", {"settings": {"tokens": 3}}),
    (
        "MultiViewSplitter",
        "namespace",
        *({"namespace": " "}, {"namespace_key": ""}, {"namespace": "a", "namespace_key": "b"}),
    ),
    ("PromptRankRerank", "links", *({"links": links} for links in (("title",), ("retrieval",), "titles"))),
    ("PromptRankRerank PromptRankRetriever", "unigram", {"preset": "paper"}),
    ("PromptRankRerank PromptRankRetriever", "preset", {"preset": "report"}),
    ("PromptRankRetriever", "hop", {"hop": 3}),
    ("PromptRankRetriever", "hops", {"settings": {"hops": 0}}),
    ("PromptRankRetriever", "title", {"links": ["title"]}),
    ("PromptRankRetriever", r'prior must be "retrieval" or None .* knows the order', {"prior": "cosine"}),
    ("SelfAsk", "max_steps", {"max_steps": 0}),
    ("SelfAsk", "prompt", {"prompt": "no places"}),
    ("PromptRankRerank PromptRankRetriever SelfAsk BRMGRRetriever", "filters", {"filters": 7}, {"filters": "tenant"}),
    (
        "PromptRankRerank PromptRankRetriever SelfAsk BRMGRRetriever MultiViewRetriever",
        "near",
        {"filters": {"tenant": {"$near": "a"}}},
    ),
    ("MultiViewRetriever", "filter", {"filters": "tenant"}),
    ("SupportEvaluator", "language must be one of", {"language": "klingon"}),
]
REFUSED = [
    pytest.param(name, fields, message, id=f"{name}-{fields!r:.60}")
    for names, message, *refused in ARGUMENTS
    for name in names.split()
    for fields in refused
]


@both_frameworks
@pytest.mark.parametrize(("name", "fields", "message"), REFUSED)
def test_an_argument_that_cannot_be_used_is_refused_when_a_component_is_built(host, name, fields, message):
    with pytest.raises(InvalidInput, match=message):
        made(host, name, fields)


# Arguments that need records, and arguments of one framework.
RECORDS = {
    "PromptRankRetriever, two documents of one id": (
        lambda host: made(host, "PromptRankRetriever", {"documents": [host.record(TEXT, "fox")] * 2}),
        "share the id",
    ),
    "MultiViewRetriever, no raw records": (
        lambda host: host.ext.MultiViewRetriever(
            [record for record in host.sections(("book", BOOK)) if record.metadata["drillrank_view"] != "raw"]
        ),
        "raw",
    ),
    "D3Retriever, documents of another tool": (lambda host: host.ext.D3Retriever([parsed()]), "another tool"),
    "MultiViewSplitter, documents of another tool": (lambda host: host.split([parsed()]), "another tool"),
    "D3Retriever, nothing to search": (
        lambda host: host.ext.D3Retriever(),
        r"D3Retriever has nothing to search\. Pass documents or a source",
    ),
    "MultiViewRetriever, nothing to search": (
        lambda host: host.ext.MultiViewRetriever(),
        r"MultiViewRetriever has nothing to search\. Pass documents or a source",
    ),
    "MultiViewRetriever, embed next to a store": (
        lambda host: host.ext.MultiViewRetriever(source=host.index(*host.sections(("book", BOOK))), embed=len),
        "^embed",
    ),
    "MonoT5Rerank, no model": (lambda host: host.ext.MonoT5Rerank(top_n=3), "needs model: A neural model"),
    **{
        f"{name}, {what}": (
            lambda host, name=name, scores=scores: host.rerank(
                getattr(host.ext, name)(prior="cosine"), QUERY, *(host.hit(host.record(TEXT), one) for one in scores)
            ),
            message,
        )
        for name in RERANKERS
        for what, scores, message in (
            ("a score that is not a cosine", [0.5, 17.5], r'must be a cosine, .* got 17\.5\. Set prior="retrieval"'),
            ("no cosines", [None, None], "needs the cosine"),
        )
    },
}


def parsed():
    return build_document([Part("heading", "Sea"), Part("paragraph", "Deep.")])


@both_frameworks
@pytest.mark.parametrize("case", RECORDS)
def test_records_that_cannot_be_used_are_refused(host, case):
    call, message = RECORDS[case]
    with pytest.raises(InvalidInput, match=message):
        call(host)


@both_frameworks
@pytest.mark.parametrize("metadata", [{}, {"tenant": None}, {"tenant": " "}, {"tenant": ["a"]}, {"tenant": True}])
def test_a_splitter_names_a_document_without_a_namespace(host, metadata):
    documents = [host.document(BOOK, "other", tenant="a"), host.document(BOOK, "guide", **metadata)]
    with pytest.raises(InvalidInput, match=r"'guide' has .* under 'tenant'"):
        host.split(documents, namespace_key="tenant")


@both_frameworks
def test_a_reranker_without_a_prefix_cache_computes_none_in_advance(host):
    with pytest.raises(LacksCapability, match="no prefix cache"):
        host.ext.UPRRerank().precompute([host.record(TEXT)])


# All components


@pytest.mark.parametrize(("host", "name"), COMPONENTS)
def test_a_misspelled_argument_gets_a_suggestion(host, name):
    right = ALMOST.get(name, "settings")
    with pytest.raises(InvalidInput, match=f"^{name} has no argument '{right}s'; did you mean '{right}'\\?$"):
        getattr(host.ext, name)(**{f"{right}s": 1})


@pytest.mark.parametrize(("host", "name"), [case for case in COMPONENTS if case.values[1] in SETTINGS])
def test_a_setting_among_the_arguments_is_sent_to_the_settings(host, name):
    with pytest.raises(InvalidInput, match=f"{SETTINGS[name]} of {name} is one of its settings: give settings="):
        getattr(host.ext, name)(**{SETTINGS[name]: 1})


@pytest.mark.parametrize(("host", "name"), COMPONENTS)
def test_too_many_positional_arguments_are_refused(host, name):
    with pytest.raises(InvalidInput, match=f"^{name} takes at most \\d positional arguments, got 9"):
        getattr(host.ext, name)(*range(9))


@both_frameworks
@pytest.mark.parametrize("name", ["PromptRankRetriever", "BRMGRRetriever"])
def test_a_missing_source_is_named(host, name):
    with pytest.raises(InvalidInput, match=f"^{name} needs source"):
        getattr(host.ext, name)()


@both_frameworks
@pytest.mark.parametrize("name", [*RETRIEVERS, "SelfAsk"])
def test_a_source_of_another_kind_is_told_what_it_may_be(host, name):
    store = "VectorStore" if host is LangChain else "VectorStoreIndex"
    with pytest.raises(InvalidInput, match=f"source must be a retriever, a {store} or a RecordStore, got a int"):
        made(host, name, {"source": 7})


@pytest.mark.parametrize(("host", "name"), READ_RECORDS)
def test_a_record_without_text_is_refused(host, name):
    kind = TextNode if host is LlamaIndex else Document
    broken = kind.model_construct(**{"text" if host is LlamaIndex else "page_content": None})
    broken.metadata = {}
    if name in RERANKERS:
        ask = lambda: host.rerank(getattr(host.ext, name)(), QUERY, broken)  # noqa: E731
    elif name in ("D3Retriever", "MultiViewRetriever"):
        ask = lambda: host.retrieve(getattr(host.ext, name)([broken]), QUERY)  # noqa: E731
    else:
        source = Nodes([broken]) if host is LlamaIndex else RunnableLambda(lambda query: [broken])
        fields = {"llm": host.llm(["Foxes."])} if name == "BRMGRRetriever" else {}
        ask = lambda: host.retrieve(getattr(host.ext, name)(source=source, **fields), QUERY)  # noqa: E731
    with pytest.raises(InvalidInput, match=f"^The text of a {kind.__name__} must be a string, got a NoneType"):
        ask()


@pytest.mark.parametrize("question", ["", " \n\t"])
@pytest.mark.parametrize(("host", "name"), [case for case in COMPONENTS if case.values[1] not in (*SPLITTERS, *NEURAL)])
def test_a_blank_question_is_refused(host, name, question):
    if name == "LikelihoodCrossEncoder":
        ask = lambda: host.ext.LikelihoodCrossEncoder().score([(question, TEXT)])  # noqa: E731
    elif name in RERANKERS:
        ask = lambda: host.rerank(getattr(host.ext, name)(), question, host.record(TEXT))  # noqa: E731
    else:
        answer = host.retrieve if name in RETRIEVERS else host.answer
        ask = lambda: answer(host.made(name, [host.document(BOOK, "a")]), question)  # noqa: E731
    with pytest.raises(InvalidInput, match="A query must be a string that is not blank"):
        ask()
