"""Our store and retrievers of LangChain pass the kit of `drillrank.testing`."""

from __future__ import annotations

from typing import Any

from langchain_ext import D3Retriever, MultiViewRetriever, PromptRankRetriever
from tests.conformance.kit_langchain import LangChainRetrieverTests
from tests.conformance.kit_stores import LangChainStoreTests


def tenant_filter(tenant: str | None) -> Any:
    return None if tenant is None else {"tenant": tenant}


class TestLangChainStore(LangChainStoreTests):
    pass


class TestMultiViewRetriever(LangChainRetrieverTests):
    stores_sections = True

    def make_retriever(self, store: Any, tenant: str | None, top_n: int | None) -> Any:
        return MultiViewRetriever(source=store, filters=tenant_filter(tenant), top_n=top_n or 5)


class TestD3Retriever(LangChainRetrieverTests):
    stores_sections = True

    def make_retriever(self, store: Any, tenant: str | None, top_n: int | None) -> Any:
        return D3Retriever(source=store, filters=tenant_filter(tenant), top_n=top_n)


class TestPromptRankRetriever(LangChainRetrieverTests):
    def make_retriever(self, store: Any, tenant: str | None, top_n: int | None) -> Any:
        visible = None if tenant is None else lambda document: document.metadata["tenant"] == tenant
        source = store.as_retriever(search_kwargs={"k": 20, "filter": visible})
        return PromptRankRetriever(source=source, filters=tenant_filter(tenant), top_n=top_n)
