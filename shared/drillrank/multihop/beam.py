"""Steps of the beam search for one question, in the order in which `PathSearch` takes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drillrank.errors import WarnOnce, warn
from drillrank.llm import Requests, RetrievalRequest, Usage
from drillrank.multihop.links import LinkTarget, ListedTargets, fetch_targets, list_targets
from drillrank.multihop.missing import MissingInformation
from drillrank.multihop.path_scorer import TokenCoverage
from drillrank.multihop.path_settings import PathPlan
from drillrank.multihop.prior import FirstStagePrior, RandomSurfer
from drillrank.multihop.result import CandidatePath, FollowedLinks, Hop, PathStep, PathTrace, StopReason
from drillrank.multihop.sources import CorpusPassages, InMemoryPassages
from drillrank.passages import Passage, Path, Ranked, by_id, ranked
from drillrank.rerank.prior import divisor
from drillrank.vectors import CollectionStatistics, TfidfQuery, top

NAMED_AS_MISSING = "named as missing"


@dataclass(frozen=True)
class SearchScope:
    """Everything that the steps of one search share.

    Attributes:
        question: The question.
        plan: Settings of the search.
        candidates: Passages of the first stage, each once.
        collection: Passages that links may lead to, with their names, links, statistics and scorer.
        own_passage_by_id: Passages that links may lead to without being fetched.
        source_passage_by_id: Candidates, and passages that the source has returned since. `follow_links` adds to it.
        surfer: Prior of steps and lengths. None without a prior of paths.
        first_stage_prior: Prior of paths of one passage. None if the first stage has no prior.
        coverage: Log-probability of each token of the question after each passage.
        missing: Queries for missing information, which an LLM names. None without an LLM.
        warned: Warnings of earlier searches, which are not repeated.
    """

    question: str
    plan: PathPlan
    candidates: tuple[Passage, ...]
    collection: InMemoryPassages | CorpusPassages
    own_passage_by_id: Mapping[str, Passage]
    source_passage_by_id: dict[str, Passage]
    surfer: RandomSurfer | None
    first_stage_prior: FirstStagePrior | None
    coverage: TokenCoverage
    missing: MissingInformation | None
    warned: WarnOnce


def initial_paths(scope: SearchScope) -> list[CandidatePath]:
    """Return a path of each passage of the first stage, with its prior."""
    surfer, passages = scope.surfer, scope.candidates
    if surfer is None:
        return [CandidatePath(Path((passage,)), steps=(PathStep(passage, "start", 0.0),)) for passage in passages]
    surfer.title_penalties.update(scope.collection.title_penalties(scope.question, passages))
    weight, log_length = surfer.prior.weight, surfer.log_length(1)
    paths = []
    for passage, log_step in zip(passages, surfer.log_steps([passage.id for passage in passages], ()), strict=True):
        steps = (PathStep(passage, "start", weight * log_step),)
        paths.append(CandidatePath(Path((passage,)), weight * (log_step + log_length), steps, weight * log_length))
    return paths


def follow_links(
    scope: SearchScope, beam: Sequence[Ranked[Path]], paired: Sequence[Ranked[Path]]
) -> Requests[list[FollowedLinks]]:
    """Follow the links of paths, and fetch the passages to which they lead.

    Passages that the LLM names as missing are linked from each path of the beam.

    Args:
        scope: Scope of the search.
        beam: Paths to extend.
        paired: Paths of passages to pair. Links that need a retrieval are followed only if the path is in the beam.

    Returns:
        Links of the beam, in its order, and then of those paired paths that are not in the beam.
    """
    paths = list({item.passage.ids: item.passage for item in (*beam, *paired)}.values())
    targets_of_paths: list[list[tuple[str, ListedTargets]]] = []
    requested_targets = []
    for index, path in enumerate(paths):
        targets_by_kind = [
            (kind, list_targets(follow, scope.question, path)) for kind, follow in scope.collection.links
        ]
        targets = [target for _, targets_of_kind in targets_by_kind for target in targets_of_kind]
        if index >= len(beam):
            targets = [target for target in targets if not isinstance(target, RetrievalRequest)]
        targets_of_paths.append(targets_by_kind)
        requested_targets.append(targets)
    passages_of_paths = yield from fetch_targets(
        paths, requested_targets, scope.source_passage_by_id, scope.own_passage_by_id
    )
    missing_passages: Sequence[Passage] = ()
    if scope.missing is not None:
        missing_passages = yield from scope.missing.find_passages(beam[0].passage, scope.plan.branch)
        for passage in missing_passages:
            if passage.id not in scope.own_passage_by_id:
                scope.source_passage_by_id.setdefault(passage.id, passage)
    links = []
    for index, (path, targets_by_kind) in enumerate(zip(paths, targets_of_paths, strict=True)):
        passages = passages_of_paths[index]
        chance_by_kind = list_chances(scope, path, targets_by_kind)
        if index < len(beam):
            passages += missing_passages
            if missing_ids := [passage.id for passage in missing_passages if passage.id not in path.ids]:
                chance_by_kind.append((NAMED_AS_MISSING, dict.fromkeys(missing_ids, 1 / len(missing_ids))))
        retrieval_kinds = [
            kind
            for kind, targets_of_kind in targets_by_kind
            if any(isinstance(target, RetrievalRequest) for target in targets_of_kind)
        ]
        retrieval_kind = retrieval_kinds[0] if retrieval_kinds else None
        links.append(FollowedLinks(path, tuple(passages), tuple(chance_by_kind), retrieval_kind))
    return links


def list_chances(
    scope: SearchScope, path: Path, targets_by_kind: Sequence[tuple[str, ListedTargets]]
) -> list[tuple[str, Mapping[str, float]]]:
    """Return the kinds of links that lead to existing passages, each with the chance of every passage by id.

    Results of a retrieval have no chance. In the prior, the step to such a passage is a jump.
    """
    chance_by_kind: list[tuple[str, Mapping[str, float]]] = []
    for kind, targets in targets_by_kind:
        chance_by_target: Mapping[str, float] | Mapping[LinkTarget, float]
        chance_by_target = targets if isinstance(targets, Mapping) else dict.fromkeys(targets, 0.0)
        chance_by_id: dict[str, float] = {}
        for target, chance in chance_by_target.items():
            if isinstance(target, RetrievalRequest):
                continue
            id_ = target if isinstance(target, str) else target.id
            passage = scope.source_passage_by_id.get(id_) or scope.own_passage_by_id.get(id_)
            if passage is not None and passage.id not in path.ids:
                chance_by_id[passage.id] = chance_by_id.get(passage.id, 0.0) + chance
        if chance_by_id:  # either all links of a kind have chances, or none has
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
    """Extend each path of the beam by the L best of the passages that it can go on to.

    Args:
        scope: Scope of the search.
        beam: Paths to extend, with their scores.
        candidate_by_ids: Scored paths with their steps.
        links: Links of each path of the beam, in the same order. Links of other paths may follow.
        jumps: Passages that each path can go on to without a link.
    """
    next_passages = []
    for item, links_of_path in zip(beam, links, strict=False):
        ids = item.passage.ids
        reachable = {passage.id: passage for passage in (*links_of_path.passages, *jumps) if passage.id not in ids}
        next_passages.append(list(reachable.values()))
    distinct = {passage.id: passage for passages in next_passages for passage in passages}.values()
    scope.coverage.read([*(passage for item in beam for passage in item.passage.passages), *distinct])
    if scope.surfer is not None:
        scope.surfer.title_penalties.update(scope.collection.title_penalties(scope.question, distinct))
    similarity = build_tfidf_query(scope, distinct) if scope.plan.prune == "tfidf" else None
    longer_paths: list[CandidatePath] = []
    for item, links_of_path, passages in zip(beam, links, next_passages, strict=False):
        candidate = candidate_by_ids[item.passage.ids]
        longer_paths += extend_path(scope, item, candidate, links_of_path, passages, scope.plan.branch, similarity)
    return longer_paths


def build_tfidf_query(scope: SearchScope, passages: Iterable[Passage]) -> TfidfQuery:
    """Return the TF-IDF vector of the question, by the statistics of the collection.

    If only a sample of the collection is known, the statistics are those of all passages read for this question.

    Args:
        scope: Scope of the search.
        passages: Passages to compare with the question.

    Warns:
        DrillrankWarning: Only a sample is known, and some passages are not from the first stage.
    """
    if not scope.collection.is_sample:
        return TfidfQuery(scope.question, scope.collection.statistics)
    read_by_id = by_id([*scope.candidates, *scope.source_passage_by_id.values(), *passages])
    if len(read_by_id) > len(scope.candidates) and scope.warned.new("tfidf", ["collection"]):
        warn(
            "Links are chosen by TF-IDF, and the source gives no statistics of its collection. drillrank counted "
            "the passages that were read for each question. Give the documents, or a Corpus."
        )
    texts = [passage.titled_text for passage in read_by_id.values()]
    return TfidfQuery(scope.question, CollectionStatistics.count(texts, scope.collection.scorer.language))


def extend_path(
    scope: SearchScope,
    item: Ranked[Path],
    candidate: CandidatePath,
    links: FollowedLinks,
    passages: Sequence[Passage],
    n: int | None = None,
    similarity: TfidfQuery | None = None,
) -> list[CandidatePath]:
    """Extend a path by each of the `n` best passages, best first, or by all passages in their order.

    The best passages are those after which the question is likeliest, weighted by the prior of the step. If there is a
    `similarity`, they are those most similar to the question. Ties keep the order.
    """
    if not passages:
        return []
    step_log_priors, log_length, length_change = [0.0] * len(passages), 0.0, 0.0
    if (surfer := scope.surfer) is not None:
        weight, n_passages = surfer.prior.weight, len(item.passage.ids)
        chances = [chance_by_id for _, chance_by_id in links.chance_by_kind]
        step_log_priors = [weight * step for step in surfer.log_steps([passage.id for passage in passages], chances)]
        log_length = weight * surfer.log_length(n_passages + 1)
        length_change = weight * (surfer.log_length(n_passages + 1) - surfer.log_length(n_passages))
    likelihoods, alignments = scope.coverage.score_extensions(item.passage, passages)
    if not scope.collection.scorer.reads_documents:
        alignments = np.zeros(len(passages))
    order = list(range(len(passages)))
    if n is not None:
        texts = [passage.titled_text for passage in passages]
        values = likelihoods + step_log_priors if similarity is None else similarity.scores(texts)
        order = top(values.round(9), n)  # rounding must not choose between equal ones
    linked_ids = {passage.id for passage in links.passages}
    longer_paths = []
    for index in order:
        passage, alignment = passages[index], float(alignments[index])
        kinds = [kind for kind, chance_by_id in links.chance_by_kind if passage.id in chance_by_id]
        if links.retrieval_kind is not None and passage.id in linked_ids:
            kinds.append(links.retrieval_kind)
        # Log-prior of the longer path: that of the path, one more step, and the changes of length and alignment
        log_prior = item.details["log_prior"] + step_log_priors[index] + length_change
        log_prior += alignment - candidate.alignment
        steps = (*candidate.steps, PathStep(passage, next(iter(kinds), "") or "jump", step_log_priors[index]))
        path = Path((*item.passage.passages, passage))
        longer_paths.append(CandidatePath(path, log_prior, steps, log_length, alignment))
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
        best: Paths of one passage each, best first.
        candidate_by_ids: Scored paths with their steps.
        links: Links of these paths, in any order. Links of other paths are ignored.
    """
    scope.coverage.read([item.passage.passages[0] for item in best])
    links_by_ids = {links_of_path.path.ids: links_of_path for links_of_path in links}
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


def find_stop_reason(hops: Sequence[Hop], max_hops: int, *, stops_early: bool) -> StopReason | None:
    """Return the reason why a search ends after these hops. None if it goes on.

    Args:
        hops: Hops so far.
        max_hops: H, the number of passages of the longest path.
        stops_early: True if the search ends once the best path of a hop has a lower posterior than the best shorter
            one. The posterior is the likelihood times the prior.

    >>> a, b = Path((Passage("a"),)), Path((Passage("a"), Passage("b")))
    >>> first = Hop(1, (Ranked(a, -2.0, 1, {"tokens": 4}),))
    >>> second = Hop(2, (Ranked(b, -2.1, 1, {"tokens": 4}),))
    >>> find_stop_reason([first], 3, stops_early=True) is None
    True
    >>> find_stop_reason([first, second], 3, stops_early=True).name
    'LESS_LIKELY'
    """
    *shorter, longest = hops
    if not longest.paths:
        return StopReason.NO_PATHS
    if len(hops) == max_hops:
        return StopReason.LONGEST_PATH
    log_posteriors = [max(item.score * divisor(item.details) for item in hop.paths) for hop in hops]
    if stops_early and shorter and log_posteriors[-1] < max(log_posteriors[:-1]):
        return StopReason.LESS_LIKELY
    return None


def rank_paths(scope: SearchScope, trace: PathTrace, usage: Usage | None) -> list[Ranked[Path]]:
    """Rank the paths of all hops. Ties keep the order.

    If no path contains a word of the question, all paths get the same score. If the first stage has a prior, paths of
    one passage keep their scores even then, and longer paths come last.

    Args:
        scope: Scope of the search.
        trace: Record of the search.
        usage: Usage of the LLM, for the details.
    """
    paths = [item for hop in trace.hops for item in hop.paths]
    scores = [item.score for item in paths]
    nothing_matched = all(item.details["nothing_matched"] for item in paths)
    if nothing_matched:
        has_prior, lowest = scope.first_stage_prior is not None, min(scores, default=0.0)
        scores = [item.score if has_prior and len(item.passage.ids) == 1 else lowest for item in paths]
    details = [item.details | {"nothing_matched": nothing_matched} for item in paths]
    ranking = ranked([item.passage for item in paths], scores, details)
    search_details: dict[str, Any] = {}
    if scope.missing is not None:
        search_details = scope.missing.details() | ({"usage": usage.as_metadata()} if usage else {})
    for item in ranking:
        del item.details["position"]  # an index among the paths of all hops is of no use
        item.details |= search_details
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
