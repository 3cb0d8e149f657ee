"""Rerank servers: `"http://host:port/rerank#<model>"`.

Each kind of server (`RerankAPI`) has its request, and the scale of its scores. A cross-encoder scores each document
alone, so requests may be split: the score of a document does not depend on the other documents of a request.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeVar

from drillrank.errors import InvalidInput, check_limits, check_positive, require
from drillrank.likelihood.base import RelevanceRequest, RelevanceScore
from drillrank.likelihood.http_client import HTTPClient, check_connection, split_address
from drillrank.likelihood.process import PerProcess
from drillrank.likelihood.relevance import RelevanceModel
from drillrank.progress import progress_bar
from drillrank.settings import check_one_of
from drillrank.text import without_surrogates

T = TypeVar("T")
Scores = Literal["probability", "logit"]

_SMALLEST = 1e-12  # probabilities nearer to 0 or 1 have no exact log-odds


@dataclass(frozen=True)
class RerankAPI:
    """Request and answer of one kind of rerank server.

    Attributes:
        name: Name of the kind, for errors.
        documents_key: Key of the documents in a request.
        results_key: Key of the results in an answer; None if the answer is the list of results.
        score_key: Key of the score of a result.
        needs_model: True if a request must name the model.
        max_documents: Maximum number of documents of a request.
        scores: Scale of the scores that the default request asks for.
        fields: Further fields of every request.
        logit_fields: Fields that ask for raw logits; None if the server has none.
    """

    name: str
    documents_key: str = "documents"
    results_key: str | None = "results"
    score_key: str = "relevance_score"
    needs_model: bool = True
    max_documents: int = 100
    scores: Scores = "probability"
    fields: Mapping[str, Any] = field(default_factory=dict)
    logit_fields: Mapping[str, Any] | None = None

    def payload(self, model: str, query: str, documents: Sequence[str], scores: Scores) -> dict[str, Any]:
        """Return the body of a request."""
        named = {"model": model} if model else {}
        logit_fields = (self.logit_fields or {}) if scores == "logit" else {}
        return {**named, "query": query, self.documents_key: list(documents), **self.fields, **logit_fields}

    def read(self, answer: Any, n_documents: int) -> list[float]:
        """Return the scores in an answer, in the order of the documents.

        Raises:
            LookupError, TypeError, ValueError: There is not exactly one finite number for each document.
        """
        results = answer if self.results_key is None else answer[self.results_key]
        score_by_index: dict[int, float] = {}
        for result in results:
            index, score = result["index"], result[self.score_key]
            if type(index) is not int or not 0 <= index < n_documents or index in score_by_index:
                raise ValueError(f"index {index!r:.20} is repeated or is not one of {n_documents} documents")
            if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
                raise ValueError(f"the score of document {index} is not a finite number")
            score_by_index[index] = float(score)
        if len(score_by_index) != n_documents:
            raise ValueError(f"{len(score_by_index)} scores for {n_documents} documents")
        return [score_by_index[index] for index in range(n_documents)]


RERANK_APIS: dict[str, RerankAPI] = {
    # Documented requests: text-embeddings-inference `/rerank`, vLLM `/rerank` and `/v1/rerank`, Infinity `/rerank`,
    # Cohere `/v2/rerank`, Jina `/v1/rerank`, Voyage `/v1/rerank`.
    "tei": RerankAPI(
        "text-embeddings-inference",
        documents_key="texts",
        results_key=None,
        score_key="score",
        needs_model=False,
        max_documents=32,
        scores="logit",
        fields={"truncate": True},
        logit_fields={"raw_scores": True},
    ),
    "vllm": RerankAPI("vLLM", needs_model=False, logit_fields={"use_activation": False}),
    "infinity": RerankAPI(
        "Infinity", scores="logit", fields={"return_documents": False}, logit_fields={"raw_scores": True}
    ),
    "cohere": RerankAPI("Cohere", max_documents=1000),
    "jina": RerankAPI("Jina", fields={"return_documents": False}),
    "voyage": RerankAPI("Voyage", results_key="data", max_documents=1000, fields={"return_documents": False}),
}
_API_BY_HOST = {
    "api.cohere.com": "cohere",
    "api.cohere.ai": "cohere",
    "api.jina.ai": "jina",
    "api.voyageai.com": "voyage",
}


class RerankServerModel(RelevanceModel):
    """A reranker behind text-embeddings-inference, vLLM, Infinity, Cohere, Jina or Voyage.

    Scores are converted to log-odds of relevance. A raw logit is the log-odds. A score from 0 to 1 is read as
    P(relevant), so that its log-odds are log p / (1 - p), between -27.6 and 27.6. Servers truncate long documents and
    do not report it.

    Args:
        address: `http://host:port/rerank#model`, or any address that ends with `/rerank`, such as
            `https://api.cohere.com/v2/rerank#rerank-v3.5`.
        api: Kind of the server: `"tei"`, `"vllm"`, `"infinity"`, `"cohere"`, `"jina"` or `"voyage"`. None recognizes
            Cohere, Jina and Voyage by their addresses, and is `"vllm"` otherwise.
        scores: Scale of the server's scores: `"logit"` or `"probability"`. With None, text-embeddings-inference and
            Infinity are asked for logits, and the others return probabilities.
        api_key_env: Environment variable with the API key; no key is sent if it is not set.
        documents_per_request: Maximum number of documents of one request; None is 32 for text-embeddings-inference,
            1,000 for Cohere and Voyage, and 100 for the others.
        characters_per_request: Maximum number of characters of the documents of one request, unless one document
            alone is longer.
        concurrency: Maximum number of requests at a time, over all callers.
        timeout: Maximum seconds per request, including further attempts and the pauses between them.
        retries: Maximum number of further attempts, with growing pauses: after 408, 429 and 5xx, and if the server
            cannot be reached.
        show_progress: True to show a progress bar on standard error.

    Raises:
        MissingExtra: httpx is not installed.
        InvalidInput: The address or an option cannot be used.

    >>> RerankServerModel("http://localhost:8080/rerank", api="tei").spec
    'http://localhost:8080/rerank'
    >>> RerankServerModel("https://api.jina.ai/v1/rerank")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: Jina needs the name of a model, got none. Append it: ...
    """

    def __init__(
        self,
        address: str,
        *,
        api: str | None = None,
        scores: Scores | None = None,
        api_key_env: str = "DRILLRANK_API_KEY",
        documents_per_request: int | None = None,
        characters_per_request: int = 1_000_000,
        concurrency: int = 4,
        timeout: float = 120.0,
        retries: int = 5,
        show_progress: bool = False,
    ) -> None:
        options = {name: value for name, value in locals().items() if name not in ("self", "address")}
        httpx = require("httpx", "server")
        split_address(address)
        url, _, self._model = address.partition("#")
        parsed = httpx.URL(url)
        self._path = parsed.path
        root = str(parsed.copy_with(path="/")).rstrip("/")
        if api is None:
            api = _API_BY_HOST.get(parsed.host, "vllm")
        if not isinstance(api, str) or api not in RERANK_APIS:
            raise InvalidInput(f"api must be one of {', '.join(RERANK_APIS)}, got {api!r:.200}.")
        self._api = RERANK_APIS[api]
        if self._api.needs_model and not self._model:
            raise InvalidInput(f"{self._api.name} needs the name of a model, got none. Append it: {url:.200}#<model>.")
        if scores is not None:
            check_one_of(Scores, scores=scores)
        check_limits(documents_per_request=documents_per_request)
        check_positive(characters_per_request=characters_per_request)
        check_connection(timeout=timeout, retries=retries, concurrency=concurrency)
        self._address = address
        self._scores: Scores = scores or self._api.scores
        self._options: dict[str, Any] = options | {"api": api}
        client = partial(HTTPClient, root, api_key_env=api_key_env, timeout=timeout)
        self._client = PerProcess(partial(client, retries=retries, concurrency=concurrency))

    @property
    def spec(self) -> str:
        """Address of the server."""
        return self._address

    @property
    def options(self) -> dict[str, Any]:
        """Options with which `load_language_model` builds an equal model."""
        return dict(self._options)

    async def run_in_worker(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function that uses this model, without blocking the event loop.

        It runs on a thread of this model's own. If the caller is cancelled, its requests are cancelled, too.
        """
        return await self._client().on_worker(function, *arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the specification; connections are not pickled."""
        return partial(type(self), **self._options), (self._address,)

    def relevance_batch(self, requests: Sequence[RelevanceRequest]) -> list[RelevanceScore]:
        """Compute the relevance of documents. Equal pairs are sent once.

        Raises:
            ServerFailure: The server cannot be reached, refuses, takes too long, or does not return one score for each
                document.
            InvalidInput: The number of a document's tokens is limited, which needs the model's tokenizer.
        """
        if any(request.document.max_tokens is not None for request in requests):
            raise InvalidInput(
                f"{self.spec!r:.200} counts no tokens, so documents cannot be truncated. Remove max_passage_tokens."
            )
        distinct = list(dict.fromkeys(requests))
        batches = self._batches(distinct)

        def read(index: int, answer: Any) -> list[RelevanceScore]:
            scores = self._api.read(answer, len(batches[index]))
            advance(len(scores))
            return list(map(self._as_log_odds, scores))

        texts = {text for request in distinct for text in (request.query, request.document.text)}
        with progress_bar(self._options["show_progress"], "Reranking") as (expect, advance):
            expect(len(distinct))
            score_lists = self._client().send(
                [(self._path, self._payload(batch)) for batch in batches],
                read,
                f"a rerank server of the kind {self._options['api']!r}",
                " Set api= to the kind of the server.",
                sorted(texts),
            )
        scored_requests = [request for batch in batches for request in batch]
        scores = [score for batch_scores in score_lists for score in batch_scores]
        score_by_request = dict(zip(scored_requests, scores, strict=True))
        return [score_by_request[request] for request in requests]

    def _payload(self, batch: Sequence[RelevanceRequest]) -> dict[str, Any]:
        documents = [without_surrogates(request.document.text) for request in batch]
        return self._api.payload(self._model, without_surrogates(batch[0].query), documents, self._scores)

    def _batches(self, requests: Sequence[RelevanceRequest]) -> list[list[RelevanceRequest]]:
        """Divide requests by query, and within the limits of a request."""
        max_documents = self._options["documents_per_request"] or self._api.max_documents
        requests_by_query: dict[str, list[RelevanceRequest]] = {}
        for request in requests:
            requests_by_query.setdefault(request.query, []).append(request)
        batches: list[list[RelevanceRequest]] = []
        for query_requests in requests_by_query.values():
            batch: list[RelevanceRequest] = []
            n_characters = 0
            for request in query_requests:
                n_characters += len(request.document.text)
                is_full = len(batch) == max_documents or n_characters > self._options["characters_per_request"]
                if batch and is_full:
                    batches.append(batch)
                    batch, n_characters = [], len(request.document.text)
                batch.append(request)
            batches.append(batch)
        return batches

    def _as_log_odds(self, score: float) -> RelevanceScore:
        """Convert a score of the server to log-odds.

        Raises:
            ValueError: The score is not a probability, but should be one.
        """
        if self._scores == "logit":
            return RelevanceScore(score)
        if not 0 <= score <= 1:
            raise ValueError(f'a score is {score:.6g}, not a probability; set scores="logit" for raw scores')
        probability = min(max(score, _SMALLEST), 1 - _SMALLEST)
        return RelevanceScore(math.log(probability) - math.log1p(-probability))
