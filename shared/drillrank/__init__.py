"""Find the right evidence without any training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drillrank.lazy import lazy_names

if TYPE_CHECKING:
    from drillrank.corpus import Corpus as Corpus
    from drillrank.coverage import Coverage as Coverage
    from drillrank.drilldown.d3 import D3 as D3
    from drillrank.drilldown.self_ask import SelfAsk as SelfAsk
    from drillrank.evaluation.settings_file import load_settings as load_settings
    from drillrank.generation.support import SentenceSupport as SentenceSupport
    from drillrank.generation.support import check_support as check_support
    from drillrank.likelihood import LanguageModel as LanguageModel
    from drillrank.likelihood import load_language_model as load_language_model
    from drillrank.multihop.search import PathSearch as PathSearch
    from drillrank.passages import Passage as Passage
    from drillrank.passages import Path as Path
    from drillrank.passages import Ranked as Ranked
    from drillrank.rerank.brmgr import BRMGR as BRMGR
    from drillrank.rerank.promptrank import PromptRank as PromptRank
    from drillrank.rerank.relevance import MonoT5 as MonoT5
    from drillrank.rerank.relevance import Relevance as Relevance
    from drillrank.rerank.upr import UPR as UPR
    from drillrank.structure import parse_document as parse_document
    from drillrank.structure import read_document as read_document
    from drillrank.structure.record_store import RecordStore as RecordStore
    from drillrank.structure.stored_chunks import StoredChunk as StoredChunk

# Public names are loaded at their first use, with their dependencies. `import drillrank` loads none.
_MODULE_BY_NAME = {
    "BRMGR": "rerank.brmgr",
    "Corpus": "corpus",
    "Coverage": "coverage",
    "D3": "drilldown.d3",
    "LanguageModel": "likelihood",
    "MonoT5": "rerank.relevance",
    "Passage": "passages",
    "Path": "passages",
    "PathSearch": "multihop.search",
    "PromptRank": "rerank.promptrank",
    "Ranked": "passages",
    "RecordStore": "structure.record_store",
    "Relevance": "rerank.relevance",
    "SelfAsk": "drilldown.self_ask",
    "SentenceSupport": "generation.support",
    "StoredChunk": "structure.stored_chunks",
    "UPR": "rerank.upr",
    "check_support": "generation.support",
    "load_language_model": "likelihood",
    "load_settings": "evaluation.settings_file",
    "parse_document": "structure",
    "read_document": "structure",
}


if not TYPE_CHECKING:  # a type checker that saw `__getattr__` would accept any name
    __all__ = sorted(_MODULE_BY_NAME)
    __getattr__ = lazy_names(__name__, _MODULE_BY_NAME)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_BY_NAME})
