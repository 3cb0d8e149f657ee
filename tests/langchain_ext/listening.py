"""A callback handler that records runs and events."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler


class Log(BaseCallbackHandler):
    """Runs by their id: kind, parent, and whether they ended; and custom events."""

    def __init__(self) -> None:
        self.runs: dict[UUID, list[Any]] = {}
        self.custom: list[tuple[str, Any, UUID]] = []

    def on_retriever_start(self, *args: Any, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any) -> None:
        self.runs[run_id] = ["retriever", parent_run_id, 0]

    def on_chat_model_start(self, *args: Any, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any) -> None:
        self.runs[run_id] = ["llm", parent_run_id, 0]

    def on_chain_start(self, *args: Any, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any) -> None:
        self.runs[run_id] = ["chain", parent_run_id, 0]

    def _end(self, *args: Any, run_id: UUID, **kwargs: Any) -> None:
        if run_id in self.runs:
            self.runs[run_id][2] += 1

    on_retriever_end = on_retriever_error = on_llm_end = on_llm_error = on_chain_end = on_chain_error = _end

    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self.custom.append((name, data, run_id))

    def above(self, run_id: UUID) -> list[str]:
        kinds = []
        parent = self.runs[run_id][1]
        while parent is not None:
            kinds.append(self.runs[parent][0])
            parent = self.runs[parent][1]
        return kinds
