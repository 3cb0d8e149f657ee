from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.errors import InvalidInput
from drillrank.passages import Passage, Path, check_top_n, ranked

# NUL stays out of titles and texts here; every other code point may occur, lone surrogates too.
texts = st.text(st.characters(codec=None, exclude_characters="\0"), max_size=8)
scores = st.floats(allow_nan=False, min_value=-1e9, max_value=0)


class TestPassage:
    @given(texts, texts, texts, texts)
    def test_ids_tell_title_and_text_apart(self, title, text, other_title, other_text):
        one, other = Passage(text, title=title), Passage(other_text, title=other_title)
        assert (one.id == other.id) == ((title, text) == (other_title, other_text))

    def test_ids_tell_lone_surrogates_apart(self):
        assert len({Passage(text).id for text in ("\ud800", "\udfff", "?", "")}) == 4

    def test_ids_are_stable_across_versions(self):
        assert Passage("text", title="title").id == "97c544f9125afd288bcf47d428ce4246"

    def test_a_given_id_is_kept(self):
        assert Passage("a", id="mine").id == "mine"

    def test_an_empty_id_is_no_id(self):
        assert Passage("a", id="").id == Passage("a", id=None).id == Passage("a").id

    def test_links_become_a_tuple_and_metadata_stays_the_callers(self):
        metadata = {"page": 3}
        passage = Passage("a", links=["x", "y"], metadata=metadata)
        assert passage.links == ("x", "y")
        assert passage.metadata is metadata

    @given(texts, texts)
    def test_equality_hash_and_pickle(self, title, text):
        passage = Passage(text, title=title, links=("x",), metadata={"unhashable": [1]})
        for twin in (pickle.loads(pickle.dumps(passage)), copy.deepcopy(passage)):
            assert twin == passage
            assert hash(twin) == hash(passage)
            assert twin.titled_text == passage.titled_text

    @pytest.mark.parametrize("arguments", [{"text": None}, {"text": b"a"}, {"text": "a", "title": None}, {"text": 1.0}])
    def test_text_and_title_are_strings(self, arguments):
        with pytest.raises(InvalidInput, match="strings"):
            Passage(**arguments)


class TestPath:
    one, two, three = (Passage(text, id=text, title=text.upper()) for text in ("one", "two", "three"))

    @pytest.mark.parametrize("nothing", [(), []])
    def test_an_empty_path_is_refused(self, nothing):
        with pytest.raises(InvalidInput, match="at least one passage"):
            Path(nothing)


class TestRanked:
    @given(
        st.lists(st.sampled_from([-3.0, -2.0, -2.0, -1.5, 0.0]) | scores, max_size=8), st.integers(1, 10) | st.none()
    )
    def test_falls_with_ties_in_input_order(self, values, top_n):
        items = [Passage("same text") for _ in values]
        given_details = [{"tokens": i} for i in range(len(values))]
        result = ranked(items, values, given_details, top_n)
        expected = sorted(range(len(values)), key=lambda i: (-values[i], i))[:top_n]
        assert [entry.details["position"] for entry in result] == expected
        assert all(entry.passage is items[i] for entry, i in zip(result, expected, strict=True))
        assert [entry.score for entry in result] == [values[i] for i in expected]
        assert [entry.rank for entry in result] == list(range(1, len(result) + 1))
        assert [entry.details["tokens"] for entry in result] == expected
        assert given_details == [{"tokens": i} for i in range(len(values))]  # the caller's are left alone

    @pytest.mark.parametrize("top_n", [0, -1, True, False, 1.0, "3", float("nan")])
    def test_top_n_is_a_positive_integer_or_none(self, top_n):
        with pytest.raises(InvalidInput, match="top_n"):
            check_top_n(top_n)
        with pytest.raises(InvalidInput, match="top_n"):
            ranked([], [], [], top_n)

    @pytest.mark.parametrize("sizes", [(1, 2, 1), (2, 1, 1), (1, 1, 2), (0, 1, 1)])
    def test_counts_that_differ_are_refused(self, sizes):
        items, values, details = sizes
        with pytest.raises(InvalidInput, match="cannot be paired"):
            ranked([Passage("a")] * items, [0.0] * values, [{}] * details)
