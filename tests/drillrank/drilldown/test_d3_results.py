"""Results of D3 in uncommon cases: failing LLMs, documents that are not read, empty input, several encoders."""

from __future__ import annotations

import numpy as np
import pytest

from drillrank import D3, Corpus, parse_document
from drillrank.drilldown.versions import find_dates
from tests.drillrank.helpers import quiet

WHALES = "# Whales\n\nWhales sing in the sea and dive deep."
LIGHTHOUSE = "# Lighthouse\n\nThe lighthouse is ninety meters high."
LEASE = "# Lease\n\n## Rent\n\nThe rent is due as Section 4 says.\n\n## 4 Payment\n\nMoney is sent by the third day."


def fail(prompt: str) -> str:
    raise RuntimeError("down")


@quiet
def test_an_llm_that_always_fails_does_not_judge_whether_the_answer_is_here():
    documents = [f"{WHALES}\n\nThey eat krill.\n\n# Sea\n\nDeep water."]
    result = D3(fail).retrieve("Who rules France?", documents)
    assert (result.found, result.confidence) == (False, D3().retrieve("Who rules France?", documents).confidence)


def test_an_llm_that_chooses_judges():
    document = f"{WHALES}\n\nThey eat krill.\n\n# Sea\n\nDeep water.\n\nCold water."
    choose = D3(lambda prompt: "Whales" if "names" in prompt else "1", settings={"unit": "paragraph"})
    result = choose.retrieve("Who rules France?", [document])
    assert (result.found, result.confidence) == (True, None)
    refuse = D3(lambda prompt: "Whales" if "names" in prompt else "none", settings={"unit": "paragraph"})
    assert refuse.retrieve("Who rules France?", [document]).found is False


def test_documents_that_are_not_read_do_not_count_as_found_and_the_explanation_says_so():
    d3 = D3(settings={"as_of": "2022"})
    names = ["whales 2020.md", "lighthouse 2024.md"]
    corpus = Corpus()
    corpus.add(zip(names, map(parse_document, (WHALES, LIGHTHOUSE)), strict=True))
    for documents in (d3.prepare([WHALES, LIGHTHOUSE], names), d3.prepare_corpus(corpus)):
        result = d3.retrieve("How high is the lighthouse?", documents)
        assert result.found is False
        assert [item.passage.title for item in result] == ["Whales"]
    memory = d3.retrieve("How high is the lighthouse?", d3.prepare([WHALES, LIGHTHOUSE], names)).explain()
    assert [node.why for node in memory.tree if node.name == "lighthouse 2024.md"] == [
        "not read: another version is, or it is later than as_of"
    ]


def test_an_inserted_reference_is_explained_as_one():
    d3 = D3(settings={"unit": "paragraph"})
    tree = d3.retrieve("When is the rent due?", [LEASE], 2).explain().tree
    assert [node.why for node in tree if node.name.startswith("Money")] == ["referred to by the evidence above it"]


def test_reserved_calls_leave_one_for_the_last_step_of_map_reduce():
    prompts = []

    def llm(prompt: str) -> str:
        prompts.append(prompt)
        return "yes" if "yes or no" in prompt else "1"

    document = "# A\n\nOne fox.\n\nTwo foxes.\n\n# B\n\nThree foxes.\n\nFour foxes."
    settings = {"unit": "paragraph", "paragraphs": "map-reduce", "max_calls": 4}
    with pytest.warns(UserWarning, match="problems"):
        found = D3(llm, settings=settings).retrieve("How many foxes?", [document])
    assert any("asked about the likeliest" in problem for problem in found.problems)
    assert ["yes or no" in prompt for prompt in prompts] == [True, True, True, False]


@pytest.mark.parametrize("embed", [None, lambda texts: np.ones((len(texts), 3))])
def test_nothing_to_read_gives_nothing(embed):
    d3 = D3(embed=embed)
    for documents in ([], Corpus()):
        result = d3.retrieve("Who sings?", documents)
        assert (len(result), result.found) == (0, False)


def test_a_prepared_corpus_uses_the_encoder_of_whoever_asks():
    corpus = Corpus()
    corpus.add(zip("ab", map(parse_document, (WHALES, LIGHTHOUSE)), strict=True))

    def prefers(word):
        return lambda texts: np.array([[1.0, 0.0] if word in text or "?" in text else [0.0, 1.0] for text in texts])

    first, second = D3(embed=prefers("Whales")), D3(embed=prefers("lighthouse"))
    prepared = first.prepare_corpus(corpus)
    assert first.retrieve("What is it?", prepared, 1)[0].passage.title == "Whales"
    assert second.retrieve("What is it?", prepared, 1)[0].passage.title == "Lighthouse"
    assert first.retrieve("What is it?", prepared, 1)[0].passage.title == "Whales"


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("Marketing 2023.pdf", [(2023,)]),
        ("Mayor 2020", [(2020,)]),
        ("Decision 2021", [(2021,)]),
        ("99 June 2022", [(2022, 6)]),
        ("Sept. 2021 and September 3, 2022", [(2021, 9), (2022, 9, 3)]),
    ],
)
def test_months_are_whole_words_and_days_are_possible(text, dates):
    assert find_dates(text) == dates


def test_a_short_label_is_not_the_best_paragraph():
    text = "# Bed\n\n[Sidenote: Bed not to be too wide.]\n\nThe bed of a sick person may be three and a half feet wide."
    [passage] = D3().retrieve("How wide may the bed of a sick person be?", [text])
    assert passage.details["best_paragraph"]["text"].startswith("The bed of a sick person")


def test_vectors_of_another_encoder_are_not_those_under_the_name_of_the_preparation():
    corpus = Corpus()
    corpus.add(zip("ab", map(parse_document, (WHALES, LIGHTHOUSE)), strict=True))

    def prefers(word):
        return lambda texts: np.array([[1.0, 0.0] if word in text or "?" in text else [0.0, 1.0] for text in texts])

    first, second = D3(embed=prefers("Whales")), D3(embed=prefers("lighthouse"))
    prepared = first.prepare_corpus(corpus, embedded_by="whales")
    assert first.retrieve("What is it?", prepared, 1)[0].passage.title == "Whales"
    assert second.retrieve("What is it?", prepared, 1)[0].passage.title == "Lighthouse"


TOWNS = ["It was a town of many long streets and squares.", "Whales.", "It was a town."]
SECTIONS = "".join(f"# {title}\n\n{text}\n\n" for title, text in zip("ABC", TOWNS, strict=True))


def test_what_an_llm_chose_matches_without_a_word_of_the_question():
    d3 = D3(lambda prompt: "1, 2, 3", settings={"sections_by": "json", "unit": "paragraph"})
    results = d3.retrieve("Which foxes sing?", [SECTIONS])
    assert [item.passage.text for item in results] == TOWNS
    assert not any(item.details["nothing_matched"] for item in results)


def test_what_vectors_rank_matches_without_a_word_of_the_question():
    vectors = {text: [float(text == "Whales."), 1.0] for text in TOWNS}
    d3 = D3(embed=lambda texts: [vectors.get(text, [1.0, 0.0]) for text in texts], settings={"unit": "paragraph"})
    results = d3.retrieve("Which foxes sing?", [SECTIONS], top_n=3)
    assert results[0].passage.text == "Whales."
    assert not any(item.details["nothing_matched"] for item in results)
