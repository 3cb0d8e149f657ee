"""Cross-encoders of sentence-transformers: `"ce:<model>"`."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np

from drillrank.errors import InvalidInput, check_limits, check_positive, invalid_input, require
from drillrank.likelihood.base import RelevanceRequest, RelevanceScore
from drillrank.likelihood.process import Worker, keep_in_children, require_torch, settle_threads
from drillrank.likelihood.relevance import RelevanceModel
from drillrank.settings import check_one_of
from drillrank.text import without_surrogates

T = TypeVar("T")
Backend = Literal["torch", "onnx", "openvino"]

logger = logging.getLogger(__name__)


class CrossEncoderModel(RelevanceModel):
    """A cross-encoder of sentence-transformers, which reads a query and a document together.

    Log-odds are the model's raw logit, `CrossEncoder.predict(pairs, activation_fn=torch.nn.Identity())`. Their sigmoid
    is P(relevant), which is what `predict` returns for most models. A pair that is too long is truncated by
    sentence-transformers, the longer text first.

    Args:
        name: Model id, such as `cross-encoder/ms-marco-MiniLM-L6-v2`, or directory.
        backend: Library that computes: `"torch"`, `"onnx"` or `"openvino"`, which need `sentence-transformers[onnx]` or
            `sentence-transformers[openvino]`.
        max_length: Maximum number of tokens of a pair, special tokens included; None means the model's own limit.
        batch_size: Number of pairs that are computed together.
        device: Device of the model, such as "cpu" or "cuda:0"; None lets sentence-transformers choose.
        revision: Branch, tag or commit of the model.
        model_kwargs: Arguments of the backend's loader, such as `{"file_name": "onnx/model_qint8_avx512.onnx"}` or
            `{"dtype": "bfloat16"}`.
        local_files_only: True to never download a model.
        trust_remote_code: True to run code that comes with the model. Keep it False unless you trust its author.
        show_progress: True to show a progress bar on standard error.

    Raises:
        MissingExtra: sentence-transformers is not installed.
        InvalidInput: An option cannot be used, or, at the first use, the model.
    """

    def __init__(
        self,
        name: str,
        *,
        backend: Backend = "torch",
        max_length: int | None = None,
        batch_size: int = 32,
        device: str | None = None,
        revision: str | None = None,
        model_kwargs: Mapping[str, Any] | None = None,
        local_files_only: bool = False,
        trust_remote_code: bool = False,
        show_progress: bool = False,
    ) -> None:
        if not name:
            raise InvalidInput('"ce:" needs a model id or a directory after the colon.')
        check_one_of(Backend, backend=backend)
        check_limits(max_length=max_length)
        check_positive(batch_size=batch_size)
        require_installed("sentence_transformers", "st")
        self._name = name
        self._batch_size, self._show_progress = batch_size, show_progress
        self._options = {
            "backend": backend,
            "max_length": max_length,
            "device": device,
            "revision": revision,
            "model_kwargs": None if model_kwargs is None else dict(model_kwargs),
            "local_files_only": local_files_only,
            "trust_remote_code": trust_remote_code,
        }
        self._worker = Worker()
        self._loaded: _LoadedEncoder | None = None

    @property
    def spec(self) -> str:
        """`"ce:"` and the model's name."""
        return f"ce:{self._name}"

    @property
    def options(self) -> dict[str, Any]:
        """Options with which `load_language_model` builds an equal model."""
        return {**self._options, "batch_size": self._batch_size, "show_progress": self._show_progress}

    async def run_in_worker(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function on the thread on which this model computes, without blocking the event loop."""
        return await asyncio.wrap_future(self._worker.submit(function, *arguments))

    def relevance_batch(self, requests: Sequence[RelevanceRequest]) -> list[RelevanceScore]:
        """Compute the logit of each pair of query and document. Equal pairs are computed once."""
        return self._worker.run(self._score, requests)

    def first_tokens(self, text: str, count: int) -> str:
        """Return the longest beginning of a text that has at most `count` of the model's tokens."""
        return self._worker.run(lambda: _first_tokens(self._encoder().tokenizer, text, count))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the specification; the model is loaded again where it is unpickled."""
        return partial(type(self), **self.options), (self._name,)

    def _score(self, requests: Sequence[RelevanceRequest]) -> list[RelevanceScore]:
        loaded, distinct = self._encoder(), dict.fromkeys(requests)
        settle_threads()
        pairs, n_cut_by_limit = [], []
        for request in distinct:
            query, document = without_surrogates(request.query), without_surrogates(request.document.text)
            limit = request.document.max_tokens
            kept = document if limit is None else _first_tokens(loaded.tokenizer, document, limit)
            n_cut_by_limit.append(0 if kept == document else _count_tokens(loaded.tokenizer, document[len(kept) :]))
            pairs.append((query, kept))
        logits = loaded.predict(pairs, self._batch_size, self._show_progress)
        overflow = [loaded.count_overflow(pair) for pair in pairs]
        scores = [
            RelevanceScore(logit, n_cut + n_over)
            for logit, n_cut, n_over in zip(logits, n_cut_by_limit, overflow, strict=True)
        ]
        score_by_request = dict(zip(distinct, scores, strict=True))
        return [score_by_request[request] for request in requests]

    def _encoder(self) -> _LoadedEncoder:
        if self._loaded is None or self._loaded.process != os.getpid():
            self._loaded = self._load()
        return self._loaded

    def _load(self) -> _LoadedEncoder:
        require_torch("st")
        sentence_transformers = require("sentence_transformers", "st")
        with invalid_input(
            f"The cross-encoder {self._name!r:.200} cannot be loaded",
            "Pass the id or the directory of a model that sentence_transformers.CrossEncoder loads.",
        ):
            model = sentence_transformers.CrossEncoder(self._name, **self._options)
        if model.num_labels != 1:
            raise InvalidInput(
                f"{self._name!r:.200} has {model.num_labels} labels and no score of relevance. Use a cross-encoder "
                "with one label, such as cross-encoder/ms-marco-MiniLM-L6-v2."
            )
        logger.info("Loaded the cross-encoder %s by %s.", self._name, self._options["backend"])
        return _LoadedEncoder(model, model.tokenizer, os.getpid())


@dataclass(eq=False)
class _LoadedEncoder:
    """A loaded `sentence_transformers.CrossEncoder`.

    Attributes:
        model: The cross-encoder.
        tokenizer: Its tokenizer.
        process: Id of the process that loaded it.
    """

    model: Any
    tokenizer: Any
    process: int

    def __post_init__(self) -> None:
        keep_in_children(self)

    def predict(self, pairs: Sequence[tuple[str, str]], batch_size: int, show_progress: bool) -> list[float]:
        """Return the raw logit of each pair.

        Raises:
            InvalidInput: A logit is not a finite number.
        """
        import torch

        logits = self.model.predict(
            list(pairs), batch_size=batch_size, show_progress_bar=show_progress, activation_fn=torch.nn.Identity()
        )
        values = np.asarray(logits, dtype=np.float64)
        if values.shape != (len(pairs),) or not np.isfinite(values).all():
            raise InvalidInput(
                "The cross-encoder must return one finite number per pair, got an array of shape "
                f"{values.shape}. Its weights may be broken, or overflow in this dtype; use float32."
            )
        return [float(value) for value in values]

    def count_overflow(self, pair: tuple[str, str]) -> int:
        """Return the number of tokens by which a pair exceeds what the model reads."""
        has_new_name = hasattr(self.model, "max_seq_length")  # since sentence-transformers 6
        longest = self.model.max_seq_length if has_new_name else self.model.max_length
        if longest is None or sum(map(len, pair)) < longest:  # a token has at least one character
            return 0
        return max(0, len(self.tokenizer(*pair, truncation=False, verbose=False)["input_ids"]) - int(longest))


def require_installed(module: str, extra: str) -> None:
    """Check that a library can be imported, without importing it, as that takes seconds for those with torch.

    Raises:
        MissingExtra: The library is not installed.
    """
    from importlib.util import find_spec

    if find_spec(module) is None:
        require(module, extra)


def _count_tokens(tokenizer: Any, text: str) -> int:
    return len(tokenizer(text, add_special_tokens=False, truncation=False, verbose=False)["input_ids"])


def _first_tokens(tokenizer: Any, text: str, count: int) -> str:
    encoded = tokenizer(text, add_special_tokens=False, truncation=False, return_offsets_mapping=True, verbose=False)
    ends = [end for _, end in encoded["offset_mapping"]]
    return text if len(ends) <= count else text[: ends[count - 1]] if count else ""
