"""Drilling down without an LLM: evidence, when there is none, and headings that are guessed."""

from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank import D3, parse_document
from drillrank.drilldown.outline import outline
from drillrank.drilldown.paragraph_scores import FUSED_TEMPERATURE, maximize_expected_f1
from drillrank.drilldown.question_scores import EMBEDDING_WEIGHTS
from drillrank.text import terms
from tests.drillrank.helpers import UNITS, paragraph_d3
from tests.examples import examples

MANUAL = """Read this first.\n
# Kettle\n
## Warranty\n\nThe warranty covers the heater for two years.\n\n- It leaves out lime scale.\n- It leaves out dents.\n
## Cleaning\n\nBoil vinegar and water once a month.\n\n```\n# no heading\nclean --kettle\n```\n"""
QUESTION = "What does the warranty of the heater leave out?"

words = st.sampled_from(["warranty", "heater", "# A", "## B", "lime", "\n\n", "\n", "- item", "```", "| a | b |", "é"])
documents = st.lists(st.lists(words, max_size=12).map(" ".join).map(lambda text: text.replace(" \n", "\n")), max_size=3)


@given(documents, st.integers(1, 4), st.none() | st.integers(1, 5), st.sampled_from(UNITS))
def test_evidence_is_text_of_the_documents_and_comes_once(texts, sections, top_n, unit):
    result = D3(settings={"sections": sections, "unit": unit}).retrieve(QUESTION, texts, top_n)
    ids = [item.passage.id for item in result]
    assert len(ids) == len(set(ids))
    assert top_n is None or len(ids) <= top_n
    for item in result:
        place = item.passage.metadata
        assert texts[place["document"]][place["start"] : place["end"]] == item.passage.text
    assert len({(item.passage.metadata["document"], item.details["section_rank"]) for item in result}) <= sections
    scores = [item.score for item in result]
    assert scores == sorted(scores, reverse=True)
    assert (result.usage.calls, result.usage.prompt_tokens, result.usage.completion_tokens) == (0, 0, 0)


@given(documents, st.sampled_from(UNITS))
def test_without_an_llm_nothing_is_lost_and_what_is_repeated_comes_once(texts, unit):
    expected = [p for section in outline(texts, unit) for p in section.paragraphs]
    found = D3(settings={"unit": unit}).retrieve(QUESTION, texts, 10_000)
    places = [place for item in found for place in (item.passage.metadata, *item.details.get("also_at", ()))]
    assert sorted((place["document"], place["start"]) for place in places) == sorted(
        (passage.metadata["document"], passage.metadata["start"]) for passage in expected
    )
    assert len({item.passage.text.casefold() for item in found}) == len(found)
    shown = "".join("".join(passage.text.split()) for passage in expected)
    headings = [d.slice(b) for d in map(parse_document, texts) for s in d.sections() for b in d.blocks(s)]
    assert len(shown) <= sum(len("".join(text.split())) for text in headings)


@settings(max_examples=examples(100))
@given(st.lists(st.floats(-60, 0), min_size=1, max_size=12), st.floats(0.5, 4), st.floats(0.5, 4))
def test_the_expected_f1_is_largest_among_all_numbers(totals, expected, temperature):
    weights = sorted((math.exp((total - max(totals)) / temperature) for total in totals), reverse=True)
    chances = [min(1.0, expected * weight / math.fsum(weights)) for weight in weights]
    f1 = [2 * math.fsum(chances[:n]) / (n + math.fsum(chances)) for n in range(1, len(totals) + 1)]
    assert f1[maximize_expected_f1(totals, expected, temperature) - 1] == pytest.approx(max(f1))


def test_embeddings_join_the_likelihood():
    embedded = []

    def embed(texts):
        embedded.append(list(texts))
        return [[2.0 * ("lime" in text), 0.5] for text in texts]

    d3 = paragraph_d3(embed=embed)
    ready = d3.prepare([MANUAL])
    lexical = {item.passage.id: item for item in paragraph_d3().retrieve("lime", [MANUAL], 9)}
    other = 0.5 / math.hypot(2, 0.5)  # of a paragraph without lime
    for item in d3.retrieve("lime", ready, 9):
        assert item.details["cosine"] == pytest.approx(1.0 if "lime" in item.passage.text else other)
        # One of the two paragraphs under "Warranty" has lime: their mean lies halfway between the vectors.
        halfway = math.sqrt((1 + other) / 2) if "Warranty" in item.passage.title else other
        assert item.details["section_cosine"] == pytest.approx(halfway)
        weights = EMBEDDING_WEIGHTS["paragraph"]
        added = weights.cosine * item.details["cosine"] + weights.section_cosine * halfway
        added += math.log(len(terms(item.passage.text)))
        assert item.score == pytest.approx(lexical[item.passage.id].score + added / item.details["tokens"])
    n_calls = len(embedded)  # the paragraphs, the question, and the texts that the cosines are compared with
    assert embedded[1:].count(["lime"]) == 1
    totals = [item.details["total"] for item in d3.retrieve("lime", ready, 9)]
    assert len(d3.retrieve("lime", ready)) == maximize_expected_f1(totals, temperature=FUSED_TEMPERATURE)
    assert len(embedded) == n_calls  # each once


@pytest.mark.parametrize("unit", UNITS)
def test_prepared_parsed_and_plain_documents_and_async_agree(unit):
    d3 = D3(settings={"sections": 2, "unit": unit})
    expected = [(item.passage.id, item.score) for item in d3.retrieve(QUESTION, [MANUAL])]
    for given_documents in (d3.prepare([MANUAL]), [parse_document(MANUAL)], d3.prepare(outline([MANUAL], unit))):
        assert [(item.passage.id, item.score) for item in d3.retrieve(QUESTION, given_documents)] == expected
    found = asyncio.run(d3.aretrieve(QUESTION, [MANUAL]))
    assert [(item.passage.id, item.score) for item in found] == expected
    manual = MANUAL + "".join(f"\n## Part {n}\n\n{'Spare part, made of steel. ' * 40}" for n in range(3))
    d3 = D3(settings={"unit": unit})
    everything, best = (d3.retrieve(QUESTION, [manual], top_n) for top_n in (9, None))  # as many as F1 is best of
    assert len(best) == maximize_expected_f1([item.details["total"] for item in everything]) < len(everything)
    assert [item.passage.id for item in best] == [item.passage.id for item in everything[: len(best)]]
    [heading] = d3.retrieve("Are there whales?", ["# Sea\n\nCod.\n\n## Whales\n"], 1)
    assert heading.passage.text.endswith("## Whales")  # which nothing stands under
    assert (heading.passage.text == "## Whales") is (unit == "paragraph")


def test_near_duplicates_come_once_but_never_with_another_number():
    licence = "Permission is granted to any person who obtains a copy of this software to deal in it {}."
    texts = [licence.format("freely"), licence.format("freely!"), licence.format("for 5 dollars"), "An owl sings."]
    texts += [licence.format("for 6 dollars")]
    found = D3().retrieve("Who is granted permission to deal in a copy of the software?", texts, 4)
    assert {item.passage.metadata["document"] for item in found} == {0, 2, 3, 4}
    [also] = [item.details["also_at"] for item in found if "also_at" in item.details]
    assert [place["document"] for place in also] == [1]


LEASE = "\n\n".join(
    f"# Clause {n}\n\nThe tenant pays the rent of month {n} by the third day of it." for n in range(1, 40)
)


@pytest.mark.parametrize(
    ("question", "is_possible"),
    [
        ("By which day does the tenant pay the rent?", True),
        ("When is the rent of month 7 paid?", True),
        ("How high is Mount Everest?", False),
        ("Who won the Tour de France in 1998?", False),
        ("Who painted the ceiling?", False),
    ],
)
def test_says_when_nothing_here_speaks_of_the_question(question, is_possible):
    result = D3().retrieve(question, [LEASE])
    assert (result.found is not False) is is_possible
    assert (result.confidence > 0.5) is is_possible


def test_a_company_that_no_document_is_about_is_not_here():
    years = [(name, year) for name in ("Acme", "Globex", "Initech") for year in range(2015, 2022)]
    report = "{0} {1}\n\n# Sales\n\nNet sales of {0} were {1} million.\n\n# Assets\n\nThe assets of {0} fell in {1}."
    documents = [report.format(name, year) for name, year in years]
    ready = D3().prepare(documents, [f"{name}_{year}_10K.pdf" for name, year in years])
    known = D3().retrieve("What were the net sales of Globex in 2017?", ready)
    unknown = D3().retrieve("What were the net sales of Umbrella Corporation in 2017?", ready)
    assert known.found
    assert not unknown.found
    assert unknown.confidence < known.confidence / 2


POINTING = """# Lease\n
## 1 Rent\n\nThe rent is 900 euros and is due as Section 4 says.\n
## 2 Deposit\n\nThe deposit is 1,800 euros and the rent of a month more, see Table 9.\n
## 4 Payment\n\nMoney is transferred by the third working day of a month.\n\nNo cheques.\n"""


@pytest.mark.parametrize("top_n", [2, 3, None])
def test_what_a_paragraph_points_to_follows_right_behind(top_n):
    found = paragraph_d3().retrieve("When is the rent due?", [POINTING], top_n)
    assert [item.passage.text.split()[0] for item in found[:2]] == ["The", "Money"]
    assert found[1].details["followed"] == found[0].passage.id
    assert "followed" not in found[0].details
    assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)
    assert len({item.passage.id for item in found}) == len(found)
    for item, entry in zip(found, found.explain(), strict=True):
        assert entry.total == pytest.approx(item.score, abs=1e-9)
    plain = paragraph_d3(settings={"follow": False}).retrieve("When is the rent due?", [POINTING], 3)
    assert not any("followed" in item.details for item in plain)
    assert len(paragraph_d3().retrieve("When is the rent due?", [POINTING], 2)) == 2


# Sections that likelihood opens where nothing marks the headings: by their best paragraph, whatever is under them

WORDS = ["fox", "owl", "terms", "notice", "rent", "roof", "river", "tower", "seller", "buyer"]
paragraphs = st.lists(st.sampled_from(WORDS), min_size=3, max_size=12).map(lambda words: f"The {' '.join(words)} ends.")
sections = st.lists(st.lists(paragraphs, min_size=1, max_size=6), min_size=9, max_size=30)
questions = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)


def named(parts):
    heading = "Item {}. Clause of the lease\n\n"
    return "\n\n".join(heading.format(n) + "\n\n".join(part) for n, part in enumerate(parts, 1))


@given(sections, questions, st.sampled_from(UNITS))
def test_the_best_paragraph_of_all_is_found_under_any_heading(parts, question, unit):
    document = parse_document(named(parts), "text")
    [found] = D3(settings={"unit": unit}).retrieve(question, [document], 1)
    [best] = D3(settings={"sections": 10_000, "unit": unit}).retrieve(question, [document], 1)
    assert (found.passage, found.score) == (best.passage, pytest.approx(best.score))
