"""Scores of passages: their formula, embeddings, and the passage that adds to the best one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from drillrank import D3, Corpus, parse_document
from drillrank.drilldown.hierarchical_scores import HierarchicalScores, score_index
from drillrank.drilldown.paragraph_scores import EMBEDDING_WEIGHTS
from drillrank.drilldown.question_terms import IndexedParagraph, LevelIndex
from drillrank.likelihood.unigram import CollectionModel
from drillrank.text import terms

FARM = [
    IndexedParagraph("The barn is red and old.", ["Barn"], 0, 0),
    IndexedParagraph("Two horses live in the barn.", ["Horses"], 1, 0),
    IndexedParagraph("The mill grinds wheat.", [], "page 1", 1, paged=True),
    IndexedParagraph("The horses of the mill.", [], "page 1", 1, paged=True),
]
NAMES = {0: "farm", 1: "mill"}


def test_passages_are_smoothed_by_their_document_and_by_their_page_if_they_have_one():
    question = "farm horses"
    scores = score_index(LevelIndex(FARM, NAMES, {0: "", 1: ""}), question, 1000.0, "passage")
    tokens = [terms(text.text) for text in FARM]
    every_token = [token for text in tokens for token in text]
    frequencies = {word: every_token.count(word) for word in set(terms(question)) & set(every_token)}
    collection = CollectionModel(frequencies | {"\0": len(every_token) - sum(frequencies.values())}, "english")
    for index, text in enumerate(FARM):
        own = tokens[index] + terms(" ".join(text.headings)) + terms(NAMES[text.document])
        document = [
            token
            for other, words in zip(FARM, tokens, strict=True)
            if other.document == text.document
            for token in words
        ]
        expected = 0.0
        for word in terms(question):
            above = 0.1 * document.count(word) / len(document) + 0.9 * collection.probability([word])[0]
            if text.paged:
                above = (document.count(word) + 1000 * above) / (len(document) + 1000)  # one page
            expected += math.log((own.count(word) + 600 * above) / (len(own) + 600))
        evidence = sum(term.value for term in scores.explain(index) if term.name == "which document")
        assert scores.totals[index] == pytest.approx(expected + evidence)


def test_the_terms_of_a_passage_add_up_to_its_score():
    scores = score_index(LevelIndex(FARM, NAMES, {0: "", 1: ""}), "Which horses live at the mill?", unit="passage")
    for index, total in enumerate(scores.totals.tolist()):
        assert math.fsum(term.value for term in scores.explain(index)) == pytest.approx(total)


def test_documents_as_a_whole_hardly_count_in_short_documents():
    index = LevelIndex(FARM, NAMES, {0: "", 1: ""})

    def largest_evidence(unit):
        scores: HierarchicalScores = score_index(index, "farm horses", unit=unit)
        terms_of_passages = (term for passage in range(len(FARM)) for term in scores.explain(passage))
        return max(abs(term.value) for term in terms_of_passages if term.name == "which document")

    assert largest_evidence("passage") < largest_evidence("paragraph") / 10


MANUAL = """# Kettle

## Boiling

The kettle boils one litre of water in 3 minutes. {filler}

## Cleaning

Vinegar removes lime from the kettle. {filler}

## Warranty

The warranty of the kettle lasts 2 years. {filler}
""".format(filler="It was tested with care in many kitchens by people who cook. " * 14)


def embed(texts):
    return [[1.0 + text.count("lime"), 1.0, float("Warranty" in text)] for text in texts]


def test_the_cosine_of_a_passage_joins_its_likelihood():
    question, document = "How is lime removed?", parse_document(MANUAL)
    settings = {"unit": "passage"}
    lexical = {item.passage.id: item for item in D3(settings=settings).retrieve(question, [document], 9)}
    fused = D3(embed=embed, settings=settings).retrieve(question, [document], 9)
    for item in fused:
        total = lexical[item.passage.id].details["total"] - lexical[item.passage.id].details.get("complement", 0)
        total += EMBEDDING_WEIGHTS["passage"].cosine * item.details["cosine"]
        assert item.details["total"] - item.details.get("complement", 0) == pytest.approx(total)
    assert [entry.total for entry in fused.explain()] == pytest.approx([item.score for item in fused])


def test_the_second_passage_adds_to_the_best_one():
    text = """# Cards

## Lost

A lost fleet card is replaced by the bank in 2 days. {filler}

## Stolen

A stolen fleet card is blocked, and the fleet card is replaced after 3 days. {filler}

## Travel

A travel account is closed after 4 days. {filler}
""".format(filler="Agencies write guides for all staff and keep them in order. " * 14)
    question = "When is a fleet card replaced that was lost, and when is a travel account closed?"
    ranking = D3(settings={"unit": "passage"}).retrieve(question, [text], 3)
    added = [item for item in ranking if "complement" in item.details]
    assert added == [ranking[1]]
    assert "travel account" in ranking[1].passage.text
    assert ranking[0].score > ranking[1].score
    assert [entry.total for entry in ranking.explain()] == pytest.approx([item.score for item in ranking])


def test_paragraphs_have_no_complement():
    ranking = D3(settings={"unit": "paragraph"}).retrieve("kettle lime warranty", [MANUAL], 9)
    assert not any("complement" in item.details for item in ranking)


@pytest.mark.parametrize("documents", [[], [""], Corpus()])
def test_an_encoder_finds_nothing_in_no_text(documents):
    result = D3(embed=lambda texts: np.ones((len(texts), 3))).retrieve("How long is the Rhine?", documents)
    assert (list(result), result.found) == ([], False)
