"""A LangChain language model as what a dialogue asks."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import Runnable


class FrameworkLLM:
    """Asks a chat model or a text model; its calls are children of the run whose callbacks are given."""

    def __init__(self, llm: Runnable[Any, Any], callbacks: BaseCallbackManager) -> None:
        self._chain = llm | StrOutputParser()
        self._callbacks = callbacks

    def complete(self, prompt: str) -> str:
        """The model's answer."""
        return self._chain.invoke(prompt, {"callbacks": self._callbacks})

    async def acomplete(self, prompt: str) -> str:
        """The model's answer, by its own asynchronous call."""
        return await self._chain.ainvoke(prompt, {"callbacks": self._callbacks})
