"""A likelihood that knows words and meaning: the unigram model, and a vector of each text for one more token.

    log p(q | c) = Σ_t log mean_d p_unigram(q_t | d) + log mean_d exp(κ (cos(v_q, v_d) - 1))

Meaning is one more token of the question, drawn from the documents d of a context c like any word: its vector v_q under
a von Mises-Fisher distribution of concentration κ around the document's vector v_d, without the normaliser, which is
the same for every document. κ is the scale at which the encoder was trained: InfoNCE is smallest where exp(κ cos(q, d))
is proportional to p(q | d) / p(q) (van den Oord et al. 2018).

On a user's own texts κ is the likeliest one under which a sentence s of each text finds the rest r of its own text:

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

MEANING = "<meaning>"  # how the token of meaning is shown
KAPPA = 20.0  # κ of encoders trained at the usual temperature of 0.05
KAPPA_STATIC = 10.0  # of means of token vectors, which tell less: chosen on first halves of NQ and SQuAD
LEAST, MOST = 30, 500  # texts of two sentences or more, for an estimate of κ
BOUNDS = (1.0, 200.0)  # of the estimate
_REMEMBERED = 20_000  # vectors of texts that were not indexed: 30 MB at 384 dimensions
_SUFFIX = ".vectors.npz"


class EmbeddingModel(LanguageModel):
    """Words and meaning: the unigram model and any function from texts to vectors. No training.

    Scores are natural log-probabilities of the target's stemmed words and of one token more, `<meaning>`, whose
    log-probability lies between -2 κ and 0. Each text is embedded once, of those that were not fitted the latest 20,000
    are remembered; `fit` indexes texts. A temperature divides κ, as it divides the logits of other models. A document
    without text has cosine 0 to everything.

    Args:
        embed: An encoder's specification, or a function from texts to one vector each. A method `questions` embeds the
            questions, if there is one.
        words: The unigram model; None makes one.
        kappa: κ, the concentration; `"fit"` takes the one under which a sentence of each fitted text finds the rest
            of its text best, for encoders of unknown scale (20 until `fit`).
        directory: Where the vectors of fitted texts are kept; a new process reads them there. One encoder each.

    Raises:
        InvalidInput: `embed` is not a function or a specification, κ cannot be used, or there is not one finite vector
            per text.

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
        """`"st:"` or `"m2v:"` and the encoder's name; of a function, and once fitted, a name that cannot be loaded."""
        if not isinstance(self._embed, Encoder):
            return "embed:<a function>"
        return f"{self._embed.kind}:{self._embed.name if self.wants_fit else UNSAVED}"

    @property
    def options(self) -> dict[str, Any]:
        """Those of `sentence_transformer` or `model2vec`; of a function none."""
        if not isinstance(self._embed, Encoder):
            return {}
        of_words = {"mu": self._words.mu, "language": self.language}
        return {"kappa": self._kappa_given, **of_words, "directory": self._directory, **self._embed.options}

    def fit(self, texts: Iterable[str] | CollectionStatistics) -> Self:
        """Take p(w|C) from these texts, and encode them; with `kappa="fit"`, find κ.

        Of texts of which there are statistics alone, each is encoded when it is first scored.

        Raises:
            InvalidInput: an item is not a string, or κ is to be found and there are no texts.
        """
        words = UnigramModel(self._words.mu, self.language)
        if isinstance(texts, CollectionStatistics):
            if self._kappa_given == "fit":
                raise InvalidInput('kappa="fit" needs texts, and there are statistics alone: fit before, or say 20.')
            self._words, self.wants_fit = words.fit(texts), False
            return self
        checked = check_texts(texts)
        words.fit(checked)
        self._documents.index(checked)  # may fail: then the model is as it was
        self._words, self.wants_fit = words, False
        if self._kappa_given == "fit":
            self.kappa = fitted_concentration(checked, self._targets.of, self._documents.of, otherwise=KAPPA)
            logger.info("The concentration on %d texts is %.1f.", len(checked), self.kappa)
        return self

    def fitted(self, texts: Iterable[str] | CollectionStatistics) -> Self:
        """A copy that has embedded these texts, and is fitted with them if this one has not been fitted."""
        model = copy(self)
        if model.wants_fit:
            return model.fit(texts)
        if not isinstance(texts, CollectionStatistics):  # which hold no texts to embed
            model._documents.index(check_texts(texts))
        return model

    def first_tokens(self, text: str, count: int) -> str:
        """The text up to the end of its word number `count`, as for the unigram model."""
        return self._words.first_tokens(text, count)

    def document_log_probs(self, target: str, texts: Sequence[str], /) -> npt.NDArray[np.float64]:
        """Log-probabilities of the target's words and meaning under each text alone, shape (texts, words + 1)."""
        words = self._words.document_log_probs(target, texts)
        cosines = self._documents.of(texts).astype(np.float64) @ self._targets.of([target])[0].astype(np.float64)
        return np.column_stack([words, self.kappa * (np.clip(cosines, -1.0, 1.0) - 1.0)])

    def log_likelihood_batch(
        self, requests: Sequence[Request], temperature: float, include_eos: bool
    ) -> list[Likelihood]:
        """Compute log-probabilities of words and meaning for checked requests."""
        if include_eos:
            raise InvalidInput("A model of words and meaning has no end-of-sequence token: leave include_eos out.")
        words = self._words.log_likelihood(requests, temperature=temperature)
        texts, sizes, _ = documents_of(requests)
        row = {target: number for number, target in enumerate(dict.fromkeys(request.target for request in requests))}
        location = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        cosines = self._documents.of([*location]).astype(np.float64) @ self._targets.of([*row]).astype(np.float64).T
        targets = np.repeat([row[request.target] for request in requests], sizes)
        of_each = self.kappa / temperature * (np.clip(cosines[[location[text] for text in texts], targets], -1, 1) - 1)
        logs = np.logaddexp.reduceat(of_each, np.cumsum([0, *sizes[:-1]])) - np.log(sizes)
        return [
            Likelihood([*word.tokens, MEANING], np.append(word.log_probs, log), word.total + log, word.cut_tokens)
            for word, log in zip(words, np.minimum(logs, 0.0).tolist(), strict=True)  # rounding may lift it above 0
        ]

    def __copy__(self) -> Self:
        """With the same vectors, so that no copy embeds a text again."""
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
    """Words and meaning by any sentence-transformers encoder, which is loaded at its first use: `"st:<name>"`.

    Args:
        name: Model id or directory.
        kappa: κ, as for `EmbeddingModel`.
        mu: μ of the unigram model.
        language: That of the unigram model.
        directory: Where the vectors of fitted texts are kept, as for `EmbeddingModel`.
        device: As for `SentenceTransformer`; None takes the best that is there.
        batch_size: Texts that are encoded together.
        revision: Branch, tag or commit of the model.
        trust_remote_code: Whether code that comes with the model may run. Leave it False.
        show_progress: Whether a bar on standard error counts what has been encoded.

    Raises:
        MissingExtra: sentence-transformers is not installed.
        InvalidInput: an option cannot be used.
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
    """Words and meaning without torch, by a model2vec model, which is loaded at its first use: `"m2v:<name>"`.

    Such a model is a table with a vector for each token; that of a text is their mean, so the order of words is lost.
    It takes some 30 MB, and embeds thousands of passages a second on one core.

    Args:
        name: Model id, such as `minishlab/potion-retrieval-32M`, or directory.
        kappa: κ, as for `EmbeddingModel`; 10 unless given, because a mean of token vectors tells less than an encoder.
        mu: μ of the unigram model.
        language: That of the unigram model.
        directory: Where the vectors of fitted texts are kept, as for `EmbeddingModel`.
        show_progress: Whether a bar on standard error counts what has been embedded.

    Raises:
        MissingExtra: model2vec is not installed.
        InvalidInput: an option cannot be used.
    """
    encoder = Model2VecEncoder(name, show_progress=show_progress)
    return EmbeddingModel(encoder, UnigramModel(mu, language), kappa=kappa, directory=directory)


class SentenceVectors:
    """Unit vectors by text, each text encoded once: indexed ones are kept for good, others if among the latest.

    Safe to share between threads; one thread encodes at a time.

    Args:
        encode: From texts to one vector each.
        directory: Where indexed vectors are kept, a file for each call of `index`; None keeps them in memory only,
            and so does, with a warning, a directory that cannot be written. Vectors of
            another encoder must lie in another directory.

    Raises:
        InvalidInput: the directory holds files that are not vectors.

    >>> vectors = SentenceVectors(lambda texts: [[len(text), 1.0] for text in texts])
    >>> vectors.of(["a", "bcd", "a"]).tolist()[1] == vectors.of(["bcd"]).tolist()[0]
    True
    """

    def __init__(self, encode: Encode, directory: str | os.PathLike[str] | None = None) -> None:
        self._encode = encode
        self._directory = None if directory is None else Path(directory)
        self._indexed: dict[bytes, Floats32] = {}
        self._latest: dict[bytes, Floats32] = {}  # those that were looked up last at the end
        self._lock = threading.Lock()
        if self._directory is not None and self._directory.is_dir():
            for file in sorted(self._directory.glob(f"*{_SUFFIX}")):
                self._indexed.update(_read(file))

    def __reduce__(self) -> tuple[Any, ...]:
        """Without vectors: they are made again, or read in their directory."""
        return SentenceVectors, (self._encode, self._directory)

    def branch(self) -> SentenceVectors:
        """The same vectors for a collection of its own: what it indexes is kept as long as it is used itself.

        >>> encoded = []
        >>> vectors = SentenceVectors(lambda texts: [encoded.append(text) or [1.0] for text in texts])
        >>> vectors.branch().index(["a"])
        >>> vectors.branch().of(["a"]).tolist(), encoded
        ([[1.0]], ['a'])
        """
        vectors = object.__new__(SentenceVectors)  # with the same latest ones, and the same lock
        vectors.__dict__ |= self.__dict__ | {"_indexed": dict(self._indexed)}
        return vectors

    def index(self, texts: Iterable[str]) -> None:
        """Encode what is new among the texts, and keep all of them."""
        by_key = {_key(text): text for text in texts}
        with self._lock:
            found = self._found({key: text for key, text in by_key.items() if key not in self._indexed})
            self._indexed.update(found)
        if found and self._directory is not None:
            _write(self._directory, found)

    def of(self, texts: Sequence[str]) -> Floats32:
        """The texts' unit vectors, shape (texts, dimensions), float32; a blank text has the zero vector."""
        keys = [_key(text) for text in texts]
        with self._lock:
            found = self._found(dict(zip(keys, texts, strict=True)))
        return np.stack([found[key] for key in keys])

    def _found(self, texts: dict[bytes, str]) -> dict[bytes, Floats32]:
        """Vectors by key; those that are new are encoded, and remembered."""
        known = {key: self._indexed.get(key, self._latest.get(key)) for key in texts}
        found = {key: vector for key, vector in known.items() if vector is not None}
        if new := {key: text for key, text in texts.items() if key not in found}:
            found |= zip(new, self._encoded(list(new.values())), strict=True)
        for key in texts:
            if key in self._latest or key not in self._indexed:
                self._latest[key] = self._latest.pop(key, found[key])
        while len(self._latest) > _REMEMBERED:
            del self._latest[next(iter(self._latest))]
        return found

    def _encoded(self, texts: list[str]) -> Floats32:
        """Unit vectors, checked."""
        vectors = np.array(self._encode(texts), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise InvalidInput(
                f"The encoder gave an array of shape {vectors.shape} for {len(texts)} texts: one vector of finite "
                "numbers each is wanted."
            )
        known = next(chain(self._indexed.values(), self._latest.values()), vectors[0])
        if len(known) != vectors.shape[1]:
            raise InvalidInput(
                f"The encoder's vectors have {vectors.shape[1]} numbers, those at hand {len(known)}: give each "
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
    """κ by maximum likelihood, on at most 500 of the texts, evenly spread.

    Args:
        texts: Passages; those of one sentence tell nothing.
        questions: From sentences to unit vectors.
        documents: From the rests of the texts to unit vectors.
        otherwise: κ where fewer than 30 texts have two sentences; a `DrillrankWarning` says so.
    """
    from drillrank.structure.cutting import sentences  # loads what parses documents

    split = [(text, spans) for text in dict.fromkeys(texts) if len(spans := sentences(text)) > 1]
    if len(split) < LEAST:
        warn(f"kappa stays {otherwise}: only {len(split)} texts have two sentences or more, {LEAST} are needed.")
        return otherwise
    chosen = [split[number] for number in np.linspace(0, len(split) - 1, min(len(split), MOST)).astype(int)]
    held_out = [spans[len(spans) // 2] for _, spans in chosen]
    chosen_sentences = [text[start:end] for (text, _), (start, end) in zip(chosen, held_out, strict=True)]
    rests = [f"{text[:start]}{text[end:]}" for (text, _), (start, end) in zip(chosen, held_out, strict=True)]
    cosines = questions(chosen_sentences).astype(np.float64) @ documents(rests).astype(np.float64).T
    low, high = BOUNDS
    while high - low > 1e-9 * high:  # the likelihood is concave in κ: where it no longer rises, it is largest
        kappa = (low + high) / 2
        chances = np.exp(kappa * (cosines - cosines.max(axis=1, keepdims=True)))
        expected = (chances * cosines).sum(axis=1) / chances.sum(axis=1)
        low, high = (kappa, high) if np.mean(np.diag(cosines) - expected) > 0 else (low, kappa)
    return float((low + high) / 2)


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _write(directory: Path, vectors: dict[bytes, Floats32]) -> None:
    """A new file. Where none can be written, the vectors serve this process alone."""
    keys = np.frombuffer(b"".join(vectors), dtype=np.uint8).reshape(-1, 16)
    try:
        with replace_file(directory / f"{hashlib.blake2b(keys.tobytes(), digest_size=8).hexdigest()}{_SUFFIX}") as file:
            np.savez(file, keys=keys, vectors=np.stack(list(vectors.values())))
    except OSError as cause:
        warn(
            f"{len(vectors)} vectors cannot be kept in {str(directory)!r:.200}, and are made again by the next "
            f"process: {cause!s:.200}."
        )


def _read(file: Path) -> dict[bytes, Floats32]:
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
            keys, vectors = stored["keys"], stored["vectors"]
        return {key.tobytes(): vector for key, vector in zip(keys, vectors.astype(np.float32), strict=True)}
    except Exception as error:
        raise InvalidInput(
            f"{str(file)!r:.200} holds no vectors: {error!s:.200}. Delete it, and they are made again."
        ) from error
