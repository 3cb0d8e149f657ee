"""Path search: a beam search over links, every path scored jointly by PromptRank.

TF-IDF gives F candidates (paths of one passage); the best K1 are extended along their links, the L best links each;
the longer paths are scored; and so on for H hops. A passage's score is the maximum over all paths that hold it, partial
ones too.                                                          Khalifa et al. (2023), section 2 and Appendix B
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from drillrank.errors import InvalidInput, check_positive
from drillrank.multihop.links import Links, given_links, linked_passages
from drillrank.passages import Passage, Path, Ranked, as_passages, by_id, check_query, check_top_n
from drillrank.rerank.promptrank import PromptRank
from drillrank.retrieval import TfidfIndex, top

FirstStage = Callable[[str, int], Sequence[Passage]]
"""A retriever: from a question and a number to that many passages, best first."""


class PathSearch:
    """Finds the passages that answer a question together, by searching paths of linked passages.

    Args:
        prompt_rank: Scores the paths. A copy of a lexical model that has not been fitted is fitted with `passages`; if
            there are none, with the candidates of each question.
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
    >>> vale = Passage("Maida Vale is a residential district of London.", id="vale")
    >>> others = ["Ada Lovelace wrote the first program.", "The Thames is a river.", "Basel lies on the Rhine."]
    >>> search = PathSearch(PromptRank(), [*others, turing, vale])
    >>> best = search.search("Which residential district was Turing born?")
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
        check_positive(hops=hops, pool=pool, beam=beam, branch=branch)
        if passages is None and first_stage is None:
            raise InvalidInput("Path search needs passages to search in, or a first_stage retriever.")
        self._prompt_rank = prompt_rank
        self._collection = _Collection(as_passages(passages or []), prompt_rank)
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
        ordered = sorted(best.values(), key=lambda item: item.score, reverse=True)[:top_n]
        return [replace(item, rank=rank) for rank, item in enumerate(ordered, start=1)]

    def _scored_paths(self, query: str) -> list[Ranked[Path]]:
        """Every path of the beam search with its score, each scored once."""
        collection = self._collection
        if self._first_stage is None:
            first = collection.most_similar(query, self._pool)
        else:
            first = list(by_id(as_passages(self._first_stage(query, self._pool))[: self._pool]).values())
            if not collection.by_id:
                collection = _Collection(first, self._prompt_rank)
        similar = collection.similarities(query, first)
        reachable = ChainMap(collection.by_id, by_id(first))
        frontier = collection.prompt_rank.rank_paths(query, [Path((passage,)) for passage in first])
        found = list(frontier)
        for _ in range(self._hops - 1):
            longer = [
                kept.passage.extended(passage)
                for kept in frontier[: self._beam]
                for passage in self._following(kept.passage, reachable, similar)
            ]
            if not longer:
                break
            frontier = collection.prompt_rank.rank_paths(query, longer)
            found += frontier
        for scored in found:
            del scored.details["position"]  # the place among the paths of one hop means nothing outside
        return found

    def _following(self, path: Path, reachable: Mapping[str, Passage], similar: Mapping[str, float]) -> list[Passage]:
        """The L linked passages most similar to the question that the path does not hold yet."""
        linked = linked_passages(path.passages[-1], self._links, reachable)
        new = [passage for passage in linked if passage.id not in path.ids]
        return sorted(new, key=lambda passage: similar[passage.id], reverse=True)[: self._branch]


class _Collection:
    """Passages with their TF-IDF index, and a scorer that knows their collection statistics."""

    def __init__(self, passages: Sequence[Passage], prompt_rank: PromptRank) -> None:
        self.by_id = by_id(passages)
        if len(self.by_id) < len(passages):
            raise InvalidInput(f"{len(passages) - len(self.by_id)} passages share their id with another one.")
        texts = [passage.titled_text for passage in passages]
        self.prompt_rank = prompt_rank.with_language_model(prompt_rank.lm.fitted(texts)) if texts else prompt_rank
        self._index = TfidfIndex(texts)

    def most_similar(self, query: str, n: int) -> list[Passage]:
        passages = list(self.by_id.values())
        return [passages[i] for i in top(self._index.scores(query), n)]

    def similarities(self, query: str, others: Sequence[Passage]) -> dict[str, float]:
        """TF-IDF cosine of the query and each passage; other passages are weighted as if they were in the index."""
        similar = dict(zip(self.by_id, self._index.scores(query).tolist(), strict=True))
        foreign = [passage for passage in others if passage.id not in similar]
        scores = self._index.scores_of(query, [passage.titled_text for passage in foreign])
        return similar | {passage.id: score for passage, score in zip(foreign, scores.tolist(), strict=True)}
