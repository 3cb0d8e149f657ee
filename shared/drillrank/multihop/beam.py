"""Steps of the beam search for one question: first paths, links, longer paths, pairs, and the ranking of passages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from drillrank.errors import WarnOnce, warn
from drillrank.llm import Requests, RetrievalRequest, Usage
from drillrank.multihop.links import FollowFunction, LinkTarget, fetch_targets, list_targets
from drillrank.multihop.missing import MissingInformation
from drillrank.multihop.path_scorer import PathScorer, TokenCoverage
from drillrank.multihop.prior import FirstHopPrior, RandomSurfer
from drillrank.multihop.result import CandidatePath, FollowedLinks, Hop, PathStep, PathTrace, StopReason
from drillrank.passages import Passage, Path, Ranked, by_id, ranked
from drillrank.rerank.base import divisor
from drillrank.vectors import CollectionStatistics, TfidfQuery, top

NAMED_AS_MISSING = "named as missing"


@dataclass(frozen=True)
class SearchScope:
    """Everything that the steps of one search share.

    Attributes:
        question: The question.
        candidates: Passages of the first stage.
        scorer: Scores paths.
        kinds: Kinds of links, each with the function that follows it.
        pool: Passages that links may lead to without being fetched, by id.
        fetched: Passages of the first stage and fetched ones, by id. `follow_links` adds to it.
        surfer: Prior of steps. None if there is none.
        title_penalties: Function from passages to the penalties of those with a namesake that fits better, by id.
        first_hop: Prior of the first stage.
        coverage: Log-probability of each token of the question after each passage.
        branch: L, the number of passages by which each path is extended.
        prunes_by_tfidf: True if the similarity to the question chooses among links, False if the likelihood does.
        statistics: Statistics of the collection for TF-IDF. None if the collection is unknown.
        warned: Warnings that were given before.
        missing: Asks an LLM for what paths lack. None if there is none.
    """

    question: str
    candidates: tuple[Passage, ...]
    scorer: PathScorer
    kinds: Sequence[tuple[str, FollowFunction]]
    pool: Mapping[str, Passage]
    fetched: dict[str, Passage]
    surfer: RandomSurfer | None
    title_penalties: Callable[[str, Iterable[Passage]], Mapping[str, float]]
    first_hop: FirstHopPrior
    coverage: TokenCoverage
    branch: int
    prunes_by_tfidf: bool
    statistics: CollectionStatistics | None
    warned: WarnOnce
    missing: MissingInformation | None

    @property
    def weight(self) -> float:
        """Weight of the prior, 0 without one."""
        return self.surfer.prior.weight if self.surfer else 0.0


def initial_paths(scope: SearchScope) -> list[CandidatePath]:
    """Return a path of each passage of the first stage."""
    surfer, passages = scope.surfer, scope.candidates
    if surfer is None:
        return [CandidatePath(Path((passage,)), steps=(PathStep(passage, "start", 0.0),)) for passage in passages]
    surfer.title_penalties.update(scope.title_penalties(scope.question, passages))
    log_length = surfer.log_length(1)
    candidates = []
    for passage, step in zip(passages, surfer.log_steps([passage.id for passage in passages], ()), strict=True):
        steps = (PathStep(passage, "start", scope.weight * step),)
        log_prior = scope.weight * (step + log_length)
        candidates.append(CandidatePath(Path((passage,)), log_prior, steps, scope.weight * log_length))
    return candidates


def follow_links(
    scope: SearchScope, beam: Sequence[Ranked[Path]], paired: Sequence[Ranked[Path]]
) -> Requests[list[FollowedLinks]]:
    """Follow the links of paths, and fetch the passages to which they lead.

    Passages that the LLM names as missing are linked from each path of the beam.

    Args:
        scope: Scope of the search.
        beam: Paths to extend.
        paired: Paths of passages to pair. Their links retrieve nothing.

    Returns:
        Links of the beam, in its order, and then of those paired paths that are not in the beam.
    """
    paths = list({item.passage.ids: item.passage for item in (*beam, *paired)}.values())
    targets_of_paths: list[list[tuple[str, tuple[LinkTarget, ...] | Mapping[str, float]]]] = []
    requested = []
    for index, path in enumerate(paths):
        targets_by_kind = [(kind, list_targets(follow, scope.question, path)) for kind, follow in scope.kinds]
        targets = [target for _, of_kind in targets_by_kind for target in of_kind]
        if index >= len(beam):
            targets = [target for target in targets if not isinstance(target, RetrievalRequest)]
        targets_of_paths.append(targets_by_kind)
        requested.append(targets)
    passages_of_paths = yield from fetch_targets(paths, requested, scope.fetched, scope.pool)
    named: Sequence[Passage] = ()
    if scope.missing is not None:
        named = yield from scope.missing.find_passages(beam[0].passage, scope.branch)
        for passage in named:
            if passage.id not in scope.pool:
                scope.fetched.setdefault(passage.id, passage)
    links = []
    for index, (path, targets_by_kind) in enumerate(zip(paths, targets_of_paths, strict=True)):
        of_path = named if index < len(beam) else ()
        passages = (*passages_of_paths[index], *of_path)
        chance_by_kind = list_chances(scope, path, targets_by_kind)
        if missing_ids := [passage.id for passage in of_path if passage.id not in path.ids]:
            chance_by_kind.append((NAMED_AS_MISSING, dict.fromkeys(missing_ids, 1 / len(missing_ids))))
        retrieval_kinds = (
            kind for kind, of_kind in targets_by_kind if any(isinstance(target, RetrievalRequest) for target in of_kind)
        )
        links.append(FollowedLinks(path, passages, tuple(chance_by_kind), next(retrieval_kinds, None)))
    return links


def list_chances(
    scope: SearchScope, path: Path, targets_by_kind: Sequence[tuple[str, tuple[LinkTarget, ...] | Mapping[str, float]]]
) -> list[tuple[str, Mapping[str, float]]]:
    """Return the kinds of links that lead to known passages, each with the chance of every passage.

    To the prior, a passage that a retrieval returned is a jump.
    """
    chance_by_kind: list[tuple[str, Mapping[str, float]]] = []
    for kind, targets in targets_by_kind:
        chance_by_id: dict[str, float] = {}
        for target, chance in targets.items() if isinstance(targets, Mapping) else zip(targets, repeat(0.0)):
            if not isinstance(target, RetrievalRequest):
                id_ = target if isinstance(target, str) else target.id
                passage = scope.fetched.get(id_) or scope.pool.get(id_)
                if passage is not None and passage.id not in path.ids:
                    chance_by_id[passage.id] = chance_by_id.get(passage.id, 0.0) + chance
        if chance_by_id:  # links of one kind have chances, or none of them has
            equal_chance = 1 / len(chance_by_id)
            chances = {id_: chance or equal_chance for id_, chance in chance_by_id.items()}
            chance_by_kind.append((kind, chances))
    return chance_by_kind


def extend_beam(
    scope: SearchScope,
    beam: Sequence[Ranked[Path]],
    candidate_by_ids: Mapping[tuple[str, ...], CandidatePath],
    links: Sequence[FollowedLinks],
    jumps: Sequence[Passage],
) -> list[CandidatePath]:
    """Extend each path by the `branch` passages after which the question is likeliest. Ties keep the order.

    Args:
        scope: Scope of the search.
        beam: Paths to extend, with their scores.
        candidate_by_ids: Scored paths with their steps.
        links: Links of each path of the beam, and of others.
        jumps: Passages that extend each path without a link.
    """
    next_passages = []
    for item, of_path in zip(beam, links, strict=False):
        ids = item.passage.ids
        reachable = {passage.id: passage for passage in (*of_path.passages, *jumps) if passage.id not in ids}
        next_passages.append(list(reachable.values()))
    distinct = {passage.id: passage for passages in next_passages for passage in passages}.values()
    scope.coverage.read([*(passage for item in beam for passage in item.passage.passages), *distinct])
    if scope.surfer is not None:
        scope.surfer.title_penalties.update(scope.title_penalties(scope.question, distinct))
    similarity = build_tfidf_query(scope, distinct) if scope.prunes_by_tfidf else None
    longer_paths: list[CandidatePath] = []
    for item, of_path, passages in zip(beam, links, next_passages, strict=False):
        candidate = candidate_by_ids[item.passage.ids]
        longer_paths += extend_path(scope, item, candidate, of_path, passages, scope.branch, similarity)
    return longer_paths


def build_tfidf_query(scope: SearchScope, passages: Iterable[Passage]) -> TfidfQuery:
    """Return the TF-IDF vector of the question, by the statistics of the collection.

    If the collection is unknown, the statistics are those of all passages that were read for this question.

    Args:
        scope: Scope of the search.
        passages: Passages that will be scored.

    Warns:
        DrillrankWarning: The collection is unknown, and some passages are not from the first stage.
    """
    statistics = scope.statistics
    if statistics is None:
        read = by_id([*scope.candidates, *scope.fetched.values(), *passages])
        if len(read) > len(scope.candidates) and scope.warned.new("tfidf", ["collection"]):
            warn(
                "Links are chosen by TF-IDF, and the source gives no statistics of its collection. drillrank counted "
                "the passages that were read for each question. Give the documents, or a Corpus."
            )
        statistics = CollectionStatistics.count(
            [passage.titled_text for passage in read.values()], scope.scorer.language
        )
    return TfidfQuery(scope.question, statistics)


def extend_path(
    scope: SearchScope,
    item: Ranked[Path],
    candidate: CandidatePath,
    links: FollowedLinks,
    passages: Sequence[Passage],
    n: int | None = None,
    similarity: TfidfQuery | None = None,
) -> list[CandidatePath]:
    """Extend a path by each of the `n` best passages, or by all passages in order.

    The best passages are those after which the question is likeliest, or the most similar ones if `similarity` scores.
    """
    if not passages:
        return []
    surfer, weight, length = scope.surfer, scope.weight, len(item.passage.ids)
    log_priors = [0.0] * len(passages)
    log_length, log_longer = 0.0, 0.0
    if surfer is not None:
        chances = [chance_by_id for _, chance_by_id in links.chance_by_kind]
        log_priors = [weight * step for step in surfer.log_steps([passage.id for passage in passages], chances)]
        log_length = surfer.log_length(length + 1)
        log_longer = weight * (log_length - surfer.log_length(length))
    likelihoods, alignments = scope.coverage.score_extensions(item.passage, passages)
    if n is None:
        order = list(range(len(passages)))
    elif similarity is None:
        order = top((likelihoods + log_priors).round(9), n)  # rounding must not choose between equal ones
    else:
        order = top(similarity.scores([passage.titled_text for passage in passages]).round(9), n)
    longer_paths = []
    for index in order:
        passage, alignment = passages[index], float(alignments[index]) if scope.scorer.reads_documents else 0.0
        kinds = (kind for kind, chance_by_id in links.chance_by_kind if passage.id in chance_by_id)
        retrieved = links.retrieval_kind is not None and passage.id in {each.id for each in links.passages}
        kind = next(kinds, links.retrieval_kind if retrieved else None) or "jump"
        longer_paths.append(
            CandidatePath(
                Path((*item.passage.passages, passage)),
                item.details["log_prior"] + log_priors[index] + log_longer + (alignment - candidate.alignment),
                (*candidate.steps, PathStep(passage, kind, log_priors[index])),
                weight * log_length,
                alignment,
            )
        )
    return longer_paths


def pair_passages(
    scope: SearchScope,
    best: Sequence[Ranked[Path]],
    candidate_by_ids: Mapping[tuple[str, ...], CandidatePath],
    links: Sequence[FollowedLinks],
) -> list[CandidatePath]:
    """Build a path from each pair of top passages, better passage first.

    Pairs joined by a link other than a name mention are skipped.

    Args:
        scope: Scope of the search.
        best: Top passages as paths.
        candidate_by_ids: Scored paths with their steps.
        links: Links of the paths of single passages.
    """
    scope.coverage.read([item.passage.passages[0] for item in best])
    links_by_ids = {of_path.path.ids: of_path for of_path in links}
    linked = {
        (*item.passage.ids, id_)
        for item in best
        for kind, chance_by_id in links_by_ids[item.passage.ids].chance_by_kind
        for id_ in chance_by_id
        if kind != "name mention"
    }
    pairs = []
    for index, item in enumerate(best[:-1]):
        others = [other.passage.passages[0] for other in best[index + 1 :]]
        ids = item.passage.ids
        pairs += extend_path(scope, item, candidate_by_ids[ids], links_by_ids[ids], others)
    return [pair for pair in pairs if pair.path.ids not in linked and pair.path.ids[::-1] not in linked]


def find_stop_reason(hops: Sequence[Hop], max_hops: int, *, is_open: bool) -> StopReason | None:
    """Return the reason why a search ends after these hops. None if it goes on.

    Args:
        hops: Hops so far.
        max_hops: H, the length of the longest path.
        is_open: True if the search ends once the best path of a hop is less likely than the best shorter one.

    >>> a, b = Path((Passage("a"),)), Path((Passage("a"), Passage("b")))
    >>> first = Hop(1, (Ranked(a, -2.0, 1, {"tokens": 4}),))
    >>> second = Hop(2, (Ranked(b, -2.1, 1, {"tokens": 4}),))
    >>> find_stop_reason([first], 3, is_open=True), find_stop_reason([first, second], 3, is_open=True).name
    (None, 'LESS_LIKELY')
    """
    *shorter, longest = hops
    if not longest.paths:
        return StopReason.NO_PATHS
    if len(hops) == max_hops:
        return StopReason.LONGEST_PATH
    log_likelihoods = [max(item.score * divisor(item.details) for item in hop.paths) for hop in hops]
    if is_open and shorter and log_likelihoods[-1] < max(log_likelihoods[:-1]):
        return StopReason.LESS_LIKELY
    return None


def rank_paths(scope: SearchScope, trace: PathTrace, usage: Usage | None) -> list[Ranked[Path]]:
    """Rank the paths of all hops. Ties keep the order.

    If no path contains a word of the question, all paths score alike. If the first stage has a prior, paths of one
    passage keep their scores even then, and longer ones come last.

    Args:
        scope: Scope of the search.
        trace: Record of the search.
        usage: Usage of the LLM, which the details contain.
    """
    paths = [item for hop in trace.hops for item in hop.paths]
    nothing_matched = all(item.details["nothing_matched"] for item in paths)
    lowest = min((item.score for item in paths), default=0.0)
    keeps_first = scope.first_hop.has_prior
    scores = [
        lowest if nothing_matched and not (keeps_first and len(item.passage.passages) == 1) else item.score
        for item in paths
    ]
    details = [item.details | {"nothing_matched": nothing_matched} for item in paths]
    ranking = ranked([item.passage for item in paths], scores, details)
    of_search: dict[str, Any] = {}
    if scope.missing is not None:
        of_search = scope.missing.details() | ({"usage": usage.as_metadata()} if usage else {})
    for item in ranking:
        del item.details["position"]  # an index among the paths of all hops is of no use
        item.details |= of_search
    return ranking


def rank_passages(paths: Sequence[Ranked[Path]], coverage: TokenCoverage) -> list[Ranked[Passage]]:
    """Rank each passage of ranked paths once, with the score and the details of its best path.

    Passages of one path are ordered by what each adds to those before it.
    """
    coverage.read([passage for item in paths for passage in item.passage.passages])
    ranking: dict[str, Ranked[Passage]] = {}
    for item in paths:
        if not all(id_ in ranking for id_ in item.passage.ids):
            for passage in coverage.order_by_gain(item.passage):
                if passage.id not in ranking:
                    ranking[passage.id] = Ranked(passage, item.score, len(ranking) + 1, {**item.details})
    return list(ranking.values())
