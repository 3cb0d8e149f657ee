"""drillrank's node postprocessors: `from llama_index.postprocessor.drillrank import UPRRerank`."""

from drillrank.frameworks.namesakes import load_adapter

load_adapter("llama_index_ext")

from llama_index_ext import BRMGRRerank, MonoT5Rerank, PromptRankRerank, RelevanceRerank, UPRRerank  # noqa: E402

__all__ = ["BRMGRRerank", "MonoT5Rerank", "PromptRankRerank", "RelevanceRerank", "UPRRerank"]
