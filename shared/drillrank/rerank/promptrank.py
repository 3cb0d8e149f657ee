"""PromptRank: the score of a path of documents is the likelihood of the question after it.

Score_q(c) = mean_t log p(q_t | q_<t, τ_c),   τ_c = demonstrations, the path's documents and an instruction
combined over several instructions and contexts of demonstrations by max or mean     Khalifa et al. (2023), section 2
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput, check_limits, check_positive
from drillrank.explanation import Explainable, Explanation, Explanations, Term
from drillrank.likelihood import LanguageModel, Likelihood, load_language_model
from drillrank.likelihood.base import check_temperature
from drillrank.passages import Passage, Path, Ranked, Ranking, check_query, check_top_n, ranked
from drillrank.prompts import Prompt
from drillrank.rerank.base import (
    LikelihoodFormula,
    Ranker,
    RetrievalScores,
    Scored,
    check_pairs,
    level_unmatched,
    likelihood_explained,
    name_of,
    preset_formula,
    warn_unread,
)
from drillrank.rerank.demonstrations import (
    Demonstration,
    check_demonstrations,
    demonstration_contexts,
    path_prompt,
    shown_demonstration,
)
from drillrank.rerank.prior import PathStarts, Prior, check_prior, check_prior_weight, scores_by_question
from drillrank.settings import as_settings, check_one_of

if TYPE_CHECKING:
    from typing_extensions import Self

Ensemble = Literal["max", "mean"]

# Table A1: instructions in falling order of R@2 on 128 examples of HotpotQA.
PROMPTRANK_INSTRUCTIONS = (
    "{path} Review previous documents and ask some question. Question:",
    "{path} Review the previous documents and answer question. Question:",
    "{path} Read the previous documents and write the following question. Question:",
    "{path} Search previous documents and ask the question. Question:",
    "To analyze the documents and ask question. {path} Question:",
    "{path} To read the previous documents and write a question. Question:",
    "{path} Read previous documents and write your exam question. Question:",
    "{path} Read the previous documents and ask this question. Question:",
    "Read two documents and answer a question. {path} Question:",
    "Identify all documents and ask question. {path} Question:",
)
_MAX_PROMPT_TOKENS, _MAX_PROMPT_TOKENS_WITH_DEMONSTRATIONS = 600, 1024  # section 3


def check_instructions(instructions: Sequence[str]) -> tuple[str, ...]:
    """Instructions for paths, each with `{path}` once.

    Raises:
        InvalidInput: none is given, or one does not hold `{path}` exactly once.
    """
    if isinstance(instructions, str) or not instructions:
        raise InvalidInput(f"Instructions are a non-empty list of strings, not {instructions!r:.200}.")
    for instruction in instructions:
        if not isinstance(instruction, str) or instruction.count("{path}") != 1:
            raise InvalidInput(f"An instruction holds {{path}} exactly once; not {instruction!r:.200}.")
    return tuple(instructions)


@dataclass(frozen=True, kw_only=True)
class PromptRankSettings:
    """How prompts are made, and how much the prior counts.

    Attributes:
        demonstrations_per_prompt: How many demonstrations share a context, of different kinds where possible; more of
            them make several contexts, each of which scores every path once.
        max_demonstration_tokens: Tokens that each document of a demonstration keeps.
        max_document_tokens: Tokens that each document of a path may keep.
        max_prompt_tokens: Tokens of the prompt; the path's documents give way, demonstrations, instruction and question
            never do. None for the paper's 600, or 1,024 with demonstrations.
        preset: `"promptrank"` writes prompts and questions as the paper's code does (see `drillrank.rerank.base`), with
            its cuts: no titles, a full stop behind a document that is cut, the whole prompt cut at its end, and with
            demonstrations the first instruction alone; that code's own ensemble is "mean". `"paper"` is the same.
        prior_weight: How much the prior counts: its log-probabilities are multiplied by it, up to a constant.

    Raises:
        InvalidInput: a limit is below 1, or the weight is not positive.
    """

    demonstrations_per_prompt: int = 2
    max_demonstration_tokens: int = 100
    max_document_tokens: int = 230
    max_prompt_tokens: int | None = None
    preset: str | LikelihoodFormula | None = None
    prior_weight: float = 1.0

    def __post_init__(self) -> None:
        check_positive(
            demonstrations_per_prompt=self.demonstrations_per_prompt,
            max_demonstration_tokens=self.max_demonstration_tokens,
            max_document_tokens=self.max_document_tokens,
        )
        check_limits(max_prompt_tokens=self.max_prompt_tokens)
        check_prior_weight(self.prior_weight)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Settings by name, as JSON has them.

        Raises:
            InvalidInput: a name is unknown, or a value cannot be used.
        """
        return as_settings(cls, given)


class PromptRank(Ranker[Path, Path]):
    """Scores paths of documents jointly by the likelihood of the question; `rerank.tuning` finds good prompts.

    Args:
        model: A language model, or its specification. A T5 that names a limit of 512 tokens has none: load it with
            `max_length=1024`, or demonstrations leave little room for the path.
        instructions: Prompts that hold `{path}`; the first five of the paper's Table A1 by default.
        ensemble: How a path's scores under several prompts combine, `"max"` or `"mean"`. The prompts are all pairs of
            an instruction and a context of demonstrations.
        temperature: Divides the logits before the softmax; the paper finds 1.4 best for T5-XL on HotpotQA.
        demonstrations: Questions with their gold paths, shown before every path with the same instruction, their
            documents cut. The unigram model ignores them.
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
        if not set(self.instructions) <= set(PROMPTRANK_INSTRUCTIONS):
            warn_unread(self.language_model, "instructions")
        if self.demonstrations:
            warn_unread(self.language_model, "demonstrations")
        preset = "promptrank" if self.settings.preset == "paper" else self.settings.preset
        self._as_authors = preset == "promptrank"
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
        `cut_tokens`, `nothing_matched` (no path holds a word of the question) and, with an `st:` model, `log_meaning`.
        """
        return self._scored(self.likelihoods(query, paths))

    def _scored(self, groups: Sequence[Sequence[Likelihood]]) -> list[Scored]:
        scored: list[Scored] = []
        for group in groups:
            scores, details = zip(*map(self._formula.scored, group), strict=True)
            cut = max(detail["cut_tokens"] for detail in details)
            scored.append((combined(scores, self.ensemble), {**details[0], "cut_tokens": cut}))
        return level_unmatched(scored, [group[0].matched for group in groups])

    def score_prompts(self, query: str, paths: Sequence[Path]) -> list[list[list[float]]]:
        """Scores of each path under each prompt, before they are combined: shape (paths, instructions, contexts).

        Without demonstrations there is one context.
        """
        width = len(self.instructions)
        scored = []
        for group in self.likelihoods(query, paths):
            scores = [self._formula.scored(likelihood)[0] for likelihood in group]
            if self._reads_one:
                scores *= width
            contexts = len(scores) // width
            scored.append([scores[start : start + contexts] for start in range(0, len(scores), contexts)])
        return scored

    def rank_many(
        self,
        queries: Sequence[str],
        passage_lists: Sequence[Iterable[Path]],
        top_n: int | None = None,
        *,
        scores: Sequence[RetrievalScores | None] | None = None,
    ) -> list[Ranking[Path]]:
        """Rank one list of paths for each question, all in one pass of the model; each as `rank` would.

        Raises:
            InvalidInput: as `rank`, or the two lists differ in length.
        """
        check_pairs(queries, passage_lists, "paths")
        check_top_n(top_n)
        scores = scores_by_question(self.prior, scores, len(passage_lists))
        lists = list(map(_checked, passage_lists))
        # What is wrong with scores is said before a model is asked.
        weight = self.settings.prior_weight
        starts = [PathStarts.read(self.prior, *pair, weight) for pair in zip(lists, scores, strict=True)]
        rankings = []
        for query, paths, start, groups in zip(queries, lists, starts, self._likelihoods(queries, lists), strict=True):
            scored = self._scored(groups)
            if start is not None:
                scored = start.posteriors(scored)
            details = [{**detail, "path": path.ids} for path, (_, detail) in zip(paths, scored, strict=True)]
            found = ranked(paths, [score for score, _ in scored], details, top_n)
            rankings.append(Explainable(found, partial(self._explained, query, paths, groups)))
        return rankings

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
        formula, limit = self._formula, self.settings.max_prompt_tokens
        if limit is None:
            limit = _MAX_PROMPT_TOKENS_WITH_DEMONSTRATIONS if self._shown_contexts else _MAX_PROMPT_TOKENS
        if self._as_authors:  # T5's </s> is counted there
            formula = replace(formula, max_prompt_tokens=limit - self.language_model.include_eos_by_default)
            path_lists = [
                [self._shortened(path, self.settings.max_document_tokens) for path in paths] for paths in path_lists
            ]
        request_lists = []
        for query, paths in zip(queries, path_lists, strict=True):
            target = formula.target_text(check_query(query), self.language_model)
            prompts = [
                (*shown, *path_prompt(path, instruction, self.settings.max_document_tokens))
                for path in paths
                for instruction, shown in self._prompts
            ]
            request_lists.append([formula.request(prompt, target, limit) for prompt in prompts])
        found = self.language_model.log_likelihood_lists(
            request_lists, temperature=self.temperature, include_eos=formula.include_eos
        )
        width = len(self._prompts) if any(path_lists) else 1  # without paths, no prompt is made
        return [[one[start : start + width] for start in range(0, len(one), width)] for one in found]

    @cached_property
    def _prompts(self) -> list[tuple[str, Prompt]]:
        """Instructions, each with its demonstrations, which stand first, so that all paths share them.

        One instruction is enough for a model that ignores them.
        """
        formula, model, prompts = self._formula, self.language_model, []
        limit = self.settings.max_demonstration_tokens
        for instruction in self.instructions[: 1 if self._reads_one else None]:
            wording = instruction.replace("{path}", formula.template)
            for context in self._shown_contexts or [()]:
                shown = [
                    part
                    for item in context
                    for part in shown_demonstration(
                        self._shortened(item.path, limit), wording, formula.target_text(item.question, model)
                    )
                ]
                prompts.append((wording, tuple(shown)))
        return prompts

    @property
    def _reads_one(self) -> bool:
        """Whether the first instruction stands for all: none is read, or the authors' code goes on to contexts."""
        return not self.language_model.reads_instructions or bool(self._as_authors and self._shown_contexts)

    def _shortened(self, path: Path, most: int) -> Path:
        """The path's documents without their ends; with the authors' preset as their code has it."""
        documents = []
        for passage in path.passages:
            text = passage.text if self._as_authors else passage.titled_text
            cut = self.language_model.first_tokens(text, most)
            stop = self._as_authors and cut != text and not cut.strip().endswith(".")
            documents.append(Passage(f"{cut}. " if stop else cut))
        return Path(tuple(documents))

    @cached_property
    def _shown_contexts(self) -> Sequence[Sequence[Demonstration]]:
        """Empty for a model that ignores them: to score each context would cost time for equal numbers."""
        if not self.language_model.reads_instructions:
            return ()
        return demonstration_contexts(self.demonstrations, self.settings.demonstrations_per_prompt)


def _checked(paths: Iterable[Path]) -> list[Path]:
    paths = list(paths)
    for position, path in enumerate(paths):
        if not isinstance(path, Path):
            raise InvalidInput(f"Item {position} is a {type(path).__name__}, not a Path.")
    return paths


def combined(scores: Sequence[float], ensemble: Ensemble) -> float:
    """One score of a path from those under each prompt."""
    return max(scores) if ensemble == "max" else sum(scores) / len(scores)


def paths_explained(
    ranker: PromptRank,
    query: str,
    paths: Sequence[Path],
    groups: Sequence[Sequence[Likelihood]],
    ranking: Sequence[Ranked[Any]],
    places: Sequence[int],
    taken: Sequence[Term | None] | None = None,
) -> list[Explanation]:
    """Explanations of a ranking of paths, or of passages by their best paths.

    Of several prompts the best counts, and what is likely after nothing is compared under the same one; or the mean of
    both.

    Args:
        ranker: Scored the paths.
        query: The question.
        paths: That were read.
        groups: Their likelihoods.
        ranking: Entries that some of these paths brought.
        places: Of the path of each entry.
        taken: How a reader takes the path of each entry.

    Raises:
        InvalidInput: an entry has another score by this ranker.
    """
    if not ranking:
        return []
    collection = paths if ranker.language_model.wants_fit else ()  # all of them are
    nothing = ranker.likelihoods(query, [*collection, Path((Passage(""),))])[-1]
    shares = _shares(ranker, query, paths)
    found = []
    for item, place, path in zip(ranking, places, taken or [None] * len(ranking), strict=True):
        group = groups[place]
        if ranker.ensemble == "mean":
            own, base = _mean(group), _mean(nothing)
        else:
            totals = [likelihood.total for likelihood in group]
            own, base = group[totals.index(max(totals))], nothing[totals.index(max(totals))]
        names = map(name_of, paths[place].passages)
        of_each = list(zip(names, shares[place], strict=True)) if shares and len(shares[place]) > 1 else []
        found.append(likelihood_explained(item, own, base, model=ranker.language_model, shares=of_each, path=path))
    return found


def _shares(ranker: PromptRank, query: str, paths: Sequence[Path]) -> list[npt.NDArray[np.float64]]:
    """Of each document of each path in each token, shape (documents, tokens); none for models that read whole paths."""
    if ranker.language_model.reads_instructions:
        return []
    alone = ranker.likelihoods(query, [Path((passage,)) for path in paths for passage in path.passages])
    if any(likelihood.parts for [likelihood] in alone):  # tokens of several experts
        return []
    probabilities = np.exp([group[0].log_probs for group in alone])
    ends = np.cumsum([len(path.passages) for path in paths])[:-1]
    return [own / own.sum(axis=0) for own in np.split(probabilities, ends)]


def _mean(group: Sequence[Likelihood]) -> Likelihood:
    """Under several prompts as one."""
    log_probs = np.mean([likelihood.log_probs for likelihood in group], axis=0)
    total = float(np.mean([likelihood.total for likelihood in group]))
    parts = tuple(map(_mean, zip(*(likelihood.parts for likelihood in group), strict=True)))
    return replace(group[0], log_probs=log_probs, total=total, parts=parts)
