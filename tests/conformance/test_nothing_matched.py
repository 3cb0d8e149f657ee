"""Every component that counts words says where nothing matched, and leaves the order alone."""

from __future__ import annotations

import pytest
from llama_index.core.schema import MetadataMode

from drillrank import D3
from tests.conformance.frameworks import LlamaIndex, both_frameworks

TEXTS = ["It was a town of many long streets and squares.", "Whales.", "It was a town."]
SECTIONS = "".join(f"# {title}\n\n{text}\n\n" for title, text in zip("ABC", TEXTS, strict=True))
KEY = "drillrank_nothing_matched"


@both_frameworks
@pytest.mark.parametrize("name", ["UPRRerank", "BRMGRRerank", "PromptRankRerank", "D3Retriever"])
def test_it_is_told_of_each_result_to_no_model_and_forgotten_with_the_next_question(host, name):
    component = host.made(name, [host.document(SECTIONS)], top_n=3)
    records = [host.record(text, str(number)) for number, text in enumerate(TEXTS)] if name != "D3Retriever" else []
    found = host.ask(component, "Which foxes sing?", *records)
    assert [one.text for one in found] == TEXTS
    assert [one.metadata[KEY] for one in found] == [True] * 3
    if host is LlamaIndex:
        for hit in component.retrieve("Which foxes sing?") if not records else []:
            assert hit.node.get_content(MetadataMode.EMBED) == hit.node.get_content(MetadataMode.LLM) == hit.text
    again = [host.record(one.text, one.id, **one.metadata) for one in found] if records else []
    assert not any(KEY in one.metadata for one in host.ask(component, "Which town?", *again))


def test_what_the_llm_chose_did_match():
    found = D3(lambda prompt: "1, 2, 3", settings={"sections_by": "json", "unit": "paragraph"}).retrieve(
        "Which foxes sing?", [SECTIONS]
    )
    assert [item.passage.text for item in found] == TEXTS
    assert not any(item.details["nothing_matched"] for item in found)


def test_vectors_tell_apart_what_no_word_does():
    vectors = {text: [float(text == "Whales."), 1.0] for text in TEXTS}
    d3 = D3(embed=lambda texts: [vectors.get(text, [1.0, 0.0]) for text in texts], settings={"unit": "paragraph"})
    found = d3.retrieve("Which foxes sing?", [SECTIONS], top_n=3)
    assert found[0].passage.text == "Whales."
    assert not any(item.details["nothing_matched"] for item in found)
