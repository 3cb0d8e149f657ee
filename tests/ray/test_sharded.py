"""Path search over shards in Ray actors: the paths and scores of one process, also when a shard dies."""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from pathlib import Path

import pytest

ray = pytest.importorskip("ray", reason="make test-ray installs it")

from drillrank import PathSearch, PromptRank  # noqa: E402
from drillrank.multihop.shards import ShardedCorpus, divided  # noqa: E402
from tests.linked_passages import linked_passages, questions  # noqa: E402

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "ray"
sys.path.insert(0, str(EXAMPLE))

from sharded import ActorShards  # noqa: E402

SIZE, SHARDS, QUESTIONS = 600, 3, 12
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.timeout(600)]


@pytest.fixture(scope="module", autouse=True)
def cluster():
    paths = os.pathsep.join(map(str, (ROOT / "shared", ROOT, EXAMPLE)))
    ray.init(
        num_cpus=SHARDS,
        include_dashboard=False,
        runtime_env={"env_vars": {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}},
        logging_level="error",
    )
    yield
    ray.shutdown()


def read_part(marks: Path, number: int):
    """A part of the collection; leaves a mark each time that it is read, with the process that read it."""
    (marks / f"{number}-{os.getpid()}").touch()
    return divided(linked_passages(SIZE), SHARDS)[number]


def paths_of(search, question, on_hop=None):
    return [(item.passage.ids, item.score) for item in search.search_paths(question, on_hop=on_hop)]


@pytest.fixture(scope="module")
def asked():
    return questions(list(linked_passages(SIZE)), QUESTIONS)


@pytest.fixture(scope="module")
def alone(asked):
    search = PathSearch(PromptRank(), linked_passages(SIZE))
    return [paths_of(search, question) for question in asked]


def check(found, expected):
    assert [ids for ids, _ in found] == [ids for ids, _ in expected]
    assert [score for _, score in found] == pytest.approx([score for _, score in expected], abs=1e-6)


def test_paths_and_scores_are_those_of_one_process(tmp_path, asked, alone):
    search = PathSearch(PromptRank(), first_stage=ShardedCorpus(ActorShards(partial(read_part, tmp_path), SHARDS)))
    for question, expected in zip(asked, alone, strict=True):
        check(paths_of(search, question), expected)
    assert len(list(tmp_path.iterdir())) == SHARDS


def test_a_shard_that_is_killed_loses_nothing(tmp_path, asked, alone):
    search = PathSearch(PromptRank(), first_stage=ShardedCorpus(ActorShards(partial(read_part, tmp_path), SHARDS)))
    killed = []

    def kill(hop):
        if hop.number == 1:  # between the first stage and the passages that it links to
            number = len(killed) % SHARDS
            newest = max(tmp_path.glob(f"{number}-*"), key=lambda mark: mark.stat().st_mtime_ns)
            os.kill(int(newest.name.partition("-")[2]), signal.SIGKILL)
            killed.append(number)

    for place, (question, expected) in enumerate(zip(asked, alone, strict=True)):
        check(paths_of(search, question, kill if place % 4 == 1 else None), expected)
    assert len(killed) == 3
    assert len(list(tmp_path.iterdir())) == SHARDS + len(killed), "a part was not read again by a new actor"
