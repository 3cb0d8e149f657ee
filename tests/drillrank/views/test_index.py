"""Rankings of views are merged by the formula, and the index finds a section through any view, always k sections."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from drillrank.structure import parse_document
from drillrank.vectors import BM25Index, TfidfIndex
from drillrank.views import (
    VIEWS,
    Chunker,
    MergedSection,
    MultiViewIndex,
    ViewText,
    explain_views,
    merge_views,
    section_chunks,
)
from tests.drillrank.helpers import refuses

WHOLE = Chunker(max_tokens=None, min_tokens=None)
rankings_of_views = st.dictionaries(st.sampled_from(VIEWS), st.lists(st.sampled_from("abcdefghijklmnop"), max_size=16))
weights_of_views = st.none() | st.dictionaries(st.sampled_from(VIEWS), st.sampled_from([0, 0.5, 2]) | st.floats(0, 10))
merges = st.sampled_from(["fusion", "union"])
sizes = st.integers(1, 20)


def naive(rankings, k, weights, merge):
    """The documented formula: k sections by reciprocal rank fusion, the first two thirds of k of each view first."""
    ranks = {view: {id_: at for at, id_ in enumerate(dict.fromkeys(own), 1)} for view, own in rankings.items()}
    everything = list(dict.fromkeys(id_ for own in ranks.values() for id_ in own))
    own = {id_: {view: found[id_] for view, found in ranks.items() if id_ in found} for id_ in everything}
    parts = {id_: [(weights or {}).get(view, 1.0) / (60 + rank) for view, rank in own[id_].items()] for id_ in own}
    scores = {id_: sum(sorted([*parts[id_], *[0.0] * (len(ranks) - len(parts[id_]))])) for id_ in own}
    top = 0 if weights is not None and merge == "fusion" else math.ceil(2 * k / 3)
    in_order = {id_: [own[id_].get(view, math.inf) for view in ranks] for id_ in own}
    best = sorted(everything, key=lambda id_: (min(own[id_].values()) > top, -scores[id_], in_order[id_]))
    chosen = best[:k] if merge == "fusion" else [id_ for id_ in best if min(own[id_].values()) <= top]
    return [MergedSection(id_, scores[id_], own[id_]) for id_ in sorted(chosen, key=lambda id_: -scores[id_])]


@given(rankings_of_views, sizes, weights_of_views, merges)
@example({"raw": ["a", "b"], "keywords": ["c", "b"], "summary": ["d", "b"]}, 4, None, "fusion")  # agreement counts
@example({"raw": "abd", "keywords": "bad", "summary": "acdefghijb"}, 3, None, "fusion")  # a seat of its own
@example({"raw": ["a", "b", "c"], "summary": ["z"]}, 3, {"summary": 0}, "fusion")  # with weights there is none
@example({"raw": ["a"], "summary": ["b"]}, 3, {}, "fusion")
def test_merging_follows_its_formula(rankings, k, weights, merge):
    before = copy.deepcopy(rankings)
    merged = merge_views(rankings, k, weights, merge)
    assert merged == naive(rankings, k, weights, merge)
    assert rankings == before
    for section in merged:
        assert type(section.score) is float
        assert section.best_rank == min(section.ranks.values())
        assert section.matched_views == " ".join(f"{view}:{rank}" for view, rank in section.ranks.items())
    assert MergedSection("a", 0.0, {}).best_rank is None


FRUIT = [
    ViewText("1", "raw", "apples and pears"), ViewText("1", "keywords", "orchard"),
    ViewText("2", "raw", "ships and boats"), ViewText("2", "summary", "about the harbour"),
    ViewText("3", "raw", "clouds and rain"), ViewText("3", "keywords", "weather"),
    ViewText("3", "summary", "about storms"),
]  # fmt: skip


VIEWED, NOT_MERGED = (
    {"raw": ["a"], "keywords": ["a"]},
    [
        *(({"weights": {"raw": w}}, "weight of the view 'raw'") for w in (-0.1, math.nan, math.inf, "1", None, True)),
        ({"weights": {"keyword": 5}}, "raw, keywords, summary, got 'keyword'"),
        ({"merge": "best"}, "merge"),
    ],
)
test_what_cannot_be_merged_or_searched_is_refused = refuses(
    *((lambda k=k: merge_views(VIEWED, k), "k must be a whole number") for k in (0, -1, 1.5, True, None)),
    *((lambda bad=bad: merge_views(VIEWED, 1, **bad), says) for bad, says in NOT_MERGED),
    *((lambda bad=bad: MultiViewIndex(FRUIT, **bad), says) for bad, says in NOT_MERGED),
    (lambda: MultiViewIndex(FRUIT, "dense"), "'dense'"),
    (lambda: MultiViewIndex([*FRUIT, ViewText("9", "summary", "lost")]), "no raw view, for example '9'"),
    (lambda: MultiViewIndex([*FRUIT, ViewText("1", "title", "Fruit")]), r"'title' of section '1'.*raw"),
    (lambda: MultiViewIndex(FRUIT, embed=lambda texts: [1.0]), "embed"),
    (lambda: MultiViewIndex(FRUIT, views=[]), "views"),
    (lambda: MultiViewIndex(FRUIT, language="klingon"), "language"),
    (lambda: MultiViewIndex(FRUIT).search("pears", 0), "top_n"),
    *((lambda query=query: MultiViewIndex(FRUIT).search(query), "query") for query in ("", " \n", None)),
)


def embed_letters(texts):
    return [[text.count("a"), text.count("o") - 2.0] for text in texts]


phrases = st.lists(st.sampled_from(["red", "fox", "blue", "whale", "the", "sings", "42"]), max_size=6).map(" ".join)
INDEXES = {"bm25": BM25Index, "tfidf": TfidfIndex}
views_of_sections = st.lists(
    st.builds(ViewText, st.sampled_from("abcdef"), st.sampled_from(VIEWS), phrases), max_size=20
).map(lambda chunks: [*chunks, *(ViewText(name, "raw", "the") for name in "abcdef")])
subsets = st.lists(st.sampled_from(VIEWS), min_size=1, unique=True)


@given(views_of_sections, phrases.filter(str.strip), st.integers(1, 8), weights_of_views, merges, subsets, st.data())
def test_a_search_merges_what_each_view_brings_of_the_chunks_that_may_be_seen(
    chunks, query, k, weights, merge, views, data
):
    """As merging one text after the other; a section may have several texts in a view; k sections come back."""
    retriever = data.draw(st.sampled_from(sorted(INDEXES)))
    among = data.draw(st.none() | st.sets(st.sampled_from(range(len(chunks)))))
    seen = [(at, chunk) for at, chunk in enumerate(chunks) if among is None or at in among]
    visible = list(dict.fromkeys(chunk.section_id for _, chunk in seen if chunk.view == "raw"))
    rankings = {}
    for view in views:
        of_view = [(at, chunk) for at, chunk in enumerate(chunks) if chunk.view == view]
        scores = INDEXES[retriever]([chunk.indexed_text for _, chunk in of_view]).scores(query)
        ranked = sorted(zip(-scores, range(len(of_view)), strict=True))
        rankings[view] = [
            of_view[place][1].section_id
            for score, place in ranked
            if score < 0 and of_view[place] in seen and of_view[place][1].section_id in visible
        ]
    expected = merge_views(rankings, k, weights, merge)
    if merge == "fusion":
        unranked = [name for name in visible if name not in {section.section_id for section in expected}]
        expected += [MergedSection(name, 0.0, {}) for name in unranked[: k - len(expected)]]
    index = MultiViewIndex(chunks, retriever, weights=weights, merge=merge, views=views)
    found = index.search(query, k, among)
    assert found == expected
    explained = found.explain()
    assert explained.question == query
    for rank, (item, section) in enumerate(zip(explained, found, strict=True), 1):
        assert (item.rank, item.name) == (rank, section.section_id)
        assert item.total == pytest.approx(section.score, abs=1e-12)
        told = {f"{v} view": f"rank {at}, weight {(weights or {}).get(v, 1):g}" for v, at in section.ranks.items()}
        assert {term.name: term.text for term in item.terms} == told
        by_sum = weights is not None and merge == "fusion"
        first = not by_sum and (section.best_rank or 99) <= -(-2 * k // 3)
        assert item.note.startswith("It has a place") == first
        assert item.note.startswith("The weighted sum") == (by_sum and bool(section.ranks))
    assert found[1:].explain() == explained[1:]


@pytest.mark.parametrize(
    ("query", "ids", "ranks"),
    [
        ("pears", "123", {"raw": 1}),
        ("orchards", "123", {"keywords": 1}),
        ("harbour", "213", {"summary": 1}),
        ("boats", "213", {"raw": 1}),
        ("weather, clouds and storms", "312", {"raw": 1, "keywords": 1, "summary": 1}),
        ("nothing", "123", {}),
    ],
)
def test_a_section_is_found_through_any_view(query, ids, ranks):
    found = MultiViewIndex(FRUIT, "tfidf").search(query, 3)
    assert ["".join(section.section_id for section in found), found[0].ranks] == [ids, ranks]
    chunks = [text for text in FRUIT if text.view != "raw"]
    assert MultiViewIndex(chunks).search("harbour", 1)[0].section_id == "2"
    assert MultiViewIndex([]).search(query) == []
    many = [ViewText(str(number), "raw", ("pears", "plums")[number % 3 == 0]) for number in range(99)]
    assert [int(one.section_id) for one in MultiViewIndex(many).search("pears", 60)] == [n for n in range(90) if n % 3]
    assert len(MultiViewIndex([ViewText(str(number), "raw", "pears") for number in range(9)]).search(query)) == 5
    texts = [("pears pears", "plums", "pears", "pears")[number**2 * 7 % 11 % 4] for number in range(999)]
    found = MultiViewIndex([ViewText(str(at), "raw", text) for at, text in enumerate(texts)]).search("pears", 600)
    scores = BM25Index(texts).scores("pears")
    assert [int(one.section_id) for one in found] == sorted(range(999), key=lambda at: -scores[at])[:600]


def test_words_are_of_the_language_and_what_may_not_be_seen_is_not_found():
    index = MultiViewIndex([ViewText("1", "raw", "Baum"), ViewText("2", "raw", "Häuser")], language="german")
    assert index.search("Haus", 1)[0].section_id == "2"
    assert index.search("Haus", 1, [0]) != index.search("Haus", 1)


def test_an_encoder_ranks_every_text_by_its_cosine():
    class Asymmetric:
        def __call__(self, texts):
            return embed_letters(texts)

        def questions(self, texts):
            return [[0.0, 1.0]] * len(texts)

    raw = [text.indexed_text for text in FRUIT if text.view == "raw"]
    for embed, question in ((embed_letters, embed_letters(["boats"])[0]), (Asymmetric(), [0.0, 1.0])):
        found = MultiViewIndex(FRUIT, embed=embed).search("boats", 3)
        vectors = np.array(embed(raw))
        cosines = vectors @ question / np.linalg.norm(vectors, axis=1)
        by_raw = sorted(found, key=lambda section: section.ranks["raw"])
        assert [section.section_id for section in by_raw] == [str(place + 1) for place in np.argsort(-cosines)]


def test_context_is_searched_and_a_section_is_called_by_its_headings():
    document = parse_document("# Basel\n\nA town.\n\nIt has a zoo.\n\n# Bern\n\nA town.\n\nIt has a zoo.\n")
    for context, ranks in (((), {"raw": 1}), (["headings"], {"raw": 1})):
        chunks = section_chunks(document, "d", ["raw"], chunker=Chunker("paragraph", None), context=context)
        best, *_ = found = MultiViewIndex(chunks).search("the zoo in Bern")
        assert (best.section_id == chunks[-1].id, best.ranks) == (bool(context), ranks)
        texts = [ViewText(chunk.section_id, chunk.view, chunk.indexed_text) for chunk in chunks]
        assert MultiViewIndex(texts).search("the zoo in Bern") == found
    chunks = section_chunks(parse_document("# Foxes\n\nThey hunt.\n\n## Red\n\nThey sing.\n"), "animals", chunker=WHOLE)
    assert "1. Foxes > Red: " in str(MultiViewIndex(chunks).search("Who sings?", 2).explain())


def test_what_fills_up_is_explained_so():
    merged = merge_views({"raw": list("abcdef"), "keywords": list("bacdef"), "summary": list("abcdef")}, k=3)
    [last] = [section for section in merged if section.section_id == "c"]
    assert min(last.ranks.values()) == 3
    explained = explain_views(last, 3, "C", 3, None, "fusion")
    assert "No view has it among its first 2: it fills up by its sum." in str(explained)
