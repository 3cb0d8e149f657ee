"""Checks of a retriever of any framework over a store: leaks, truth, mutation, async, threads and events."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import pytest

from drillrank.testing.event_loop import Heartbeat
from drillrank.testing.events import Event, check_events
from drillrank.testing.listening import Heard, listening
from drillrank.testing.results import (
    N_THREADS,
    Result,
    call_hook,
    change_metadata,
    expect,
    on_threads,
    same_results,
    snapshot,
)
from drillrank.testing.samples import (
    QUESTION,
    WORDS,
    SampleChunk,
    cut_document,
    marks_in,
    sample_chunk,
    sample_chunks,
    sample_embed,
    sample_id,
    sample_metadata,
    sample_sections,
    sample_text,
)
from drillrank.testing.store_hooks import FilledStore

_QUESTIONS = tuple(f"When does the {word} open, and what is said of the harbour?" for word in WORDS)
_BEFORE, _AFTER = 1, 2  # versions of a text


class RetrieverTests(FilledStore):
    """Checks of one retriever over a store. Subclass it, define the four methods without a default, and run pytest.

    Without `add` or `delete`, the checks of updates and deletions are skipped.

    Attributes:
        stores_sections: True to fill the store with sections of documents in views, False with whole documents.
        refuses_blank_questions: True if a question without text is an error.
        tolerance: Largest difference between two scores that count as equal.
        ignored_loggers: Prefixes of loggers whose records are the framework's own and may contain texts.
    """

    stores_sections = False
    refuses_blank_questions = True
    tolerance = 1e-5
    ignored_loggers: Sequence[str] = ()

    def make_retriever(self, store: Any, tenant: str | None, top_n: int | None) -> Any:
        """Return a retriever over a store.

        Args:
            store: Return value of `make_store`.
            tenant: Caller, who sees only records with this value under `tenant` in the metadata. None sees all records.
            top_n: Maximum number of results. None leaves it to the retriever.
        """
        raise NotImplementedError("Define make_retriever.")

    def retrieve(self, retriever: Any, question: str) -> Sequence[Result]:
        """Return the results, best first, without passages that an LLM wrote."""
        raise NotImplementedError("Define retrieve.")

    async def aretrieve(self, retriever: Any, question: str) -> Sequence[Result]:
        """Return the results of the asynchronous method."""
        raise NotImplementedError("Define aretrieve.")

    def listen(self) -> AbstractContextManager[list[Event]]:
        """Return a context manager that collects the framework's events, spans and prompts.

        Without it, only results, logs, warnings and errors are checked for leaks, and the check of events is skipped.
        """
        raise NotImplementedError

    # Leaks and truth

    @pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
    def test_nothing_of_another_tenant_leaves_the_component(self, is_async: bool) -> None:
        """Results, events, logs, warnings and errors contain no text of another tenant."""
        chunks = self._samples()
        self._expect_true(self._hear(self._make(chunks), "a", is_async), chunks, "a")

    @pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
    def test_an_update_is_seen_at_once(self, is_async: bool) -> None:
        """After an update, the new text is returned, and no event or log contains the old one."""
        store = self._make(self._samples())
        self._hear(store, "a", is_async)
        old, new = self._document(_BEFORE), self._document(_AFTER)
        call_hook(self.delete, store, old)
        call_hook(self.add, store, new)
        chunks = [chunk for chunk in self._samples() if chunk.id not in {one.id for one in old}] + new
        heard = self._hear(store, "a", is_async)
        self._expect_true(heard, chunks, "a")
        expect(
            marks_in("\n".join(heard.results)) & marks_in("\n".join(chunk.text for chunk in new)),
            "A document was updated, and none of its new text was returned. Read texts from the store each time.",
        )

    @pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
    def test_a_deleted_document_is_gone(self, is_async: bool) -> None:
        """After a deletion, nothing of the document is in results, events, logs and warnings."""
        store, victims = self._make(self._samples()), self._document(_BEFORE)
        self._hear(store, "a", is_async)
        call_hook(self.delete, store, victims)
        chunks = [chunk for chunk in self._samples() if chunk.id not in {one.id for one in victims}]
        self._expect_true(self._hear(store, "a", is_async), chunks, "a")

    def test_warnings_and_logs_contain_no_texts(self) -> None:
        """Warnings and logs above the debug level contain neither the question nor a text of the store."""
        with self._collecting() as heard:
            for tenant in ("a", "nobody"):
                self._retrieve(self._make(self._samples()), tenant)
        texts = "\n".join(heard.on_channels("log", "warning"))
        expect(
            not marks_in(texts) and QUESTION not in texts,
            f"A warning or log contains a question or a text: {texts!r:.300}. Texts are personal data: write a "
            "constant message, and log details at the debug level.",
        )

    # Results

    @pytest.mark.parametrize("top_n", [1, 2])
    def test_at_most_top_n_results_come_back(self, top_n: int) -> None:
        """`top_n` limits the results, and no result comes back twice."""
        results = self._retrieve(self._make(self._samples()), None, top_n)
        keys = [(result.id, result.text) for result in results]
        expect(1 <= len(keys) <= top_n, f"top_n={top_n} returned {len(keys)} results. Return the best {top_n}.")
        expect(len(keys) == len(set(keys)), "A result came back twice. Return each record once.")

    def test_a_blank_question_is_refused(self) -> None:
        """A question without text raises an error."""
        if not self.refuses_blank_questions:
            pytest.skip("refuses_blank_questions is False.")
        retriever = self._retriever(self._make(self._samples()))
        try:
            self.retrieve(retriever, "  ")
        except Exception:
            return
        expect(False, "A blank question was searched. Raise an error that names the argument.")

    def test_half_a_surrogate_pair_in_a_question_is_answered_or_refused(self) -> None:
        """A question with half a surrogate pair, which UTF-8 cannot encode, does not end in a `UnicodeError`."""
        retriever = self._retriever(self._make(self._samples()))
        try:
            results = self.retrieve(retriever, QUESTION.replace("open", "\ud800"))
        except UnicodeError as error:
            message = f"Half a surrogate pair raised {type(error).__name__}. Replace it before the question is used."
            raise AssertionError(message) from error
        except Exception:
            return
        expect(len(results) >= 1, "A question with half a surrogate pair found nothing. Replace it by a space.")

    # Mutation

    def test_retrieval_changes_nothing_and_can_be_repeated(self) -> None:
        """The records given are the same afterwards, and a second retrieval returns the same."""
        chunks = self._samples()
        before = snapshot(chunks)
        store = self._make(chunks)
        retriever = self._retriever(store)
        results, again = self.retrieve(retriever, QUESTION), self.retrieve(retriever, QUESTION)
        expect(chunks == before, "The retriever or the store changed a record that it was given. Return copies.")
        expect(self._same(results, again), "A second retrieval differs from the first. Keep no state of a question.")

    def test_changed_results_do_not_change_the_store(self) -> None:
        """A caller who writes into the metadata of a result does not change later results."""
        retriever = self._retriever(self._make(self._samples()))
        before = snapshot(self.retrieve(retriever, QUESTION))
        for result in self.retrieve(retriever, QUESTION):
            change_metadata(result.metadata)
        expect(
            self._same(before, self.retrieve(retriever, QUESTION)),
            "A caller changed the metadata of a result, and later results have the change. Return copies of metadata.",
        )

    # Async, threads and events

    def test_async_returns_what_sync_returns(self) -> None:
        """The asynchronous method returns the same results and scores, alone and eight times at once."""
        store = self._make(self._samples())
        retriever = self._retriever(store)
        serial = [self.retrieve(retriever, question) for question in _QUESTIONS]

        async def work() -> list[Sequence[Result]]:
            return list(await asyncio.gather(*(self.aretrieve(retriever, question) for question in _QUESTIONS)))

        results = self._run(work, store)
        expect(
            all(map(self._same, results, serial)),
            "The asynchronous method returned other results than the synchronous one. Share their code, and no state.",
        )

    def test_threads_get_what_one_thread_gets(self) -> None:
        """Eight threads that use one retriever at the same time get the results of serial calls."""
        retriever = self._retriever(self._make(self._samples()))
        serial = [self.retrieve(retriever, question) for question in _QUESTIONS]
        results = on_threads(partial(self.retrieve, retriever), _QUESTIONS[:N_THREADS])
        expect(
            all(map(self._same, results, serial)),
            "Threads that used one retriever at the same time got other results than one thread. Keep no state of a "
            "question.",
        )

    def test_async_does_not_block_the_event_loop(self) -> None:
        """The event loop runs while the question is embedded."""
        heart = Heartbeat(self.patience)

        def embed(texts: list[str]) -> Any:
            heart.wait("embed")
            return sample_embed(texts)

        store = self._make(self._samples(), embed)
        retriever = self._retriever(store)
        self._run(lambda: heart.during(self.aretrieve(retriever, QUESTION)), store)
        expect(
            not heart.in_vain,
            "The asynchronous method blocked the event loop while it embedded the question. Embed on a thread.",
        )

    def test_events_come_in_pairs(self) -> None:
        """Each start event has an end event, or an error event if the retrieval raises."""
        retriever = self._retriever(self._make(self._samples()))
        check_events(
            partial(call_hook, self.listen),
            partial(self.retrieve, retriever, QUESTION),
            partial(self.retrieve, retriever, "  ") if self.refuses_blank_questions else None,
        )

    # Helpers of the checks

    def _samples(self) -> list[SampleChunk]:
        return sample_sections() if self.stores_sections else sample_chunks()

    def _document(self, version: int) -> list[SampleChunk]:
        """Return one document of tenant a, to be updated or deleted."""
        if self.stores_sections:
            return cut_document("a", "guide", version=version)
        return [sample_chunk(sample_id("a", 0), sample_text("a", 0, version), sample_metadata("a", 0))]

    def _retriever(self, store: Any, tenant: str | None = None, top_n: int | None = None) -> Any:
        return self.make_retriever(store, tenant, top_n)

    def _retrieve(self, store: Any, tenant: str | None, top_n: int | None = None) -> Sequence[Result]:
        return self.retrieve(self._retriever(store, tenant, top_n), QUESTION)

    def _same(self, results: Sequence[Result], others: Sequence[Result]) -> bool:
        return same_results(results, others, self.tolerance)

    @contextmanager
    def _collecting(self) -> Iterator[Heard]:
        """Collect events, logs, warnings and errors."""
        with listening(*self.ignored_loggers) as heard:
            try:
                listener = self.listen()
            except NotImplementedError:
                yield heard
                return
            with listener as events:
                yield heard
            heard.note("event", *(event.text for event in events))

    def _hear(self, store: Any, tenant: str, is_async: bool) -> Heard:
        """Return all that leaves a retriever that answers one question."""
        retriever = self._retriever(store, tenant)
        with self._collecting() as heard:
            if is_async:
                results = self._run(lambda: self.aretrieve(retriever, QUESTION), store)
            else:
                results = self.retrieve(retriever, QUESTION)
            heard.results += [result.text for result in results]
            heard.note("metadata", *(result.metadata for result in results))
        return heard

    def _expect_true(self, heard: Heard, chunks: Sequence[SampleChunk], tenant: str) -> None:
        """Fail unless all that was heard is in the store, and the caller may see it."""
        visible = [chunk for chunk in chunks if chunk.metadata["tenant"] == tenant]
        stored_texts = [chunk.view_text for chunk in visible]
        leaks = {mark for _, text in heard.everything() for mark in marks_in(text)} - marks_in("\n".join(stored_texts))
        expect(
            not leaks,
            f"Texts of another tenant, of an older version or of a deleted record left the component: "
            f"{heard.excerpts(leaks)!r:.600}. Apply the filter to every look-up, and read texts from the store.",
        )
        expect(
            heard.results, "Nothing was returned, although the caller may see records about the question. Return them."
        )
        for part in (part.strip() for text in heard.results for part in text.split("\n\n")):
            expect(
                any(part in text for text in stored_texts),
                f"A result contains {part!r:.200}, which no record of the store contains. Return texts as stored.",
            )
