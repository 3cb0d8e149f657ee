"""Find the right evidence without any training."""

from drillrank.drilldown.d3 import D3
from drillrank.drilldown.self_ask import SelfAsk
from drillrank.likelihood import LanguageModel, load_language_model
from drillrank.multihop.search import PathSearch
from drillrank.passages import Passage, Path, Ranked
from drillrank.rerank.brmgr import BRMGR
from drillrank.rerank.monot5 import MonoT5
from drillrank.rerank.promptrank import PromptRank
from drillrank.rerank.upr import UPR
from drillrank.structure import parse_document

__all__ = [
    "BRMGR",
    "D3",
    "UPR",
    "LanguageModel",
    "MonoT5",
    "Passage",
    "Path",
    "PathSearch",
    "PromptRank",
    "Ranked",
    "SelfAsk",
    "load_language_model",
    "parse_document",
]
