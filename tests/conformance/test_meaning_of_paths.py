"""Path search with an embedding model of the host: what it reads, what it finds, and what it costs."""

from __future__ import annotations

import pytest

from drillrank import Passage, PromptRank
from drillrank.multihop.path_rerank import PathRerank
from tests.conformance.frameworks import LangChain, both_frameworks, build

QUESTION = "In which port did the director of The Silent Pier grow up?"
TEXTS = {
    "film": "The Silent Pier was filmed by Ada Holm.",
    "aunt": "Ada Holm did have an aunt of which we know little.",
    "holm": "Ada Holm knew the harbour of Esbjerg as a child.",
    **{f"whale {number}": f"Whales sing, verse {number}." for number in range(3)},
}
LINKS = {"film": ["holm", "aunt"]}


def vector(text):
    return [0.1, float("port" in text or "harbour" in text)]


def vectors(texts):
    return list(map(vector, texts))


def made(host, kind, **fields):
    """A component, and the records that it ranks."""
    records = [host.record(text, name, links=LINKS.get(name, [])) for name, text in TEXTS.items()]
    if kind == "rerank":
        return build(host.ext.PromptRankRerank, **fields), records
    return build(host.ext.PromptRankRetriever, source=host.retriever(records[0]), documents=records, **fields), []


@both_frameworks
@pytest.mark.parametrize("kind", ["rerank", "retrieve"])
def test_what_a_path_leads_to_is_chosen_by_meaning_each_text_embedded_once(host, kind):
    model = host.embedding(vector)
    fields = {"branch": 1, "pairs": 0, "top_n": 2, "links": ("metadata",)}

    def found(**more):
        component, records = made(host, kind, **fields, **more)
        return [(one.id, one.score) for one in host.both(component, QUESTION, *records)]

    first = found(embed=model)
    assert {id_ for id_, _ in first} == {"film", "holm"}
    assert sorted(model.texts) == sorted(TEXTS.values())
    assert found(embed=vectors) == first  # a function is a model, too
    assert {id_ for id_, _ in found()} == {"film", "aunt"}


@both_frameworks
def test_scores_are_those_of_the_core_and_a_model_is_no_part_of_a_configuration_and_kept_by_copies(host):
    passages = [Passage(text, id=name, links=tuple(LINKS.get(name, ()))) for name, text in TEXTS.items()]
    expected = PathRerank(PromptRank(), embed=vectors).rank(QUESTION, passages)
    component, records = made(host, "rerank", embed=host.embedding(vector), top_n=None)
    found = host.rerank(component, QUESTION, *records)
    assert [one.id for one in found] == [item.passage.id for item in expected]
    assert [one.score for one in found] == pytest.approx([item.score for item in expected])
    assert "embed" not in (component.model_dump() if host is LangChain else component.to_dict())
    assert host.rerank(component.model_copy(update={"top_n": 1}), QUESTION, *records) == found[:1]
