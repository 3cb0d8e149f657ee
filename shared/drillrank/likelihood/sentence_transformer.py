"""A likelihood that knows words and meaning: the unigram model, and a sentence encoder for one more token.

    log p(q | c) = Σ_t log mean_d p_unigram(q_t | d) + log mean_d exp(κ (cos(v_q, v_d) - 1))

Meaning is one more token of the question, drawn from the documents d of a context c like any word: its vector v_q under
a von Mises-Fisher distribution of concentration κ around the document's vector v_d, without the normaliser, which is
the same for every document. κ is the scale at which the encoder was trained: InfoNCE is smallest where exp(κ cos(q, d))
is proportional to p(q | d) / p(q) (van den Oord et al. 2018).
"""

from __future__ import annotations

import logging
import math
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from drillrank.collection_statistics import CollectionStatistics
from drillrank.errors import InvalidInput, require
from drillrank.likelihood.base import Likelihood, Request, check_texts
from drillrank.likelihood.from_options import FromOptions
from drillrank.likelihood.loading import told
from drillrank.likelihood.sentence_vectors import SentenceVectors
from drillrank.likelihood.unigram import UNSAVED, Documents, UnigramModel

if TYPE_CHECKING:
    from typing_extensions import Self

logger = logging.getLogger(__name__)

MEANING = "<meaning>"  # how the token of meaning is shown
KAPPA = 20.0  # κ of encoders trained at the usual temperature of 0.05


class SentenceTransformerModel(FromOptions):
    """Words and meaning: the unigram model and any sentence-transformers encoder. No training.

    Scores are natural log-probabilities of the target's stemmed words and of one token more, `<meaning>`, whose
    log-probability lies between -2 κ and 0. Each text is encoded once; `fit` indexes texts. A temperature divides κ,
    as it divides the logits of other models. A document without text has cosine 0 to everything.

    Args:
        name: Model id or directory.
        kappa: κ, the concentration; `"fit"` takes the one under which a sentence of each fitted text finds the rest
            of its text best, for encoders of unknown scale (20 until `fit`).
        mu: μ of the unigram model.
        directory: Where the vectors of fitted texts are kept; a new process reads them there. One encoder each.
        device: As for `SentenceTransformer`; None takes the best that is there.
        batch_size: Texts that are encoded together.
        revision: Branch, tag or commit of the model.
        trust_remote_code: Whether code that comes with the model may run. Leave it False.

    Raises:
        MissingExtra: sentence-transformers is not installed.
        InvalidInput: an option cannot be used.
    """

    def __init__(
        self,
        name: str,
        *,
        kappa: float | Literal["fit"] = KAPPA,
        mu: float = 300.0,
        directory: str | os.PathLike[str] | None = None,
        device: str | None = None,
        batch_size: int = 32,
        revision: str | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        if not name:
            raise InvalidInput('"st:" needs a model id or a directory after the colon.')
        number = isinstance(kappa, int | float) and not isinstance(kappa, bool) and 0 < kappa < math.inf
        if kappa != "fit" and not number:
            raise InvalidInput(f'kappa is a positive number, or "fit"; not {kappa!r}.')
        require("sentence_transformers", "st")
        directory = None if directory is None else os.fspath(directory)
        super().__init__(name, locals())
        self._words = UnigramModel(mu)
        self._kappa = KAPPA if kappa == "fit" else float(kappa)
        encoder = _Encoder(name, self._options)
        self._targets = SentenceVectors(encoder.targets)
        self._documents = SentenceVectors(encoder.documents, directory)

    @property
    def kappa(self) -> float:
        """κ in use."""
        return self._kappa

    @property
    def reads_instructions(self) -> bool:
        """False: only documents are evidence."""
        return False

    @property
    def reads_meaning(self) -> bool:
        """True."""
        return True

    @property
    def spec(self) -> str:
        """`"st:"` and the model's name; once fitted a name that cannot be loaded, as the fit lives in this object."""
        return f"st:{self._name}" if self._words.wants_fit else f"st:{UNSAVED}"

    @property
    def wants_fit(self) -> bool:
        """True until `fit` has been called."""
        return self._words.wants_fit

    def fit(self, texts: Iterable[str] | CollectionStatistics) -> Self:
        """Take p(w|C) from these texts, and encode them; with `kappa="fit"`, find κ.

        Raises:
            InvalidInput: an item is not a string, or statistics were given in place of texts.
        """
        checked = check_texts(texts)
        words = UnigramModel(self._words.mu).fit(checked)
        self._documents.index(checked)  # may fail: then the model is as it was
        self._words = words
        if self._options["kappa"] == "fit":
            from drillrank.likelihood.concentration import fitted_concentration  # loads scipy's optimisers

            self._kappa = fitted_concentration(checked, self._targets.of, self._documents.of, otherwise=KAPPA)
            logger.info("The concentration of %s on %d texts is %.1f.", self._name, len(checked), self._kappa)
        return self

    def first_tokens(self, text: str, count: int) -> str:
        """The text up to the end of its word number `count`, as for the unigram model."""
        return self._words.first_tokens(text, count)

    def document_log_probs(self, target: str, texts: Sequence[str], /) -> npt.NDArray[np.float64]:
        """Log-probabilities of the target's words and meaning under each text alone, shape (texts, words + 1)."""
        words = self._words.document_log_probs(target, texts)
        cosines = self._documents.of(texts).astype(np.float64) @ self._targets.of([target])[0].astype(np.float64)
        meaning = self._kappa * (np.clip(cosines, -1.0, 1.0) - 1.0)
        return np.column_stack([words, meaning])

    def _log_likelihood(self, requests: Sequence[Request], temperature: float, include_eos: bool) -> list[Likelihood]:
        if include_eos:
            raise InvalidInput("A model of words and meaning has no end-of-sequence token: leave include_eos out.")
        words = self._words.log_likelihood(requests, temperature=temperature)
        documents = Documents.of(requests)
        targets = list(dict.fromkeys(request.target for request in requests))
        row = {target: number for number, target in enumerate(targets)}
        asked = np.repeat([row[request.target] for request in requests], documents.sizes)
        texts = list(dict.fromkeys(documents.texts))
        place = {text: number for number, text in enumerate(texts)}
        cosines = self._documents.of(texts).astype(np.float64) @ self._targets.of(targets).astype(np.float64).T
        own = cosines[[place[text] for text in documents.texts], asked]
        logs = self._kappa / temperature * (np.clip(own, -1.0, 1.0) - 1.0)
        starts = np.cumsum([0, *documents.sizes[:-1]])
        meaning = np.logaddexp.reduceat(logs, starts) - np.log(documents.sizes)
        return [_with_meaning(likelihood, float(log)) for likelihood, log in zip(words, meaning, strict=True)]

    def __getstate__(self) -> dict[str, Any]:
        """Without encoder: it is loaded again."""
        return {**super().__getstate__(), "words": self._words, "kappa": self._kappa}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._words, self._kappa = state["words"], state["kappa"]


def _with_meaning(words: Likelihood, meaning: float) -> Likelihood:
    meaning = min(meaning, 0.0)  # rounding
    return Likelihood(
        [*words.tokens, MEANING], np.append(words.log_probs, meaning), words.total + meaning, words.cut_tokens
    )


class _Encoder:
    """The encoder, loaded at its first use."""

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        self._name = name
        self._options = options
        self._model: Any = None
        self._lock = threading.Lock()

    def targets(self, texts: list[str]) -> Any:
        """Vectors of questions: encoders that tell them from documents have a prompt for them."""
        return self._encode(self._loaded().encode_query, texts)

    def documents(self, texts: list[str]) -> Any:
        """Vectors of documents."""
        return self._encode(self._loaded().encode_document, texts)

    def _encode(self, encode: Callable[..., Any], texts: list[str]) -> Any:
        return encode(texts, batch_size=self._options["batch_size"], show_progress_bar=False, convert_to_numpy=True)

    def _loaded(self) -> Any:
        with self._lock:
            if self._model is None:
                library = require("sentence_transformers", "st")
                chosen = {name: self._options[name] for name in ("device", "revision", "trust_remote_code")}
                with told(f"{self._name!r} is no encoder that can be loaded"):
                    self._model = library.SentenceTransformer(self._name, **chosen)
                logger.info("Loaded %s.", self._name)
            return self._model
