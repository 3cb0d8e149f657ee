"""Checks of a record store: order, limits, metadata, tenants, updates, threads and the event loop."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from drillrank.errors import InvalidInput
from drillrank.structure.record_store import RecordStore, read_chunk_vectors, read_question_vector
from drillrank.structure.stored_chunks import Where
from drillrank.testing.components_over_stores import StoreComponentTests
from drillrank.testing.event_loop import Heartbeat, longest_stall
from drillrank.testing.results import N_THREADS, call_hook, change_chunk, chunk_fields, expect, on_threads, snapshot
from drillrank.testing.samples import (
    QUESTION,
    WORDS,
    marks_in,
    sample_chunk,
    sample_chunks,
    sample_embed,
    sample_id,
    sample_text,
)

_MAX_STALL = 0.1  # seconds
_N_MANY = 150  # records; more than a page of most databases
_QUESTIONS = tuple(f"When does the {word} open?" for word in WORDS)
_SURROGATE = "When does the \ud800 harbour open?"
_UNUSUAL_QUESTIONS = ("'); DROP TABLE records; --", "{question} %s $1 \\", "漢字 🦊", "?", "harbour " * 5_000)

Call = Callable[[RecordStore], Any]


class RecordStoreTests(StoreComponentTests):
    """Checks of one record store. Subclass it, define `make_store` and `open_store`, and run pytest.

    >>> class TestMyStore(RecordStoreTests):
    ...     def make_store(self, chunks, embed):
    ...         return MyDatabase(chunks, embed)
    ...
    ...     def open_store(self, store, tenant):
    ...         return MyStore(store, tenant)
    """

    # Search

    def test_search_returns_the_nearest_records_first(self) -> None:
        """Four records whose cosines to the question are 1, 0.8, 0.3 and 0 come back in this order."""
        texts = ("harbour harbour", "harbour harbour bridge bridge harbour", "harbour bridge bridge bridge", "market")
        store = self._store([sample_chunk(sample_id("a", n), text) for n, text in reversed(list(enumerate(texts)))])
        results = [chunk.text for chunk in store.search("harbour", 4)]
        expect(
            results == list(texts),
            f"search returned the records in the wrong order: {results}. The order by similarity is {list(texts)}. "
            "Return the nearest record first, and leave the order as the database has it.",
        )

    def test_search_returns_at_most_n_records(self) -> None:
        """Searches with `n` of 1, 3 and 5 return as many records."""
        store = self._store(sample_chunks())
        self._skip_without_limits(store)
        for n in (1, 3, 5):
            n_results = len(store.search(QUESTION, n))
            expect(n_results == n, f"search was asked for n={n} of 16 records and returned {n_results}. Obey n.")

    def test_search_returns_each_record_once_if_n_exceeds_the_store(self) -> None:
        """A search for more records than there are returns all of them."""
        chunks = sample_chunks()
        store = self._store(chunks)
        self._skip_without_limits(store)
        self._expect_chunks(store.search(QUESTION, 1_000), chunks, "search(question, 1000)")

    def test_an_empty_store_returns_nothing(self) -> None:
        """A search of an empty store returns an empty list."""
        results = list(self._store([]).search(QUESTION, 5))
        expect(results == [], f"A search of an empty store returned {len(results)} records. Return an empty list.")

    def test_search_obeys_where_before_n(self) -> None:
        """A search with `where` returns the nearest of the matching records, however far they are."""
        chunks = sample_chunks()
        store = self._store(chunks)
        self._skip_without_limits(store)
        wheres: list[Where] = [
            {"group": "green"},
            {"group": "green", "tenant": "b"},
            {"group": ("green", "blue"), "tenant": "a"},
            {"group": "missing"},
        ]
        for one in wheres:
            matches = [chunk for chunk in chunks if chunk.matches(one)]
            self._expect_chunks(store.search(QUESTION, 100, one), matches, f"search(question, 100, {one})")
        where: Where = {"group": "green", "quarter": "south", "tenant": "b"}
        results = store.search("harbour", 1, where)
        expect(
            [chunk.matches(where) for chunk in results] == [True],
            f"search('harbour', 1, {where}) returned {len(results)} records, not the nearest one that matches. Let the "
            "database filter, or search further, before the results are limited to n.",
        )

    def test_scores_are_finite_numbers_or_none(self) -> None:
        """Scores of a search are finite floats or None. Records that no search found have no score."""
        store = self._store(sample_chunks())
        for chunk in store.search(QUESTION, 5):
            is_number = isinstance(chunk.score, float) and math.isfinite(chunk.score)
            expect(
                chunk.score is None or is_number,
                f"search returned the score {chunk.score!r:.100}. Return a finite float, or None without a score.",
            )
        looked_up = [*(store.get([sample_id("a", 0)]) or ()), *(store.find({"tenant": "a"}) or ())]
        expect(
            all(chunk.score is None for chunk in looked_up),
            "get or find returned a record with a score. Only a search has scores: set score to None.",
        )

    def test_vectors_are_those_of_the_texts(self) -> None:
        """Vectors of chunks and of the question, if the store returns any, are those of the embedding function."""
        store = self._store(sample_chunks())
        chunks = store.search(QUESTION, 5)
        vectors = read_chunk_vectors(store, chunks)
        if all(vector is None for vector in vectors):
            pytest.skip("The store returns no vectors.")
        question_vector = read_question_vector(store, QUESTION)
        texts = [QUESTION, *(chunk.text for chunk in chunks)]
        for text, vector in zip(texts, [question_vector, *vectors], strict=True):
            expect(
                vector is None or np.dot(vector, sample_embed([text])[0]) > 0.999 * np.linalg.norm(vector),
                f"The store returned a vector for {text!r:.60} that the embedding function does not give. Return the "
                "vector of the record itself, and for a question the one that the search used.",
            )

    # Look-ups

    def test_get_returns_the_records_with_these_ids(self) -> None:
        """`get` returns each record that exists once, in any order, and leaves out the missing ones."""
        chunks = sample_chunks()
        store = self._store(chunks)
        self._skip_without(self.can_get)
        missing = sample_id("nobody", 0)
        for ids in ([chunks[5].id, missing, chunks[0].id], [missing], []):
            matches = [chunk for chunk in chunks if chunk.id in ids]
            self._expect_chunks(store.get(ids), matches, f"get of {len(ids)} ids, {len(matches)} of which exist,")

    def test_find_returns_all_records_with_these_metadata(self) -> None:
        """`find` compares strings, and takes any value of a tuple. All conditions apply."""
        chunks = sample_chunks()
        store = self._store(chunks)
        self._skip_without(self.can_find)
        wheres: list[Where] = [
            {"group": "red"},
            {"group": ("red", "blue")},
            {"group": ("red", "missing"), "tenant": "b"},
            {"group": "missing"},
            {"group": "red' OR '1'='1"},
        ]
        for where in wheres:
            matches = [chunk for chunk in chunks if chunk.matches(where)]
            self._expect_chunks(store.find(where), matches, f"find({where})")

    def test_find_has_no_limit(self) -> None:
        """`find` returns all of 150 records, more than a page of most databases."""
        chunks = [sample_chunk(sample_id("many", n), f"Part {n}.", {"tenant": "a"}) for n in range(_N_MANY)]
        store = self._store([*chunks, *sample_chunks(["b"])])
        self._skip_without(self.can_find)
        self._expect_chunks(store.find({"tenant": "a"}), chunks, f"find, with {_N_MANY} matching records,")

    def test_look_ups_return_none_only_if_they_are_unsupported(self) -> None:
        """A look-up returns None for all arguments, sync and async, or for none."""
        database = self._make(sample_chunks())
        store = self._open(database)
        ids: list[list[str]] = [[sample_id("a", 0)], [sample_id("nobody", 0)]]
        wheres: list[Where] = [{"tenant": "a"}, {"tenant": "missing"}, {"group": ("red", "blue")}]
        gets = [store.get(one) for one in ids] + [self._run(partial(store.aget, one), database) for one in ids]
        finds = [store.find(one) for one in wheres] + [self._run(partial(store.afind, one), database) for one in wheres]
        for name, answers, can in (("get", gets, self.can_get), ("find", finds, self.can_find)):
            expect(
                all((answer is not None) is can for answer in answers),
                f"{name} returned None {sum(answer is None for answer in answers)} times of {len(answers)}, and "
                f"can_{name} is {can}. None means that the store cannot be asked: return an empty list if nothing "
                f"matches, or set can_{name} to False if {name} always returns None.",
            )

    # Tenants

    @pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
    def test_no_call_returns_records_of_another_tenant(self, is_async: bool) -> None:
        """Search, get and find return only what the caller may see, whatever ids and metadata are asked for."""
        self._skip_without(self.has_tenants)
        database = self._make(sample_chunks())
        other_ids = [sample_id("b", number) for number in range(len(WORDS))]
        guesses = [*other_ids, *self.guessed_ids]
        calls: dict[str, tuple[Call, Call]] = {
            "search": (lambda s: s.search(QUESTION, 100), lambda s: s.asearch(QUESTION, 100)),
            "search with the other tenant in where": (
                lambda s: s.search(QUESTION, 100, {"tenant": "b"}),
                lambda s: s.asearch(QUESTION, 100, {"tenant": "b"}),
            ),
            "get with the other tenant's ids": (lambda s: s.get(guesses), lambda s: s.aget(guesses)),
            "find with the other tenant in where": (
                lambda s: s.find({"tenant": ("a", "b")}),
                lambda s: s.afind({"tenant": ("a", "b")}),
            ),
            "find by a value that both have": (lambda s: s.find({"group": "red"}), lambda s: s.afind({"group": "red"})),
        }
        for name, (call, acall) in calls.items():
            store = self._open(database, "a")
            chunks = self._run(partial(acall, store), database) if is_async else call(store)
            leaks = [chunk for chunk in chunks or () if chunk.metadata.get("tenant") != "a"]
            expect(
                not leaks,
                f"{name} returned {len(leaks)} records that this caller may not see. Apply the caller's filter to all "
                "methods, sync and async, in addition to where and ids.",
            )
        self._expect_visible(self._open(database, "a"), [c for c in sample_chunks() if c.metadata["tenant"] == "a"])

    def test_a_tenant_is_compared_exactly(self) -> None:
        """A caller whose tenant is code, a wildcard, or the beginning of another one's sees nothing."""
        self._skip_without(self.has_tenants)
        database = self._make(sample_chunks())
        for tenant in ("a' OR '1'='1", "%", "*", "", "A", "a "):
            chunks = self._everything(self._open(database, tenant))
            expect(
                not chunks,
                f"The caller {tenant!r} saw {len(chunks)} records of others. Compare the tenant exactly, and pass it "
                "to the database as a parameter.",
            )

    # Truth

    @pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
    def test_an_update_is_seen_at_once(self, is_async: bool) -> None:
        """After an update, all methods return the new text and metadata, and no method the old ones."""
        database = self._make(sample_chunks())
        self._everything(self._open(database), is_async, database)  # the store may cache it
        update = sample_chunk(sample_id("a", 0), sample_text("a", 0, version=2), {"tenant": "a", "group": "yellow"})
        call_hook(self.update, database, [update])
        chunks = self._everything(self._open(database), is_async, database)
        texts = "\n".join(chunk.text for chunk in chunks)
        expect(
            not marks_in(sample_text("a", 0)) & marks_in(texts),
            "A record was updated, and its old text was returned. Read text and metadata from the database each time.",
        )
        results = [chunk for chunk in chunks if chunk.id == update.id]
        expect(
            results and all(chunk.text == update.text and chunk.metadata.get("group") == "yellow" for chunk in results),
            "A record was updated, and its new text and metadata were not returned. Return both from the same row.",
        )

    @pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
    def test_a_deleted_record_is_gone(self, is_async: bool) -> None:
        """After a deletion, no method returns the record. After it was added again, all do."""
        database = self._make(sample_chunks())
        self._everything(self._open(database), is_async, database)
        victim = next(chunk for chunk in sample_chunks() if chunk.id == sample_id("a", 1))
        call_hook(self.delete, database, [victim])
        chunks = self._everything(self._open(database), is_async, database)
        expect(
            all(chunk.id != victim.id for chunk in chunks),
            "A record was deleted, and it was returned. Delete it from whatever the store keeps next to the database.",
        )
        call_hook(self.add, database, [victim])
        chunks = self._everything(self._open(database), is_async, database)
        expect(
            any(chunk.id == victim.id for chunk in chunks),
            "A record was added, and it was not returned. Search and look up in the same data.",
        )

    # Mutation

    def test_no_call_changes_what_it_was_given(self) -> None:
        """Chunks, ids and `where` are the same after all calls."""
        chunks, ids, where = sample_chunks(), [sample_id("a", 0), sample_id("a", 1)], {"group": ("red", "blue")}
        before = snapshot((chunks, ids, where))
        store = self._store(chunks)
        store.search(QUESTION, 3, where)
        store.get(ids)
        store.find(where)
        expect(
            (chunks, ids, where) == before,
            "The store changed a chunk, a list of ids or a where that it was given. Copy what is changed.",
        )

    def test_changed_results_do_not_change_the_store(self) -> None:
        """A caller who writes into a result does not change what later calls return."""
        store = self._store(sample_chunks())
        before = chunk_fields(self._everything(store))
        calls: list[Callable[[], Any]] = [
            partial(store.search, QUESTION, 5),
            partial(store.get, [sample_id("a", 0)]),
            partial(store.find, {"tenant": "a"}),
        ]
        for call in calls:
            chunks = call()
            for chunk in chunks or ():
                change_chunk(chunk)
            if isinstance(chunks, list):
                chunks.clear()
        expect(
            chunk_fields(self._everything(store)) == before,
            "A caller changed the metadata of a result, and later calls returned it. Return copies of metadata.",
        )

    # Async and threads

    def test_async_methods_return_what_sync_methods_return(self) -> None:
        """Each async method returns the same chunks, metadata and scores as its twin."""
        database = self._make(sample_chunks())
        store = self._open(database)
        pairs: dict[str, tuple[Call, Call]] = {
            "search": (lambda s: s.search(QUESTION, 5), lambda s: s.asearch(QUESTION, 5)),
            "search with where": (
                lambda s: s.search(QUESTION, 5, {"group": "red"}),
                lambda s: s.asearch(QUESTION, 5, {"group": "red"}),
            ),
            "get": (lambda s: s.get([sample_id("a", 3)]), lambda s: s.aget([sample_id("a", 3)])),
            "find": (lambda s: s.find({"group": ("red",)}), lambda s: s.afind({"group": ("red",)})),
        }
        for name, (call, acall) in pairs.items():
            results, aresults = call(store), self._run(partial(acall, store), database)
            expect(
                chunk_fields(results) == chunk_fields(aresults),
                f"{name} and its async twin returned different records, metadata or scores. Share their code.",
            )

    def test_concurrent_async_calls_return_what_single_calls_return(self) -> None:
        """Sixteen searches and look-ups at the same time do not mix up their results."""
        database = self._make(sample_chunks())
        store = self._open(database)
        ids = [[sample_id("a", number)] for number in range(len(WORDS))]
        single_results = [chunk_fields(store.search(question, 3)) for question in _QUESTIONS]
        single_results += [chunk_fields(store.get(one)) for one in ids]

        async def work() -> list[Any]:
            searches = [store.asearch(question, 3) for question in _QUESTIONS]
            return list(await asyncio.gather(*searches, *(store.aget(one) for one in ids)))

        results = [chunk_fields(chunks) for chunks in self._run(work, database)]
        expect(
            results == single_results,
            "Concurrent async calls returned other records than single calls. Share no state.",
        )

    def test_async_methods_do_not_block_the_event_loop(self) -> None:
        """The event loop runs while a question is embedded, and stalls for less than 0.1 seconds otherwise."""
        heart = Heartbeat(self.patience)

        def embed(texts: list[str]) -> Any:
            heart.wait("embed")
            return sample_embed(texts)

        database = self._make(sample_chunks(), embed)

        async def work() -> dict[str, float]:
            await heart.during(self._open(database).asearch(QUESTION, 3))
            return {
                "asearch": await longest_stall(lambda: self._open(database).asearch(QUESTION, 3)),
                "aget": await longest_stall(lambda: self._open(database).aget([sample_id("a", 0)])),
                "afind": await longest_stall(lambda: self._open(database).afind({"tenant": "a"})),
            }

        stalls = self._run(work, database)
        expect(
            not heart.in_vain,
            "asearch blocked the event loop while it embedded the question. Embed on a thread, or await the model.",
        )
        for name, stall in stalls.items():
            expect(
                stall < _MAX_STALL,
                f"{name} blocked the event loop for {stall:.2f} seconds. Await the database, or call it on a thread: "
                "await asyncio.to_thread(...).",
            )

    def test_threads_get_what_one_thread_gets(self) -> None:
        """Eight threads that use one record store at the same time get the results of serial calls."""
        store = self._store(sample_chunks())
        calls: list[Callable[[], Any]] = [partial(store.search, question, 3) for question in _QUESTIONS[:4]]
        calls += [partial(store.get, [sample_id("a", number)]) for number in range(2)]
        calls += [partial(store.find, {"group": group}) for group in ("red", "blue")]
        serial = [chunk_fields(call()) for call in calls]
        for _ in range(3):
            results = on_threads(lambda call: chunk_fields(call()), calls[:N_THREADS])
            expect(
                results == serial,
                "Threads that used one record store at the same time got other records than one thread alone. "
                "Components call a store from several threads: protect what it writes with a lock.",
            )

    # Unusual input

    def test_unusual_ids_are_kept(self) -> None:
        """Records with unusual ids are returned by `get` under these ids."""
        if not self.unusual_ids:
            pytest.skip("The store takes no ids, as unusual_ids is empty.")
        chunks = [sample_chunk(id_, f"Part {number}.", {"tenant": "a"}) for number, id_ in enumerate(self.unusual_ids)]
        store = self._store(chunks)
        for chunk in chunks:
            if self.can_get:
                self._expect_chunks(store.get([chunk.id]), [chunk], f"get([{chunk.id!r:.60}])")
        ids = sorted(chunk.id for chunk in store.search(QUESTION, 100))
        expect(
            ids == sorted(self.unusual_ids),
            f"Records with unusual ids came back under other ids: {ids!r:.300}. Keep ids, or set unusual_ids to those "
            "that the store takes.",
        )

    def test_unusual_metadata_values_are_compared_exactly(self) -> None:
        """Numbers as strings, quotes, colons and code in values select the records that have them, and no others."""
        chunks = [
            sample_chunk(sample_id("value", number), f"Part {number}.", {"tenant": "a", "name": value})
            for number, value in enumerate(self.unusual_values)
        ]
        store = self._store(chunks)
        for chunk in chunks:
            where = {"name": str(chunk.metadata["name"])}
            if store.obeys_limits:
                self._expect_chunks(
                    store.search(QUESTION, 100, where), [chunk], f"search(question, 100, {where!r:.80})"
                )
            if self.can_find:
                self._expect_chunks(store.find(where), [chunk], f"find({where!r:.80})")
                wheres = {"name": (where["name"], "missing")}
                self._expect_chunks(store.find(wheres), [chunk], f"find({wheres!r:.80})")

    def test_unusual_texts_and_empty_metadata_are_kept(self) -> None:
        """Texts in all scripts, with control characters or of 25,000 characters come back as they were stored."""
        for number, text in enumerate(self.unusual_texts):
            chunk = sample_chunk(sample_id("text", number), text)
            results = [result.text for result in self._store([chunk]).search(QUESTION, 1)]
            permitted = {text, *(text.replace("\ud800", other) for other in ("?", "\ufffd"))}
            expect(
                len(results) == 1 and results[0] in permitted,
                f"The text {text!r:.60} came back as {results!r:.100}. Return texts as they were stored.",
            )

    def test_unusual_questions_are_searched(self) -> None:
        """A search takes code, other scripts and 40,000 characters. It may refuse half a surrogate pair."""
        store = self._store(sample_chunks())
        for question in (*_UNUSUAL_QUESTIONS, _SURROGATE):
            try:
                n_results = len(store.search(question, 3))
            except InvalidInput as error:
                expect(question is _SURROGATE, f"search refused the question {question!r:.60}: {error}. Take any text.")
                continue
            except Exception as error:
                message = f"search raised {type(error).__name__} for the question {question!r:.60}. Take any string."
                raise AssertionError(message) from error
            expect(n_results >= 1, f"search returned nothing for the question {question!r:.60}. Take any string.")
