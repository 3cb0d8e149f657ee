"""Applications whose retriever is followed by a cross-encoder or a rerank server, in both frameworks.

The servers answer in their documented forms. `make test-vllm` asks a real one.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any, NamedTuple

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.schema import TextNode

import langchain_ext
import llama_index_ext
from drillrank import Relevance, load_language_model
from drillrank.errors import ServerFailure
from tests.conformance.frameworks import DocumentEmbeddings, NodeEmbedding
from tests.drillrank.neural.tiny_cross_encoder import save_cross_encoder
from tests.drillrank.rerank_server import Refusal, RerankServer, serve

QUESTION = "Which novel did Jane Austen write?"
TEXTS = [
    "Basel lies on the Rhine.",
    "Emma is a novel that Jane Austen wrote.",
    "Foxes hunt at night.",
    "A novel is a long text that tells of people who never lived.",
    "Jane climbed the tower of Basel.",
]
N_CANDIDATES, N_RESULTS = 4, 3
APIS = ("tei", "vllm", "infinity", "cohere", "jina", "voyage")
RESULTS_KEYS = {"tei": None, "voyage": "data"}
HTML = "<!DOCTYPE html><html><body><h1>502 Bad Gateway</h1></body></html>"

Results = list[tuple[str, float]]
"""Texts and scores, best first."""


class App(NamedTuple):
    """Functions from a question to the candidates of the retriever, and to what the application returns."""

    retrieve: Callable[[str], list[str]]
    ask: Callable[[str], Results]
    aask: Callable[[str], Any]


def build_llama_index(**fields: Any) -> App:
    """Build an index and a query engine with a node postprocessor."""
    index = VectorStoreIndex([TextNode(text=text, id_=text[:5]) for text in TEXTS], embed_model=NodeEmbedding())
    reranker = llama_index_ext.RelevanceRerank(top_n=N_RESULTS, score="probability", **fields)
    engine = index.as_query_engine(
        llm=MockLLM(max_tokens=1), similarity_top_k=N_CANDIDATES, node_postprocessors=[reranker]
    )

    def results(response: Any) -> Results:
        return [(one.node.get_content(), one.score) for one in response.source_nodes]

    async def aask(question: str) -> Results:
        return results(await engine.aquery(question))

    retriever = index.as_retriever(similarity_top_k=N_CANDIDATES)
    return App(
        lambda question: [one.node.get_content() for one in retriever.retrieve(question)],
        lambda question: results(engine.query(question)),
        aask,
    )


def build_langchain(**fields: Any) -> App:
    """Build a vector store and a retriever with a document compressor."""
    store = InMemoryVectorStore(DocumentEmbeddings())
    store.add_documents([Document(text, id=text[:5]) for text in TEXTS])
    retriever = store.as_retriever(search_kwargs={"k": N_CANDIDATES})
    reranker = langchain_ext.RelevanceRerank(top_n=N_RESULTS, score="probability", **fields)
    compressing = ContextualCompressionRetriever(base_compressor=reranker, base_retriever=retriever)

    def results(documents: list[Document]) -> Results:
        return [(one.page_content, one.metadata["relevance_score"]) for one in documents]

    async def aask(question: str) -> Results:
        return results(await compressing.ainvoke(question))

    return App(
        lambda question: [one.page_content for one in retriever.invoke(question)],
        lambda question: results(compressing.invoke(question)),
        aask,
    )


@pytest.fixture(params=[build_llama_index, build_langchain], ids=["llama_index", "langchain"])
def build(request: pytest.FixtureRequest) -> Callable[..., App]:
    return request.param


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return "ce:" + save_cross_encoder(tmp_path_factory.mktemp("cross-encoder"), [QUESTION, *TEXTS])


@contextmanager
def fields_of(kind: str, cross_encoder: str) -> Iterator[dict[str, Any]]:
    """Yield the fields of a reranker, with a server behind it if it needs one."""
    if kind == "ce":
        yield {"model": cross_encoder, "model_options": {"device": "cpu"}}
    else:
        with serve(kind) as server:
            yield fields_of_server(server, kind)


def fields_of_server(server: RerankServer, api: str, **options: Any) -> dict[str, Any]:
    return {"model": f"{server.root}/rerank#tiny", "model_options": {"api": api, "retries": 0, **options}}


@pytest.mark.parametrize("kind", ["ce", *APIS])
def test_an_application_returns_the_ranking_of_the_core(build, kind, cross_encoder):
    with fields_of(kind, cross_encoder) as fields:
        app = build(**fields)
        model = load_language_model(fields["model"], **fields["model_options"])
        ranking = Relevance(model).rank(QUESTION, app.retrieve(QUESTION), N_RESULTS)
        for results in (app.ask(QUESTION), asyncio.run(app.aask(QUESTION))):
            assert [text for text, _ in results] == [item.passage.text for item in ranking]
            probabilities = [math.exp(item.score) for item in ranking]
            assert [score for _, score in results] == pytest.approx(probabilities, abs=1e-6)


def changed(api: str, change: Callable[[list[Any]], Any]) -> Callable[[Any], Any]:
    """Return a function that changes the results in an answer."""
    key = RESULTS_KEYS.get(api, "results")
    return lambda body: change(body) if key is None else {**body, key: change(body[key])}


def with_score(results: list[Any], score: Any) -> list[Any]:
    return [{**results[0], "score": score, "relevance_score": score}, *results[1:]]


REFUSALS = {
    "no key": (Refusal(401, '{"message": "invalid api token"}'), r"answered 401.*DRILLRANK_API_KEY"),
    "not allowed": (Refusal(403, '{"detail": "no access"}'), r"answered 403.*DRILLRANK_API_KEY"),
    "too many": (Refusal(429, '{"detail": "rate limit"}', {"Retry-After": "1"}), "answered 429"),
    "too large": (Refusal(413, '{"error": "batch size 64 > 32", "error_type": "Validation"}'), "answered 413"),
    "overloaded": (Refusal(503, '{"error": "overloaded", "error_type": "overloaded"}'), "answered 503"),
    "fault": (Refusal(500, "Internal Server Error"), "answered 500"),
    "page of a proxy": (Refusal(502, HTML, {"Content-Type": "text/html"}), "answered 502"),
    "page": (Refusal(200, HTML, {"Content-Type": "text/html"}), "answered, but not as a rerank server"),
    "moved": (Refusal(307, "", {"Location": "http://localhost:1/rerank"}), "answered 307"),
    "nothing": (Refusal(200, ""), "answered, but not as a rerank server"),
}
CHANGES = {
    "fewer results": (lambda results: results[:-1], "3 scores for 4 documents"),
    "no results": (lambda results: [], "0 scores for 4 documents"),
    "a result twice": (lambda results: [*results[:-1], results[0]], "is repeated"),
    "index out of range": (lambda results: [{**results[0], "index": 4}, *results[1:]], "not one of 4 documents"),
    "negative index": (lambda results: [{**results[0], "index": -1}, *results[1:]], "not one of 4 documents"),
    "not a number": (lambda results: with_score(results, math.nan), "not a finite number"),
    "infinite": (lambda results: with_score(results, math.inf), "not a finite number"),
    "text": (lambda results: with_score(results, "0.5"), "not a finite number"),
}


@pytest.fixture(scope="module")
def served_app() -> Iterator[Callable[..., tuple[RerankServer, App]]]:
    """Yield a function to the server and the application of a framework and a kind of server: one of each."""
    with ExitStack() as stack:

        @cache
        def serve_app(build: Callable[..., App], api: str) -> tuple[RerankServer, App]:
            server = stack.enter_context(serve(api))
            return server, build(**fields_of_server(server, api))

        yield serve_app


def assert_refused(server: RerankServer, app: App, fault: Any, says: str) -> None:
    """Check that a whole application reports a fault of its server, and no text that was sent."""
    for ask in (app.ask, lambda question: asyncio.run(app.aask(question))):
        server.faults.append(fault)
        with pytest.raises(ServerFailure, match=says) as caught:
            ask(QUESTION)
        assert not any(text in str(caught.value) for text in (QUESTION, *TEXTS))
    assert len(app.ask(QUESTION)) == N_RESULTS  # the next question is answered


@pytest.mark.parametrize(("refusal", "says"), REFUSALS.values(), ids=REFUSALS)
def test_an_application_reports_what_a_server_refused(served_app, build, refusal, says):
    assert_refused(*served_app(build, "vllm"), refusal, says)


@pytest.mark.parametrize(("change", "says"), CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("api", ["tei", "cohere", "voyage"])
def test_an_application_reports_an_answer_without_one_score_per_document(served_app, build, api, change, says):
    assert_refused(*served_app(build, api), changed(api, change), says)


@pytest.mark.parametrize("api", APIS)
def test_the_order_of_the_results_does_not_matter(build, api):
    with serve(api) as server:
        app = build(**fields_of_server(server, api))
        expected = app.ask(QUESTION)
        for order in (
            list,
            lambda results: results[::-1],
            lambda results: sorted(results, key=lambda one: one["index"]),
        ):
            server.faults.append(changed(api, order))
            assert app.ask(QUESTION) == expected


@pytest.mark.parametrize("refusal", [Refusal(429, "{}", {"Retry-After": "0"}), Refusal(503, HTML), Refusal(500)])
def test_a_passing_failure_of_a_server_costs_an_application_time_only(build, refusal):
    with serve("vllm") as server:
        app = build(**fields_of_server(server, "vllm", retries=2))
        expected = app.ask(QUESTION)
        server.faults.append(refusal)
        assert app.ask(QUESTION) == expected
        assert len(server.payloads) == 3


def test_a_server_that_asks_for_more_time_than_there_is_fails_at_once(build):
    with serve("vllm") as server:
        app = build(**fields_of_server(server, "vllm", retries=2, timeout=5.0))
        server.faults.append(Refusal(429, json.dumps({"detail": "rate limit"}), {"Retry-After": "50"}))
        with pytest.raises(ServerFailure, match="answered 429"):
            app.ask(QUESTION)
        assert len(server.payloads) == 1
