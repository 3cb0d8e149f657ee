"""What to do about a comparison, in words that its intervals bear out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drillrank.evaluation.comparison_result import Comparison
from drillrank.evaluation.running import FIRST_STAGE
from drillrank.evaluation.statistics import Pair, least_questions

EQUAL = 0.01  # a difference that nobody notices; of measures between 0 and 1
MOST_QUESTIONS = 20_000  # that it is worth asking for
_LOST = 0.1  # share of questions without evidence among the candidates from which on they are the problem
_RANKERS, _TUNED = ("UPR", "PromptRank"), ("UPR", "PromptRank", "PathSearch", "MultiViewIndex", "D3")


def advice(found: Comparison, components: Mapping[str, Any], baselines: Sequence[str]) -> list[str]:
    """What helps, what hurts a good first stage, what nobody can tell yet, and what to try next.

    Args:
        found: What was measured.
        components: What was asked for, by name.
        baselines: What takes part beside the first stage.
    """
    lines = []
    failed, unjudged = found.failed, found.unjudged
    for name, given in components.items():
        results = found.results[name].values()
        against = {pair.before: pair for pair in found.pairs if (pair.after, pair.measure) == (name, found.primary)}
        if len(results) == failed[name]:
            lines.append(f"{name} answered no question.")
        elif 0 < unjudged[name] == sum(len(record.ids) for record in results):
            lines.append(
                f"Nothing that {name} brought is in the corpus or among the candidates, by id or by text, so gold ids "
                "cannot tell what it is worth: give its passages the corpus's ids, or ask by spans or answers."
            )
        else:
            pair = against[FIRST_STAGE]
            line = [_verdict(pair), *_simpler([against[one] for one in baselines])]
            if failed[name]:
                line.append(f"It failed on {failed[name]:,} of {len(results):,} questions, which count 0.")
            lines.append(" ".join([*line, *_next(given, helps=pair.verdict == "better")]))
    lost = 1 - found.oracle_recall[FIRST_STAGE].some
    if lost >= _LOST and failed[FIRST_STAGE] < len(found.results[FIRST_STAGE]):  # of what failed nobody knows
        lines.append(
            f"{lost:.0%} of the questions have no evidence among the candidates: no reranker can help them. More "
            "candidates, or another first stage, may."
        )
    if not baselines:
        lines.append("The first stage is BM25: neither BM25 nor its fusion with the first stage stands beside it.")
    return lines


def _change(pair: Pair) -> str:
    mean, low, high, _, _ = pair.difference
    return f"{pair.measure} {mean:+.3f} ({low:+.3f} to {high:+.3f})"


def _verdict(pair: Pair) -> str:
    _, low, high, _, n = pair.difference
    if pair.verdict == "better":
        return f"{pair.after} helps: {_change(pair)}."
    if pair.verdict == "worse":
        return f"{pair.after} hurts a first stage that was better without it: {_change(pair)}. Leave it out."
    if n >= least_questions() and low > -EQUAL and high < EQUAL:
        return f"{pair.after} and {pair.before} are practically equal: {_change(pair)}. Take the cheaper one."
    if pair.needed is None:
        more = "there is no difference at all"
    elif pair.needed > MOST_QUESTIONS:
        more = "so small a difference is not worth the questions that would tell"
    else:
        more = f"about {pair.needed:,} such questions would"
    return f"{pair.after}: {n:,} questions cannot tell, {_change(pair)}; {more}."


def _simpler(pairs: Sequence[Pair]) -> list[str]:
    """What BM25, or its fusion with the first stage, does as well."""
    if not pairs:
        return []
    best = min(pairs, key=lambda pair: pair.difference.mean)
    if best.verdict == "better":
        return []
    does = "is better" if best.verdict == "worse" else "is not shown to be worse"
    return [f"{best.before} {does}: {_change(best)}."]


def _next(given: Any, *, helps: bool) -> list[str]:
    """Which setting or model of a component of ours has not been tried; nothing for those of others."""
    own: Mapping[str, Any] = given if isinstance(given, Mapping) else {"component": given}
    kind = own.get("component")
    if not isinstance(kind, str) or kind not in _TUNED:
        return []
    lexical = str(own.get("model", "unigram")).partition(":")[0] == "unigram"
    tried = []
    if kind in _RANKERS and not helps:
        tried += ['prior="retrieval"'] if own.get("prior") is None else []
        tried += ["fitted=true"] if lexical and not own.get("fitted") and own.get("model") is None else []
    if kind in (*_RANKERS, "PathSearch") and lexical:
        tried.append('model="st:..." or "hf:..."')
    return [f"To try next: {', '.join([*tried, f'`drillrank tune --component {kind}`'])}."]
