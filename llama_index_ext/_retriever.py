"""Base of the retrievers: one generator of requests for synchronous and asynchronous calls."""

from __future__ import annotations

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from drillrank.llm import LLM, Requests, Usage, arun, run
from drillrank.passages import check_query


class QueryRetriever(BaseRetriever):
    """Base of the retrievers."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        usage = Usage()
        requests = self._retrieve_requests(check_query(query_bundle.query_str), query_bundle, usage)
        return run(requests, self._framework_llm(), usage=usage, workers=self._workers)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        usage = Usage()
        requests = self._retrieve_requests(check_query(query_bundle.query_str), query_bundle, usage)
        return await arun(requests, self._framework_llm(), usage=usage, workers=self._workers)

    @property
    def _workers(self) -> int:
        """Largest number of requests at the same time."""
        return 4

    def _framework_llm(self) -> LLM | None:
        """Return the LLM for the prompts of a question."""
        return None

    def _retrieve_requests(self, query: str, query_bundle: QueryBundle, usage: Usage) -> Requests[list[NodeWithScore]]:
        """Return the nodes for a question, best first. `usage` counts the cost of the LLM."""
        raise NotImplementedError  # not abstract: the framework makes spans of abstract methods
