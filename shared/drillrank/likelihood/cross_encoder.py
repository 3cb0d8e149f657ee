"""Cross-encoders, which read a query and a document together: `"ce:<model>"` and `"ce:fastembed:<model>"`."""

from __future__ import annotations

import asyncio
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from drillrank.errors import InvalidInput, check_limits, check_mappings, check_positive, invalid_input, require
from drillrank.files import check_model_directory
from drillrank.likelihood.base import RelevanceRequest, RelevanceScore
from drillrank.likelihood.process import Worker, keep_in_children, require_torch, settle_threads
from drillrank.likelihood.relevance import RelevanceModel
from drillrank.progress import progress_bar
from drillrank.settings import check_one_of
from drillrank.text import without_surrogates

T = TypeVar("T")
Backend = Literal["torch", "onnx", "openvino"]

logger = logging.getLogger(__name__)


Pair = tuple[str, str]
"""A query and a document."""


@dataclass(eq=False)
class LoadedCrossEncoder(ABC):
    """A loaded cross-encoder.

    Attributes:
        model: Cross-encoder of a library.
        tokenizer: Tokenizer that truncates nothing.
        max_length: Maximum number of tokens of a pair, special tokens included; None allows any number.
        process: Id of the process that loaded it.
    """

    model: Any
    tokenizer: Any
    max_length: int | None
    process: int

    def __post_init__(self) -> None:
        keep_in_children(self)

    @abstractmethod
    def predict(self, pairs: Sequence[Pair]) -> Sequence[float]:
        """Return the raw logit of each pair."""

    @abstractmethod
    def token_ends(self, text: str) -> list[int]:
        """Return the index behind the last character of each token of a text, without special tokens."""

    @abstractmethod
    def count_tokens(self, pair: Pair) -> int:
        """Return the number of tokens of a pair, special tokens included."""

    def count_overflow(self, pair: Pair) -> int:
        """Return the number of tokens by which a pair exceeds what the model reads."""
        if self.max_length is None or sum(map(len, pair)) < self.max_length:  # a token has at least one character
            return 0
        return max(0, self.count_tokens(pair) - self.max_length)

    def first_tokens(self, text: str, count: int) -> str:
        """Return the longest beginning of a text that has at most `count` tokens."""
        ends = self.token_ends(text)
        return text if len(ends) <= count else text[: ends[count - 1]] if count else ""


class BaseCrossEncoderModel(RelevanceModel):
    """Base class of the cross-encoders of a library. A subclass implements `_load`.

    Args:
        name: Model id or directory.
        options: Options with which it is loaded and used.

    Attributes:
        prefix: Beginning of the specification, in front of the name.
    """

    prefix: ClassVar[str] = "ce:"

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        if not name:
            raise InvalidInput(f'"{self.prefix}" needs the name of a model or a directory after the colon, got none.')
        self._name, self._options = name, dict(options)
        self._worker = Worker()
        self._loaded: LoadedCrossEncoder | None = None

    @property
    def spec(self) -> str:
        """The prefix and the model's name."""
        return f"{self.prefix}{self._name}"

    @property
    def options(self) -> dict[str, Any]:
        """Options with which `load_language_model` builds an equal model."""
        return dict(self._options)

    async def run_in_worker(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function on the thread on which this model computes, without blocking the event loop."""
        return await asyncio.wrap_future(self._worker.submit(function, *arguments))

    def relevance_batch(self, requests: Sequence[RelevanceRequest]) -> list[RelevanceScore]:
        """Compute the logit of each pair of query and document. Equal pairs are computed once."""
        return self._worker.run(self._score, requests)

    def first_tokens(self, text: str, count: int) -> str:
        """Return the longest beginning of a text that has at most `count` of the model's tokens."""
        return self._worker.run(lambda: self._encoder().first_tokens(text, count))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the specification; the model is loaded again where it is unpickled."""
        return partial(type(self), **self.options), (self._name,)

    def _score(self, requests: Sequence[RelevanceRequest]) -> list[RelevanceScore]:
        loaded, distinct = self._encoder(), dict.fromkeys(requests)
        pairs, n_cut_by_limit = [], []
        for request in distinct:
            query, document = without_surrogates(request.query), without_surrogates(request.document.text)
            limit = request.document.max_tokens
            kept = document if limit is None else loaded.first_tokens(document, limit)
            n_cut_by_limit.append(len(loaded.token_ends(document[len(kept) :])) if len(kept) < len(document) else 0)
            pairs.append((query, kept))
        logits = np.asarray(loaded.predict(pairs), dtype=np.float64)
        if logits.shape != (len(pairs),) or not np.isfinite(logits).all():
            raise InvalidInput(
                f"{self.spec!r:.200} must return one finite number per pair, got an array of shape {logits.shape}. Its "
                "weights may be broken, or overflow in this dtype; use float32."
            )
        score_by_request = {
            request: RelevanceScore(float(logit), n_cut + loaded.count_overflow(pair))
            for request, pair, logit, n_cut in zip(distinct, pairs, logits, n_cut_by_limit, strict=True)
        }
        return [score_by_request[request] for request in requests]

    def _encoder(self) -> LoadedCrossEncoder:
        if self._loaded is None or self._loaded.process != os.getpid():
            with invalid_input(
                f"The cross-encoder {self.spec!r:.200} cannot be loaded",
                "Pass the name or the directory of a model that the library loads.",
            ):
                self._loaded = self._load()
            logger.info("Loaded %s.", self.spec)
        return self._loaded

    @abstractmethod
    def _load(self) -> LoadedCrossEncoder:
        """Load the model with its library; any error becomes an `InvalidInput`."""


class CrossEncoderModel(BaseCrossEncoderModel):
    """A cross-encoder of sentence-transformers.

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
            `{"dtype": "bfloat16"}`. OpenVINO computes in bfloat16 on processors that have it, unless they contain
            `{"ov_config": {"INFERENCE_PRECISION_HINT": "f32"}}`.
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
        check_one_of(Backend, backend=backend)
        check_limits(max_length=max_length)
        check_positive(batch_size=batch_size)
        check_mappings(model_kwargs=model_kwargs)
        require_installed("sentence_transformers", "st")
        options = {
            "backend": backend,
            "max_length": max_length,
            "batch_size": batch_size,
            "device": device,
            "revision": revision,
            "model_kwargs": None if model_kwargs is None else dict(model_kwargs),
            "local_files_only": local_files_only,
            "trust_remote_code": trust_remote_code,
            "show_progress": show_progress,
        }
        super().__init__(name, options)

    def _load(self) -> LoadedCrossEncoder:
        require_torch("st")
        sentence_transformers = require("sentence_transformers", "st")
        options = self.options
        batch_size, show_progress = options.pop("batch_size"), options.pop("show_progress")
        check_model_directory(self._name)
        model = sentence_transformers.CrossEncoder(self._name, **options)
        if model.num_labels != 1:
            raise InvalidInput(
                f"{self._name!r:.200} has {model.num_labels} labels and no score of relevance. Use a cross-encoder "
                "with one label, such as cross-encoder/ms-marco-MiniLM-L6-v2."
            )
        has_new_name = hasattr(model, "max_seq_length")  # since sentence-transformers 6
        max_length = model.max_seq_length if has_new_name else model.max_length
        limit = None if max_length is None else int(max_length)
        return _SentenceTransformersEncoder(model, model.tokenizer, limit, os.getpid(), batch_size, show_progress)


@dataclass(eq=False)
class _SentenceTransformersEncoder(LoadedCrossEncoder):
    """A loaded `sentence_transformers.CrossEncoder`.

    Attributes:
        batch_size: Number of pairs that are computed together.
        show_progress: True to show a progress bar.
    """

    batch_size: int
    show_progress: bool

    def predict(self, pairs: Sequence[Pair]) -> Sequence[float]:
        import torch

        settle_threads()
        logits: Sequence[float] = self.model.predict(
            list(pairs),
            batch_size=self.batch_size,
            show_progress_bar=self.show_progress,
            activation_fn=torch.nn.Identity(),
        )
        return logits

    def token_ends(self, text: str) -> list[int]:
        options = {"add_special_tokens": False, "truncation": False, "verbose": False}
        return [end for _, end in self.tokenizer(text, return_offsets_mapping=True, **options)["offset_mapping"]]

    def count_tokens(self, pair: Pair) -> int:
        return len(self.tokenizer(*pair, truncation=False, verbose=False)["input_ids"])


class FastEmbedCrossEncoderModel(BaseCrossEncoderModel):
    """A cross-encoder of the library fastembed, which computes with ONNX Runtime, without torch.

    Log-odds are the model's raw logit, `TextCrossEncoder.rerank_pairs(pairs)`. Each pair is computed alone, so that
    scores of a model with 8-bit weights do not depend on the other pairs. The model is read from fastembed's cache. If
    it is not there, fastembed downloads it. A pair that is too long is truncated by fastembed, the longer text first.

    Args:
        name: Name of a model in `TextCrossEncoder.list_supported_models()`, such as `Xenova/ms-marco-MiniLM-L-6-v2`, or
            of one that you have added with `TextCrossEncoder.add_custom_model`.
        cache_dir: Folder of fastembed's models; None means fastembed's own.
        specific_model_path: Directory of the model's files, which are then not downloaded.
        threads: Number of threads of ONNX Runtime; None means one per core.
        local_files_only: True to never download a model.
        show_progress: True to show a progress bar on standard error.

    Raises:
        MissingExtra: fastembed is not installed.
        InvalidInput: An option cannot be used, or, at the first use, the model.
    """

    prefix = "ce:fastembed:"

    def __init__(
        self,
        name: str,
        *,
        cache_dir: str | None = None,
        specific_model_path: str | None = None,
        threads: int | None = None,
        local_files_only: bool = False,
        show_progress: bool = False,
    ) -> None:
        check_limits(threads=threads)
        require_installed("fastembed", "fastembed")
        options = {
            "cache_dir": cache_dir,
            "specific_model_path": specific_model_path,
            "threads": threads,
            "local_files_only": local_files_only,
            "show_progress": show_progress,
        }
        super().__init__(name, options)

    def _load(self) -> LoadedCrossEncoder:
        cross_encoders = require("fastembed.rerank.cross_encoder", "fastembed")
        options = self.options
        show_progress = options.pop("show_progress")
        model = cross_encoders.TextCrossEncoder(self._name, **options)
        truncating = model.model.tokenizer
        tokenizer = type(truncating).from_str(truncating.to_str())
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return _FastEmbedEncoder(model, tokenizer, truncating.truncation["max_length"], os.getpid(), show_progress)


@dataclass(eq=False)
class _FastEmbedEncoder(LoadedCrossEncoder):
    """A loaded `fastembed.rerank.cross_encoder.TextCrossEncoder`.

    Attributes:
        show_progress: True to show a progress bar.
    """

    show_progress: bool

    def predict(self, pairs: Sequence[Pair]) -> Sequence[float]:
        logits = []
        with progress_bar(self.show_progress, "Reranking") as (expect, advance):
            expect(len(pairs))
            for logit in self.model.rerank_pairs(list(pairs), batch_size=1):
                logits.append(logit)
                advance(1)
        return logits

    def token_ends(self, text: str) -> list[int]:
        return [end for _, end in self.tokenizer.encode(text, add_special_tokens=False).offsets]

    def count_tokens(self, pair: Pair) -> int:
        return len(self.tokenizer.encode(*pair).ids)


def require_installed(module: str, extra: str) -> None:
    """Check that a library can be imported, without importing it, as that takes seconds for those with torch.

    Raises:
        MissingExtra: The library is not installed.
    """
    from importlib.util import find_spec

    if find_spec(module) is None:
        require(module, extra)
