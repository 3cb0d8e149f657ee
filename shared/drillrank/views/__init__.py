"""Index every section of a document in several views: raw text, keywords and summary."""

from drillrank.views.chunks import MAX_TOKENS, MIN_TOKENS, Chunk, Chunker, Chunking
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
from drillrank.views.merging import Expansion, Merge, MergedSection, expanded, explain_views, merge_views
from drillrank.views.views import Context, MultiViewChunker, SectionChunk, ViewSettings, section_chunks

__all__ = [
    "KEYWORD_PROMPT",
    "MAX_TOKENS",
    "MIN_TOKENS",
    "SUMMARY_PROMPT",
    "VIEWS",
    "Chunk",
    "Chunker",
    "Chunking",
    "Context",
    "Expansion",
    "HuggingFaceSummarizer",
    "Merge",
    "MergedSection",
    "MultiViewChunker",
    "MultiViewIndex",
    "RetrieverName",
    "SectionChunk",
    "Summarizer",
    "View",
    "ViewSettings",
    "ViewText",
    "ViewWriter",
    "check_index_settings",
    "check_summarizer",
    "expanded",
    "explain_views",
    "keywords",
    "merge_views",
    "parse_keywords",
    "section_chunks",
    "summaries",
    "summarized",
    "summary",
]
