"""Models in processes that were forked after they were used: they compute, alike, and say that it is on one thread."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
import torch

from tests.drillrank.neural.conftest import saved
from tests.drillrank.neural.fake_server import FakeServer
from tests.drillrank.neural.tiny_encoder import saved_encoder
from tests.examples import size

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")

TEXTS = [f"The river {n} flows through the old town, past {n % 7} gates and a tower. " * 6 for n in range(size(60))]
# One process for all cases, since torch takes seconds to load. A case is a function and its specifications.
PROGRAM = """
import gc, json, os, signal, sys, threading, warnings
from drillrank import UPR, load_language_model

cases, texts, n_forks = json.loads(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3])

def scores(ranker, texts=texts):
    ranking = ranker.rank("Which river flows past the tower?", texts)
    return [item.score for item in sorted(ranking, key=lambda item: item.details["position"])]

def furthest(before, after):
    return max(abs(one - other) for one, other in zip(before, after))

def wait_for(child):
    assert os.waitpid(child, 0)[1] == 0, "the child was ended"

def forked(*specs):
    "Return how far the scores of the child are from the parent's, and its warnings."
    rankers = [UPR(load_language_model(spec)) for spec in specs]
    before = scores(rankers[0])  # the second model is first used in the child
    read, write = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(40)  # it used to wait for ever
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            after = [scores(ranker) for ranker in rankers]
        gc.collect()  # what the parent's model leaves must not be freed here
        told = [str(one.message) for one in told if "forked" in str(one.message)]
        os.write(write, json.dumps([furthest(before, after[0]), told]).encode())
        sys.exit()
    wait_for(child)
    assert scores(rankers[0]) == before
    return json.loads(os.read(read, 10_000))

def while_scoring(spec):
    "Fork again and again while two threads score, and compare the scores of each child."
    some, ranker = texts[:4], UPR(load_language_model(spec))
    before, ends, failed = scores(ranker, some), threading.Event(), []

    def score():
        while not ends.is_set():
            if scores(ranker, some) != before:
                failed.append(spec)

    threads = [threading.Thread(target=score) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for number in range(n_forks):
            child = os.fork()
            if not child:
                signal.alarm(60)  # it used to wait for ever
                os._exit(int(furthest(before, scores(ranker, some)) > 1e-4))
            wait_for(child)
    finally:
        ends.set()
        for thread in threads:
            thread.join()
    assert not failed and scores(ranker, some) == before

print(json.dumps([globals()[case](*specs) for case, *specs in cases]))
"""

ON_A_GPU = """
import json, os, signal, sys
from drillrank import UPR, load_language_model

texts, ranker = json.loads(sys.argv[1]), UPR(load_language_model(sys.argv[2]))
before = [found.score for found in ranker.rank("Which river flows past the tower?", texts)]
child = os.fork()
if not child:
    signal.alarm(20)
    try:
        ranker.rank("Which river flows past the tower?", texts)
    except Exception as error:
        print(type(error).__name__, error, flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0, "the child was ended"
assert [found.score for found in ranker.rank("Which river flows past the tower?", texts)] == before
"""


def run(script: str, *arguments: str) -> str:
    """What a process of its own prints last."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=os.environ | {"OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return (done.stdout.splitlines() or [""])[-1]


def run_cases(*cases: tuple[str, ...]) -> list[Any]:
    return json.loads(run(PROGRAM, json.dumps(cases), json.dumps(TEXTS), str(size(30))))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return saved("t5-tied", tmp_path_factory)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    started = FakeServer("vllm", saved("qwen2", tmp_path_factory))
    yield started
    started.stop()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_a_gpu_does_not_come_along(folder):
    said = run(ON_A_GPU, json.dumps(TEXTS[:12]), f"hf:{folder}")
    assert said.startswith("DrillrankError The model was loaded on a GPU before")


@pytest.mark.timeout(300)  # five cases, of which two score in threads all the while
def test_forked_models_score_alike_and_torch_warns_of_one_thread(folder, server, tmp_path):
    """The embedded model and a served one need no warning; each kind is also forked while other threads score."""
    cases = [
        ("forked", "unigram", "unigram"),
        ("forked", server.address, server.address),
        ("while_scoring", server.address),
    ]
    local = f"hf:{folder}"
    if not torch.cuda.is_available():  # the models would be on the GPU
        cases += [("forked", local, local, f"st:{saved_encoder(tmp_path, TEXTS)}"), ("while_scoring", local)]
    embedded, served, _, *torches = run_cases(*cases)
    for furthest, told in (embedded, served):
        assert furthest < 1e-9
        assert told == []
    for furthest, [said] in torches[:1]:
        assert furthest < 1e-4
        assert "Load models in each process, or start processes by spawn." in said
