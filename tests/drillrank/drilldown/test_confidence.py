"""The judgment if documents can answer a question: never a false "nothing", on any collection and with any encoder."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank import D3
from drillrank.drilldown.confidence import (
    EncoderScale,
    Finding,
    QuestionMatches,
    compute_features,
    describe_finding,
    judge,
    measure_encoder,
    read_stop_words,
)
from drillrank.text import terms
from tests.examples import examples

VOCABULARY = ["fox", "owl", "lease", "rent", "margin", "valve", "Berlin", "2022", "the", "of", "pump"]
texts = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=12).map(" ".join)
collections = st.lists(st.lists(texts, min_size=1, max_size=5), min_size=1, max_size=4)


def match(question, documents, *, names=(), language="english", cosines=None, scale=None):
    """Match a question in documents, each a list of paragraphs."""
    words = terms(question, language)
    paragraphs = [(number, terms(text, language)) for number, texts in enumerate(documents) for text in texts]
    marks = np.zeros((len(words), len(documents)))
    for number, name in enumerate(names):
        marks[:, number] = [word in terms(name, language) for word in words]
    capitalized = {term for token in question.split()[1:] if token[:1].isupper() for term in terms(token, language)}
    return QuestionMatches(
        words,
        [np.array([i for i, (_, text) in enumerate(paragraphs) if word in text], dtype=np.intp) for word in words],
        np.array([len(text) for _, text in paragraphs], dtype=float),
        np.array([number for number, _ in paragraphs], dtype=np.intp),
        marks,
        np.array([word in capitalized for word in words], dtype=float),
        language,
        cosines,
        scale,
    )


@settings(max_examples=examples(300), deadline=None)
@given(collections, st.data())
def test_a_question_whose_content_words_are_in_one_passage_is_never_refused(documents, data):
    passage = data.draw(st.sampled_from([text for texts in documents for text in texts]))
    words = data.draw(st.lists(st.sampled_from(passage.split()), min_size=1))
    n_paragraphs = sum(map(len, documents))
    cosines = data.draw(st.none() | st.lists(st.floats(-1, 1), min_size=n_paragraphs, max_size=n_paragraphs))
    question = f"What is {' and '.join(words)}?"
    matches = match(
        question, documents, cosines=None if cosines is None else np.array(cosines), scale=EncoderScale(0.1, 0.7)
    )
    finding = judge(matches)
    assert finding.found is not False
    assert 0 <= finding.confidence <= 1


@settings(max_examples=examples(100), deadline=None)
@given(collections, texts)
def test_a_question_that_is_the_name_of_a_document_is_never_refused(documents, name):
    assert judge(match(name, documents, names=[name])).found is not False


@settings(max_examples=examples(100), deadline=None)
@given(collections, texts)
def test_a_judgment_is_the_same_twice(documents, question):
    assert judge(match(question, documents)) == judge(match(question, documents))


def folder(n_documents=20, n_paragraphs=15):
    """Documents about gardens, each with a word of its own in each paragraph."""
    return [
        [f"The garden needs water and soil. Plant number{d}x{p} grows in the garden bed." for p in range(n_paragraphs)]
        for d in range(n_documents)
    ]


def test_another_subject_is_refused():
    finding = judge(match("Which goalkeeper saved the penalty in the cup final?", folder()))
    assert finding.found is False
    assert finding.confidence < 0.1


@pytest.mark.parametrize("documents", [[["The valve is closed."]], [["The valve is closed."], ["Oil it."], ["Rust."]]])
def test_tiny_collections_are_judged_by_their_words(documents):
    assert judge(match("Is the valve closed?", documents)).found is not False
    assert judge(match("Who wrote the opera about the Venetian merchant?", documents)).found is False


def test_no_documents_answer_nothing():
    assert judge(match("Is the valve closed?", [])) == Finding(False, 0.0)


@pytest.mark.parametrize("question", ["", "?", "What is it and how does it do that?"])
def test_a_question_without_content_words_is_not_refused(question):
    assert judge(match(question, folder())).found is not False


def test_words_that_are_repeated_count_once():
    once, twice = (
        compute_features(match(question, folder())) for question in ("goalkeeper soil", "goalkeeper soil soil")
    )
    assert once == twice


def test_a_name_that_no_passage_contains_lowers_the_confidence():
    documents = [[f"The revenue of Acme in year {n} was {n} million."] for n in range(30)]
    known, unknown = (judge(match(f"What was the revenue of {name}?", documents)) for name in ("Acme", "Borealis"))
    assert unknown.confidence < known.confidence


def test_paragraphs_count_as_passages():
    paragraphs = ["The lease ends in May.", "Its rent is due on Monday."]
    apart = compute_features(match("rent of the lease", [paragraphs, ["Other."]]))
    joined = compute_features(match("rent of the lease", [[" ".join(paragraphs)], ["Other."]]))
    assert apart == joined


def test_passages_of_two_documents_are_not_joined():
    features = compute_features(match("rent of the lease", [["The lease ends in May."], ["The rent is due."]]))
    assert features.is_covered == 0


@pytest.mark.parametrize(
    ("language", "question", "text"),
    [
        (
            "german",
            "Wann ist die Miete für die Wohnung fällig?",
            "Die Miete der Wohnung ist am dritten Werktag fällig.",
        ),
        ("french", "Quand le loyer est-il payé ?", "Le loyer doit être payé au début du mois."),
        ("spanish", "¿Cuándo se paga el alquiler?", "El inquilino paga el alquiler cada mes."),
        ("finnish", "Milloin vuokra maksetaan?", "Milloin vuokra maksetaan? Vuokra maksetaan maanantaina."),
        ("none", "When is rent due", "when is rent due: rent is due on monday"),
    ],
)
def test_other_languages(language, question, text):
    assert judge(match(question, [[text], ["12345 67890"]], language=language)).found is not False


@pytest.mark.parametrize("language", ["german", "french", "spanish", "italian", "portuguese", "dutch", "russian"])
def test_stop_words_of_a_language_are_its_terms(language):
    stop_words = read_stop_words(language)
    assert len(stop_words) > 60
    assert all(terms(word, language) for word in stop_words)


def test_a_language_without_a_list_has_its_frequent_words_as_stop_words():
    documents = [[f"ja kissa{n} on talossa"] for n in range(40)]
    features = compute_features(match("kissa3 on ja", documents, language="finnish"))
    assert features.is_covered == 1


@pytest.mark.parametrize(
    "cosines",
    [np.full(300, 0.7), np.zeros(300), np.ones(300), np.full(300, np.nan), np.r_[np.nan, np.full(299, -1.0)]],
)
@pytest.mark.parametrize("scale", [None, EncoderScale(0.1, 0.6), EncoderScale(0.5, 0.5), EncoderScale(0.6, 0.5)])
def test_degenerate_cosines_give_probabilities(cosines, scale):
    finding = judge(match("Which goalkeeper saved the penalty?", folder(), cosines=cosines, scale=scale))
    assert math.isfinite(finding.confidence)
    assert 0 <= finding.confidence <= 1


def test_an_encoder_whose_cosines_do_not_differ_leaves_the_decision_to_words():
    question = "Which goalkeeper saved the penalty?"
    useless = match(question, folder(), cosines=np.full(300, 0.9), scale=EncoderScale(0.9, 0.9))
    assert judge(useless) == judge(match(question, folder()))


def test_a_similar_passage_without_common_words_is_not_refused():
    cosines = np.full(300, 0.05)
    cosines[17] = 0.75
    matches = match("Which goalkeeper saved the penalty?", folder(), cosines=cosines, scale=EncoderScale(0.05, 0.7))
    assert judge(matches).found is not False


def test_the_range_of_an_encoder_does_not_matter():
    cosines = np.linspace(0, 0.4, 300)
    question = "How much water does the garden of Borealis need?"
    plain = judge(match(question, folder(), cosines=cosines, scale=EncoderScale(0.0, 0.6)))
    narrow = judge(match(question, folder(), cosines=0.7 + cosines / 4, scale=EncoderScale(0.7, 0.85)))
    assert narrow.found is plain.found
    assert narrow.confidence == pytest.approx(plain.confidence)


def test_cosines_without_a_scale_do_not_count():
    question = "Which goalkeeper saved the penalty?"
    assert judge(match(question, folder(), cosines=np.linspace(0, 1, 300))) == judge(match(question, folder()))


def test_an_encoder_that_hardly_separates_subjects_leaves_the_decision_to_words():
    question, cosines = "Which goalkeeper saved the penalty?", np.linspace(0, 1, 300)
    overlapping = match(question, folder(), cosines=cosines, scale=EncoderScale(0.4, 0.7, spread=0.1))
    separated = match(question, folder(), cosines=cosines, scale=EncoderScale(0.4, 0.7, spread=0.03))
    assert judge(overlapping) == judge(match(question, folder()))
    assert judge(separated).confidence > judge(overlapping).confidence


def test_an_encoder_is_measured_with_texts_of_different_subjects():
    def embed(texts):
        return [
            [1.0, *(float(word in text.lower()) for word in ("queen", "vaccine", "cactus", "lease"))] for text in texts
        ]

    scale = measure_encoder(embed)
    assert 0.5 < scale.unrelated < scale.related <= 1


@pytest.mark.parametrize(
    ("found", "part"),
    [(False, "other subjects"), (None, "cannot judge"), (True, "probably answer")],
)
def test_a_description_never_says_nothing(found, part):
    text = describe_finding(found, 0.42)
    assert part in text
    assert "passages" in text
    assert not {"nothing", "no answer", "not found"} & {text.lower()}
    assert "nothing" not in text.lower()


def test_a_question_of_stop_words_is_neither_refused_nor_called_answered():
    manual = "# Kettle\n\nThe kettle boils in four minutes.\n\n# Stove\n\nThe stove is of iron and in the kitchen."
    result = D3().retrieve("what is the of in and", [manual])
    assert result.found is None
    assert 0.4 < result.confidence < 0.7
