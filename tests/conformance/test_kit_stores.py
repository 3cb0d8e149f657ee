"""Our record stores pass the kit of `drillrank.testing` over the vector stores in memory of both frameworks."""

from __future__ import annotations

from tests.conformance.kit_stores import LangChainStoreTests, LlamaIndexStoreTests


class TestLangChainStore(LangChainStoreTests):
    pass


class TestLlamaIndexStore(LlamaIndexStoreTests):
    pass
