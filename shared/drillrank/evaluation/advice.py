"""Conclusions from a comparison, in words that its intervals support."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from drillrank.evaluation.comparison import Comparison
from drillrank.evaluation.experiment import FIRST_STAGE
from drillrank.evaluation.statistics import Pair, least_questions

_EQUAL = 0.01  # a difference that no user notices, for measures between 0 and 1
_MAX_QUESTIONS = 20_000  # more are not worth asking for
_MANY_MISSING = 0.1  # share of questions without evidence among the candidates that is worth a note


def write_advice(comparison: Comparison, components: Iterable[str], baselines: Sequence[str]) -> list[str]:
    """Return a sentence for each component, and notes about the candidates and baselines.

    Args:
        comparison: Comparison without advice.
        components: Names of the components that the user passed.
        baselines: Names of the baselines.
    """
    lines = [_advise_on_component(comparison, name, baselines) for name in components]
    n_failed = comparison.failed[FIRST_STAGE]
    missing = 1 - comparison.oracle_recall[FIRST_STAGE].some
    if missing >= _MANY_MISSING and n_failed < len(comparison.results[FIRST_STAGE]):
        lines.append(
            f"{missing:.0%} of the questions have no evidence among the candidates: no reranker can help them. More "
            "candidates, or another first stage, may."
        )
    if not baselines:
        lines.append("The first stage is BM25, so there is no other baseline.")
    return lines


def _advise_on_component(comparison: Comparison, name: str, baselines: Sequence[str]) -> str:
    results, n_failed = comparison.results[name].values(), comparison.failed[name]
    n_results = sum(len(result.ids) for result in results)
    if len(results) == n_failed:
        return f"{name} answered no question."
    if 0 < comparison.unjudged[name] == n_results:
        return (
            f"No result of {name} is in the corpus or among the candidates, by id or by text, so gold ids cannot judge "
            "it: give its passages the corpus's ids, or use questions with spans or answers."
        )
    pair_by_baseline = {
        pair.before: pair for pair in comparison.pairs if (pair.after, pair.measure) == (name, comparison.primary)
    }
    if FIRST_STAGE not in pair_by_baseline:
        return f"{comparison.primary} has no value for {name}."
    sentences = [_describe_verdict(pair_by_baseline[FIRST_STAGE])]
    best = min(
        (pair_by_baseline[one] for one in baselines if one in pair_by_baseline),
        key=lambda pair: pair.difference.mean,
        default=None,
    )
    if best is not None and best.verdict != "better":
        relation = "is better" if best.verdict == "worse" else "is not shown to be worse"
        sentences.append(f"{best.before} {relation}: {_describe_change(best)}.")
    if n_failed:
        sentences.append(f"It failed on {n_failed:,} of {len(results):,} questions, which count 0.")
    return " ".join(sentences)


def _describe_change(pair: Pair) -> str:
    mean, low, high, _, _ = pair.difference
    return f"{pair.measure} {mean:+.3f} ({low:+.3f} to {high:+.3f})"


def _describe_verdict(pair: Pair) -> str:
    _, low, high, _, n = pair.difference
    if pair.verdict == "better":
        return f"{pair.after} helps: {_describe_change(pair)}."
    if pair.verdict == "worse":
        return f"{pair.after} hurts a first stage that was better without it: {_describe_change(pair)}. Leave it out."
    if n >= least_questions() and low > -_EQUAL and high < _EQUAL:
        change = _describe_change(pair)
        return f"{pair.after} and {pair.before} are practically equal: {change}. Take the cheaper one."
    if pair.needed is None:
        more = "the components do not differ at all"
    elif pair.needed > _MAX_QUESTIONS:
        more = "so small a difference is not worth the questions that would tell"
    else:
        more = f"about {pair.needed:,} such questions would"
    return f"{pair.after}: {n:,} questions cannot tell, {_describe_change(pair)}; {more}."
