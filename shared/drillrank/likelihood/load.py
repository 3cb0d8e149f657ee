"""From a specification to a language model."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from drillrank.errors import InvalidInput, UnknownModel
from drillrank.likelihood.base import LanguageModel
from drillrank.likelihood.ctranslate2_model import CTranslate2Model
from drillrank.likelihood.encoder import sentence_transformer
from drillrank.likelihood.huggingface import HuggingFaceModel
from drillrank.likelihood.served import ServedModel
from drillrank.likelihood.unigram import UNSAVED, UnigramModel

KINDS: dict[str, Callable[..., LanguageModel]] = {
    "unigram": UnigramModel.load,
    "hf": HuggingFaceModel,
    "ct2": CTranslate2Model,
    "st": sentence_transformer,
}
"""What builds a model from the name behind the colon."""


def load_language_model(spec: str | LanguageModel = "unigram", **options: Any) -> LanguageModel:
    """The language model that a specification names; a ready model is handed back as it is.

    Args:
        spec: `"unigram"`: the embedded Dirichlet-smoothed model (options `mu` and `language`, "english" by default).
            `"unigram:<directory>"`: the same, fitted, as `UnigramModel.save` saved it.
            `"hf:<model id or directory>"`: a Hugging Face model (options of `HuggingFaceModel`); its weights are loaded
            at the first use. `"ct2:<directory>"`: the same, converted by `drillrank.likelihood.conversion.convert`
            (options of `CTranslate2Model`).
            `"st:<model id or directory>"`: words and meaning by a sentence-transformers encoder (options of
            `drillrank.likelihood.encoder.sentence_transformer`), loaded at the first use.
            `"http://host:port/v1#<model>"`, or https: a served model (options of `ServedModel`), reached at the first
            use.
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
    build = _builder(spec)
    known = inspect.signature(build).parameters
    if not set(options) <= set(known):
        raise InvalidInput(f"The options of {spec!r:.200} are: {', '.join(known)}. Given: {', '.join(options)}.")
    return build(**options)


def _builder(spec: object) -> Callable[..., LanguageModel]:
    """What builds the model from its options.

    Raises:
        UnknownModel: the specification names no known kind of model.
        InvalidInput: it stands for a model that was fitted and not saved.
    """
    kind, colon, name = spec.partition(":") if isinstance(spec, str) else ("", "", "")
    if name == UNSAVED:
        raise InvalidInput(
            f'A model of kind "{kind}" was fitted and not saved, so that a configuration cannot name it: name it '
            "without fit, save a unigram model with model.save(directory) and name that, or pass the model itself "
            "again."
        )
    if spec == "unigram":
        return UnigramModel
    if kind in ("http", "https"):
        return partial(ServedModel, spec)
    if not colon or kind not in KINDS:
        raise UnknownModel(
            f'{spec!r:.200} names no kind of language model; known: "unigram", "unigram:<directory>", '
            '"hf:<id or directory>", "ct2:<directory>", "st:<id or directory>" and "http://host:port/v1#<model>".'
        )
    return partial(KINDS[kind], name)
