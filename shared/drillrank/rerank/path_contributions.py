"""What the scores of paths were made of: the prompt that counts, and the share of each document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from drillrank.explanation import PathStep
from drillrank.likelihood import LanguageModel, Likelihood
from drillrank.passages import Passage, Path, Ranked
from drillrank.rerank.contributions import Entry


class ScoresPaths(Protocol):
    """What scores paths under one or several prompts, such as `PromptRank`."""

    @property
    def language_model(self) -> LanguageModel: ...  # noqa: D102
    @property
    def ensemble(self) -> str: ...  # noqa: D102

    def likelihoods(self, query: str, paths: Sequence[Path]) -> list[list[Likelihood]]:
        """Of the question after each path, under each prompt."""
        ...


def path_entries(
    ranker: ScoresPaths,
    query: str,
    paths: Sequence[Path],
    groups: Sequence[Sequence[Likelihood]],
    ranking: Sequence[Ranked[Any]],
    places: Sequence[int],
    steps: Sequence[tuple[PathStep, ...]] | None = None,
) -> list[Entry]:
    """What the scores of a ranking were made of.

    Of several prompts the best counts, and what is likely after nothing is compared under the same one; or the mean of
    both.

    Args:
        ranker: Scored the paths.
        query: The question.
        paths: That were read.
        groups: Their likelihoods.
        ranking: Entries that some of these paths brought.
        places: Of the path of each entry.
        steps: Of each entry's path.
    """
    if not ranking:
        return []
    collection = paths if ranker.language_model.wants_fit else ()  # all of them are
    nothing = ranker.likelihoods(query, [*collection, Path((Passage(""),))])[-1]
    shares = _shares(ranker, query, paths)
    found = []
    for number, (item, place) in enumerate(zip(ranking, places, strict=True)):
        group = groups[place]
        if ranker.ensemble == "mean":
            own, base = _mean(group), _mean(nothing)
        else:
            totals = [likelihood.total for likelihood in group]
            own, base = group[totals.index(max(totals))], nothing[totals.index(max(totals))]
        share = shares[place] if shares else None
        found.append(Entry(item, paths[place], own, base, share, steps[number] if steps else ()))
    return found


def _shares(ranker: ScoresPaths, query: str, paths: Sequence[Path]) -> list[npt.NDArray[np.float64]]:
    """Of each document of each path in each token, shape (documents, tokens); none for models that read whole paths."""
    if ranker.language_model.reads_instructions:
        return []
    alone = ranker.likelihoods(query, [Path((passage,)) for path in paths for passage in path.passages])
    probabilities = np.exp([group[0].log_probs for group in alone])
    ends = np.cumsum([len(path.passages) for path in paths])[:-1]
    return [own / own.sum(axis=0) for own in np.split(probabilities, ends)]


def _mean(group: Sequence[Likelihood]) -> Likelihood:
    """Under several prompts as one."""
    mean = np.mean([likelihood.log_probs for likelihood in group], axis=0)
    return replace(group[0], log_probs=mean, total=float(mean.sum()))
