"""A search in which some of its own passages are not there for a question, or are known by their structure only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

import langchain_ext
from drillrank import Passage, PathSearch, PromptRank
from drillrank.errors import InvalidInput
from drillrank.frameworks.paths import GivenPassages, NamedRecords
from drillrank.llm import run
from drillrank.multihop.links import passage_links
from drillrank.multihop.mentions import TitleMentions
from drillrank.multihop.sources import handlers
from drillrank.passages import by_id

TITLES = ["Ada Holm", "Ada Holm Pier", "The Pier", "Pier (film)", "d1", ""]
LINKS = ["[x](d1.md)", "[y](/a/d2.md#ada-holm)", "<https://x.org/d1>", "[z](#the-pier)", '<a href="d1">d</a>']
PAGES = st.tuples(
    st.sampled_from(TITLES),
    st.lists(st.sampled_from([*TITLES, *LINKS, "fox"]), max_size=4).map(" ".join),
    st.sampled_from(["", "d1.md", "a/d2.md", "b/d1.md", "https://x.org/d1", "https://x.org/"]),
)
POOLS = st.lists(PAGES, min_size=1, max_size=6).map(
    lambda pages: [
        Passage(text, id=str(i), title=title, links=[str(i + 1), str(i - 1)], metadata={"url": url})
        for i, (title, text, url) in enumerate(pages)
    ]
)


class Shelf:
    """A source that has other texts than were given."""

    def __init__(self, passages):
        self.passages, self.asked = by_id(passages), []

    def retrieve(self, query, n):
        return ()

    def fetch(self, ids):
        self.asked.append(set(ids))
        return [self.passages[id_] for id_ in ids if id_ in self.passages]


@given(POOLS, st.sets(st.integers(0, 5).map(str)), st.integers(1, 4))
def test_what_lends_its_structure_is_read_as_the_source_has_it(pool, there, hops):
    records = {id_: Passage(f"record {id_}", id=id_, links=[str(int(id_) + 1)]) for id_ in there}
    first = [records.get(pool[0].id, pool[0])]
    shelf = Shelf(records.values())
    search = PathSearch(PromptRank(), pool, links=[TitleMentions(), passage_links], settings={"hops": hops})
    found = run(search.requests("which record", candidates=first, fetched=True), handlers=handlers(shelf))
    for item in found:
        assert item.passage in (first[0], records.get(item.passage.id))
    assert len(shelf.asked) <= hops - 1


@pytest.mark.parametrize("top_n", [0, -1])
def test_paths_are_not_cut_to_nothing(top_n):
    search = PathSearch(PromptRank(), ["a fox"])
    for asked in (search.search, search.search_paths):
        with pytest.raises(InvalidInput, match="top_n"):
            asked("Which fox?", top_n)


def test_what_a_filter_hides_is_neither_linked_to_nor_named():
    """The Rhine is hidden: paths and scores are those of a retriever that was never given it."""
    texts = {"Rhine": "a river", "Basel": "a town on the Rhine", "Zürich": "another town, not on the Rhine"}
    documents = [
        Document(text, id=title, metadata={"title": title, "hidden": title == "Rhine"}) for title, text in texts.items()
    ]
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    store.add_documents(documents)

    def found(given, **filters):
        retriever = langchain_ext.PromptRankRetriever(
            source=store.as_retriever(), documents=given, top_n=None, **filters
        )
        results = retriever.invoke("Is Basel on the Rhine?")
        return {
            result.id: (result.metadata["drillrank_path"], result.metadata["drillrank_path_score"])
            for result in results
        }

    shown = lambda document: not document.metadata["hidden"]  # noqa: E731
    alone = found(documents[1:], filters=shown)
    assert found(documents, filters=shown) == alone
    assert set(alone) == {"Basel", "Zürich"}


def test_a_source_may_call_what_it_fetches_otherwise():
    class Renaming(Shelf):
        def fetch(self, ids):
            return [("there", Passage("the river", id="here"))] if "there" in ids else []

    start = [Passage("a fox", id="fox", links=["there"]), Passage("the river", id="here")]
    search = PathSearch(PromptRank(), [], first_stage=Renaming([]))
    found = run(search.requests("which fox saw the river", candidates=start), handlers=handlers(Renaming([])))
    assert sorted(item.passage.id for item in found) == ["fox", "here"]
    assert found[0].details["path"] == ("fox", "here")


def test_names_of_records():
    records = NamedRecords(GivenPassages([Passage("same", id="a"), Passage("same", id="b"), Passage("other", id="c")]))
    assert [records.add(Passage("same", id="1"), record).id for record in ("first", "again")] == ["a", "a"]
    assert records.record_by_name["a"] == "first"
    assert records.add(Passage("same", id="2"), "another record").id == "2"
    taken = records.add(Passage("same", id="a"), "a record of the store with this id").id
    assert taken not in ("a", "1", "2")
    assert records.own_ids(["a", "2", taken, "c"]) == ["1", "2", "a", "c"]
