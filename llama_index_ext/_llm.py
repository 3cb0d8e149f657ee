"""A LlamaIndex LLM as what a dialogue asks."""

from __future__ import annotations

from llama_index.core import PromptTemplate
from llama_index.core.llms import LLM

_PROMPT = PromptTemplate("{text}")  # a dialogue's prompts are complete; braces in them are text


class FrameworkLLM:
    """Asks through `predict` and `apredict`, so that chat models, formatting and events work as everywhere else."""

    def __init__(self, llm: LLM) -> None:
        self._llm = llm

    def complete(self, prompt: str) -> str:
        """The LLM's answer."""
        return self._llm.predict(_PROMPT, text=prompt)

    async def acomplete(self, prompt: str) -> str:
        """The LLM's answer, by its own asynchronous call."""
        return await self._llm.apredict(_PROMPT, text=prompt)
