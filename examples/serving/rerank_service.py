"""A reranking service: one language model, many users.

    pip install "drillrank[hf]" fastapi uvicorn prometheus-client opentelemetry-api
    DRILLRANK_MODEL=hf:google/flan-t5-base uvicorn --app-dir examples/serving rerank_service:app

`DRILLRANK_MODEL=http://vllm:8000/v1#<model>` puts the same service in front of vLLM. Requests and answers are those
of the rerank APIs of Jina and Cohere. Environment:

    DRILLRANK_MODEL    specification of the model; "unigram" by default
    DRILLRANK_QUEUE    requests that may wait or be computed at a time; one more is answered with 503; 64
    DRILLRANK_TIMEOUT  seconds after which a request is given up with 504, and its place in the queue is free; 30
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from time import perf_counter

from fastapi import FastAPI, HTTPException, Request, Response
from opentelemetry import trace
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest
from pydantic import BaseModel, Field

from drillrank import UPR, load_language_model
from drillrank.errors import InvalidInput, Overloaded, ServerFailure

MODEL = os.environ.get("DRILLRANK_MODEL", "unigram")
QUEUE = int(os.environ.get("DRILLRANK_QUEUE", "64"))
TIMEOUT = float(os.environ.get("DRILLRANK_TIMEOUT", "30"))

logger = logging.getLogger("rerank_service")
tracer = trace.get_tracer("rerank_service")
ANSWERED = Counter("rerank_requests_total", "Rerank requests, by status.", ["status"])
SECONDS = Histogram("rerank_seconds", "Seconds from a rerank request to its answer.")
CANDIDATES = Histogram(
    "rerank_candidates", "Documents of a rerank request.", buckets=(1, 5, 10, 20, 50, 100, 500, 1000)
)
IN_QUEUE = Gauge("rerank_in_queue", "Rerank requests that wait or are computed.")


class Question(BaseModel):
    """A query and the documents to rank for it."""

    query: str
    documents: list[str] = Field(max_length=1000)
    top_n: int | None = Field(default=None, ge=1)


class Result(BaseModel):
    """One document: its position in the request, and its score, the mean log-likelihood of the query's tokens."""

    index: int
    relevance_score: float


class Ranking(BaseModel):
    """Documents, best first."""

    model: str
    results: list[Result]


class Service:
    """The model, once it is loaded, and how many requests it has."""

    ranker: UPR | None = None
    failure: str | None = None
    in_queue = 0

    def load(self) -> None:
        """Load the model, and ask it once: what is slow at the first use is done before the first user comes."""
        try:
            ranker = UPR(load_language_model(MODEL))
            ranker.rank("Is it ready?", ["It is ready."])
            self.ranker = ranker
        except Exception as error:
            logger.exception("The model %s cannot be loaded.", MODEL)
            self.failure = f"{type(error).__name__}: {error}"

    async def rank(self, question: Question) -> list[Result]:
        """Rank on a thread, with all who ask at the same time.

        Raises:
            Overloaded: the queue is full.
            TimeoutError: it took too long.
        """
        if self.ranker is None:
            raise Overloaded(self.failure or "The model is being loaded.")
        if self.in_queue >= QUEUE:
            raise Overloaded(f"{QUEUE} requests wait already.")
        self.in_queue += 1
        IN_QUEUE.set(self.in_queue)
        try:
            work = self.ranker.arank(question.query, question.documents, question.top_n)
            ranking = await asyncio.wait_for(work, TIMEOUT)
        finally:
            self.in_queue -= 1
            IN_QUEUE.set(self.in_queue)
        return [Result(index=item.details["position"], relevance_score=item.score) for item in ranking]


service = Service()


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    """Load beside the event loop; as many threads as places, so that all who wait share the next batch."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(QUEUE + 1, "rerank"))
    loading = loop.run_in_executor(None, service.load)
    yield
    await loading


app = FastAPI(title="drillrank", lifespan=lifespan)


@app.middleware("http")
async def measured(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    """Count and time rerank requests."""
    if request.url.path != "/rerank":
        return await call_next(request)
    started = perf_counter()
    response = await call_next(request)
    SECONDS.observe(perf_counter() - started)
    ANSWERED.labels(str(response.status_code)).inc()
    return response


@app.post("/rerank")
async def rerank(question: Question) -> Ranking:
    """The documents by the likelihood of the query."""
    CANDIDATES.observe(len(question.documents))
    # Names as OpenTelemetry's semantic conventions for generative AI propose them for reranking.
    with tracer.start_as_current_span("rerank " + MODEL) as span:
        span.set_attribute("gen_ai.operation.name", "rerank")
        span.set_attribute("gen_ai.request.model", MODEL)
        span.set_attribute("gen_ai.rerank.candidate.count", len(question.documents))
        if question.top_n is not None:
            span.set_attribute("gen_ai.rerank.top_n", question.top_n)
        try:
            return Ranking(model=MODEL, results=await service.rank(question))
        except Overloaded as error:
            raise HTTPException(503, str(error), headers={"Retry-After": "1"}) from error
        except ServerFailure as error:
            raise HTTPException(502, str(error)) from error
        except InvalidInput as error:
            raise HTTPException(422, str(error)) from error
        except asyncio.TimeoutError as error:
            raise HTTPException(504, f"No ranking within {TIMEOUT:g} seconds.") from error


@app.get("/health")
async def health() -> dict[str, str]:
    """The process lives."""
    return {"status": "alive"}


@app.get("/ready")
async def ready() -> dict[str, str]:
    """The model is loaded, or 503."""
    if service.ranker is None:
        raise HTTPException(503, service.failure or "The model is being loaded.")
    return {"status": "ready", "model": MODEL}


@app.get("/metrics")
async def metrics() -> Response:
    """For Prometheus."""
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
