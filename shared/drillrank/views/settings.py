"""The settings of MC-indexing: how views are made (`MultiViewChunker`), and how they are ranked (`MultiViewIndex`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from drillrank.dialogue import LLMSettings
from drillrank.settings import Settings, check_one_of, declared, setting
from drillrank.text import check_language
from drillrank.tokens import Tokens
from drillrank.views.cutters import Chunking, make_cutter
from drillrank.views.merging import check_weights
from drillrank.views.section_views import VIEWS, Context, View, check_context, check_views
from drillrank.views.summaries import Summarize, Summarizer, check_summarizer

RetrieverName = Literal["bm25", "tfidf"]


@declared
class ViewSettings(LLMSettings):
    """Settings of `MultiViewChunker`.

    Raises:
        InvalidInput: unknown views, `raw` not among them, or settings that do not go together.
    """

    views: Sequence[View] = setting(
        default=VIEWS, kw_only=False, description="Views to make; `raw` is always among them."
    )
    chunking: Chunking = setting(
        default="section",
        description='What is indexed as one thing: `"section"`, `"paragraph"`, `"content_aware_fixed"` (sentences of '
        'one section, up to `max_tokens`), or `"fixed"` (the same across sections).',
    )
    max_tokens: int | None = setting(
        default=None,
        description="Largest size of a chunk; longer sections are cut between paragraphs, then sentences. None for no "
        "limit.",
    )
    min_tokens: int | None = setting(
        default=None, description="Neighbouring sections of fewer tokens are joined under their parent."
    )
    tokens: Tokens = setting(
        default=None,
        description="What counts them: None for drillrank's estimate, which is the same everywhere, "
        '`"tiktoken:<encoding>"`, a function from a text to a number, or a tokenizer: see '
        "`drillrank.tokens.token_counter`.",
    )
    context: Sequence[Context] = setting(
        default=(),
        description='What stands in front of the raw text in the index: `"headings"`, `"keywords"` of the section, or '
        "both. What is returned stays the source.",
    )
    summarizer: Summarizer | Summarize | None = setting(
        default=None,
        description="Makes the summaries, in the LLM's place too: a `drillrank.views.HuggingFaceSummarizer`, for "
        "example, or a function from texts to summaries.",
    )
    language: str = setting(
        default="english",
        description="Whose stemmer finds keywords and summaries: one of `drillrank.text.LANGUAGES`.",
    )

    def check(self) -> None:
        """Refuse what cannot be used."""
        super().check()
        check_language(self.language)
        check_views(self.views)
        check_context(self.context)
        make_cutter(self.chunking, self.max_tokens, self.min_tokens, self.tokens)
        if self.summarizer is not None:
            check_summarizer(self.summarizer)


@declared
class ViewIndexSettings(Settings):
    """Settings of `MultiViewIndex`.

    Raises:
        InvalidInput: the retriever is unknown, or a weight is below 0.
    """

    retriever: RetrieverName = setting(
        default="bm25", kw_only=False, description='`"bm25"` or `"tfidf"`: one index for each view, in memory.'
    )
    weights: Mapping[str, float] | None = setting(
        default=None,
        kw_only=False,
        description="How much each view counts; None takes the best of every view: see `drillrank.views.merge_views`.",
    )
    language: str = setting(
        default="english", description="Whose stemmer words go through: one of `drillrank.text.LANGUAGES`."
    )

    def check(self) -> None:
        """Refuse what cannot be used."""
        super().check()
        check_language(self.language)
        check_one_of(RetrieverName, retriever=self.retriever)
        check_weights(self.weights)
