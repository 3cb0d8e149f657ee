"""D3 with passages as evidence in both frameworks: best paragraphs, spans, token budgets, the preset and `found`."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core.node_parser import SentenceSplitter

from drillrank.text import count_tokens
from tests.conformance.frameworks import LangChain, both_frameworks
from tests.conformance.readers import ASKED, BOOK, TARGET, everything

OTHER_SUBJECT = "Which orchestra did Herbert Blomstedt conduct?"


def retriever(host: Any, source: str, **fields: Any) -> Any:
    """A retriever over the book itself, its sections in a store, or another splitter's chunks in a store."""
    book = host.document(BOOK, "book", source="book.md")
    if source == "documents":
        return host.ext.D3Retriever([book], **fields)
    if source == "sections":
        return host.ext.D3Retriever(source=host.index(*host.split([book])), **fields)
    if host is LangChain:
        chunks = RecursiveCharacterTextSplitter(chunk_size=300, chunk_overlap=60, add_start_index=True)
        return host.ext.D3Retriever(source=host.index(*chunks.split_documents([book])), **fields)
    return host.ext.D3Retriever(source=host.index(*SentenceSplitter(chunk_size=90, chunk_overlap=20)([book])), **fields)


each_source = pytest.mark.parametrize("source", ["documents", "sections", "chunks"])


@both_frameworks
@each_source
def test_a_passage_joins_paragraphs_and_names_its_best_one(host, source):
    best, *others = host.both(retriever(host, source), ASKED)
    assert TARGET in best.text
    assert len(best.text) > 2 * len(TARGET)
    assert best.metadata["drillrank_best_paragraph"] == TARGET
    start, end = best.metadata["drillrank_best_start"], best.metadata["drillrank_best_end"]
    assert BOOK[start:end] == TARGET
    if source != "chunks":
        for item in (best, *others):
            assert BOOK[item.start : item.start + len(item.text)] == item.text
    for item in (best, *others):
        assert item.metadata["drillrank_section_path"] in item.metadata["drillrank_section_paths"]


@both_frameworks
@each_source
def test_ids_of_passages_are_unique_and_the_same_for_each_question(host, source):
    found = retriever(host, source, top_n=99)
    starts = {}
    for question in (ASKED, "When was chapter 3.1 written?", "What is part 1 of?"):
        items = host.retrieve(found, question)
        assert len({item.id for item in items}) == len(items)
        for item in items:
            assert starts.setdefault(item.id, item.start) == item.start


@both_frameworks
@each_source
@pytest.mark.parametrize("max_tokens", [1, 60, 400])
def test_evidence_fits_into_a_token_budget(host, source, max_tokens):
    found = retriever(host, source, max_tokens=max_tokens, settings={"unit": "paragraph"})
    if max_tokens == 1:
        with pytest.warns(UserWarning, match="max_tokens=1"):
            items = host.retrieve(found, ASKED)
    else:
        items = host.both(found, ASKED)
        assert TARGET in [item.text for item in items]
    assert sum(count_tokens(item.text) for item in items) <= max_tokens
    assert len(items) > (5 if max_tokens == 400 else 0)


@both_frameworks
def test_a_token_budget_sets_no_other_limit_unless_top_n_is_given(host):
    many = retriever(host, "documents", max_tokens=400, settings={"unit": "paragraph"})
    few = retriever(host, "documents", max_tokens=400, top_n=2, settings={"unit": "paragraph"})
    assert len(host.retrieve(many, ASKED)) > 5
    assert len(host.retrieve(few, ASKED)) == 2


@both_frameworks
@pytest.mark.parametrize("is_setting", [False, True])
def test_the_papers_preset_returns_all_paragraphs_that_the_llm_chose(host, is_setting):
    settings = {"summarizer": lambda texts: [text[:20] for text in texts]}
    preset = {"settings": {**settings, "preset": "paper"}} if is_setting else {"preset": "paper", "settings": settings}
    items = host.both(retriever(host, "documents", llm=host.reader(everything), **preset), ASKED)
    assert len(items) == 3 + 9 * 3
    assert TARGET in [item.text for item in items]
    few = retriever(host, "documents", llm=host.reader(everything), top_n=4, **preset)
    assert len(host.retrieve(few, ASKED)) == 4


@both_frameworks
def test_without_a_preset_five_results_are_returned(host):
    settings = {"unit": "paragraph"}
    items = host.retrieve(retriever(host, "documents", llm=host.reader(everything), settings=settings), ASKED)
    assert len(items) == 5


def test_limits_and_preset_of_a_retriever_are_serialized():
    for fields in ({"max_tokens": 400}, {"top_n": 2}, {"preset": "paper"}, {"top_n": None}):
        original = LangChain.ext.D3Retriever([LangChain.document(BOOK, "book")], **fields)
        for copy in LangChain.copies(original):
            assert LangChain.retrieve(copy, ASKED) == LangChain.retrieve(original, ASKED)


@both_frameworks
@each_source
def test_found_and_confidence_are_in_metadata_and_the_last_event(host, source):
    items, events = host.hear(retriever(host, source), ASKED)
    for item in items:
        assert item.metadata["drillrank_found"] is True
        assert 0.5 < item.metadata["drillrank_confidence"] <= 1
    assert (events[-1]["found"], events[-1]["confidence"]) == (True, items[0].metadata["drillrank_confidence"])
    items, events = host.hear(retriever(host, source, top_n=1), OTHER_SUBJECT)
    assert events[-1]["found"] is False
    assert all(item.metadata["drillrank_found"] is False for item in items)


@both_frameworks
def test_found_of_an_llm_has_no_confidence(host):
    items, events = host.hear(retriever(host, "documents", llm=host.reader(everything)), ASKED)
    assert all(item.metadata["drillrank_found"] is True for item in items)
    assert not any("drillrank_confidence" in item.metadata for item in items)
    _, events = host.hear(retriever(host, "documents", llm=host.reader(lambda prompt: "none")), ASKED)
    assert events[-1]["found"] is False


@both_frameworks
def test_parts_of_a_long_rendered_paragraph_are_one_document(host):
    """Each part has the span of the whole paragraph, which is not a sign of two versions."""
    items = " ".join(
        f"<b>Item {number}</b> costs {number * 37 % 1009} &amp; is in shop {number}." for number in range(150)
    )
    page = host.document(f"<h1>Shop</h1><p>Open daily.</p><h2>Prices</h2><p>{items}</p><p>Cash only.</p>", "shop.html")
    sections = host.split([page], views=["raw"])
    assert len({record.metadata["drillrank_start"] for record in sections}) < len(sections)
    found = host.both(host.ext.D3Retriever(source=host.index(*sections), top_n=9), "What does Item 130 cost?")
    assert "Item 130 costs 774 & is in shop 130." in found[0].text
    assert len({item.id for item in found}) == len({item.text for item in found}) == len(found)
