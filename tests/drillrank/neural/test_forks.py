"""Models in processes that were forked after they were used: they compute, alike, and say that it is on one thread."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import torch

from tests.drillrank.neural.conftest import saved
from tests.drillrank.neural.fake_server import FakeServer
from tests.drillrank.neural.tiny_encoder import saved_encoder
from tests.examples import size

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")

TEXTS = [f"The river {n} flows through the old town, past {n % 7} gates and a tower. " * 6 for n in range(size(60))]
FORKED = """
import gc, json, os, signal, sys, warnings
from drillrank import UPR, load_language_model

def scores(ranker):
    return [found.score for found in sorted(ranker.rank("Which river flows past the tower?", texts), key=place)]

texts, specs = json.loads(sys.argv[1]), sys.argv[2:]
place = lambda found: found.details["position"]
rankers = [UPR(load_language_model(spec)) for spec in specs]
before = scores(rankers[0])  # the second model is first used in the child
child = os.fork()
if not child:
    signal.alarm(40)  # it used to wait for ever
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        after = [scores(ranker) for ranker in rankers]
    furthest = max(abs(one - other) for one, other in zip(before, after[0]))
    gc.collect()  # what the parent's model leaves must not be freed here
    print(json.dumps([furthest, [str(one.message) for one in told if "forked" in str(one.message)]]), flush=True)
    sys.exit()
assert os.waitpid(child, 0)[1] == 0, "the child was ended"
assert scores(rankers[0]) == before
"""


WHILE_SCORING = """
import json, os, signal, sys, threading, warnings
from drillrank import UPR, load_language_model

warnings.simplefilter("ignore")
texts, ranker = json.loads(sys.argv[1]), UPR(load_language_model(sys.argv[2]))
scores = lambda: [found.score for found in ranker.rank("Which river flows past the tower?", texts)]
before, ends = scores(), threading.Event()

def score():
    while not ends.is_set():
        assert scores() == before

threads = [threading.Thread(target=score) for _ in range(2)]
for thread in threads:
    thread.start()
for number in range(int(sys.argv[3])):
    child = os.fork()
    if not child:
        signal.alarm(60)  # it used to wait for ever
        os._exit(int(max(abs(one - other) for one, other in zip(before, scores())) > 1e-4))
    assert os.waitpid(child, 0)[1] == 0, f"child {number} was ended, or found something else"
ends.set()
for thread in threads:
    thread.join()
assert scores() == before
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


def run(script: str, texts: list[str], *specs: str) -> str:
    """What a process of its own prints last."""
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(texts), *specs],
        env=os.environ | {"OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return (done.stdout.splitlines() or [""])[-1]


def forked(*specs: str) -> tuple[float, list[str]]:
    """How far scores of the child are from the parent's, and its warnings."""
    furthest, told = json.loads(run(FORKED, TEXTS, *specs))
    return furthest, told


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return saved("t5-tied", tmp_path_factory)


@pytest.fixture
def server(tmp_path_factory):
    started = FakeServer("vllm", saved("qwen2", tmp_path_factory))
    yield started
    started.stop()


@pytest.mark.skipif(torch.cuda.is_available(), reason="the models would be on a GPU")
def test_torch_goes_on_with_one_thread(folder, tmp_path):
    furthest, [said] = forked(f"hf:{folder}", f"hf:{folder}", f"st:{saved_encoder(tmp_path, TEXTS)}")
    assert furthest < 1e-4
    assert "Load models in each process, or start processes by spawn." in said


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_a_gpu_does_not_come_along(folder):
    assert run(ON_A_GPU, TEXTS[:12], f"hf:{folder}").startswith("DrillrankError The model was loaded on a GPU before")


@pytest.mark.skipif(torch.cuda.is_available(), reason="the models would be on a GPU")
@pytest.mark.parametrize("kind", ["hf", "served"])
def test_forks_while_other_threads_score(folder, server, kind):
    spec = f"hf:{folder}" if kind == "hf" else server.address
    run(WHILE_SCORING, TEXTS[:12], spec, str(size(30)))


def test_the_embedded_model_and_a_served_one_need_nothing(server):
    for spec in ("unigram", server.address):
        furthest, told = forked(spec, spec)
        assert furthest < 1e-9
        assert told == []
