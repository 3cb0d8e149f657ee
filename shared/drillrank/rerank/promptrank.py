"""PromptRank: the score of a path of documents is the likelihood of the question after it.

    Score_q(c) = mean_t log p(q_t | q_<t, τ_c),   τ_c = demonstrations, the path's documents and an instruction

Scores under several instructions and contexts of demonstrations are combined by max or mean.
                                                                                   Khalifa et al. (2023), section 2

Demonstrations are questions with their gold paths. A prompt has room for few of them, so more of them are divided into
several contexts, each of which scores every path. The paper calls this demonstration ensembling (sections 2.3, 3.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, Literal

import numpy as np

from drillrank.errors import InvalidInput, check_limits, check_number, check_positive
from drillrank.likelihood import LanguageModel, Likelihood, load_language_model
from drillrank.passages import Passage, Path, read_query
from drillrank.prompts import Prompt, TruncatableText, TrustedText
from drillrank.rerank.base import Candidates, LikelihoodRanker
from drillrank.rerank.base import Ensemble as Ensemble
from drillrank.rerank.demonstrations import Demonstration, check_demonstrations, group_demonstrations
from drillrank.rerank.explaining import Shares, name_of
from drillrank.rerank.formula import LikelihoodFormula, preset_formula, warn_unread
from drillrank.rerank.prior import Prior, Scored, check_prior
from drillrank.settings import Preset, Settings, as_settings, check_one_of, check_preset, with_preset

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
_MAX_PROMPT_TOKENS = (600, 1024)  # without and with demonstrations; section 3
_PAPER_TEMPERATURE = 1.4  # section 3


def check_instructions(instructions: Sequence[str]) -> tuple[str, ...]:
    """Check that each instruction of a list contains `{path}` once, and return them.

    Raises:
        InvalidInput: The list is empty, or an instruction does not contain `{path}` exactly once.
    """
    if isinstance(instructions, str) or not isinstance(instructions, Iterable) or not instructions:
        raise InvalidInput(
            f"instructions must be a non-empty list of strings, got {instructions!r:.200}. Pass such a list."
        )
    for instruction in instructions:
        if not isinstance(instruction, str) or instruction.count("{path}") != 1:
            raise InvalidInput(
                "An instruction must contain the placeholder {path} once, which PromptRank replaces by the passages of "
                f"a path, got {instruction!r:.200}. Write it as in '{{path}} Write a question about these passages.'"
            )
    return tuple(instructions)


@dataclass(frozen=True, kw_only=True)
class PromptRankSettings(Settings):
    """Settings of prompts and of the prior. None leaves a value to the preset, or to the default that is named here.

    Attributes:
        demonstrations_per_prompt: Number of demonstrations in one context, of different kinds where possible. More
            demonstrations make several contexts, each of which scores every path once.
        max_demonstration_tokens: Number of tokens to keep of each document of a demonstration.
        max_document_tokens: Number of tokens to keep of each document of a path.
        max_prompt_tokens: Number of tokens of the prompt. Documents of the path are truncated to fit, but
            demonstrations, instruction and question are not. None is 600, or 1,024 with demonstrations, the paper's
            limits.
        formula: `"promptrank"` writes prompts and questions as the code of the authors does (see
            `drillrank.rerank.formula`): without titles, with a full stop behind a truncated document, the whole prompt
            truncated at its end, and only the first instruction with demonstrations. None writes titles and keeps
            instructions whole.
        preset: `"paper"` sets what the paper fixes and the other settings leave open: `formula="promptrank"`, and for
            `PromptRank` a temperature of 1.4.
        prior_weight: Factor of the log-probabilities of the prior.

    Raises:
        InvalidInput: A limit is below 1, the weight is not positive, or the formula or preset is unknown.
    """

    demonstrations_per_prompt: int = 2
    max_demonstration_tokens: int = 100
    max_document_tokens: int = 230
    max_prompt_tokens: int | None = None
    formula: Literal["promptrank"] | LikelihoodFormula | None = None
    preset: Preset | None = None
    prior_weight: float = 1.0

    def __post_init__(self) -> None:
        check_positive(
            demonstrations_per_prompt=self.demonstrations_per_prompt,
            max_demonstration_tokens=self.max_demonstration_tokens,
            max_document_tokens=self.max_document_tokens,
        )
        check_limits(max_prompt_tokens=self.max_prompt_tokens)
        check_number(prior_weight=self.prior_weight)
        formula: object = self.formula
        if formula not in ("promptrank", None) and not isinstance(formula, LikelihoodFormula):
            raise InvalidInput(f'formula must be "promptrank", a LikelihoodFormula or None, got {formula!r:.200}.')
        check_preset(self.preset)
        super().__post_init__()


class PromptRank(LikelihoodRanker[Path, Path]):
    """Scores paths of documents jointly by the likelihood of the question.

    `drillrank.evaluation.tune` finds good prompts, also among those that `rerank.tuning.generate_instructions` writes.

    Args:
        model: A language model, or its specification. A T5 that states a limit of 512 tokens has none: load it with
            `max_length=1024`, or demonstrations leave little room for the path.
        instructions: Prompts with `{path}`. None is the first five of the paper's Table A1.
        ensemble: `"max"` or `"mean"` of a path's scores under several prompts, which are all pairs of an instruction
            and a context of demonstrations. None is `"max"`, the paper's choice.
        temperature: Divisor of the logits before the softmax. None is 1, or with the preset 1.4, the paper's best for
            T5-XL on HotpotQA.
        demonstrations: Questions with their gold paths. They precede every path, with the same instruction and
            truncated documents. The unigram model ignores them.
        prior: Prior of a path from the first stage's score of its first document, as for `UPR`: `"cosine"` or
            `"retrieval"`. None is the paper's uniform prior. A path search adds its own prior over links.
        preset: `"paper"` sets what the paper fixes and the caller leaves open: the temperature, and prompts as
            `settings.formula="promptrank"` writes them. It requires a neural model.
        settings: Settings of prompts and of the prior.

    Scores are mean log-probabilities per question token, at most 0, comparable within one question only. With a prior
    they are those of the posterior, and `details` has `log_prior`.

    Raises:
        InvalidInput: An instruction lacks `{path}`, an ensemble, prior or preset is unknown, the temperature is not
            positive, an item is not a demonstration, or a formula or preset is given to the unigram model.

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
        instructions: Sequence[str] | None = None,
        ensemble: Ensemble | None = None,
        temperature: float | None = None,
        demonstrations: Sequence[Demonstration] = (),
        prior: Prior | None = None,
        preset: Preset | None = None,
        settings: PromptRankSettings | Mapping[str, Any] = PromptRankSettings(),
    ) -> None:
        self.settings = with_preset(as_settings(PromptRankSettings, settings), preset)
        is_paper = self.settings.preset == "paper"
        if temperature is None:
            temperature = _PAPER_TEMPERATURE if is_paper else 1.0
        ensemble = "max" if ensemble is None else ensemble
        check_one_of(Ensemble, ensemble=ensemble)
        check_number(temperature=temperature)
        self.ensemble, self.temperature = ensemble, temperature
        self.instructions = check_instructions(PROMPTRANK_INSTRUCTIONS[:5] if instructions is None else instructions)
        self.demonstrations = check_demonstrations(demonstrations)
        self.prior, self.prior_weight = check_prior(prior), self.settings.prior_weight
        self.language_model = lm = load_language_model(model)
        if not set(self.instructions) <= set(PROMPTRANK_INSTRUCTIONS):
            warn_unread(lm, "instructions")
        if self.demonstrations:
            warn_unread(lm, "demonstrations")
        formula = self.settings.formula or ("promptrank" if is_paper else None)
        self._follows_authors = formula == "promptrank"
        self._formula = LikelihoodFormula("{path}") if formula is None else preset_formula(formula, lm, "{path}")
        # A model that ignores demonstrations would score every context alike.
        demonstrations = self.demonstrations if lm.reads_instructions else ()
        self._contexts = group_demonstrations(demonstrations, self.settings.demonstrations_per_prompt)
        self._max_prompt_tokens = self.settings.max_prompt_tokens or _MAX_PROMPT_TOKENS[bool(demonstrations)]
        if self._follows_authors:
            self._formula = replace(self._formula, max_prompt_tokens=self._max_prompt_tokens)
        # One instruction represents all if none is read. The authors' code shows demonstrations under the first one.
        self._uses_first_instruction = not lm.reads_instructions or (self._follows_authors and bool(demonstrations))

    def with_model(self, model: LanguageModel) -> PromptRank:
        """Return a copy with another language model of the same kind, such as one that was fitted."""
        ranker = super().with_model(model)
        if model is not self.language_model:
            ranker.__dict__.pop("_prompt_starts", None)  # demonstrations are truncated by the model's tokens
        return ranker

    def likelihoods(self, query: str, paths: Iterable[Path]) -> list[list[Likelihood]]:
        """Return the likelihood of the question after each path, for each instruction and context of demonstrations.

        Raises:
            InvalidInput: The query is blank.
        """
        return self._likelihoods([Candidates(read_query(query), self._candidates(paths))])[0]

    def score_paths(self, query: str, paths: Sequence[Path]) -> list[Scored]:
        """Score each path by the likelihood alone, in the order of the paths.

        The details are `tokens` (number of tokens in the question), `reduce` (`"mean"`, or `"sum"` with a formula that
        adds up), `cut_tokens` (number of tokens that were truncated), `path` (ids of its passages), `nothing_matched`
        (True if no path contains a word of the question) and, with an `st:` model, `log_meaning`.
        """
        return self._scores(paths, self.likelihoods(query, paths))

    def score_prompts(self, query: str, paths: Sequence[Path]) -> list[list[list[float]]]:
        """Return the score of each path under each prompt: shape (paths, instructions, contexts).

        Without demonstrations there is one context.
        """
        n_contexts, scores_by_path = max(len(self._contexts), 1), []
        for likelihoods in self.likelihoods(query, paths):
            scores = list(map(attrgetter("mean" if self._formula.reduce == "mean" else "total"), likelihoods))
            if self._uses_first_instruction:
                scores *= len(self.instructions)
            scores_by_path.append([scores[start : start + n_contexts] for start in range(0, len(scores), n_contexts)])
        return scores_by_path

    def _candidates(self, candidates: Iterable[Path], /) -> list[Path]:
        paths = list(candidates)
        for position, path in enumerate(paths):
            if not isinstance(path, Path):
                raise InvalidInput(f"Item {position} must be a Path, got {path!r:.100}. Pass paths.")
        return paths

    @cached_property
    def _prompt_starts(self) -> list[tuple[str, Prompt]]:
        """Each instruction with each context of its demonstrations. They precede the path, so all paths share them."""
        starts = []
        for instruction in self.instructions[: 1 if self._uses_first_instruction else None]:
            template = instruction.replace("{path}", self._formula.template)
            for context in self._contexts or [()]:
                parts: list[str | TruncatableText] = []
                for demonstration in context:
                    path = self._truncate(demonstration.path, self.settings.max_demonstration_tokens)
                    question = self._formula.target_text(demonstration.question, self.language_model)
                    # Documents become strings, which no budget truncates.
                    prompt = build_path_prompt(path, template)
                    parts += [part.text if isinstance(part, TruncatableText) else part for part in prompt]
                    parts.append(f" {question} ")
                starts.append((template, tuple(parts)))
        return starts

    def _prompts_of(self, path: Path, /) -> list[Prompt]:
        limit = self.settings.max_document_tokens
        path = self._truncate(path, limit) if self._follows_authors else path
        return [(*start, *build_path_prompt(path, template, limit)) for template, start in self._prompt_starts]

    def _truncate(self, path: Path, max_tokens: int) -> Path:
        """Truncate the documents of a path. The authors' code omits titles and marks a truncation with a full stop."""
        documents = []
        for passage in path.passages:
            text = passage.text if self._follows_authors else passage.titled_text
            truncated = self.language_model.first_tokens(text, max_tokens)
            needs_stop = self._follows_authors and truncated != text and not truncated.strip().endswith(".")
            documents.append(Passage(f"{truncated}. " if needs_stop else truncated))
        return Path(tuple(documents))

    def _shares(self, query: str, paths: Sequence[Path]) -> Sequence[Shares]:
        """Return the share of each document of a path in each token. Empty for models that read whole paths."""
        if self.language_model.reads_instructions:
            return ()
        single = self.likelihoods(query, [Path((passage,)) for path in paths for passage in path.passages])
        if any(likelihood.parts for [likelihood] in single):  # tokens of several experts
            return ()
        probabilities, shares = iter([np.exp(likelihood.log_probs) for [likelihood] in single]), []
        for path in paths:
            path_shares = np.array([next(probabilities) for _ in path.passages])  # [n_passages, n_query_tokens]
            path_shares /= path_shares.sum(axis=0)
            has_several = len(path_shares) > 1
            shares.append(list(zip(map(name_of, path.passages), path_shares, strict=True)) if has_several else [])
        return shares


def build_path_prompt(path: Path, instruction: str, max_document_tokens: int | None = None) -> Prompt:
    """Fill the `{path}` of an instruction with `Document: d1 Document: d2 ...`. Blank documents are left out.

    >>> from drillrank.prompts import prompt_text
    >>> path = Path((Passage("a", title="T"), Passage(" "), Passage("b")))
    >>> prompt_text(build_path_prompt(path, "{path} Ask. Question:"))
    'Document: T a Document: b Ask. Question:'
    """
    before, after = instruction.split("{path}")
    parts: list[str | TruncatableText] = [TrustedText(before)]
    for passage in path.passages:
        if passage.titled_text.strip():
            parts.append(" Document: " if len(parts) > 1 else "Document: ")
            parts.append(TruncatableText(passage.titled_text, max_document_tokens))
    return (*parts, TrustedText(after))
