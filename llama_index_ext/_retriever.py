"""Base of the retrievers: one generator of requests for synchronous and asynchronous calls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from drillrank.frameworks.inputs import clean_question
from drillrank.llm import LLM, Requests, Usage, arun, run


class QueryRetriever(BaseRetriever):
    """Base of the retrievers."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return run(**self._run_arguments(query_bundle))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await arun(**self._run_arguments(query_bundle))

    def _run_arguments(self, query_bundle: QueryBundle) -> dict[str, Any]:
        """Return the arguments of `run` and `arun` for a question."""
        usage, question = Usage(), clean_question(query_bundle.query_str)
        requests = self._retrieve_requests(question, replace(query_bundle, query_str=question), usage)
        return {"requests": requests, "llm": self._framework_llm(), "usage": usage}

    def _framework_llm(self) -> LLM | None:
        """Return the LLM for the prompts of a question."""
        return None

    def _retrieve_requests(self, query: str, query_bundle: QueryBundle, usage: Usage) -> Requests[list[NodeWithScore]]:
        """Return the nodes for a question, best first. `usage` counts the cost of the LLM."""
        raise NotImplementedError  # not abstract: the framework makes spans of abstract methods
