"""Answers of asynchronous functions, for code that is not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any


def awaited(answer: Awaitable[Any]) -> Any:
    """What an asynchronous function returns, also where an event loop is running, as in a notebook."""

    async def waiting() -> Any:
        return await answer

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(waiting())
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(copy_context().run, asyncio.run, waiting()).result()
