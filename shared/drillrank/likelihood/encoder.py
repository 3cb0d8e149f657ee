"""Likelihood of words and meaning: the unigram model, and a vector of each text for one more token.

    log p(q | c) = Σ_t log mean_d p_unigram(q_t | d) + log mean_d exp(κ (cos(v_q, v_d) - 1))

Meaning is one more token of the question, drawn from the documents d of a context c like any word: its vector v_q has a
von Mises-Fisher distribution of concentration κ around the document's vector v_d, without the normalizer, which is the
same for every document. κ is the scale of the encoder's training: InfoNCE is smallest if exp(κ cos(q, d)) is
proportional to p(q | d) / p(q) (van den Oord et al. 2018).

On a user's own texts, κ is the maximum likelihood estimate for retrieving the rest r of a text by its sentence s:

    κ = argmax Σ_i log [ exp(κ cos(s_i, r_i)) / Σ_j exp(κ cos(s_i, r_j)) ]
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput, check_number, warn
from drillrank.files import replace_file
from drillrank.likelihood.base import LanguageModel, Likelihood, Request, check_texts
from drillrank.likelihood.encoders import Encoder, Model2VecEncoder, SentenceTransformerEncoder, as_encoder
from drillrank.likelihood.unigram import UNSAVED, UnigramModel, documents_of
from drillrank.vectors import CollectionStatistics, Embed

if TYPE_CHECKING:
    from typing_extensions import Self

logger = logging.getLogger(__name__)

Floats32 = npt.NDArray[np.float32]
Encode = Callable[[list[str]], Any]

MEANING = "<meaning>"  # name of the token of meaning
KAPPA = 20.0  # κ of encoders trained at the usual temperature of 0.05
KAPPA_STATIC = 10.0  # of means of token vectors, which are less precise: chosen on first halves of NQ and SQuAD
LEAST, MOST = 30, 500  # texts of at least two sentences, for an estimate of κ
BOUNDS = (1.0, 200.0)  # of the estimate
_MAX_CACHED = 20_000  # vectors of texts that were not indexed: 30 MB at 384 dimensions
_SUFFIX = ".vectors.npz"


class EmbeddingModel(LanguageModel):
    """Words and meaning: the unigram model and any function from texts to vectors, without training.

    Scores are natural log-probabilities of the target's stemmed words and of one more token, `<meaning>`, whose
    log-probability is between -2 κ and 0. Each text is embedded once. `fit` indexes texts, and of other texts the
    latest 20,000 are cached. A temperature divides κ, as it divides the logits of other models. A document without text
    has cosine 0 to everything.

    Args:
        embed: An encoder's specification, or a function from texts to one vector each. Its method `questions`, if it
            has one, embeds questions.
        words: The unigram model; None creates one.
        kappa: κ, the concentration. `"fit"` estimates it from the fitted texts, for encoders of unknown scale. It is 20
            until `fit`.
        directory: Directory for the vectors of fitted texts, from which a new process reads them. Each encoder needs a
            directory of its own.

    Raises:
        InvalidInput: `embed` is not a function or a specification, κ cannot be used, or `embed` does not return one
            finite vector per text.

    >>> topics = ("river", "lake"), ("novel", "book")
    >>> model = EmbeddingModel(lambda texts: [[any(w in t for w in topic) for topic in topics] for t in texts])
    >>> near, far = model.log_likelihood([("A cold lake.", "a river"), ("A thick book.", "a river")])
    >>> near.tokens, round(near.total - far.total, 6)
    (['a', 'river', '<meaning>'], 20.0)
    """

    reads_instructions = False  # only documents are evidence
    reads_meaning = True

    def __init__(
        self,
        embed: str | Embed,
        words: UnigramModel | None = None,
        *,
        kappa: float | Literal["fit"] = KAPPA,
        directory: str | os.PathLike[str] | None = None,
    ) -> None:
        encoder = as_encoder(embed)
        if encoder is None:
            raise InvalidInput("embed must turn texts into vectors, got None. Pass a function or a specification.")
        if kappa != "fit":
            check_number(kappa=kappa)
        self.kappa = KAPPA if kappa == "fit" else float(kappa)
        self._kappa_given = kappa
        self._embed = encoder
        self._words = words or UnigramModel()
        self.language, self.wants_fit = self._words.language, self._words.wants_fit
        self._directory = None if directory is None else os.fspath(directory)
        self._targets = SentenceVectors(getattr(encoder, "questions", encoder))
        self._documents = SentenceVectors(encoder, self._directory)

    @property
    def spec(self) -> str:
        """`"st:"` or `"m2v:"` and the encoder's name; for a function or once fitted, a name that cannot be loaded."""
        if not isinstance(self._embed, Encoder):
            return "embed:<a function>"
        return f"{self._embed.kind}:{self._embed.name if self.wants_fit else UNSAVED}"

    @property
    def options(self) -> dict[str, Any]:
        """Options of `sentence_transformer` or `model2vec`; empty for a function."""
        if not isinstance(self._embed, Encoder):
            return {}
        of_words = {"mu": self._words.mu, "language": self.language}
        return {"kappa": self._kappa_given, **of_words, "directory": self._directory, **self._embed.options}

    def fit(self, texts: Iterable[str] | CollectionStatistics) -> Self:
        """Take p(w|C) from these texts, and encode them. With `kappa="fit"`, estimate κ.

        If only statistics of texts are given, each text is encoded when it is first scored.

        Raises:
            InvalidInput: An item is not a string, or `kappa="fit"` and there are only statistics.
        """
        words = UnigramModel(self._words.mu, self.language)
        if isinstance(texts, CollectionStatistics):
            if self._kappa_given == "fit":
                raise InvalidInput(
                    'kappa="fit" needs texts, got statistics only. Fit the model before or set kappa=20.'
                )
            self._words, self.wants_fit = words.fit(texts), False
            return self
        checked = check_texts(texts)
        words.fit(checked)
        self._documents.index(checked)  # if this fails, the model is unchanged
        self._words, self.wants_fit = words, False
        if self._kappa_given == "fit":
            self.kappa = fitted_concentration(checked, self._targets.of, self._documents.of, otherwise=KAPPA)
            logger.info("The concentration on %d texts is %.1f.", len(checked), self.kappa)
        return self

    def fitted(self, texts: Iterable[str] | CollectionStatistics) -> Self:
        """Return a copy that has embedded these texts, and is fitted to them if this model was not fitted."""
        model = copy(self)
        if model.wants_fit:
            return model.fit(texts)
        if not isinstance(texts, CollectionStatistics):  # which contain no texts to embed
            model._documents.index(check_texts(texts))
        return model

    def first_tokens(self, text: str, count: int) -> str:
        """Return the text up to the end of its word number `count`, as for the unigram model."""
        return self._words.first_tokens(text, count)

    def document_log_probs(self, target: str, texts: Sequence[str], /) -> npt.NDArray[np.float64]:
        """Return log-probabilities of the target's words and meaning under each text, shape (texts, words + 1)."""
        words = self._words.document_log_probs(target, texts)
        cosines = self._documents.of(texts).astype(np.float64) @ self._targets.of([target])[0].astype(np.float64)
        return np.column_stack([words, self.kappa * (np.clip(cosines, -1.0, 1.0) - 1.0)])

    def log_likelihood_batch(
        self, requests: Sequence[Request], temperature: float, include_eos: bool
    ) -> list[Likelihood]:
        """Compute log-probabilities of words and meaning for checked requests."""
        if include_eos:
            raise InvalidInput(
                "A model of words and meaning has no end-of-sequence token, got include_eos=True. Remove include_eos."
            )
        words = self._words.log_likelihood(requests, temperature=temperature)
        texts, sizes, _ = documents_of(requests)
        row = {target: number for number, target in enumerate(dict.fromkeys(request.target for request in requests))}
        text_row = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        cosines = self._documents.of([*text_row]).astype(np.float64) @ self._targets.of([*row]).astype(np.float64).T
        targets = np.repeat([row[request.target] for request in requests], sizes)
        of_each = self.kappa / temperature * (np.clip(cosines[[text_row[text] for text in texts], targets], -1, 1) - 1)
        logs = np.logaddexp.reduceat(of_each, np.cumsum([0, *sizes[:-1]])) - np.log(sizes)
        return [
            Likelihood([*word.tokens, MEANING], np.append(word.log_probs, log), word.total + log, word.cut_tokens)
            for word, log in zip(words, np.minimum(logs, 0.0).tolist(), strict=True)  # rounding may lift it above 0
        ]

    def __copy__(self) -> Self:
        """Return a copy with the same vectors, which embeds no text again."""
        model = type(self).__new__(type(self))
        model.__dict__ |= self.__dict__ | {"_documents": self._documents.branch()}
        return model


def sentence_transformer(
    name: str,
    *,
    kappa: float | Literal["fit"] = KAPPA,
    mu: float = 300.0,
    language: str = "english",
    directory: str | os.PathLike[str] | None = None,
    device: str | None = None,
    batch_size: int = 32,
    revision: str | None = None,
    trust_remote_code: bool = False,
    show_progress: bool = False,
) -> EmbeddingModel:
    """Build a model of words and meaning by a sentence-transformers encoder, loaded at its first use: `"st:<name>"`.

    Args:
        name: Model id or directory.
        kappa: κ, as for `EmbeddingModel`.
        mu: μ of the unigram model.
        language: Language of the unigram model.
        directory: Directory for the vectors of fitted texts, as for `EmbeddingModel`.
        device: Device, as for `SentenceTransformer`; None uses the best available one.
        batch_size: Number of texts that are encoded together.
        revision: Branch, tag or commit of the model.
        trust_remote_code: True to run code that comes with the model. Keep it False unless you trust its author.
        show_progress: True to show a progress bar on standard error.

    Raises:
        MissingExtra: sentence-transformers is not installed.
        InvalidInput: An option cannot be used.
    """
    loaded_with = {"device": device, "revision": revision, "trust_remote_code": trust_remote_code}
    encoder = SentenceTransformerEncoder(name, batch_size=batch_size, show_progress=show_progress, **loaded_with)
    return EmbeddingModel(encoder, UnigramModel(mu, language), kappa=kappa, directory=directory)


def model2vec(
    name: str,
    *,
    kappa: float | Literal["fit"] = KAPPA_STATIC,
    mu: float = 300.0,
    language: str = "english",
    directory: str | os.PathLike[str] | None = None,
    show_progress: bool = False,
) -> EmbeddingModel:
    """Build a model of words and meaning by a model2vec model, without torch, loaded at its first use: `"m2v:<name>"`.

    Such a model is a table with a vector for each token. The vector of a text is their mean, so the order of words is
    lost. The table takes 8 to 130 MB, and embeds hundreds of passages per second on one core.

    Args:
        name: Model id, such as `minishlab/potion-retrieval-32M`, or directory.
        kappa: κ, as for `EmbeddingModel`; 10 by default, because a mean of token vectors is less precise.
        mu: μ of the unigram model.
        language: Language of the unigram model.
        directory: Directory for the vectors of fitted texts, as for `EmbeddingModel`.
        show_progress: True to show a progress bar on standard error.

    Raises:
        MissingExtra: model2vec is not installed.
        InvalidInput: An option cannot be used.
    """
    encoder = Model2VecEncoder(name, show_progress=show_progress)
    return EmbeddingModel(encoder, UnigramModel(mu, language), kappa=kappa, directory=directory)


class SentenceVectors:
    """Unit vectors by text. Each text is encoded once. Indexed vectors are kept, the latest of the others cached.

    It is safe to share between threads. One thread encodes at a time.

    Args:
        encode: Function from texts to one vector each.
        directory: Directory for indexed vectors, with one file for each call of `index`. None keeps them in memory
            only, and so does, with a warning, a directory that cannot be written. Each encoder needs a directory of its
            own.

    Raises:
        InvalidInput: The directory contains files that are not vectors.

    >>> vectors = SentenceVectors(lambda texts: [[len(text), 1.0] for text in texts])
    >>> vectors.of(["a", "bcd", "a"]).tolist()[1] == vectors.of(["bcd"]).tolist()[0]
    True
    """

    def __init__(self, encode: Encode, directory: str | os.PathLike[str] | None = None) -> None:
        self._encode = encode
        self._directory = None if directory is None else Path(directory)
        self._indexed: dict[bytes, Floats32] = {}
        self._latest: dict[bytes, Floats32] = {}  # the last used are at the end
        self._lock = threading.Lock()
        if self._directory is not None and self._directory.is_dir():
            for file in sorted(self._directory.glob(f"*{_SUFFIX}")):
                self._indexed.update(_read(file))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the arguments without vectors, which are computed again or read from their directory."""
        return SentenceVectors, (self._encode, self._directory)

    def branch(self) -> SentenceVectors:
        """Return a copy with the same vectors for another collection. What the copy indexes is kept with the copy.

        >>> encoded = []
        >>> vectors = SentenceVectors(lambda texts: [encoded.append(text) or [1.0] for text in texts])
        >>> vectors.branch().index(["a"])
        >>> vectors.branch().of(["a"]).tolist(), encoded
        ([[1.0]], ['a'])
        """
        vectors = object.__new__(SentenceVectors)  # with the same cache and the same lock
        vectors.__dict__ |= self.__dict__ | {"_indexed": dict(self._indexed)}
        return vectors

    def index(self, texts: Iterable[str]) -> None:
        """Encode the new texts, and keep the vectors of all."""
        by_key = {_key(text): text for text in texts}
        with self._lock:
            vectors = self._look_up({key: text for key, text in by_key.items() if key not in self._indexed})
            self._indexed.update(vectors)
        if vectors and self._directory is not None:
            _write(self._directory, vectors)

    def of(self, texts: Sequence[str]) -> Floats32:
        """Return unit vectors, shape (texts, dimensions), float32. A blank text has the zero vector."""
        keys = [_key(text) for text in texts]
        with self._lock:
            vectors = self._look_up(dict(zip(keys, texts, strict=True)))
        return np.stack([vectors[key] for key in keys])

    def _look_up(self, texts: dict[bytes, str]) -> dict[bytes, Floats32]:
        """Return vectors by key. New texts are encoded, and their vectors cached."""
        vector_or_none = {key: self._indexed.get(key, self._latest.get(key)) for key in texts}
        vectors = {key: vector for key, vector in vector_or_none.items() if vector is not None}
        if new := {key: text for key, text in texts.items() if key not in vectors}:
            vectors |= zip(new, self._encode_texts(list(new.values())), strict=True)
        for key in texts:
            if key in self._latest or key not in self._indexed:
                self._latest[key] = self._latest.pop(key, vectors[key])
        while len(self._latest) > _MAX_CACHED:
            del self._latest[next(iter(self._latest))]
        return vectors

    def _encode_texts(self, texts: list[str]) -> Floats32:
        """Encode texts, check the vectors, and scale them to length 1."""
        vectors = np.array(self._encode(texts), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise InvalidInput(
                f"The encoder must return one vector of finite numbers per text, got an array of shape {vectors.shape} "
                f"for {len(texts)} texts."
            )
        other = next(chain(self._indexed.values(), self._latest.values()), vectors[0])
        if len(other) != vectors.shape[1]:
            raise InvalidInput(
                f"The encoder's vectors have {vectors.shape[1]} numbers, but earlier ones have {len(other)}. Give each "
                "encoder a directory of its own."
            )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        written = np.array([bool(text.strip()) for text in texts])[:, None]
        unit: Floats32 = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=(lengths > 0) & written)
        return unit


def fitted_concentration(
    texts: Sequence[str],
    questions: Callable[[Sequence[str]], Floats32],
    documents: Callable[[Sequence[str]], Floats32],
    otherwise: float,
) -> float:
    """Estimate κ by maximum likelihood, on at most 500 of the texts, evenly spread.

    Args:
        texts: Passages. Those of one sentence are not used.
        questions: Function from sentences to unit vectors.
        documents: Function from the rests of the texts to unit vectors.
        otherwise: κ if fewer than 30 texts have two sentences, with a `DrillrankWarning`.
    """
    from drillrank.structure.cutting import sentences  # loads what parses documents

    split = [(text, spans) for text in dict.fromkeys(texts) if len(spans := sentences(text)) > 1]
    if len(split) < LEAST:
        warn(f"kappa stays {otherwise}: only {len(split)} texts have at least two sentences. Fit at least {LEAST}.")
        return otherwise
    chosen = [split[number] for number in np.linspace(0, len(split) - 1, min(len(split), MOST)).astype(int)]
    held_out = [spans[len(spans) // 2] for _, spans in chosen]
    chosen_sentences = [text[start:end] for (text, _), (start, end) in zip(chosen, held_out, strict=True)]
    rests = [f"{text[:start]}{text[end:]}" for (text, _), (start, end) in zip(chosen, held_out, strict=True)]
    cosines = questions(chosen_sentences).astype(np.float64) @ documents(rests).astype(np.float64).T
    low, high = BOUNDS
    while high - low > 1e-9 * high:  # the likelihood is concave in κ, so its maximum has slope 0
        kappa = (low + high) / 2
        chances = np.exp(kappa * (cosines - cosines.max(axis=1, keepdims=True)))
        expected = (chances * cosines).sum(axis=1) / chances.sum(axis=1)
        low, high = (kappa, high) if np.mean(np.diag(cosines) - expected) > 0 else (low, kappa)
    return float((low + high) / 2)


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _write(directory: Path, vectors: dict[bytes, Floats32]) -> None:
    """Write a new file. If that fails, warn, and keep the vectors for this process only."""
    keys = np.frombuffer(b"".join(vectors), dtype=np.uint8).reshape(-1, 16)
    try:
        with replace_file(directory / f"{hashlib.blake2b(keys.tobytes(), digest_size=8).hexdigest()}{_SUFFIX}") as file:
            np.savez(file, keys=keys, vectors=np.stack(list(vectors.values())))
    except OSError as cause:
        warn(
            f"{len(vectors)} vectors cannot be kept in {str(directory)!r:.200}, so the next process computes them "
            f"again: {cause!s:.200}."
        )


def _read(file: Path) -> dict[bytes, Floats32]:
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
            keys, vectors = stored["keys"], stored["vectors"]
        return {key.tobytes(): vector for key, vector in zip(keys, vectors.astype(np.float32), strict=True)}
    except Exception as error:
        raise InvalidInput(
            f"{str(file)!r:.200} contains no vectors: {error!s:.200}. Delete it; they are computed again."
        ) from error
