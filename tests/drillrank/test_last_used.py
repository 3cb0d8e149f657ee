"""What is made once, and what is said once, whatever threads ask."""

from __future__ import annotations

import asyncio
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from drillrank import D3
from drillrank.drilldown.last_used import LastUsed
from drillrank.drilldown.rebuilding import PreparedCache, StoredChunk
from drillrank.errors import WarnOnce


def at_once(count, function):
    """What a function returns on so many threads that begin together."""
    barrier = threading.Barrier(count)

    def begin(number):
        barrier.wait()
        return function(number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(begin, range(count)))


def test_those_of_last_use_are_kept():
    made, kept = [], LastUsed(2)
    for key in "abacab":
        assert kept.make(key, lambda key=key: made.append(key) or key.upper()) == key.upper()
    assert "".join(made) == "abcb"
    assert kept.get("a") == "A"
    kept["d"] = "D"
    assert list(kept) == ["a", "d"]
    assert kept.get("b", "gone") == "gone"


def test_of_many_threads_one_makes_it_and_other_keys_do_not_wait_for_it():
    kept, made, going, go_on = LastUsed(9), [], threading.Event(), threading.Event()

    def slowly():
        made.append(1)
        going.set()
        assert go_on.wait(30)
        return "a"

    with ThreadPoolExecutor(8) as threads:
        waiting = [threads.submit(kept.make, "a", slowly) for _ in range(8)]
        assert going.wait(30)
        assert kept.make("b", lambda: "b") == "b"
        go_on.set()
        assert [one.result(30) for one in waiting] == ["a"] * 8
    assert made == [1]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_is_raised_where_it_came_up_and_others_try_again(error):
    kept, tries = LastUsed(9), []

    def make():
        tries.append(1)
        if len(tries) == 1:
            raise error
        return "made"

    with pytest.raises(error):
        kept.make("key", make)
    assert at_once(8, lambda _: kept.make("key", make)) == ["made"] * 8
    assert len(tries) == 2


def test_what_is_kept_can_be_pickled():
    kept = LastUsed(2)
    kept.make("a", lambda: "A")
    again = pickle.loads(pickle.dumps(kept))
    for key in "bc":
        again.make(key, lambda key=key: key.upper())
    assert (list(kept), list(again)) == (["a"], ["b", "c"])


@pytest.mark.parametrize("later", [False, True])
def test_a_collection_is_prepared_once(later):
    prepared = []

    def prepare(sections, _names, _dates):
        prepared.append(1)
        threading.Event().wait(0.02)
        return D3().prepare(sections)

    cache, stored = PreparedCache(prepare), [[StoredChunk("# Sea\n\nDeep.\n\nWide.")]]

    async def tasks():
        return await asyncio.gather(*(asyncio.to_thread(cache.ready, stored) for _ in range(8)))

    found = asyncio.run(tasks()) if later else at_once(8, lambda _: cache.ready(stored))
    assert len(prepared) == 1
    assert all(ready is found[0] for ready in found)


def test_of_many_threads_one_warns_of_each_thing():
    warned, things = WarnOnce(), [f"document {number}" for number in range(200)]
    heard = at_once(8, lambda _: warned.new("outdated", things))
    assert sorted(thing for one in heard for thing in one) == sorted(things)
    assert warned.new("missing", [*things[:1], *things[:1]]) == things[:1]
    assert pickle.loads(pickle.dumps(warned)).new("outdated", things) == []


def test_of_warnings_the_last_ten_thousand_are_remembered():
    warned = WarnOnce()
    assert len(warned.new("outdated", range(30_000))) == 30_000
    assert warned.new("outdated", range(20_000, 30_000)) == []
    assert warned.new("outdated", [0, 19_999]) == [0, 19_999]
