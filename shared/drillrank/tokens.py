"""Counting LLM tokens offline."""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tiktoken

TokenCount = Callable[[str], int]

_CL100K_CACHE_KEY = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"  # tiktoken's file name of cl100k_base
_SLICE = 20_000  # characters; byte-pair merging is super-linear in unbroken runs
_environment = threading.Lock()


def count_tokens(text: str) -> int:
    """Tokens of a text in cl100k_base, or an estimate of one token for four bytes where that encoding is not at hand.

    The encoding is read from a tiktoken cache folder or from the copy that llama-index-core carries; nothing is
    downloaded.

    >>> 2 <= count_tokens("Hello, world!") <= 6
    True
    """
    encoding = _encoding()
    if encoding is None:
        return -(-len(text.encode("utf-8", "surrogatepass")) // 4)
    return sum(len(encoding.encode_ordinary(text[i : i + _SLICE])) for i in range(0, len(text), _SLICE))


def token_counter(*models: object) -> TokenCount:
    """`count_tokens` where its encoding is at hand, else the own `count_tokens` of the first model that has one.

    Without either, `count_tokens` estimates.
    """
    own = (getattr(model, "count_tokens", None) for model in models)
    counters = [count_tokens] if _encoding() else [count for count in own if callable(count)]
    return counters[0] if counters else count_tokens


def is_estimate(count: TokenCount) -> bool:
    """Whether a counter of `token_counter` estimates."""
    return count is count_tokens and _encoding() is None


@lru_cache(maxsize=1)
def _encoding() -> tiktoken.Encoding | None:
    import tiktoken

    folders = [os.environ.get("TIKTOKEN_CACHE_DIR"), _llama_index_folder()]
    for folder in folders:
        if folder and (Path(folder) / _CL100K_CACHE_KEY).is_file():
            with _environment:  # tiktoken takes its cache folder from the environment only
                before = os.environ.get("TIKTOKEN_CACHE_DIR")
                os.environ["TIKTOKEN_CACHE_DIR"] = folder
                try:
                    return tiktoken.get_encoding("cl100k_base")
                finally:
                    if before is None:
                        del os.environ["TIKTOKEN_CACHE_DIR"]
                    else:
                        os.environ["TIKTOKEN_CACHE_DIR"] = before
    return None


def _llama_index_folder() -> str | None:
    try:
        spec = importlib.util.find_spec("llama_index")
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        cache = Path(folder) / "core" / "_static" / "tiktoken_cache"
        if cache.is_dir():
            return str(cache)
    return None
