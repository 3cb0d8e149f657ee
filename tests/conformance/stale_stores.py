"""Stores whose records change after a component was built."""

from __future__ import annotations

from typing import Any

from llama_index.core import VectorStoreIndex

from drillrank.testing.listening import Heard
from tests.conformance.frameworks import LangChain, LlamaIndex
from tests.conformance.hearing import ask
from tests.conformance.leaks import (
    QUESTION,
    World,
    cases,
    letters,
)
from tests.conformance.server_store import ServerStore
from tests.conformance.text_store import TextStore


def in_memory(form: Any) -> World:
    return World(LangChain, LangChain.index(embedding=LangChain.embedding(letters)), form)


def on_a_server(form: Any) -> World:
    return World(LangChain, ServerStore(LangChain.embedding(letters)), form)


def vectors_only(form: Any) -> World:
    return World(LlamaIndex, LlamaIndex.index(embedding=LlamaIndex.embedding(letters)), form)


def with_texts(form: Any) -> World:
    model = LlamaIndex.embedding(letters)
    return World(LlamaIndex, VectorStoreIndex.from_vector_store(TextStore(), embed_model=model), form)


STORES = {"langchain": in_memory, "server": on_a_server, "simple": vectors_only, "texts": with_texts}
CASES = cases(STORES)


async def asked(world: World, component: Any, llm: Any, theirs: bool, asynchronous: bool) -> Heard:
    return await ask(world.host, component, QUESTION, llm, theirs, asynchronous)
