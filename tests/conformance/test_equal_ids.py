"""Given documents of two tenants may have equal ids: a filter decides first, and only what it shows may not clash."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank import load_language_model
from drillrank.errors import InvalidInput
from tests.conformance.frameworks import LangChain, both_frameworks
from tests.examples import examples

QUESTION = "What is the code of the harbour door?"
SECRET = "9876"
TEXTS = {
    "a": "# Doors\n\nThe code of the harbour is 1234.\n",
    "b": f"# Doors\n\nThe code of the harbour is {SECRET}.\n",
}


def mine(record):
    return record.metadata["tenant"] == "a"


def documents(host, tenants="ba", kind="document"):
    return [getattr(host, kind)(TEXTS[one], "guide", tenant=one, title="Doors") for one in tenants]


def one_by_one(host, tenants):
    """Cut apart, so that sections of two tenants have one id."""
    return [piece for document in documents(host, tenants) for piece in host.split([document])]


def summaries(host):
    """Views of tenant a's sections, in a store that nobody can ask for the sections."""
    views = [piece for piece in one_by_one(host, "a") if piece.metadata["drillrank_view"] == "summary"]
    return host.finds(lambda question: views)


def paths(host, tenants="ba", store=False, source_filter=None, **fields):
    ours = documents(host, "a", "record")
    source = host.over(host.index(*ours), **(source_filter or {})) if store else host.finds(lambda question: ours)
    return host.ext.PromptRankRetriever(source=source, documents=documents(host, tenants, "record"), **fields)


BUILD = {
    "d3": lambda host, filters: host.ext.D3Retriever(documents(host), filters=filters),
    "d3 over sections": lambda host, filters: host.ext.D3Retriever(one_by_one(host, "ba"), filters=filters),
    "views": lambda host, filters: host.ext.MultiViewRetriever(one_by_one(host, "ba"), filters=filters),
    "views lent": lambda host, filters: host.ext.MultiViewRetriever(
        one_by_one(host, "ab"), source=summaries(host), filters=filters
    ),
    "paths": lambda host, filters: paths(host, filters=filters),
    "paths behind a store": lambda host, filters: paths(host, store=True, filters=filters),
}


@both_frameworks
@pytest.mark.parametrize("build", BUILD.values(), ids=BUILD)
def test_the_one_that_the_filter_shows_is_seen(host, build):
    for filters in (host.filters(tenant="a"), mine):
        found = host.both(build(host, filters), QUESTION)
        assert any("1234" in one.text for one in found)
        assert SECRET not in repr(found)


@both_frameworks
def test_components_that_share_documents_do_not_share_what_their_filters_show(host):
    given = documents(host)
    retrievers = [host.ext.D3Retriever(given, filters=host.filters(tenant=tenant), top_n=9) for tenant in ("a", "b")]
    shown = [[one.metadata["tenant"] for one in host.retrieve(made, QUESTION)] for made in retrievers * 2]
    assert shown == [["a"], ["b"]] * 2


@both_frameworks
def test_the_filter_of_the_source_decides_as_well(host):
    found = host.retrieve(paths(host, store=True, source_filter={"tenant": "a"}), QUESTION)
    assert [one.text for one in found] == [TEXTS["a"]]


@both_frameworks
def test_who_asks_may_change_from_question_to_question(host):
    """One component for both tenants: what it has prepared for one is not shown to the other."""
    asking = ["a"]
    retriever = host.ext.PromptRankRetriever(
        source=host.finds(lambda question: [host.record("See the Doors.", "start", title="Start", tenant=asking[0])]),
        documents=documents(host, kind="record"),
        links=("titles",),
        filters=lambda record: record.metadata["tenant"] == asking[0],
    )
    for tenant in "abab":
        asking[0] = tenant
        assert {one.text for one in host.retrieve(retriever, QUESTION)} == {"See the Doors.", TEXTS[tenant]}


@both_frameworks
@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda host, filters: paths(host, "aba", filters=filters), "share the id 'guide'"),
        (
            lambda host, filters: host.ext.MultiViewRetriever(one_by_one(host, "aba"), filters=filters),
            "different texts",
        ),
    ],
    ids=["paths", "views"],
)
def test_a_clash_of_what_may_be_seen_is_refused_and_shows_no_text(host, build, said):
    for filters in (None, lambda record: True):
        with pytest.raises(InvalidInput, match=said) as caught:
            host.retrieve(build(host, filters), QUESTION)
        assert not any(text in str(caught.value) for text in (SECRET, "1234", "Doors"))
    if said == "different texts":  # the same twice is one section, but two documents
        assert "1234" in host.retrieve(build(host, mine), QUESTION)[0].text
    else:
        with pytest.raises(InvalidInput, match=said):
            host.retrieve(build(host, mine), QUESTION)


records = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from(["1", "2", "3"]),
        st.sampled_from(["The Pier", "Ada Holm", "Esbjerg"]),
        st.sampled_from(["The Pier", "Ada Holm lives in Esbjerg", "[x](s1.md)", "nothing"]),
        st.sampled_from(["1", "2,3", ""]),
    ),
    max_size=5,
    unique_by=lambda record: record[:2],
)
WORDS = load_language_model("unigram").fit(["The Pier", "Ada Holm lives in Esbjerg"])


@pytest.mark.filterwarnings("ignore::drillrank.errors.DrillrankWarning")
@pytest.mark.parametrize("name", ["PromptRankRetriever", "MultiViewRetriever", "D3Retriever"])
def test_records_of_two_stores_under_one_id_are_two(name):  # of which LlamaIndex itself drops one
    texts = [f"{name} {id_} costs 10 euros." for id_ in "12" for name in ("Alpha", "Beta")]
    source = LangChain.finds(lambda question: [LangChain.record(text, text.split()[1]) for text in texts])
    found = LangChain.retrieve(getattr(LangChain.ext, name)(source=source, top_n=9), "What do Alpha and Beta cost?")
    assert sorted(one.text for one in found) == sorted(texts)


@settings(max_examples=examples(60), deadline=None)
@given(records, st.booleans())
def test_what_is_hidden_under_an_equal_id_might_as_well_not_be_there(made, function):
    held = [
        LangChain.record(text, id_, tenant=one, title=title, source=f"s{id_}.md", links=links)
        for one, id_, title, text, links in made
    ]
    theirs = [document for document in held if mine(document)]

    def found(given, filters):
        source, links = LangChain.retriever(*theirs[:2]), ("metadata", "titles", "hyperlinks")
        retriever = LangChain.ext.PromptRankRetriever(
            source=source, documents=given, filters=filters, model=WORDS, top_n=None, links=links
        )
        ranked = LangChain.retrieve(retriever, "Where does Ada Holm of The Pier live?")
        return {one.id: (one.text, round(one.score, 9)) for one in ranked}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert found(held, mine if function else {"tenant": "a"}) == found(theirs, None)
