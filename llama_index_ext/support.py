"""Evaluator of LlamaIndex that checks if contexts support a response."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.evaluation import BaseEvaluator, EvaluationResult

from drillrank.errors import InvalidInput
from drillrank.generation.support import check_support
from drillrank.text import check_language


class SupportEvaluator(BaseEvaluator):
    """Evaluates without an LLM if the contexts support every sentence of a response.

    `passing` is True if they support each sentence, `score` the lowest support of a sentence, from 0 to 1, and
    `feedback` lists the sentences that they do not support, with the numbers and names that do not fit. The result of a
    response without a sentence is invalid.

    Args:
        language: Language of the contexts, as for `drillrank.check_support`.

    Raises:
        InvalidInput: An argument cannot be used, or the response or the contexts are missing.

    >>> contexts = ["The Rhine is 1,233 km long."]
    >>> result = SupportEvaluator().evaluate(response="The Rhine is 1,320 km long.", contexts=contexts)
    >>> result.passing, result.feedback
    (False, 'Not supported: The Rhine is 1,320 km long. (1,320)')
    """

    def __init__(self, language: str = "english") -> None:
        self._language = check_language(language)

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts_dict: dict[str, Any]) -> None:
        """Ignore prompts: the evaluator has none."""

    def evaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        **kwargs: Any,  # the framework passes arguments of other evaluators
    ) -> EvaluationResult:
        """Check the sentences of a response. The query is not read."""
        if response is None or contexts is None:
            missing = "response" if response is None else "contexts"
            raise InvalidInput(f"{missing} is missing. Pass response and contexts, or use evaluate_response.")
        if isinstance(contexts, str):
            raise InvalidInput(f"contexts must be a list of strings, got {contexts!r:.200}. Pass [contexts].")
        judgments = check_support(response, list(contexts), language=self._language)
        if not judgments:
            reason = "The response has no sentence to check."
            return EvaluationResult(
                query=query, contexts=contexts, response=response, invalid_result=True, invalid_reason=reason
            )
        failed = [item for item in judgments if not item.supported]
        texts = [f"{item.sentence} ({', '.join(item.doubts)})" if item.doubts else item.sentence for item in failed]
        return EvaluationResult(
            query=query,
            contexts=contexts,
            response=response,
            passing=not failed,
            score=min(item.support for item in judgments),
            feedback=f"Not supported: {' / '.join(texts)}" if texts else "Every sentence is supported.",
        )

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        sleep_time_in_seconds: int = 0,
        **kwargs: Any,
    ) -> EvaluationResult:
        """Run `evaluate` without blocking the event loop."""
        await asyncio.sleep(sleep_time_in_seconds)
        return await asyncio.to_thread(self.evaluate, query, response, contexts, **kwargs)
