"""Index every section of a document in several views: raw text, keywords and summary."""

from drillrank.views.chunker import MultiViewChunker
from drillrank.views.cutters import (
    Chunk,
    Chunking,
    Cutter,
    content_aware_fixed,
    fixed,
    make_cutter,
    paragraphs,
    whole_sections,
)
from drillrank.views.expansion import Expansion, check_expansion, expanded
from drillrank.views.index import MultiViewIndex, RetrieverName, ViewText
from drillrank.views.keywords import keywords
from drillrank.views.llm_views import ViewTexts, ViewWriter, parse_keywords, together
from drillrank.views.merging import MergedSection, check_weights, merge_views
from drillrank.views.section_views import VIEWS, Context, SectionChunk, View, check_context, check_views, section_chunks
from drillrank.views.settings import ViewSettings
from drillrank.views.summaries import Summarizer, summaries, summary
from drillrank.views.summarizer import HuggingFaceSummarizer

__all__ = [
    "VIEWS",
    "Chunk",
    "Chunking",
    "Context",
    "Cutter",
    "Expansion",
    "HuggingFaceSummarizer",
    "MergedSection",
    "MultiViewChunker",
    "MultiViewIndex",
    "RetrieverName",
    "SectionChunk",
    "Summarizer",
    "View",
    "ViewSettings",
    "ViewText",
    "ViewTexts",
    "ViewWriter",
    "check_context",
    "check_expansion",
    "check_views",
    "check_weights",
    "content_aware_fixed",
    "expanded",
    "fixed",
    "keywords",
    "make_cutter",
    "merge_views",
    "paragraphs",
    "parse_keywords",
    "section_chunks",
    "summaries",
    "summary",
    "together",
    "whole_sections",
]
