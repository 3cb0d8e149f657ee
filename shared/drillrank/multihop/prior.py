"""The prior of a path: how a reader would walk who knows the question's words, but no passage's text.

    P(d | q)     = t(d | q) (ν [d is named in q] / (number of passages named) + (1 - ν) / N)
    P(d' | d, q) = t(d' | q) ((1 - γ) F(d' | d, q) + γ (as for P(d' | q)))
    F(d' | d, q) = mean over the kinds of links of d of P(d' | d, q, kind): one of all alike, or by the words around it
    t(d | q)     = exp(-β (1 - s(d) / max s)),  s: words of the question in the parenthesis of d's title; max: namesakes
    P(|c|)       = σ for one passage, (1 - σ) (1 - ρ) ρ^(|c| - 2) for more
    log P(c | q) = log P(|c|) + log P(d1 | q) + Σ log P(d_i+1 | d_i, q)

    log of the score of c = log P(q | c) + α Σ_t log (max_d p(q_t | d) / mean_d p(q_t | d)) + λ log P(c | q)

A random surfer whose jumps are personalised by the question: a path over links is cheap, a jump to a passage that the
question names by its title costs little, and a jump to anywhere costs log N. λ is above 1 because the words of a
question are not as independent as P(q | c) takes them for. α is how well a reader knows which passage of the path
explains which word: at 0 each is as likely as the next, so that a passage that explains the missing half of a question
is blamed for the other half. Who searches paths has questions that few single passages answer: σ is small; each passage
beyond the second has a price, log ρ, so that a longer path explains what the shorter one does not.
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
    """The habits of the reader; all but the first two were fitted to training questions (docs/links.md).

    Attributes:
        jump: γ, the share of steps that follow no link.
        named: ν, the share of jumps to passages that the question names.
        single: σ, the share of questions that one passage answers.
        longer: ρ, the share of paths that go on after two passages, and after each one more.
        namesake: β, how much the words in the parenthesis of a title count among passages of one name.
        aligned: α, from 0 to 1, how well a reader knows which passage explains which word; where a lexical model
            scores.
        weight: λ, how much the prior counts beside the likelihood.

    Raises:
        InvalidInput: a share that is not between 0 and 1, or another value that cannot be used.

    >>> reader = PathPrior().build_surfer(1000, {"turing"})
    >>> reader.log_start("turing") > reader.log_start("vale")
    True
    >>> links = [{"vale": 0.5, "london": 0.5}]
    >>> reader.log_step("vale", links) > reader.log_step("basel", links)
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
    def from_dict(given: Mapping[str, Any]) -> PathPrior:
        """A prior from `dataclasses.asdict`, as JSON has it.

        Raises:
            InvalidInput: a name is unknown, or a value cannot be used.

        >>> PathPrior.from_dict({"jump": 0.2}).jump
        0.2
        """
        known = [item.name for item in fields(PathPrior)]
        if not set(given) <= set(known):
            raise InvalidInput(f"A PathPrior has {', '.join(known)}; not {given!r:.200}.")
        return PathPrior(**given)

    def __post_init__(self) -> None:
        for name in ("jump", "named", "single", "longer"):
            if not isinstance(share := getattr(self, name), int | float) or not 0 < share < 1:
                raise InvalidInput(f"{name} is a share between 0 and 1, without these themselves; not {share!r:.200}.")
        for name, most in (("namesake", math.inf), ("aligned", 1.0), ("weight", math.inf)):
            if not isinstance(value := getattr(self, name), int | float) or not 0 <= value <= most:
                raise InvalidInput(f"{name} is a number from 0 to {most:g}, not {value!r:.200}.")

    def build_surfer(self, size: int, named: Collection[str]) -> RandomSurfer:
        """The reader of one question.

        Args:
            size: Number of passages, N.
            named: Ids of those that the question names.
        """
        return RandomSurfer(self, size, named)


@dataclass(frozen=True, slots=True)
class RandomSurfer:
    """Log-probabilities (natural, at most 0) of a reader's walk, for one question.

    Attributes:
        prior: The reader's habits.
        size: Number of passages, N.
        named: Ids of those that the question names.
        title_penalties: 1 - s(d) / max s of passages of which a namesake's title fits the question better.
    """

    prior: PathPrior
    size: int
    named: Collection[str]
    title_penalties: dict[str, float] = field(default_factory=dict)

    def log_length(self, passages: int) -> float:
        """Log P(|c|) of a path of so many passages."""
        single, longer = self.prior.single, self.prior.longer
        if passages == 1:
            return math.log(single)
        return math.log((1 - single) * (1 - longer)) + (passages - 2) * math.log(longer)

    def log_start(self, passage_id: str) -> float:
        """Log P(d | q)."""
        return self.log_step(passage_id, ())

    def log_step(self, passage_id: str, links: Sequence[Mapping[str, float]]) -> float:
        """Log P(d' | d, q) of one passage."""
        return self.log_steps([passage_id], links)[0]

    def log_steps(self, passage_ids: Iterable[str], links: Sequence[Mapping[str, float]]) -> list[float]:
        """Log P(d' | d, q) of each passage; where d leads nowhere, the reader jumps.

        Args:
            passage_ids: d'.
            links: Where d leads, of each kind of links that leads anywhere, with the chance of each passage.
        """
        prior, found = self.prior, []
        anywhere = 1 / max(self.size, 1)
        if self.named:
            anywhere *= 1 - prior.named
        by_name = prior.named / max(len(self.named), 1)
        for id_ in passage_ids:
            chance = by_name + anywhere if id_ in self.named else anywhere
            if links:
                followed = 0.0
                for kind in links:
                    followed += kind.get(id_, 0.0)
                chance = (1 - prior.jump) * (followed / len(links)) + prior.jump * chance
            found.append(math.log(chance) - prior.namesake * self.title_penalties.get(id_, 0.0))
        return found


class SharedTitles:
    """Tells how much worse than a namesake's a passage's title fits a question.

    >>> films = [Passage("", id="old", title="Hotel (1967 film)"), Passage("", id="new", title="Hotel (2004 film)")]
    >>> list(SharedTitles(films).title_penalties("Who directed the 1967 film Hotel?", films))
    ['new']
    """

    def __init__(self, passages: Iterable[Passage]) -> None:
        named = defaultdict[str, dict[str, frozenset[str]]](dict)
        for passage in passages:
            if title := " ".join(title_match_tokens(passage)):
                inside = PARENTHETICAL.search(passage.title)
                named[title][passage.id] = frozenset(terms(inside["inside"])) if inside else frozenset()
        self._group = {id_: of for of in named.values() if len(of) > 1 and any(of.values()) for id_ in of}

    def title_penalties(self, question: str, passages: Iterable[Passage]) -> dict[str, float]:
        """1 - s(d) / max s of those of the passages of which a namesake's title fits better."""
        weights = weigh_question_words(question)
        found = {}
        for passage in passages:
            if group := self._group.get(passage.id):
                fits = {id_: sum(weights.get(word, 0.0) for word in words) for id_, words in group.items()}
                if (best := max(fits.values())) > fits[passage.id]:
                    found[passage.id] = 1 - fits[passage.id] / best
        return found


def index_titles(passages: Iterable[Passage]) -> NameTable:
    """Titles in memory."""
    return NameTable(passages, list_title_names)


def list_title_names(passage: Passage) -> list[tuple[str, float]]:
    """The title of a passage, as a name that it is found by."""
    title = title_match_tokens(passage)
    return [(" ".join(title), 1.0)] if title else []


def find_named_passages(question: str, titles: Names) -> set[str]:
    """Ids of the passages that a question names by their titles.

    Questions are written with less care than articles: letters of either case are the same, if only one letter of
    the mention is a capital or a digit, so that ordinary words stay ordinary, or of a script without
    small letters. Of overlapping titles the first and longest counts.

    >>> film, word = Passage("", id="film", title="The More the Merrier (film)"), Passage("", title="more")
    >>> find_named_passages("Who directed The More The Merrier?", index_titles([film, word]))
    {'film'}
    """
    tokens = name_tokens(question)
    named: set[str] = set()
    end_of_last = 0
    for start, end, ids in titles.find_mentions([token.casefold() for token in tokens]):
        if start >= end_of_last and any(token[0].isalnum() and not token[0].islower() for token in tokens[start:end]):
            named.update(ids)
            end_of_last = end
    return named


def check_rank_prior(prior: Prior | None) -> None:
    """Refuse a prior that needs scores, where only the order of the first stage is known.

    Raises:
        InvalidInput: the prior counts cosines.

    >>> check_rank_prior("retrieval")
    """
    if prior == "cosine":
        raise InvalidInput(
            'A retriever of paths knows the order of what it finds, not the scores: give prior="retrieval", or rerank '
            'its documents with PromptRankRerank(prior="cosine").'
        )


class FirstHopPrior:
    """The prior of the paths of one passage.

    Args:
        prior: What the first stage's scores are; None counts nothing.
        candidates: What the first stage brought. Of passages with the same id the first one counts.
        scores: Their scores, if they are known.
        weight: How much the prior counts.

    Attributes:
        has_prior: Whether there is a prior.

    Raises:
        InvalidInput: as for `FirstStage.read`, or there are scores, but no prior to count them.
    """

    def __init__(
        self, prior: Prior | None, candidates: Sequence[Passage], scores: RetrievalScores | None, weight: float = 1.0
    ) -> None:
        self._first_stage: FirstStage | None = None
        self._places: dict[str, int] = {}
        self.has_prior = prior is not None
        if prior is None:
            if scores is not None:
                raise InvalidInput(NO_PRIOR)
            return
        if scores is not None:
            check_paired(scores, candidates)
        for location, passage in enumerate(candidates):
            self._places.setdefault(passage.id, location)
        places = self._places.values()
        counted = None if scores is None else [scores[location] for location in places]
        self._first_stage = FirstStage.read(prior, [candidates[location] for location in places], counted, weight)

    def rerank(self, found: Sequence[Ranked[Path]]) -> list[Ranked[Path]]:
        """The paths of one passage, all of them, with the prior: best first, ties in the order of the candidates."""
        if self._first_stage is None:
            return list(found)
        items = sorted(found, key=lambda item: self._places[item.passage.ids[0]])
        of_links = [item.details["log_prior"] for item in items]
        likelihoods = [
            (item.score - log_prior / divisor(item.details), item.details)
            for item, log_prior in zip(items, of_links, strict=True)
        ]
        scored = posteriors(likelihoods, self._first_stage)
        details = [
            {**detail, "log_prior": detail["log_prior"] + log_prior}
            for (_, detail), log_prior in zip(scored, of_links, strict=True)
        ]
        scores = [
            score + log_prior / divisor(detail) for (score, detail), log_prior in zip(scored, of_links, strict=True)
        ]
        return ranked([item.passage for item in items], scores, details)
