"""LlamaIndex LLMs for the suites."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from pydantic import PrivateAttr

from tests.conformance.readers import Crowd, everything


class Reader(CustomLLM):
    """Answers by a function, blocking, as LLMs on the same machine do; by default with all that is offered."""

    _answer: Any = PrivateAttr()
    _crowd: Crowd = PrivateAttr(default_factory=Crowd)

    def __init__(self, answer: Any = everything, crowd: Crowd | None = None, **fields: Any) -> None:
        super().__init__(**fields)
        self._answer = answer
        self._crowd = crowd or Crowd()

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="reader")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=self._crowd.says(self._answer, prompt))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError


class ChatReader(Reader):
    """A chat model with an asynchronous call of its own; remembers the messages."""

    _messages: list[list[ChatMessage]] = PrivateAttr(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="chat reader", is_chat_model=True)

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        self._messages.append(list(messages))
        said = self._crowd.says(self._answer, str(messages[-1].content))
        return ChatResponse(message=ChatMessage(role="assistant", content=said))

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        self._messages.append(list(messages))
        with self._crowd:
            await asyncio.sleep(self._crowd.seconds)
            self._crowd.prompts.append(str(messages[-1].content))
            said = await asyncio.to_thread(self._answer, str(messages[-1].content))
        return ChatResponse(message=ChatMessage(role="assistant", content=said))
