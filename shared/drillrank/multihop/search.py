"""Path search: a beam search over links, in which each path is scored jointly by PromptRank.

    Khalifa et al. (2023), section 2 and Appendix B

TF-IDF retrieves F candidates, which are paths of one passage. The K1 best paths are extended along their links, by the
L best passages each; the longer paths are scored; and so on for H hops. Pairs of the best candidates compete with
linked paths, for questions that compare. Longer paths may go on to the best candidates, for questions that compare what
links lead to. The score of a passage is the maximum over all paths that contain it, shorter ones included. An LLM, if
there is one, may name what a path still lacks (`drillrank.multihop.missing`).

The best passages to go on to are those that explain most of what the path leaves unexplained
(`drillrank.multihop.path_scorer`), weighted by the prior. The paper takes those most similar to the question.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path as FilePath
from typing import Any

from drillrank.corpus import Corpus
from drillrank.errors import InvalidInput, WarnOnce
from drillrank.explanation import Explanations
from drillrank.files import open_file, replace_file
from drillrank.likelihood.encoders import as_encoder
from drillrank.llm import LLM, Requests, RetrievalRequest, Usage, arun, run
from drillrank.multihop.beam import (
    SearchScope,
    extend_beam,
    find_stop_reason,
    follow_links,
    initial_paths,
    pair_passages,
    rank_passages,
    rank_paths,
)
from drillrank.multihop.collection import CorpusPassages, InMemoryPassages
from drillrank.multihop.explaining import explain_paths
from drillrank.multihop.link_names import default_links
from drillrank.multihop.links import LinkSource
from drillrank.multihop.missing import MissingInformation
from drillrank.multihop.path_scorer import PathScorer, TokenCoverage, add_embedding_model
from drillrank.multihop.path_settings import PathSettings
from drillrank.multihop.prior import FirstHopPrior, find_named_passages
from drillrank.multihop.result import CandidatePath, FollowedLinks, Hop, OnHop, PathResult, PathTrace, StopReason
from drillrank.multihop.sources import PassageSource, RetrieveFunction, as_source, handlers
from drillrank.passages import Passage, Path, Ranked, as_passages, by_id, check_query, check_top_n
from drillrank.rerank.base import RetrievalScores
from drillrank.rerank.promptrank import PromptRank
from drillrank.settings import Preset, as_json, as_settings, with_preset
from drillrank.vectors import Embed

FORMAT, PASSAGES, SETTINGS = "drillrank path search 1", "passages.db", "search.json"


class PathSearch:
    """Finds the passages that answer a question together, by searching paths of linked passages.

    Per question, the model scores F + K1 · L · (H - 1) + P · (P - 1) / 2 paths at most, none twice. With `hops=None`
    the search ends after a hop whose best path is less likely than the best shorter one.

    Args:
        prompt_rank: Scores the paths. A copy of a lexical model that has not been fitted is fitted with `passages`; if
            there are none, with the candidates of each question. Its `prior` of the first stage counts, too: by the
            order of what the first stage brought, or by `scores` of given candidates.
        passages: The pool, indexed once: with TF-IDF, or, where something reads meaning (`"st:..."`, `embed`), by that.
        links: Where a path goes on; several kinds are combined. None takes each passage's own
            `links`, its hyperlinks, and the titles and names that it mentions.
        first_stage: A retriever to use in place of that index. Links are then followed within `passages` and what the
            retriever returned, or fetches. Without `passages` it may be a `Corpus`, which also knows statistics and
            titles of all that it holds: then scores are those of a search with all of it in memory. It finds by
            BM25; meaning, where something reads it, scores and chooses links. What changes in the corpus counts at
            once. Names that links are found by are kept in it.
        llm: Names what the best path of each hop but the last still lacks, in one short call; what the first stage
            finds for that is linked to, L passages at most. A function from prompt to answer, sync or async, or an
            object with `complete`. None asks nobody.
        embed: An encoder's specification, such as `"onnx:DIR"`, or a function from texts to an array of shape (texts,
            dimensions). Semantic similarity then counts in an own first stage, in the choice among links and, in
            addition to the words of a unigram model, in the score.
        preset: `"paper"` searches as the paper does, in all that is not given. Give the `PromptRank` its own preset.
        settings: How paths are searched: `hops` is H, `beam` K1, `branch` L, `pairs` P, `pool` F.

    Raises:
        InvalidInput: neither passages nor a first stage is given, two passages share an id, or a setting cannot be
            used.

    >>> turing = Passage("Alan Turing was born in Maida Vale.", id="turing", links=("vale",))
    >>> vale = Passage("Maida Vale is a residential district of London.", id="vale")
    >>> others = ["Ada Lovelace wrote the first program.", "The Thames is a river.", "Basel lies on the Rhine."]
    >>> search = PathSearch(PromptRank(), [*others, turing, vale])
    >>> best = search.search("Which residential district was Turing born?")
    >>> sorted(best[0].details["path"])
    ['turing', 'vale']
    """

    def __init__(
        self,
        prompt_rank: PromptRank,
        passages: Iterable[Passage | str] | None = None,
        *,
        links: LinkSource | Sequence[LinkSource] | None = None,
        first_stage: RetrieveFunction | PassageSource | None = None,
        llm: LLM | None = None,
        embed: str | Embed | None = None,
        preset: Preset | None = None,
        settings: PathSettings | Mapping[str, Any] = PathSettings(),
    ) -> None:
        if passages is None and first_stage is None:
            raise InvalidInput("Path search needs passages to search in, or a first_stage retriever.")
        self.prompt_rank = prompt_rank
        self.first_stage = first_stage
        self.llm = llm
        self.embed = as_encoder(embed)
        self.settings = with_preset(as_settings(PathSettings, settings), preset)
        self.plan = self.settings.plan(is_neural=prompt_rank.language_model.reads_instructions)
        self.links = default_links(self.settings.preset) if links is None else links
        ranker, meaning = add_embedding_model(prompt_rank, self.embed)
        self._build_scorer = partial(PathScorer, ranker, meaning=meaning)
        self._collection = InMemoryPassages(as_passages(passages or []), self._build_scorer, self.links)
        self._retriever = None if first_stage is None else as_source(first_stage)
        self._stored: CorpusPassages | None = None
        self._warned = WarnOnce()
        if isinstance(self._retriever, Corpus) and not self._collection.by_id:
            self._stored = CorpusPassages(self._retriever, self._build_scorer, self.links)

    def add(self, passages: Iterable[Passage | str]) -> None:
        """Add passages, or change those whose id is there: in the corpus where that is the first stage.

        A corpus grows at the cost of what is added; passages in memory are indexed anew.

        >>> search = PathSearch(PromptRank(), first_stage=Corpus())
        >>> search.add([Passage("a fox", id="1", links=("2",)), Passage("a river", id="2")])
        >>> search.remove(["2"])
        >>> [item.passage.id for item in search.search("Which fox crossed a river?")]
        ['1']
        """
        if self._stored is not None:
            self._stored.corpus.add(as_passages(passages))
            self._stored.update()
        else:
            found = self._collection.by_id | by_id(as_passages(passages))
            self._collection = InMemoryPassages(list(found.values()), self._build_scorer, self.links)

    def remove(self, ids: Iterable[str]) -> None:
        """Remove passages; ids that are not there are passed over."""
        if self._stored is not None:
            self._stored.corpus.remove(ids)
        else:
            gone = set(ids)
            left = [passage for name, passage in self._collection.by_id.items() if name not in gone]
            self._collection = InMemoryPassages(left, self._build_scorer, self.links)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write the passages, the names that links are found by, and the settings.

        Models, and links, retrievers and prompts that are code, are not written: `load` is given them again.

        Raises:
            InvalidInput: a passage or a setting is nothing for JSON, or the directory cannot be written.
        """
        folder = FilePath(directory).expanduser()
        saved = {"format": FORMAT, "in_memory": self._stored is None, "settings": as_json(self.settings)}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if self._stored is not None:
                self._stored.corpus.save(folder / PASSAGES)
            else:
                corpus = Corpus()
                corpus.add(self._collection.by_id.values())
                corpus.save(folder / PASSAGES)
            with replace_file(folder / SETTINGS) as file:
                file.write(json.dumps(saved, indent=1).encode())
        except (OSError, TypeError) as cause:
            raise InvalidInput(f"The search cannot be written to {str(directory)!r:.200}: {cause!s:.200}.") from cause

    @classmethod
    def load(
        cls, directory: str | os.PathLike[str], prompt_rank: PromptRank | None = None, **options: Any
    ) -> PathSearch:
        """The search that `save` wrote; a change of its passages on disk is a change of the saved ones.

        Args:
            directory: Where it was written.
            prompt_rank: As for a new search; None takes the embedded model.
            **options: `links`, `llm`, `embed` and `settings`, as for a new search; without settings the saved ones.

        Raises:
            InvalidInput: no search is saved there, or it cannot be read.

        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as directory:
        ...     PathSearch(PromptRank(), [Passage("a fox", id="1")]).save(directory)
        ...     [item.passage.id for item in PathSearch.load(directory).search("Which fox?")]
        ['1']
        """
        folder = FilePath(directory).expanduser()
        try:
            with open_file(folder / SETTINGS) as file:
                saved = json.load(file)
            if saved.pop("format") != FORMAT:
                raise ValueError("it is of another version")
            options = {"settings": saved["settings"], **options}
            in_memory = bool(saved["in_memory"])
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as cause:
            raise InvalidInput(f"No path search can be read from {str(directory)!r:.200}: {cause!s:.200}.") from cause
        ranker = PromptRank() if prompt_rank is None else prompt_rank
        corpus = Corpus(folder / PASSAGES, language=ranker.language_model.language)
        given: dict[str, Any] = {"passages": list(corpus)} if in_memory else {"first_stage": corpus}
        return cls(ranker, **given, **options)

    def search(self, query: str, top_n: int | None = None, *, on_hop: OnHop | None = None) -> PathResult[Passage]:
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
            LLMFailure: A call failed or its answer has no word, and `on_failure` says to raise.
        """
        usage = Usage()
        return run(self.requests(query, top_n, usage=usage), self.llm, handlers(self.source, on_hop), usage=usage)

    async def asearch(
        self, query: str, top_n: int | None = None, *, on_hop: OnHop | None = None
    ) -> PathResult[Passage]:
        """As `search`, without blocking the event loop: an LLM that can be awaited is, all else runs on threads."""

        async def tell(hop: Hop) -> None:
            if on_hop is not None:
                on_hop(hop)

        usage, answering = Usage(), {**handlers(self.source), Hop: tell}
        return await arun(self.requests(query, top_n, usage=usage), self.llm, answering, usage=usage)

    def search_many(self, queries: Sequence[str], top_n: int | None = None) -> list[PathResult[Passage]]:
        """`search` for each question, one after the other.

        A hop scores all paths of its question in one pass, hundreds of them, and waits for the links of the hop
        before: there is no batch left that the next question could fill.
        """
        return [self.search(query, top_n) for query in queries]

    def search_paths(self, query: str, top_n: int | None = None, *, on_hop: OnHop | None = None) -> PathResult[Path]:
        """The scored paths themselves, partial ones too, best first; arguments, details and errors as of `search`.

        >>> passages = [Passage("a fox", id="1", links=("2",)), Passage("a river", id="2")]
        >>> [best, *_] = PathSearch(PromptRank(), passages).search_paths("Which fox crossed a river?")
        >>> best.passage.ids
        ('1', '2')
        """
        usage = Usage()
        return run(self.path_requests(query, top_n, usage=usage), self.llm, handlers(self.source, on_hop), usage=usage)

    def explain(self, query: str, ranking: Sequence[Ranked[Any]]) -> Explanations:
        """Why passages or paths stand where they stand; of its own, `ranking.explain()` tells it.

        It searches once more, to know which links lead along the paths.

        Raises:
            InvalidInput: the entries are not of such a search.
        """
        return replace(self.search_paths(query), ranking=tuple(ranking)).explain()

    @property
    def source(self) -> PassageSource:
        """Source of passages: the first stage, or the index of the search."""
        return self._retriever or self._collection

    def requests(
        self,
        query: str,
        top_n: int | None = None,
        *,
        candidates: Sequence[Passage] | None = None,
        scores: RetrievalScores | None = None,
        fetched: bool = False,
        missing: PathSettings | None = None,
        usage: Usage | None = None,
    ) -> Requests[PathResult[Passage]]:
        """Return `search` as a generator of requests, for `drillrank.llm.run`.

        Args:
            query: The question.
            top_n: Maximum number of passages; None for all on scored paths.
            candidates: Passages to start from, in place of those that the first stage retrieves.
            scores: Score of each candidate, for a prior that counts scores.
            fetched: True if only titles, addresses and links of the search's own passages are used. Each passage is
                fetched from the source before it is read, and a passage that the source does not return is left out.
            missing: Settings by which an LLM is asked for what paths lack. None asks one only if the search has `llm`.
            usage: Usage of the LLM, which the caller counts.
        """
        check_top_n(top_n)
        scope = yield from self._open_scope(query, candidates, scores, fetched, missing)
        trace = yield from self._search_hops(scope)
        passages = rank_passages(rank_paths(scope, trace, usage), scope.coverage)[:top_n]
        return PathResult(tuple(passages), trace, partial(explain_paths, scope.scorer.prompt_rank, trace))

    def path_requests(
        self,
        query: str,
        top_n: int | None = None,
        *,
        candidates: Sequence[Passage] | None = None,
        scores: RetrievalScores | None = None,
        fetched: bool = False,
        missing: PathSettings | None = None,
        usage: Usage | None = None,
    ) -> Requests[PathResult[Path]]:
        """Return `search_paths` as a generator of requests; for the other arguments see `requests`."""
        check_top_n(top_n)
        scope = yield from self._open_scope(query, candidates, scores, fetched, missing)
        trace = yield from self._search_hops(scope)
        paths = rank_paths(scope, trace, usage)[:top_n]
        return PathResult(tuple(paths), trace, partial(explain_paths, scope.scorer.prompt_rank, trace))

    def _open_scope(
        self,
        query: str,
        candidates: Sequence[Passage] | None,
        scores: RetrievalScores | None,
        fetched: bool,
        missing: PathSettings | None,
    ) -> Requests[SearchScope]:
        """Retrieve the F candidates, and prepare all that the steps of the search share."""
        check_query(query)
        plan = self.plan
        if candidates is None:
            [retrieved] = yield [RetrievalRequest(query, plan.pool)]
            candidates = as_passages(retrieved)[: plan.pool]
        first = by_id(candidates)
        collection: InMemoryPassages | CorpusPassages = self._collection
        is_known = True
        if self._stored is not None:
            collection = self._stored.with_candidates(list(first.values()))
        elif not collection.by_id:
            collection = InMemoryPassages(list(first.values()), self._build_scorer, self.links)
            is_known = False
        statistics = collection.statistics if is_known and plan.prune == "tfidf" else None
        prior, scorer = plan.link_prior, collection.scorer
        asks = missing or (self.settings if self.llm is not None else None)
        return SearchScope(
            question=query,
            candidates=tuple(first.values()),
            scorer=scorer,
            kinds=collection.links,
            pool={} if fetched else collection.by_id,
            fetched=first,
            surfer=None
            if prior is None
            else prior.build_surfer(collection.size, find_named_passages(query, collection.titles)),
            title_penalties=collection.title_penalties,
            first_hop=FirstHopPrior(self.prompt_rank.prior, candidates, scores, self.prompt_rank.settings.prior_weight),
            coverage=TokenCoverage(scorer.document_model, query, prior.aligned if prior else 0.0),
            branch=plan.branch,
            prunes_by_tfidf=plan.prune == "tfidf",
            statistics=statistics,
            warned=self._warned,
            missing=None if asks is None else MissingInformation(asks, query),
        )

    def _search_hops(self, scope: SearchScope) -> Requests[PathTrace]:
        """Search hop by hop, as in section 2 of the paper, which names K1, L and H."""
        plan = self.plan
        hops: list[Hop] = []
        links: list[FollowedLinks] = []
        candidate_by_ids: dict[tuple[str, ...], CandidatePath] = {}
        # 1. Each candidate of the first stage is a path.
        candidates = initial_paths(scope)
        while True:
            # 2. Score the paths jointly: the likelihood of the question after them, and their prior.
            scored = scope.scorer.rank(scope.question, candidates)
            if not hops:
                scored = scope.first_hop.rerank(scored)
                best = [item for item in scored if item.passage.passages[0].titled_text.strip()][: plan.pairs]
            candidate_by_ids |= {candidate.path.ids: candidate for candidate in candidates}
            hops.append(Hop(len(hops) + 1, tuple(scored)))
            yield [hops[-1]]
            # 3. Stop after H hops. If H is open, stop once longer paths are less likely than shorter ones.
            if stop_reason := find_stop_reason(hops, plan.hops, is_open=plan.stops_early):
                break
            # 4. Prune to the K1 best paths. Follow their links, and those of passages to pair.
            beam = scored[: plan.beam(len(hops))]
            followed = yield from follow_links(scope, beam, best if len(hops) == 1 else [])
            links += followed
            # 5. Extend each by the L best passages. Longer paths may go on to the best passages of the first hop, too.
            jumps = [item.passage.passages[0] for item in best] if len(hops) > 1 else []
            candidates = extend_beam(scope, beam, candidate_by_ids, followed, jumps)
            # 6. Pair the best passages of the first hop. A pair replaces the same path over links.
            if len(hops) == 1:
                candidates += pair_passages(scope, best, candidate_by_ids, followed)
            candidates = list({candidate.path.ids: candidate for candidate in candidates}.values())
            if not candidates:
                stop_reason = StopReason.NO_LINKS
                break
        return PathTrace(
            scope.question,
            tuple(hops),
            candidate_by_ids,
            tuple(links),
            plan.link_prior,
            scope.scorer.reads_documents,
            stop_reason,
            tuple(scope.missing.queries) if scope.missing else (),
            tuple(scope.missing.problems) if scope.missing else (),
        )
