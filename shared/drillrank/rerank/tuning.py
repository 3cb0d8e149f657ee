"""Tuning PromptRank on a small labelled set: instructions, temperature and ensemble, by R@2.

As the paper does it: every instruction is tried alone, then the temperature, then ensembles of the best instructions.
Instructions to choose from are written by a T5 that fills <X> and <Y> in "Task: <X> documents <Y> question based on
them. Question:"; then "Task:" and "based on them", which only steer it, are dropped.
                                Khalifa et al. (2023), sections 2.2, 3 and A.2, Table A1; Gao et al. (2021)
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple, TypeVar, cast, get_args

import numpy as np
import numpy.typing as npt

from drillrank.errors import DrillrankWarning, InvalidInput, check_positive
from drillrank.likelihood import HuggingFaceModel, load_language_model
from drillrank.likelihood.base import check_temperature
from drillrank.passages import Path, check_query
from drillrank.rerank.promptrank import PROMPTRANK_INSTRUCTIONS, Ensemble, PromptRank, check_instructions, combined
from drillrank.settings import check_one_of

Choice = TypeVar("Choice")

# Section 2.2 and A.2: a span-filling T5 completes <X> and <Y>; then "based on them" is dropped.
INSTRUCTION_SEARCH_TEMPLATES = (
    "Task: <X> documents <Y> question based on them. Question:",
    "Task: <X> previous documents and <Y> question based on them. Question:",
)
_SENTINELS = ("<extra_id_0>", "<extra_id_1>", "<extra_id_2>")
_MASKS = ("<X>", "<Y>")
_AT_ONCE = 50  # samples of one batch
_MAX_TOKENS = 30  # of both fillings
_PATIENCE = 5  # samples drawn for each instruction wanted, at most: most are repetitions at the end

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


def generate_instructions(
    model: str | HuggingFaceModel, count: int = 200, *, top_k: int = 10, seed: int = 0
) -> list[str]:
    """Let a T5 write instructions by filling the paper's templates, half of the samples each.

    The template with "previous documents" puts the instruction after the path, the other one before it.

    Args:
        model: A T5 trained to fill spans (`"hf:google-t5/t5-base"`), or any encoder-decoder model with T5's sentinel
            tokens. Its weights are loaded for this alone, in float32, also those of a model that is ready for scoring.
        count: Distinct instructions wanted.
        top_k: Tokens to sample from at each step.
        seed: The same seed writes the same instructions on the same machine.

    Returns:
        Instructions with `{path}`, in the order in which they were sampled; fewer than `count`, with a warning, if
        the model repeats itself.

    Raises:
        InvalidInput: the model has no sentinel tokens or is no encoder-decoder model, or wrote nothing that fits.
        MissingExtra: torch or transformers is not installed.
    """
    check_positive(count=count, top_k=top_k)
    filler = load_language_model(model)
    if not isinstance(filler, HuggingFaceModel):
        raise InvalidInput(
            f"Instructions are written by an encoder-decoder model of Hugging Face, not {filler.spec!r}."
        )
    found: dict[str, None] = {}
    samples = _Samples(filler, top_k, seed)
    for _ in range(-(-count * _PATIENCE // (_AT_ONCE * len(INSTRUCTION_SEARCH_TEMPLATES)))):
        drawn = [
            [_instruction(template, *fillings) for fillings in samples.draw(template)]
            for template in INSTRUCTION_SEARCH_TEMPLATES
        ]
        found |= dict.fromkeys(wording for pair in zip_longest(*drawn) for wording in pair if wording)
        if len(found) >= count:
            return list(found)[:count]
    if not found:
        raise InvalidInput(f"{filler.spec!r} wrote no instruction: it fills no spans. Take one that does, such as T5.")
    warnings.warn(
        f"{filler.spec!r} wrote {len(found)} different instructions, not {count}; a larger top_k brings more.",
        DrillrankWarning,
        stacklevel=2,
    )
    return list(found)


class _Samples:
    """Fillings of templates, sampled by a model with sentinel tokens."""

    def __init__(self, filler: HuggingFaceModel, top_k: int, seed: int) -> None:
        import transformers

        name, options = filler.spec.removeprefix("hf:"), filler.options
        # An engine in half precision has a wider head than the rest, and hooks on it while it scores: take another.
        engine = HuggingFaceModel(name, **{**options, "dtype": "float32"}).engine
        self._model, self._device = engine.model, engine.device
        self._tokenizer: Any = transformers.AutoTokenizer.from_pretrained(
            name, revision=options["revision"], trust_remote_code=options["trust_remote_code"]
        )
        known = self._tokenizer.get_vocab()
        if not self._model.config.is_encoder_decoder or any(name not in known for name in _SENTINELS):
            raise InvalidInput(
                f"{filler.spec!r} is no encoder-decoder model with T5's sentinel tokens <extra_id_0> ...."
            )
        self._sentinels = [known[name] for name in _SENTINELS]
        self._top_k, self._seed = top_k, seed

    def draw(self, template: str) -> list[tuple[str, str]]:
        """Fillings of one batch; what does not follow T5's format is left out."""
        import torch

        text = template
        for mask, sentinel in zip(_MASKS, _SENTINELS, strict=False):
            text = text.replace(mask, sentinel)
        given = self._tokenizer(text, return_tensors="pt").to(self._device)
        generator_devices = [self._device] if self._device.type == "cuda" else []
        with torch.random.fork_rng(devices=generator_devices), torch.inference_mode():
            torch.manual_seed(self._seed)
            self._seed += 1
            written = self._model.generate(
                input_ids=given["input_ids"],
                attention_mask=given["attention_mask"],
                do_sample=True,
                top_k=self._top_k,
                num_return_sequences=_AT_ONCE,
                max_new_tokens=_MAX_TOKENS,
            )
        return [fillings for ids in written.tolist() if (fillings := self._fillings(ids))]

    def _fillings(self, ids: Sequence[int]) -> tuple[str, str] | None:
        """What stands after the first and after the second sentinel."""
        first, second, third = self._sentinels
        if first not in ids or second not in ids[ids.index(first) :]:
            return None
        start = ids.index(first) + 1
        middle = ids.index(second, start)
        stop = ids.index(third, middle) if third in ids[middle:] else len(ids)
        decoded = [
            self._tokenizer.decode(part, skip_special_tokens=True) for part in (ids[start:middle], ids[middle:stop])
        ]
        x, y = (" ".join(text.split()) for text in decoded)
        return (x, y) if x and y and "{path}" not in x + y else None


def _instruction(template: str, x: str, y: str) -> str:
    """The template with its fillings, without what steers the model, and with the path in its place."""
    text = template.replace("Task: ", "").replace(" based on them", "")
    before, question, after = text.rpartition("Question:")
    path_first = "previous documents" in template
    wording = f"{{path}} {before}" if path_first else f"{before}{{path}} "
    return (wording + question + after).replace("<X>", x).replace("<Y>", y)
