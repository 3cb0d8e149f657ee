"""Every chunk of a document in up to three views (MC-indexing, sections 3.2, 3.3 and 5.6)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Any, Literal, get_args

from drillrank.errors import InvalidInput, OnFailure, check_positive
from drillrank.llm import LLM, Requests, arun, run
from drillrank.passages import stable_uuid
from drillrank.progress import progress_bar
from drillrank.settings import Settings, as_settings, check_one_of
from drillrank.structure import Document
from drillrank.text import Tokens, check_language
from drillrank.views.chunks import MAX_TOKENS, MIN_TOKENS, Chunk, Chunker, Chunking
from drillrank.views.extractive import (
    VIEWS,
    Summarizer,
    View,
    check_summarizer,
    extractive_texts,
    keywords,
    summarized,
)
from drillrank.views.llm import ViewWriter, chunk_names

Context = Literal["headings", "keywords"]
CONTEXT_KEYWORDS = 10  # of the section


@dataclass(frozen=True, slots=True)
class SectionChunk(Chunk):
    """A chunk in one of its views.

    Attributes:
        text: What the view shows. `raw`: the chunk's text, which is what retrieval returns. `keywords` and `summary`:
            the headings joined by " > ", without a title that heads the whole document, and on the next line the
            keywords separated by commas, or the summary.
        id: UUID made from the document's id, the chunk's place and the view; the same in every run.
        context: What stands in front of the text in the index, and nowhere else; of the raw view only.
        view: Which view this is.
        section_id: Id of the chunk's raw view.
        parent_id: Id of the raw chunk that begins the nearest section above, or None. As in `Document`, text before
            the first heading lies above all other sections.
        pages: Numbers of the first and last page that the chunk is on; None where the document's pages are not known.
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
        """What an index should read: the context, if there is one, and the text."""
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
) -> list[SectionChunk]:
    r"""Every section of a document, or every chunk of another size, in its views.

    Each character of the document that is not white space is in exactly one raw chunk. Units without text below their
    heading, or without keywords, get no keyword chunk; likewise for summaries.

    Args:
        document: A parsed document.
        document_id: What tells this document from others; part of every chunk's id.
        views: The views wanted. The others lead to the raw one; without it, the caller knows what their `section_id`
            stands for.
        chunker: Makes the chunks, by default `Chunker()`.
        context: What the raw view has in front of it in the index: `"headings"`, the path; `"keywords"`, the first 10
            keywords of the whole section. What is returned stays the source.
        texts: Keywords or summaries for each chunk, for example an LLM's; what is not given is computed by `keywords`
            and `summaries`.
        language: Whose stemmer finds keywords and summaries.

    Returns:
        The views chunk by chunk; within a chunk raw, keywords, summary.

    Raises:
        InvalidInput: there are no views, a view or context is unknown, `document_id` is no string, or the given
            texts do not match the chunks.

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
        raise InvalidInput(f"document_id must be a string, not {document_id!r:.200}.")
    chunks = (chunker or Chunker())(document)
    given = {view: of_view for view, of_view in (texts or {}).items() if view in views}
    shown = {**extractive_texts(chunks, set(views) - given.keys(), language), **given}
    for view, of_view in shown.items():
        if len(of_view) != len(chunks):
            raise InvalidInput(f"The {view} view needs one entry for each of {len(chunks)} chunks, not {len(of_view)}.")
    names = chunk_names(chunks)
    in_front = _contexts(document, chunks, names, context, language)
    made = []
    above: list[tuple[int, str]] = []  # depth and id of the chunks from the root to the section, depths rising
    for position, (chunk, name) in enumerate(zip(chunks, names, strict=True)):
        id_ = stable_uuid(document_id, chunk.ordinal, chunk.part, "raw")
        if not chunk.part:
            while above and above[-1][0] >= chunk.depth:
                above.pop()
            above.append((chunk.depth, id_))
        raw = SectionChunk(
            **{field.name: getattr(chunk, field.name) for field in fields(chunk)},
            id=id_,
            context=in_front[position],
            view="raw",
            section_id=id_,
            parent_id=above[-2][1] if len(above) > 1 else None,
            pages=document.page_numbers(chunk.start, chunk.end),
        )
        if "raw" in views:
            made.append(raw)
        for view in VIEWS[1:]:
            if view in shown and shown[view][position].strip():
                text = "\n".join(filter(None, (name, shown[view][position])))
                id_ = stable_uuid(document_id, chunk.ordinal, chunk.part, view)
                made.append(replace(raw, id=id_, text=text, context="", view=view))
    return made


def _contexts(
    document: Document, chunks: Sequence[Chunk], names: Sequence[str], context: Collection[Context], language: str
) -> list[str]:
    """What stands in front of each chunk: its path on one line, the keywords of its section on the next."""
    words: dict[int, str] = {}
    if "keywords" in context:
        sections = Chunker(max_tokens=None, min_tokens=None)(document)
        lists = keywords([section.body for section in sections], CONTEXT_KEYWORDS, language)
        words = {section.ordinal: ", ".join(found) for section, found in zip(sections, lists, strict=True)}
    heads = names if "headings" in context else [""] * len(chunks)
    return [
        "\n".join(filter(None, (head, words.get(chunk.ordinal)))) for head, chunk in zip(heads, chunks, strict=True)
    ]


def check_views(views: Collection[View]) -> None:
    """Reject views that do not exist, and none at all.

    Raises:
        InvalidInput: see above; also for a single string in place of a list.
    """
    if not isinstance(views, Collection) or isinstance(views, str) or not views or not set(views) <= set(VIEWS):
        raise InvalidInput(f"views is a list of names out of {VIEWS}; not {views!r:.200}.")


def check_context(context: Collection[Context]) -> None:
    """Reject context that does not exist.

    Raises:
        InvalidInput: see above; also for a single string in place of a list.
    """
    if isinstance(context, str) or not set(context) <= set(get_args(Context)):
        raise InvalidInput(f"context is a list of names out of {get_args(Context)}, or empty; not {context!r:.200}.")


@dataclass(frozen=True, kw_only=True)
class ViewSettings(Settings):
    """The settings of `MultiViewChunker` that are rarely touched: how tokens are counted and the LLM is asked.

    Attributes:
        tokens: What counts `max_tokens` and `min_tokens`: None for drillrank's estimate, which is the same everywhere,
            `"tiktoken:<encoding>"`, a function from a text to a number, or a tokenizer: see
            `drillrank.text.token_counter`.
        on_failure: Where a call fails, or brings nothing of use: `"continue"` with what there is without it, and a
            `DrillrankWarning`; or `"raise"`.
        workers: Most LLM calls at the same time: of one question, or of one call with documents.
        language: Whose stemmer finds keywords and summaries: one of `drillrank.text.LANGUAGES`.
        exclude: Names of sections that are left out with all below them: see `Chunker`.
        max_calls: Most prompts for the LLM in one call with documents; what is beyond is computed without it, with a
            `DrillrankWarning`.

    Raises:
        InvalidInput: a value is not one of those named, or below 1.
    """

    tokens: Tokens = None
    on_failure: OnFailure = "continue"
    workers: int = 4
    language: str = "english"
    exclude: Sequence[str] = ()
    max_calls: int = 1000

    def __post_init__(self) -> None:
        Chunker(tokens=self.tokens, exclude=self.exclude)
        check_one_of(OnFailure, on_failure=self.on_failure)
        check_positive(workers=self.workers, max_calls=self.max_calls)
        check_language(self.language)
        super().__post_init__()


class MultiViewChunker:
    r"""Makes the chunks of documents, as the frameworks' components are configured.

    Args:
        views: Views to make: `raw`, which the others lead to, `keywords`, `summary`.
        llm: Writes the keywords and summaries; None computes them.
        chunking: What is indexed as one thing: see `Chunker`.
        max_tokens: Largest size of a chunk, by default what most encoders read; longer sections are cut between
            paragraphs, then sentences. None for no limit.
        min_tokens: Neighbouring sections of fewer tokens are joined under their parent; None for none.
        context: What stands in front of the raw text in the index: `"headings"`, `"keywords"` of the section, or both.
            What is returned stays the source.
        summarizer: Makes the summaries, in the LLM's place too: a function from texts to summaries, for example a
            `drillrank.views.HuggingFaceSummarizer`.
        writer: How the LLM is asked, with a failure policy of its own; None asks as `ViewWriter` does by default.
        settings: How tokens are counted and the LLM is asked.

    Raises:
        InvalidInput: unknown views, none, or settings that do not go together.

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
        max_tokens: int | None = MAX_TOKENS,
        min_tokens: int | None = MIN_TOKENS,
        context: Sequence[Context] = (),
        summarizer: Summarizer | None = None,
        writer: ViewWriter | None = None,
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
        self.settings = as_settings(ViewSettings, settings)
        self.chunker = Chunker(chunking, max_tokens, min_tokens, self.settings.tokens, self.settings.exclude)
        self._writer = writer or ViewWriter(on_failure=self.settings.on_failure, max_calls=self.settings.max_calls)

    def chunks(
        self, documents: Sequence[tuple[str, Document]], show_progress: bool = False
    ) -> list[list[SectionChunk]]:
        """The chunks of each document, given with its id.

        Args:
            documents: Ids and parsed documents.
            show_progress: Whether a bar on standard error counts the LLM calls.
        """
        with progress_bar(show_progress, "Writing views") as (expect, advance):
            requests = self._made(documents, expect)
            return run(requests, self.llm, workers=self.settings.workers, on_reply=lambda _: advance(1))

    async def achunks(
        self, documents: Sequence[tuple[str, Document]], show_progress: bool = False
    ) -> list[list[SectionChunk]]:
        """As `chunks`; computes on a worker thread and awaits the LLM."""
        with progress_bar(show_progress, "Writing views") as (expect, advance):
            requests = self._made(documents, expect)
            return await arun(requests, self.llm, workers=self.settings.workers, on_reply=lambda _: advance(1))

    def _made(
        self, documents: Sequence[tuple[str, Document]], expect: Callable[[int], object]
    ) -> Requests[list[list[SectionChunk]]]:
        cut = [self.chunker(document) for _, document in documents]
        views: set[View] = {
            view for view in self.views if view != "raw" and not (view == "summary" and self.summarizer)
        }
        texts: Sequence[Mapping[View, Sequence[str]]] = [{} for _ in cut]
        if self.llm is not None and views:
            texts = yield from self._writer.write(cut, views, self.settings.language, expect)
        made = []
        for (id_, document), chunks, written in zip(documents, cut, texts, strict=True):
            if self.summarizer and "summary" in self.views:
                written = {**written, "summary": summarized(self.summarizer, [chunk.body for chunk in chunks])}
            made.append(
                section_chunks(
                    document,
                    id_,
                    self.views,
                    chunker=lambda _, chunks=chunks: chunks,  # type: ignore[misc]  # as cut above
                    context=self.context,
                    texts=written,
                    language=self.settings.language,
                )
            )
        return made
