"""A process that ingests documents into a Chroma of its own, and says so line by line: it can be ended midway."""

from __future__ import annotations

import sys
import time
import zlib
from pathlib import Path
from typing import Any

DOCUMENTS = {
    f"{number}.md": "\n\n".join(f"# Part {part}\n\nPart {part} of book {number} is about owls." for part in range(6))
    for number in range(8)
}
SECONDS = 0.02  # for the vectors of a document, so that there is a midway


def vectors(texts: list[str]) -> list[list[float]]:
    """Any will do."""
    print("embedding", flush=True)
    time.sleep(SECONDS)
    return [[zlib.crc32(f"{text}{number}".encode()) / 2**32 for number in range(8)] for text in texts]


def collection(folder: Path) -> Any:
    import chromadb

    client = chromadb.PersistentClient(str(folder / "chroma"), chromadb.Settings(anonymized_telemetry=False))
    return client.get_or_create_collection("books")


def llama_index(folder: Path) -> None:
    from llama_index.core import Document
    from llama_index.core.embeddings import BaseEmbedding
    from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
    from llama_index.core.storage.docstore import SimpleDocumentStore
    from llama_index.vector_stores.chroma import ChromaVectorStore

    from llama_index_ext import MultiViewNodeParser

    class Model(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return vectors([text])[0]

        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return vectors(texts)

        _get_query_embedding = _get_text_embedding

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return vectors([query])[0]

    kept = folder / "docstore.json"
    documents = SimpleDocumentStore.from_persist_path(str(kept)) if kept.exists() else SimpleDocumentStore()
    pipeline = IngestionPipeline(
        transformations=[MultiViewNodeParser(), Model(embed_batch_size=5)],
        vector_store=ChromaVectorStore(chroma_collection=collection(folder)),
        docstore=documents,
        docstore_strategy=DocstoreStrategy.UPSERTS,
        disable_cache=True,
    )
    for name, text in DOCUMENTS.items():
        pipeline.run(documents=[Document(text=text, id_=name)])
    documents.persist(str(kept))


def langchain(folder: Path) -> None:
    import chromadb
    from langchain_chroma import Chroma
    from langchain_classic.indexes import SQLRecordManager
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.indexing import index

    from langchain_ext import MultiViewTextSplitter

    class Model(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return vectors(texts)

        def embed_query(self, text: str) -> list[float]:
            return vectors([text])[0]

    client = chromadb.PersistentClient(str(folder / "chroma"), chromadb.Settings(anonymized_telemetry=False))
    records = SQLRecordManager("books", db_url=f"sqlite:///{folder}/records.db")
    records.create_schema()
    pages = [Document(text, id=name, metadata={"source": name}) for name, text in DOCUMENTS.items()]
    pieces = MultiViewTextSplitter().split_documents(pages)
    store = Chroma("books", Model(), client=client)
    index(pieces, records, store, batch_size=5, cleanup="scoped_full", source_id_key="source", key_encoder="sha256")


if __name__ == "__main__":
    {"llama_index": llama_index, "langchain": langchain}[sys.argv[1]](Path(sys.argv[2]))
    print("done", flush=True)
