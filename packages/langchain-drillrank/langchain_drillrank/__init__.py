"""drillrank for LangChain under the name of an integration: `from langchain_drillrank import UPRRerank`."""

from drillrank.frameworks.namesakes import load_adapter

load_adapter("langchain_ext")

from langchain_ext import (  # noqa: E402
    BRMGRRerank,
    BRMGRRetriever,
    D3Retriever,
    DrillrankLoader,
    LikelihoodCrossEncoder,
    MonoT5Rerank,
    MultiViewRetriever,
    MultiViewTextSplitter,
    PromptRankRerank,
    PromptRankRetriever,
    RelevanceRerank,
    SelfAskChain,
    SupportEvaluator,
    UPRRerank,
)

__all__ = [
    "BRMGRRerank",
    "BRMGRRetriever",
    "D3Retriever",
    "DrillrankLoader",
    "LikelihoodCrossEncoder",
    "MonoT5Rerank",
    "MultiViewRetriever",
    "MultiViewTextSplitter",
    "PromptRankRerank",
    "PromptRankRetriever",
    "RelevanceRerank",
    "SelfAskChain",
    "SupportEvaluator",
    "UPRRerank",
]
