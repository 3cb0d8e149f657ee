"""Path search: a beam search over links, every path scored jointly by PromptRank.

TF-IDF gives F candidates (paths of one passage); the best K1 are extended along their links, the L best links each;
the longer paths are scored; and so on for H hops. Pairs of the best candidates compete with the linked ones, for
questions that compare, and longer paths may go on to the best candidates, for questions that compare what links lead
to. A passage's score is the maximum over all paths that hold it, partial ones too. An LLM, if there is one, may name
what a path still lacks (`drillrank.multihop.missing`).
                                                                 Khalifa et al. (2023), section 2 and Appendix B

The best links are those whose passages explain most of what the path leaves unexplained (`drillrank.multihop.residual`)
in the light of the prior; the paper takes those most similar to the question.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from drillrank.corpus import Corpus
from drillrank.errors import InvalidInput
from drillrank.explanation import Explainable, Explanations
from drillrank.llm import LLM, Requests, Retrieve, Usage, arun, run
from drillrank.multihop.collected import Collected
from drillrank.multihop.first_hop import FirstHop
from drillrank.multihop.links import LinkSource, linked
from drillrank.multihop.lookups import FirstStage, Hop, OnHop, Source, as_source, handlers
from drillrank.multihop.missing import Missing
from drillrank.multihop.path_ranking import is_over, ranked_passages, ranked_paths
from drillrank.multihop.path_reasons import PathReasons
from drillrank.multihop.path_settings import PathSettings
from drillrank.multihop.scoring import PathScorer, with_meaning
from drillrank.multihop.search_state import SearchState
from drillrank.passages import Passage, Path, Ranked, Ranking, as_passages, by_id, check_query, check_top_n
from drillrank.rerank.base import RetrievalScores
from drillrank.rerank.promptrank import PromptRank
from drillrank.settings import as_settings
from drillrank.vectors import Embed

PAPER_HOPS, PAPER_BEAM, PAPER_BRANCH = 2, 5, 3  # section 2
LEXICAL_HOPS, LEXICAL_BEAM, LEXICAL_BRANCH = 3, 10, 8  # to a unigram model a wider beam costs next to nothing


@dataclass(frozen=True, slots=True)
class Scope:
    """What a search's own passages are to one question.

    Attributes:
        ids: Of those that there are; None is all. The others might as well not have been given, except that the
            statistics of words (TF-IDF, a lexical model) are those of all.
        fetched: Only their titles, addresses and links are used: each is fetched from the source before it is read,
            and what the source does not bring is not there.
    """

    ids: Collection[str] | None = None
    fetched: bool = False


class PathSearch:
    """Finds the passages that answer a question together, by searching paths of linked passages.

    Per question, the model scores F + K1 · L · (H - 1) + P · (P - 1) / 2 paths at most, none twice. With `hops=None`
    the search ends after a hop whose best path is less likely than the best shorter one.

    Args:
        prompt_rank: Scores the paths. A copy of a lexical model that has not been fitted is fitted with `passages`; if
            there are none, with the candidates of each question. Its `prior` of the first stage counts, too: by the
            order of what the first stage brought, or by `scores` of given candidates.
        passages: The pool, indexed once: with TF-IDF, or, where something reads meaning (`"st:..."`, `embed`), by that.
        links: Where a path goes on; several kinds are combined. None takes each passage's own `links`.
        first_stage: A retriever to use in place of that index. Links are then followed within `passages` and what the
            retriever returned, or fetches. Without `passages` it may be a `Corpus`, which also knows statistics and
            titles of all that it holds: then scores are those of a search with all of it in memory. It finds by
            BM25; meaning, where something reads it, scores and chooses links. What changes in the corpus is found at
            once; statistics are those of when the search was made.
        llm: Names what the best path of each hop but the last still lacks, in one short call; what the first stage
            finds for that is linked to, L passages at most. A function from prompt to answer, sync or async, or an
            object with `complete`. None asks nobody.
        embed: A function from texts to an array of shape (texts, dimensions): meaning then counts in an own first
            stage, in the choice among links and, beside the words of a unigram model, in the score.
        settings: How paths are searched: `hops` is H, `beam` K1, `branch` L, `pairs` P, `pool` F.

    Raises:
        InvalidInput: neither passages nor a first stage is given, two passages share an id, or a setting cannot be
            used.

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
        links: LinkSource | Sequence[LinkSource] | None = None,
        first_stage: FirstStage | Source | None = None,
        llm: LLM | None = None,
        embed: Embed | None = None,
        settings: PathSettings | Mapping[str, Any] = PathSettings(),
    ) -> None:
        if passages is None and first_stage is None:
            raise InvalidInput("Path search needs passages to search in, or a first_stage retriever.")
        self.prompt_rank = prompt_rank
        self.links = links
        self.first_stage = first_stage
        self.llm = llm
        self.embed = embed
        self.settings = as_settings(PathSettings, settings)
        ranker, meaning = with_meaning(prompt_rank, embed)
        self._scorer_of = partial(PathScorer, ranker, cascade=self.settings.cascade, meaning=meaning)
        lexical = not prompt_rank.language_model.reads_instructions
        self._hops = self.settings.hops or (LEXICAL_HOPS if lexical else PAPER_HOPS)
        self._beam = self.settings.beam or (LEXICAL_BEAM if lexical else PAPER_BEAM)
        self._branch = self.settings.branch or (LEXICAL_BRANCH if lexical else PAPER_BRANCH)
        self._collection = self._collect(as_passages(passages or []))
        self._source: Source = self._collection if first_stage is None else as_source(first_stage)
        self._corpus: Collected | None = None
        if not self._collection.by_id and isinstance(self._source, Corpus):
            self._corpus = Collected([], self._scorer_of, links, self._source)

    def search(self, query: str, top_n: int | None = None, *, on_hop: OnHop | None = None) -> Ranking[Passage]:
        """Rank every passage that lies on a scored path.

        Args:
            query: The question.
            top_n: How many passages to return; None returns all.
            on_hop: Is told of every hop, with its scored paths.

        Returns:
            Passages by falling score, the maximum over their paths: the path's mean log-likelihood of the question,
            plus its log-prior divided by the question's tokens. Those of one path come in the order of their own
            posterior, that of all paths that hold them. `details` tells of a passage's best path: `path` (its ids),
            `log_prior`, `tokens` of the question, and `cut_tokens`; with an LLM also of the search: `missing` (the
            queries that it named), `usage`, and `problems` if a call failed.

        Raises:
            InvalidInput: the query is blank, or `top_n` is below 1.
            LLMFailure: a call failed, and `on_failure` is `"raise"`.
        """
        usage = Usage()
        return run(self.requests(query, top_n, usage=usage), self.llm, handlers(self._source, on_hop), usage=usage)

    async def asearch(self, query: str, top_n: int | None = None, *, on_hop: OnHop | None = None) -> Ranking[Passage]:
        """As `search`, without blocking the event loop: an LLM that can be awaited is, all else runs on threads."""

        async def tell(hop: Hop) -> None:
            if on_hop is not None:
                on_hop(hop)

        usage, answering = Usage(), {**handlers(self._source), Hop: tell}
        return await arun(self.requests(query, top_n, usage=usage), self.llm, answering, usage=usage)

    def search_many(self, queries: Sequence[str], top_n: int | None = None) -> list[Ranking[Passage]]:
        """`search` for each question, one after the other.

        A hop scores all paths of its question in one pass, hundreds of them, and waits for the links of the hop
        before: there is no batch left that the next question could fill.
        """
        return [self.search(query, top_n) for query in queries]

    def search_paths(self, query: str, top_n: int | None = None, *, on_hop: OnHop | None = None) -> Ranking[Path]:
        """The scored paths themselves, partial ones too, best first; arguments, details and errors as of `search`.

        >>> passages = [Passage("a fox", id="1", links=("2",)), Passage("a river", id="2")]
        >>> [best, *_] = PathSearch(PromptRank(), passages).search_paths("Which fox crossed a river?")
        >>> best.passage.ids
        ('1', '2')
        """
        usage = Usage()
        return run(self.path_requests(query, top_n, usage=usage), self.llm, handlers(self._source, on_hop), usage=usage)

    def explain(self, query: str, ranking: Sequence[Ranked[Any]]) -> Explanations:
        """Why passages or paths stand where they stand; of its own, `ranking.explain()` tells it.

        It searches once more, to know which links lead along the paths.

        Raises:
            InvalidInput: the entries are not of such a search.
        """
        return Explainable(ranking, self.search_paths(query).why).explain()

    def requests(
        self,
        query: str,
        top_n: int | None = None,
        *,
        candidates: Sequence[Passage] | None = None,
        scores: RetrievalScores | None = None,
        scope: Scope = Scope(),
        missing: PathSettings | None = None,
        usage: Usage | None = None,
    ) -> Requests[Ranking[Passage]]:
        """`search` as a generator of requests, for `drillrank.llm.run`; `candidates` replace the first stage.

        Their `scores` are the first stage's, for a prior that counts it. The `scope` says which of the own passages
        may be linked to, and whether they may be read. With `missing`, or an `llm` of its own, it asks for what paths
        lack; `usage` is what the caller counts these calls in.
        """
        check_top_n(top_n)
        paths = yield from self.path_requests(
            query, candidates=candidates, scores=scores, scope=scope, missing=missing, usage=usage
        )
        return Explainable(ranked_passages(paths)[:top_n], paths.why)

    def path_requests(
        self,
        query: str,
        top_n: int | None = None,
        *,
        candidates: Sequence[Passage] | None = None,
        scores: RetrievalScores | None = None,
        scope: Scope = Scope(),
        missing: PathSettings | None = None,
        usage: Usage | None = None,
    ) -> Requests[Ranking[Path]]:
        """`search_paths` as a generator of requests; further arguments as of `requests`."""
        check_top_n(top_n)
        check_query(query)
        if candidates is None:
            [candidates] = yield [Retrieve(query, self.settings.pool)]
            candidates = as_passages(candidates)[: self.settings.pool]
        first = by_id(candidates)
        if self._corpus is not None:
            collection = self._corpus.linking(list(first.values()))
        else:
            collection = self._collection.within(scope.ids)
            if not collection.by_id:
                collection = self._collect(list(first.values()))
        first_hop = FirstHop(self.prompt_rank.prior, candidates, scores, self.prompt_rank.settings.prior_weight)
        reachable = ChainMap(first, {} if scope.fetched else collection.by_id)
        reader = (
            self.settings.link_prior.reader(collection.size, collection.named(query))
            if self.settings.link_prior
            else None
        )
        state = SearchState(query, collection.links, collection.by_id, reachable, reader)
        residual = collection.scorer.residual(query)
        asked = missing or (self.settings if self.llm is not None else None)
        lacks = Missing(asked, query) if asked else None
        waiting = [state.start(passage) for passage in first.values()]
        found: list[Ranked[Path]] = []
        best: list[Ranked[Path]] = []
        for number in range(1, self._hops + 1):
            frontier = collection.scorer.ranked(query, waiting)
            if number == 1:
                frontier = first_hop.posteriors(frontier)
            shorter, found = found, found + frontier
            yield [Hop(number, tuple(frontier))]
            if number == self._hops or not frontier or (self.settings.hops is None and is_over(frontier, shorter)):
                break
            kept = [item.passage for item in frontier[: self._beam]]
            paired = [item.passage for item in frontier[self._beam : self.settings.pairs]] if number == 1 else []
            reached = yield from linked(state, query, [*kept, *paired], state.reachable, retrieving=len(kept))
            state.led_to |= zip((path.ids for path in (*kept, *paired)), reached, strict=True)
            following = reached[: len(kept)]
            lacking = (yield from lacks.after(kept[0], self._branch)) if lacks else ()
            state.name(kept, lacking)
            beside = [*lacking, *(item.passage.passages[0] for item in best)]
            waiting = state.extended(
                frontier[: self._beam], [[*passages, *beside] for passages in following], residual, self._branch
            )
            if number == 1:
                best = frontier[: self.settings.pairs]
                waiting += state.pairs(best)
            if not waiting:
                break
            waiting = list({one.path.ids: one for one in waiting}.values())  # a pair may be linked, too
        ordered = ranked_paths(found, first_hop.counts)[:top_n]
        if lacks:
            told = lacks.details() | ({"usage": usage.as_metadata()} if usage else {})
            for item in ordered:
                item.details |= told
        return Explainable(ordered, PathReasons(query, collection.scorer.prompt_rank, state))

    def _collect(self, passages: Sequence[Passage]) -> Collected:
        return Collected(passages, self._scorer_of, self.links)
