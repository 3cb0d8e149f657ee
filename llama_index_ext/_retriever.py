"""What all retrievers share: they are asked in both forms, and find in one."""

from __future__ import annotations

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from drillrank.llm import LLM, Requests, Usage, arun, run
from drillrank.passages import check_query


class QueryRetriever(BaseRetriever):
    """Base of those that find what a question asks for."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        usage = Usage()
        requests = self._found(check_query(query_bundle.query_str), query_bundle, usage)
        return run(requests, self._framework_llm(), usage=usage, workers=self._workers)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        usage = Usage()
        requests = self._found(check_query(query_bundle.query_str), query_bundle, usage)
        return await arun(requests, self._framework_llm(), usage=usage, workers=self._workers)

    @property
    def _workers(self) -> int:
        """Most requests at the same time."""
        return 4

    def _framework_llm(self) -> LLM | None:
        """The LLM that a question's prompts go to."""
        return None

    def _found(self, query: str, query_bundle: QueryBundle, usage: Usage) -> Requests[list[NodeWithScore]]:
        """Nodes for a question, best first; `usage` counts what the LLM costs."""
        raise NotImplementedError  # and not abstract: of such the host makes spans
