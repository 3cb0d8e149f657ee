"""Path search: a beam search over links, every path scored jointly by PromptRank.

TF-IDF gives F candidates (paths of one passage); the best K1 are extended along their links, the L best links each;
the longer paths are scored; and so on for H hops. A passage's score is the maximum over all paths that hold it, partial
ones too.                                                          Khalifa et al. (2023), section 2 and Appendix B
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence

from drillrank.errors import InvalidInput
from drillrank.multihop.links import Links, given_links, linked_passages
from drillrank.passages import Passage, Path, Ranked, as_passages, check_query, check_top_n, ranked
from drillrank.rerank.promptrank import PromptRank
from drillrank.retrieval import TfidfIndex, top

FirstStage = Callable[[str, int], Sequence[Passage]]
"""A retriever: from a question and a number to that many passages, best first."""


class PathSearch:
    """Finds the passages that answer a question together, by searching paths of linked passages.

    Args:
        prompt_rank: Scores the paths. A lexical model that has not been fitted is fitted with `passages`, on a copy.
        passages: The pool, indexed once with TF-IDF.
        links: From a passage to ids of the pool; None takes each passage's own `links`.
        first_stage: A retriever to use in place of TF-IDF. Links are then followed within `passages` and what the
            retriever returned.
        hops: Longest path, H.
        pool: Passages of the first stage, F.
        beam: Paths that are extended after each hop, K1.
        branch: Links followed from each of them, L.

    Raises:
        InvalidInput: neither passages nor a first stage is given, two passages share an id, or a number is below 1.

    >>> turing = Passage("Alan Turing was born in Maida Vale.", id="turing", links=("vale",))
    >>> vale = Passage("Maida Vale is a district of London.", id="vale")
    >>> other = Passage("Ada Lovelace wrote the first program.", id="ada")
    >>> search = PathSearch(PromptRank(), [other, turing, vale])
    >>> best = search.search("In which district of London was Alan Turing born?")
    >>> best[0].details["path"]
    ('turing', 'vale')
    """

    def __init__(
        self,
        prompt_rank: PromptRank,
        passages: Iterable[Passage | str] | None = None,
        *,
        links: Links | None = None,
        first_stage: FirstStage | None = None,
        hops: int = 2,
        pool: int = 100,
        beam: int = 5,
        branch: int = 3,
    ) -> None:
        if min(hops, pool, beam, branch) < 1:
            raise InvalidInput(
                f"hops, pool, beam and branch must be at least 1; given {hops}, {pool}, {beam}, {branch}."
            )
        if passages is None and first_stage is None:
            raise InvalidInput("Path search needs passages to search in, or a first_stage retriever.")
        self._passages = as_passages(passages or [])
        self._by_id = {passage.id: passage for passage in self._passages}
        if len(self._by_id) < len(self._passages):
            raise InvalidInput(f"{len(self._passages) - len(self._by_id)} passages share their id with another one.")
        texts = [passage.titled_text for passage in self._passages]
        if prompt_rank.lm.wants_fit and texts:
            prompt_rank = prompt_rank.with_language_model(copy.copy(prompt_rank.lm).fit(texts))
        self._prompt_rank = prompt_rank
        self._index = TfidfIndex(texts)
        self._links = links or given_links
        self._first_stage = first_stage
        self._hops, self._pool, self._beam, self._branch = hops, pool, beam, branch

    def search(self, query: str, top_n: int | None = None) -> list[Ranked[Passage]]:
        """Rank every passage that lies on a scored path.

        Returns:
            Passages by falling score, the maximum over their paths (mean log-likelihood of the question).
            `details["path"]` holds the ids of a passage's best path.

        Raises:
            InvalidInput: the query is blank, or `top_n` is below 1.
        """
        check_top_n(top_n)
        best: dict[str, Ranked[Passage]] = {}
        for scored in self._scored_paths(check_query(query)):
            for passage in scored.passage.passages:
                if passage.id not in best or scored.score > best[passage.id].score:
                    best[passage.id] = Ranked(passage, scored.score, 0, scored.details)
        entries = list(best.values())
        return ranked([e.passage for e in entries], [e.score for e in entries], [e.details for e in entries], top_n)

    def _scored_paths(self, query: str) -> list[Ranked[Path]]:
        """Every path of the beam search with its score, each scored once."""
        similarity = self._index.scores(query)
        if self._first_stage is None:
            first = [self._passages[i] for i in top(similarity, self._pool)]
        else:
            first = as_passages(self._first_stage(query, self._pool))
        outside = [passage for passage in first if passage.id not in self._by_id]
        by_id = self._by_id | {passage.id: passage for passage in outside} if outside else self._by_id
        similar = dict(zip(self._by_id, similarity.tolist(), strict=True))
        extra = TfidfIndex([passage.titled_text for passage in outside]).scores(query)
        similar |= {passage.id: score for passage, score in zip(outside, extra.tolist(), strict=True)}
        starts = {passage.id: Path((passage,)) for passage in first}
        frontier = self._prompt_rank.rank_paths(query, list(starts.values()))
        found = list(frontier)
        for _ in range(self._hops - 1):
            longer = [
                kept.passage.extended(passage)
                for kept in frontier[: self._beam]
                for passage in self._following(kept.passage, by_id, similar)
            ]
            if not longer:
                break
            frontier = self._prompt_rank.rank_paths(query, longer)
            found += frontier
        return found

    def _following(self, path: Path, by_id: Mapping[str, Passage], similar: Mapping[str, float]) -> list[Passage]:
        """The L linked passages most similar to the question that the path does not hold yet."""
        linked = linked_passages(path.passages[-1], self._links, by_id)
        new = [passage for passage in linked if passage.id not in path.ids]
        return sorted(new, key=lambda passage: -similar[passage.id])[: self._branch]
