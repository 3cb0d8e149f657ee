"""Index every section of a document in several views: raw text, keywords and summary."""

from drillrank.views.chunks import VIEWS, SectionChunk, View, check_views, section_bodies, section_chunks
from drillrank.views.index import MultiViewIndex, RetrieverName, ViewText
from drillrank.views.keywords import keywords
from drillrank.views.merging import MergedSection, merge_views
from drillrank.views.summaries import summaries, summary

__all__ = [
    "VIEWS",
    "MergedSection",
    "MultiViewIndex",
    "RetrieverName",
    "SectionChunk",
    "View",
    "ViewText",
    "check_views",
    "keywords",
    "merge_views",
    "section_bodies",
    "section_chunks",
    "summaries",
    "summary",
]
