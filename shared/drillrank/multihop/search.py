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
from drillrank.multihop.explaining import explain_paths
from drillrank.multihop.link_names import default_links
from drillrank.multihop.links import LinkSource
from drillrank.multihop.missing import MissingInformation
from drillrank.multihop.path_scorer import PathScorer, TokenCoverage, add_embedding_model
from drillrank.multihop.path_settings import PathSettings
from drillrank.multihop.prior import FirstHopPrior, RandomSurfer, find_named_passages
from drillrank.multihop.result import CandidatePath, FollowedLinks, Hop, OnHop, PathResult, PathTrace, StopReason
from drillrank.multihop.sources import (
    CorpusPassages,
    InMemoryPassages,
    PassageSource,
    RetrieveFunction,
    as_source,
    handlers,
)
from drillrank.passages import Passage, Path, Ranked, as_passages, by_id, check_query, check_top_n
from drillrank.rerank.base import RetrievalScores
from drillrank.rerank.promptrank import PromptRank
from drillrank.settings import Preset, as_json, as_settings, with_preset
from drillrank.vectors import Embed

FORMAT, PASSAGES, SETTINGS = "drillrank path search 1", "passages.db", "search.json"


class PathSearch:
    """Retriever of passages that answer a question together, by a search for paths of linked passages.

    Per question, the model scores at most F + K1 · L · (H - 1) + P · (P - 1) / 2 paths, each of them once. With
    `hops=None` the search ends after a hop whose best path is less likely than the best shorter one.

    Args:
        prompt_rank: Scores the paths. If its model is lexical and not fitted, a copy is fitted with `passages`, or with
            the candidates of each question. Its `prior` of the first stage counts, too: by the order of the candidates,
            or by the `scores` of given candidates.
        passages: Passages to search in. They are indexed once, by embeddings if a model or `embed` embeds texts, or
            else by TF-IDF.
        links: Kinds of links to follow. None for the passages' own `links`, hyperlinks, and mentions of titles and of
            names.
        first_stage: Retriever to use in place of that index. Links are followed within `passages` and the passages that
            the retriever returns or fetches. Without `passages` it may be a `Corpus`, which has statistics and titles
            of all its passages: scores are those of a search in memory, and changes of the corpus count at once. It
            retrieves by BM25. Names by which links are found are stored in it.
        llm: Names what the best path of each hop but the last still lacks, in one short call. At most L passages that
            the first stage retrieves for it are linked. A function from prompt to answer, sync or async, or an object
            with `complete`. None for no LLM.
        embed: Specification of an encoder, such as `"onnx:DIR"`, or a function from texts to an array of shape
            [n_texts, n_dimensions]. Semantic similarity then counts in the own first stage, in the choice among links
            and, in addition to the words of a unigram model, in the score.
        preset: `"paper"` searches as the paper does, in all that is not given. Give the `PromptRank` its own preset.
        settings: Settings of the search: `hops` is H, `beam` K1, `branch` L, `pairs` P, `pool` F.

    Raises:
        InvalidInput: Neither passages nor a first stage is given, two passages share an id, or a setting is invalid.

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
            raise InvalidInput("Path search needs passages or first_stage, got neither. Pass one of them.")
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
        """Add passages, or replace those with the same ids. If the first stage is a corpus, the corpus is changed.

        A corpus takes time proportional to the new passages. Passages in memory are indexed from scratch.

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
            passage_by_id = self._collection.by_id | by_id(as_passages(passages))
            self._collection = InMemoryPassages(list(passage_by_id.values()), self._build_scorer, self.links)

    def remove(self, ids: Iterable[str]) -> None:
        """Remove passages. Unknown ids are ignored."""
        if self._stored is not None:
            self._stored.corpus.remove(ids)
        else:
            removed_ids = set(ids)
            remaining = [passage for id_, passage in self._collection.by_id.items() if id_ not in removed_ids]
            self._collection = InMemoryPassages(remaining, self._build_scorer, self.links)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write the passages, the names by which links are found, and the settings.

        Models, and links, retrievers and prompts that are code, are not written. Pass them to `load` again.

        Raises:
            InvalidInput: A passage or a setting cannot be written as JSON, or the directory cannot be written.
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
        """Load a search that `save` wrote. Changes of a search over a corpus change the saved passages.

        Args:
            directory: Directory of the saved search.
            prompt_rank: As for a new search. None for the embedded model.
            **options: `links`, `llm`, `embed` and `settings`, as for a new search. Without settings, the saved ones
                count.

        Raises:
            InvalidInput: No search is saved there, or it cannot be read.

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
        source: dict[str, Any] = {"passages": list(corpus)} if in_memory else {"first_stage": corpus}
        return cls(ranker, **source, **options)

    def search(self, query: str, top_n: int | None = None, *, on_hop: OnHop | None = None) -> PathResult[Passage]:
        """Rank every passage of a scored path.

        Args:
            query: The question.
            top_n: Maximum number of passages; None for all.
            on_hop: Callback that receives every hop with its scored paths.

        Returns:
            Passages, best first. The score of a passage is the maximum over its paths: the path's mean log-likelihood
            of the question, plus its log-prior divided by the number of tokens in the question. Passages of one path
            are ordered by what each adds. `details` describes the best path: `path` (ids of its passages),
            `log_prior`, `tokens` of the question, and `cut_tokens`. With an LLM it also has `missing` (queries that
            the LLM named), `usage`, and `problems` if a call failed.

        Raises:
            InvalidInput: The query is blank, or `top_n` is below 1.
            LLMFailure: A call failed or its answer has no word, and `on_failure` says to raise.
        """
        usage = Usage()
        answering = handlers(self._retriever or self._collection, on_hop)
        return run(self.requests(query, top_n, usage=usage), self.llm, answering, usage=usage)

    async def asearch(
        self, query: str, top_n: int | None = None, *, on_hop: OnHop | None = None
    ) -> PathResult[Passage]:
        """Search without blocking the event loop: an asynchronous LLM is awaited, and all else runs on threads."""

        async def tell(hop: Hop) -> None:
            if on_hop is not None:
                on_hop(hop)

        usage, answering = Usage(), {**handlers(self.source), Hop: tell}
        return await arun(self.requests(query, top_n, usage=usage), self.llm, answering, usage=usage)

    def search_many(self, queries: Sequence[str], top_n: int | None = None) -> list[PathResult[Passage]]:
        """Search for each question, one after the other.

        A hop scores all paths of its question in one pass, and waits for the links of the hop before.
        """
        return [self.search(query, top_n) for query in queries]

    def search_paths(self, query: str, top_n: int | None = None, *, on_hop: OnHop | None = None) -> PathResult[Path]:
        """Rank the scored paths themselves, shorter ones included. Arguments and errors are those of `search`.

        >>> passages = [Passage("a fox", id="1", links=("2",)), Passage("a river", id="2")]
        >>> [best, *_] = PathSearch(PromptRank(), passages).search_paths("Which fox crossed a river?")
        >>> best.passage.ids
        ('1', '2')
        """
        usage = Usage()
        return run(self.path_requests(query, top_n, usage=usage), self.llm, handlers(self.source, on_hop), usage=usage)

    def explain(self, query: str, ranking: Sequence[Ranked[Any]]) -> Explanations:
        """Explain the ranks of passages or paths. A result of the search does so without a new search: `explain()`.

        Raises:
            InvalidInput: The entries are not of such a search.
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
        surfer = None
        if prior is not None:
            surfer = RandomSurfer(prior, collection.size, find_named_passages(query, collection.titles))
        first_hop = None
        if self.prompt_rank.prior is not None or scores is not None:
            weight = self.prompt_rank.settings.prior_weight
            first_hop = FirstHopPrior(self.prompt_rank.prior, candidates, scores, weight)
        asks = missing or (self.settings if self.llm is not None else None)
        return SearchScope(
            question=query,
            candidates=tuple(first.values()),
            scorer=scorer,
            kinds=collection.links,
            pool={} if fetched else collection.by_id,
            fetched=first,
            surfer=surfer,
            weight=prior.weight if prior else 0.0,
            title_penalties=collection.title_penalties,
            first_hop=first_hop,
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
                scored = scored if scope.first_hop is None else scope.first_hop.rerank(scored)
                best = [item for item in scored if item.passage.passages[0].titled_text.strip()][: plan.pairs]
            candidate_by_ids |= {candidate.path.ids: candidate for candidate in candidates}
            hops.append(Hop(len(hops) + 1, tuple(scored)))
            yield [hops[-1]]
            # 3. Stop after H hops. If H is open, stop once longer paths are less likely than shorter ones.
            if stop_reason := find_stop_reason(hops, plan.hops, is_open=plan.stops_early):
                break
            # 4. Prune to the K1 best paths. Follow their links, and those of passages to pair.
            beam = scored[: plan.beams[min(len(hops), len(plan.beams)) - 1]]
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
