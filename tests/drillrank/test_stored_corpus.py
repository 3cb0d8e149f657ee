"""A collection in a file: it is what was written, and path search over it scores as one process does."""

from __future__ import annotations

import pickle
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank.collection_statistics import CollectionStatistics
from drillrank.errors import InvalidInput
from drillrank.multihop.corpus import Corpus
from drillrank.multihop.lookups import Nowhere, run_steps
from drillrank.multihop.search import PathSearch
from drillrank.multihop.stored import StoredCorpus
from drillrank.multihop.title_mentions import TitleIndex
from drillrank.passages import Passage
from drillrank.rerank.promptrank import PromptRank
from drillrank.text import name_tokens
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
    tokens = name_tokens(question)
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
    assert corpus.retrieve("owls", 5) == corpus.retrieve("?", 5) == []


def test_words_of_most_texts_are_searched_where_a_question_has_no_others(tmp_path):
    one, two, three = map(Passage, ["the fox", "the red fox", "a whale"])
    for passages in ([one], [one, two], [one, two, three]):
        corpus = StoredCorpus.write(tmp_path / "corpus.db", passages)
        assert set(corpus.retrieve("the foxes", 5)) == set(passages[:2])


def test_what_cannot_be_written_leaves_the_file_as_it_was(tmp_path):
    file = tmp_path / "corpus.db"
    StoredCorpus.write(file, [Passage("a fox")])
    endless = {}
    endless["of"] = endless
    for passages, message in (
        ([Passage("a", id="one"), Passage("b", id="one")], "share the id 'one'"),
        ([Passage("a", id="one", metadata={"of": {1}})], "metadata of passage 'one'"),
        ([Passage("a", id="one", metadata=endless)], "metadata of passage 'one'"),
        ([Passage("a", id="o\ud800")], "half a character"),
        ([Passage("a"), 3], "Item 1 is a int"),
        ("a text", "list of passages"),
    ):
        with pytest.raises(InvalidInput, match=message):
            StoredCorpus.write(file, passages)
    assert [*tmp_path.iterdir()] == [file]
    assert [passage.text for passage in StoredCorpus(file).retrieve("foxes", 1)] == ["a fox"]
    with pytest.raises(InvalidInput, match="cannot be written"):
        StoredCorpus.write(file / "corpus.db", [])


def test_words_are_told_apart_as_the_statistics_tell_them(tmp_path):
    texts = ["κος", "κοσ", "3.14", "3", "14"]  # SQLite would fold the first two, and cut the next
    corpus = StoredCorpus.write(tmp_path / "corpus.db", map(Passage, texts))
    assert [[passage.text for passage in corpus.retrieve(text, 9)] for text in texts] == [[text] for text in texts]


def test_errors_of_who_reads_the_passages_go_through(tmp_path):
    def read():
        yield Passage("a fox")
        raise KeyError("line 2")

    with pytest.raises(KeyError, match="line 2"):
        StoredCorpus.write(tmp_path / "corpus.db", read())
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("content", [None, b"", b"no database, but long enough to be one" * 20])
def test_a_file_that_holds_no_collection_is_refused(tmp_path, content):
    file = tmp_path / "corpus.db"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidInput, match="holds no collection"):
        StoredCorpus(file)


@settings(max_examples=25)
@given(st.lists(st.text("a\0\ud83e\U0001e900ß", max_size=6), min_size=1, max_size=4, unique=True))
def test_what_hardly_is_text_is_written_too(tmp_path_factory, texts):
    names = [f"{place}\0{text}".replace("\ud83e", "") for place, text in enumerate(texts)]
    passages = [
        Passage(text, id=name, title=f"Pier {text}", links=("\ud83e",)) for name, text in zip(names, texts, strict=True)
    ]
    corpus = StoredCorpus.write(tmp_path_factory.mktemp("stored") / "corpus.db", passages)
    assert corpus.statistics == CollectionStatistics.of(passage.titled_text for passage in passages)
    assert corpus.fetch(["\ud83e", *names, "0", names[0]]) == [
        Passage(
            passage.text.replace("\ud83e", "\ufffd"),
            id=passage.id,
            title=passage.title.replace("\ud83e", "\ufffd"),
            links=passage.links,
        )
        for passage in passages
    ]
    for passage in passages:
        assert passage.id in {one.id for one in corpus.retrieve(passage.titled_text.replace("\ud83e", " "), 9)}
        if "\ud83e" not in passage.title:
            tokens = name_tokens(passage.title)
            in_memory = TitleIndex(passages, fold_case=True).mentions(tokens)
            assert corpus.mentions(tokens) == [(start, end, list(ids)) for start, end, ids in in_memory]


def test_a_long_question_costs_no_more_than_its_words(tmp_path):
    words = [f"w{number}" for number in range(3_000)]
    corpus = StoredCorpus.write(
        tmp_path / "corpus.db", [Passage("", id="1", title=" ".join(words[:60])), Passage("x", title="Zebra")]
    )
    asked = []

    @contextmanager
    def traced():
        with closing(sqlite3.connect(tmp_path / "corpus.db")) as database:
            database.set_trace_callback(asked.append)
            yield database

    corpus._reading = traced
    assert corpus.mentions(words) == [(0, 60, ["1"])]
    assert len(words) <= len(asked) < 2 * len(words)


def test_one_name_written_by_many_at_once_is_one_of_their_collections(tmp_path):
    file = tmp_path / "corpus.db"

    def write(writer):
        StoredCorpus.write(file, (Passage(f"fox {writer}", id=f"{number}") for number in range(300)))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, "abcd"))
    corpus = StoredCorpus(file)
    assert len({passage.text for passage in corpus.fetch([*map(str, range(300))])}) == 1
    assert [*tmp_path.iterdir()] == [file]


def test_a_collection_that_is_written_anew_is_not_mixed_with_what_was_known_of_the_old_one(tmp_path):
    file = tmp_path / "corpus.db"
    corpus = StoredCorpus.write(file, [Passage("a fox", id="1"), Passage("a whale")])
    search = PathSearch(PromptRank(), first_stage=corpus)
    search.search("fox")
    anew = StoredCorpus.write(file, [Passage("a red fox", id="2"), Passage("an owl")])
    with ThreadPoolExecutor(1) as thread:
        for ask in (search.search, lambda question: thread.submit(search.search, question).result()):
            with pytest.raises(InvalidInput, match="written anew"):
                ask("fox")
    assert PathSearch(PromptRank(), first_stage=anew).search("fox")[0].passage.id == "2"


@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_a_file_that_is_damaged_while_it_is_searched_is_told(tmp_path, damage):
    file = tmp_path / "corpus.db"
    corpus = StoredCorpus.write(file, [Passage(f"fox {number} {'z' * 600}", id=f"{number}") for number in range(100)])
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:8_192])
    else:
        file.unlink()
    for ask in (lambda: corpus.retrieve("fox 99", 3), lambda: corpus.fetch(["99"]), lambda: corpus.mentions(["a"])):
        with pytest.raises(InvalidInput, match="holds no collection"):
            ask()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux")
def test_no_file_stays_open(tmp_path):
    def opened():
        return [path for path in Path("/proc/self/fd").iterdir() if str(path.resolve()).startswith(str(tmp_path))]

    corpus = StoredCorpus.write(tmp_path / "corpus.db", map(Passage, ["a fox", "an owl"]))
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(corpus.retrieve, ["fox"] * 4, [1] * 4))
        assert opened() == []
