"""From parsed documents to the chunks of all their views: cutting, an LLM or a summariser if given, and context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from drillrank.calling import to_thread
from drillrank.dialogue import LLM, Dialogue, limited
from drillrank.settings import method
from drillrank.structure import Document
from drillrank.views.cutters import Cutter, make_cutter
from drillrank.views.llm_views import ViewTexts, ViewWriter, together
from drillrank.views.progress import aask, ask
from drillrank.views.section_views import SectionChunk, section_chunks
from drillrank.views.settings import ViewSettings
from drillrank.views.summaries import summarized


@method
class MultiViewChunker(ViewSettings):
    r"""Makes the chunks of documents, as the frameworks' components are configured.

    Args:
        llm: Writes the keywords and summaries; None computes them.
        writer: How it does so, with a failure policy of its own; None asks as `ViewWriter` does by default.

    The other arguments are the fields of `ViewSettings`.

    Raises:
        InvalidInput: a setting is unknown or goes with no other.

    >>> from drillrank.structure import parse_document
    >>> chunker = MultiViewChunker(["raw"], chunking="paragraph", context=["headings"])
    >>> [[chunk, _]] = chunker.chunks([("doc", parse_document("# Oak\n\nTall.\n\nOld.\n"))])
    >>> chunk.text, chunk.context
    ('# Oak\n\nTall.\n\n', 'Oak')
    """

    llm: LLM | None = field(default=None, kw_only=True)
    writer: ViewWriter | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._workers = limited(self.workers)
        self._writer = self.writer or ViewWriter(on_failure=self.on_failure)
        self._written = {view for view in self.views if view != "raw" and not (view == "summary" and self.summarizer)}

    def chunks(
        self, documents: Sequence[tuple[str, Document]], show_progress: bool = False
    ) -> list[list[SectionChunk]]:
        """The chunks of each document, given with its id.

        Args:
            documents: Ids and parsed documents.
            show_progress: Whether a bar on standard error counts the LLM calls.
        """
        if self.llm is None or not self._written:
            return self._made(documents, [ViewTexts(None, None) for _ in documents])
        written = ask(self._dialogue(documents), self.llm, workers=self._workers, show_progress=show_progress)
        return self._made(documents, written)

    async def achunks(
        self, documents: Sequence[tuple[str, Document]], show_progress: bool = False
    ) -> list[list[SectionChunk]]:
        """As `chunks`; computes on a worker thread and awaits the LLM."""
        if self.llm is None or not self._written:
            return await to_thread(self.chunks, documents)
        dialogue = self._dialogue(documents)
        written = await aask(dialogue, self.llm, workers=self._workers, show_progress=show_progress)
        return await to_thread(self._made, documents, written)

    @property
    def _cutter(self) -> Cutter:
        return make_cutter(
            self.chunking, self.max_tokens, self.min_tokens, self.tokens
        )  # a cutter itself cannot be pickled

    def _dialogue(self, documents: Sequence[tuple[str, Document]]) -> Dialogue[list[ViewTexts]]:
        return together(
            [self._writer.write(document, self._cutter, self._written, self.language) for _, document in documents]
        )

    def _made(
        self, documents: Sequence[tuple[str, Document]], written: Sequence[ViewTexts]
    ) -> list[list[SectionChunk]]:
        made = []
        for (id_, document), texts in zip(documents, written, strict=True):
            summary_texts = texts.summary_texts
            if self.summarizer and "summary" in self.views:
                summary_texts = summarized(self.summarizer, [chunk.body for chunk in self._cutter(document)])
            made.append(
                section_chunks(
                    document,
                    id_,
                    self.views,
                    cutter=self._cutter,
                    context=self.context,
                    keyword_lists=texts.keyword_lists,
                    summary_texts=summary_texts,
                    language=self.language,
                )
            )
        return made
