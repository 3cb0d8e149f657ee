"""Index every section of a document in several views: raw text, keywords and summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drillrank.lazy import lazy_names

if TYPE_CHECKING:
    from drillrank.views.chunks import MAX_TOKENS, MIN_TOKENS, Chunk, Chunker, Chunking, SizeLimit
    from drillrank.views.expansion import MAX_EXPANDED_TOKENS, ExpandedSection, Expansion, SectionExpander
    from drillrank.views.extractive import (
        VIEWS,
        Summarizer,
        View,
        check_summarizer,
        keywords,
        summaries,
        summarized,
        summary,
    )
    from drillrank.views.index import MultiViewIndex, RetrieverName, ViewText, check_index_settings
    from drillrank.views.llm import KEYWORD_PROMPT, SUMMARY_PROMPT, HuggingFaceSummarizer, ViewWriter, parse_keywords
    from drillrank.views.merging import Merge, MergedSection, complete_merge, explain_views, merge_views
    from drillrank.views.views import Context, MultiViewChunker, SectionChunk, ViewSettings, section_chunks

_NAMES_BY_MODULE = {
    "chunks": ("MAX_TOKENS", "MIN_TOKENS", "Chunk", "Chunker", "Chunking", "SizeLimit"),
    "expansion": ("MAX_EXPANDED_TOKENS", "ExpandedSection", "Expansion", "SectionExpander"),
    "extractive": ("VIEWS", "Summarizer", "View", "check_summarizer", "keywords", "summaries", "summarized", "summary"),
    "index": ("MultiViewIndex", "RetrieverName", "ViewText", "check_index_settings"),
    "llm": ("KEYWORD_PROMPT", "SUMMARY_PROMPT", "HuggingFaceSummarizer", "ViewWriter", "parse_keywords"),
    "merging": ("Merge", "MergedSection", "complete_merge", "explain_views", "merge_views"),
    "views": ("Context", "MultiViewChunker", "SectionChunk", "ViewSettings", "section_chunks"),
}

__all__ = [
    "KEYWORD_PROMPT",
    "MAX_EXPANDED_TOKENS",
    "MAX_TOKENS",
    "MIN_TOKENS",
    "SUMMARY_PROMPT",
    "VIEWS",
    "Chunk",
    "Chunker",
    "Chunking",
    "Context",
    "ExpandedSection",
    "Expansion",
    "HuggingFaceSummarizer",
    "Merge",
    "MergedSection",
    "MultiViewChunker",
    "MultiViewIndex",
    "RetrieverName",
    "SectionChunk",
    "SectionExpander",
    "SizeLimit",
    "Summarizer",
    "View",
    "ViewSettings",
    "ViewText",
    "ViewWriter",
    "check_index_settings",
    "check_summarizer",
    "complete_merge",
    "explain_views",
    "keywords",
    "merge_views",
    "parse_keywords",
    "section_chunks",
    "summaries",
    "summarized",
    "summary",
]

if not TYPE_CHECKING:  # a type checker that saw `__getattr__` would accept any name
    __getattr__ = lazy_names(__name__, {name: module for module, names in _NAMES_BY_MODULE.items() for name in names})
