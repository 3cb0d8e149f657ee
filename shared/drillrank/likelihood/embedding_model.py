"""A likelihood that knows words and meaning: the unigram model, and a vector of each text for one more token.

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
from collections.abc import Iterable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from drillrank.collection_statistics import CollectionStatistics
from drillrank.errors import InvalidInput
from drillrank.likelihood.base import LanguageModel, Likelihood, Request, check_texts
from drillrank.likelihood.sentence_vectors import SentenceVectors
from drillrank.likelihood.unigram import Documents, UnigramModel
from drillrank.vectors import Embed

if TYPE_CHECKING:
    from typing_extensions import Self

logger = logging.getLogger(__name__)

MEANING = "<meaning>"  # how the token of meaning is shown
KAPPA = 20.0  # κ of encoders trained at the usual temperature of 0.05


class EmbeddingModel(LanguageModel):
    """Words and meaning: the unigram model and any function from texts to vectors. No training.

    Scores are natural log-probabilities of the target's stemmed words and of one token more, `<meaning>`, whose
    log-probability lies between -2 κ and 0. Each text is embedded once, of those that were not fitted the latest 20,000
    are remembered; `fit` indexes texts. A temperature divides κ, as it divides the logits of other models. A document
    without text has cosine 0 to everything.

    Args:
        embed: From texts to one vector each; with a method `questions`, that embeds the questions.
        words: The unigram model; None makes one.
        kappa: κ, the concentration; `"fit"` takes the one under which a sentence of each fitted text finds the rest
            of its text best, for encoders of unknown scale (20 until `fit`).
        directory: Where the vectors of fitted texts are kept; a new process reads them there. One encoder each.

    Raises:
        InvalidInput: `embed` is no function, κ cannot be used, or there is not one finite vector a text.

    >>> topics = ("river", "lake"), ("novel", "book")
    >>> model = EmbeddingModel(lambda texts: [[any(w in t for w in topic) for topic in topics] for t in texts])
    >>> near, far = model.log_likelihood([("A cold lake.", "a river"), ("A thick book.", "a river")])
    >>> near.tokens, round(near.total - far.total, 6)
    (['a', 'river', '<meaning>'], 20.0)
    """

    def __init__(
        self,
        embed: Embed,
        words: UnigramModel | None = None,
        *,
        kappa: float | Literal["fit"] = KAPPA,
        directory: str | os.PathLike[str] | None = None,
    ) -> None:
        if not callable(embed):
            raise InvalidInput(f"embed is a function from texts to vectors, not {embed!r:.100}.")
        number = isinstance(kappa, int | float) and not isinstance(kappa, bool) and 0 < kappa < math.inf
        if kappa != "fit" and not number:
            raise InvalidInput(f'kappa is a positive number, or "fit"; not {kappa!r}.')
        self._embed = embed
        self._words = words or UnigramModel()
        self._kappa_given = kappa
        self._kappa = KAPPA if kappa == "fit" else float(kappa)
        self._directory = None if directory is None else os.fspath(directory)
        self._targets = SentenceVectors(getattr(embed, "questions", embed))
        self._documents = SentenceVectors(embed, directory)

    @property
    def kappa(self) -> float:
        """κ in use."""
        return self._kappa

    @property
    def language(self) -> str:
        """That of the words."""
        return self._words.language

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
        """A name that cannot be loaded, as the function lives in this object."""
        return "embed:<a function>"

    @property
    def wants_fit(self) -> bool:
        """True until `fit` has been called."""
        return self._words.wants_fit

    def fit(self, texts: Iterable[str] | CollectionStatistics) -> Self:
        """Take p(w|C) from these texts, and encode them; with `kappa="fit"`, find κ.

        Of texts of which there are statistics alone, each is encoded when it is first scored.

        Raises:
            InvalidInput: an item is not a string, or κ is to be found and there are no texts.
        """
        if isinstance(texts, CollectionStatistics):
            if self._kappa_given == "fit":
                raise InvalidInput('kappa="fit" needs texts, and there are statistics alone: fit before, or say 20.')
            self._words = UnigramModel(self._words.mu, self.language).fit(texts)
            return self
        checked = check_texts(texts)
        words = UnigramModel(self._words.mu, self.language).fit(checked)
        self._documents.index(checked)  # may fail: then the model is as it was
        self._words = words
        if self._kappa_given == "fit":
            from drillrank.likelihood.concentration import fitted_concentration  # loads scipy's optimisers

            self._kappa = fitted_concentration(checked, self._targets.of, self._documents.of, otherwise=KAPPA)
            logger.info("The concentration on %d texts is %.1f.", len(checked), self._kappa)
        return self

    def fitted(self, texts: Iterable[str] | CollectionStatistics) -> Self:
        """A copy that has embedded these texts, and is fitted with them if this one has not been fitted."""
        own = copy(self)
        if own.wants_fit:
            return own.fit(texts)
        if not isinstance(texts, CollectionStatistics):  # which hold no texts to embed
            own._documents.index(check_texts(texts))
        return own

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

    def __copy__(self) -> Self:
        """With the same vectors, so that no copy embeds a text again."""
        own = type(self).__new__(type(self))
        own.__dict__ |= self.__dict__ | {"_documents": self._documents.branch()}
        return own

    def __getstate__(self) -> dict[str, Any]:
        """Without vectors: they are made again, or read in their directory."""
        kept = ("_embed", "_words", "_kappa_given", "_kappa", "_directory")
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._targets = SentenceVectors(getattr(self._embed, "questions", self._embed))
        self._documents = SentenceVectors(self._embed, self._directory)


def _with_meaning(words: Likelihood, meaning: float) -> Likelihood:
    meaning = min(meaning, 0.0)  # rounding
    return Likelihood(
        [*words.tokens, MEANING], np.append(words.log_probs, meaning), words.total + meaning, words.cut_tokens
    )
