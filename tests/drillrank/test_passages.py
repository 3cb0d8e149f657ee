from __future__ import annotations

import copy
import pickle

from hypothesis import given
from hypothesis import strategies as st

from drillrank.passages import Passage, Path, check_top_n, ranked
from tests.drillrank.helpers import refuses

# NUL stays out of titles and texts here; every other code point may occur, lone surrogates too.
texts = st.text(st.characters(codec=None, exclude_characters="\0"), max_size=8)
scores = st.floats(allow_nan=False, min_value=-1e9, max_value=0)


@given(texts, texts, texts, texts)
def test_ids_tell_title_and_text_apart(title, text, other_title, other_text):
    one, other = Passage(text, title=title), Passage(other_text, title=other_title)
    assert (one.id == other.id) == ((title, text) == (other_title, other_text))


def test_ids_links_and_metadata():
    assert len({Passage(text).id for text in ("\ud800", "\udfff", "?", "")}) == 4  # lone surrogates, too
    assert Passage("text", title="title").id == "97c544f9125afd288bcf47d428ce4246"  # in every version
    assert Passage("a", id="mine").id == "mine"
    assert Passage("a", id="").id == Passage("a", id=None).id == Passage("a").id
    metadata = {"page": 3}
    passage = Passage("a", links=["x", "y"], metadata=metadata)
    assert passage.links == ("x", "y")
    assert passage.metadata is metadata


@given(texts, texts)
def test_equality_hash_and_pickle(title, text):
    passage = Passage(text, title=title, links=("x",), metadata={"unhashable": [1]})
    for twin in (pickle.loads(pickle.dumps(passage)), copy.deepcopy(passage)):
        assert twin == passage
        assert hash(twin) == hash(passage)
        assert twin.titled_text == passage.titled_text


@given(st.lists(st.sampled_from([-3.0, -2.0, -2.0, -1.5, 0.0]) | scores, max_size=8), st.integers(1, 10) | st.none())
def test_a_ranking_falls_with_ties_in_input_order(values, top_n):
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


BAD = [{"text": None}, {"text": b"a"}, {"text": "a", "title": None}, {"text": 1.0}]
test_what_makes_no_passage_no_path_and_no_ranking_is_refused = refuses(
    *((lambda bad=bad: Passage(**bad), "strings") for bad in BAD),
    *((lambda nothing=nothing: Path(nothing), "one or more Passage objects") for nothing in ((), [])),
    *((lambda top_n=top_n, check=check: check(top_n), "top_n")
      for top_n in (0, -1, True, False, 1.0, "3", float("nan"))
      for check in (check_top_n, lambda top_n: ranked([], [], [], top_n))),
    *((lambda sizes=sizes: ranked([Passage("a")] * sizes[0], [0.0] * sizes[1], [{}] * sizes[2]), "cannot be paired")
      for sizes in ((1, 2, 1), (2, 1, 1), (1, 1, 2), (0, 1, 1))),
)  # fmt: skip
