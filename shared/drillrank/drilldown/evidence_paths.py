"""Paths of two passages from different documents: a passage that fits the question, and where it leads.

    ℓ_t(p)    = log p(q_t | p) + what q_t says about the document of p
    L(p, p')  = Σ_t (1 - α) log mean(exp ℓ_t(p), exp ℓ_t(p')) + α max(ℓ_t(p), ℓ_t(p'))
    G(p, p')  = L(p, p') - Σ_t ℓ_t(p) + λ log P(p' | p, q) + b + κ' (cos(q, p') - cos_3)
    S'(p')    = max(S(p'), min(S(p) + G(p, p'), S(p)))

A path generates the question as a mixture of its passages. A reader mostly knows which passage explains which word (α).
P(p' | p, q) is the probability that a reader who knows the question follows the link (`document_links`), and b depends
on its kind. cos_3 is the third-highest cosine of a passage with the question: the highest mostly is that of p, and p'
answers another part of the question. A path that explains the question better than its first passage does, G >= 0,
stands together in the ranking: its second passage has the score of the first one, less a very small gap. Otherwise the
second passage ranks by the score of the path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from drillrank.drilldown.confidence import read_stop_words
from drillrank.drilldown.document_links import DocumentLinks, LinkKind, LinkStep
from drillrank.drilldown.hierarchical_scores import HierarchicalScores
from drillrank.drilldown.question_scores import QuestionScores
from drillrank.vectors import Floats, Integers, top

Hops = Literal[1, 2]

ALIGNED = 0.75  # α, as in path search
# Chosen on `benchmarks/project_wiki_dev`, 120 bridge questions of HotpotQA and the tuning folder of
# `benchmarks.folders`, where one-place questions limit them.
STEP_WEIGHT = 2.0  # λ
KIND_BONUS: Mapping[LinkKind, float] = {"link": 2.0, "title": 0.0, "name": -3.0}  # b, nats
COSINE_WEIGHT = 30.0  # κ'
COSINE_RANK = 3  # of the passage whose cosine adds nothing
N_STARTS = 3  # best passages whose links are followed
N_ENDS = 3  # documents that the links of one passage lead to
MAX_PATHS = 4  # of one question
_N_CANDIDATES = 50  # best passages among which the starts are


@dataclass(frozen=True, slots=True)
class EvidencePath:
    """Path from a passage to a passage of another document.

    Attributes:
        start: Position of the first passage among the passages of all documents.
        end: Position of the second passage.
        gain: G, in nats.
        kind: Kind of the link: `"link"`, `"title"` or `"name"`.
        text: Text of the link.
    """

    start: int
    end: int
    gain: float
    kind: LinkKind
    text: str

    @property
    def is_joined(self) -> bool:
        """True if the path explains the question better than its first passage, so that both stand together."""
        return self.gain >= 0


@dataclass(frozen=True)
class PathFinder:
    """Finds paths for questions.

    Attributes:
        links: Links between the documents.
        language: Language of the stemmer.
        hops: 2 follows the links of the best passages. None follows those of the best one only, if it lacks content
            words of the question. 1 follows none.
    """

    links: DocumentLinks
    language: str
    hops: Hops | None

    def find(
        self, question: str, scores: QuestionScores, may_read: Callable[[int], bool] = lambda _: True
    ) -> list[EvidencePath]:
        """Return the best paths, best first. No two of them end at the same passage.

        Args:
            question: The question.
            scores: Scores of all passages for it.
            may_read: Function from the index of a document to False if it must not be read.
        """
        lexical = scores.lexical
        if self.hops == 1 or not lexical.any_matched or lexical.counts.n_documents < 2:
            return []
        counts = lexical.counts
        document_of = counts.document_of[counts.section_of]
        best = (position for position in top(scores.totals, _N_CANDIDATES) if may_read(int(document_of[position])))
        starts = [int(position) for position, _ in zip(best, range(N_STARTS if self.hops else 1), strict=False)]
        if self.hops is None and not (starts and _has_unexplained_word(lexical, starts[0], self.language)):
            return []
        path_by_end: dict[int, EvidencePath] = {}
        for start in starts:
            steps = [
                step
                for step in self.links.find_steps(question, start)
                if scores.totals[step.position] < scores.totals[start] and may_read(int(document_of[step.position]))
            ]
            for path in _extend(start, steps, scores, document_of):
                other = path_by_end.setdefault(path.end, path)
                if _path_score(path, scores) > _path_score(other, scores):
                    path_by_end[path.end] = path
        ranking = sorted(path_by_end.values(), key=lambda path: -_path_score(path, scores))
        return ranking[:MAX_PATHS]


def _path_score(path: EvidencePath, scores: QuestionScores) -> float:
    return float(scores.totals[path.start]) + path.gain


def _has_unexplained_word(lexical: HierarchicalScores, position: int, language: str) -> bool:
    """Return True if a passage lacks a content word of the question."""
    stop_words = read_stop_words(language)
    return any(
        word not in stop_words and position not in posted
        for word, (posted, _) in zip(lexical.words, lexical.counts.paragraphs, strict=True)
    )


def _extend(
    start: int, steps: Sequence[LinkStep], scores: QuestionScores, document_of: Integers
) -> Iterator[EvidencePath]:
    """Yield the best paths from a passage, at most one to each document."""
    if not steps:
        return
    positions = np.array([step.position for step in steps])
    likelihoods = scores.lexical.token_log_likelihoods(np.append(start, positions))  # [1 + n_steps, n_tokens]
    of_start, of_ends = likelihoods[0], likelihoods[1:]
    means = np.logaddexp(of_start, of_ends) - np.log(2)
    gains: Floats = ((1 - ALIGNED) * means + ALIGNED * np.maximum(of_start, of_ends) - of_start).sum(axis=1)
    gains += STEP_WEIGHT * np.log([step.chance for step in steps])
    gains += [KIND_BONUS[step.kind] for step in steps]
    if scores.cosines is not None:
        cosines = scores.cosines[0]
        rank = min(COSINE_RANK, len(cosines))
        gains += COSINE_WEIGHT * (cosines[positions] - np.partition(cosines, -rank)[-rank])
    documents: set[int] = set()
    for index in np.argsort(-gains, kind="stable").tolist():
        step, document = steps[index], int(document_of[positions[index]])
        if document not in documents:
            documents.add(document)
            yield EvidencePath(start, step.position, float(gains[index]), step.kind, step.text)
        if len(documents) == N_ENDS:
            return
