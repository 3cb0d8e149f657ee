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
        RelevanceRequest,
        RelevanceScore,
        Request,
        RequestLike,
        TrainedAnswers,
    )
    from drillrank.likelihood.cross_encoder import CrossEncoderModel
    from drillrank.likelihood.encoder import EmbeddingModel
    from drillrank.likelihood.huggingface import HuggingFaceModel
    from drillrank.likelihood.load import load_language_model
    from drillrank.likelihood.mixture import SumOfExperts
    from drillrank.likelihood.relevance import RelevanceModel
    from drillrank.likelihood.rerank_server import RerankServerModel
    from drillrank.likelihood.served import ServedModel
    from drillrank.likelihood.unigram import UnigramModel

_MODULE_BY_NAME = {
    "CrossEncoderModel": "cross_encoder",
    "EmbeddingModel": "encoder",
    "HuggingFaceModel": "huggingface",
    "LanguageModel": "base",
    "Likelihood": "base",
    "NextTokenRequest": "base",
    "NextTokens": "base",
    "PrefixEstimate": "base",
    "RelevanceModel": "relevance",
    "RelevanceRequest": "base",
    "RelevanceScore": "base",
    "Request": "base",
    "RequestLike": "base",
    "RerankServerModel": "rerank_server",
    "ServedModel": "served",
    "SumOfExperts": "mixture",
    "TrainedAnswers": "base",
    "UnigramModel": "unigram",
    "load_language_model": "load",
}

__all__ = [
    "CrossEncoderModel",
    "EmbeddingModel",
    "HuggingFaceModel",
    "LanguageModel",
    "Likelihood",
    "NextTokenRequest",
    "NextTokens",
    "PrefixEstimate",
    "RelevanceModel",
    "RelevanceRequest",
    "RelevanceScore",
    "Request",
    "RequestLike",
    "RerankServerModel",
    "ServedModel",
    "SumOfExperts",
    "TrainedAnswers",
    "UnigramModel",
    "load_language_model",
]

if not TYPE_CHECKING:  # a type checker that saw `__getattr__` would accept any name
    __getattr__ = lazy_names(__name__, _MODULE_BY_NAME)
