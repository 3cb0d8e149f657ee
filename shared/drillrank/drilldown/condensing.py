"""Summarize sections and paragraphs for outlines: with sentences of the text, a function, or the LLM.

D3 (Nair et al. 2023), section 3.3.1, condensed representation of a document. Each summary is made once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from drillrank.drilldown.last_used import LastUsed
from drillrank.drilldown.problems import Problem, kind_of_failure
from drillrank.drilldown.settings import D3Settings
from drillrank.errors import InvalidInput, raise_or_fall_back
from drillrank.llm import CacheEntry, LLMRequest, Reply, Requests, strip_reasoning, unusable_answer
from drillrank.passages import Passage
from drillrank.prompts import MIN_PROMPT_ROOM, fill_template, truncate_middle, truncate_to_budget
from drillrank.text import WORD, TokenCount, word_count
from drillrank.views import SUMMARY_PROMPT, summaries, summarized, summary

_STEP = "summarize sections (D3)"
_MAX_DOCUMENTS, _MAX_ANSWERS = 256, 10_000  # in the cache


class SectionSummarizer:
    """Summarizes the texts of one document at a time, and caches the summaries by content.

    If a call fails or the answer has no word, sentences of the text replace the summary, or the call raises, depending
    on `settings.on_failure`. A text with more than half as many words as a prompt has tokens is reduced to sentences
    before the LLM sees it. If the prompt is still too long, its middle is dropped.

    Args:
        settings: Settings of `D3`.
        count_tokens: Function that counts the tokens of a text.

    Raises:
        InvalidInput: The budget leaves no room for a text.
    """

    def __init__(self, settings: D3Settings, count_tokens: TokenCount) -> None:
        self._settings, self._count_tokens = settings, count_tokens
        instruction = fill_template(SUMMARY_PROMPT, section_name="", section_text="")
        self._room = settings.max_prompt_tokens - count_tokens(instruction)
        if settings.summarizer == "llm" and self._room < MIN_PROMPT_ROOM:
            raise InvalidInput(
                f"max_prompt_tokens={settings.max_prompt_tokens} leaves {max(self._room, 0)} tokens for the text to "
                f"summarize, which needs {MIN_PROMPT_ROOM}. Raise max_prompt_tokens."
            )
        self._cached_summaries: LastUsed[str, tuple[list[str], list[int]]] = LastUsed(_MAX_DOCUMENTS)
        self._cached_answers: LastUsed[str, str] = LastUsed(_MAX_ANSWERS)

    def summarize(self, passages: Sequence[Passage], language: str) -> Requests[tuple[list[str], list[Problem]]]:
        """Return a summary of each passage, on one line, and messages about what went wrong.

        Args:
            passages: Passages of one document.
            language: Language of the stemmer that chooses sentences.

        Raises:
            InvalidInput: The summarizer does not return one string for each text.
            LLMFailure: A call failed or an answer has no word, and `on_failure` says to raise.
        """
        key = f"{language} {_digest(passages)}"
        cached_texts, long_indices = self._cached_summaries.make(
            key, lambda: self._summarize_without_llm(passages, language)
        )
        texts = list(cached_texts)
        problems: list[Problem] = []
        if self._settings.summarizer == "llm" and long_indices:
            memos = [CacheEntry(self._cached_answers, f"{key}:{index}", _has_word) for index in long_indices]
            prompts = [self._fill_prompt(passages[index], language) for index in long_indices]
            replies = yield [
                LLMRequest(prompt, cache_entry=memo, step=_STEP, on_failure=self._settings.on_failure)
                for prompt, memo in zip(prompts, memos, strict=True)
            ]
            for index, reply in zip(long_indices, replies, strict=True):
                if _has_word(reply.text):
                    texts[index] = self._truncate_summary(strip_reasoning(reply.text) or "", language)
            problems = self._check_replies(replies)
        return [" ".join(text.split()) for text in texts], problems

    def _check_replies(self, replies: Sequence[Reply]) -> list[Problem]:
        """Return a problem if replies lack a summary, or raise if `on_failure` says so."""
        failures = [
            reply.failure or unusable_answer(_STEP, "it has no word") for reply in replies if not _has_word(reply.text)
        ]
        if not failures:
            return []
        for failure in failures:
            raise_or_fall_back(failure, self._settings.on_failure)
        text = (
            f"{len(failures)} of {len(replies)} summaries failed ({failures[0].reason}): sentences of the text replace "
            "them"
        )
        return [Problem(kind_of_failure(failures[0]), text)]

    def _summarize_without_llm(self, passages: Sequence[Passage], language: str) -> tuple[list[str], list[int]]:
        """Return a summary of each text, and the indices of the long texts.

        A short text is its own summary. That of a long one has some of its sentences, or is the summarizer's.
        """
        settings = self._settings
        max_words, min_long_words = settings.summary_words, settings.summarize_above
        texts = [passage.text for passage in passages]
        short_texts = summaries(texts, max_words, max_words, language)
        long_indices = [
            index
            for index, text in enumerate(texts)
            if (short_texts[index] != text if min_long_words is None else word_count(text) > min_long_words)
        ]
        if long_indices and settings.summarizer is not None and settings.summarizer != "llm":
            long_texts = [texts[index] for index in long_indices]
            written_texts = summarized(settings.summarizer, long_texts)
            for index, text, written_text in zip(long_indices, long_texts, written_texts, strict=True):
                if written_text != text:
                    short_texts[index] = self._truncate_summary(written_text, language)
        return short_texts, long_indices

    def _truncate_summary(self, text: str, language: str) -> str:
        """Limit a summary by the LLM or a custom summarizer to `written_words` words."""
        max_words = self._settings.written_words
        return text if max_words is None else summary(text, max_words, max_words, language)

    def _fill_prompt(self, passage: Passage, language: str) -> str:
        name = truncate_middle(passage.title, self._room // 4, self._count_tokens)
        max_words = max(self._settings.max_prompt_tokens // 2, self._settings.summary_words)
        text = summary(passage.text, max_words, max_words, language)

        def fill_text(section_text: str) -> str:
            return fill_template(SUMMARY_PROMPT, section_name=name, section_text=section_text)

        return fill_text(truncate_to_budget(text, self._settings.max_prompt_tokens, fill_text, self._count_tokens))


def _has_word(answer: str) -> bool:
    return bool(WORD.search(strip_reasoning(answer) or ""))


def _digest(passages: Sequence[Passage]) -> str:
    content = hashlib.blake2b(digest_size=16)
    for passage in passages:
        for text in (passage.title, passage.text):
            data = text.encode("utf-8", "surrogatepass")
            content.update(len(data).to_bytes(8, "big") + data)
    return content.hexdigest()
