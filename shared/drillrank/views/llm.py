"""Have a model write keywords and summaries: an LLM (MC-indexing, figures 8 and 9), or a summarizer such as BART."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial
from typing import Any

from drillrank.errors import (
    LLMFailure,
    OnFailure,
    UnusableAnswer,
    check_on_failure,
    check_positive,
    invalid_input,
    raise_or_fall_back,
    require,
    warn,
)
from drillrank.likelihood.process import require_torch, settle_threads
from drillrank.llm import CacheEntry, LLMRequest, Requests, strip_reasoning, unusable_answer
from drillrank.passages import stable_uuid
from drillrank.prompts import fill_template
from drillrank.structure import breadcrumb, parse_document
from drillrank.text import WORD, Tokens, count_tokens
from drillrank.views.chunks import Chunk, Chunker
from drillrank.views.extractive import SHORT_SECTION, VIEWS, View, extractive_texts, is_short

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
MAX_KEYWORD_WORDS = 10  # what is longer is a sentence, unless it is an item of a list
_LONGEST = 200  # characters of a keyword

# Between quotation marks that end at a separator, or without them up to the next separator.
_ITEM = re.compile(r"""\s{0,20}["']([^"\n]{0,200}?)["'](?=\s*(?:[,;\n]|$))|([^,;\n]+)""")
_LISTED = re.compile(r"\s*(?:[-*•+]|\d{1,3}[.)])\s")
_LABEL = re.compile(r"^(?:\d{1,3}[.)]\s|key ?words?:)", re.IGNORECASE)
_BEFORE, _BEHIND = " \"'`*•+-[", " \"'`*].,;:"

_STEP = "write keywords and summaries"
_BATCH = 8  # texts that a summariser reads at once
_lock = threading.Lock()  # a summariser's tokenizer and model serve one thread at a time


@dataclass(frozen=True)
class ViewWriter:
    """Writer of views: asks an LLM for the keywords and summaries of chunks.

    Attributes:
        model: Name of the LLM; part of the cache key.
        cache: Answers by prompt and model; any mutable mapping of strings, for example a `diskcache.Cache`. By
            default a dictionary of this object's own. Writers that share it at the same time ask once.
        on_failure: `"raise"` raises an error if a call fails or an answer is not useful, and `"fallback"` computes the
            view without the LLM. None raises for calls and falls back for answers. The cache keeps all other answers.
        max_calls: Largest number of prompts in one call with documents, without repeated ones and those that the cache
            answers. Further views are computed without the LLM.

    Raises:
        InvalidInput: `max_calls` is below 1, or `on_failure` is unknown.
    """

    model: str = ""
    cache: MutableMapping[str, str] = field(default_factory=dict)
    on_failure: OnFailure | None = None
    max_calls: int = 1000

    def __post_init__(self) -> None:
        check_on_failure(self.on_failure)
        check_positive(max_calls=self.max_calls)

    def write(
        self,
        documents: Sequence[Sequence[Chunk]],
        views: Collection[View] = VIEWS,
        language: str = "english",
        on_start: Callable[[int], object] | None = None,
        tokens: Tokens = None,
    ) -> Requests[list[dict[View, list[str]]]]:
        r"""Ask for the views of every chunk at once, and again if the answer is not useful.

        A section of up to 200 tokens is its own summary and needs no prompt. Views that the LLM does not write are
        computed (`keywords`, `summaries`), and a `DrillrankWarning` says how many: every chunk has its views.

        Args:
            documents: The chunks of each.
            views: The views to write, without the raw one.
            language: Language of the stemmer for views that are computed.
            on_start: Callback, called with the number of prompts before they are asked.
            tokens: Counter of the 200 tokens: see `drillrank.text.token_counter`.

        Returns:
            A generator for `drillrank.llm.run` or `arun`. Its result is the argument `texts` of `section_chunks` for
            each document.

        Raises:
            LLMFailure: A call failed, or an answer is not useful, and `on_failure` says to raise.

        >>> from drillrank.llm import run
        >>> from drillrank.structure import parse_document
        >>> from drillrank.views import Chunker
        >>> chunks = Chunker(min_tokens=None)(parse_document("# Foxes\n\nFoxes hunt mice.\n\n# Owls\n\nThey hoot.\n"))
        >>> run(ViewWriter().write([chunks], ["keywords"]), lambda prompt: '["hunting", "night"]')
        [{'keywords': ['hunting, night', 'hunting, night']}]
        """
        prompts: dict[tuple[int, View, int], str] = {}
        for number, chunks in enumerate(documents):
            for position, (name, chunk) in enumerate(zip(chunk_names(chunks), chunks, strict=True)):
                template_values = {"section_name": name, "section_text": chunk.body}
                if "keywords" in views and WORD.search(chunk.body) and chunk.body not in chunk.path[-1:]:
                    prompts[number, "keywords", position] = fill_template(KEYWORD_PROMPT, **template_values)
                if "summary" in views and not is_short(chunk.body, tokens):
                    prompts[number, "summary", position] = fill_template(SUMMARY_PROMPT, **template_values)
        answers = yield from self._ask(prompts, on_start)
        texts = [extractive_texts(chunks, views, language, tokens) for chunks in documents]
        for (number, view, position), answer in answers.items():
            written = (strip_reasoning(answer) or "").strip()
            texts[number][view][position] = ", ".join(parse_keywords(answer)) if view == "keywords" else written
        return texts

    def _ask(
        self, prompts: Mapping[tuple[int, View, int], str], on_start: Callable[[int], object] | None
    ) -> Requests[dict[tuple[int, View, int], str]]:
        """Return the useful answers, from the cache or the LLM. Ask each different prompt once."""
        entries = self._limit_calls(
            {
                prompt: CacheEntry(self.cache, stable_uuid(self.model, prompt), partial(_is_useful, view))
                for (_, view, _), prompt in prompts.items()
            }
        )
        if on_start:
            on_start(len(entries))
        answers, failure = yield from self._ask_twice(entries)
        if len(answers) < len(entries):
            failure = raise_or_fall_back(
                failure or unusable_answer(_STEP, "it has no keyword or no word"), self.on_failure
            )
            if isinstance(failure, UnusableAnswer):
                problem, advice = (
                    "Some answers of the LLM have no keyword or no word",
                    "Try an LLM that follows the prompt",
                )
            else:
                problem, advice = f"Some calls of the LLM failed ({failure.kind})", "Check that the LLM can be reached"
            warn(
                f"{problem}. The keyword lists and summaries that are missing were computed without the LLM. {advice}, "
                "and index the documents again: only missing texts are asked for."
            )
        return {key: answers[prompt] for key, prompt in prompts.items() if prompt in answers}

    def _limit_calls(self, entries: Mapping[str, CacheEntry]) -> dict[str, CacheEntry]:
        """Leave out the prompts beyond `max_calls` that the cache does not answer, with a warning."""
        uncached = [
            prompt for prompt, entry in entries.items() if not entry.is_useful(entry.answers.get(entry.key) or "")
        ]
        excess = set(uncached[self.max_calls :])
        if excess:
            warn(
                "Some keyword lists and summaries are computed without the LLM: it writes at most "
                f"{self.max_calls} (max_calls)."
            )
        return {prompt: entry for prompt, entry in entries.items() if prompt not in excess}

    def _ask_twice(self, entries: Mapping[str, CacheEntry]) -> Requests[tuple[dict[str, str], LLMFailure | None]]:
        """Return the useful answers by prompt, and the last failure. Prompts without such an answer are asked again."""
        answers: dict[str, str] = {}
        failure: LLMFailure | None = None
        for _ in range(2):
            pending = [prompt for prompt in entries if prompt not in answers]
            if not pending:
                break
            replies = yield [
                LLMRequest(prompt, cache_entry=entries[prompt], step=_STEP, on_failure=self.on_failure)
                for prompt in pending
            ]
            for prompt, reply in zip(pending, replies, strict=True):
                if entries[prompt].is_useful(reply.text):
                    answers[prompt] = reply.text
                else:
                    failure = reply.failure or failure
        return answers, failure


def chunk_names(chunks: Sequence[Chunk]) -> list[str]:
    """Return the path of every chunk on one line, without a title of the whole document."""
    roots = {chunk.path[:1] for chunk in chunks if chunk.path}
    below_title = 1 if len(roots) == 1 else 0
    return [breadcrumb(chunk.path[below_title:] or chunk.path) for chunk in chunks]


def parse_keywords(answer: str) -> list[str]:
    """Return the keywords in an LLM's answer.

    The answer may be a JSON or Python list, a list without quotation marks, bulleted or numbered lines, or words
    between commas. Nothing is evaluated.

    Returns:
        Different keywords in order, on one line each. A keyword of more than 10 words is kept as an item of a list and
        left out as a sentence elsewhere. Empty if there are none.

    >>> parse_keywords("Sure! Here they are: ['red fox', 'hunter's moon', mice]")
    ['red fox', "hunter's moon", 'mice']
    >>> parse_keywords("1. red fox, 2. **mice**, - red fox")
    ['red fox', 'mice']
    """
    answer = "\n".join(filter(None, map(str.strip, (strip_reasoning(answer) or "").splitlines())))
    start, end = answer.find("["), answer.rfind("]")
    bracketed = 0 <= start < end
    inside = answer[start + 1 : end] if bracketed else answer
    try:
        items = [item for item in json.loads(f"[{inside}]") if isinstance(item, str)]
    except (ValueError, RecursionError):
        items = []
    keyword_by_key: dict[str, str] = {}
    for item in items or [quoted or bare for quoted, bare in _ITEM.findall(inside)]:
        keyword = _LABEL.sub("", " ".join(item.split()).lstrip(_BEFORE), count=1).lstrip(_BEFORE).rstrip(_BEHIND)
        short = bracketed or _LISTED.match(item) or len(keyword.split(" ")) <= MAX_KEYWORD_WORDS
        if WORD.search(keyword) and short and len(keyword) <= _LONGEST:
            keyword_by_key.setdefault(keyword.casefold(), keyword)
    return list(keyword_by_key.values())


def _token_count(tokenizer: Any, text: str) -> int:
    return len(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])  # no line about long texts


def _is_useful(view: View, answer: str) -> bool:
    return bool(parse_keywords(answer) if view == "keywords" else WORD.search(strip_reasoning(answer) or ""))


@dataclass(frozen=True, eq=False)
class HuggingFaceSummarizer:
    """Summarizes texts with an encoder-decoder model such as bart-large-cnn, which is loaded at the first use.

    A text of up to `min_tokens` is its own summary. A text that the model cannot read at once is cut between sentences,
    and the summaries of its parts are joined by spaces.

    Args:
        name: Model id or directory; its weights must be safetensors.
        device: `"cuda"`, `"mps"`, `"cpu"` ...; None takes the first available one.
        dtype: Type of the weights, such as `"float32"`; `"auto"` is bfloat16 if the device computes in it fast.
        min_tokens: Largest number of tokens of a text that is its own summary: 200 in MC-indexing (Appendix G), 0 in
            D3.

    Raises:
        MissingExtra: torch or transformers is not installed.
        InvalidInput: at the first use, the model cannot be loaded.

    Results are the same in every run: nothing is sampled.

        chunker = MultiViewChunker(summarizer=HuggingFaceSummarizer("facebook/bart-large-cnn"))
    """

    name: str = "facebook/bart-large-cnn"
    _: KW_ONLY
    device: str | None = field(default=None, repr=False)  # caches know a summariser by what its summaries depend on
    dtype: str = "auto"
    min_tokens: int = SHORT_SECTION

    def __post_init__(self) -> None:
        require_torch("hf")
        require("transformers", "hf")

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """Return one summary per text.

        Raises:
            InvalidInput: the model cannot be loaded.
        """
        long = {index: [text] for index, text in enumerate(texts) if count_tokens(text) > self.min_tokens}
        written: dict[str, str] = {}  # by the part of a text that the model read at once
        if long:
            with _lock:
                tokenizer, _, limit = self._loaded
                if limit is not None:
                    count = partial(_token_count, tokenizer)
                    chunker = Chunker("fixed", limit - tokenizer.num_special_tokens_to_add(), tokens=count)
                    for index, [text] in long.items():
                        long[index] = [part.text.strip() for part in chunker(parse_document(text, "text"))]
                written = self._generated({part for parts in long.values() for part in parts})
        summaries = {index: " ".join(filter(None, map(written.__getitem__, parts))) for index, parts in long.items()}
        return [summaries.get(index, text) for index, text in enumerate(texts)]

    @cached_property
    def _loaded(self) -> tuple[Any, Any, int | None]:
        """Tokenizer, model, and the largest number of tokens that it reads."""
        # Loaded here, because D3 without such a summarizer needs nothing of it.
        from drillrank.likelihood.huggingface import best_device, best_dtype, longest_input, pretrained

        settle_threads()
        import torch
        import transformers

        device = torch.device(self.device or best_device())
        with invalid_input(f"{self.name!r:.200} cannot be loaded as a sequence-to-sequence model"):
            tokenizer = transformers.AutoTokenizer.from_pretrained(self.name)
        dtype = best_dtype(device) if self.dtype == "auto" else self.dtype
        kind = transformers.AutoModelForSeq2SeqLM
        model = pretrained(kind, self.name, dtype=dtype, use_safetensors=True).to(device)
        return tokenizer, model, longest_input(model.config, tokenizer)

    def _generated(self, parts: Collection[str]) -> dict[str, str]:
        import torch

        tokenizer, model, _ = self._loaded
        order = sorted(parts, key=lambda part: (len(part), part))
        written: dict[str, str] = {}
        for first in range(0, len(order), _BATCH):
            batch = order[first : first + _BATCH]
            padded = tokenizer(batch, padding=True, return_tensors="pt", verbose=False)
            inputs = {name: padded[name].to(model.device) for name in ("input_ids", "attention_mask")}
            with torch.inference_mode():
                answers = model.generate(**inputs, do_sample=False)
            texts = tokenizer.batch_decode(answers, skip_special_tokens=True)
            written |= zip(batch, map(str.strip, texts), strict=True)
        return written
