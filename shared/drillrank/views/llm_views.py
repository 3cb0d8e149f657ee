"""Keyword and summary views written by an LLM (MC-indexing, section 3.3, Figures 8 and 9)."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from drillrank.errors import DrillrankWarning, InvalidInput, LLMFailure, OnFailure, check_on_failure
from drillrank.llm import Ask, Memo, Requests, strip_reasoning
from drillrank.passages import stable_uuid
from drillrank.prompts import Template, check_places, filled
from drillrank.structure import Document
from drillrank.text import WORD
from drillrank.views.cutters import Cutter, whole_sections
from drillrank.views.keywords import keywords
from drillrank.views.section_views import VIEWS, View, chunk_names
from drillrank.views.summaries import is_short, summaries

# MC-indexing, Figure 8 (summary view) and Figure 9 (keyword view).
SUMMARY_PROMPT = (
    "You are a helpful summarization assistant. Please help me summarize the following section into no more than "
    "10 sentences or 200 words.\n\nSection Name: {section_name}\n\nSection Text: {section_text}"
)
KEYWORD_PROMPT = (
    "You are a helpful keyword extractor. You need to extract keywords from the following section. The keywords "
    "should consist of concepts, entities, or important descriptions that are related to the section text, which "
    "could be used to answer any questions from users.\n\nSection Name: {section_name}\n\n"
    "Section Text:\n**Beginning of text**\n{section_text}\n**End of text**\n\n"
    "Please output format in list format: [...]. Do not output anything else aside from this list."
)

MAX_KEYWORD_WORDS = 10  # what is longer is a sentence
_LONGEST = 200  # characters of a keyword

# Between quotation marks that end at a separator, or without them up to the next separator.
_ITEM = re.compile(r"""\s*["']([^"\n]{0,200}?)["'](?=\s*(?:[,;\n]|$))|([^,;\n]+)""")
_LABEL = re.compile(r"^(?:\d{1,3}[.)]\s|key ?words?:)", re.IGNORECASE)
_BEFORE, _BEHIND = " \"'`*•+-[", " \"'`*].,;:"

Result = TypeVar("Result")


class ViewTexts(NamedTuple):
    """Keywords and summary of every chunk of a document; None for a view that was not asked for."""

    keyword_lists: list[list[str]] | None
    summary_texts: list[str] | None


@dataclass(frozen=True)
class ViewWriter:
    """How an LLM writes the views of documents.

    Attributes:
        model: Name of the LLM, part of what an answer is remembered by.
        cache: Answers by prompt and model; any mutable mapping of strings, for example a `diskcache.Cache`. By
            default a dictionary of this object's own. Writers that share it at the same time ask once.
        retries: How often a call that failed, or whose answer is of no use, is repeated.
        keyword_prompt: Template with `{section_name}` and `{section_text}`, or a function of these.
        summary_prompt: Likewise.
        on_failure: Where the LLM brings nothing of use: `"continue"` with what is computed without it, or `"raise"`.

    Raises:
        InvalidInput: a template lacks a place, `retries` is below 0, or `on_failure` is something else.
    """

    model: str = ""
    cache: MutableMapping[str, str] = field(default_factory=dict)
    retries: int = 1
    keyword_prompt: Template = KEYWORD_PROMPT
    summary_prompt: Template = SUMMARY_PROMPT
    on_failure: OnFailure = "continue"

    def __post_init__(self) -> None:
        for template in (self.keyword_prompt, self.summary_prompt):
            check_places(template, "section_name", "section_text")
        check_on_failure(self.on_failure)
        if not isinstance(self.retries, int) or self.retries < 0:
            raise InvalidInput(f"retries must be a whole number, at least 0; not {self.retries!r}.")

    def write(
        self,
        document: Document,
        cutter: Cutter | None = None,
        views: Collection[View] = VIEWS,
        language: str = "english",
    ) -> Requests[ViewTexts]:
        r"""Ask for the views of every chunk at once, once more where that brought nothing.

        A section of up to 200 tokens is its own summary, and no one is asked for it. What the LLM cannot bring is
        computed without one (`keywords`, `summaries`), and a `DrillrankWarning` says how often: no chunk goes without.

        Args:
            document: A parsed document.
            cutter: Makes the chunks, by default whole sections.
            views: The views to write; the raw one needs no writing.
            language: Whose stemmer finds keywords and summaries where the LLM brings none.

        Returns:
            A generator for `drillrank.llm.run` or `arun`; its result goes into `section_chunks` with the same
            cutter.

        Raises:
            LLMFailure: the LLM brought nothing of use, and `on_failure` is `"raise"`.

        >>> from drillrank.llm import run
        >>> from drillrank.structure import parse_document
        >>> document = parse_document("# Foxes\n\nFoxes hunt mice.\n\n# Owls\n\nThey hoot.\n")
        >>> run(ViewWriter().write(document, views=["keywords"]), lambda prompt: '["hunting", "night"]')
        ViewTexts(keyword_lists=[['hunting', 'night'], ['hunting', 'night']], summary_texts=None)
        """
        chunks = (cutter or whole_sections())(document)
        names = chunk_names(chunks)
        bodies = [chunk.body for chunk in chunks]
        prompts: dict[tuple[View, int], str] = {}
        for position, (name, body) in enumerate(zip(names, bodies, strict=True)):
            if "keywords" in views and WORD.search(body):
                prompts["keywords", position] = filled(self.keyword_prompt, section_name=name, section_text=body)
            if "summary" in views and not is_short(body):
                prompts["summary", position] = filled(self.summary_prompt, section_name=name, section_text=body)
        answers = yield from self._ask(prompts)
        unwritten = {view for view, position in prompts if (view, position) not in answers}
        keyword_lists = summary_texts = None
        if "keywords" in views:
            keyword_lists = keywords(bodies, language=language) if "keywords" in unwritten else [[] for _ in bodies]
        if "summary" in views:
            summary_texts = summaries(bodies, language=language) if "summary" in unwritten else bodies
        for (view, position), answer in answers.items():
            if view == "keywords" and keyword_lists is not None:
                keyword_lists[position] = parse_keywords(answer)
            elif summary_texts is not None:
                summary_texts[position] = (strip_reasoning(answer) or "").strip()
        return ViewTexts(keyword_lists, summary_texts)

    def _ask(self, prompts: Mapping[tuple[View, int], str]) -> Requests[dict[tuple[View, int], str]]:
        """The answers of use, from the cache or the LLM; each different prompt is asked once."""
        memos = {
            prompt: Memo(self.cache, stable_uuid(self.model, prompt), partial(_is_useful, view))
            for (view, _), prompt in prompts.items()
        }
        found: dict[str, str] = {}
        failure: LLMFailure | None = None
        for _ in range(1 + self.retries):
            pending = [prompt for prompt in memos if prompt not in found]
            if not pending:
                break
            replies = yield [Ask(prompt, memo=memos[prompt]) for prompt in pending]
            for prompt, reply in zip(pending, replies, strict=True):
                if memos[prompt].useful(reply.text):
                    found[prompt] = reply.text
                else:
                    failure = reply.failure or failure
        missing = sum(prompt not in found for prompt in prompts.values())
        if missing:
            reason = failure or "the last answers had nothing to use in them"
            problem = f"The LLM did not write {missing} of {len(prompts)} keyword lists and summaries ({reason})"
            if self.on_failure == "raise":
                raise failure or LLMFailure(f"{problem}.")
            warnings.warn(
                f"{problem}: these are computed without it.",
                DrillrankWarning,
                stacklevel=2,
            )
        return {place: found[prompt] for place, prompt in prompts.items() if prompt in found}


def parse_keywords(answer: str) -> list[str]:
    """The keywords in an LLM's answer, whatever it looks like.

    JSON and Python lists, lists without quotation marks, bulleted or numbered lines, and words between commas are
    read; nothing is evaluated.

    Returns:
        Different keywords in order, on one line each; without those of more than 10 words, which are sentences.
        Empty if there are none.

    >>> parse_keywords("Sure! Here they are: ['red fox', 'hunter's moon', mice]")
    ['red fox', "hunter's moon", 'mice']
    >>> parse_keywords("1. red fox, 2. **mice**, - red fox")
    ['red fox', 'mice']
    """
    answer = "\n".join(filter(None, map(str.strip, (strip_reasoning(answer) or "").splitlines())))
    start, end = answer.find("["), answer.rfind("]")
    found: dict[str, str] = {}
    for item in _items(answer[start + 1 : end] if 0 <= start < end else answer):
        keyword = _LABEL.sub("", " ".join(item.split()).lstrip(_BEFORE), count=1).lstrip(_BEFORE).rstrip(_BEHIND)
        if WORD.search(keyword) and len(keyword.split(" ")) <= MAX_KEYWORD_WORDS and len(keyword) <= _LONGEST:
            found.setdefault(keyword.casefold(), keyword)
    return list(found.values())


def _items(inside: str) -> list[str]:
    try:
        listed = [item for item in json.loads(f"[{inside}]") if isinstance(item, str)]
    except (ValueError, RecursionError):
        listed = []
    return listed or [quoted or bare for quoted, bare in _ITEM.findall(inside)]


def together(several: Sequence[Requests[Result]]) -> Requests[list[Result]]:
    """Several generators of requests as one, so that all of their requests can be answered at the same time.

    >>> from drillrank.llm import run
    >>> def shout(word):
    ...     (reply,) = yield [Ask(word)]
    ...     return reply.text
    >>> run(together([shout("a"), shout("b")]), str.upper)
    ['A', 'B']
    """
    results: dict[int, Result] = {}
    answers: dict[int, Sequence[Any] | None] = dict.fromkeys(range(len(several)))
    while len(results) < len(several):
        asking: dict[int, Sequence[Any]] = {}
        for number, own in answers.items():
            try:
                asking[number] = several[number].send(own)  # type: ignore[arg-type]  # None begins
            except StopIteration as stop:  # noqa: PERF203  # how a generator ends
                results[number] = stop.value
        if asking:
            answered = iter((yield [request for requests in asking.values() for request in requests]))
        answers = {number: list(islice(answered, len(requests))) for number, requests in asking.items()}
    return [results[number] for number in range(len(several))]


def _is_useful(view: View, answer: str) -> bool:
    return bool(parse_keywords(answer) if view == "keywords" else WORD.search(strip_reasoning(answer) or ""))
