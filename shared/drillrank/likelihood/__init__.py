"""Language models: one contract, and a loader by specification."""

from drillrank.likelihood.base import (
    LanguageModel,
    Likelihood,
    NextTokenRequest,
    NextTokens,
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
    "ServedModel",
    "SumOfExperts",
    "TrainedAnswers",
    "UnigramModel",
    "load_language_model",
]
