"""How threads of torch wait for each other, as the library of threads itself tells it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from drillrank.likelihood.process import require_torch

LOAD = """
import logging, os
logging.basicConfig(level=logging.INFO, format="said: %(message)s")
{before}
from drillrank import load_language_model
load_language_model("hf:no-such-model")
print("left:", os.environ.get("OMP_WAIT_POLICY"))
"""


def said_by_openmp(before: str = "", packages: Path | None = None, **chosen: str) -> tuple[int, str, str]:
    """How often a thread of GNU's library looks before it sleeps, what the environment keeps, what the log says."""
    names = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"}
    environment = {name: value for name, value in os.environ.items() if name not in names}
    environment |= {"OMP_DISPLAY_ENV": "verbose", **chosen}
    if packages is not None:
        environment["PYTHONPATH"] = os.pathsep.join([str(packages), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", LOAD.format(before=before)], env=environment, capture_output=True, text=True, check=True
    )
    counts = re.findall(r"GOMP_SPINCOUNT = '(\d+)'", done.stderr)
    if not counts:
        pytest.skip("torch stands on another library of threads here")
    log = " ".join(line for line in done.stderr.splitlines() if line.startswith("said: Threads"))
    return int(counts[-1]), done.stdout.strip(), log


@pytest.fixture
def thread_library_alone(tmp_path) -> Path:
    """A folder with a package "torch" that loads torch's library of threads, and nothing of the other 300 MB."""
    libraries = sorted((Path(find_spec("torch").origin).parent / "lib").glob("libgomp*"))
    if not libraries:
        pytest.skip("torch stands on another library of threads here")
    for package, code in (("torch", f"import ctypes\nctypes.CDLL({str(libraries[0])!r})\n"), ("transformers", "")):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(code, encoding="utf-8")
    return tmp_path


def test_threads_sleep_while_they_wait_and_the_environment_is_left_as_it_was():
    looks, left, log = said_by_openmp()
    assert looks == 0
    assert left == "left: None"
    assert "OMP_WAIT_POLICY=active" in log


def test_what_the_user_chose_stays(thread_library_alone):
    found, left, log = said_by_openmp(packages=thread_library_alone, OMP_WAIT_POLICY="active", GOMP_SPINCOUNT="5000")
    assert (found, left, log) == (5000, "left: active", "")


def test_the_library_of_threads_alone_is_told_the_same(thread_library_alone):
    assert said_by_openmp(packages=thread_library_alone)[:2] == (0, "left: None")


def test_torch_that_is_there_already_is_left_alone(thread_library_alone):
    import torch

    before = dict(os.environ)
    assert require_torch("hf") is torch
    assert os.environ == before
    looks, _, log = said_by_openmp("import torch", packages=thread_library_alone)
    assert looks > 0
    assert not log
