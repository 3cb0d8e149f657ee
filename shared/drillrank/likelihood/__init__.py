"""Language models: one contract, and a loader by specification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drillrank.lazy import lazy_names

if TYPE_CHECKING:
    from drillrank.likelihood.base import (
        LanguageModel,
        Likelihood,
        NextTokenRequest,
        NextTokens,
        PrefixEstimate,
        Request,
        RequestLike,
        TrainedAnswers,
    )
    from drillrank.likelihood.ct2 import CTranslate2Model
    from drillrank.likelihood.encoder import EmbeddingModel
    from drillrank.likelihood.huggingface import HuggingFaceModel
    from drillrank.likelihood.load import load_language_model
    from drillrank.likelihood.mixture import SumOfExperts
    from drillrank.likelihood.served import ServedModel
    from drillrank.likelihood.unigram import UnigramModel

_MODULE_BY_NAME = {
    "CTranslate2Model": "ct2",
    "EmbeddingModel": "encoder",
    "HuggingFaceModel": "huggingface",
    "LanguageModel": "base",
    "Likelihood": "base",
    "NextTokenRequest": "base",
    "NextTokens": "base",
    "PrefixEstimate": "base",
    "Request": "base",
    "RequestLike": "base",
    "ServedModel": "served",
    "SumOfExperts": "mixture",
    "TrainedAnswers": "base",
    "UnigramModel": "unigram",
    "load_language_model": "load",
}

__all__ = [
    "CTranslate2Model",
    "EmbeddingModel",
    "HuggingFaceModel",
    "LanguageModel",
    "Likelihood",
    "NextTokenRequest",
    "NextTokens",
    "PrefixEstimate",
    "Request",
    "RequestLike",
    "ServedModel",
    "SumOfExperts",
    "TrainedAnswers",
    "UnigramModel",
    "load_language_model",
]

if not TYPE_CHECKING:  # a type checker that saw `__getattr__` would accept any name
    __getattr__ = lazy_names(__name__, _MODULE_BY_NAME)
