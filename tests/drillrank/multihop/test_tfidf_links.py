"""Links chosen by TF-IDF: the same over passages in memory, a source that fetches by id, and a corpus."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank import Corpus, Passage, PathSearch, PromptRank
from drillrank.errors import DrillrankWarning
from drillrank.llm import run
from drillrank.multihop.links import passage_links
from drillrank.multihop.sources import handlers
from tests.drillrank.conftest import HashModel
from tests.examples import examples
from tests.linked_passages import first_stage, linked_passages, questions

SETTINGS = {"prune": "tfidf", "pool": 6, "beam": 3, "branch": 2, "hops": 3}
QUESTION = "which red fox crossed the river"
COLLECTION_UNKNOWN = "the source gives no statistics of its collection"


class Store:
    """Source that retrieves by BM25 and fetches by id."""

    def __init__(self, passages):
        self.retrieve = first_stage(passages)
        self._passages = passages

    def fetch(self, ids):
        return [passage for passage in self._passages if passage.id in ids]


def fetch_paths(search, store, question):
    """Return the scored paths of a search that reads each passage from the store."""
    candidates = store.retrieve(question, SETTINGS["pool"])
    requests = search.path_requests(question, candidates=candidates, fetched=True)
    return run(requests, handlers=handlers(store))


@settings(max_examples=examples(200))
@given(st.integers(0, 10_000), st.sampled_from([0, 6]), st.booleans())
def test_memory_store_and_corpus_have_the_same_paths_and_scores(seed, pairs, is_lexical):
    passages = list(linked_passages(40, seed=seed, words=24))
    passages.append(Passage(passages[0].text, id="copy", title=passages[0].title, links=("p3",)))
    options = {"links": passage_links, "settings": {**SETTINGS, "pairs": pairs}}
    corpus, store = Corpus(), Store(passages)
    corpus.add(passages)
    ranker = PromptRank("unigram" if is_lexical else HashModel())
    in_memory = PathSearch(ranker, passages, first_stage=store.retrieve, **options)
    over_corpus = PathSearch(ranker, first_stage=corpus, **options)
    for question in questions(passages, 2, seed=seed):
        expected = in_memory.search_paths(question)
        expected_links = [
            (links.path.ids, [passage.id for passage in links.passages]) for links in expected.trace.links
        ]
        assert len(expected.trace.hops) > 1
        for result in (fetch_paths(in_memory, store, question), over_corpus.search_paths(question)):
            assert [item.passage.ids for item in result] == [item.passage.ids for item in expected]
            assert [item.score for item in result] == pytest.approx([item.score for item in expected], abs=1e-6)
            links = [(links.path.ids, [passage.id for passage in links.passages]) for links in result.trace.links]
            assert links == expected_links


def test_a_fetched_passage_is_scored_by_the_statistics_of_the_collection(hash_model):
    start = Passage("a river", id="start", links=("near", "far"))
    near, far = Passage("a red town", id="near"), Passage(QUESTION, id="far")
    options = {"links": passage_links, "settings": {"prune": "tfidf", "branch": 1, "pairs": 0, "hops": 2}}
    search = PathSearch(
        PromptRank(hash_model()), [near, Passage("a town")], first_stage=lambda *_: [start, far], **options
    )
    [path] = [item.passage.ids for item in search.search_paths(QUESTION) if len(item.passage.ids) == 2]
    assert path == ("start", "far")


def test_over_an_unknown_collection_the_passages_that_were_read_are_counted():
    """Both linked passages contain one word of the question. "red" is in more of the passages that were read."""
    candidates = [Passage("a red fox", id="start", links=("red", "river")), Passage("a red town", id="other")]
    linked = [Passage("red stone", id="red"), Passage("river stone", id="river")]

    class Source:
        retrieve = staticmethod(lambda query, n: candidates)

        @staticmethod
        def fetch(ids):
            return [passage for passage in linked if passage.id in ids]

    options = {"links": passage_links, "settings": {"prune": "tfidf", "branch": 1, "pairs": 0, "hops": 2}}
    search = PathSearch(PromptRank(), first_stage=Source(), **options)
    with pytest.warns(DrillrankWarning, match=COLLECTION_UNKNOWN) as warned:
        paths = [item.passage.ids for item in search.search_paths("red river")]
    assert ("start", "river") in paths
    assert ("start", "red") not in paths
    assert len(warned) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # one warning for each search
        search.search("red river")


def test_candidates_that_link_to_each_other_alone_need_no_warning():
    candidates = [Passage("a red fox", id="1", links=("2",)), Passage("a river", id="2")]
    options = {"links": passage_links, "settings": {"prune": "tfidf", "branch": 1, "pairs": 0, "hops": 2}}
    paths = PathSearch(PromptRank(), first_stage=lambda *_: candidates, **options).search_paths("red river")
    assert ("1", "2") in [item.passage.ids for item in paths]
