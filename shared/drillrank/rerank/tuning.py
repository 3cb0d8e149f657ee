"""Tuning PromptRank on a small labelled set: instructions, temperature and ensemble, by R@2.

As the paper does it: every instruction is tried alone, then the temperature, then ensembles of the best instructions.
                                                                  Khalifa et al. (2023), sections 2.2 and 3, Table A1
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar, cast, get_args

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput, check_positive
from drillrank.likelihood.base import check_temperature
from drillrank.passages import Path, check_query
from drillrank.prompts import PROMPTRANK_INSTRUCTIONS, check_instructions
from drillrank.rerank.promptrank import Ensemble, PromptRank
from drillrank.rerank.promptrank_settings import combined
from drillrank.settings import check_one_of

Choice = TypeVar("Choice")
Scores = npt.NDArray[np.float64]  # of one question: (paths, instructions, contexts of demonstrations)


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question, the paths that compete for it, and the one that answers it.

    Attributes:
        question: The question.
        paths: Candidates as the search meets them: those of one passage, too.
        gold: The gold path; only the ids of its passages count.

    Raises:
        InvalidInput: the question is blank, or a path is not a `Path`.
    """

    question: str
    paths: tuple[Path, ...]
    gold: Path

    def __post_init__(self) -> None:
        check_query(self.question)
        object.__setattr__(self, "paths", tuple(self.paths))
        for path in (*self.paths, self.gold):
            if not isinstance(cast("object", path), Path):
                raise InvalidInput(f"Question {self.question!r:.80} has a {type(path).__name__} where a Path belongs.")

    @property
    def answerable(self) -> bool:
        """Whether the candidates hold every gold passage."""
        return set(self.gold.ids) <= {id_ for path in self.paths for id_ in path.ids}

    def found(self, scores: Sequence[float]) -> bool:
        """Whether all gold passages are among the first 2, or the first n of a gold path of n > 2.

        Args:
            scores: One per path; a passage has the highest of its paths, and ties keep the order of the paths.
        """
        best: dict[str, float] = {}
        for path, score in zip(self.paths, scores, strict=True):
            for id_ in path.ids:
                best[id_] = max(score, best.get(id_, -math.inf))
        gold = set(self.gold.ids)
        return gold <= set(sorted(best, key=best.__getitem__, reverse=True)[: max(2, len(gold))])


class TunedSettings(NamedTuple):
    """Arguments of `PromptRank` that are tuned."""

    instructions: tuple[str, ...]
    ensemble: Ensemble
    temperature: float


@dataclass(frozen=True, slots=True)
class Tuning:
    """What `tune` found; `str` of it is a report.

    Attributes:
        settings: The best instructions, ensemble and temperature.
        recall: R@2 that they reach on the labelled set: optimistic, since they were chosen by it.
        trials: R@2 of all settings tried, in the order of the search.
        questions: Labelled questions.
        answerable: Those whose candidates hold all gold passages; the others are misses under any settings.
        scorings: Log-likelihoods that were computed.
    """

    settings: TunedSettings
    recall: float
    trials: dict[TunedSettings, float]
    questions: int
    answerable: int
    scorings: int

    def __str__(self) -> str:
        lines = [
            f"{self.questions} questions, {self.answerable} of them answerable from their candidates; "
            f"{len(self.trials)} settings tried with {self.scorings} log-likelihoods.",
            "R@2    temperature  ensemble  instructions",
        ]
        for settings, recall in sorted(self.trials.items(), key=lambda trial: -trial[1]):
            mark = "*" if settings == self.settings else " "
            first, *more = settings.instructions
            wording = f"{first} and {len(more)} more" if more else first
            lines.append(f"{recall:.3f}{mark} {settings.temperature:<12g} {settings.ensemble:<9} {wording}")
        return "\n".join(lines)


def tune(
    prompt_rank: PromptRank,
    labelled: Iterable[LabelledQuestion],
    *,
    instructions: Sequence[str] = PROMPTRANK_INSTRUCTIONS,
    temperatures: Sequence[float] = (1.0, 1.2, 1.4, 1.6),
    ensembles: Sequence[Ensemble] = get_args(Ensemble),
    largest_ensemble: int = 5,
    show_progress: bool = False,
) -> Tuning:
    """Search instructions, temperature and ensemble for the highest R@2.

    Each instruction is first tried alone, at the first temperature. The best few then compete at every temperature,
    alone and as ensembles of the best 2, 3, .... Ties go to what was tried first: fewer instructions, then the earlier
    temperature and ensemble, then the earlier instruction.

    With P paths, I instructions, T temperatures, ensembles of up to n and C contexts of demonstrations the language
    model scores P · C · (I + (T - 1) · min(n, I)) prompts. Ensembles cost nothing; a temperature costs as much as n
    instructions, since it needs a softmax of its own. Questions that are not answerable are not scored.

    Args:
        prompt_rank: What is tuned; its language model, limits and demonstrations stay as they are. Fit a lexical model
            with the collection first.
        labelled: The labelled questions; the paper has 128.
        instructions: Candidates, such as those of `generate_instructions`. A language model that does not read
            instructions is tried with the first one only.
        temperatures: Candidates.
        ensembles: Candidates.
        largest_ensemble: Most instructions in one ensemble.
        show_progress: Whether a bar on standard error counts the questions.

    Raises:
        InvalidInput: no question is answerable, a question is a demonstration too, or a candidate cannot be used.

    >>> from drillrank import Passage
    >>> turing, vale = Passage("Turing was born in Maida Vale."), Passage("Maida Vale is a district of London.")
    >>> paths = [Path((turing,)), Path((vale,)), Path((turing, vale)), Path((Passage("Basel lies on the Rhine."),))]
    >>> tuning = tune(PromptRank(), [LabelledQuestion("Which district was Turing born in?", paths, paths[2])])
    >>> tuning.recall
    1.0
    >>> PromptRank("unigram", **tuning.settings._asdict()).temperature
    1.0
    """
    labelled = list(labelled)
    instructions = _candidates("instructions", check_instructions(instructions))
    temperatures, ensembles = _candidates("temperatures", temperatures), _candidates("ensembles", ensembles)
    for temperature in temperatures:
        check_temperature(temperature)
    for ensemble in ensembles:
        check_one_of(Ensemble, ensembles=ensemble)
    check_positive(largest_ensemble=largest_ensemble)
    questions = _answerable(labelled, prompt_rank)
    if not prompt_rank.language_model.reads_instructions:
        instructions = instructions[:1]
    trials: dict[TunedSettings, float] = {}
    scorings = 0
    from rich.console import Console
    from rich.progress import Progress

    progress = Progress(console=Console(stderr=True), disable=not show_progress)
    task = progress.add_task("Tuning", total=len(temperatures) * len(questions))

    def score(candidates: Sequence[str], temperature: float) -> dict[str, list[Scores]]:
        """Scores of the questions by instruction, each of shape (paths, contexts)."""
        nonlocal scorings
        scorer = PromptRank(
            prompt_rank.language_model,
            instructions=candidates,
            temperature=temperature,
            demonstrations=prompt_rank.demonstrations,
            settings=prompt_rank.settings,
        )
        found: list[Scores] = []
        for item in questions:
            found.append(np.array(scorer.score_prompts(item.question, item.paths)))
            scorings += found[-1].size
            progress.advance(task)
        return {wording: [scores[:, i] for scores in found] for i, wording in enumerate(candidates)}

    def attempt(
        chosen: Sequence[str], ensemble: Ensemble, temperature: float, scores: dict[str, list[Scores]]
    ) -> float:
        settings = TunedSettings(tuple(chosen), ensemble, temperature)
        hits = 0
        for number, item in enumerate(questions):
            prompts = np.hstack([scores[wording][number] for wording in settings.instructions])
            hits += item.found([combined(row, ensemble) for row in prompts.tolist()])
        trials.setdefault(settings, hits / len(labelled))
        return trials[settings]

    with progress:
        first = temperatures[0]
        by_temperature = {first: score(instructions, first)}
        alone = {wording: attempt([wording], ensembles[0], first, by_temperature[first]) for wording in instructions}
        best = sorted(alone, key=alone.__getitem__, reverse=True)[:largest_ensemble]
        by_temperature |= {temperature: score(best, temperature) for temperature in temperatures[1:]}
    several_contexts = any(scores[0].shape[1] > 1 for scores in by_temperature[first].values())
    for size in range(1, len(best) + 1):
        for temperature, scores in by_temperature.items():
            for ensemble in ensembles if size > 1 or several_contexts else ensembles[:1]:
                attempt(best[:size], ensemble, temperature, scores)
    winner = max(trials, key=trials.__getitem__)
    return Tuning(winner, trials[winner], trials, len(labelled), len(questions), scorings)


def _candidates(name: str, values: Sequence[Choice]) -> list[Choice]:
    """The distinct candidates, in order."""
    distinct = list(dict.fromkeys(values))
    if not distinct:
        raise InvalidInput(f"There are no {name} to choose from.")
    return distinct


def _answerable(labelled: Sequence[LabelledQuestion], prompt_rank: PromptRank) -> list[LabelledQuestion]:
    """The questions that can be found, once it is known that none is a demonstration."""
    shown = {item.question for item in prompt_rank.demonstrations}
    for position, item in enumerate(labelled):
        if not isinstance(cast("object", item), LabelledQuestion):
            raise InvalidInput(f"Labelled question {position} is a {type(item).__name__}, not a LabelledQuestion.")
        if item.question in shown:
            raise InvalidInput(f"Question {position} is a demonstration too, which would show the model its answer.")
    questions = [item for item in labelled if item.answerable]
    if not questions:
        raise InvalidInput(f"None of {len(labelled)} questions has all its gold passages among its candidate paths.")
    return questions
