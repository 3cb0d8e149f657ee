"""What all retrievers share: they are asked in both forms, and find in one."""

from __future__ import annotations

from abc import abstractmethod

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from drillrank.hosts.calls import Calls, arun_calls, run_calls
from drillrank.hosts.fields import Fixed
from drillrank.passages import check_query


class AskedRetriever(Fixed, BaseRetriever):
    """Base of those that find what a question asks for."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return run_calls(self._found(check_query(query_bundle.query_str), query_bundle))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await arun_calls(self._found(check_query(query_bundle.query_str), query_bundle))

    @abstractmethod
    def _found(self, query: str, query_bundle: QueryBundle) -> Calls[list[NodeWithScore]]:
        """Nodes for a question, best first."""
