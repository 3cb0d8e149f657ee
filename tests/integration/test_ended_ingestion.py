"""Processes that are ended while they ingest: run again, the store holds what it would have held."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.ingesting import DOCUMENTS, collection

pytest.importorskip("chromadb", reason="chromadb is not installed: make integration")

Stop = Callable[[int], bool]
"""From the number of batches so far: whether to end the process."""


def ingest(host: str, folder: Path, ends: Stop | None = None, by: signal.Signals = signal.SIGTERM) -> str:
    """What the process said last."""
    command = [sys.executable, "-m", "tests.integration.ingesting", host, str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        batches, said = 0, ""
        for line in process.stdout:
            said = line.strip()
            batches += said == "embedding"
            if ends and ends(batches):
                process.send_signal(by)
                break
        process.stdout.read()
    return said


def rows(folder: Path) -> dict[str, str]:
    """Read by another process: a client of Chroma keeps what it has seen of a folder."""
    held = collection(folder).get(include=["documents"])
    return dict(zip(held["ids"], held["documents"], strict=True))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("host", ["llama_index", "langchain"])
def test_an_ended_process_is_taken_up_again(host, by, tmp_path):
    whole, ended = tmp_path / "whole", tmp_path / "ended"
    for folder in (whole, ended):
        folder.mkdir()
    assert ingest(host, whole) == "done"
    for stop in (4, 11):
        assert ingest(host, ended, lambda batches, stop=stop: batches == stop, by) != "done"
    assert ingest(host, ended) == "done"
    assert rows(ended) == rows(whole)
    assert len(rows(whole)) >= 3 * len(DOCUMENTS)
