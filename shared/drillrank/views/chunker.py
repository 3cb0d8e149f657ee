"""From parsed documents to the chunks of all their views: cutting, an LLM or a summariser if given, and context."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Protocol

from drillrank.dialogue import LLM, Dialogue
from drillrank.structure import Document
from drillrank.tokens import Tokens
from drillrank.views.asking import aask, ask
from drillrank.views.chunks import VIEWS, Context, SectionChunk, View, check_context, check_views, section_chunks
from drillrank.views.units import Chunking, Cutter, make_cutter
from drillrank.views.written import ViewTexts, ViewWriter, together


class Summarizer(Protocol):
    """Summarises sections, for example a `HuggingFaceSummarizer`."""

    def summaries(self, texts: Sequence[str], /) -> list[str]:
        """One summary per text."""
        ...


class MultiViewChunker:
    r"""Makes the chunks of documents, as the frameworks' components are configured.

    Args:
        views: See `section_chunks`.
        chunking: What is indexed as one thing: `"section"`, `"paragraph"`, `"content_aware_fixed"` or `"fixed"`.
        max_tokens: Largest size of a unit.
        min_tokens: Smaller sections are joined, see `whole_sections`.
        tokens: What counts the tokens of a text: see `drillrank.tokens.token_counter`.
        context: See `section_chunks`.
        llm: Writes the keywords and summaries; None computes them.
        writer: How it does so.
        summarizer: Makes the summaries, in the LLM's place too.
        workers: LLM calls at the same time.

    Raises:
        InvalidInput: a setting is unknown or goes with no other.

    >>> from drillrank.structure import parse_document
    >>> chunker = MultiViewChunker(["raw"], chunking="paragraph", context=["headings"])
    >>> [[chunk, _]] = chunker.chunks([("doc", parse_document("# Oak\n\nTall.\n\nOld.\n"))])
    >>> chunk.text, chunk.context
    ('# Oak\n\nTall.\n\n', 'Oak')
    """

    def __init__(
        self,
        views: Collection[View] = VIEWS,
        *,
        chunking: Chunking = "section",
        max_tokens: int | None = None,
        min_tokens: int | None = None,
        tokens: Tokens = None,
        context: Collection[Context] = (),
        llm: LLM | None = None,
        writer: ViewWriter | None = None,
        summarizer: Summarizer | None = None,
        workers: int = 4,
    ) -> None:
        check_views(views)
        check_context(context)
        self._views = tuple(views)
        self._sizes = (chunking, max_tokens, min_tokens, tokens)
        make_cutter(*self._sizes)  # refuses sizes that do not go together
        self._context = tuple(context)
        self._llm = llm
        self._summarizer = summarizer
        self._writer = writer or ViewWriter()
        self._written = {view for view in views if view != "raw" and not (view == "summary" and summarizer)}
        self._workers = workers

    def chunks(
        self, documents: Sequence[tuple[str, Document]], show_progress: bool = False
    ) -> list[list[SectionChunk]]:
        """The chunks of each document, given with its id.

        Args:
            documents: Ids and parsed documents.
            show_progress: Whether a bar on standard error counts the LLM calls.
        """
        if self._llm is None or not self._written:
            return self._made(documents, [ViewTexts(None, None) for _ in documents])
        written = ask(self._dialogue(documents), self._llm, workers=self._workers, show_progress=show_progress)
        return self._made(documents, written)

    async def achunks(
        self, documents: Sequence[tuple[str, Document]], show_progress: bool = False
    ) -> list[list[SectionChunk]]:
        """As `chunks`; computes on a worker thread and awaits the LLM."""
        if self._llm is None or not self._written:
            return await asyncio.to_thread(self.chunks, documents)
        dialogue = self._dialogue(documents)
        written = await aask(dialogue, self._llm, workers=self._workers, show_progress=show_progress)
        return await asyncio.to_thread(self._made, documents, written)

    @property
    def _cutter(self) -> Cutter:
        return make_cutter(*self._sizes)  # a cutter itself cannot be pickled

    def _dialogue(self, documents: Sequence[tuple[str, Document]]) -> Dialogue[list[ViewTexts]]:
        return together([self._writer.write(document, self._cutter, self._written) for _, document in documents])

    def _made(
        self, documents: Sequence[tuple[str, Document]], written: Sequence[ViewTexts]
    ) -> list[list[SectionChunk]]:
        made = []
        for (id_, document), texts in zip(documents, written, strict=True):
            summary_texts = texts.summary_texts
            if self._summarizer and "summary" in self._views:
                summary_texts = self._summarizer.summaries([unit.body for unit in self._cutter(document)])
            made.append(
                section_chunks(
                    document,
                    id_,
                    self._views,
                    cutter=self._cutter,
                    context=self._context,
                    keyword_lists=texts.keyword_lists,
                    summary_texts=summary_texts,
                )
            )
        return made
