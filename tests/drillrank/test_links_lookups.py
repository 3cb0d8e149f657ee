from __future__ import annotations

import pytest

from drillrank.errors import InvalidInput
from drillrank.multihop.search import as_source
from drillrank.passages import Passage


def test_a_plain_retriever_function_fetches_nothing():
    source = as_source(lambda query, n: [Passage(query)] * n)
    assert len(source.retrieve("a", 2)) == 2
    assert list(source.fetch(["a"])) == []


@pytest.mark.parametrize("source", [7, "retriever", None, object()])
def test_what_retrieves_nothing_is_refused(source):
    with pytest.raises(InvalidInput, match="retrieves nothing"):
        as_source(source)
