"""Tuning PromptRank on a small labelled set: instructions, temperature and ensemble, by R@2.

As the paper does it: every instruction is tried alone, then the temperature, then ensembles of the best instructions.
Instructions to choose from are written by a T5 that fills <X> and <Y> in "Task: <X> documents <Y> question based on
them. Question:"; then "Task:" and "based on them", which only steer it, are dropped.
                                Khalifa et al. (2023), sections 2.2, 3 and A.2, Table A1; Gao et al. (2021)
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any, NamedTuple, cast, get_args

from drillrank.errors import DrillrankWarning, InvalidInput, check_positive
from drillrank.likelihood import HuggingFaceModel, load_language_model
from drillrank.likelihood.base import check_temperature
from drillrank.passages import Path, check_query
from drillrank.rerank.base import Ensemble
from drillrank.rerank.promptrank import PROMPTRANK_INSTRUCTIONS, PromptRank, check_instructions
from drillrank.settings import check_one_of

# Section 2.2 and A.2: a span-filling T5 completes <X> and <Y>; then "based on them" is dropped.
INSTRUCTION_SEARCH_TEMPLATES = (
    "Task: <X> documents <Y> question based on them. Question:",
    "Task: <X> previous documents and <Y> question based on them. Question:",
)
_SENTINELS = ("<extra_id_0>", "<extra_id_1>", "<extra_id_2>")
_AT_ONCE = 50  # samples of one batch
_MAX_TOKENS = 30  # of both fillings
_PATIENCE = 5  # samples drawn for each instruction wanted, at most: most are repetitions at the end


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
    model, labelled = prompt_rank.language_model, list(labelled)
    instructions = list(dict.fromkeys(check_instructions(instructions)))[: None if model.reads_instructions else 1]
    temperatures, ensembles = list(dict.fromkeys(temperatures)), list(dict.fromkeys(ensembles))
    if not temperatures or not ensembles:
        raise InvalidInput("Temperatures and ensembles are lists of candidates that are not empty.")
    for temperature in temperatures:
        check_temperature(temperature)
    for ensemble in ensembles:
        check_one_of(Ensemble, ensembles=ensemble)
    check_positive(largest_ensemble=largest_ensemble)
    questions = _answerable(labelled, prompt_rank)
    trials: dict[TunedSettings, float] = {}
    # By temperature and instruction: of each question, for each path, the scores under each context of demonstrations.
    scores: dict[tuple[float, str], list[Sequence[list[float]]]] = {}
    from rich.console import Console
    from rich.progress import track

    def score(wordings: Sequence[str], temperature: float) -> None:
        given = {"demonstrations": prompt_rank.demonstrations, "settings": prompt_rank.settings}
        scorer = PromptRank(model, instructions=wordings, temperature=temperature, **given)
        for item in track(questions, "Tuning", console=Console(stderr=True), disable=not show_progress):
            by_path = scorer.score_prompts(item.question, item.paths)
            for wording, of_wording in zip(wordings, zip(*by_path, strict=True), strict=True):
                scores.setdefault((temperature, wording), []).append(of_wording)

    def attempt(wordings: Sequence[str], ensemble: Ensemble, temperature: float) -> float:
        hits = 0
        for number, item in enumerate(questions):
            by_path = zip(*(scores[temperature, wording][number] for wording in wordings), strict=True)
            prompts = [list(chain.from_iterable(of_path)) for of_path in by_path]
            hits += item.found([max(one) if ensemble == "max" else sum(one) / len(one) for one in prompts])
        return trials.setdefault(TunedSettings(tuple(wordings), ensemble, temperature), hits / len(labelled))

    first = temperatures[0]
    score(instructions, first)
    alone = {wording: attempt([wording], ensembles[0], first) for wording in instructions}
    best = sorted(alone, key=alone.__getitem__, reverse=True)[:largest_ensemble]
    for temperature in temperatures[1:]:
        score(best, temperature)
    contexts = len(scores[first, best[0]][0][0])
    for size in range(1, len(best) + 1):
        for temperature in temperatures:
            for ensemble in ensembles if size > 1 or contexts > 1 else ensembles[:1]:
                attempt(best[:size], ensemble, temperature)
    winner = max(trials, key=trials.__getitem__)
    scorings = sum(len(row) for found in scores.values() for of_question in found for row in of_question)
    return Tuning(winner, trials[winner], trials, len(labelled), len(questions), scorings)


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
    filler, found = load_language_model(model), dict[str, None]()
    if not isinstance(filler, HuggingFaceModel):
        raise InvalidInput(
            f"Instructions are written by an encoder-decoder model of Hugging Face, not {filler.spec!r}."
        )
    fillings = _filler(filler, top_k)
    templates = INSTRUCTION_SEARCH_TEMPLATES
    for draw in range(0, -(-count * _PATIENCE // _AT_ONCE), len(templates)):
        drawn = [
            [_instruction(template, *pair) for pair in fillings(template, seed + draw + number)]
            for number, template in enumerate(templates)
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


def _filler(lm: HuggingFaceModel, top_k: int) -> Callable[[str, int], list[tuple[str, str]]]:
    """From a template and a seed to fillings of one batch; what does not follow T5's format is left out."""
    import torch
    import transformers

    name, options = lm.spec.removeprefix("hf:"), lm.options
    # An engine in half precision has a wider head than the rest, and hooks on it while it scores: take another.
    engine = HuggingFaceModel(name, **{**options, "dtype": "float32"}).engine
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(
        name, revision=options["revision"], trust_remote_code=options["trust_remote_code"]
    )
    known = tokenizer.get_vocab()
    if not engine.model.config.is_encoder_decoder or any(name not in known for name in _SENTINELS):
        raise InvalidInput(f"{lm.spec!r} is no encoder-decoder model with T5's sentinel tokens <extra_id_0> ....")
    first, second, third = (known[name] for name in _SENTINELS)

    def draw(template: str, seed: int) -> list[tuple[str, str]]:
        text = template.replace("<X>", _SENTINELS[0]).replace("<Y>", _SENTINELS[1])
        devices = [engine.device] if engine.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices), torch.inference_mode():
            torch.manual_seed(seed)
            written = engine.model.generate(
                **tokenizer(text, return_tensors="pt").to(engine.device),
                do_sample=True,
                top_k=top_k,
                num_return_sequences=_AT_ONCE,
                max_new_tokens=_MAX_TOKENS,
            )
        found = []
        for ids in written.tolist():
            _, filled = _parted(ids, first)
            of_x, filled = _parted(filled, second)
            of_y, _ = _parted(filled, third)
            x, y = (" ".join(tokenizer.decode(part, skip_special_tokens=True).split()) for part in (of_x, of_y))
            if x and y and "{path}" not in x + y:
                found.append((x, y))
        return found

    return draw


def _parted(ids: list[int], sentinel: int) -> tuple[list[int], list[int]]:
    """What stands before and what stands after a token."""
    place = ids.index(sentinel) if sentinel in ids else len(ids)
    return ids[:place], ids[place + 1 :]


def _instruction(template: str, x: str, y: str) -> str:
    """The template with its fillings, without what steers the model, and with the path in its place."""
    text = template.replace("Task: ", "").replace(" based on them", "")
    before, question, after = text.rpartition("Question:")
    path_first = "previous documents" in template
    wording = f"{{path}} {before}" if path_first else f"{before}{{path}} "
    return (wording + question + after).replace("<X>", x).replace("<Y>", y)
