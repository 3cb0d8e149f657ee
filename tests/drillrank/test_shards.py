"""A collection in parts: statistics add up, and a path search over shards is that of one process."""

from __future__ import annotations

import pickle
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank.collection_statistics import CollectionStatistics
from drillrank.errors import InvalidInput
from drillrank.likelihood import UnigramModel
from drillrank.likelihood.embedding_model import EmbeddingModel
from drillrank.multihop.corpus import Corpus
from drillrank.multihop.link_prior import PathPrior
from drillrank.multihop.search import PathSearch
from drillrank.multihop.shards import Shard, ShardedCorpus, divided
from drillrank.passages import Passage
from drillrank.rerank.promptrank import PromptRank
from drillrank.retrieval import TfidfIndex, top
from drillrank.settings import keyword_arguments
from tests.drillrank.conftest import HashModel
from tests.linked_passages import linked_passages, questions

TEXTS = st.lists(st.text("ab c,é", max_size=8), max_size=8)


def of_parts(parts):
    return reduce(add, map(CollectionStatistics.of, parts), CollectionStatistics())


@given(TEXTS, st.lists(st.integers(0, 3), min_size=8, max_size=8))
def test_statistics_of_parts_add_up_to_those_of_the_whole(texts, lots):
    part_of = {text: lots[texts.index(text)] for text in texts}  # equal texts in one part
    parts = [[text for text in texts if part_of[text] == number] for number in range(4)]
    whole = CollectionStatistics.of(texts)
    one, two, three, four = map(CollectionStatistics.of, parts)
    assert ((one + two) + three) + four == one + (two + (three + four)) == (four + two) + (one + three) == whole
    assert len(whole) == len(texts)
    model, fitted = UnigramModel().fit(whole), UnigramModel().fit(texts)
    pairs = [("a b", "a cab é"), ("", "ab")]
    for one_text, other in zip(model.log_likelihood(pairs), fitted.log_likelihood(pairs), strict=True):
        assert one_text.total == pytest.approx(other.total, abs=1e-9)


@given(st.lists(st.lists(st.sampled_from(["fox", "red", "river", "Basel"]), max_size=4).map(" ".join), max_size=8))
def test_a_part_scores_as_the_whole(texts):
    query, whole = "A red Basel fox", CollectionStatistics.of(texts)
    for first in range(len(texts) + 1):
        found = TfidfIndex(texts[first:], whole).scores(query)
        assert found == pytest.approx(TfidfIndex(texts).scores(query)[first:], abs=1e-12)


def in_parts(passages, parts):
    # What goes to a shard and comes back has been sent between processes.
    shards = [Shard(part) for part in pickle.loads(pickle.dumps(divided(passages, parts)))]

    def ask(method, *given):
        answers = [getattr(shard, method)(*pickle.loads(pickle.dumps(given))) for shard in shards]
        return pickle.loads(pickle.dumps(answers))

    return ShardedCorpus(ask)


def same(found, expected):
    assert [item.passage.ids for item in found] == [item.passage.ids for item in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-6)
        assert one.details["log_prior"] == pytest.approx(other.details["log_prior"], abs=1e-9)


@settings(max_examples=15)
@given(
    st.integers(0, 10_000),
    st.integers(1, 5),
    st.sampled_from(
        [
            {},
            {"hops": 3, "pairs": 0},
            {"link_prior": None},
            {"beam": 2, "pairs": 5},
            {"link_prior": PathPrior(named=0.9), "cascade": 3},
        ]
    ),
)
def test_paths_and_scores_are_those_of_one_process(seed, parts, options):
    passages = list(linked_passages(60, seed=seed))
    passages += [Passage(passages[0].text, id="copy", title=passages[0].title, links=("p3",))]
    corpus = in_parts(passages, parts)
    ranker = PromptRank(HashModel() if "cascade" in options else "unigram")
    alone = PathSearch(ranker, passages, **keyword_arguments(PathSearch, {"pool": 12, **options}))
    spread = PathSearch(ranker, first_stage=corpus, **keyword_arguments(PathSearch, {"pool": 12, **options}))
    for question in questions(passages, 3, seed=seed):
        same(spread.search_paths(question), alone.search_paths(question))


def by_letters(texts):
    """A text's meaning: how often it has each of sixteen letters."""
    counts = np.array([[text.lower().count(letter) for letter in "aeioubcdfghklmns"] for text in texts], dtype=float)
    return (counts + 0.01) / np.linalg.norm(counts + 0.01, axis=1, keepdims=True)


@settings(max_examples=10)
@given(st.integers(0, 10_000), st.integers(1, 3), st.sampled_from(["embed", "unigram", "hash"]))
def test_meaning_scores_and_chooses_links_as_in_one_process(seed, parts, kind):
    passages = list(linked_passages(40, seed=seed))
    ranker = PromptRank({"embed": EmbeddingModel(by_letters), "unigram": "unigram", "hash": HashModel()}[kind])
    embed = None if kind == "embed" else by_letters
    words = TfidfIndex([passage.titled_text for passage in passages])

    def found(query, n):
        return [passages[place] for place in top(words.scores(query), n)]

    alone = PathSearch(
        ranker,
        passages,
        first_stage=found,
        settings={"pool": 12, "branch": 2},
        embed=embed,
    )
    spread = PathSearch(
        ranker,
        first_stage=in_parts(passages, parts),
        settings={"pool": 12, "branch": 2},
        embed=embed,
    )
    for question in questions(passages, 2, seed=seed):
        same(spread.search_paths(question), alone.search_paths(question))


def test_concentration_is_not_found_without_texts():
    corpus = in_parts([Passage("a fox")], 1)
    with pytest.raises(InvalidInput, match="needs texts"):
        PathSearch(PromptRank(EmbeddingModel(by_letters, kappa="fit")), first_stage=corpus)
    fitted = EmbeddingModel(by_letters, kappa="fit").fit([f"Fox {n} runs. It has sung {n} songs." for n in range(40)])
    assert PathSearch(PromptRank(fitted), first_stage=corpus).search("Which fox?")


def test_titles_of_several_shards_are_named_together():
    titles = ["Silent Pier", "The Silent Pier", "Pier", "The Silent Pier (film)"]
    passages = [Passage(f"text {place}", id=str(place), title=title) for place, title in enumerate(titles)]
    question = "Who wrote The Silent Pier"
    for parts in range(1, 6):
        corpus = in_parts(passages, parts)
        assert isinstance(corpus, Corpus)
        search = PathSearch(PromptRank(), first_stage=corpus, settings={"hops": 1})
        expected = PathSearch(PromptRank(), passages, settings={"hops": 1}).search_paths(question)
        same(sorted(search.search_paths(question), key=str), sorted(expected, key=str))


def test_no_passage_hides_another():
    fox, owl = Passage("a fox", id="1"), Passage("an owl", id="1")
    with pytest.raises(InvalidInput, match="1 passages share their id with another one, such as '1'"):
        divided([Passage("a whale", id="0"), fox, owl], 2)
    with pytest.raises(InvalidInput, match="such as '1'"):
        Shard([(0, fox), (1, owl)])
    with pytest.raises(InvalidInput, match="such as '1'"):
        PathSearch(PromptRank(), [fox, owl])
    with pytest.raises(InvalidInput, match="such as '1'"):
        PathSearch(PromptRank(), [fox, fox])
    shards = [Shard([(0, fox)]), Shard([(1, owl)])]  # read by someone who did not divide them here
    corpus = ShardedCorpus(lambda method, *given: [getattr(shard, method)(*given) for shard in shards])
    with pytest.raises(InvalidInput, match="such as '1'"):
        corpus.fetch(["1", "2"])


@pytest.mark.parametrize("texts", [[], ["a fox"], ["a fox", "an owl"]])
@pytest.mark.parametrize("parts", [1, 4])
def test_more_shards_than_passages(texts, parts):
    corpus = in_parts(texts, parts)
    assert len(corpus.statistics) == len(texts)
    assert corpus.fetch(["?", "?"]) == []
    found = PathSearch(PromptRank(), first_stage=corpus).search_paths("Which fox?")
    if texts:
        same(found, PathSearch(PromptRank(), texts).search_paths("Which fox?"))
    else:
        assert found == []


def test_an_id_that_is_asked_for_twice_is_one_passage():
    corpus = in_parts([Passage("a fox", id="1"), Passage("an owl", id="2")], 2)
    assert [passage.id for passage in corpus.fetch(["1", "1"])] == ["1"]


def test_a_shard_wants_to_know_the_whole_before_it_is_asked():
    with pytest.raises(RuntimeError, match="join"):
        Shard(divided([Passage("a fox")], 1)[0]).retrieve("fox", 1)
    with pytest.raises(InvalidInput, match="parts"):
        divided([], 0)


def test_links_that_must_know_passages_see_the_candidates():
    from drillrank.multihop.title_mentions import TitleMentions

    passages = [Passage("A fox of Basel.", id="1"), Passage("On the Rhine.", id="2", title="Basel")]
    search = PathSearch(PromptRank(), first_stage=in_parts(passages, 2), links=TitleMentions(), settings={"pairs": 0})
    assert ("1", "2") in [item.passage.ids for item in search.search_paths("Where does the fox live?")]
