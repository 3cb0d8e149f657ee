"""PromptRank: the score of a path of documents is the likelihood of the question after it.

Score_q(c) = mean_t log p(q_t | q_<t, τ_c),   τ_c = demonstrations, the path's documents and an instruction
combined over several instructions and contexts of demonstrations by max or mean     Khalifa et al. (2023), section 2
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from drillrank.errors import InvalidInput
from drillrank.explanation import Explainable, Explanations
from drillrank.likelihood import LanguageModel, Likelihood, load_language_model
from drillrank.likelihood.base import check_temperature
from drillrank.likelihood.shared_turns import to_thread
from drillrank.passages import Path, Ranked, Ranking, check_query, check_top_n, ranked
from drillrank.prompts import PROMPTRANK_INSTRUCTIONS, check_instructions, path_prompt
from drillrank.rerank.base import Scored, check_pairs
from drillrank.rerank.contributions import paths_explained
from drillrank.rerank.demonstrations import (
    Demonstration,
    check_demonstrations,
    demonstration_contexts,
    demonstration_text,
)
from drillrank.rerank.first_stage import (
    NO_PRIOR,
    Prior,
    RetrievalScores,
    check_prior,
    meaning_details,
    scores_by_question,
)
from drillrank.rerank.path_starts import PathStarts
from drillrank.rerank.presets import LikelihoodFormula, preset_formula
from drillrank.rerank.promptrank_settings import (
    MAX_PROMPT_TOKENS,
    MAX_PROMPT_TOKENS_WITH_DEMONSTRATIONS,
    combined,
)
from drillrank.rerank.promptrank_settings import Ensemble as Ensemble
from drillrank.rerank.promptrank_settings import PromptRankSettings as PromptRankSettings
from drillrank.rerank.unmatched import levelled
from drillrank.settings import as_settings, check_one_of


class PromptRank:
    """Scores paths of documents jointly by the likelihood of the question; `rerank.tuning` finds good prompts.

    Args:
        model: A language model, or its specification. A T5 that names a limit of 512 tokens has none: load it with
            `max_length=1024`, or demonstrations leave little room for the path.
        instructions: Prompts that hold `{path}`; the first five of the paper's Table A1 by default.
        ensemble: How a path's scores under several prompts combine, `"max"` or `"mean"`. The prompts are all pairs of
            an instruction and a context of demonstrations.
        temperature: Divides the logits before the softmax; the paper finds 1.4 best for T5-XL on HotpotQA.
        demonstrations: Questions with their gold paths, shown before every path with the same instruction, their
            documents cut to 100 tokens. The unigram model ignores them.
        prior: What the first stage said of the document that a path begins with, before texts are read, as for `UPR`:
            `"cosine"`, `"retrieval"`, or None for the paper's uniform prior. A path search multiplies it with its prior
            over links.
        settings: How prompts are made, and how much the prior counts.

    Scores are mean log-probabilities per question token, at most 0, comparable within one question only. With a prior
    they are the posterior's, and `details` holds `log_prior`.

    Raises:
        InvalidInput: an instruction without `{path}`, an unknown ensemble or prior, a temperature that is not positive,
            an item is no demonstration, or a preset is unknown or given to the unigram model.

    >>> from drillrank import Passage
    >>> turing, london = Passage("Alan Turing was born in London."), Passage("London lies on the Thames.")
    >>> paths = [Path((turing,)), Path((turing, london))]
    >>> best = PromptRank().rank("Where does the Thames reach the town where Turing was born?", paths)[0]
    >>> len(best.passage.passages)
    2
    """

    def __init__(
        self,
        model: str | LanguageModel = "unigram",
        *,
        instructions: Sequence[str] = PROMPTRANK_INSTRUCTIONS[:5],
        ensemble: Ensemble = "max",
        temperature: float = 1.0,
        demonstrations: Sequence[Demonstration] = (),
        prior: Prior | None = None,
        settings: PromptRankSettings | Mapping[str, Any] = PromptRankSettings(),
    ) -> None:
        check_one_of(Ensemble, ensemble=ensemble)
        check_temperature(temperature)
        self.instructions = check_instructions(instructions)
        self.ensemble = ensemble
        self.temperature = temperature
        self.demonstrations = check_demonstrations(demonstrations)
        self.prior = check_prior(prior)
        self.settings = as_settings(PromptRankSettings, settings)
        self.language_model = load_language_model(model)
        preset = self.settings.preset
        self._formula = (
            LikelihoodFormula("{path}") if preset is None else preset_formula(preset, self.language_model, "{path}")
        )

    def with_model(self, model: LanguageModel) -> PromptRank:
        """The same with another language model."""
        return type(self)(
            model,
            instructions=self.instructions,
            ensemble=self.ensemble,
            temperature=self.temperature,
            demonstrations=self.demonstrations,
            prior=self.prior,
            settings=self.settings,
        )

    def score_paths(self, query: str, paths: Sequence[Path]) -> list[Scored]:
        """Score each path by the likelihood alone, in the order of the paths.

        The details are `tokens` (of the question), `reduce` (`"mean"`, or `"sum"` with a formula that adds up),
        `cut_tokens`, `nothing_matched` (see `drillrank.rerank.unmatched`) and, with an `st:` model, `log_meaning`.
        """
        return self._scored(self.likelihoods(query, paths))

    def _scored(self, groups: Sequence[Sequence[Likelihood]]) -> list[Scored]:
        scored: list[Scored] = []
        for group in groups:
            score = combined([self._formula.score(likelihood) for likelihood in group], self.ensemble)
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
        width = len(self.instructions)
        scored = []
        for group in self.likelihoods(query, paths):
            scores = [self._formula.score(likelihood) for likelihood in group]
            if not self.language_model.reads_instructions:
                scores *= width
            contexts = len(scores) // width
            scored.append([scores[start : start + contexts] for start in range(0, len(scores), contexts)])
        return scored

    def rank(
        self, query: str, paths: Sequence[Path], top_n: int | None = None, *, scores: RetrievalScores | None = None
    ) -> Ranking[Path]:
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
        >>> [best, _] = PromptRank(prior="retrieval").rank("Which town on the Rhine?", towns, scores=[0.6, 0.8])
        >>> best.passage.text
        'Bonn is a town on the Rhine.'
        """
        check_top_n(top_n)
        paths, starts = self._read(paths, scores)
        return self._ranking(query, paths, starts, self.likelihoods(query, paths), top_n)

    def _read(self, paths: Sequence[Path], scores: RetrievalScores | None) -> tuple[list[Path], PathStarts | None]:
        """Paths and what the first stage says of them; what is wrong is said before a model is asked."""
        paths = list(paths)
        for position, path in enumerate(paths):
            if not isinstance(path, Path):
                raise InvalidInput(f"Item {position} is a {type(path).__name__}, not a Path.")
        if self.prior is None and scores is not None:
            raise InvalidInput(NO_PRIOR)
        if self.prior is None:
            return paths, None
        return paths, PathStarts.read(self.prior, paths, scores, self.settings.prior_weight)

    def _ranking(
        self,
        query: str,
        paths: list[Path],
        starts: PathStarts | None,
        groups: Sequence[Sequence[Likelihood]],
        top_n: int | None,
    ) -> Ranking[Path]:
        scored = self._scored(groups)
        if starts:
            scored = starts.posteriors(scored)
        details = [{**detail, "path": path.ids} for path, (_, detail) in zip(paths, scored, strict=True)]
        found = ranked(paths, [score for score, _ in scored], details, top_n)
        return Explainable(found, partial(self._explained, query, paths, groups))

    def explain(
        self, query: str, ranking: Sequence[Ranked[Path]], candidates: Sequence[Path] | None = None
    ) -> Explanations:
        """What each token of the question adds to the scores of paths; of its own, `ranking.explain()` tells it.

        Args:
            query: The question.
            ranking: What `rank` returned, or some of it.
            candidates: All that were ranked, in order; None for those of the ranking. For a model that has not been
                fitted they are its collection.

        Returns:
            One explanation for each entry, in order; `total` equals the score within 1e-6.

        Raises:
            InvalidInput: the scores are not those of this ranker and these candidates.
        """
        paths = [item.passage for item in ranking] if candidates is None else list(candidates)
        places = range(len(paths)) if candidates is None else None
        return self._explained(query, paths, self.likelihoods(query, paths), ranking, places)

    def _explained(
        self,
        query: str,
        paths: Sequence[Path],
        groups: Sequence[Sequence[Likelihood]],
        ranking: Sequence[Ranked[Path]],
        places: Sequence[int] | None = None,
    ) -> Explanations:
        """Of a ranking of these paths, from the likelihoods that its scores were made of."""
        places = [item.details["position"] for item in ranking] if places is None else places
        return Explanations(paths_explained(self, query, paths, groups, ranking, places), query)

    def rank_many(
        self,
        queries: Sequence[str],
        path_lists: Sequence[Sequence[Path]],
        top_n: int | None = None,
        *,
        scores: Sequence[RetrievalScores | None] | None = None,
    ) -> list[Ranking[Path]]:
        """Rank one list of paths for each question, all in one pass of the model; each as `rank` would.

        Raises:
            InvalidInput: as `rank`, or the two lists differ in length.
        """
        check_pairs(queries, path_lists, "paths")
        check_top_n(top_n)
        scores = scores_by_question(self.prior, scores, len(path_lists))
        read = [self._read(*one) for one in zip(path_lists, scores, strict=True)]
        groups = self._likelihoods(queries, [paths for paths, _ in read])
        return [
            self._ranking(query, *one, group, top_n) for query, one, group in zip(queries, read, groups, strict=True)
        ]

    async def arank(
        self, query: str, paths: Sequence[Path], top_n: int | None = None, *, scores: RetrievalScores | None = None
    ) -> Ranking[Path]:
        """As `rank`, without blocking the event loop."""
        return await to_thread(self.rank, query, paths, top_n, scores=scores)

    async def arank_many(
        self,
        queries: Sequence[str],
        path_lists: Sequence[Sequence[Path]],
        top_n: int | None = None,
        *,
        scores: Sequence[RetrievalScores | None] | None = None,
    ) -> list[Ranking[Path]]:
        """As `rank_many`, without blocking the event loop."""
        return await to_thread(self.rank_many, queries, path_lists, top_n, scores=scores)

    def likelihoods(self, query: str, paths: Sequence[Path]) -> list[list[Likelihood]]:
        """Of the question's tokens after each path, for each instruction and each context of demonstrations.

        Raises:
            InvalidInput: the query is blank.
        """
        return self._likelihoods([query], [paths])[0]

    def _likelihoods(
        self, queries: Sequence[str], path_lists: Sequence[Sequence[Path]]
    ) -> list[list[list[Likelihood]]]:
        """`likelihoods` for each question."""
        formula = self._formula
        limit = self.settings.max_prompt_tokens or (
            MAX_PROMPT_TOKENS_WITH_DEMONSTRATIONS if self._shown_contexts else MAX_PROMPT_TOKENS
        )
        request_lists = []
        for query, paths in zip(queries, path_lists, strict=True):
            target = formula.target_text(check_query(query), self.language_model)
            requests = []
            for path in paths:
                for instruction, shown in self._prompts:
                    before, *rest = path_prompt(path, instruction, self.settings.max_document_tokens)
                    requests.append(formula.request((f"{shown}{before}", *rest), target, limit))
            request_lists.append(requests)
        found = self.language_model.log_likelihood_lists(
            request_lists, temperature=self.temperature, include_eos=formula.include_eos
        )
        width = len(self._prompts) if any(path_lists) else 1  # without paths, no prompt is made
        return [[one[start : start + width] for start in range(0, len(one), width)] for one in found]

    @cached_property
    def _prompts(self) -> list[tuple[str, str]]:
        """Instructions, each with the text of its demonstrations, which stands first, so that all paths share it.

        One instruction is enough for a model that ignores them.
        """
        formula, model, prompts = self._formula, self.language_model, []
        for instruction in self.instructions[: None if model.reads_instructions else 1]:
            wording = instruction.replace("{path}", formula.template)
            for context in self._shown_contexts or [()]:
                shown = [
                    demonstration_text(item.path, wording, formula.target_text(item.question, model), model)
                    for item in context
                ]
                prompts.append((wording, " ".join([*shown, ""])))
        return prompts

    @cached_property
    def _shown_contexts(self) -> Sequence[Sequence[Demonstration]]:
        """Empty for a model that ignores them: to score each context would cost time for equal numbers."""
        if not self.language_model.reads_instructions:
            return ()
        return demonstration_contexts(self.demonstrations, self.settings.demonstrations_per_prompt)
