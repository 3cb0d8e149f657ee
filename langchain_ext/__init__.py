"""drillrank for LangChain: `from langchain_ext import UPRRerank`."""

from pathlib import Path

from drillrank.errors import require
from drillrank.frameworks.namesakes import warn_about_namesakes

require("langchain_core", "langchain")
warn_about_namesakes(__name__, Path(__file__).parent)

from langchain_ext.d3 import D3Retriever  # noqa: E402
from langchain_ext.loader import DrillrankLoader  # noqa: E402
from langchain_ext.multi_view_splitter import MultiViewTextSplitter  # noqa: E402
from langchain_ext.promptrank import PromptRankRerank, PromptRankRetriever  # noqa: E402
from langchain_ext.rerank import (  # noqa: E402
    BRMGRRerank,
    LikelihoodCrossEncoder,
    MonoT5Rerank,
    RelevanceRerank,
    UPRRerank,
)
from langchain_ext.retrievers import BRMGRRetriever, MultiViewRetriever  # noqa: E402
from langchain_ext.self_ask import SelfAskChain  # noqa: E402
from langchain_ext.support import SupportEvaluator  # noqa: E402

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
