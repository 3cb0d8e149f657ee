"""Our store and retrievers of LlamaIndex pass the kit of `drillrank.testing`."""

from __future__ import annotations

from typing import Any

from llama_index_ext import D3Retriever, MultiViewRetriever, PromptRankRetriever
from tests.conformance.kit_llama_index import LlamaIndexRetrieverTests
from tests.conformance.kit_stores import LlamaIndexStoreTests, tenant_filters


class TestLlamaIndexStore(LlamaIndexStoreTests):
    pass


class TestMultiViewRetriever(LlamaIndexRetrieverTests):
    stores_sections = True

    def make_retriever(self, store: Any, tenant: str | None, top_n: int | None) -> Any:
        return MultiViewRetriever(source=store, filters=tenant_filters(tenant), top_n=top_n or 5)


class TestD3Retriever(LlamaIndexRetrieverTests):
    stores_sections = True

    def make_retriever(self, store: Any, tenant: str | None, top_n: int | None) -> Any:
        return D3Retriever(source=store, filters=tenant_filters(tenant), top_n=top_n)


class TestPromptRankRetriever(LlamaIndexRetrieverTests):
    def make_retriever(self, store: Any, tenant: str | None, top_n: int | None) -> Any:
        source = store.as_retriever(similarity_top_k=20, filters=tenant_filters(tenant))
        return PromptRankRetriever(source=source, filters=tenant_filters(tenant), top_n=top_n)
