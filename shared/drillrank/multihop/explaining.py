"""Explanations of a path search, from its trace: the gain of each token of the question, and the steps of the path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drillrank.errors import InvalidInput
from drillrank.explanation import Explanations, Term
from drillrank.explanation.terms import PATH
from drillrank.multihop.result import CandidatePath, PathTrace
from drillrank.passages import Path, Ranked
from drillrank.rerank.explaining import name_of
from drillrank.rerank.promptrank import PromptRank

LENGTH, ALIGNED = "length of the path", "which passage explains which word"


def explain_paths(prompt_rank: PromptRank, trace: PathTrace, ranking: Sequence[Ranked[Any]]) -> Explanations:
    """Explain entries of a search by the gain of each token of the question, and by the steps of their best paths.

    Args:
        prompt_rank: Ranker that scored the paths, with the fitted model.
        trace: Record of the search.
        ranking: Some of the passages or paths that the search returned.

    Raises:
        InvalidInput: An entry is not of this search.
    """
    candidates = [_find_candidate(trace, item) for item in ranking]
    paths = [candidate.path for candidate in candidates]
    entries = prompt_rank.explanations(
        trace.question,
        paths,
        prompt_rank.likelihoods(trace.question, paths),
        ranking,
        range(len(paths)),
        [_explain_steps(trace, candidate) for candidate in candidates],
    )
    return Explanations(entries, trace.question)


def _find_candidate(trace: PathTrace, item: Ranked[Any]) -> CandidatePath:
    """Return the scored path of an entry."""
    ids = item.passage.ids if isinstance(item.passage, Path) else item.details.get("path", ())
    if ids not in trace.candidate_by_ids:
        raise InvalidInput(
            f"ranking must contain results of this search, got {name_of(item.passage)!r:.200}. Explain results that "
            "this search returned."
        )
    return trace.candidate_by_ids[ids]


def _explain_steps(trace: PathTrace, candidate: CandidatePath) -> Term:
    """Return the prior of a path as a sum over its steps, its length and its alignment."""
    terms = [Term(name_of(step.passage), step.log_prior, text=step.kind) for step in candidate.steps]
    if trace.prior is not None:
        terms.append(Term(LENGTH, candidate.log_length, text="and"))
    if trace.prior is not None and trace.counts_alignment and len(candidate.steps) > 1:
        terms.append(Term(ALIGNED, candidate.alignment, text="and"))
    return Term.sum(PATH, terms)
