"""drillrank for LlamaIndex: `from llama_index_ext import UPRRerank`."""

from pathlib import Path

from drillrank.errors import require
from drillrank.frameworks.namesakes import warn_about_namesakes

require("llama_index.core", "llama-index")
warn_about_namesakes(__name__, Path(__file__).parent)

from llama_index_ext.d3 import D3Retriever  # noqa: E402
from llama_index_ext.multi_view_parser import MultiViewNodeParser  # noqa: E402
from llama_index_ext.promptrank import PromptRankRerank, PromptRankRetriever  # noqa: E402
from llama_index_ext.reader import DrillrankReader  # noqa: E402
from llama_index_ext.rerank import BRMGRRerank, MonoT5Rerank, RelevanceRerank, UPRRerank  # noqa: E402
from llama_index_ext.retrievers import BRMGRRetriever, MultiViewRetriever  # noqa: E402
from llama_index_ext.self_ask import SelfAskQueryEngine  # noqa: E402
from llama_index_ext.support import SupportEvaluator  # noqa: E402

__all__ = [
    "BRMGRRerank",
    "BRMGRRetriever",
    "D3Retriever",
    "DrillrankReader",
    "MonoT5Rerank",
    "MultiViewNodeParser",
    "MultiViewRetriever",
    "PromptRankRerank",
    "PromptRankRetriever",
    "RelevanceRerank",
    "SelfAskQueryEngine",
    "SupportEvaluator",
    "UPRRerank",
]
