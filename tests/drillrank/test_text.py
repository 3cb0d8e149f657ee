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
    ("10⁵", "10^5"),
    ("12³", "12 3"),
    ("due¹²", "due 12"),
    ("10⁻³", "10 3"),
    ("3½", "3 1/2"),
    ("12①", "12 1"),
    ("900円②", "900円 2"),
    ("in\u00adfor\u00admation", "information"),
    ("東京、大阪", "東京 大阪"),
    ("ｶﾞｽ", "ガス"),
    ("人口10万", "人口 10 万"),
    *(
        (f"The Gesamt{sign}konzept", "The Gesamtkonzept")
        for sign in "\u00ad\u200b\u2060\u200c\u200d\ufeff\u200e\u2062\u034f"
    ),
    ("\ufeffcon\u00ad\u200btract", "contract"),
    ("1,\u200b577", "1577"),
    ("Ver\u00adtrag über Straßen\u00adbau", "Vertrag über Straßenbau"),
    ("می\u200cخواهم", "میخواهم"),
    ("क्\u200dष", "क्ष"),
    ("東\u200b京", "東京"),
    ("葛\ufe00城", "葛城"),
]
DIFFERENT = [
    ("10⁵", "105"),
    ("12³", "123"),
    ("3½", "31"),
    ("12①", "121"),
    ("3.14", "314"),
    ("0.5", "5"),
    ("19th", "19"),
    ("F1", "1"),
    ("H2O", "2"),
    ("seq2seq", "2"),
    ("'22", "22"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_is_written_in_several_ways_is_one(one, other):
    assert terms(one) == terms(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_differs_does_not_match(one, other):
    assert not set(terms(one)) & set(terms(other))


@pytest.mark.parametrize("language", ["english", "german", "hindi", "none"])
@pytest.mark.parametrize("sign", ["\u00ad", "\u200b", "\u2060", "\u200c", "\u200d", "\ufeff"])
def test_invisible_characters_change_no_term_of_any_language(language, sign):
    for text in ("Gesamtkonzepte", "ｆｕｌｌ width", "किताबें", "می‌خواهم", "5kg"):
        assert terms(sign.join(text), language) == terms(text.replace("\u200c", ""), language)


def test_a_row_of_numbers_without_spaces_takes_linear_time():
    for separator in (",22", ".22", "'22", "\u00a022", ",222", ",2a", "²22", "½"):
        assert len(terms("1" + separator * 50_000)) > 1000


def test_many_combining_marks_take_linear_time():
    for marks in ("\u0300\u0316", "\u0301\u20d0", "\u064e\u0651", "\u0e38\u0e48", "\U0001d165\u0316", "\u0344\u0323"):
        word = f"a{marks * 50_000}"
        assert len(terms(f"{word} b {word}")) >= 3
        assert len(name_tokens(word)) >= 1
        assert module.unaccented(word)


def test_marks_of_real_words_are_kept():
    zalgo = f"a{chr(0x301) * 40}b"
    assert terms(zalgo) == ["ab"]
    assert name_tokens("Vie\u0323\u0302t") == ["Việt"]
    assert name_tokens(f"{'—' * 40}x") == [*("—" * 40), "x"]


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
    with pytest.raises(InvalidInput, match="language must be one of"):
        module.check_language(language)


# Words as they are written


@given(st.text("aé'.京 กा\n", max_size=20))
def test_words_stand_where_they_are_found(text):
    found = list(find_words(text))
    assert [text[word.start() : word.end()] for word in found] == words(text)


def test_words_are_whole_and_without_invisible_characters():
    text = "\u200bGe\u00adsamt\u200bkonzept \ufeff und\u200d"
    assert words(text) == ["Gesamtkonzept", "und"]
    assert [word[0] for word in find_words(text)] == ["Ge\u00adsamt\u200bkonzept", "und"]


def test_lengths_count_characters_of_scripts_without_spaces():
    assert word_count("Who, me? 東京の川は") == 5
    assert first_words("東京の川は長い。", 2) == "東京の川"
    assert word_starts("東京 is big") == [1, 3, 6]
    assert name_tokens("Malmö's 東京") == ["Malmö", "'", "s", "東", "京"] == name_tokens("Malmo\u0308's 東京")
