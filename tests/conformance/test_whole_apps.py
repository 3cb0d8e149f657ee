"""Whole applications: files are read, split, stored, retrieved, reranked and answered from; updated, deleted, reloaded.

Each framework's own classes do everything that drillrank's components do not: index or store, refresh, persistence,
chains and query engines.
"""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.indexing import InMemoryRecordManager
from langchain_core.indexing import index as index_documents
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.query_engine import RetrieverQueryEngine
from pydantic import Field

import langchain_ext
import llama_index_ext
from drillrank.text import terms
from tests.conformance.frameworks import DocumentEmbeddings, LlamaIndex, NodeEmbedding
from tests.pdf_files import Mark, Text, pdf_of

RETRIEVERS = ("D3Retriever", "MultiViewRetriever", "PromptRankRetriever")
DOOR = "What is the code of the door?"
QUESTIONS = {
    DOOR: "1234",
    "How long is the heater covered?": "two years",
    "Which item costs 774 crowns?": "Item 130",
}


def write_files(folder: Path) -> None:
    """Write the files of two tenants, which have one file name in common."""
    items = " ".join(f"<b>Item {number}</b> costs {number * 37 % 1009} crowns." for number in range(150))
    heading, warranty = Text("Warranty", size=16, bold=True), Text("The heater is covered for two years.", y=120)
    cleaning = [Text("Cleaning", size=16, bold=True), Text("Boil vinegar once a month.", y=120)]
    for tenant, code in (("a", 1234), ("b", 9876)):
        (folder / tenant).mkdir()
        (folder / tenant / "guide.md").write_text(
            f"# Guide\n\n## Door\n\nThe code of the door is {code}.\n\n## Owls\n\nOwls hoot.\n"
        )
    (folder / "a" / "shop.html").write_text(f"<h1>Shop</h1><p>Open daily.</p><h2>Prices</h2><p>{items}</p>")
    bookmarks = [Mark("Warranty", 0), Mark("Cleaning", 1)]
    (folder / "a" / "kettle.pdf").write_bytes(pdf_of([[heading, warranty], cleaning], bookmarks).content())


def read_answer(prompt: str) -> str:
    """Return the sentence of a prompt that has most of the question's words, as an LLM might."""
    context, question = prompt.split("Query:", 1)
    words = set(terms(question))
    return max(re.split(r"(?<=\.)\s+|\n+", context), key=lambda line: len(words & set(terms(line))))


class NodeReader(CustomLLM):
    """The LLM for LlamaIndex."""

    prompts: list[str] = Field(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=8000)

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        self.prompts.append(prompt)
        return CompletionResponse(text=read_answer(prompt))

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError


class DocumentReader(BaseChatModel):
    """The LLM for LangChain."""

    prompts: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "reader"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        self.prompts.append(str(messages[-1].content))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(read_answer(self.prompts[-1])))])


class LlamaIndexApp:
    """An index of a folder, and query engines over it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.llm, self.embedding = folder, NodeReader(), NodeEmbedding()
        self.parser = llama_index_ext.MultiViewNodeParser(namespace_key="tenant")
        arguments: dict[str, Any] = {"transformations": [self.parser], "embed_model": self.embedding}
        self.index = VectorStoreIndex.from_documents(self.read(), **arguments)

    def read(self) -> list[Any]:
        documents = llama_index_ext.DrillrankReader().load_data(self.folder)
        for document in documents:
            document.metadata["tenant"] = Path(document.metadata["file_path"]).parent.name
        return documents

    def refresh(self) -> None:
        documents = self.read()
        self.index.refresh_ref_docs(documents)
        for id_ in set(self.index.ref_doc_info) - {document.id_ for document in documents}:
            self.index.delete_ref_doc(id_, delete_from_docstore=True)

    def reload(self, folder: Path) -> None:
        self.index.storage_context.persist(str(folder))
        stored = StorageContext.from_defaults(persist_dir=str(folder))
        self.index = load_index_from_storage(stored, embed_model=self.embedding, transformations=[self.parser])

    def retriever(self, name: str, tenant: str) -> Any:
        return getattr(llama_index_ext, name)(source=self.index, filters=LlamaIndex.filters(tenant=tenant), top_n=4)

    def ask(self, name: str, question: str, tenant: str) -> str:
        """Return the answer, after checks of what it is from."""
        reranker = llama_index_ext.UPRRerank(top_n=2, score="softmax")
        engine = RetrieverQueryEngine.from_args(self.retriever(name, tenant), self.llm, node_postprocessors=[reranker])
        response = engine.query(question)
        assert str(asyncio.run(engine.aquery(question))) == str(response)
        check_metadata([hit.metadata for hit in response.source_nodes], tenant)
        return str(response)


class LangChainApp:
    """A store of a folder that `index` keeps up to date, and chains over it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.llm, self.store = folder, DocumentReader(), InMemoryVectorStore(DocumentEmbeddings())
        self.splitter = langchain_ext.MultiViewTextSplitter(namespace_key="tenant")
        self.records = InMemoryRecordManager("files")
        self.records.create_schema()
        self.refresh()

    def refresh(self) -> None:
        documents = langchain_ext.DrillrankLoader(self.folder).load()
        for document in documents:
            document.metadata["tenant"] = Path(document.metadata["source"]).parent.name
        pieces, options = self.splitter.split_documents(documents), {"source_id_key": "source", "key_encoder": "sha256"}
        index_documents(pieces, self.records, self.store, cleanup="full", **options)

    def reload(self, folder: Path) -> None:
        self.store.dump(str(folder / "store.json"))
        self.store = InMemoryVectorStore.load(str(folder / "store.json"), self.store.embeddings)

    def retriever(self, name: str, tenant: str) -> Any:
        return getattr(langchain_ext, name)(source=self.store, filters={"tenant": tenant}, top_n=4)

    def ask(self, name: str, question: str, tenant: str) -> str:
        """Return the answer, after checks of what it is from."""
        evidence = langchain_ext.UPRRerank(top_n=2, score="softmax").as_runnable(self.retriever(name, tenant))
        found = evidence.invoke(question)
        check_metadata([document.metadata for document in found], tenant)
        context = evidence | (lambda documents: "\n\n".join(document.page_content for document in documents))
        prompt = ChatPromptTemplate.from_template("{context}\nQuery: {question}")
        chain: Any = {"context": context, "question": RunnablePassthrough()} | prompt | self.llm | StrOutputParser()
        answer = chain.invoke(question)
        assert asyncio.run(chain.abatch([question] * 2)) == [answer] * 2
        return str(answer)


def check_metadata(results: list[dict[str, Any]], tenant: str) -> None:
    """Check that results are of one tenant, and that any store would take their metadata."""
    assert results
    for metadata in results:
        assert metadata["tenant"] == tenant
        assert all(isinstance(value, str | int | float | bool) for value in metadata.values())
        json.dumps(metadata, allow_nan=False)


@pytest.mark.parametrize("build", [LlamaIndexApp, LangChainApp])
def test_an_app_from_files_to_answers(build, tmp_path):
    folder, copy = tmp_path / "files", tmp_path / "copy"
    folder.mkdir()
    copy.mkdir()
    write_files(folder)
    app = build(folder)
    for name in RETRIEVERS:
        for question, answer in QUESTIONS.items():
            assert answer in app.ask(name, question, "a"), name
        assert "9876" in app.ask(name, DOOR, "b")

    guide = folder / "a" / "guide.md"
    guide.write_text(guide.read_text().replace("1234", "5555"))
    (folder / "a" / "kettle.pdf").unlink()
    app.refresh()
    app.reload(copy)
    app.llm.prompts.clear()
    for name in RETRIEVERS:
        assert "5555" in app.ask(name, DOOR, "a"), name
        assert "two years" not in app.ask(name, "How long is the heater covered?", "a")
    prompts = " ".join(app.llm.prompts)
    assert not any(text in prompts for text in ("1234", "9876", "two years", "drillrank_"))
