"""Language models: one contract, and a loader by specification."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from drillrank.errors import InvalidInput, UnknownModel
from drillrank.likelihood.base import (
    LanguageModel,
    Likelihood,
    NextTokenRequest,
    NextTokens,
    Request,
    RequestLike,
    TrainedAnswers,
)
from drillrank.likelihood.ctranslate2_model import CTranslate2Model
from drillrank.likelihood.embedding_model import EmbeddingModel
from drillrank.likelihood.huggingface import HuggingFaceModel
from drillrank.likelihood.sentence_transformer import SentenceTransformerModel
from drillrank.likelihood.served import ServedModel
from drillrank.likelihood.unigram import UNSAVED, UnigramModel

__all__ = [
    "CTranslate2Model",
    "EmbeddingModel",
    "HuggingFaceModel",
    "LanguageModel",
    "Likelihood",
    "NextTokenRequest",
    "NextTokens",
    "Request",
    "RequestLike",
    "SentenceTransformerModel",
    "ServedModel",
    "TrainedAnswers",
    "UnigramModel",
    "load_language_model",
]


def load_language_model(spec: str | LanguageModel = "unigram", **options: Any) -> LanguageModel:
    """The language model that a specification names; a ready model is handed back as it is.

    Args:
        spec: `"unigram"`: the embedded Dirichlet-smoothed model (options `mu` and `language`, "english" by default).
            `"unigram:<directory>"`: the same, fitted, as `UnigramModel.save` saved it.
            `"hf:<model id or directory>"`: a Hugging Face model (options of `HuggingFaceModel`); its weights are loaded
            at the first use. `"ct2:<directory>"`: the same, converted by `drillrank.likelihood.conversion.convert`
            (options of `CTranslate2Model`).
            `"st:<model id or directory>"`: words and meaning by a sentence-transformers encoder (options of
            `SentenceTransformerModel`), loaded at the first use. `"http://host:port/v1#<model>"`, or https:
            a served model (options of `ServedModel`), reached at the first use.
        options: Options of that kind of model.

    Raises:
        UnknownModel: the specification names no known kind of model.
        InvalidInput: an option that this kind of model does not have, or a value that it cannot use.
        MissingExtra: what that kind of model needs is not installed.

    >>> load_language_model("unigram").spec
    'unigram'
    >>> load_language_model("bert")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    drillrank.errors.UnknownModel: 'bert' names no kind of language model; known: "unigram", ...
    """
    if isinstance(spec, LanguageModel):
        if options:
            raise InvalidInput(f"Options {sorted(options)} do not apply to a model that is already built.")
        return spec
    if spec == "unigram":
        build: Callable[..., LanguageModel] = UnigramModel
    elif spec == f"unigram:{UNSAVED}":
        raise InvalidInput(
            "A unigram model was fitted and not saved, so that a configuration cannot name it. Save it with "
            "model.save(directory) and build the component with it; or pass the model itself again."
        )
    elif isinstance(spec, str) and spec.startswith("unigram:"):
        build = partial(UnigramModel.load, spec.removeprefix("unigram:"))
    elif isinstance(spec, str) and spec.startswith("hf:"):
        build = partial(HuggingFaceModel, spec.removeprefix("hf:"))
    elif isinstance(spec, str) and spec.startswith("ct2:"):
        build = partial(CTranslate2Model, spec.removeprefix("ct2:"))
    elif spec == f"st:{UNSAVED}":
        raise InvalidInput(
            "A model of words and meaning was fitted, and a configuration cannot hold its word counts: name the model "
            "without fit, or pass the model itself again."
        )
    elif isinstance(spec, str) and spec.startswith("st:"):
        build = partial(SentenceTransformerModel, spec.removeprefix("st:"))
    elif isinstance(spec, str) and spec.startswith(("http://", "https://")):
        build = partial(ServedModel, spec)
    else:
        raise UnknownModel(
            f'{spec!r} names no kind of language model; known: "unigram", "unigram:<directory>", '
            '"hf:<id or directory>", "ct2:<directory>", "st:<id or directory>" and "http://host:port/v1#<model>".'
        )
    known = inspect.signature(build).parameters
    if not set(options) <= set(known):
        raise InvalidInput(f"The options of {spec!r} are: {', '.join(known)}. Given: {', '.join(options)}.")
    return build(**options)
