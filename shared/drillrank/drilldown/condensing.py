"""Summaries of sections and paragraphs for outlines: extractive, by a function, or by the LLM; each made once.

D3 (Nair et al. 2023), section 3.3.1: the condensed representation of a document.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal

from drillrank.drilldown.last_used import LastUsed
from drillrank.drilldown.truncation import LEAST, fitting, shortened
from drillrank.errors import InvalidInput, LLMFailure, OnFailure, check_positive
from drillrank.llm import Ask, Memo, Requests, strip_reasoning
from drillrank.passages import Passage
from drillrank.prompts import filled
from drillrank.text import WORD, TokenCount, count_tokens, word_count
from drillrank.views import SUMMARY_PROMPT, Summarizer, check_summarizer, summaries, summarized, summary

SummarizeBy = Summarizer | Literal["llm"] | None

Summaries = tuple[tuple[str, ...], Sequence[str]]  # and what went wrong

_DOCUMENTS, _ANSWERS = 256, 10_000  # that are remembered


class Summariser:
    """Summarises the texts of one document at a time, and remembers them by their content.

    Args:
        summarizer: None for the sentences nearest to a section's centroid; a function from texts to summaries, such as
            a `HuggingFaceSummarizer`, where a text that comes back as it is keeps its sentences; or `"llm"`, which asks
            the LLM with the prompt of MC-indexing.
        words: Length of a summary of sentences; a text of at most that length is its own summary.
        max_prompt_tokens: Budget of a prompt. A text of more than half as many words is condensed before the LLM sees
            it; what is still too long loses its middle.
        count: Counts the tokens of a text.
        on_failure: Where a call fails or brings no word: `"continue"` with sentences of the text, or `"raise"`.
        above: Words from which on a text goes to the function or the LLM; None for `words`.
        written: Longest summary in words that these write; None for any length.

    Raises:
        InvalidInput: `summarizer` is something else, a length is below 1, or the budget leaves no room for a text.
    """

    def __init__(
        self,
        summarizer: SummarizeBy,
        words: int,
        max_prompt_tokens: int,
        count: TokenCount = count_tokens,
        on_failure: OnFailure = "continue",
        above: int | None = None,
        written: int | None = None,
    ) -> None:
        check_positive(summary_words=words)
        if summarizer is not None and summarizer != "llm":
            check_summarizer(summarizer)
        self._summarizer = summarizer
        self._words = words
        self._max_words_asked = max(max_prompt_tokens // 2, words)
        self._max_prompt_tokens = max_prompt_tokens
        self._count = count
        self._on_failure = on_failure
        self._above, self._longest = above, written
        self._room = max_prompt_tokens - count(filled(SUMMARY_PROMPT, section_name="", section_text=""))
        if summarizer == "llm" and self._room < LEAST:
            raise InvalidInput(
                f"max_prompt_tokens={max_prompt_tokens} leaves {max(self._room, 0)} tokens beside the instruction for "
                f"the text to summarise; it takes {LEAST}."
            )
        self._known: LastUsed[str, Summaries] = LastUsed(_DOCUMENTS)
        self._answers: LastUsed[str, str] = LastUsed(_ANSWERS)

    def condensed(self, passages: Sequence[Passage], language: str = "english") -> Requests[Summaries]:
        """Summaries of passages that belong together, each on one line, and what went wrong.

        The language's stemmer chooses sentences.

        Raises:
            InvalidInput: the given function does not return one string a text.
            LLMFailure: a call failed or brought no word, and `on_failure` is `"raise"`.
        """
        key = f"{language} {_digest(passages)}"
        if self._summarizer != "llm":
            return self._known.make(key, lambda: self._computed(passages, language))
        known: Summaries | None = self._known.get(key)
        if known is None:
            known = yield from self._written(passages, key, language)
            if not known[1]:
                self._known[key] = known
        return known

    def _sentences(self, passages: Sequence[Passage], language: str) -> tuple[list[str], list[int]]:
        """Of each text some sentences, or all of it if it is short; and the places of those to be summarised."""
        texts = [passage.text for passage in passages]
        short = summaries(texts, self._words, self._words, language)
        if self._above is None:
            return short, [position for position, text in enumerate(texts) if short[position] != text]
        return short, [position for position, text in enumerate(texts) if word_count(text) > self._above]

    def _computed(self, passages: Sequence[Passage], language: str) -> Summaries:
        short, long = self._sentences(passages, language)
        if long and self._summarizer is not None and not isinstance(self._summarizer, str):
            given = [passages[position].text for position in long]
            for position, text, summarised in zip(long, given, summarized(self._summarizer, given), strict=True):
                if summarised != text:
                    short[position] = self._bounded(summarised, language)
        return _on_one_line(short), []

    def _written(self, passages: Sequence[Passage], key: str, language: str) -> Requests[Summaries]:
        short, long = self._sentences(passages, language)
        problems: list[str] = []
        if long:
            memos = [Memo(self._answers, f"{key}:{position}", _has_word) for position in long]
            prompts = [self._prompt(passages[position], language) for position in long]
            replies = yield [Ask(prompt, memo=memo) for prompt, memo in zip(prompts, memos, strict=True)]
            for position, reply in zip(long, replies, strict=True):
                if _has_word(reply.text):
                    short[position] = self._bounded(strip_reasoning(reply.text) or "", language)
            silent = [reply.failure for reply in replies if not _has_word(reply.text)]
            if silent:
                reason = next((str(failure) for failure in silent if failure), "the answer had no word in it")
                problem = f"{len(silent)} of {len(long)} summaries failed ({reason})"
                if self._on_failure == "raise":
                    raise next(filter(None, silent), LLMFailure(f"{problem}."))
                problems.append(f"{problem}: sentences of the text stand in")
        return _on_one_line(short), problems

    def _bounded(self, written: str, language: str) -> str:
        """A summary that others wrote, who count in their own way."""
        return written if self._longest is None else summary(written, self._longest, self._longest, language)

    def _prompt(self, passage: Passage, language: str) -> str:
        name = shortened(passage.title, self._room // 4, self._count)
        text = summary(passage.text, self._max_words_asked, self._max_words_asked, language)

        def prompt(shown: str) -> str:
            return filled(SUMMARY_PROMPT, section_name=name, section_text=shown)

        return prompt(fitting(text, self._max_prompt_tokens, prompt, self._count))


def _has_word(answer: str) -> bool:
    return bool(WORD.search(strip_reasoning(answer) or ""))


def _on_one_line(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(" ".join(text.split()) for text in texts)


def _digest(passages: Sequence[Passage]) -> str:
    content = hashlib.blake2b(digest_size=16)
    for passage in passages:
        for text in (passage.title, passage.text):
            data = text.encode("utf-8", "surrogatepass")
            content.update(len(data).to_bytes(8, "big") + data)
    return content.hexdigest()
