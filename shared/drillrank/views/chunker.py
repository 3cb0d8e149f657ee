"""From parsed documents to the chunks of all their views: cutting, an LLM or a summariser if given, and context."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from drillrank.llm import LLM, Reply, Requests, arun, run
from drillrank.settings import as_settings
from drillrank.structure import Document
from drillrank.views.cutters import Chunking, Cutter, make_cutter
from drillrank.views.llm_views import ViewTexts, ViewWriter, together
from drillrank.views.section_views import VIEWS, Context, SectionChunk, View, check_context, check_views, section_chunks
from drillrank.views.settings import ViewSettings
from drillrank.views.summaries import Summarize, Summarizer, check_summarizer, summarized


class MultiViewChunker:
    r"""Makes the chunks of documents, as the frameworks' components are configured.

    Args:
        views: Views to make; `raw` is always among them.
        llm: Writes the keywords and summaries; None computes them.
        chunking: What is indexed as one thing: `"section"`, `"paragraph"`, `"content_aware_fixed"` (sentences of one
            section, up to `max_tokens`), or `"fixed"` (the same across sections).
        max_tokens: Largest size of a chunk; longer sections are cut between paragraphs, then sentences. None for no
            limit.
        min_tokens: Neighbouring sections of fewer tokens are joined under their parent.
        context: What stands in front of the raw text in the index: `"headings"`, `"keywords"` of the section, or both.
            What is returned stays the source.
        summarizer: Makes the summaries, in the LLM's place too: a `drillrank.views.HuggingFaceSummarizer`, for example,
            or a function from texts to summaries.
        writer: How the LLM is asked, with a failure policy of its own; None asks as `ViewWriter` does by default.
        settings: How tokens are counted and the LLM is asked.

    Raises:
        InvalidInput: unknown views, `raw` not among them, or settings that do not go together.

    >>> from drillrank.structure import parse_document
    >>> chunker = MultiViewChunker(["raw"], chunking="paragraph", context=["headings"])
    >>> [[chunk, _]] = chunker.chunks([("doc", parse_document("# Oak\n\nTall.\n\nOld.\n"))])
    >>> chunk.text, chunk.context
    ('# Oak\n\nTall.\n\n', 'Oak')
    """

    def __init__(
        self,
        views: Sequence[View] = VIEWS,
        *,
        llm: LLM | None = None,
        chunking: Chunking = "section",
        max_tokens: int | None = None,
        min_tokens: int | None = None,
        context: Sequence[Context] = (),
        summarizer: Summarizer | Summarize | None = None,
        writer: ViewWriter | None = None,
        settings: ViewSettings | Mapping[str, Any] = ViewSettings(),
    ) -> None:
        check_views(views)
        check_context(context)
        if summarizer is not None:
            check_summarizer(summarizer)
        self.views = tuple(views)
        self.llm = llm
        self.chunking = chunking
        self.max_tokens = max_tokens
        self.min_tokens = min_tokens
        self.context = tuple(context)
        self.summarizer = summarizer
        self.settings = as_settings(ViewSettings, settings)
        self._cutter  # noqa: B018  # what does not go together is refused now
        self._writer = writer or ViewWriter(on_failure=self.settings.on_failure)
        self._written = {view for view in views if view != "raw" and not (view == "summary" and summarizer)}

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
        with _progress_bar(show_progress) as (counted, on_reply):
            requests = counted(self._requests(documents))
            written = run(requests, self.llm, workers=self.settings.workers, on_reply=on_reply)
        return self._made(documents, written)

    async def achunks(
        self, documents: Sequence[tuple[str, Document]], show_progress: bool = False
    ) -> list[list[SectionChunk]]:
        """As `chunks`; computes on a worker thread and awaits the LLM."""
        if self.llm is None or not self._written:
            return await asyncio.to_thread(self.chunks, documents)
        with _progress_bar(show_progress) as (counted, on_reply):
            requests = counted(self._requests(documents))
            written = await arun(requests, self.llm, workers=self.settings.workers, on_reply=on_reply)
        return await asyncio.to_thread(self._made, documents, written)

    @property
    def _cutter(self) -> Cutter:
        # a cutter itself cannot be pickled
        return make_cutter(self.chunking, self.max_tokens, self.min_tokens, self.settings.tokens)

    def _requests(self, documents: Sequence[tuple[str, Document]]) -> Requests[list[ViewTexts]]:
        language = self.settings.language
        return together(
            [self._writer.write(document, self._cutter, self._written, language) for _, document in documents]
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
                    language=self.settings.language,
                )
            )
        return made


@contextmanager
def _progress_bar(
    show: bool,
) -> Iterator[tuple[Callable[[Requests[Any]], Requests[Any]], Callable[[Reply], object] | None]]:
    """A bar on standard error: what counts the requests of a generator, and what counts their replies."""
    if not show:
        yield (lambda requests: requests), None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("Writing views", total=0)

        def counted(requests: Requests[Any]) -> Requests[Any]:
            answers: Any = None
            total = 0
            while True:
                try:
                    step = requests.send(answers)
                except StopIteration as stop:
                    return stop.value
                total += len(step)
                progress.update(task, total=total)
                answers = yield step

        yield counted, lambda _: progress.advance(task)
