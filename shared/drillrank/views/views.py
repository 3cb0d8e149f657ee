"""Show every chunk of a document in up to three views (MC-indexing, sections 3.2, 3.3 and 5.6)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Any, Literal, get_args

from drillrank.errors import InvalidInput, OnFailure, check_on_failure, check_positive
from drillrank.llm import LLM, Requests, arun, run
from drillrank.passages import stable_uuid
from drillrank.progress import progress_bar
from drillrank.settings import Preset, Settings, as_settings, check_preset, with_preset
from drillrank.structure import Document
from drillrank.text import Tokens, check_language
from drillrank.views.chunks import MAX_TOKENS, MIN_TOKENS, Chunk, Chunker, Chunking, SizeLimit
from drillrank.views.extractive import VIEWS, Summarizer, View, check_summarizer, extractive_texts, keywords, summarized
from drillrank.views.llm import ViewWriter, chunk_names

Context = Literal["headings", "keywords"]
CONTEXT_KEYWORDS = 10  # of the section


@dataclass(frozen=True, slots=True)
class SectionChunk(Chunk):
    """A chunk in one of its views.

    Attributes:
        text: Text of the view. `raw`: the chunk's text, which retrieval returns. `keywords` and `summary`: the headings
            joined by " > ", without a title of the whole document, unless they are left out, and on the next line the
            keywords separated by commas, or the summary.
        id: UUID made from the document's id, the chunk's ordinal and part, and the view; the same in every run.
        context: Text that the index puts in front of the raw view. Empty for the other views.
        view: Name of the view.
        section_id: Id of the chunk's raw view.
        parent_id: Id of the raw chunk that begins the nearest section above, or None. As in `Document`, text before
            the first heading is above all other sections.
        pages: Numbers of the chunk's first and last page; None if the document's pages are not known.
    """

    _: KW_ONLY
    id: str
    context: str
    view: View
    section_id: str
    parent_id: str | None
    pages: tuple[int, int] | None = None

    @property
    def indexed_text(self) -> str:
        """The context, if there is one, and the text."""
        return f"{self.context}\n\n{self.text}" if self.context else self.text


def section_chunks(
    document: Document,
    document_id: str,
    views: Collection[View] = VIEWS,
    *,
    chunker: Callable[[Document], Sequence[Chunk]] | None = None,
    context: Collection[Context] = (),
    texts: Mapping[View, Sequence[str]] | None = None,
    language: str = "english",
    headings: bool = True,
    tokens: Tokens = None,
) -> list[SectionChunk]:
    r"""Cut a document into chunks and return each chunk in its views.

    Each character of the document that is not white space is in exactly one raw chunk. A chunk without text below its
    heading, or without keywords, has no keyword view. The same applies to summaries.

    Args:
        document: A parsed document.
        document_id: Identifier of the document; part of every chunk's id.
        views: Names of the views to return. The keyword and summary views refer to the raw view by `section_id`.
        chunker: Function from a document to its chunks, by default `Chunker()`.
        context: Text that the index puts in front of the raw view: `"headings"`, the path; `"keywords"`, the first 10
            keywords of the whole section. The returned text stays the source.
        texts: Keywords or summaries for each chunk, for example an LLM's. `keywords` and `summaries` compute missing
            views.
        language: Language of the stemmer for keywords and summaries.
        headings: True to begin keyword and summary views with the headings of the section.
        tokens: Counter of the 200 tokens up to which a chunk is its own summary: see `drillrank.text.token_counter`.

    Returns:
        The views chunk by chunk; within a chunk raw, keywords, summary.

    Raises:
        InvalidInput: there are no views, a view or context is unknown, `document_id` is not a string, or the texts do
            not match the chunks.

    >>> from drillrank.structure import parse_document
    >>> document = parse_document("# Foxes\n\nFoxes hunt mice.\n\n## Red foxes\n\nThey are orange.\n")
    >>> for chunk in section_chunks(document, "doc-1", ("raw", "keywords"), chunker=Chunker(min_tokens=None)):
    ...     print(repr(chunk.text))
    '# Foxes\n\nFoxes hunt mice.\n\n'
    'Foxes\nFoxes, hunt, mice'
    '## Red foxes\n\nThey are orange.\n'
    'Red foxes\norange'
    """
    check_views(views)
    check_context(context)
    if not isinstance(document_id, str):
        raise InvalidInput(f"document_id must be a string, got {document_id!r:.200}.")
    chunks = (chunker or Chunker())(document)
    texts_by_view = _texts_by_view(chunks, views, texts or {}, language, tokens)
    names = chunk_names(chunks)
    contexts = _build_contexts(document, chunks, names, context, language)
    result: list[SectionChunk] = []
    raw_chunks = _build_raw_chunks(document, document_id, chunks, contexts)
    for index, (raw, name) in enumerate(zip(raw_chunks, names, strict=True)):
        if "raw" in views:
            result.append(raw)
        for view in VIEWS[1:]:
            if view in texts_by_view and texts_by_view[view][index].strip():
                text = "\n".join(filter(None, (name if headings else "", texts_by_view[view][index])))
                view_id = stable_uuid(document_id, raw.ordinal, raw.part, view)
                result.append(replace(raw, id=view_id, text=text, context="", view=view))
    return result


def _texts_by_view(
    chunks: Sequence[Chunk], views: Collection[View], texts: Mapping[View, Sequence[str]], language: str, tokens: Tokens
) -> dict[View, Sequence[str]]:
    """Return the keywords and summaries of all chunks. Compute those that the caller does not pass."""
    passed_texts = {view: view_texts for view, view_texts in texts.items() if view in views}
    texts_by_view: dict[View, Sequence[str]] = {
        **extractive_texts(chunks, set(views) - passed_texts.keys(), language, tokens),
        **passed_texts,
    }
    for view, view_texts in texts_by_view.items():
        if len(view_texts) != len(chunks):
            raise InvalidInput(
                f"The {view} view needs one entry for each of {len(chunks)} chunks, not {len(view_texts)}."
            )
    return texts_by_view


def _build_raw_chunks(
    document: Document, document_id: str, chunks: Sequence[Chunk], contexts: Sequence[str]
) -> list[SectionChunk]:
    """Build the raw view of each chunk, with the id of its parent."""
    raw_chunks: list[SectionChunk] = []
    branch: list[SectionChunk] = []  # chunks from the root to the section, depths rising
    for chunk, context in zip(chunks, contexts, strict=True):
        id_ = stable_uuid(document_id, chunk.ordinal, chunk.part, "raw")
        raw = SectionChunk(
            **{field.name: getattr(chunk, field.name) for field in fields(chunk)},
            id=id_,
            context=context,
            view="raw",
            section_id=id_,
            parent_id=None,
            pages=document.page_numbers(chunk.start, chunk.end),
        )
        if not chunk.part:
            while branch and branch[-1].depth >= chunk.depth:
                branch.pop()
            branch.append(raw)
        if len(branch) > 1:
            raw = replace(raw, parent_id=branch[-2].id)
        raw_chunks.append(raw)
    return raw_chunks


def _build_contexts(
    document: Document, chunks: Sequence[Chunk], names: Sequence[str], context: Collection[Context], language: str
) -> list[str]:
    """Return the context of each chunk: its path on one line, the keywords of its section on the next."""
    keywords_by_ordinal: dict[int, str] = {}
    if "keywords" in context:
        sections = Chunker(max_tokens=None, min_tokens=None)(document)
        keyword_lists = keywords([section.body for section in sections], CONTEXT_KEYWORDS, language)
        keywords_by_ordinal = {
            section.ordinal: ", ".join(words) for section, words in zip(sections, keyword_lists, strict=True)
        }
    headings = names if "headings" in context else [""] * len(chunks)
    return [
        "\n".join(filter(None, (heading, keywords_by_ordinal.get(chunk.ordinal))))
        for heading, chunk in zip(headings, chunks, strict=True)
    ]


def check_views(views: Collection[View]) -> None:
    """Check that there are views and that each one exists.

    Raises:
        InvalidInput: a name is unknown, or the value is a single string instead of a list.
    """
    if not isinstance(views, Collection) or isinstance(views, str) or not views or not set(views) <= set(VIEWS):
        raise InvalidInput(f"views must be a list of names out of {VIEWS}, got {views!r:.200}.")


def check_context(context: Collection[Context]) -> None:
    """Check that each kind of context exists.

    Raises:
        InvalidInput: a name is unknown, or the value is a single string instead of a list.
    """
    if isinstance(context, str) or not set(context) <= set(get_args(Context)):
        raise InvalidInput(
            f"context must be a list of names out of {get_args(Context)}, or empty, got {context!r:.200}."
        )


@dataclass(frozen=True, kw_only=True)
class ViewSettings(Settings):
    """Settings of `MultiViewChunker` that rarely change: how it counts tokens and asks the LLM.

    Attributes:
        tokens: Counter of `max_tokens`, `min_tokens` and the 200 tokens up to which a section is its own summary: None
            for drillrank's estimate, which is the same everywhere, `"tiktoken:<encoding>"`, a function from a text to a
            number, or a tokenizer: see `drillrank.text.token_counter`.
        headings: True to begin keyword and summary views with the headings of the section. None is True, or False with
            the preset.
        preset: `"paper"` sets what the paper fixes and the caller leaves open: sections are neither cut nor joined, and
            keyword and summary views have no headings.
        on_failure: `"raise"` raises an error if a call fails or an answer is not useful, and `"fallback"` computes the
            view without the LLM, with a `DrillrankWarning`. None raises for calls and falls back for answers.
        workers: Largest number of LLM calls at the same time.
        language: Language of the stemmer for keywords and summaries: one of `drillrank.text.LANGUAGES`.
        exclude: Names of sections to leave out with all sections below them: see `Chunker`.
        max_calls: Largest number of prompts in one call with documents. Further views are computed without the LLM,
            with a `DrillrankWarning`.

    Raises:
        InvalidInput: a value is unknown or below 1.
    """

    tokens: Tokens = None
    on_failure: OnFailure | None = None
    workers: int = 4
    language: str = "english"
    exclude: Sequence[str] = ()
    max_calls: int = 1000
    headings: bool | None = None
    preset: Preset | None = None

    def __post_init__(self) -> None:
        check_preset(self.preset)
        if not isinstance(self.headings, bool | None):
            raise InvalidInput(f"headings must be True, False or None, got {self.headings!r:.200}.")
        Chunker(tokens=self.tokens, exclude=self.exclude)
        check_on_failure(self.on_failure)
        check_positive(workers=self.workers, max_calls=self.max_calls)
        check_language(self.language)
        super().__post_init__()

    @property
    def has_headings(self) -> bool:
        """The value of `headings`, or its default."""
        return self.preset != "paper" if self.headings is None else self.headings

    def chunk_sizes(self, max_tokens: SizeLimit, min_tokens: SizeLimit) -> tuple[int | None, int | None]:
        """Return the sizes for `Chunker`: "default" becomes the default, or None with the preset.

        >>> ViewSettings(preset="paper").chunk_sizes("default", 64)
        (None, 64)
        """
        largest, smallest = (None, None) if self.preset == "paper" else (MAX_TOKENS, MIN_TOKENS)
        return largest if max_tokens == "default" else max_tokens, smallest if min_tokens == "default" else min_tokens


class MultiViewChunker:
    r"""Makes the chunks of documents in their views, with the same settings as the frameworks' components.

    Args:
        views: Views to make: `raw`, which the others refer to, `keywords`, `summary`.
        llm: Writes the keywords and summaries; None computes them.
        chunking: Unit of the index, such as `"section"` or `"passage"`: see `Chunker`.
        max_tokens: Largest size of a chunk. Longer sections are cut between paragraphs, then sentences. None sets no
            limit. `"default"` is 512, what most encoders read, or no limit with the preset.
        min_tokens: Size below which neighboring sections are joined under their parent; None joins none. `"default"` is
            64, or None with the preset.
        context: Text that the index puts in front of the raw view: `"headings"`, `"keywords"` of the section, or both.
            The returned text stays the source.
        summarizer: Function from texts to summaries, for example a `drillrank.views.HuggingFaceSummarizer`. It replaces
            the LLM for summaries.
        preset: `"paper"` sets what the paper fixes and other arguments leave open: whole sections, and keywords and
            summaries without headings. `MultiViewIndex` has the rest of it. The paper's LLM writes the views. None
            keeps `settings.preset`.
        settings: How to count tokens and ask the LLM.

    Raises:
        InvalidInput: there are no views, a view is unknown, or settings exclude each other.

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
        max_tokens: SizeLimit = "default",
        min_tokens: SizeLimit = "default",
        context: Sequence[Context] = (),
        summarizer: Summarizer | None = None,
        preset: Preset | None = None,
        settings: ViewSettings | Mapping[str, Any] = ViewSettings(),
    ) -> None:
        check_views(views)
        check_context(context)
        if summarizer is not None:
            check_summarizer(summarizer)
        self.views = tuple(views)
        self.llm = llm
        self.context = tuple(context)
        self.summarizer = summarizer
        self.settings = with_preset(as_settings(ViewSettings, settings), preset)
        sizes = self.settings.chunk_sizes(max_tokens, min_tokens)
        self.chunker = Chunker(chunking, *sizes, self.settings.tokens, self.settings.exclude)
        self._writer = ViewWriter(on_failure=self.settings.on_failure, max_calls=self.settings.max_calls)

    def with_writer(self, writer: ViewWriter) -> MultiViewChunker:
        """Return a copy whose LLM is asked by another writer, with its own cache and reaction to failures."""
        chunker = copy(self)
        chunker._writer = writer
        return chunker

    def chunks(
        self, documents: Sequence[tuple[str, Document]], show_progress: bool = False
    ) -> list[list[SectionChunk]]:
        """Return the chunks of each document.

        Args:
            documents: Ids and parsed documents.
            show_progress: True shows a bar on standard error that counts the LLM calls.
        """
        with progress_bar(show_progress, "Writing views") as (expect, advance):
            requests = self._write_views(documents, expect)
            return run(requests, self.llm, workers=self.settings.workers, on_reply=lambda _: advance(1))

    async def achunks(
        self, documents: Sequence[tuple[str, Document]], show_progress: bool = False
    ) -> list[list[SectionChunk]]:
        """Do the same as `chunks`, on a worker thread, and await the LLM."""
        with progress_bar(show_progress, "Writing views") as (expect, advance):
            requests = self._write_views(documents, expect)
            return await arun(requests, self.llm, workers=self.settings.workers, on_reply=lambda _: advance(1))

    def _write_views(
        self, documents: Sequence[tuple[str, Document]], expect: Callable[[int], object]
    ) -> Requests[list[list[SectionChunk]]]:
        # 1. Cut every document into chunks.
        chunk_lists = [self.chunker(document) for _, document in documents]
        # 2. Have the LLM write keywords and summaries.
        text_lists: Sequence[Mapping[View, Sequence[str]]] = [{} for _ in chunk_lists]
        if self.llm is not None and (written_views := self._views_of_llm()):
            text_lists = yield from self._writer.write(
                chunk_lists, written_views, self.settings.language, expect, self.settings.tokens
            )
        # 3. Build the views of every chunk.
        result = []
        for (id_, document), chunks, texts in zip(documents, chunk_lists, text_lists, strict=True):
            if self.summarizer and "summary" in self.views:
                texts = {**texts, "summary": summarized(self.summarizer, [chunk.body for chunk in chunks])}
            result.append(
                section_chunks(
                    document,
                    id_,
                    self.views,
                    chunker=lambda _, chunks=chunks: chunks,  # type: ignore[misc]  # as cut above
                    context=self.context,
                    texts=texts,
                    language=self.settings.language,
                    headings=self.settings.has_headings,
                    tokens=self.settings.tokens,
                )
            )
        return result

    def _views_of_llm(self) -> set[View]:
        """Return the views that the LLM writes."""
        return {view for view in self.views if view != "raw" and not (view == "summary" and self.summarizer)}
