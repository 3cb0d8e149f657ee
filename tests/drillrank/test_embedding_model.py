"""Words and meaning by a function that the user brings, and path search with it."""

from __future__ import annotations

import math

import pytest

from drillrank import Passage, PathSearch, PromptRank
from drillrank.errors import InvalidInput
from drillrank.evaluation.settings_file import keyword_arguments
from drillrank.likelihood import EmbeddingModel, Request, UnigramModel
from drillrank.prompts import Evidence

TOPICS = (("port", "harbour"), ("whale", "sea"))
QUESTION = "In which port did the director of The Silent Pier grow up?"
FILM = Passage("The Silent Pier was filmed by Ada Holm.", id="film", links=("holm", "aunt"))
HOLM = Passage("Ada Holm knew the harbour of Esbjerg as a child.", id="holm")
AUNT = Passage("Ada Holm did have an aunt of which we know little.", id="aunt")
POOL = [*(Passage(f"Whales sing, verse {i}.", id=str(i)) for i in range(9)), AUNT, HOLM, FILM]


def vectors(texts):
    return [[0.1, *(float(any(word in text.lower() for word in topic)) for topic in TOPICS)] for text in texts]


class Embedding:
    """Keeps what it is asked, questions apart from texts."""

    def __init__(self):
        self.texts, self.asked = [], []

    def __call__(self, texts):
        self.texts += texts
        return vectors(texts)

    def questions(self, texts):
        self.asked += texts
        return vectors(texts)


def only_film(query, n):
    return [FILM]


def test_a_search_goes_on_and_scores_by_meaning():
    embed = Embedding()
    options = {"first_stage": only_film, "branch": 1, "hops": 2}
    [best, *_] = PathSearch(PromptRank(), POOL, embed=embed, **keyword_arguments(PathSearch, options)).search_paths(
        QUESTION
    )
    assert best.passage.ids == ("film", "holm")
    paths = PathSearch(PromptRank(), POOL, **keyword_arguments(PathSearch, options)).search_paths(QUESTION)
    assert {item.passage.ids for item in paths} == {("film",), ("film", "aunt")}
    fitted = EmbeddingModel(vectors).fit([passage.titled_text for passage in POOL])
    [[likelihood]] = PromptRank(fitted).likelihoods(QUESTION, [best.passage])
    assert best.score == pytest.approx((likelihood.total + best.details["log_prior"]) / len(likelihood.tokens))
    assert (sorted(embed.texts), embed.asked) == (sorted(passage.titled_text for passage in POOL), [QUESTION])


def test_words_that_are_fitted_stay_and_all_passages_are_embedded_at_once():
    embed, words = Embedding(), UnigramModel().fit(["a port", "a film"])
    search = PathSearch(PromptRank(words), POOL, embed=embed)
    assert len(embed.texts) == len(POOL)
    [best, *_] = search.search_paths(QUESTION)
    read = Request(tuple(Evidence(passage.titled_text) for passage in best.passage.passages), QUESTION)
    [expected] = words.log_likelihood([read])
    likelihood = best.score * best.details["tokens"] - best.details["log_prior"] - best.details["log_meaning"]
    assert likelihood == pytest.approx(expected.total)


@pytest.mark.parametrize("wrong", [5, "st:model", [[1.0]]])
def test_what_is_no_function_is_refused(wrong):
    with pytest.raises(InvalidInput, match="embed is a function"):
        PathSearch(PromptRank(), POOL, embed=wrong)


def test_vectors_that_are_none_and_a_model_that_embeds_itself_are_refused():
    with pytest.raises(InvalidInput, match="one vector of finite numbers each"):
        PathSearch(PromptRank(), POOL, embed=lambda texts: [[math.nan]] * len(texts))
    with pytest.raises(InvalidInput, match="embeds texts by itself: leave embed out"):
        PathSearch(PromptRank(EmbeddingModel(vectors)), POOL, embed=vectors)
