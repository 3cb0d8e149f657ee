"""The prior of a path: its arithmetic, and what it knows of the question."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import PathSearch, PromptRank
from drillrank.likelihood import UnigramModel
from drillrank.multihop.mentions import NameMentions, TitleMentions
from drillrank.multihop.path_scorer import TokenCoverage
from drillrank.multihop.prior import PathPrior, check_rank_prior, find_named_passages, index_titles
from drillrank.passages import Passage, Path
from tests.drillrank.helpers import refuses

SHARES = st.floats(0.01, 0.99)
IDS = st.sets(st.sampled_from("abcdefgh"), min_size=1)


def alike(ids):
    """Links of one kind, each as likely as the next."""
    return [dict.fromkeys(ids, 1 / len(ids))] if ids else []


@given(SHARES, SHARES, IDS, st.data())
def test_every_step_of_the_walk_is_a_distribution_over_the_passages(jump, share, ids, data):
    some = st.sets(st.sampled_from(sorted(ids)))
    named, links = data.draw(some), data.draw(some)
    weights = data.draw(st.dictionaries(st.sampled_from(sorted(ids)), SHARES))
    mentions = [{name: weight / sum(weights.values()) for name, weight in weights.items()}] if weights else []
    surfer = PathPrior(jump, share).build_surfer(len(ids), named)
    for kinds in ([], alike(links), mentions, alike(links) + mentions):
        assert np.exp(surfer.log_steps(ids, kinds)).sum() == pytest.approx(1)


@given(st.lists(st.lists(st.sampled_from(["fox", "river", "red", "town"]), max_size=4), min_size=3, max_size=5))
def test_what_a_path_and_one_passage_more_explain(texts):
    passages = [Passage(" ".join(words), id=str(number)) for number, words in enumerate(texts)]
    model = UnigramModel().fit(["a red fox", "the river of the town"])
    path, others = Path(tuple(passages[:2])), passages[2:]
    chances = np.exp(model.document_log_probs("red fox river", [passage.titled_text for passage in passages]))
    means = [np.log(np.mean([*chances[:2], chance], axis=0)).sum() for chance in chances[2:]]
    gains = [
        np.log(np.max([*chances[:2], chance], axis=0)).sum() - mean
        for chance, mean in zip(chances[2:], means, strict=True)
    ]
    for aligned in (0.0, 0.6):
        residual = TokenCoverage(model, "red fox river", aligned)
        residual.read(passages)
        totals, alignments = residual.score_extensions(path, others)
        assert alignments.tolist() == pytest.approx([aligned * gain for gain in gains])
        assert totals.tolist() == pytest.approx(
            [mean + aligned * gain for mean, gain in zip(means, gains, strict=True)]
        )
    explained, left, ordered = -np.inf, list(zip(passages, np.log(chances), strict=True)), []
    while left:  # first the one that explains most, then what adds most
        best = max(range(len(left)), key=lambda at: np.maximum(explained, left[at][1]).sum().round(9))
        passage, own = left.pop(best)
        explained = np.maximum(explained, own)
        ordered.append(passage)
    assert residual.order_by_gain(Path(tuple(passages))) == ordered


def test_the_arithmetic():
    surfer = PathPrior(jump=0.2, named=0.4).build_surfer(100, {"a", "b"})
    assert math.exp(surfer.log_start("a")) == pytest.approx(0.4 / 2 + 0.6 / 100)
    assert math.exp(surfer.log_step("c", alike(["c", "d"]))) == pytest.approx(0.8 / 2 + 0.2 * 0.6 / 100)
    assert math.exp(surfer.log_step("c", [{"a": 1.0}, {"c": 0.25, "d": 0.75}])) == pytest.approx(
        0.8 / 8 + 0.2 * 0.6 / 100
    )
    assert math.exp(PathPrior(jump=0.2).build_surfer(100, ()).log_step("c", alike(["d"]))) == pytest.approx(0.2 / 100)


@given(SHARES, SHARES)
def test_lengths_of_paths_are_a_distribution(single, longer):
    surfer = PathPrior(single=single, longer=longer).build_surfer(10, ())
    assert math.exp(surfer.log_length(1)) == pytest.approx(single)
    assert sum(math.exp(surfer.log_length(count)) for count in range(1, 4000)) == pytest.approx(1)


test_shares_and_weights_that_are_none = refuses(
    *((lambda name=name, wrong=wrong: PathPrior(**{name: wrong}), f"^{name} must be a number above 0 and below 1")
      for name in ("jump", "named", "single", "longer") for wrong in (0, 1, -0.5, 2, "half", math.nan, None)),
    *((lambda wrong=wrong: PathPrior(**wrong), next(iter(wrong)))
      for wrong in ({"aligned": 1.5}, {"weight": -1}, {"namesake": "2"})),
    (lambda: check_rank_prior("cosine"), "knows the order of records"),
)  # fmt: skip


def test_weights_may_be_at_the_ends_of_their_ranges():
    prior = PathPrior(aligned=1, weight=0, namesake=0)
    assert (prior.aligned, prior.weight, prior.namesake) == (1, 0, 0)


@pytest.mark.parametrize("prior", [None, "retrieval"])
def test_priors_by_order_are_accepted(prior):
    check_rank_prior(prior)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who directed Gold For The Caesars?", {"Gold for the Caesars (film)"}),
        ("Who directed gold for the Caesars, and The Up?", {"Gold for the Caesars (film)"}),
        ("who directed gold for the caesars", set()),  # nothing tells it from ordinary words
        ("Are Film and Gold For The Caesars films?", {"Film", "Gold for the Caesars (film)"}),
        ("Which film is older, the film or the other film?", set()),
        ("Who shot 1984 and 1984?", {"1984"}),
        ("Goldfor the Caesars'", set()),
        ("In A Day Of Roses, who sings?", {"A Day of Roses"}),  # the longest title, none inside it
        ("Film Roses?", {"Film", "Roses"}),  # from the first word on, and one behind the other
        ("Who saw the 3d film?", {"3D Film"}),
        ("", set()),
    ],
)
def test_what_a_question_names(question, expected):
    titles = ["Gold for the Caesars (film)", "Film", "Up", "1984", "3D Film", "A Day", "A Day of Roses", "Roses", ""]
    named = index_titles([Passage("", id=title, title=title) for title in titles])
    assert find_named_passages(question, named) == expected


def test_all_passages_of_one_title_are_named():
    titles = index_titles([Passage("a", id="1", title="Basel"), Passage("b", id="2", title="Basel (town)")])
    assert find_named_passages("Is Basel a town?", titles) == {"1", "2"}


# What the prior of a path knows of the question: namesakes, the words around a link, names in titles, lengths

SHOWN = "The Silent Pier was directed by Ada Holm. Its music is by Carl Lund. It was shown in Aarhus."
FILM = Passage(SHOWN, id="film", title="The Silent Pier")
PEOPLE = [Passage("Born in Esbjerg.", id=name.split()[0].lower(), title=name) for name in ("Ada Holm", "Carl Lund")]
QUESTION = "Where was the director of The Silent Pier born?"


def log_priors(search, question=QUESTION):
    return {item.passage.ids: item.details["log_prior"] for item in search.search_paths(question)}


@pytest.mark.parametrize("links", [TitleMentions, NameMentions])
def test_the_words_around_a_link_tell_whether_it_is_followed(links):
    for question, best in ((QUESTION, "ada"), (QUESTION.replace("director", "composer"), "carl")):
        chances = links().bind([FILM, *PEOPLE]).follow(question, Path((FILM,)))
        assert next(iter(chances)) == best
        assert chances[best] > sum(chances.values()) / 2
        alike = links(context=0).bind([FILM, *PEOPLE]).follow(question, Path((FILM,)))
        assert alike == {"ada": 0.5, "carl": 0.5}


def test_a_name_leads_to_the_passage_that_has_it_in_its_title():
    texts = [Passage(f"Ada Holm was there, {n}.", id=str(n)) for n in range(5)]
    chances = NameMentions().bind([FILM, PEOPLE[0], *texts]).follow("Who?", Path((FILM,)))
    assert next(iter(chances)) == "ada"
    assert chances["ada"] == pytest.approx(10 * chances["0"])


def test_of_namesakes_the_one_is_meant_whose_parenthesis_the_question_has():
    years = {"comedy": 1967, "drama": 2004}
    hotels = [Passage("A comedy by Lund.", id=name, title=f"Hotel ({year} film)") for name, year in years.items()]
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
