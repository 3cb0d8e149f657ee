"""Path search over a corpus has the paths and scores of a search in memory."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank import Corpus, Passage, PathSearch, PromptRank, parse_document
from drillrank.errors import InvalidInput
from drillrank.likelihood.encoder import EmbeddingModel
from drillrank.llm import run
from drillrank.multihop.links import passage_links
from drillrank.multihop.prior import PathPrior
from drillrank.multihop.sources import EmptySource, handlers
from tests.drillrank.conftest import HashModel
from tests.examples import examples
from tests.linked_passages import first_stage, linked_passages, questions


def corpus_of(passages, file=None):
    corpus = Corpus(file)
    corpus.add(passages)
    return corpus


def same(found, expected):
    assert [item.passage.ids for item in found] == [item.passage.ids for item in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-6)
        assert one.details["log_prior"] == pytest.approx(other.details["log_prior"], abs=1e-9)


@settings(max_examples=examples(20))
@given(
    st.integers(0, 10_000),
    st.sampled_from(
        [
            {},
            {"hops": 3, "pairs": 0},
            {"link_prior": None},
            {"beam": 1, "pairs": 8},
            {"link_prior": PathPrior(named=0.9)},
        ]
    ),
    st.booleans(),
)
def test_paths_and_scores_are_those_of_a_search_in_memory(seed, options, is_lexical):
    passages = list(linked_passages(60, seed=seed))
    passages += [Passage(passages[0].text, id="copy", title=passages[0].title, links=("p3",))]
    ranker = PromptRank("unigram" if is_lexical else HashModel())
    options = {"links": passage_links, "settings": {"pool": 12, **options}}
    alone = PathSearch(ranker, passages, first_stage=first_stage(passages), **options)
    stored = PathSearch(ranker, first_stage=corpus_of(passages), **options)
    for question in questions(passages, 3, seed=seed):
        same(stored.search_paths(question), alone.search_paths(question))


def test_a_corpus_in_a_file_is_searched_by_threads_and_after_it_was_sent(tmp_path):
    passages = list(linked_passages(300))
    corpus = pickle.loads(pickle.dumps(corpus_of(passages, tmp_path / "corpus.db")))
    stored = PathSearch(PromptRank(), first_stage=corpus, links=passage_links)
    in_memory = PathSearch(PromptRank(), passages, links=passage_links)
    asked = questions(passages, 6)
    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(stored.search_paths, asked))
    for question, paths in zip(asked, found, strict=True):
        steps = in_memory.path_requests(question, candidates=corpus.retrieve(question, 100))
        same(paths, run(steps, handlers=handlers(EmptySource())))


@pytest.mark.parametrize("unit", ["passage", "paragraph"])
def test_paths_over_the_units_of_documents_are_those_of_a_search_in_memory(unit):
    corpus = Corpus(unit=unit)
    texts = [
        f"# Part {n}\n\n## Lid {n}\n\nThe lid of part {n} is made by Firm {n}. See Firm {n}.\n\n## Use {n}\n\n"
        f"{'It is rinsed. ' * 70}\n\n# Firm {n}\n\nIt was founded in town {n % 3}.\n"
        for n in range(8)
    ]
    corpus.add((f"d{n}", parse_document(text)) for n, text in enumerate(texts))
    passages = list(corpus)
    options = {"settings": {"pool": 12}}
    stored = PathSearch(PromptRank(), first_stage=corpus, **options)
    alone = PathSearch(PromptRank(), passages, first_stage=first_stage(passages), **options)
    for question in ("In which town was the firm founded that made the lid of part 5?", "rinsed lid"):
        paths = stored.search_paths(question)
        assert paths
        same(paths, alone.search_paths(question))


def by_letters(texts):
    """A text's meaning: how often it has each of sixteen letters."""
    counts = np.array([[text.lower().count(letter) for letter in "aeioubcdfghklmns"] for text in texts], dtype=float)
    return (counts + 0.01) / np.linalg.norm(counts + 0.01, axis=1, keepdims=True)


@settings(max_examples=8)
@given(st.integers(0, 10_000), st.sampled_from(["embed", "unigram", "hash"]))
def test_meaning_scores_and_chooses_links_as_in_memory(seed, kind):
    passages = list(linked_passages(40, seed=seed))
    ranker = PromptRank({"embed": EmbeddingModel(by_letters), "unigram": "unigram", "hash": HashModel()}[kind])
    options = {"links": passage_links, "settings": {"pool": 12, "branch": 2}}
    options |= {} if kind == "embed" else {"embed": by_letters}
    alone = PathSearch(ranker, passages, first_stage=first_stage(passages), **options)
    stored = PathSearch(ranker, first_stage=corpus_of(passages), **options)
    for question in questions(passages, 2, seed=seed):
        same(stored.search_paths(question), alone.search_paths(question))


def test_concentration_is_not_found_without_texts():
    corpus = corpus_of([Passage("a fox")])
    with pytest.raises(InvalidInput, match="needs texts"):
        PathSearch(PromptRank(EmbeddingModel(by_letters, kappa="fit")), first_stage=corpus)
    fitted = EmbeddingModel(by_letters, kappa="fit").fit([f"Fox {n} runs. It has sung {n} songs." for n in range(40)])
    assert PathSearch(PromptRank(fitted), first_stage=corpus).search("Which fox?")


def test_what_changes_in_the_corpus_is_found_by_a_search_that_was_made_before():
    corpus = corpus_of([Passage("a fox", id="1")])
    search = PathSearch(PromptRank(), first_stage=corpus)
    assert [item.passage.id for item in search.search("fox")] == ["1"]
    corpus.add([Passage("a red fox", id="2")])
    corpus.remove(["1"])
    assert [item.passage.id for item in search.search("fox")] == ["2"]
    assert PathSearch(PromptRank(), first_stage=Corpus()).search("fox") == []
