"""What texts are matched by."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import text as module
from drillrank.errors import InvalidInput
from drillrank.text import find_words, first_words, name_tokens, terms, word_count, word_starts, words

SAME = [  # one form, in any of two texts
    ("FY22", "FY2022"),
    ("FY22", "fy 2022"),
    ("'22", "2022"),
    ("’98", "1998"),
    ("the '90s", "the 1990s"),
    ("the 1990s", "the 1990"),
    ("4Q22", "4Q 2022"),
    ("10K", "10-K"),
    ("COVID19", "COVID-19"),
    ("5kg", "5 kg"),
    ("GPT3.5", "GPT-3.5"),
    ("1,577", "1577"),
    ("1,234,567.89", "1234567.89"),
    ("1'577", "1577"),
    ("1\u202f577", "1577"),
    ("1\u00a0577", "1577"),
    ("1,00,000", "100000"),
    ("max_tokens", "max tokens"),
    ("Café", "cafe"),
    ("résumé", "Resume"),
    ("naïveté", "naivete"),
    ("Straße", "STRASSE"),
    ("ﬁnance", "finance"),
    ("ＦＹ２０２２", "FY2022"),
    ("٢٠٢٢", "2022"),
    ("H₂O", "H2O"),
    ("10²", "10 2"),
    ("in\u00adfor\u00admation", "information"),
    ("東京、大阪", "東京 大阪"),
    ("ｶﾞｽ", "ガス"),
    ("人口10万", "人口 10 万"),
]
DIFFERENT = [("3.14", "314"), ("0.5", "5"), ("19th", "19"), ("F1", "1"), ("H2O", "2"), ("seq2seq", "2"), ("'22", "22")]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_is_written_in_several_ways_is_one(one, other):
    assert terms(one) == terms(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_differs_does_not_match(one, other):
    assert not set(terms(one)) & set(terms(other))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Which rivers were crossed?", ["which", "river", "were", "cross"]),
        ("In FY22, 10K and 10-K", ["in", "fy", "2022", "10", "k", "and", "10", "k"]),
        ("[1,2,3] and 12.03.2021", ["1", "2", "3", "and", "12", "03", "2021"]),
        ("5'10", ["5", "10"]),
        ("BIBREF12 FB15k 21st", ["bibref12", "fb15k", "21st"]),
        ("the model's don't", ["the", "model", "s", "don", "t"]),
        ("said 'Yes' in '98 or '22'", ["said", "yes", "in", "1998", "or", "22"]),
        ("…?! _ ’", []),
        ("江", ["江"]),
        ("长江", ["长江", "长", "江"]),
        ("に", ["に"]),
        ("です", ["です"]),
        ("東京の川", ["東京", "京の", "の川", "東", "京", "川"]),
        ("Was ist 東京Tower?", ["was", "ist", "東京", "東", "京", "tower"]),
        ("ไทย", ["ไท", "ทย"]),
        ("हिन्दी", ["हिन्दी"]),
        ("e\u0301te\u0301", ["ete"]),
        ("a\ud83eb", ["a", "b"]),
    ],
)
def test_terms_of_english(text, expected):
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("german", "Die Flüsse: 1.577,5 km", ["die", "fluss", "1577.5", "km"]),
        ("german", "Version 3.14", ["version", "3.14"]),
        ("german", "Häuser der Straße", ["haus", "der", "strass"]),
        ("french", "L'eau qu’il a arrêtée", ["eau", "il", "a", "arret"]),
        ("french", "en 1\u202f577,5", ["en", "1577.5"]),
        ("russian", "реки", terms("реках", "russian")),
        ("none", "Rivers été", ["rivers", "ete"]),
        ("none", "長江", ["長江", "長", "江"]),
    ],
)
def test_terms_of_other_languages(language, text, expected):
    assert terms(text, language) == expected


@pytest.mark.parametrize("language", ["klingon", "", "English", None, ["english"]])
def test_an_unknown_language_is_refused(language):
    with pytest.raises(InvalidInput, match="language is one of"):
        module.check_language(language)


# Words as they are written


@given(st.text("aé'.京 กा\n", max_size=20))
def test_words_stand_where_they_are_found(text):
    found = list(find_words(text))
    assert [text[word.start() : word.end()] for word in found] == words(text)


def test_lengths_count_characters_of_scripts_without_spaces():
    assert word_count("Who, me? 東京の川は") == 5
    assert first_words("東京の川は長い。", 2) == "東京の川"
    assert word_starts("東京 is big") == [1, 3, 6]
    assert name_tokens("Malmö's 東京") == ["Malmö", "'", "s", "東", "京"] == name_tokens("Malmo\u0308's 東京")
