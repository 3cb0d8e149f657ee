"""Prior of a path: a random surfer who knows the question, but not the texts of the passages.

    J(d | q)      = ν [q names d] / (number of passages that q names) + (1 - ν) / N
    P(d | q)      = t(d | q) J(d | q)                                                 first passage
    P(d' | d, q)  = t(d' | q) ((1 - γ) F(d' | d, q) + γ J(d' | q))                    step from d to d'
    P(|c|)        = σ for one passage, (1 - σ) (1 - ρ) ρ^(|c| - 2) for more
    log P(c | q)  = log P(|c|) + log P(d1 | q) + Σ_i log P(d_i+1 | d_i, q)

    A(c)          = α Σ_t log (max_d p(q_t | d) / mean_d p(q_t | d))                  alignment
    log-prior(c)  = λ log P(c | q) + A(c) + (log-prior of d1 by the first stage)      `CandidatePath.log_prior`

The surfer follows links (F), jumps to a passage that the question names by its title, or jumps anywhere (J). If the
question names no passage, ν is 0. If d has no links, γ is 1.

    F: Mean over the kinds of links of d. Within a kind, links are equally likely, or the words around them decide.
    t: exp(-β (1 - s(d) / max s)). s is the weight of the question's words in the parenthetical of d's title. max is the
       maximum over the passages with the same title.
    ρ: Each passage beyond the second costs -log ρ.
    λ: Above 1, because P(q | c) treats the words of a question as independent.
    α: 0 if all passages of a path explain a word alike. Then a passage that explains half of the question is penalized
       for the other half. A(c) removes this penalty, completely at α = 1. It is 0 for models that do not score a
       question after each document alone (`PathScorer.reads_documents`).

    random surfer: Brin & Page (1998); jumps that depend on the question: Haveliwala (2002)
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from drillrank.errors import InvalidInput
from drillrank.multihop.links import Names, NameTable
from drillrank.multihop.mentions import weigh_question_words
from drillrank.passages import PARENTHETICAL, Passage, Path, Ranked, ranked, title_match_tokens
from drillrank.rerank.prior import NO_PRIOR, FirstStageScores, Prior, RetrievalScores, check_paired, divisor, posteriors
from drillrank.settings import as_settings
from drillrank.text import name_tokens, terms


@dataclass(frozen=True, slots=True)
class PathPrior:
    """Parameters of the prior. All but the first two were fitted to training questions (docs/links.md).

    Attributes:
        jump: γ, share of steps that follow no link.
        named: ν, share of jumps to passages that the question names.
        single: σ, share of questions that one passage answers.
        longer: ρ, probability that a path of at least two passages has one more.
        namesake: β, weight of the words in the parenthetical of a title, among passages with the same title.
        aligned: α, weight of the alignment, from 0 to 1. At 1, each word of the question is explained by the best
            passage for it, at 0 by all passages alike. It affects scores only if the model scores a question after each
            document alone, as lexical models do.
        weight: λ, factor of the log-probability of a path.

    Raises:
        InvalidInput: A share is not between 0 and 1, or another value is out of range.

    >>> surfer = RandomSurfer(PathPrior(), 1000, {"turing"})
    >>> surfer.log_start("turing") > surfer.log_start("vale")
    True
    >>> links = [{"vale": 0.5, "london": 0.5}]
    >>> surfer.log_step("vale", links) > surfer.log_step("basel", links)
    True
    """

    jump: float = 0.3
    named: float = 0.3
    single: float = 0.5
    longer: float = 0.05
    namesake: float = 2.0
    aligned: float = 0.75
    weight: float = 1.4

    @staticmethod
    def from_dict(settings: Mapping[str, Any]) -> PathPrior:
        """Convert a mapping of field names, such as parsed JSON, to a prior.

        Raises:
            InvalidInput: A field does not exist, or its value cannot be used.

        >>> PathPrior.from_dict({"jump": 0.2}).jump
        0.2
        """
        return as_settings(PathPrior, settings)

    def __post_init__(self) -> None:
        for name in ("jump", "named", "single", "longer"):
            if not isinstance(share := getattr(self, name), int | float) or not 0 < share < 1:
                raise InvalidInput(f"{name} must be a number above 0 and below 1, got {share!r:.200}.")
        for name, maximum in (("namesake", math.inf), ("aligned", 1.0), ("weight", math.inf)):
            if not isinstance(value := getattr(self, name), int | float) or not 0 <= value <= maximum:
                raise InvalidInput(f"{name} must be a number from 0 to {maximum:g}, got {value!r:.200}.")


@dataclass(frozen=True, slots=True)
class RandomSurfer:
    """Natural logarithms of the probabilities of the surfer's steps, for one question.

    Attributes:
        prior: Parameters of the prior.
        n_passages: N, number of passages in the collection.
        named_ids: Ids of the passages that the question names.
        title_penalties: 1 - s(d) / max s by id, for passages whose title fits the question worse than the same title of
            another passage. The search adds the penalties of the passages that it reads.
    """

    prior: PathPrior
    n_passages: int
    named_ids: Collection[str]
    title_penalties: dict[str, float] = field(default_factory=dict)

    def log_length(self, n_passages: int) -> float:
        """Return log P(|c|) for this number of passages."""
        single, longer = self.prior.single, self.prior.longer
        if n_passages == 1:
            return math.log(single)
        return math.log((1 - single) * (1 - longer)) + (n_passages - 2) * math.log(longer)

    def log_start(self, passage_id: str) -> float:
        """Return log P(d | q)."""
        return self.log_step(passage_id, ())

    def log_step(self, passage_id: str, links: Sequence[Mapping[str, float]]) -> float:
        """Return log P(d' | d, q) of one passage."""
        return self.log_steps([passage_id], links)[0]

    def log_steps(self, passage_ids: Iterable[str], links: Sequence[Mapping[str, float]]) -> list[float]:
        """Return log P(d' | d, q) of each passage. Without links, the surfer jumps.

        Args:
            passage_ids: Ids of the passages d'.
            links: For each kind of links of d, the probability of each passage that they lead to, by id.
        """
        prior = self.prior
        jump_anywhere = 1 / max(self.n_passages, 1)
        if self.named_ids:
            jump_anywhere *= 1 - prior.named
        jump_to_named = prior.named / max(len(self.named_ids), 1)
        log_probs = []
        for id_ in passage_ids:
            probability = jump_anywhere
            if id_ in self.named_ids:
                probability = jump_to_named + jump_anywhere
            if links:
                sum_over_kinds = 0.0
                for probability_by_id in links:
                    sum_over_kinds += probability_by_id.get(id_, 0.0)
                probability = (1 - prior.jump) * (sum_over_kinds / len(links)) + prior.jump * probability
            log_probs.append(math.log(probability) - prior.namesake * self.title_penalties.get(id_, 0.0))
        return log_probs


class SharedTitles:
    """Groups of passages with the same title, apart from the trailing parenthetical.

    >>> films = [Passage("", id="old", title="Hotel (1967 film)"), Passage("", id="new", title="Hotel (2004 film)")]
    >>> list(SharedTitles(films).title_penalties("Who directed the 1967 film Hotel?", films))
    ['new']
    """

    def __init__(self, passages: Iterable[Passage]) -> None:
        groups = defaultdict[str, dict[str, frozenset[str]]](dict)
        for passage in passages:
            if title := " ".join(title_match_tokens(passage)):
                parenthetical = PARENTHETICAL.search(passage.title)
                groups[title][passage.id] = frozenset(terms(parenthetical["inside"])) if parenthetical else frozenset()
        self._group_by_id = {
            id_: group for group in groups.values() if len(group) > 1 and any(group.values()) for id_ in group
        }

    def title_penalties(self, question: str, passages: Iterable[Passage]) -> dict[str, float]:
        """Return 1 - s(d) / max s by id, for passages whose title fits worse than the same title of another passage."""
        weights = weigh_question_words(question)
        penalties = {}
        for passage in passages:
            if group := self._group_by_id.get(passage.id):
                fits = {id_: sum(weights.get(word, 0.0) for word in words) for id_, words in group.items()}
                if (best := max(fits.values())) > fits[passage.id]:
                    penalties[passage.id] = 1 - fits[passage.id] / best
        return penalties


def index_titles(passages: Iterable[Passage]) -> NameTable:
    """Return the titles of passages in memory."""
    return NameTable(passages, list_title_names)


def list_title_names(passage: Passage) -> list[tuple[str, float]]:
    """Return the title of a passage as its name."""
    title = title_match_tokens(passage)
    return [(" ".join(title), 1.0)] if title else []


def find_named_passages(question: str, titles: Names) -> set[str]:
    """Return the ids of the passages that a question names by their titles.

    A mention must contain a word that begins with a capital, a digit, or a letter of a script without case. Thus
    ordinary words do not name a passage. Otherwise, case is ignored. Of overlapping titles, the first and longest
    counts.

    >>> film, word = Passage("", id="film", title="The More the Merrier (film)"), Passage("", title="more")
    >>> find_named_passages("Who directed The More The Merrier?", index_titles([film, word]))
    {'film'}
    """
    tokens = name_tokens(question)
    named_ids: set[str] = set()
    last_end = 0
    for start, end, weights in titles.find_mentions([token.casefold() for token in tokens]):
        is_name = any(token[0].isalnum() and not token[0].islower() for token in tokens[start:end])
        if start >= last_end and is_name:
            named_ids.update(weights)
            last_end = end
    return named_ids


def check_rank_prior(prior: Prior | None) -> None:
    """Refuse a prior that needs scores, for a first stage that returns passages in order but without scores.

    Raises:
        InvalidInput: The prior is `"cosine"`.

    >>> check_rank_prior("retrieval")
    """
    if prior == "cosine":
        raise InvalidInput(
            'prior must be "retrieval" or None for a retriever of paths, which knows the order of records but not '
            'their scores, got "cosine". Rerank the documents with PromptRankRerank(prior="cosine") to use cosines.'
        )


class FirstStagePrior:
    """Prior of the paths of one passage, from the scores or ranks of the first stage. Longer paths inherit it.

    Args:
        prior: Kind of the first stage's scores.
        candidates: Passages that the first stage returned. Of passages with the same id, the first counts.
        scores: Score of each candidate. None if only their order is known.
        weight: Factor of the log-prior.

    Raises:
        InvalidInput: There are scores, but `prior` is None; or the scores cannot be used (see `FirstStageScores.read`).
    """

    def __init__(
        self, prior: Prior | None, candidates: Sequence[Passage], scores: RetrievalScores | None, weight: float = 1.0
    ) -> None:
        if prior is None:
            raise InvalidInput(NO_PRIOR)
        self._index_by_id: dict[str, int] = {}
        if scores is not None:
            check_paired(scores, candidates)
        for index, passage in enumerate(candidates):
            self._index_by_id.setdefault(passage.id, index)
        indices = self._index_by_id.values()
        distinct_scores = None if scores is None else [scores[index] for index in indices]
        self._first_stage = FirstStageScores.read(
            prior, [candidates[index] for index in indices], distinct_scores, weight
        )

    def rerank(self, paths: Sequence[Ranked[Path]]) -> list[Ranked[Path]]:
        """Add the prior of the first stage to the scores and to `details["log_prior"]` of all paths of one passage.

        `paths` are all candidates, scored by likelihood and surfer. The result is sorted, best first. Ties keep the
        order of the candidates.
        """
        items = sorted(paths, key=lambda item: self._index_by_id[item.passage.ids[0]])
        # The first stage's prior depends on the likelihoods alone, so the surfer's part is taken out and put back.
        link_log_priors = [item.details["log_prior"] for item in items]
        likelihoods = [
            (item.score - log_prior / divisor(item.details), item.details)
            for item, log_prior in zip(items, link_log_priors, strict=True)
        ]
        scored = posteriors(likelihoods, self._first_stage)
        scores, all_details = [], []
        for (score, details), log_prior in zip(scored, link_log_priors, strict=True):
            scores.append(score + log_prior / divisor(details))
            all_details.append({**details, "log_prior": details["log_prior"] + log_prior})
        return ranked([item.passage for item in items], scores, all_details)
