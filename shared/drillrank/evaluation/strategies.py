"""D3's strategies as components of a comparison (Nair et al. 2023, sections 3.3.2 and 4, table 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from drillrank.drilldown.settings import Strategy
from drillrank.errors import InvalidInput
from drillrank.llm import LLM

TABLE_1: tuple[Strategy, ...] = ("paragraph", "chunk", "map-reduce", "map-reduce-optimised", "base", "hierbase")
"""Strategies of table 1 and, in section 5.3, "hierbase"."""
CHUNK_TOKENS = 3500  # size of a prompt of CHUNK (section 4)
_CHUNKED = ("chunk", "map-reduce-optimised")
_MAX_CALLS = 10_000  # PARAGRAPH asks about every paragraph


def d3_strategies(llm: LLM | str, names: Sequence[Strategy] = TABLE_1, **settings: Any) -> dict[str, dict[str, Any]]:
    """Return strategies of D3 as `components` of `compare`, for paragraphs as the unit.

    Args:
        llm: LLM that selects sections and paragraphs, or its address.
        names: Names of strategies: see `D3Settings.paragraphs`.
        settings: Further settings of D3, such as `preset="paper"`.

    Raises:
        InvalidInput: A strategy does not exist.

    >>> list(d3_strategies("http://localhost:8000/v1#qwen", ["base", "chunk"]))
    ['D3 base', 'D3 chunk']
    """
    components: dict[str, dict[str, Any]] = {}
    for name in names:
        if name not in get_args(Strategy):
            raise InvalidInput(f"names must be strategies out of {', '.join(get_args(Strategy))}, got {name!r:.200}.")
        sizes = {"max_prompt_tokens": CHUNK_TOKENS} if name in _CHUNKED else {}
        fixed = {"component": "D3", "llm": llm, "paragraphs": name, "unit": "paragraph", "max_calls": _MAX_CALLS}
        components[f"D3 {name}"] = {**fixed, **sizes, **settings}
    return components
