"""The strategies of drilling down that need MonoT5, through both hosts."""

from __future__ import annotations

import pytest

from drillrank import MonoT5, Relevance
from drillrank.errors import InvalidInput
from tests.conformance.corpus import BOOK, QUESTION
from tests.conformance.frameworks import both_frameworks


@both_frameworks
@pytest.mark.parametrize("strategy", ["monot5", "base+monot5", "monot5+base"])
def test_any_judge_of_relevance_does_the_same_and_without_one_it_is_an_error(host, tiny_monot5, strategy):
    """Log-odds are no logarithms of a probability: what is rather relevant than not has another bound there."""

    def made(**settings):
        settings = {"paragraphs": strategy, **settings}
        return host.ext.D3Retriever([host.document(BOOK)], llm=host.reader(), settings=settings)

    by = [{"transform": transform} for transform in ("softmax", "margin")]
    judges = [MonoT5(tiny_monot5.ready), *(Relevance(tiny_monot5.ready, preset="monot5", settings=one) for one in by)]
    first, *others = ([one.text for one in host.both(made(monot5=judge), QUESTION)] for judge in judges)
    assert first
    assert others == [first] * 2
    with pytest.raises(InvalidInput, match="unigram"):
        made()
