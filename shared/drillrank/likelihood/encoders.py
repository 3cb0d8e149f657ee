"""Text encoders: functions from texts to vectors, by sentence-transformers, ONNX Runtime, fastembed or model2vec.

An encoder is named by a specification, such as `"onnx:models/minilm"`, and is loaded at its first use. Two of the four
libraries need no torch and are as good as it: `onnx:` runs the same transformer in ONNX Runtime, `fastembed:` runs the
models of the fastembed library, which LlamaIndex and LangChain know. `m2v:` looks up static vectors.

Every `embed` argument of drillrank accepts such a specification (`as_encoder`). The command line takes
`default_encoder` if the user names none.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput, UnknownModel, check_limits, invalid_input, require
from drillrank.files import check_model_directory
from drillrank.likelihood.encoder_files import (
    ONNX_FILES,
    find_fastembed_snapshot,
    find_installed_encoder,
    find_onnx_file,
    fingerprint_files,
    list_model_files,
)
from drillrank.likelihood.process import PerProcess, require_torch, settle_threads
from drillrank.progress import progress_bar
from drillrank.text import without_surrogates
from drillrank.vectors import Embed

logger = logging.getLogger(__name__)

Floats32 = npt.NDArray[np.float32]

EMBED_VARIABLE = "DRILLRANK_EMBED"
"""Environment variable with the specification of the command line's encoder, or `none`."""

_LONGEST_INPUT = 512  # tokens, if the model's files do not say how many it reads
_POOLING_MODES = ("mean", "cls", "max")
_WITHOUT_EFFECT = ("batch_size", "cache_dir", "device", "local_files_only", "show_progress", "threads")
"""Options that do not change the vectors, up to rounding."""
_ONNX_CONFIGURATION = (
    "tokenizer.json",
    "config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
)


class Encoder:
    """Function from texts to one vector each, loaded at its first use.

    Encoders are safe to share between threads. A pickled encoder is loaded again where it is unpickled.

    Args:
        name: Model id or directory.
        options: Options with which it is loaded and used.

    Attributes:
        kind: Word before the colon of a specification.
        spec: Specification that `load_encoder` takes.

    Raises:
        InvalidInput: The name is empty.
        MissingExtra: The library is not installed.
    """

    kind: ClassVar[str]
    extra: ClassVar[str]
    library: ClassVar[str]

    def __init__(self, name: str, **options: Any) -> None:
        if not name:
            raise InvalidInput(f"{self.kind}: needs a model id or a directory after the colon, got none.")
        require(self.library, self.extra)
        self.name, self.options = name, options
        self._lock = threading.RLock()
        self._loaded = PerProcess(self._load)  # threads of a library do not survive a fork

    @property
    def spec(self) -> str:
        """Specification of this encoder."""
        return f"{self.kind}:{self.name}"

    @property
    def model(self) -> Any:
        """The loaded model of the library; loads it if need be."""
        with self._lock:
            return self._loaded()

    def __call__(self, texts: list[str]) -> Any:
        """Return the vectors of documents, shape (texts, dimensions)."""
        raise NotImplementedError

    def questions(self, texts: list[str]) -> Any:
        """Return the vectors of questions. Some encoders have an instruction for them."""
        return self(texts)

    def fingerprint(self) -> str:
        """Return a text that changes if the vectors change: a digest of the model's files and of the options.

        The place of the files does not count. A model that is not on this machine is loaded first.
        """
        files = self._files()
        if not files:
            _ = self.model  # its library downloads it
            files = self._files()
        options = sorted((name, value) for name, value in self.options.items() if name not in _WITHOUT_EFFECT)
        name = "" if files else self.name
        return f"{self.kind}:{fingerprint_files(files, f'{options} {name}')}"

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), self.name, **self.options), ()

    def _files(self) -> list[Path]:
        """Return the files of the model on this machine. Empty if there are none."""
        return list_model_files(self.name, self.options.get("revision"))

    def _load(self) -> Any:
        with invalid_input(
            f"The encoder {self.spec!r:.200} cannot be loaded",
            "Pass the name or the directory of a model that the library loads.",
        ):
            model = self._open()
        logger.info("Loaded %s.", self.spec)
        return model

    def _open(self) -> Any:
        """Load the model with the library; any error becomes an `InvalidInput`."""
        raise NotImplementedError


class SentenceTransformerEncoder(Encoder):
    """Encoder of the library sentence-transformers, with torch: `"st:<model id or directory>"`."""

    kind, extra, library = "st", "st", "sentence_transformers"

    def __init__(self, name: str, *, batch_size: int = 32, show_progress: bool = False, **options: Any) -> None:
        require_torch(self.kind)
        super().__init__(name, batch_size=batch_size, show_progress=show_progress, **options)

    def __call__(self, texts: list[str]) -> Any:
        """Return the vectors of documents."""
        return self._encode("encode_document", texts)

    def questions(self, texts: list[str]) -> Any:
        """Return the vectors of questions."""
        return self._encode("encode_query", texts)

    def _encode(self, function_name: str, texts: list[str]) -> Any:
        settle_threads()
        show, batch_size = self.options["show_progress"], self.options["batch_size"]
        encode = getattr(self.model, function_name)
        return encode(
            list(map(without_surrogates, texts)), batch_size=batch_size, show_progress_bar=show, convert_to_numpy=True
        )

    def _open(self) -> Any:
        library = require(self.library, self.extra)
        check_model_directory(self.name)
        options = {key: value for key, value in self.options.items() if key not in ("batch_size", "show_progress")}
        return library.SentenceTransformer(self.name, **options)


class Model2VecEncoder(Encoder):
    """Encoder of the library model2vec, a table of static vectors: `"m2v:<model id or directory>"`."""

    kind, extra, library = "m2v", "m2v", "model2vec"

    def __call__(self, texts: list[str]) -> Any:
        """Return the vectors of texts."""
        with self._lock:  # its tokenizer is set for each call
            show = self.options.get("show_progress", False)
            readable = list(map(without_surrogates, texts))
            return self.model.encode(readable, use_multiprocessing=False, show_progress_bar=show)

    def _open(self) -> Any:
        library = require(self.library, self.extra)
        check_model_directory(self.name)
        return library.StaticModel.from_pretrained(self.name, force_download=False)


class FastEmbedEncoder(Encoder):
    """Encoder of the library fastembed, without torch: `"fastembed:<model name>"`.

    The model is read from fastembed's cache. If it is not there, fastembed downloads it. Each text is computed alone,
    as by `OnnxEncoder`: a batch of 256, which is fastembed's default, takes gigabytes of memory.
    """

    kind, extra, library = "fastembed", "fastembed", "fastembed"

    def __call__(self, texts: list[str]) -> Any:
        """Return the vectors of documents."""
        return np.array(
            list(self.model.passage_embed(list(map(without_surrogates, texts)), batch_size=1)), dtype=np.float32
        )

    def questions(self, texts: list[str]) -> Any:
        """Return the vectors of questions."""
        return np.array(
            list(self.model.query_embed(list(map(without_surrogates, texts)), batch_size=1)), dtype=np.float32
        )

    def _open(self) -> Any:
        return require(self.library, self.extra).TextEmbedding(self.name, **self.options)

    def _files(self) -> list[Path]:
        cache = self.options.get("cache_dir")
        directory = self.options.get("specific_model_path") or find_fastembed_snapshot(self.name, cache)
        return [] if directory is None else list_model_files(str(directory))


class OnnxEncoder(Encoder):
    """Transformer in ONNX Runtime, without torch: `"onnx:<directory>"`.

    The directory has the files of a sentence-transformers model, exported: `tokenizer.json`, `model.onnx` (also in a
    folder `onnx`, or `model_quantized.onnx`), and, if the model has one, `1_Pooling/config.json`. Vectors are the mean
    of the token vectors if no file says otherwise.

    Each text is computed alone, on one thread, and several texts at the same time. A vector therefore does not depend
    on the other texts. In a batch of a model with 8-bit weights it would, because they share the scale of activations.

    Args:
        directory: Directory of the model.
        threads: Number of texts that are computed at the same time. None means one per core.
        show_progress: Whether a bar on standard error counts the texts.

    Raises:
        InvalidInput: The directory is not such a model.
        MissingExtra: onnxruntime or tokenizers is not installed.
    """

    kind, extra, library = "onnx", "onnx", "onnxruntime"

    def __init__(self, directory: str, *, threads: int | None = None, show_progress: bool = False) -> None:
        require("tokenizers", self.extra)
        super().__init__(directory, threads=threads, show_progress=show_progress)
        check_limits(threads=threads)
        if not self._files():
            problem = "lacks one of them" if Path(directory).is_dir() else "does not exist"
            raise InvalidInput(
                f"{directory!r:.200} must have the files tokenizer.json and {' or '.join(ONNX_FILES[:2])}, but it "
                f"{problem}. Name the directory of an exported model."
            )

    def __call__(self, texts: list[str]) -> Floats32:
        """Return the unit vectors of documents, shape (texts, dimensions)."""
        return self._encode([self.model.document_prompt + text for text in texts])

    def questions(self, texts: list[str]) -> Floats32:
        """Return the unit vectors of questions, shape (texts, dimensions)."""
        return self._encode([self.model.question_prompt + text for text in texts])

    def _encode(self, texts: list[str]) -> Floats32:
        vectors: list[Floats32] = []
        n_threads = max(1, min(self.options["threads"] or os.cpu_count() or 1, len(texts)))
        with progress_bar(self.options["show_progress"], "Embedding") as (expect, advance):
            expect(len(texts))
            pool = ThreadPoolExecutor(n_threads, "drillrank-onnx")
            try:
                for vector in pool.map(self.model.embed, texts):
                    vectors.append(vector)
                    advance(1)
            finally:
                pool.shutdown(cancel_futures=True)  # after an interrupt, no text is begun
        return np.array(vectors, dtype=np.float32)  # [n_texts, n_dimensions]

    def _open(self) -> _OnnxModel:
        onnxruntime, tokenizers = require(self.library, self.extra), require("tokenizers", self.extra)
        directory, [file, *_] = Path(self.name), self._files()
        tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
        tokenizer.enable_truncation(_max_tokens(directory))
        tokenizer.no_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # threads share texts, not matrix products
        session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        prompts = _read_config(directory / "config_sentence_transformers.json").get("prompts") or {}
        return _OnnxModel(
            session,
            tuple(entry.name for entry in session.get_inputs()),
            tokenizer,
            _pooling_mode(directory),
            prompts.get("document") or "",
            prompts.get("query") or "",
        )

    def _files(self) -> list[Path]:
        directory = Path(self.name)
        file = find_onnx_file(directory)
        if file is None or not (directory / "tokenizer.json").is_file():
            return []
        configuration = [directory / name for name in _ONNX_CONFIGURATION]
        external_weights = file.with_name(f"{file.name}_data")
        return [file, *(path for path in (external_weights, *configuration) if path.is_file())]


@dataclass(frozen=True)
class _OnnxModel:
    """Loaded files of an `OnnxEncoder`.

    Attributes:
        session: ONNX Runtime's session of the transformer.
        input_names: Names of the transformer's inputs.
        tokenizer: Tokenizer that truncates.
        pooling: `"mean"`, `"cls"` or `"max"`.
        document_prompt: Text to put before each document.
        question_prompt: Text to put before each question.
    """

    session: Any
    input_names: tuple[str, ...]
    tokenizer: Any
    pooling: str
    document_prompt: str
    question_prompt: str

    def embed(self, text: str) -> Floats32:
        """Return the unit vector of a text, shape (dimensions,)."""
        ids = np.array([self.tokenizer.encode(without_surrogates(text)).ids], dtype=np.int64)  # [1, n_tokens]
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        [[output], *_] = self.session.run(None, {name: inputs[name] for name in self.input_names})
        vector = _pool(output, self.pooling) if output.ndim == 2 else output  # some models pool by themselves
        unit_vector: Floats32 = vector / max(float(np.linalg.norm(vector)), 1e-12)
        return unit_vector


def _pool(token_vectors: Floats32, pooling: str) -> Floats32:
    """Return the vector of a text, given those of its tokens, shape (tokens, dimensions)."""
    pooled: Floats32
    if pooling == "cls":
        pooled = token_vectors[0]
    else:
        pooled = token_vectors.max(axis=0) if pooling == "max" else token_vectors.mean(axis=0)
    return pooled


def _read_config(file: Path) -> Mapping[str, Any]:
    """Return the settings of a JSON file. Empty if the file does not exist."""
    if not file.is_file():
        return {}
    config = json.loads(file.read_text(encoding="utf-8"))
    return config if isinstance(config, dict) else {}


def _pooling_mode(directory: Path) -> str:
    config = _read_config(directory / "1_Pooling" / "config.json")
    modes = [name.split("_")[2] for name, is_used in config.items() if name.startswith("pooling_mode_") and is_used]
    mode = config.get("pooling_mode") or (modes[0] if modes else "mean")  # newer files name the mode
    if mode not in _POOLING_MODES:
        raise InvalidInput(f"The pooling mode must be one of {', '.join(_POOLING_MODES)}, got {mode!r:.50}.")
    return str(mode)


def _max_tokens(directory: Path) -> int:
    stated = _read_config(directory / "sentence_bert_config.json").get("max_seq_length")
    positions = _read_config(directory / "config.json").get("max_position_embeddings")
    return min([limit for limit in (stated, positions) if isinstance(limit, int)], default=_LONGEST_INPUT)


ENCODERS: dict[str, type[Encoder]] = {
    encoder.kind: encoder for encoder in (SentenceTransformerEncoder, OnnxEncoder, FastEmbedEncoder, Model2VecEncoder)
}
"""Encoder classes by the word before the colon of a specification."""

_FORMS = "st:NAME, onnx:DIR, fastembed:NAME or m2v:NAME"
_encoders_in_use: WeakValueDictionary[str, Encoder] = WeakValueDictionary()
_sharing = threading.Lock()


def load_encoder(spec: str, **options: Any) -> Encoder:
    """Return the encoder of a specification; its model is loaded at the first use.

    Args:
        spec: `"st:<model id or directory>"`, `"onnx:<directory>"`, `"fastembed:<model name>"` or
            `"m2v:<model id or directory>"`.
        options: Options of that encoder.

    Raises:
        UnknownModel: The specification names no kind of encoder.
        InvalidInput: An option is unknown or cannot be used.
        MissingExtra: The library is not installed.

    >>> load_encoder("minilm")
    Traceback (most recent call last):
    ...
    drillrank.errors.UnknownModel: 'minilm' is not an encoder. Write st:NAME, onnx:DIR, fastembed:NAME or m2v:NAME.
    """
    kind, _, name = spec.partition(":") if isinstance(spec, str) else ("", "", "")
    if kind not in ENCODERS:
        raise UnknownModel(f"{spec!r:.200} is not an encoder. Write {_FORMS}.")
    try:
        return ENCODERS[kind](name, **options)
    except TypeError as cause:
        raise InvalidInput(f"An option of {kind}: is unknown: {sorted(options)}.") from cause


def as_encoder(embed: str | Embed | None) -> Embed | None:
    """Return the function from texts to vectors that an `embed` argument means.

    Components with the same specification share one encoder, so that its model is in memory once.

    Args:
        embed: Specification of an encoder, a function from texts to vectors, or None.

    Returns:
        The encoder of a specification; a function or None unchanged.

    Raises:
        InvalidInput: `embed` is none of these, or its model cannot be found.
        MissingExtra: The library is not installed.

    >>> as_encoder("minilm")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    drillrank.errors.UnknownModel: embed='minilm' is not an encoder. Write st:NAME, onnx:DIR, ...
    """
    if embed is None or callable(embed):
        return embed
    if not isinstance(embed, str):
        raise InvalidInput(
            f"embed must turn texts into vectors, got {embed!r:.100}. Pass a specification such as 'onnx:DIR', a "
            "function, or, in a framework, its embedding model."
        )
    if embed.partition(":")[0] not in ENCODERS:
        raise UnknownModel(f"embed={embed!r:.200} is not an encoder. Write {_FORMS}.")
    with _sharing:
        encoder = _encoders_in_use.get(embed)
        if encoder is None:
            encoder = _encoders_in_use[embed] = load_encoder(embed)
    return encoder


def default_encoder() -> Encoder | None:
    """Return the encoder to use if the user names none. None if there is none.

    The environment variable `DRILLRANK_EMBED` names an encoder, or is `none`. Without the variable, an encoder counts
    if it is installed, its model is on this machine and it needs no torch: see `find_installed_encoder`. Nothing is
    imported, loaded or downloaded for the search. Importing torch takes seconds, and a question a fraction of one, so
    `st:` is used only if it is named.

    Raises:
        InvalidInput: The variable names no encoder, or its model cannot be found.
        MissingExtra: The library of the named encoder is not installed.
    """
    named = os.environ.get(EMBED_VARIABLE, "").strip()
    if named.lower() == "none":
        return None
    if named:
        try:
            return load_encoder(named)
        except InvalidInput as problem:
            raise InvalidInput(f"The environment variable {EMBED_VARIABLE} cannot be used: {problem}") from problem
    installed = find_installed_encoder()
    return None if installed is None else load_encoder(installed.spec, **installed.options)
