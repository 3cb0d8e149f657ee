"""Index every section of a document in several views: raw text, keywords and summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drillrank.lazy import lazy_names

if TYPE_CHECKING:
    from drillrank.views.chunks import MAX_TOKENS as MAX_TOKENS
    from drillrank.views.chunks import MIN_TOKENS as MIN_TOKENS
    from drillrank.views.chunks import Chunk as Chunk
    from drillrank.views.chunks import Chunker as Chunker
    from drillrank.views.chunks import Chunking as Chunking
    from drillrank.views.chunks import SizeLimit as SizeLimit
    from drillrank.views.expansion import MAX_EXPANDED_TOKENS as MAX_EXPANDED_TOKENS
    from drillrank.views.expansion import ExpandedSection as ExpandedSection
    from drillrank.views.expansion import Expansion as Expansion
    from drillrank.views.expansion import SectionExpander as SectionExpander
    from drillrank.views.extractive import VIEWS as VIEWS
    from drillrank.views.extractive import Summarizer as Summarizer
    from drillrank.views.extractive import View as View
    from drillrank.views.extractive import check_summarizer as check_summarizer
    from drillrank.views.extractive import keywords as keywords
    from drillrank.views.extractive import summaries as summaries
    from drillrank.views.extractive import summarized as summarized
    from drillrank.views.extractive import summary as summary
    from drillrank.views.index import MultiViewIndex as MultiViewIndex
    from drillrank.views.index import RetrieverName as RetrieverName
    from drillrank.views.index import ViewText as ViewText
    from drillrank.views.index import check_index_settings as check_index_settings
    from drillrank.views.llm import KEYWORD_PROMPT as KEYWORD_PROMPT
    from drillrank.views.llm import SUMMARY_PROMPT as SUMMARY_PROMPT
    from drillrank.views.llm import HuggingFaceSummarizer as HuggingFaceSummarizer
    from drillrank.views.llm import ViewWriter as ViewWriter
    from drillrank.views.llm import parse_keywords as parse_keywords
    from drillrank.views.merging import Merge as Merge
    from drillrank.views.merging import MergedSection as MergedSection
    from drillrank.views.merging import complete_merge as complete_merge
    from drillrank.views.merging import explain_views as explain_views
    from drillrank.views.merging import merge_views as merge_views
    from drillrank.views.views import Context as Context
    from drillrank.views.views import MultiViewChunker as MultiViewChunker
    from drillrank.views.views import SectionChunk as SectionChunk
    from drillrank.views.views import ViewSettings as ViewSettings
    from drillrank.views.views import section_chunks as section_chunks

# Names are loaded at their first use, with their dependencies.
_NAMES_BY_MODULE = {
    "chunks": ("MAX_TOKENS", "MIN_TOKENS", "Chunk", "Chunker", "Chunking", "SizeLimit"),
    "expansion": ("MAX_EXPANDED_TOKENS", "ExpandedSection", "Expansion", "SectionExpander"),
    "extractive": ("VIEWS", "Summarizer", "View", "check_summarizer", "keywords", "summaries", "summarized", "summary"),
    "index": ("MultiViewIndex", "RetrieverName", "ViewText", "check_index_settings"),
    "llm": ("KEYWORD_PROMPT", "SUMMARY_PROMPT", "HuggingFaceSummarizer", "ViewWriter", "parse_keywords"),
    "merging": ("Merge", "MergedSection", "complete_merge", "explain_views", "merge_views"),
    "views": ("Context", "MultiViewChunker", "SectionChunk", "ViewSettings", "section_chunks"),
}

_MODULE_BY_NAME = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}

if not TYPE_CHECKING:  # a type checker that saw `__getattr__` would accept any name
    __all__ = sorted(_MODULE_BY_NAME)
    __getattr__ = lazy_names(__name__, _MODULE_BY_NAME)
