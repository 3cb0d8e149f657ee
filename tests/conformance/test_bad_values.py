"""One bad input value fails no question: it counts as unknown, is replaced, or is passed through unchanged."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.retrievers import BaseRetriever

from tests.conformance.frameworks import COMPONENTS, LlamaIndex, both_frameworks
from tests.examples import examples

QUERY = "Who hunts mice?"
TEXTS = ["Foxes hunt mice at night.", "Owls hoot.", "Elks eat leaves."]
BOOK = "# Foxes\n\nThey hunt mice.\n\n# Owls\n\nThey hoot at night."
RERANKERS = ("UPRRerank", "BRMGRRerank", "PromptRankRerank")
RETRIEVERS = ("D3Retriever", "MultiViewRetriever", "BRMGRRetriever", "PromptRankRetriever")
CASES = [case for case in COMPONENTS if case.values[1] in (*RERANKERS, *RETRIEVERS)]
for_each_reranker = pytest.mark.parametrize("name", RERANKERS)

bad_scores = st.sampled_from([float("nan"), float("inf"), -float("inf"), 10**400, "best", True])
half_characters = st.sampled_from(["\ud800", "\udfff", "\udc00\ud800"])


def nested(depth):
    value = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def recursive():
    mapping, items = {}, []
    mapping["self"] = mapping
    items.append([items, mapping])
    return items


METADATA = {"deep": lambda: nested(5_000), "recursive": recursive}


def hit(host, text, score):
    """A hit as a broken store returns it: no validation refuses its score."""
    if host is LlamaIndex:
        return host.hit(host.record(text, id=text), 0.5).model_copy(update={"score": score})
    return host.record(text, id=text, **({} if score is None else {"relevance_score": score}))


@both_frameworks
@for_each_reranker
@settings(deadline=None, max_examples=examples(6))
@given(bad_scores)
def test_a_bad_score_counts_as_unknown(host, name, score):
    reranker = getattr(host.ext, name)(prior="retrieval")
    hits = [hit(host, *pair) for pair in zip(TEXTS, [0.9, score, 0.1], strict=True)]
    found = [one.text for one in host.both(reranker, QUERY, *hits)]
    unknown = [hit(host, *pair) for pair in zip(TEXTS, [0.9, None, 0.1], strict=True)]
    assert found == [one.text for one in host.rerank(reranker, QUERY, *unknown)]


class BadScores(BaseRetriever):
    """Finds the same nodes with scores that no store should return."""

    def _retrieve(self, query_bundle):
        return [hit(LlamaIndex, text, score) for text, score in zip(TEXTS, [float("nan"), 10**400, 0.1], strict=True)]


@pytest.mark.filterwarnings("ignore:MultiViewRetriever. there are chunks")
@pytest.mark.parametrize("name", RETRIEVERS)
def test_a_retriever_takes_nodes_with_bad_scores(name):
    fields = {"llm": LlamaIndex.llm(["Foxes hunt mice."])} if name == "BRMGRRetriever" else {}
    source = {"raw": BadScores()} if name == "MultiViewRetriever" else BadScores()
    found = LlamaIndex.both(getattr(LlamaIndex.ext, name)(source=source, **fields), QUERY)
    assert TEXTS[0] in [one.text for one in found]


@both_frameworks
@for_each_reranker
@settings(deadline=None, max_examples=examples(3))
@given(half_characters)
def test_half_a_character_is_replaced_in_the_question_and_in_the_texts_of_a_reranker(host, name, half):
    reranker = getattr(host.ext, name)(top_n=1)
    records = [host.record(text + half) for text in TEXTS]
    [best] = host.both(reranker, f"Who{half} hunts mice?", *records)
    assert best.text == TEXTS[0] + half, "the record itself is returned"
    [expected] = host.rerank(reranker, "Who\ufffd hunts mice?".replace("\ufffd", "\ufffd" * len(half)), *records)
    assert best.score == expected.score


@pytest.mark.parametrize(("host", "name"), [case for case in CASES if case.values[1] in RETRIEVERS])
def test_half_a_character_is_replaced_in_the_question_and_in_the_texts_of_a_retriever(host, name):
    retriever = host.made(name, [host.document(BOOK.replace("mice", "mice \ud800"), "a")])
    found = host.both(retriever, "Who \udfff hunts mice?")
    assert any("mice" in one.text for one in found)


@pytest.mark.parametrize("metadata", METADATA.values(), ids=METADATA)
@pytest.mark.parametrize(("host", "name"), CASES)
def test_deep_and_recursive_metadata_are_passed_through(host, name, metadata):
    value = metadata()
    if name in RERANKERS:
        found = host.ask(getattr(host.ext, name)(), QUERY, host.record(TEXTS[0], x=value), host.record(TEXTS[1]))
    else:
        found = host.ask(host.made(name, [host.document(BOOK, "a", x=value)]), QUERY)
    [kept] = {type(one.metadata["x"]) for one in found if "x" in one.metadata}
    assert kept is type(value)


@both_frameworks
def test_a_title_that_is_nested_too_deeply_is_no_title(host):
    for name in RERANKERS:
        [found] = host.ask(getattr(host.ext, name)(), QUERY, host.record(TEXTS[0], title=nested(5_000)))
        assert found.text == TEXTS[0]
