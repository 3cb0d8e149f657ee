"""PromptRank: the score of a path of documents is the likelihood of the question after it.

Score_q(c) = mean_t log p(q_t | q_<t, τ_c),   τ_c = demonstrations, the path's documents and an instruction
combined over several instructions and contexts of demonstrations by max or mean     Khalifa et al. (2023), section 2
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from drillrank.errors import InvalidInput, check_positive
from drillrank.likelihood import LanguageModel, Likelihood, load_language_model
from drillrank.passages import Path, Ranked, check_query, check_top_n, ranked
from drillrank.prompts import PROMPTRANK_INSTRUCTIONS, path_prompt
from drillrank.rerank.base import Scored
from drillrank.rerank.demonstrations import Demonstration, demonstration_contexts, demonstration_text
from drillrank.rerank.first_stage import NO_PRIOR, Prior, RetrievalScores, check_prior, meaning_details
from drillrank.rerank.path_starts import PathStarts
from drillrank.rerank.presets import LikelihoodFormula, preset_formula
from drillrank.rerank.settings import Ensemble, PromptRankSettings
from drillrank.rerank.unmatched import levelled

__all__ = ["Ensemble", "PromptRank"]

MAX_PROMPT_TOKENS, MAX_PROMPT_TOKENS_WITH_DEMONSTRATIONS = 600, 1024  # section 3


class PromptRank:
    """Scores paths of documents jointly by the likelihood of the question.

    Args:
        lm: A language model, or its specification. A T5 that names a limit of 512 tokens has none: load it with
            `max_length=1024`, or demonstrations leave little room for the candidate.
        instructions: Prompts that hold `{path}`; the first five of the paper's Table A1 by default.
        ensemble: How a path's scores under several prompts combine. The prompts are all pairs of an instruction and a
            context of demonstrations.
        temperature: Divides the logits before the softmax; the paper finds 1.4 best for T5-XL on HotpotQA.
        demonstrations: Questions with their gold paths, shown in front of every candidate with the same instruction,
            their documents cut to 100 tokens. They say nothing to the unigram model, which leaves them out.
        demonstrations_per_prompt: How many share a context, of different kinds where possible; more of them make
            several contexts, each of which scores every path once.
        max_document_tokens: Tokens that each document of a candidate may keep.
        max_prompt_tokens: Tokens of the prompt; the candidate's documents give way, demonstrations, instruction and
            question never do. None for the paper's 600, or 1,024 with demonstrations.
        preset: `"promptrank"` writes prompts and questions as the paper's code does (see `drillrank.rerank.presets`);
            that code's own ensemble is "mean".
        prior: What the first stage said of the document that a path begins with, before texts are read, as for `UPR`:
            `"cosine"`, `"retrieval"`, or None for the paper's uniform prior. `PathSearch` multiplies it with its own
            prior over links.

    Scores are mean log-probabilities per question token, at most 0, comparable within one question only. With a prior
    they are the posterior's, and `details` holds `log_prior`.

    Raises:
        InvalidInput: an instruction without `{path}`, an unknown ensemble, a limit below 1, an item that is no
            demonstration, an unknown prior, or a preset that is unknown or given to the unigram model.

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
        demonstrations: Sequence[Demonstration] = (),
        demonstrations_per_prompt: int = 2,
        max_document_tokens: int = 230,
        max_prompt_tokens: int | None = None,
        preset: str | LikelihoodFormula | None = None,
        prior: Prior | None = None,
    ) -> None:
        check_positive(max_document_tokens=max_document_tokens)
        if max_prompt_tokens is not None:
            check_positive(max_prompt_tokens=max_prompt_tokens)
        self.settings = PromptRankSettings(instructions, ensemble, temperature)  # type: ignore[arg-type]  # a tuple there
        self.demonstrations = tuple(demonstrations)
        self._contexts = demonstration_contexts(self.demonstrations, demonstrations_per_prompt)
        self.lm = load_language_model(lm)
        self._demonstrations_per_prompt = demonstrations_per_prompt
        self._max_document_tokens = max_document_tokens
        self._max_prompt_tokens = max_prompt_tokens
        self._preset = preset
        self.prior = check_prior(prior)
        self._formula = LikelihoodFormula("{path}") if preset is None else preset_formula(preset, self.lm, "{path}")

    def with_language_model(self, lm: LanguageModel) -> PromptRank:
        """The same settings around another language model."""
        return self._changed(lm, self.settings)

    def with_settings(self, settings: PromptRankSettings) -> PromptRank:
        """Other instructions, ensemble and temperature; all else stays."""
        return self._changed(self.lm, settings)

    def score_paths(self, query: str, paths: Sequence[Path]) -> list[Scored]:
        """Score each path by the likelihood alone, in the order of the paths.

        The details are `tokens` (of the question), `reduce` (`"mean"`, or `"sum"` with a formula that adds up),
        `cut_tokens`, `nothing_matched` (see `drillrank.rerank.unmatched`) and, with an `st:` model, `log_meaning`.
        """
        scored: list[Scored] = []
        groups = self._likelihoods(query, paths)
        for group in groups:
            score = self.settings.combined([self._formula.score(likelihood) for likelihood in group])
            details = {
                "tokens": len(group[0].tokens),
                "reduce": self._formula.reduce,
                "cut_tokens": max(item.cut_tokens for item in group),
                **meaning_details(group[0]),
            }
            scored.append((score, details))
        return levelled(scored, [group[0].matched for group in groups])

    def score_prompts(self, query: str, paths: Sequence[Path]) -> list[list[list[float]]]:
        """Scores of each path under each prompt, before they are combined: shape (paths, instructions, contexts).

        Without demonstrations there is one context.
        """
        width = len(self.settings.instructions)
        scored = []
        for group in self._likelihoods(query, paths):
            scores = [self._formula.score(likelihood) for likelihood in group]
            if not self.lm.reads_instructions:
                scores *= width
            contexts = len(scores) // width
            scored.append([scores[start : start + contexts] for start in range(0, len(scores), contexts)])
        return scored

    def rank_paths(
        self, query: str, paths: Sequence[Path], top_n: int | None = None, *, scores: RetrievalScores | None = None
    ) -> list[Ranked[Path]]:
        """Rank paths by the likelihood of the question, and the prior if there is one; ties keep the input order.

        Args:
            query: The question.
            paths: The paths; where the prior has nothing but their order, best first document first.
            top_n: How many to keep; None keeps all.
            scores: The first stage's score of each path's first document, for the prior; as for `UPR.rank`.

        Returns:
            One `Ranked` per path: `passage` is the `Path`, `details["path"]` its passages' ids.

        Raises:
            InvalidInput: the query is blank, `top_n` is below 1, an item is not a `Path`, or a score cannot be used.

        >>> from drillrank import Passage
        >>> towns = [Path((Passage(f"{name} is a town on the Rhine."),)) for name in ("Basel", "Bonn")]
        >>> [best, _] = PromptRank(prior="retrieval").rank_paths("Which town on the Rhine?", towns, scores=[0.6, 0.8])
        >>> best.passage.text
        'Bonn is a town on the Rhine.'
        """
        check_top_n(top_n)
        paths = list(paths)
        for position, path in enumerate(paths):
            if not isinstance(path, Path):
                raise InvalidInput(f"Item {position} is a {type(path).__name__}, not a Path.")
        if self.prior is None and scores is not None:
            raise InvalidInput(NO_PRIOR)
        starts = self.prior and PathStarts.read(self.prior, paths, scores)  # what is wrong, before a model is asked
        scored = self.score_paths(query, paths)
        if starts:
            scored = starts.posteriors(scored)
        details = [{**detail, "path": path.ids} for path, (_, detail) in zip(paths, scored, strict=True)]
        return ranked(paths, [score for score, _ in scored], details, top_n)

    def _likelihoods(self, query: str, paths: Sequence[Path]) -> list[list[Likelihood]]:
        """Of the question after each path, for each instruction and each context of demonstrations behind it."""
        formula = self._formula
        target = formula.target_text(check_query(query), self.lm)
        prompts = self._prompts if paths else []
        limit = self._max_prompt_tokens or (
            MAX_PROMPT_TOKENS_WITH_DEMONSTRATIONS if self._shown_contexts else MAX_PROMPT_TOKENS
        )
        requests = []
        for path in paths:
            for instruction, shown in prompts:
                before, *rest = path_prompt(path, instruction, self._max_document_tokens)
                requests.append(formula.request((f"{shown}{before}", *rest), target, limit))
        settings = self.settings
        found = self.lm.log_likelihood(requests, temperature=settings.temperature, include_eos=formula.include_eos)
        return [found[start : start + len(prompts)] for start in range(0, len(found), len(prompts) or 1)]

    @cached_property
    def _prompts(self) -> list[tuple[str, str]]:
        """Instructions, each with the text of its demonstrations, which stands first, so that all paths share it.

        One instruction is enough for a model that hears nothing of them.
        """
        formula, prompts = self._formula, []
        for instruction in self.settings.instructions[: None if self.lm.reads_instructions else 1]:
            wording = instruction.replace("{path}", formula.template)
            for context in self._shown_contexts or [()]:
                shown = [
                    demonstration_text(item.path, wording, formula.target_text(item.question, self.lm), self.lm)
                    for item in context
                ]
                prompts.append((wording, " ".join([*shown, ""])))
        return prompts

    @property
    def _shown_contexts(self) -> Sequence[Sequence[Demonstration]]:
        """Empty for a model that hears nothing of them: to score each context would cost time for equal numbers."""
        return self._contexts if self.lm.reads_instructions else ()

    def _changed(self, lm: LanguageModel, settings: PromptRankSettings) -> PromptRank:
        return PromptRank(
            lm,
            **settings.to_dict(),
            demonstrations=self.demonstrations,
            demonstrations_per_prompt=self._demonstrations_per_prompt,
            max_document_tokens=self._max_document_tokens,
            max_prompt_tokens=self._max_prompt_tokens,
            preset=self._preset,
            prior=self.prior,
        )
