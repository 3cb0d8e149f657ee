"""A LangChain chat model for the suites."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from tests.conformance.readers import Crowd, everything


class Reader(SimpleChatModel):
    """Answers by a function; by default with all that is offered."""

    answer: Callable[[str], str] = everything
    crowd: Any = Field(default_factory=Crowd)
    messages: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "reader"

    def _call(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> str:
        self.messages.append(messages)
        return self.crowd.says(self.answer, str(messages[-1].content))


class AsyncReader(Reader):
    """The same with an asynchronous call of its own."""

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        self.messages.append(messages)
        with self.crowd:
            await asyncio.sleep(self.crowd.seconds)
            self.crowd.prompts.append(str(messages[-1].content))
            said = await asyncio.to_thread(self.answer, str(messages[-1].content))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=said))])
