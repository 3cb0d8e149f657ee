"""Words and meaning by a sentence-transformers encoder, which is loaded at its first use."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import Any, Literal

from drillrank.errors import InvalidInput, require
from drillrank.likelihood.embedding_model import KAPPA, EmbeddingModel
from drillrank.likelihood.from_options import FromOptions
from drillrank.likelihood.loading import told
from drillrank.likelihood.torch_threads import require_torch, settle_threads
from drillrank.likelihood.unigram import UNSAVED, UnigramModel

logger = logging.getLogger(__name__)


class SentenceTransformerModel(FromOptions, EmbeddingModel):
    """Words and meaning: the unigram model and any sentence-transformers encoder. No training.

    Scores, and what is remembered, are those of `EmbeddingModel`.

    Args:
        name: Model id or directory.
        kappa: κ, the concentration; `"fit"` takes the one under which a sentence of each fitted text finds the rest
            of its text best, for encoders of unknown scale (20 until `fit`).
        mu: μ of the unigram model.
        language: That of the unigram model.
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
        language: str = "english",
        directory: str | os.PathLike[str] | None = None,
        device: str | None = None,
        batch_size: int = 32,
        revision: str | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        if not name:
            raise InvalidInput('"st:" needs a model id or a directory after the colon.')
        require_torch("st")
        require("sentence_transformers", "st")
        directory = None if directory is None else os.fspath(directory)
        FromOptions.__init__(self, name, locals())
        words = UnigramModel(mu, language)
        EmbeddingModel.__init__(self, _Encoder(name, self._options), words, kappa=kappa, directory=directory)

    @property
    def spec(self) -> str:
        """`"st:"` and the model's name; once fitted a name that cannot be loaded, as the fit lives in this object."""
        return f"st:{self._name}" if self._words.wants_fit else f"st:{UNSAVED}"

    def __getstate__(self) -> dict[str, Any]:
        """Without encoder: it is loaded again."""
        return {**FromOptions.__getstate__(self), "words": self._words, "kappa": self._kappa}

    def __setstate__(self, state: dict[str, Any]) -> None:
        FromOptions.__setstate__(self, state)
        self._words, self._kappa = state["words"], state["kappa"]


class _Encoder:
    """The encoder, loaded at its first use."""

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        self._name = name
        self._options = options
        self._model: Any = None
        self._lock = threading.Lock()

    def __call__(self, texts: list[str]) -> Any:
        """Vectors of documents."""
        return self._encode(self._loaded().encode_document, texts)

    def questions(self, texts: list[str]) -> Any:
        """Vectors of questions: encoders that tell them from documents have a prompt for them."""
        return self._encode(self._loaded().encode_query, texts)

    def _encode(self, encode: Callable[..., Any], texts: list[str]) -> Any:
        return encode(texts, batch_size=self._options["batch_size"], show_progress_bar=False, convert_to_numpy=True)

    def _loaded(self) -> Any:
        settle_threads()
        with self._lock:
            if self._model is None:
                library = require("sentence_transformers", "st")
                chosen = {name: self._options[name] for name in ("device", "revision", "trust_remote_code")}
                with told(f"{self._name!r} is no encoder that can be loaded"):
                    self._model = library.SentenceTransformer(self._name, **chosen)
                logger.info("Loaded %s.", self._name)
            return self._model
