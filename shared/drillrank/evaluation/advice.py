"""What to do about a comparison, in words that its intervals bear out."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from drillrank.evaluation.statistics import Pair

EQUAL = 0.01  # a difference that nobody notices; of measures between 0 and 1
MOST_QUESTIONS = 20_000  # that it is worth asking for
_LOST = 0.1  # share of questions without evidence among the candidates from which on they are the problem
_RANKERS, _TUNED = ("UPR", "PromptRank"), ("UPR", "PromptRank", "PathSearch", "MultiViewIndex", "D3")


def advice(
    pairs: Mapping[str, Pair], specs: Mapping[str, str], ceiling: float, strangers: Collection[str] = ()
) -> list[str]:
    """What helps, what hurts a good first stage, what nobody can tell yet, and what to try next.

    Args:
        pairs: The first stage and each component, by its name; none of what answered no question.
        specs: What each component is.
        ceiling: Share of questions with evidence among the candidates.
        strangers: Components that brought nothing that the questions can know.
    """
    said = []
    for name, spec in specs.items():
        pair = pairs.get(name)
        if pair is None:
            said.append(f"{name} answered no question.")
        elif name in strangers:
            said.append(
                f"Nothing that {name} brought is in the corpus or among the candidates, by id or by text, so gold ids "
                "cannot tell what it is worth: give its passages the corpus's ids, or ask by answers."
            )
        else:
            said.append(" ".join([_verdict(pair), *_next(spec, helps=pair.verdict == "helps")]))
    lost = 1 - ceiling
    if lost >= _LOST:
        said.append(
            f"{lost:.0%} of the questions have no evidence among the candidates: no reranker can help them. More "
            "candidates, or another first stage, may."
        )
    return said


def _verdict(pair: Pair) -> str:
    mean, low, high, _, n = pair.difference
    change = f"{pair.measure} {mean:+.3f} ({low:+.3f} to {high:+.3f})"
    if pair.verdict == "helps":
        return f"{pair.after} helps: {change}."
    if pair.verdict == "hurts":
        return f"{pair.after} hurts a first stage that was better without it: {change}. Leave it out."
    if low > -EQUAL and high < EQUAL:
        return f"{pair.after} and {pair.before} are practically equal: {change}. Take the cheaper one."
    if pair.needed is None:
        more = "there is no difference at all"
    elif pair.needed > MOST_QUESTIONS:
        more = "so small a difference is not worth the questions that would tell"
    else:
        more = f"about {pair.needed:,} such questions would"
    return f"{pair.after}: {n:,} questions cannot tell, {change}; {more}."


def _next(spec: str, *, helps: bool) -> list[str]:
    """Which setting or model of a component of ours has not been tried; nothing for those of others."""
    own: dict[str, Any] = json.loads(spec) if spec.startswith("{") else {"component": spec}
    kind = own.get("component")
    if kind not in _TUNED:
        return []
    lexical = str(own.get("model", "unigram")).partition(":")[0] == "unigram"
    tried = []
    if kind in _RANKERS and not helps:
        tried += ['prior="retrieval"'] if own.get("prior") is None else []
        tried += ["fitted=true"] if lexical and not own.get("fitted") and own.get("model") is None else []
    if kind in (*_RANKERS, "PathSearch") and lexical:
        tried.append('model="st:..." or "hf:..."')
    return [f"To try next: {', '.join([*tried, f'`drillrank tune --component {kind}`'])}."]
