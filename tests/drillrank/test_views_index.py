"""The index finds a section through any of its views, and always k sections."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import views
from drillrank.errors import InvalidInput
from drillrank.structure import parse_document
from drillrank.vectors import BM25Index, TfidfIndex
from drillrank.views import VIEWS, Chunker, MergedSection, MultiViewIndex, ViewText, merge_views

WHOLE = Chunker(max_tokens=None, min_tokens=None)


def section_chunks(document, name, made=VIEWS, chunker=WHOLE, **settings):
    return views.section_chunks(document, name, made, chunker=chunker, **settings)


WORDS = ["red", "fox", "blue", "whale", "the", "sings", "42"]
phrases = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
texts = st.lists(st.tuples(phrases, phrases), max_size=8)
INDEXES = {"bm25": BM25Index, "tfidf": TfidfIndex}
retrievers = st.sampled_from(sorted(INDEXES))

FRUIT = [
    ViewText("1", "raw", "apples and pears"),
    ViewText("1", "keywords", "orchard"),
    ViewText("2", "raw", "ships and boats"),
    ViewText("2", "summary", "about the harbour"),
    ViewText("3", "raw", "clouds and rain"),
    ViewText("3", "keywords", "weather"),
    ViewText("3", "summary", "about storms"),
]


@given(texts, phrases.filter(str.strip), st.integers(1, 10), retrievers)
def test_k_different_sections_come_back_wherever_there_are_as_many(pairs, query, k, retriever):
    markdown = "".join(f"# {heading}\n\n{body}\n\n" for heading, body in pairs)
    chunks = section_chunks(parse_document(markdown), "d")
    found = MultiViewIndex(chunks, retriever).search(query, k)
    raw = [chunk.id for chunk in chunks if chunk.view == "raw"]
    ids = [section.section_id for section in found]
    assert len(set(ids)) == len(ids) == min(k, len(raw))
    assert set(ids) <= set(raw)
    scores = [section.score for section in found]
    assert all(type(score) is float for score in scores)
    assert scores == sorted(scores, reverse=True)
    unranked = [section.section_id for section in found if not section.ranks]
    assert ids[len(ids) - len(unranked) :] == unranked == [id_ for id_ in raw if id_ in unranked]


@given(texts, phrases.filter(str.strip), retrievers)
def test_chunks_and_their_view_texts_give_the_same_result(pairs, query, retriever):
    markdown = "".join(f"# {heading}\n\n{body}\n\n" for heading, body in pairs)
    chunks = section_chunks(parse_document(markdown), "d")
    view_texts = [ViewText(chunk.section_id, chunk.view, chunk.indexed_text) for chunk in chunks]
    assert MultiViewIndex(view_texts, retriever).search(query, 3) == MultiViewIndex(chunks, retriever).search(query, 3)


@pytest.mark.parametrize(
    ("query", "first", "ranks"),
    [
        ("pears", "1", {"raw": 1}),
        ("orchards", "1", {"keywords": 1}),
        ("harbour", "2", {"summary": 1}),
        ("rain storms", "3", {"raw": 1, "summary": 1}),
        ("weather, clouds and storms", "3", {"raw": 1, "keywords": 1, "summary": 1}),
        ("nothing", "1", {}),
    ],
)
def test_a_section_is_found_through_any_view(query, first, ranks):
    found = MultiViewIndex(FRUIT, "tfidf").search(query, 1)
    assert [(section.section_id, section.ranks) for section in found] == [(first, ranks)]


def test_a_view_that_shares_no_word_with_the_query_ranks_nothing():
    found = MultiViewIndex(FRUIT, "tfidf").search("boats", 3)
    assert [(section.section_id, section.matched_views) for section in found] == [("2", "raw:1"), ("1", ""), ("3", "")]


def test_several_texts_of_one_view_of_a_section_count_once():
    parts = [
        ViewText("1", "raw", "red fox"),
        ViewText("1", "raw", "red cat"),
        ViewText("2", "raw", "red dog, blue dog"),
    ]
    found = MultiViewIndex(parts, "tfidf").search("red", 5)
    assert [(section.section_id, section.ranks) for section in found] == [("1", {"raw": 1}), ("2", {"raw": 2})]


def test_an_empty_index_finds_nothing():
    assert MultiViewIndex([]).search("query") == []


@pytest.mark.parametrize("query", ["", " \n", None])
def test_a_blank_query_is_refused(query):
    with pytest.raises(InvalidInput, match="query"):
        MultiViewIndex(FRUIT).search(query)


@pytest.mark.parametrize("merge", ["fusion", "union"])
@pytest.mark.parametrize("searched", [["raw"], ["keywords", "summary"], ["raw", "keywords", "summary"]])
def test_any_subset_of_the_views_is_searched(searched, merge):
    index = MultiViewIndex(FRUIT, views=searched, merge=merge)
    assert {view for section in index.search("pears, weather and the harbour", 3) for view in section.ranks} == set(
        searched
    )
    without_raw = MultiViewIndex([text for text in FRUIT if text.view != "raw"], merge=merge)
    assert without_raw.search("harbour", 1)[0].section_id == "2"


def test_the_union_is_of_the_first_of_each_view():
    found = MultiViewIndex(FRUIT, merge="union").search("pears, weather and the harbour", 1)
    assert sorted(section.section_id for section in found) == ["1", "2", "3"]
    assert [explained.note for explained in found.explain()] == ["It has a place as one of the first 1 of a view."] * 3


def test_an_encoder_ranks_every_text_by_its_cosine():
    def embed(texts):
        return [[text.count("a"), text.count("o") - 2.0] for text in texts]

    class Asymmetric:
        def __call__(self, texts):
            return embed(texts)

        def questions(self, texts):
            return [[0.0, 1.0]] * len(texts)

    found = MultiViewIndex(FRUIT, embed=embed).search("boats", 3)
    assert all("raw" in section.ranks for section in found)
    vectors = np.array(embed([text.indexed_text for text in FRUIT if text.view == "raw"]))
    cosines = vectors @ embed(["boats"])[0] / np.linalg.norm(vectors, axis=1)
    by_raw = sorted(found, key=lambda section: section.ranks["raw"])
    assert [section.section_id for section in by_raw] == [str(place + 1) for place in np.argsort(-cosines)]
    asked = MultiViewIndex(FRUIT, embed=Asymmetric()).search("boats", 3)
    assert [section.ranks["raw"] for section in asked] != [section.ranks["raw"] for section in found]
    with pytest.raises(InvalidInput, match="embed"):
        MultiViewIndex(FRUIT, embed=lambda texts: [1.0])


def test_top_n_must_be_positive():
    with pytest.raises(InvalidInput, match="top_n"):
        MultiViewIndex(FRUIT).search("pears", 0)


def test_unusable_input_is_named():
    with pytest.raises(InvalidInput, match="'dense'"):
        MultiViewIndex(FRUIT, "dense")
    with pytest.raises(InvalidInput, match="no raw view, for example '9'"):
        MultiViewIndex([*FRUIT, ViewText("9", "summary", "lost")])
    with pytest.raises(InvalidInput, match=r"'title' of section '1'.*raw"):
        MultiViewIndex([*FRUIT, ViewText("1", "title", "Fruit")])


def test_context_is_searched():
    document = parse_document("# Basel\n\nIt has a zoo.\n\n# Bern\n\nIt has a zoo.\n")
    chunks = section_chunks(document, "d", ["raw"], chunker=lambda parsed: Chunker("paragraph", None)(parsed)[1:])
    assert not MultiViewIndex(chunks).search("Basel")[0].ranks
    document = parse_document("# Basel\n\nA town.\n\nIt has a zoo.\n\n# Bern\n\nA town.\n\nIt has a zoo.\n")
    chunks = section_chunks(document, "d", ["raw"], chunker=Chunker("paragraph", None), context=["headings"])
    best, *_ = MultiViewIndex(chunks).search("the zoo in Bern")
    assert best.section_id == chunks[-1].id
    assert chunks[-1].text == "It has a zoo.\n"


def test_weights_reach_the_merging():
    heavy = MultiViewIndex(FRUIT, "tfidf", {"raw": 0, "summary": 5}).search("pears and the harbour", 1)
    assert [section.section_id for section in heavy] == ["2"]
    heavy = MultiViewIndex(FRUIT, "tfidf", {"raw": 5, "summary": 0}).search("pears and the harbour", 1)
    assert [section.section_id for section in heavy] == ["1"]
    with pytest.raises(InvalidInput, match="weight"):
        MultiViewIndex(FRUIT, weights={"raw": -1})


@given(
    texts.filter(bool),
    phrases.filter(str.strip),
    st.integers(1, 5),
    st.none() | st.fixed_dictionaries({"raw": st.sampled_from([0.0, 1.0, 2.5]), "summary": st.just(0.5)}),
)
def test_every_view_says_what_it_adds(pairs, query, k, weights):
    chunks = [
        ViewText(str(number), view, text)
        for number, pair in enumerate(pairs)
        for view, text in zip(("raw", "summary"), pair, strict=True)
    ]
    found = MultiViewIndex(chunks, weights=weights).search(query, k)
    explained = found.explain()
    assert explained.question == query
    for rank, (item, section) in enumerate(zip(explained, found, strict=True), 1):
        assert (item.rank, item.name) == (rank, section.section_id)
        assert item.total == pytest.approx(section.score, abs=1e-12)
        told = {
            f"{view} view": f"rank {own}, weight {(weights or {}).get(view, 1):g}"
            for view, own in section.ranks.items()
        }
        assert {term.name: term.text for term in item.terms} == told
        assert item.note.startswith("It has a place") == (
            weights is None and (section.best_rank or 99) <= -(-2 * k // 3)
        )
    assert found[1:].explain() == explained[1:]


def test_a_section_is_called_by_its_headings():
    chunks = section_chunks(parse_document("# Foxes\n\nThey hunt.\n\n## Red\n\nThey sing.\n"), "animals")
    explained = MultiViewIndex(chunks).search("Who sings?", 2).explain()
    assert "1. Foxes > Red: " in str(explained)


views_of_sections = st.lists(
    st.builds(ViewText, st.sampled_from("abcdef"), st.sampled_from(VIEWS), phrases), max_size=20
).map(lambda chunks: [*chunks, *(ViewText(name, "raw", "the") for name in "abcdef")])
weights_of_views = st.none() | st.dictionaries(st.sampled_from(VIEWS), st.sampled_from([0, 0.5, 2]))


@given(views_of_sections, phrases.filter(str.strip), st.integers(1, 8), retrievers, weights_of_views, st.data())
def test_ranks_are_those_among_the_chunks_that_may_be_seen(chunks, query, k, retriever, weights, data):
    """As merging what each view brings, one text after the other; a section may have several texts in a view."""
    among = data.draw(st.none() | st.sets(st.sampled_from(range(len(chunks)))))
    seen = [(at, chunk) for at, chunk in enumerate(chunks) if among is None or at in among]
    visible = list(dict.fromkeys(chunk.section_id for _, chunk in seen if chunk.view == "raw"))
    rankings = {}
    for view in VIEWS:
        of_view = [(at, chunk) for at, chunk in enumerate(chunks) if chunk.view == view]
        scores = INDEXES[retriever]([chunk.indexed_text for _, chunk in of_view]).scores(query)
        ranked = sorted(zip(-scores, range(len(of_view)), strict=True))
        rankings[view] = [
            of_view[place][1].section_id
            for score, place in ranked
            if score < 0 and of_view[place] in seen and of_view[place][1].section_id in visible
        ]
    expected = merge_views(rankings, k, weights)
    unranked = [name for name in visible if name not in {section.section_id for section in expected}]
    expected += [MergedSection(name, 0.0, {}) for name in unranked[: k - len(expected)]]
    assert MultiViewIndex(chunks, retriever, weights=weights).search(query, k, among) == expected
