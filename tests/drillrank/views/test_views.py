"""Views of sections: nothing is lost or doubled, ids are the same in every run, keywords and summaries are the text's.

40 documents per format; `DRILLRANK_FUZZ=10000` asks for more.
"""

from __future__ import annotations

import os
import re
import uuid
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer

from drillrank.data import read_words
from drillrank.structure import breadcrumb, parse_document, sentences
from drillrank.text import terms, without_surrogates
from drillrank.views import VIEWS, Chunker, keywords, section_chunks, summaries, summary
from tests.drillrank.helpers import refuses
from tests.drillrank.structure.generated import html, latex, plain, words_of
from tests.drillrank.structure.generated import nasty as markdown

fuzz = settings(
    max_examples=int(os.environ.get("DRILLRANK_FUZZ", "40")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
WHOLE = Chunker(max_tokens=None, min_tokens=None)
UNCUT = [WHOLE, Chunker(max_tokens=None, min_tokens=20), Chunker("paragraph", None)]
CUT = [Chunker(), Chunker("section", 12, None), Chunker("section", 30, 20), Chunker("paragraph", 10)]
CUT += [Chunker("content_aware_fixed", 8), Chunker("fixed", 8)]
BODIES = ["Words about foxes.", "- item", "42", "", " \t", "~~~\n# no heading\n~~~", "\ud800", "More words. " * 80]
parts = st.tuples(st.sampled_from(["# One", "## Two", "### Three > Four", "#", "A\n=", ""]), st.sampled_from(BODIES))
TEXTS = {"markdown": markdown | st.lists(parts.map("\n".join), max_size=8).map("\n".join)}
TEXTS |= {"html": html, "latex": latex, "text": plain}


def is_below(sections, ordinal, above):
    between = sections[above.ordinal + 1 : ordinal + 1]
    return bool(between) and all(len(section.path) > above.depth for section in between)


@pytest.mark.parametrize("format", TEXTS)
@fuzz
@given(data=st.data(), made=st.lists(st.sampled_from(VIEWS), min_size=1))
def test_views(format, data, made):
    document = parse_document(data.draw(TEXTS[format]), format)
    chunker = data.draw(st.sampled_from(UNCUT + CUT))
    units, sections = chunker(document), document.sections()
    chunks = section_chunks(document, "d", chunker=chunker)
    raw = [chunk for chunk in chunks if chunk.view == "raw"]
    places = [(chunk.ordinal, chunk.part, VIEWS.index(chunk.view)) for chunk in chunks]
    assert places == sorted(set(places))
    ids = [str(uuid.UUID(chunk.id)) for chunk in chunks]
    assert len(set(ids)) == len(ids)
    assert [(c.text, c.start, c.end, c.part) for c in raw] == [(u.text, u.start, u.end, u.part) for u in units]
    own = {chunk.id: chunk for chunk in raw}
    for chunk in chunks:
        assert chunk.text.strip()
        section = own[chunk.section_id]
        assert (chunk.start, chunk.end, chunk.path) == (section.start, section.end, section.path)
    bodies = [unit.body for unit in units]
    written = {"keywords": [", ".join(words) for words in keywords(bodies)], "summary": summaries(bodies)}
    for view, texts in written.items():
        found = {chunk.section_id: chunk.text for chunk in chunks if chunk.view == view}
        expected = {chunk.id: text for chunk, text in zip(raw, texts, strict=True) if text.strip()}
        assert found.keys() == expected.keys()
        for id_, text in expected.items():
            assert found[id_].endswith(text)
            heading = own[id_].path[-1] if own[id_].path else ""
            assert breadcrumb([heading]) in found[id_].removesuffix(text)
    if chunker is WHOLE:
        for chunk, body in zip(raw, bodies, strict=True):
            above = [other for other in raw if is_below(sections, chunk.ordinal, other)]
            assert chunk.parent_id == (above[-1].id if above else None)
            # A section without text shows its heading, in which half a character is U+FFFD.
            source = without_surrogates(chunk.text) if body in chunk.path[-1:] else chunk.text
            assert format != "markdown" or " ".join(body.split()) in " ".join(source.split())
    firsts = {chunk.ordinal: chunk for chunk in raw if chunk.part == 0}
    assert all(chunk.parent_id == firsts[chunk.ordinal].parent_id for chunk in raw if chunk.ordinal in firsts)
    if chunker in UNCUT:
        assert "\n".join(chunk.text for chunk in raw).split() == words_of(document)
    assert {letter for chunk in raw for letter in chunk.text} >= {letter for w in words_of(document) for letter in w}
    some = section_chunks(parse_document(document.text, format), "d", made, chunker=chunker)
    assert [(one.id, one.text) for one in some] == [(one.id, one.text) for one in chunks if one.view in made]
    assert not set(ids) & {chunk.id for chunk in section_chunks(document, "other", chunker=chunker)}
    kind = data.draw(st.sampled_from(["headings", "keywords"]))
    with_context = section_chunks(document, "d", chunker=chunker, context=[kind])
    assert [replace(chunk, context="") for chunk in with_context] == chunks
    for chunk in with_context:
        assert chunk.indexed_text.startswith(chunk.context)
        assert chunk.indexed_text.endswith(chunk.text)
        assert chunk.view == "raw" or chunk.indexed_text == chunk.text


TWO = parse_document("# A\n\n# B\n")


test_wrong_arguments_are_refused = refuses(
    *((lambda bad=bad: section_chunks(TWO, "d", context=bad), "context") for bad in ("headings", ["title"])),
    *((lambda bad=bad: section_chunks(TWO, "d", texts=bad, chunker=WHOLE), "one entry for each of 2 chunks")
      for bad in ({"keywords": ["k"]}, {"summary": ["a", "b", "c"]})),
    *((lambda bad=bad: section_chunks(TWO, "d", bad), "views must be a list") for bad in ([], ["raw", "title"], "raw")),
    (lambda: section_chunks(TWO, None), "document_id"),
    *((lambda n=n: keywords(["text"], n), "at least 1") for n in (0, -1)),
    (lambda: summary("text", max_words=0), "at least 1"),
)  # fmt: skip


# Keywords

WORDS = [
    "Neural", "network", "networks", "the", "of", "model's", "don't", "2024", "x", "GPT-2", "state", "-", ",", ".\n\n",
    "snake_case", "_emphasis_", "`code`", "<b>bold</b>", "https://example.org/page", "\\cite{key}", "wörter", "\n",
]  # fmt: skip
texts_ = st.lists(st.one_of(st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join), st.text()), max_size=5)


@given(texts_, st.integers(1, 8), st.randoms(use_true_random=False))
def test_keywords_are_content_words_of_their_section_in_whatever_order_these_stand(texts, n, random):
    found = keywords(texts, n)
    for text, words in zip(texts, found, strict=True):
        one_line = " ".join(text.split())
        assert len(words) <= n
        assert len({tuple(terms(word)) for word in words}) == len(words)
        for word in words:
            assert word in one_line
            assert any(character.isalpha() for character in word)
            assert not any(part.lower() in ENGLISH_STOP_WORDS for part in word.split())
    order = random.sample(range(len(texts)), len(texts))
    assert keywords([texts[i] for i in order], n) == [found[i] for i in order]
    assert set(read_words("english_stop_words.txt")) == ENGLISH_STOP_WORDS


@given(st.lists(st.lists(st.sampled_from(["apple", "river", "stone"]), min_size=1, max_size=9), min_size=1, max_size=7))
def test_single_words_are_weighted_as_scikit_learn_does_it(sections):
    texts = [", ".join(section) for section in sections]
    vectorizer = TfidfVectorizer(norm=None, smooth_idf=True)
    weights = vectorizer.fit_transform(texts).toarray()
    for found, row in zip(keywords(texts), weights, strict=True):
        weight = dict(zip(vectorizer.get_feature_names_out(), row.tolist(), strict=True))
        listed = [weight.pop(word) for word in found]
        assert listed == pytest.approx(sorted(listed, reverse=True))
        assert not any(weight.values())


GROW = "Random forests grow, random\nforest. Random forests."


@pytest.mark.parametrize(
    ("texts", "n", "expected"),
    [
        (["method apple", "method banana"], 8, [["apple", "method"], ["banana", "method"]]),
        # Twice in every section weighs 2; once in a single one of n weighs 1 + ln((1 + n) / 2).
        (["common, rare, common", *["common"] * 3], 1, [["common"]] * 4),
        (["common, rare, common", *["common"] * 4], 1, [["rare"], *[["common"]] * 4]),
        (["rare, common, common, usual, usual, common."], 8, [["common", "usual", "rare"]]),
        (["A model; models, models! Bird."], 8, [["models", "Bird"]]),  # inflections are one, in its usual form
        # A repeated phrase replaces the words that occur mostly inside it.
        ([GROW + " forests." * 3], 2, [["Random forests", "grow"]]),
        ([GROW + " forests." * 4], 2, [["forests", "Random forests"]]),
        (["raw\nsilk, raw\nsilk; semi-dry, semi-dry; cold cold, cold cold"], 8, [["cold", "raw silk", "semi-dry"]]),
        (["deep. learning. deep. learning."], 8, [["deep", "learning"]]),
        (["deep and learning, deep of learning"], 8, [["deep", "learning"]]),
        (["I don't <a href='http://a.org'>agree</a>, see [this](https://c.org): \\textbf{nets} of the author's"], 8,
         [["agree", "nets", "author"]]),
        (["key " + "QmFzZTY0" * 20], 8, [["key"]]),
    ],
)  # fmt: skip
def test_which_words_are_keywords(texts, n, expected):
    assert keywords(texts, n) == expected


# Summaries

sentence_words = st.lists(st.sampled_from(["Cats", "purr", "and", "dogs", "bark", "Dr.", "(see", "7)"]), min_size=1)
prose = st.lists(sentence_words.map(lambda sentence: " ".join(sentence) + "."), max_size=12).map(" ".join)


def length(text: str) -> int:
    return len(re.findall(r"\S{1,20}", text))


def is_made_of(text: str, parts: list[str]) -> bool:
    """Whether some of the parts, in order and joined by spaces, give the text."""
    reached = {0}
    for part in parts:
        reached |= {at + len(part) + 1 for at in reached if text.startswith(part, at)}
    return len(text) + 1 in reached


@given(st.lists(prose, max_size=4), st.text(), st.integers(1, 40))
def test_a_summary_is_a_subsequence_of_sentences_within_the_limit(texts, any_text, max_words):
    for text, short in zip(texts, summaries(texts, max_words, raw_up_to=max_words), strict=True):
        split = [text[start:end] for start, end in sentences(text)]
        if length(text) <= max_words:
            assert short == text
        elif any(length(sentence) <= max_words for sentence in split):
            assert is_made_of(short, split)
            assert 0 < length(short) <= max_words
        else:
            assert any(sentence.startswith(short) for sentence in split)
            assert length(short) == max_words
        assert summaries([text, "Short."], raw_up_to=5)[0] == summary(text, raw_up_to=5)
    short = summary(any_text, max_words, raw_up_to=max_words)
    assert length(short) <= max_words
    assert bool(short.strip()) == bool(any_text.strip())
