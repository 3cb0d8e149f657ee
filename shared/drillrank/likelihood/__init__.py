"""Language models: one contract, and a loader by specification."""

from __future__ import annotations

from typing import Any

from drillrank.errors import InvalidInput, UnknownModel
from drillrank.likelihood.base import LanguageModel, Likelihood, Request, RequestLike
from drillrank.likelihood.unigram import UnigramModel

__all__ = ["LanguageModel", "Likelihood", "Request", "RequestLike", "UnigramModel", "load_language_model"]


def load_language_model(spec: str | LanguageModel = "unigram", **options: Any) -> LanguageModel:
    """The language model that a specification names; a ready model is handed back as it is.

    Args:
        spec: `"unigram"`: the embedded Dirichlet-smoothed model (option `mu`).
        options: Options of that kind of model.

    Raises:
        UnknownModel: the specification names no known kind of model.
        InvalidInput: an option that this kind of model does not have.

    >>> load_language_model("unigram").spec
    'unigram'
    >>> load_language_model("bert")
    Traceback (most recent call last):
    ...
    drillrank.errors.UnknownModel: 'bert' names no kind of language model; known: "unigram" (embedded, no download).
    """
    if isinstance(spec, LanguageModel):
        if options:
            raise InvalidInput(f"Options {sorted(options)} do not apply to a model that is already built.")
        return spec
    if spec != "unigram":
        raise UnknownModel(f'{spec!r} names no kind of language model; known: "unigram" (embedded, no download).')
    try:
        return UnigramModel(**options)
    except TypeError as cause:
        raise InvalidInput(f'The options of "unigram" are: mu. Given: {sorted(options)}.') from cause
