"""PromptRank: the score of a path of documents is the likelihood of the question after it.

Score_q(c) = mean_t log p(q_t | q_<t, τ_c),   τ_c = the path's documents and an instruction
combined over several instructions by max or mean                             Khalifa et al. (2023), section 2
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from drillrank.errors import InvalidInput, check_positive
from drillrank.likelihood import LanguageModel, load_language_model
from drillrank.likelihood.base import check_temperature
from drillrank.passages import Path, Ranked, check_query, check_top_n, ranked
from drillrank.prompts import PROMPTRANK_INSTRUCTIONS, check_instructions, path_prompt
from drillrank.rerank.parity import LikelihoodFormula, preset_formula

Ensemble = Literal["max", "mean"]


class PromptRank:
    """Scores paths of documents jointly by the likelihood of the question.

    Args:
        lm: A language model, or its specification.
        instructions: Prompts that hold `{path}`; the first five of the paper's Table A1 by default.
        ensemble: How a path's scores under several instructions combine.
        temperature: Divides the logits before the softmax; the paper finds 1.4 best for T5-XL on HotpotQA.
        max_document_tokens: Tokens that each document may keep.
        max_prompt_tokens: Tokens of the prompt; documents give way, the instruction never does.
        preset: `"promptrank"` writes prompts and questions as the paper's code does (see `drillrank.rerank.parity`);
            that code's own ensemble is "mean".

    Scores are mean log-probabilities per question token, at most 0, comparable within one question only.

    Raises:
        InvalidInput: an instruction without `{path}`, an unknown ensemble, a limit below 1, or a preset that is
            unknown or given to the unigram model.

    >>> from drillrank import Passage
    >>> turing, london = Passage("Alan Turing was born in London."), Passage("London lies on the Thames.")
    >>> paths = [Path((turing,)), Path((turing, london))]
    >>> best = PromptRank().rank_paths("Where does the Thames reach the town where Turing was born?", paths)[0]
    >>> len(best.passage.passages)
    2
    """

    def __init__(
        self,
        lm: str | LanguageModel = "unigram",
        *,
        instructions: Sequence[str] = PROMPTRANK_INSTRUCTIONS[:5],
        ensemble: Ensemble = "max",
        temperature: float = 1.0,
        max_document_tokens: int = 230,
        max_prompt_tokens: int = 600,
        preset: str | LikelihoodFormula | None = None,
    ) -> None:
        if ensemble not in ("max", "mean"):
            raise InvalidInput(f'The ensemble is "max" or "mean", not {ensemble!r}.')
        check_positive(max_document_tokens=max_document_tokens, max_prompt_tokens=max_prompt_tokens)
        check_temperature(temperature)
        self.lm = load_language_model(lm)
        self._instructions = check_instructions(instructions)
        self._ensemble = ensemble
        self._temperature = temperature
        self._max_document_tokens = max_document_tokens
        self._max_prompt_tokens = max_prompt_tokens
        self._preset = preset
        self._formula = LikelihoodFormula("{path}") if preset is None else preset_formula(preset, self.lm, "{path}")

    def with_language_model(self, lm: LanguageModel) -> PromptRank:
        """The same settings around another language model."""
        return PromptRank(
            lm,
            instructions=self._instructions,
            ensemble=self._ensemble,
            temperature=self._temperature,
            max_document_tokens=self._max_document_tokens,
            max_prompt_tokens=self._max_prompt_tokens,
            preset=self._preset,
        )

    def score_paths(self, query: str, paths: Sequence[Path]) -> list[tuple[float, dict[str, int]]]:
        """Score each path; in the order of the paths, with details: `tokens` of the question and `cut_tokens`."""
        check_query(query)
        formula = self._formula
        target = formula.target_text(query, self.lm)
        instructions = [instruction.replace("{path}", formula.template) for instruction in self._instructions]
        requests = [
            formula.request(path_prompt(path, instruction, self._max_document_tokens), target, self._max_prompt_tokens)
            for path in paths
            for instruction in instructions
        ]
        likelihoods = self.lm.log_likelihood(requests, temperature=self._temperature, include_eos=formula.include_eos)
        width = len(instructions)
        scored = []
        for start in range(0, len(likelihoods), width):
            group = likelihoods[start : start + width]
            scores = [formula.score(likelihood) for likelihood in group]
            score = max(scores) if self._ensemble == "max" else sum(scores) / width
            details = {"tokens": len(group[0].tokens), "cut_tokens": max(item.cut_tokens for item in group)}
            scored.append((score, details))
        return scored

    def rank_paths(self, query: str, paths: Sequence[Path], top_n: int | None = None) -> list[Ranked[Path]]:
        """Rank paths by the likelihood of the question; ties keep the input order.

        Returns:
            One `Ranked` per path: `passage` is the `Path`, `details["path"]` its passages' ids.

        Raises:
            InvalidInput: the query is blank, `top_n` is below 1, or an item is not a `Path`.
        """
        check_top_n(top_n)
        paths = list(paths)
        for position, path in enumerate(paths):
            if not isinstance(path, Path):
                raise InvalidInput(f"Item {position} is a {type(path).__name__}, not a Path.")
        scored = self.score_paths(query, paths)
        details = [{**detail, "path": path.ids} for path, (_, detail) in zip(paths, scored, strict=True)]
        return ranked(paths, [score for score, _ in scored], details, top_n)
