"""A pool that grows: what was added, changed and removed, on disk and in memory, ranks as in a fresh search."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank import Corpus, Passage, PathSearch, PromptRank
from drillrank.errors import InvalidInput
from drillrank.multihop.link_names import named_links
from tests.examples import examples
from tests.linked_passages import first_stage

NAMES = ("Ada Holm", "New York", "Åland Pier", "Curzon Ashton", "Wojciech Jerzy Has", "Wojciech Has", "Rhine")
KINDS = ("(1967 film)", "(2004 film)", "", "", "F.C.")
WORDS = (
    "was directed by",
    "is a film of",
    "lies near",
    "[see](notes.md#rhine)",
    "The",
    "a red fox saw",
    "As Table 3 says.",
)
PAGES = st.tuples(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(KINDS)).map(" ".join),
    st.lists(st.sampled_from([*NAMES, *WORDS]), min_size=1, max_size=8).map(" ".join),
    st.sampled_from(["notes.md", "films.md", ""]),
)
QUESTIONS = ("Who directed the 1967 film Ada Holm?", "Which red fox lies near the Rhine of Wojciech Has?", "whales")
LINKS = named_links(["relationships", "metadata", "hyperlinks", "titles", "names", "references"])


def pool_of(pages):
    return [
        Passage(text, id=str(i), title=title, links=[str(i + 1)], metadata={"file_name": file})
        for i, (title, text, file) in enumerate(pages)
    ]


def shown(search):
    rankings = [search.search_paths(question) for question in QUESTIONS]
    return [[(item.passage.ids, item.score, item.details) for item in ranking] for ranking in rankings]


@settings(max_examples=examples(30))
@given(st.lists(PAGES, min_size=3, max_size=9), st.data())
def test_a_pool_that_has_changed_is_as_a_fresh_one(pages, data):
    pool = pool_of(pages)
    third = pool[: len(pool) // 3] or pool[:1]
    before = [Passage("another text of Ada Holm", id=one.id, title="New York") for one in third]
    kept = [one for one in pool if one not in third]
    stored_in = Corpus()
    grown = PathSearch(PromptRank(), first_stage=stored_in, links=LINKS)
    grown.add(data.draw(st.permutations([*before, *kept])))
    grown.search(QUESTIONS[0])
    if data.draw(st.booleans()):
        grown.remove([one.id for one in third])
        grown.search(QUESTIONS[1])
    else:
        grown.remove([one.id for one in kept])
        grown.add(kept)
    grown.add(third)
    corpus = Corpus()
    corpus.add(list(stored_in))
    assert {one.id: one for one in corpus} == {one.id: one for one in pool}
    assert shown(grown) == shown(PathSearch(PromptRank(), first_stage=corpus, links=LINKS))


@settings(max_examples=examples(30))
@given(
    st.lists(PAGES, min_size=1, max_size=9), st.sampled_from([{}, {"hops": 3, "pairs": 0}, {"beam": 2, "branch": 2}])
)
def test_all_kinds_of_links_lead_on_disk_where_they_lead_in_memory(pages, options):
    pool = pool_of(pages)
    stored = PathSearch(PromptRank(), first_stage=Corpus(), links=LINKS, settings={"pool": 4, **options})
    stored.add(pool)
    alone = PathSearch(PromptRank(), pool, first_stage=first_stage(pool), links=LINKS, settings={"pool": 4, **options})
    for one, other in zip(shown(stored), shown(alone), strict=True):
        assert [ids for ids, *_ in one] == [ids for ids, *_ in other]
        assert [score for _, score, _ in one] == pytest.approx([score for _, score, _ in other], abs=1e-6)


@pytest.mark.parametrize("stored", [True, False])
def test_a_search_is_saved_with_its_links_and_settings_and_grows_on(tmp_path, stored):
    pool = pool_of([(name, f"{name} saw a red fox near {other}", "") for name, other in pairwise(NAMES)])
    settings = {"hops": 2, "link_prior": {"jump": 0.2}}

    def made():
        return PathSearch(
            PromptRank(), **({"first_stage": Corpus()} if stored else {"passages": []}), settings=settings
        )

    search = made()
    search.add(pool)
    search.save(tmp_path / "a" / "b")
    loaded = PathSearch.load(tmp_path / "a" / "b")
    assert loaded.settings == search.settings
    assert shown(loaded) == shown(search)
    loaded.remove(["0"])
    loaded.add(pool[:1])
    loaded.save(tmp_path / "a" / "b")
    search.remove(["0", "unknown"])
    left = made()
    left.add(pool[1:])
    assert shown(search) == shown(left)
    search.add(pool[:1])
    assert shown(PathSearch.load(tmp_path / "a" / "b")) == shown(loaded) == shown(search)


def test_names_are_kept_once_however_often_a_search_is_made(tmp_path):
    def kinds():
        with closing(sqlite3.connect(tmp_path / "passages.db")) as database:
            return database.execute("SELECT kind, count(*) FROM annotations GROUP BY kind").fetchall()

    names = ["hyperlinks", "titles", "names", "references"]
    search = PathSearch(PromptRank(), first_stage=Corpus(tmp_path / "passages.db"), links=named_links(names))
    search.add(pool_of([(name, f"{name} is [old](notes.md)", "notes.md") for name in NAMES]))
    before = kinds()
    assert len(before) == len(names) + 1  # and the titles that a question may name
    search.save(tmp_path)
    PathSearch.load(tmp_path, links=named_links(names)).search(QUESTIONS[0])
    assert kinds() == before


@pytest.mark.parametrize(
    ("content", "message"), [(None, "cannot be read"), (json.dumps({"format": "other"}), "another version")]
)
def test_a_folder_without_a_saved_search_is_refused(tmp_path, content, message):
    if content is not None:
        (tmp_path / "search.json").write_text(content)
    with pytest.raises(InvalidInput, match=message):
        PathSearch.load(tmp_path)


@pytest.mark.parametrize(
    ("settings", "name"),
    [({"missing_prompt": lambda documents, question: documents + question}, "."), ({}, "file")],
    ids=["a prompt that is a function", "a file in place of the folder"],
)
def test_a_search_that_cannot_be_written_is_refused(tmp_path, settings, name):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="cannot be written"):
        PathSearch(PromptRank(), ["a fox"], settings=settings).save(tmp_path / name)
