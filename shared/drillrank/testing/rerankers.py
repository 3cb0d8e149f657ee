"""Checks of a reranker of any framework: what comes back, in which order, and how it runs."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import pytest

from drillrank.testing.event_loop import Heartbeat
from drillrank.testing.events import Event, check_events
from drillrank.testing.results import (
    N_THREADS,
    Result,
    call_hook,
    change_metadata,
    expect,
    on_threads,
    run_async,
    same_results,
    snapshot,
)

_QUESTION = "Which river does the old town of Basel lie on?"
_TEXTS = (
    "Emma is a novel by Jane Austen.",
    "The old town of Basel lies on the Rhine, a river.",
    "A river is a natural flowing watercourse.",
    "Basel is a town in Switzerland.",
    "Grüße aus 東京 🦊, with {braces} and %s.",
)
_ANSWER = "id-1"
_QUESTIONS = tuple(f"{_QUESTION} {word}" for word in ("Emma", "novel", "town", "river", "Jane", "a", "of", "flowing"))


class RerankerTests:
    """Checks of one reranker. Subclass it, define the four methods without a default, and run pytest.

    Attributes:
        keeps_scores: True if a record's score does not depend on the order of the records.
        keeps_ties: True if equal records keep their order.
        returns_given_records: True if results are the records that were given, and not copies.
        knows_the_answer: False for a model that knows nothing, such as one with random weights.
        patience: Seconds after which the event loop counts as blocked while the model scores.
        refuses_blank_questions: True if a question without text is an error.
        tolerance: Largest difference between two scores that count as equal.

    >>> class TestMyReranker(RerankerTests):
    ...     def make_reranker(self, top_n):
    ...         return MyReranker(top_n=top_n)
    ...
    ...     def make_record(self, id, text, metadata):
    ...         return MyDocument(id, text, metadata)
    ...
    ...     def rerank(self, reranker, question, records):
    ...         return [Result(one.id, one.text, one.score, one.metadata) for one in reranker.rerank(question, records)]
    ...
    ...     async def arerank(self, reranker, question, records):
    ...         ranked = await reranker.arerank(question, records)
    ...         return [Result(one.id, one.text, one.score, one.metadata) for one in ranked]
    """

    keeps_scores = True
    keeps_ties = True
    returns_given_records = False
    knows_the_answer = True
    patience = 5.0
    refuses_blank_questions = True
    tolerance = 1e-5

    def make_reranker(self, top_n: int | None) -> Any:
        """Return a reranker that returns at most `top_n` records, or all records for None."""
        raise NotImplementedError("Define make_reranker.")

    def make_record(self, id: str, text: str, metadata: Mapping[str, Any]) -> Any:
        """Return a record as the reranker takes it."""
        raise NotImplementedError("Define make_record.")

    def rerank(self, reranker: Any, question: str, records: Sequence[Any]) -> Sequence[Result]:
        """Return the ranking of records, best first."""
        raise NotImplementedError("Define rerank.")

    async def arerank(self, reranker: Any, question: str, records: Sequence[Any]) -> Sequence[Result]:
        """Return the ranking of records by the asynchronous method."""
        raise NotImplementedError("Define arerank.")

    def make_slow_reranker(self, wait: Callable[[str], None]) -> Any:
        """Return a reranker whose model calls `wait("model")` before it scores. Without it, one check is skipped."""
        raise NotImplementedError

    def listen(self) -> AbstractContextManager[list[Event]]:
        """Return a context manager that collects the framework's events. Without it, one check is skipped."""
        raise NotImplementedError

    # Results

    def test_each_record_comes_back_once_and_unchanged(self) -> None:
        """Without a limit, all records come back, with their ids, texts and metadata."""
        results = self._rank(self._records())
        expected = {f"id-{number}": text for number, text in enumerate(_TEXTS)}
        ids = sorted(str(result.id) for result in results)
        expect(
            ids == sorted(expected),
            f"The ids {ids} came back instead of {sorted(expected)}. Return each record once, under its id.",
        )
        for result in results:
            number = int(str(result.id).removeprefix("id-"))
            expect(result.text == expected[str(result.id)], f"The text of {result.id} was changed. Return it as it is.")
            lacking = [key for key, value in _metadata(number).items() if result.metadata.get(key) != value]
            expect(not lacking, f"The metadata {lacking} of {result.id} were changed or lost. Keep metadata.")

    @pytest.mark.parametrize("top_n", [1, 3, 99])
    def test_at_most_top_n_records_come_back(self, top_n: int) -> None:
        """The best `top_n` records come back, or all of fewer."""
        results, ranking = self._rank(self._records(), top_n), self._rank(self._records())
        expect(
            [result.id for result in results] == [result.id for result in ranking[:top_n]],
            f"top_n={top_n} returned {len(results)} records that are not the first of the whole ranking. Rank all "
            "records, then return the best ones.",
        )

    def test_the_best_record_comes_first(self) -> None:
        """Scores are finite floats in falling order, and the record with the answer is the first."""
        results = self._rank(self._records())
        scores = [result.score for result in results]
        for score in scores:
            expect(
                type(score) is float and math.isfinite(score),
                f"A result has the score {score!r:.60}. Return a plain, finite float, which JSON can write.",
            )
        expect(
            scores == sorted(scores, key=lambda score: -(score or 0.0)),
            f"The scores {scores} are not in falling order. Sort results by score, the highest first.",
        )
        expect(
            not self.knows_the_answer or results[0].id == _ANSWER,
            f"The first result is {results[0].text!r}, which does not answer {_QUESTION!r}. Check the order, or set "
            "knows_the_answer to False for a model with random weights.",
        )

    def test_no_records_are_ranked_to_none(self) -> None:
        """An empty list of records raises no error."""
        results = list(self._rank([]))
        expect(results == [], f"Reranking no records returned {results!r:.100}. Return an empty list.")

    def test_a_blank_question_is_refused(self) -> None:
        """A question without text raises an error."""
        if not self.refuses_blank_questions:
            pytest.skip("refuses_blank_questions is False.")
        try:
            self._rank(self._records(), question="  ")
        except Exception:
            return
        expect(False, "A blank question was ranked. Raise an error that names the argument.")

    def test_questions_and_texts_are_data(self) -> None:
        """Templates and format strings in questions and texts are read as text."""
        texts = ("{text} {title} %s \\N{DASH}", "{" * 50, "{{question}} {0}")
        records = [self._record(number, text) for number, text in enumerate(texts)]
        try:
            results = self._rank(records, question="{question} {0} %d river")
        except Exception as error:
            raise AssertionError(
                f"Braces in a text raised {type(error).__name__}. Never format a user's text."
            ) from error
        expect(len(results) == len(texts), f"Of {len(texts)} records with braces, {len(results)} came back. Keep all.")

    def test_equal_records_keep_their_order(self) -> None:
        """Records of equal texts come back in the order of the input."""
        if not self.keeps_ties:
            pytest.skip("keeps_ties is False.")
        records = [self.make_record(f"id-{number}", _TEXTS[1], {"source": "a.md"}) for number in range(4)]
        ids = [result.id for result in self._rank(records)]
        expect(ids == [f"id-{n}" for n in range(4)], f"Equal records came back as {ids}. Use a sort that is stable.")

    def test_the_order_of_records_does_not_change_scores(self) -> None:
        """Each record has the same score in any order of the records."""
        if not self.keeps_scores:
            pytest.skip("keeps_scores is False.")
        records = self._records()
        expected = {result.id: result.score for result in self._rank(records)}
        for order in _orders(len(records)):
            scores = {result.id: result.score for result in self._rank([records[index] for index in order])}
            expect(
                scores == pytest.approx(expected, abs=self.tolerance),
                f"Another order of the records changed scores from {expected} to {scores}. Score each record by "
                "itself, or set keeps_scores to False if the rank in the input is evidence.",
            )

    # Mutation

    def test_ranking_changes_no_record_and_can_be_repeated(self) -> None:
        """Records are the same after a ranking, and a second ranking returns the same."""
        reranker, records = self._make(None), self._records()
        before = snapshot(records)
        results = self.rerank(reranker, _QUESTION, records)
        expect(records == before, "The reranker changed a record, or the list of records. Return copies.")
        again = self.rerank(reranker, _QUESTION, records)
        expect(self._same(results, again), "A second ranking of the same records differs. Keep no state of a question.")

    def test_changed_results_do_not_change_records(self) -> None:
        """A caller who writes into the metadata of a result does not change the record that was given."""
        if self.returns_given_records:
            pytest.skip("returns_given_records is True.")
        records = self._records()
        before = snapshot(records)
        for result in self._rank(records):
            change_metadata(result.metadata)
        expect(records == before, "The metadata of a result are those of the record given. Return copies of metadata.")

    # Async, threads and events

    def test_async_returns_what_sync_returns(self) -> None:
        """The asynchronous method returns the same results and scores, alone and eight times at once."""
        reranker, records = self._make(None), self._records()
        serial = [self.rerank(reranker, question, records) for question in _QUESTIONS]

        async def work() -> list[Sequence[Result]]:
            return list(await asyncio.gather(*(self.arerank(reranker, question, records) for question in _QUESTIONS)))

        results = run_async(work)
        expect(
            all(map(self._same, results, serial)),
            "The asynchronous method returned other results than the synchronous one. Share their code, and no state.",
        )

    def test_threads_get_what_one_thread_gets(self) -> None:
        """Eight threads that use one reranker at the same time get the results of serial calls."""
        reranker, records = self._make(None), self._records()
        serial = [self.rerank(reranker, question, records) for question in _QUESTIONS]
        results = on_threads(lambda question: self.rerank(reranker, question, records), _QUESTIONS[:N_THREADS])
        expect(
            all(map(self._same, results, serial)),
            "Threads that used one reranker at the same time got other results than one thread. Keep no state of a "
            "question.",
        )

    def test_async_does_not_block_the_event_loop(self) -> None:
        """The event loop runs while the model scores."""
        heart = Heartbeat(self.patience)
        reranker, records = call_hook(self.make_slow_reranker, heart.wait), self._records()
        run_async(lambda: heart.during(self.arerank(reranker, _QUESTION, records)))
        expect(heart.waited, "The slow reranker did not call wait('model'), so that nothing was checked. Call it.")
        expect(
            not heart.in_vain,
            "The asynchronous method blocked the event loop while the model scored. Await the model, or score on a "
            "thread.",
        )

    def test_events_come_in_pairs(self) -> None:
        """Each start event has an end event, or an error event if the ranking raises."""
        reranker, records = self._make(None), self._records()
        check_events(
            partial(call_hook, self.listen),
            partial(self.rerank, reranker, _QUESTION, records),
            partial(self.rerank, reranker, "  ", records) if self.refuses_blank_questions else None,
        )

    # Helpers of the checks

    def _make(self, top_n: int | None) -> Any:
        return self.make_reranker(top_n)

    def _record(self, number: int, text: str) -> Any:
        return self.make_record(f"id-{number}", text, _metadata(number))

    def _records(self) -> list[Any]:
        return [self._record(number, text) for number, text in enumerate(_TEXTS)]

    def _rank(self, records: Sequence[Any], top_n: int | None = None, question: str = _QUESTION) -> Sequence[Result]:
        return self.rerank(self._make(top_n), question, records)

    def _same(self, results: Sequence[Result], others: Sequence[Result]) -> bool:
        return same_results(results, others, self.tolerance)


def _metadata(number: int) -> dict[str, Any]:
    return {"title": f"T{number}", "page": number}


def _orders(n: int) -> Iterator[list[int]]:
    """Yield some orders of `n` indices: reversed, rotated, and even ones first."""
    yield list(range(n))[::-1]
    yield [*range(2, n), 0, 1]
    yield [*range(0, n, 2), *range(1, n, 2)]
