"""What the prior of a path knows of the question: namesakes, the words around a link, names in titles, lengths."""

from __future__ import annotations

import pytest

from drillrank.errors import InvalidInput
from drillrank.multihop.mentions import NameMentions, TitleMentions
from drillrank.multihop.prior import PathPrior
from drillrank.multihop.search import PathSearch
from drillrank.passages import Passage, Path
from drillrank.rerank.promptrank import PromptRank

FILM = Passage(
    "The Silent Pier was directed by Ada Holm. Its music is by Carl Lund. It was shown in Aarhus.",
    id="film",
    title="The Silent Pier",
)
PEOPLE = [Passage("Born in Esbjerg.", id=name.split()[0].lower(), title=name) for name in ("Ada Holm", "Carl Lund")]
QUESTION = "Where was the director of The Silent Pier born?"


def log_priors(search, question=QUESTION):
    return {item.passage.ids: item.details["log_prior"] for item in search.search_paths(question)}


@pytest.mark.parametrize("links", [TitleMentions, NameMentions])
def test_the_words_around_a_link_tell_whether_it_is_followed(links):
    for question, best in ((QUESTION, "ada"), (QUESTION.replace("director", "composer"), "carl")):
        chances = links().over([FILM, *PEOPLE]).follow(question, Path((FILM,)))
        assert next(iter(chances)) == best
        assert chances[best] > sum(chances.values()) / 2
        alike = links(context=0).over([FILM, *PEOPLE]).follow(question, Path((FILM,)))
        assert alike == {"ada": 0.5, "carl": 0.5}


def test_a_name_leads_to_the_passage_that_has_it_in_its_title():
    texts = [Passage(f"Ada Holm was there, {n}.", id=str(n)) for n in range(5)]
    chances = NameMentions().over([FILM, PEOPLE[0], *texts]).follow("Who?", Path((FILM,)))
    assert next(iter(chances)) == "ada"
    assert chances["ada"] == pytest.approx(10 * chances["0"])


def test_of_namesakes_the_one_is_meant_whose_parenthesis_the_question_has():
    hotels = [
        Passage("A comedy by Lund.", id="comedy", title="Hotel (1967 film)"),
        Passage("A comedy by Lund.", id="drama", title="Hotel (2004 film)"),
    ]
    search = PathSearch(PromptRank(), [*hotels, *PEOPLE])
    for year, best, other in (("1967", "comedy", "drama"), ("2004", "drama", "comedy")):
        question = f"Who made the {year} film Hotel?"
        assert search.search(question)[0].passage.id == best
        found = log_priors(search, question)
        assert found[best,] > found[other,]
    found = log_priors(search, "Who made Hotel?")
    assert found["comedy",] == found["drama",]


def test_a_neural_score_knows_no_alignment(hash_model):
    search = PathSearch(PromptRank(hash_model()), [FILM, *PEOPLE])
    [best, *_] = search.search(QUESTION).explain()
    assert "which passage explains which word" not in [term.name for of in best.terms for term in of.terms]


@pytest.mark.parametrize("wrong", [{"aligned": 1.5}, {"weight": -1}, {"longer": 1}, {"namesake": "2"}])
def test_shares_and_weights_that_mean_nothing_are_refused(wrong):
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        PathPrior(**wrong)
