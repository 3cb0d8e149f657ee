"""Prior of a path: a random surfer who knows the question, but not the texts of the passages.

    P(d | q)     = t(d | q) (ν [d is named in q] / (number of passages named) + (1 - ν) / N)
    P(d' | d, q) = t(d' | q) ((1 - γ) F(d' | d, q) + γ (as for P(d' | q)))
    F(d' | d, q) = mean over the kinds of links of d of P(d' | d, q, kind), which is uniform or by the words around it
    t(d | q)     = exp(-β (1 - s(d) / max s)),  s: weight of the question's words in the parenthetical of d's title,
                                                max: over the passages with the same title
    P(|c|)       = σ for one passage, (1 - σ) (1 - ρ) ρ^(|c| - 2) for more
    log P(c | q) = log P(|c|) + log P(d1 | q) + Σ log P(d_i+1 | d_i, q)

    log of the score of c = log P(q | c) + α Σ_t log (max_d p(q_t | d) / mean_d p(q_t | d)) + λ log P(c | q)

The surfer follows links, jumps to a passage that the question names by its title, or jumps anywhere, which costs log N.
λ exceeds 1 because P(q | c) treats the words of a question as independent. α is the reader's knowledge of which passage
explains which word. At 0, all passages of a path explain a word alike, so that one that explains half of the question
is penalized for the other half. Few questions of path search have their answer in one passage, so σ is small. Each
passage beyond the second costs log ρ.
                           random surfer: Brin & Page (1998); personalised jumps: Haveliwala (2002)
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from drillrank.errors import InvalidInput
from drillrank.multihop.links import Names, NameTable
from drillrank.multihop.mentions import weigh_question_words
from drillrank.passages import PARENTHETICAL, Passage, Path, Ranked, ranked, title_match_tokens
from drillrank.rerank.base import RetrievalScores, divisor
from drillrank.rerank.prior import NO_PRIOR, FirstStage, Prior, check_paired, posteriors
from drillrank.text import name_tokens, terms


@dataclass(frozen=True, slots=True)
class PathPrior:
    """Parameters of the prior. All but the first two were fitted to training questions (docs/links.md).

    Attributes:
        jump: γ, share of steps that follow no link.
        named: ν, share of jumps to passages that the question names.
        single: σ, share of questions that one passage answers.
        longer: ρ, share of paths of two passages that continue, and of those with each further passage.
        namesake: β, weight of the words in the parenthetical of a title, among passages with the same title.
        aligned: α, from 0 to 1, the reader's knowledge of which passage explains which word. It counts if a lexical
            model scores.
        weight: λ, factor of the log-prior.

    Raises:
        InvalidInput: A share is not between 0 and 1, or another value is out of range.

    >>> surfer = PathPrior().build_surfer(1000, {"turing"})
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
        names = [item.name for item in fields(PathPrior)]
        if not set(settings) <= set(names):
            raise InvalidInput(f"PathPrior cannot be made from {settings!r:.200}. Use the fields {', '.join(names)}.")
        return PathPrior(**settings)

    def __post_init__(self) -> None:
        for name in ("jump", "named", "single", "longer"):
            if not isinstance(share := getattr(self, name), int | float) or not 0 < share < 1:
                raise InvalidInput(f"{name} must be a number above 0 and below 1, got {share!r:.200}.")
        for name, maximum in (("namesake", math.inf), ("aligned", 1.0), ("weight", math.inf)):
            if not isinstance(value := getattr(self, name), int | float) or not 0 <= value <= maximum:
                raise InvalidInput(f"{name} must be a number from 0 to {maximum:g}, got {value!r:.200}.")

    def build_surfer(self, n_passages: int, named_ids: Collection[str]) -> RandomSurfer:
        """Return the random surfer of one question.

        Args:
            n_passages: N, number of passages.
            named_ids: Ids of the passages that the question names.
        """
        return RandomSurfer(self, n_passages, named_ids)


@dataclass(frozen=True, slots=True)
class RandomSurfer:
    """Natural logarithms of the probabilities of a reader's steps, for one question.

    Attributes:
        prior: Parameters of the prior.
        n_passages: N, number of passages.
        named_ids: Ids of the passages that the question names.
        title_penalties: 1 - s(d) / max s by id, for passages whose title fits the question worse than the same title of
            another passage. The search adds those of the passages that it reads.
    """

    prior: PathPrior
    n_passages: int
    named_ids: Collection[str]
    title_penalties: dict[str, float] = field(default_factory=dict)

    def log_length(self, n_passages: int) -> float:
        """Return log P(|c|) of a path with this number of passages."""
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
        """Return log P(d' | d, q) of each passage. Without links, the reader jumps.

        Args:
            passage_ids: Ids of the passages d'.
            links: Probability of each passage that d links to, by id, for each kind of links of d.
        """
        prior = self.prior
        jump_anywhere = 1 / max(self.n_passages, 1)
        if self.named_ids:
            jump_anywhere *= 1 - prior.named
        jump_to_named = prior.named / max(len(self.named_ids), 1)
        log_probs = []
        for id_ in passage_ids:
            probability = jump_to_named + jump_anywhere if id_ in self.named_ids else jump_anywhere
            if links:
                followed = 0.0
                for probability_by_id in links:
                    followed += probability_by_id.get(id_, 0.0)
                probability = (1 - prior.jump) * (followed / len(links)) + prior.jump * probability
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

    Case is ignored if a word of the mention begins with a capital, a digit, or a letter of a script without case. Thus
    ordinary words are not titles. Of overlapping titles, the first and longest counts.

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
    """Refuse a prior that needs scores, for a first stage whose order alone is known.

    Raises:
        InvalidInput: The prior is `"cosine"`.

    >>> check_rank_prior("retrieval")
    """
    if prior == "cosine":
        raise InvalidInput(
            'prior must be "retrieval" or None for a retriever of paths, which knows the order of records but not '
            'their scores, got "cosine". Rerank the documents with PromptRankRerank(prior="cosine") to use cosines.'
        )


class FirstHopPrior:
    """Prior of the paths of one passage, from the first stage.

    Args:
        prior: Kind of the first stage's scores; None for no prior.
        candidates: Passages that the first stage returned. Of passages with the same id, the first counts.
        scores: Scores of the candidates. None if they are unknown.
        weight: Factor of the log-prior.

    Attributes:
        has_prior: True if there is a prior.

    Raises:
        InvalidInput: As for `FirstStage.read`, or there are scores, but no prior.
    """

    def __init__(
        self, prior: Prior | None, candidates: Sequence[Passage], scores: RetrievalScores | None, weight: float = 1.0
    ) -> None:
        self._first_stage: FirstStage | None = None
        self._index_by_id: dict[str, int] = {}
        self.has_prior = prior is not None
        if prior is None:
            if scores is not None:
                raise InvalidInput(NO_PRIOR)
            return
        if scores is not None:
            check_paired(scores, candidates)
        for index, passage in enumerate(candidates):
            self._index_by_id.setdefault(passage.id, index)
        indices = self._index_by_id.values()
        distinct_scores = None if scores is None else [scores[index] for index in indices]
        self._first_stage = FirstStage.read(prior, [candidates[index] for index in indices], distinct_scores, weight)

    def rerank(self, paths: Sequence[Ranked[Path]]) -> list[Ranked[Path]]:
        """Return all paths of one passage with the prior in their scores, best first.

        Ties keep the order of the candidates.
        """
        if self._first_stage is None:
            return list(paths)
        items = sorted(paths, key=lambda item: self._index_by_id[item.passage.ids[0]])
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
