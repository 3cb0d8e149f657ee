"""Summaries of sections and paragraphs for outlines: extractive, by a function, or by the LLM; each made once.

D3 (Nair et al. 2023), section 3.3.1: the condensed representation of a document.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from drillrank.drilldown.last_used import LastUsed
from drillrank.drilldown.settings import D3Settings
from drillrank.errors import InvalidInput, LLMFailure
from drillrank.llm import CacheEntry, LLMRequest, Requests, strip_reasoning
from drillrank.passages import Passage
from drillrank.prompts import MIN_PROMPT_ROOM, fill_template, truncate_middle, truncate_to_budget
from drillrank.text import WORD, TokenCount, word_count
from drillrank.views import SUMMARY_PROMPT, summaries, summarized, summary

_DOCUMENTS, _ANSWERS = 256, 10_000  # that are remembered


class Summariser:
    """Summarises the texts of one document at a time, and remembers them by their content.

    Args:
        settings: Of `D3`. Where a call fails or brings no word, sentences of the text stand in, or it is raised. A text
            of more than half as many words as a prompt has tokens is condensed before the LLM sees it; what is still
            too long loses its middle.
        count: Counts the tokens of a text.

    Raises:
        InvalidInput: the budget leaves no room for a text.
    """

    def __init__(self, settings: D3Settings, count: TokenCount) -> None:
        self._settings, self._count = settings, count
        self._room = settings.max_prompt_tokens - count(fill_template(SUMMARY_PROMPT, section_name="", section_text=""))
        if settings.summarizer == "llm" and self._room < MIN_PROMPT_ROOM:
            raise InvalidInput(
                f"max_prompt_tokens={settings.max_prompt_tokens} leaves {max(self._room, 0)} tokens beside the "
                f"instruction for the text to summarise; it takes {MIN_PROMPT_ROOM}."
            )
        self._known: LastUsed[str, tuple[list[str], list[int]]] = LastUsed(_DOCUMENTS)
        self._answers: LastUsed[str, str] = LastUsed(_ANSWERS)

    def condensed(self, passages: Sequence[Passage], language: str) -> Requests[tuple[list[str], list[str]]]:
        """Summaries of passages that belong together, each on one line, and what went wrong.

        The language's stemmer chooses sentences.

        Raises:
            InvalidInput: the given function does not return one string a text.
            LLMFailure: a call failed or brought no word, and `on_failure` is `"raise"`.
        """
        key = f"{language} {_digest(passages)}"
        known, long = self._known.make(key, lambda: self._computed(passages, language))
        short, problems = list(known), list[str]()
        if self._settings.summarizer == "llm" and long:
            memos = [CacheEntry(self._answers, f"{key}:{position}", _has_word) for position in long]
            prompts = [self._prompt(passages[position], language) for position in long]
            replies = yield [LLMRequest(prompt, cache_entry=memo) for prompt, memo in zip(prompts, memos, strict=True)]
            for position, reply in zip(long, replies, strict=True):
                if _has_word(reply.text):
                    short[position] = self._bounded(strip_reasoning(reply.text) or "", language)
            silent = [reply.failure for reply in replies if not _has_word(reply.text)]
            if silent:
                reason = next((str(failure) for failure in silent if failure), "the answer had no word in it")
                problem = f"{len(silent)} of {len(long)} summaries failed ({reason})"
                if self._settings.on_failure == "raise":
                    raise next(filter(None, silent), LLMFailure(f"{problem}."))
                problems.append(f"{problem}: sentences of the text stand in")
        return [" ".join(text.split()) for text in short], problems

    def _computed(self, passages: Sequence[Passage], language: str) -> tuple[list[str], list[int]]:
        """Of each text some sentences, all of it if it is short, or what a function makes of it.

        And the places of those that are long.
        """
        words, above, summarizer = (
            self._settings.summary_words,
            self._settings.summarize_above,
            self._settings.summarizer,
        )
        texts = [passage.text for passage in passages]
        short = summaries(texts, words, words, language)
        long = [
            at for at, text in enumerate(texts) if (short[at] != text if above is None else word_count(text) > above)
        ]
        if long and summarizer is not None and summarizer != "llm":
            given = [texts[at] for at in long]
            for at, text, summarised in zip(long, given, summarized(summarizer, given), strict=True):
                if summarised != text:
                    short[at] = self._bounded(summarised, language)
        return short, long

    def _bounded(self, written: str, language: str) -> str:
        """A summary that others wrote, who count in their own way."""
        longest = self._settings.written_words
        return written if longest is None else summary(written, longest, longest, language)

    def _prompt(self, passage: Passage, language: str) -> str:
        name = truncate_middle(passage.title, self._room // 4, self._count)
        most = max(self._settings.max_prompt_tokens // 2, self._settings.summary_words)
        text = summary(passage.text, most, most, language)

        def prompt(shown: str) -> str:
            return fill_template(SUMMARY_PROMPT, section_name=name, section_text=shown)

        return prompt(truncate_to_budget(text, self._settings.max_prompt_tokens, prompt, self._count))


def _has_word(answer: str) -> bool:
    return bool(WORD.search(strip_reasoning(answer) or ""))


def _digest(passages: Sequence[Passage]) -> str:
    content = hashlib.blake2b(digest_size=16)
    for passage in passages:
        for text in (passage.title, passage.text):
            data = text.encode("utf-8", "surrogatepass")
            content.update(len(data).to_bytes(8, "big") + data)
    return content.hexdigest()
