"""A collection in a file: it is what was written, and path search over it scores as one process does."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank.collection_statistics import CollectionStatistics
from drillrank.errors import InvalidInput
from drillrank.multihop.corpus import Corpus
from drillrank.multihop.lookups import Nowhere, run_steps
from drillrank.multihop.search import PathSearch
from drillrank.multihop.stored import StoredCorpus
from drillrank.multihop.title_mentions import TitleIndex, title_tokens
from drillrank.passages import Passage
from drillrank.rerank.promptrank import PromptRank
from tests.linked_passages import linked_passages, questions

TITLES = st.lists(st.sampled_from(["Silent", "pier", "THE", "Straße", "_x", "(film)", "'s"]), max_size=4).map(" ".join)
METADATA = {"page": 3, "of": ["a", "é"]}


@settings(max_examples=25)
@given(st.lists(st.tuples(st.text("ab é_'\"狐", max_size=8), TITLES), max_size=6), TITLES)
def test_what_was_written_is_read(tmp_path_factory, contents, question):
    passages = [
        Passage(text, id=str(place), title=title, links=(str(place + 1),), metadata=METADATA)
        for place, (text, title) in enumerate(contents)
    ]
    corpus = StoredCorpus.write(tmp_path_factory.mktemp("stored") / "corpus.db", passages)
    assert isinstance(corpus, Corpus)
    assert corpus.statistics == CollectionStatistics.of(passage.titled_text for passage in passages)
    assert corpus.fetch([*map(str, range(9))]) == passages
    tokens = title_tokens(question)
    in_memory = TitleIndex(passages, fold_case=True).mentions(tokens)
    assert corpus.mentions(tokens) == [(start, end, list(ids)) for start, end, ids in in_memory]
    assert {passage.id for passage in corpus.retrieve("狐 a_b é", 9)} <= {passage.id for passage in passages}


def test_paths_have_the_scores_of_a_search_in_memory(tmp_path):
    passages = list(linked_passages(300))
    file = tmp_path / "corpus.db"
    StoredCorpus.write(file, passages[:10])
    corpus = pickle.loads(pickle.dumps(StoredCorpus.write(file, iter(passages))))
    stored, in_memory = (
        PathSearch(PromptRank(), **given) for given in ({"first_stage": corpus}, {"passages": passages})
    )
    asked = questions(passages, 6)
    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(stored.search_paths, asked))
    for question, paths in zip(asked, found, strict=True):
        steps = in_memory.path_steps(question, candidates=corpus.retrieve(question, 100))
        expected = run_steps(steps, Nowhere())
        assert [item.passage.ids for item in paths] == [item.passage.ids for item in expected]
        assert [item.score for item in paths] == pytest.approx([item.score for item in expected], abs=1e-6)


def test_rare_words_are_found_first_and_words_of_most_texts_not_at_all(tmp_path):
    texts = ["the fox", "the red fox", "the whale", "the town"]
    corpus = StoredCorpus.write(tmp_path / "corpus.db", map(Passage, texts))
    assert [passage.text for passage in corpus.retrieve("The red foxes", 5)] == ["the red fox", "the fox"]
    assert corpus.retrieve("the", 5) == corpus.retrieve("?", 5) == []


def test_what_cannot_be_written_leaves_the_file_as_it_was(tmp_path):
    file = tmp_path / "corpus.db"
    StoredCorpus.write(file, [Passage("a fox")])
    for passages, message in (
        ([Passage("a", id="1"), Passage("b", id="1")], "share an id"),
        ([Passage("a", metadata={"of": {1}})], "cannot be written"),
    ):
        with pytest.raises(InvalidInput, match=message):
            StoredCorpus.write(file, passages)
    assert [*tmp_path.iterdir()] == [file]
    assert StoredCorpus(file).retrieve("a", 1) == []
    assert len(StoredCorpus(file).statistics) == 1
    with pytest.raises(InvalidInput, match="cannot be written"):
        StoredCorpus.write(tmp_path / "nowhere" / "corpus.db", [])


@pytest.mark.parametrize("content", [None, b"", b"no database, but long enough to be one" * 20])
def test_a_file_that_holds_no_collection_is_refused(tmp_path, content):
    file = tmp_path / "corpus.db"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidInput, match="holds no collection"):
        StoredCorpus(file)
