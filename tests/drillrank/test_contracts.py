"""Twelve contracts that differ in parties, dates and figures only: which one a question means decides."""

from __future__ import annotations

from drillrank import parse_document
from tests.benchmarks.contracts import contracts, found, rankers


def test_the_clause_of_the_right_contract_is_found_first_where_chunks_cannot_tell_them_apart():
    texts, questions = contracts()
    methods = rankers([parse_document(text, "markdown") for text in texts])
    hits = {name: sum(found(ranker, asked, 1200) for asked in questions) for name, ranker in methods.items()}
    assert hits["D3"] == len(questions) == 30
    assert max(hits["UPR over chunks of 100 tokens"], hits["BM25 over chunks of 100 tokens"]) <= 10
