"""A reranking service: one language model, many users who need not be trusted.

    pip install "drillrank[hf]" fastapi uvicorn prometheus-client opentelemetry-api
    DRILLRANK_MODEL=hf:google/flan-t5-base python examples/serving/rerank_service.py

`DRILLRANK_MODEL=http://vllm:8000/v1#<model>` puts the same service in front of vLLM. Requests and answers are those
of the rerank APIs of Jina and Cohere. Environment:

    DRILLRANK_MODEL        specification of the model; "unigram" by default
    DRILLRANK_SERVICE_KEY  bearer token of those who may ask; without it everybody may, as for /health and /ready
    DRILLRANK_QUEUE        requests that may wait or be computed at a time; one more is answered with 503; 64
    DRILLRANK_TIMEOUT      seconds after which a request is given up with 504; 30
    DRILLRANK_BODY         bytes of a request; a longer one is answered with 413; 4,000,000
    HOST, PORT             where it listens; 127.0.0.1 and 8080
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from opentelemetry import trace
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest
from pydantic import BaseModel, Field
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from drillrank import UPR, LanguageModel, load_language_model
from drillrank.errors import InvalidInput, ServerFailure

MODEL = os.environ.get("DRILLRANK_MODEL", "unigram")
KEY = os.environ.get("DRILLRANK_SERVICE_KEY", "").strip()
QUEUE = int(os.environ.get("DRILLRANK_QUEUE", "64"))
TIMEOUT = float(os.environ.get("DRILLRANK_TIMEOUT", "30"))
BODY = int(os.environ.get("DRILLRANK_BODY", "4000000"))
OPEN = ("/health", "/ready")  # to whoever probes
SLOWEST = 10.0  # seconds that a request may take to arrive

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

    query: str = Field(max_length=10_000)
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


class Unavailable(Exception):
    """The model is not loaded, or has enough to do."""


class Service:
    """The model, once it is loaded, and the requests that it has."""

    model: LanguageModel | None = None
    ranker: UPR
    status = "The model is being loaded."

    def __init__(self) -> None:
        self.places: set[object] = set()

    def load(self) -> None:
        """Load the model, and ask it once: what is slow at the first use is done before the first user comes."""
        try:
            model = load_language_model(MODEL)
            self.ranker = UPR(model)
            self.ranker.rank("Is it ready?", ["It is ready."])
            self.model = model
        except Exception:
            logger.exception("The model cannot be loaded.")
            self.status = "The model cannot be loaded: the service's log says why."

    async def rank(self, question: Question) -> list[Result]:
        """Rank on a thread. Work that has begun keeps its slot until it ends, even if the client has disconnected.

        Raises:
            Unavailable: the queue is full.
            TimeoutError: it took too long.
        """
        if self.model is None:
            raise Unavailable(self.status)
        if len(self.places) >= QUEUE:
            raise Unavailable(f"{QUEUE} requests wait already.")
        place, loop, begun = object(), asyncio.get_running_loop(), False

        def work() -> list[Result]:
            nonlocal begun
            begun = True
            try:
                ranking = self.ranker.rank(question.query, question.documents, question.top_n)
                return [Result(index=item.details["position"], relevance_score=item.score) for item in ranking]
            finally:
                loop.call_soon_threadsafe(self.leave, place)

        self.places.add(place)
        IN_QUEUE.set(len(self.places))
        try:
            return await asyncio.wait_for(self.model.run_in_worker(work), TIMEOUT)
        finally:
            if not begun:
                self.leave(place)

    def leave(self, place: object) -> None:
        """Free a place."""
        self.places.discard(place)
        IN_QUEUE.set(len(self.places))


service = Service()


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    """Load the model on a thread, and make as many threads as slots."""
    if not KEY:
        logger.warning("DRILLRANK_SERVICE_KEY is not set: everybody who can connect may ask.")
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(QUEUE + 1, "rerank"))
    loading = loop.run_in_executor(None, service.load)
    yield
    await loading


class Bounded:
    """Asks for the key, reads each request whole before it is handled, within limits; counts answers."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = perf_counter()
        status = "499"  # whoever asked has left

        async def counted(message: Message) -> None:
            nonlocal status
            status = str(message.get("status", status))
            await send(message)

        sent = dict(scope["headers"]).get(b"authorization", b"")
        if KEY and scope["path"] not in OPEN and not secrets.compare_digest(sent, f"Bearer {KEY}".encode()):
            headers = {"WWW-Authenticate": "Bearer", "Connection": "close"}
            await JSONResponse({"detail": "A bearer token is needed."}, 401, headers)(scope, receive, send)
            return
        try:
            body = await asyncio.wait_for(self.read(receive), SLOWEST)
        except (asyncio.TimeoutError, OverflowError) as problem:
            late = isinstance(problem, asyncio.TimeoutError)
            answer = JSONResponse({"detail": "Too slow." if late else f"More than {BODY} bytes."}, 408 if late else 413)
            answer.headers["Connection"] = "close"
            await answer(scope, receive, counted)
        else:
            messages = iter([{"type": "http.request", "body": body}])

            async def replay() -> Message:
                return next(messages, None) or await receive()

            await self.app(scope, replay, counted)
        if scope["path"] == "/rerank":
            SECONDS.observe(perf_counter() - started)
            ANSWERED.labels(status).inc()

    async def read(self, receive: Receive) -> bytes:
        """The body; OverflowError if it is too long."""
        body, more = bytearray(), True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > BODY:
                raise OverflowError
        return bytes(body)


app = FastAPI(title="drillrank", lifespan=lifespan)
app.add_middleware(Bounded)


@app.exception_handler(RequestValidationError)
async def refuse(_: Request, error: RequestValidationError) -> JSONResponse:
    """Report what is wrong and where, without the texts of the request."""
    wrong = [{"loc": list(one["loc"])[:3], "msg": one["msg"]} for one in error.errors()[:10]]
    return JSONResponse({"detail": wrong}, 422)


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
            return Ranking(model=MODEL.rpartition("#")[2], results=await service.rank(question))
        except Unavailable as error:
            raise HTTPException(503, str(error), headers={"Retry-After": "1"}) from error
        except ServerFailure as error:
            logger.warning("The model's server failed: %s", error)
            raise HTTPException(502, "The model's server failed: the service's log says why.") from error
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
    if service.model is None:
        raise HTTPException(503, service.status)
    return {"status": "ready"}


@app.get("/metrics")
async def metrics() -> Response:
    """For Prometheus."""
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


class Impatient(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Closes connections that send no complete request head in time. uvicorn would keep them open."""

    late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait."""
        super().connection_made(transport)
        self.wait()

    def data_received(self, data: bytes) -> None:
        """Go on; what comes between two requests may be the beginning of a slow one."""
        super().data_received(data)
        if self.busy() and self.late:
            self.late.cancel()
            self.late = None
        elif not self.busy() and not self.late:
            self.wait()

    def busy(self) -> bool:
        """Return True while a request is being handled."""
        return self.cycle is not None and not self.cycle.response_complete

    def wait(self) -> None:
        """Close the connection after a while, unless a request has come by then."""
        self.late = self.loop.call_later(SLOWEST, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        if self.late:
            self.late.cancel()
        super().connection_lost(exc)


if __name__ == "__main__":
    uvicorn.run(app, host=os.environ.get("HOST", "127.0.0.1"), port=int(os.environ.get("PORT", "8080")), http=Impatient)
