from __future__ import annotations

import pickle
import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from drillrank.multihop.mentions import TitleMentions
from drillrank.passages import Passage

pieces = st.sampled_from(["New", "York", "City", "new", "St", "AC", "DC", "Zürich", ".", "/", "-", "'s"])
glue = st.sampled_from([" ", " ", " ", "", "\n", "  "])
phrases = st.lists(st.tuples(pieces, glue), max_size=4).map(lambda parts: "".join(map("".join, parts)))
titles = st.tuples(phrases, st.sampled_from(["", "", " (film)", " (1999) (film)", "(x)"])).map("".join)
pools = st.lists(st.tuples(titles, st.lists(phrases, max_size=5).map(" ".join)), min_size=1, max_size=6)


def short(title):
    return re.sub(r"\([^()]*\)\s*$", "", title).strip()


def words(text):
    return re.findall(r"\w+|[^\w\s]", text)


def pattern(title):
    """The title at word borders; white space may stand between any two of its tokens, and must between two words."""
    tokens = words(title)
    expression = re.escape(tokens[0])
    for left, right in pairwise(tokens):
        both_are_words = left[-1].isalnum() and right[0].isalnum()
        expression += (r"\s+" if both_are_words else r"\s*") + re.escape(right)
    front = r"(?<!\w)" if tokens[0][0].isalnum() else ""
    back = r"(?!\w)" if tokens[-1][-1].isalnum() else ""
    return f"(?={front}{expression}{back})"


@given(pools)
def test_mentions_are_those_of_one_regular_expression_per_title(pool):
    passages = [Passage(text, id=str(i), title=title) for i, (title, text) in enumerate(pool)]
    mentioned = TitleMentions().over(passages)
    for passage in passages:
        found = [
            (match.start(), -len(words(short(other.title))), order)
            for order, other in enumerate(passages)
            if len(short(other.title)) >= 4 and words(short(other.title)) != words(short(passage.title))
            for match in re.finditer(pattern(short(other.title)), passage.text)
        ]
        expected = dict.fromkeys(str(order) for _, _, order in sorted(found))
        assert list(mentioned(passage)) == list(expected)


def mentions(text, *named):
    passages = [Passage(f"text {i}", id=name, title=name) for i, name in enumerate(named)]
    return list(TitleMentions().over(passages)(Passage(text)))


def test_a_title_longer_than_any_mention_is_not_looked_for():
    longest, too_long = "word " * 63 + "end", "word " * 64 + "end"
    text = too_long + "."
    assert mentions(text, longest, too_long) == [longest]


def test_an_index_of_long_titles_can_be_pickled():
    index = TitleMentions().over([Passage("a", id="1", title="one more " * 30)])
    assert list(pickle.loads(pickle.dumps(index))(Passage("one more " * 40))) == ["1"]
