"""Path search: a beam search over links, in which PromptRank scores each path jointly.

    Khalifa et al. (2023), section 2 and Appendix B

1. The first stage retrieves F candidates. Each is a path of one passage. The first hop scores these paths.
2. The K1 best paths are each extended by the L best passages that their links lead to. The next hop scores these longer
   paths. The step is repeated until paths have H passages.
3. The score of a passage is the maximum over all scored paths that contain it, shorter paths included.

The score of a path is the likelihood of the question after it, times the path's prior (`drillrank.multihop.prior`).

The best passages to extend a path are those that explain most of what the path leaves unexplained, weighted by the
prior (`drillrank.multihop.path_scorer`). The paper takes the passages most similar to the question.

Three additions to the paper extend paths without links. In the second hop, pairs of the best candidates compete with
linked paths, for questions that compare two things. In later hops, paths may go on to the best candidates, for
questions that compare what links lead to. If there is an LLM, it names what the best path still lacks
(`drillrank.multihop.missing`).
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
from drillrank.multihop.prior import FirstStagePrior, RandomSurfer, find_named_passages
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
from drillrank.rerank.prior import RetrievalScores
from drillrank.rerank.promptrank import PromptRank
from drillrank.settings import Preset, as_json, as_settings, with_preset
from drillrank.vectors import Embed

FORMAT, PASSAGES, SETTINGS = "drillrank path search 1", "passages.db", "search.json"


class PathSearch:
    """Retriever of passages that answer a question together, by a search for paths of linked passages.

    Per question, the model scores at most F + K1 · L · (H - 1) + P · (P - 1) / 2 paths, each of them once.

    Args:
        prompt_rank: Ranker that scores the paths. If its model is lexical and not fitted, a copy is fitted with
            `passages`, or with the candidates of each question if there are no passages. If it has a `prior`, the order
            of the first stage counts, too.
        passages: Passages to search in. They are indexed once, by embeddings if the model or `embed` embeds texts, or
            by TF-IDF otherwise.
        links: Kinds of links to follow. None for `Passage.links`, hyperlinks, and mentions of titles and of names.
        first_stage: Retriever that replaces this index: a function `(query, n) -> passages`, or an object that can also
            `fetch` passages by id. Links lead to `passages` and to passages that the retriever returns or fetches. If
            there are no `passages`, it may be a `Corpus`, which retrieves by BM25. Term statistics and titles are then
            those of the whole corpus, so that scores equal those of a search in memory. The names by which links are
            found are stored in the corpus. Changes of the corpus take effect at once.
        llm: LLM that names what the best path still lacks, in one short call after each hop but the last. At most L
            passages that the first stage retrieves for the answer are linked from each of the K1 best paths. The LLM is
            a function from prompt to answer, sync or async, or an object with `complete`. None for no LLM.
        embed: Encoder of texts: a specification such as `"onnx:DIR"`, or a function from texts to an array of shape
            [n_texts, n_dimensions]. Semantic similarity then decides in the index of `passages` and in the choice of
            links. It also counts in the score of a unigram model, in addition to lexical matching.
        preset: `"paper"` uses the paper's values for `links` and settings that are not passed. `PromptRank` has a
            preset of its own.
        settings: Settings of the search: `hops` is H, `beam` K1, `branch` L, `pairs` P, `pool` F.

    Raises:
        InvalidInput: Neither passages nor a first stage is passed, two passages share an id, or a setting is invalid.

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
        ranker, embedding_model = add_embedding_model(prompt_rank, self.embed)
        self._build_scorer = partial(PathScorer, ranker, embedding_model=embedding_model)
        self._own_passages = InMemoryPassages(as_passages(passages or []), self._build_scorer, self.links)
        self._first_stage_source = None if first_stage is None else as_source(first_stage)
        self._corpus_passages: CorpusPassages | None = None
        self._warned = WarnOnce()
        if isinstance(self._first_stage_source, Corpus) and not self._own_passages.by_id:
            self._corpus_passages = CorpusPassages(self._first_stage_source, self._build_scorer, self.links)

    def add(self, passages: Iterable[Passage | str]) -> None:
        """Add passages, or replace passages with the same ids. A search over a corpus adds them to the corpus.

        In a corpus, this takes time proportional to the new passages. In memory, all passages are indexed from scratch.

        >>> search = PathSearch(PromptRank(), first_stage=Corpus())
        >>> search.add([Passage("a fox", id="1", links=("2",)), Passage("a river", id="2")])
        >>> search.remove(["2"])
        >>> [item.passage.id for item in search.search("Which fox crossed a river?")]
        ['1']
        """
        if self._corpus_passages is not None:
            self._corpus_passages.corpus.add(as_passages(passages))
            self._corpus_passages.update()
        else:
            passage_by_id = self._own_passages.by_id | by_id(as_passages(passages))
            self._own_passages = InMemoryPassages(list(passage_by_id.values()), self._build_scorer, self.links)

    def remove(self, ids: Iterable[str]) -> None:
        """Remove passages. Unknown ids are ignored."""
        if self._corpus_passages is not None:
            self._corpus_passages.corpus.remove(ids)
        else:
            removed_ids = set(ids)
            remaining = [passage for id_, passage in self._own_passages.by_id.items() if id_ not in removed_ids]
            self._own_passages = InMemoryPassages(remaining, self._build_scorer, self.links)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write the passages, the names by which links are found, and the settings.

        Models, links and retrievers are not written. Pass them to `load` again.

        Raises:
            InvalidInput: A passage or a setting cannot be written as JSON, such as a prompt that is a function; or the
                directory cannot be written.
        """
        folder = FilePath(directory).expanduser()
        saved = {"format": FORMAT, "in_memory": self._corpus_passages is None, "settings": as_json(self.settings)}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if self._corpus_passages is not None:
                self._corpus_passages.corpus.save(folder / PASSAGES)
            else:
                corpus = Corpus()
                corpus.add(self._own_passages.by_id.values())
                corpus.save(folder / PASSAGES)
            with replace_file(folder / SETTINGS) as file:
                file.write(json.dumps(saved, indent=1).encode())
        except (OSError, TypeError) as cause:
            raise InvalidInput(f"The search cannot be written to {str(directory)!r:.200}: {cause!s:.200}.") from cause

    @classmethod
    def load(
        cls, directory: str | os.PathLike[str], prompt_rank: PromptRank | None = None, **options: Any
    ) -> PathSearch:
        """Load a search that `save` wrote.

        `add` and `remove` of a search over a corpus change the passages in the directory.

        Args:
            directory: Directory of the saved search.
            prompt_rank: Ranker that scores the paths. None for `PromptRank` with the embedded model.
            **options: Further arguments of `PathSearch`: `links`, `llm`, `embed` and `settings`, and `first_stage` if
                the search was not over a corpus. None of them is saved, apart from `settings`.

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
        """Rank all passages on scored paths by their best path.

        Args:
            query: The question.
            top_n: Maximum number of passages; None for all.
            on_hop: Callback that receives every hop with its scored paths.

        Returns:
            Passages, best first. `print(result.explain())` shows why each has its rank. The score of a passage is the
            maximum over its paths. The score of a path is the mean log-likelihood of the question after it, plus its
            log-prior divided by the number of tokens in the question. Passages of one path are ordered by how much each
            explains in addition to those before it. `details` describes the best path: `path` (ids of its passages),
            `log_prior`, `tokens` (number of tokens in the question) and `cut_tokens` (number of truncated tokens). With
            an LLM, it also has `missing` (queries that the LLM named), `usage`, and `problems` if a call failed.

        Raises:
            InvalidInput: The query is blank, or `top_n` is below 1.
            LLMFailure: A call failed or its answer has no word, and `on_failure` is to raise an error.
        """
        usage = Usage()
        answering = handlers(self._first_stage_source or self._own_passages, on_hop)
        return run(self.requests(query, top_n, usage=usage), self.llm, answering, usage=usage)

    async def asearch(
        self, query: str, top_n: int | None = None, *, on_hop: OnHop | None = None
    ) -> PathResult[Passage]:
        """Search without blocking the event loop. For the arguments, result and errors see `search`.

        An asynchronous LLM is awaited. `on_hop` runs on the event loop, and everything else on threads.
        """

        async def call_on_hop(hop: Hop) -> None:
            if on_hop is not None:
                on_hop(hop)

        usage, answering = Usage(), {**handlers(self.source), Hop: call_on_hop}
        return await arun(self.requests(query, top_n, usage=usage), self.llm, answering, usage=usage)

    def search_many(self, queries: Sequence[str], top_n: int | None = None) -> list[PathResult[Passage]]:
        """Search for each question, one after the other. Each hop of a question scores all its paths in one pass."""
        return [self.search(query, top_n) for query in queries]

    def search_paths(self, query: str, top_n: int | None = None, *, on_hop: OnHop | None = None) -> PathResult[Path]:
        """Rank the scored paths themselves, shorter ones included. For the arguments and errors see `search`.

        >>> passages = [Passage("a fox", id="1", links=("2",)), Passage("a river", id="2")]
        >>> [best, *_] = PathSearch(PromptRank(), passages).search_paths("Which fox crossed a river?")
        >>> best.passage.ids
        ('1', '2')
        """
        usage = Usage()
        return run(self.path_requests(query, top_n, usage=usage), self.llm, handlers(self.source, on_hop), usage=usage)

    def explain(self, query: str, ranking: Sequence[Ranked[Any]]) -> Explanations:
        """Search again, and explain the ranks of passages or paths in an earlier result.

        `PathResult.explain` explains a result without a new search.

        Args:
            query: The question.
            ranking: Passages or paths that this search returned for the question.

        Raises:
            InvalidInput: The search does not score the path of an entry.
        """
        return replace(self.search_paths(query), ranking=tuple(ranking)).explain()

    @property
    def source(self) -> PassageSource:
        """Source of passages: the first stage, or else the index of `passages`."""
        return self._first_stage_source or self._own_passages

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
            candidates: Passages to start from. None to retrieve them from the first stage.
            scores: Score of each candidate by the first stage, for the `prior` of `PromptRank`. None if only the order
                of the candidates is known.
            fetched: True to fetch every linked passage from the source before the model reads it. The passages of the
                search itself then serve only to find links by their names, and for term statistics. Passages that the
                source does not return are left out.
            missing: Settings with which an LLM is asked what paths lack. None for the settings of the search if it has
                an `llm`, or else for no LLM.
            usage: Usage of the LLM, for the details of the result. The caller updates it.
        """
        check_top_n(top_n)
        scope = yield from self._open_scope(query, candidates, scores, fetched, missing)
        trace = yield from self._search_hops(scope)
        passages = rank_passages(rank_paths(scope, trace, usage), scope.coverage)[:top_n]
        return PathResult(tuple(passages), trace, partial(explain_paths, scope.collection.scorer.prompt_rank, trace))

    def path_requests(
        self, query: str, top_n: int | None = None, *, usage: Usage | None = None, **start: Any
    ) -> Requests[PathResult[Path]]:
        """Return `search_paths` as a generator of requests. For the arguments see `requests`."""
        check_top_n(top_n)
        scope = yield from self._open_scope(query, **start)
        trace = yield from self._search_hops(scope)
        paths = rank_paths(scope, trace, usage)[:top_n]
        return PathResult(tuple(paths), trace, partial(explain_paths, scope.collection.scorer.prompt_rank, trace))

    def _open_scope(
        self,
        query: str,
        candidates: Sequence[Passage] | None = None,
        scores: RetrievalScores | None = None,
        fetched: bool = False,
        missing: PathSettings | None = None,
    ) -> Requests[SearchScope]:
        """Retrieve the F candidates if none are passed, and set up everything that the steps of the search share."""
        check_query(query)
        if candidates is None:
            [retrieved] = yield [RetrievalRequest(query, self.plan.pool)]
            candidates = as_passages(retrieved)[: self.plan.pool]
        candidate_by_id = by_id(candidates)
        collection = self._choose_collection(list(candidate_by_id.values()))
        surfer, alignment_weight = None, 0.0
        if (link_prior := self.plan.link_prior) is not None:
            surfer = RandomSurfer(link_prior, collection.size, find_named_passages(query, collection.titles))
            alignment_weight = link_prior.aligned
        first_stage_prior = None
        if self.prompt_rank.prior is not None or scores is not None:
            weight = self.prompt_rank.settings.prior_weight
            first_stage_prior = FirstStagePrior(self.prompt_rank.prior, candidates, scores, weight)
        if missing is None and self.llm is not None:
            missing = self.settings
        return SearchScope(
            question=query,
            plan=self.plan,
            candidates=tuple(candidate_by_id.values()),
            collection=collection,
            own_passage_by_id={} if fetched else collection.by_id,
            source_passage_by_id=candidate_by_id,
            surfer=surfer,
            first_stage_prior=first_stage_prior,
            coverage=TokenCoverage(collection.scorer.document_model, query, alignment_weight),
            missing=None if missing is None else MissingInformation(missing, query),
            warned=self._warned,
        )

    def _choose_collection(self, candidates: Sequence[Passage]) -> InMemoryPassages | CorpusPassages:
        """Return the corpus, or the search's own passages. If it has neither, return the candidates as a sample."""
        if self._corpus_passages is not None:
            return self._corpus_passages.with_candidates(candidates)
        if self._own_passages.by_id:
            return self._own_passages
        return InMemoryPassages(candidates, self._build_scorer, self.links, is_sample=True)

    def _search_hops(self, scope: SearchScope) -> Requests[PathTrace]:
        """Search hop by hop, as in section 2 of the paper, which names K1, L and H."""
        plan, scorer = self.plan, scope.collection.scorer
        hops: list[Hop] = []
        links: list[FollowedLinks] = []
        candidate_by_ids: dict[tuple[str, ...], CandidatePath] = {}
        # 1. Each candidate of the first stage is a path. `initial_paths` computes its log-prior.
        candidates = initial_paths(scope)
        while True:
            # 2. Score the paths: log P(q | c), the likelihood of the question, plus `log_prior` of each candidate.
            scored = scorer.rank_by_posterior(scope.question, candidates)
            if not hops:
                if scope.first_stage_prior is not None:  # Longer paths inherit this prior in step 5.
                    scored = scope.first_stage_prior.rerank(scored)
                best = [item for item in scored if item.passage.passages[0].titled_text.strip()][: plan.pairs]
            candidate_by_ids |= {candidate.path.ids: candidate for candidate in candidates}
            hops.append(Hop(len(hops) + 1, tuple(scored)))
            yield [hops[-1]]
            # 3. Stop after H hops. If `hops` is None, stop once longer paths have lower posteriors than shorter ones.
            if stop_reason := find_stop_reason(hops, plan.hops, stops_early=plan.stops_early):
                break
            # 4. Prune to the K1 best paths. Follow their links, and those of passages to pair.
            beam = scored[: plan.beams[min(len(hops), len(plan.beams)) - 1]]
            followed_links = yield from follow_links(scope, beam, best if len(hops) == 1 else [])
            links += followed_links
            # 5. Extend each by the L best passages, and its log-prior by that of the step. From the second hop on, the
            #    best passages of the first hop compete with linked passages.
            jumps = [item.passage.passages[0] for item in best] if len(hops) > 1 else []
            candidates = extend_beam(scope, beam, candidate_by_ids, followed_links, jumps)
            # 6. Pair the best passages of the first hop. A pair replaces the same path over links.
            if len(hops) == 1:
                candidates += pair_passages(scope, best, candidate_by_ids, followed_links)
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
            scorer.reads_documents,
            stop_reason,
            tuple(scope.missing.queries) if scope.missing else (),
            tuple(scope.missing.problems) if scope.missing else (),
        )
