"""Path search: a beam search over links, every path scored jointly by PromptRank.

TF-IDF gives F candidates (paths of one passage); the best K1 are extended along their links, the L best links each;
the longer paths are scored; and so on for H hops. Pairs of the best candidates compete with the linked ones, for
questions that compare, and longer paths may go on to the best candidates, for questions that compare what links lead
to. A passage's score is the maximum over all paths that hold it, partial ones too. An LLM, if there is one, may name
what a path still lacks (`drillrank.multihop.missing`).
                                                                 Khalifa et al. (2023), section 2 and Appendix B

The best links are those whose passages explain most of what the path leaves unexplained (`drillrank.multihop.state`)
in the light of the prior; the paper takes those most similar to the question.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path as FilePath
from typing import Any, Protocol, cast

from drillrank.corpus import Corpus
from drillrank.errors import InvalidInput
from drillrank.explanation import Explainable, Explanations
from drillrank.files import open_file, replace_file
from drillrank.likelihood import EmbeddingModel, UnigramModel
from drillrank.likelihood.encoders import as_encoder
from drillrank.llm import LLM, Handlers, LookupRequest, Requests, RetrievalRequest, Usage, arun, run
from drillrank.multihop.link_names import default_links
from drillrank.multihop.links import LinkSource, NamedLinks, Names, bind_links
from drillrank.multihop.missing import MissingInformation
from drillrank.multihop.path_settings import PathSettings
from drillrank.multihop.prior import FirstHopPrior, SharedTitles, find_named_passages, index_titles, list_title_names
from drillrank.multihop.state import CandidatePath, DocumentModel, SearchState, TokenCoverage
from drillrank.passages import (
    Passage,
    Path,
    Ranked,
    Ranking,
    as_passages,
    by_id,
    check_query,
    check_top_n,
    ranked,
    title_match_tokens,
    unique_by_id,
)
from drillrank.rerank.base import RetrievalScores, divisor
from drillrank.rerank.promptrank import PromptRank
from drillrank.settings import Preset, as_json, as_settings, with_preset
from drillrank.vectors import CollectionStatistics, Embed, TfidfIndex, top

FORMAT, PASSAGES, SETTINGS = "drillrank path search 1", "passages.db", "search.json"
NAMES_VERSION = 1  # raised whenever the names that links are found by change


@dataclass(frozen=True, slots=True)
class Hop:
    """A request for which nothing is wanted: the paths of one hop have been scored.

    Attributes:
        number: 1 for single passages.
        paths: The hop's paths with their scores, best first.
    """

    number: int
    paths: tuple[Ranked[Path], ...]


OnHop = Callable[[Hop], object]
RetrieveFunction = Callable[[str, int], Sequence[Passage]]
"""A retriever: from a question and a number to that many passages, best first."""


class PassageSource(Protocol):
    """Where passages come from."""

    def retrieve(self, query: str, n: int, /) -> Sequence[Passage]:
        """At most `n` passages for a query, best first."""
        ...

    def fetch(self, ids: Sequence[str], /) -> Sequence[Passage] | Sequence[tuple[str, Passage]]:
        """The passages with these ids that exist, in any order; with the ids, if the source calls them otherwise."""
        ...


class EmptySource:
    """A source that knows no passage."""

    def retrieve(self, _query: str, _n: int, /) -> Sequence[Passage]:
        """Nothing."""
        return ()

    def fetch(self, _ids: Sequence[str], /) -> Sequence[Passage]:
        """Nothing."""
        return ()


@dataclass(frozen=True)
class _RetrieverSource(EmptySource):
    """A plain retriever function, which knows no passage by its id."""

    first_stage: RetrieveFunction

    def retrieve(self, query: str, n: int, /) -> Sequence[Passage]:
        return self.first_stage(query, n)


def as_source(first_stage: RetrieveFunction | PassageSource) -> PassageSource:
    """The source itself, or one around a plain retriever function.

    Raises:
        InvalidInput: it is neither.

    >>> as_source(lambda query, n: [Passage(query)]).retrieve("who?", 1)[0].text
    'who?'
    """
    if hasattr(first_stage, "retrieve") and hasattr(first_stage, "fetch"):
        return first_stage
    if not callable(first_stage):
        raise InvalidInput(
            f"{first_stage!r:.100} retrieves nothing: pass a function (query, n) -> passages, or an object with "
            "retrieve(query, n) and fetch(ids)."
        )
    return _RetrieverSource(first_stage)


def handlers(source: PassageSource, on_hop: OnHop | None = None) -> Handlers:
    """Who answers a search's requests, for `run` and `arun`.

    Args:
        source: Answers `RetrievalRequest` and `LookupRequest`.
        on_hop: Callback, called with each `Hop`.

    >>> from drillrank.llm import LookupRequest, RetrievalRequest, run
    >>> def twice():
    ...     [first], second = yield [RetrievalRequest("who?", 1), LookupRequest(("a",))]
    ...     return first.text, list(second)
    >>> run(twice(), handlers=handlers(as_source(lambda query, n: [Passage(query)])))
    ('who?', [])
    """
    return {
        RetrievalRequest: lambda request: source.retrieve(request.query, request.n),
        LookupRequest: lambda request: source.fetch(request.ids),
        Hop: on_hop or (lambda _: None),
    }


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
        self._scorer_of = partial(PathScorer, ranker, cascade=self.settings.cascade, meaning=meaning)
        self._collection = InMemoryPassages(as_passages(passages or []), self._scorer_of, self.links)
        self._retriever = None if first_stage is None else as_source(first_stage)
        self._stored: CorpusPassages | None = None
        if isinstance(self._retriever, Corpus) and not self._collection.by_id:
            self._stored = CorpusPassages(self._retriever, self._scorer_of, self.links)

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
            self._collection = InMemoryPassages(list(found.values()), self._scorer_of, self.links)

    def remove(self, ids: Iterable[str]) -> None:
        """Remove passages; ids that are not there are passed over."""
        if self._stored is not None:
            self._stored.corpus.remove(ids)
        else:
            gone = set(ids)
            left = [passage for name, passage in self._collection.by_id.items() if name not in gone]
            self._collection = InMemoryPassages(left, self._scorer_of, self.links)

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
            LLMFailure: A call failed or its answer has no word, and `on_failure` says to raise.
        """
        usage = Usage()
        return run(self.requests(query, top_n, usage=usage), self.llm, handlers(self.source, on_hop), usage=usage)

    async def asearch(self, query: str, top_n: int | None = None, *, on_hop: OnHop | None = None) -> Ranking[Passage]:
        """As `search`, without blocking the event loop: an LLM that can be awaited is, all else runs on threads."""

        async def tell(hop: Hop) -> None:
            if on_hop is not None:
                on_hop(hop)

        usage, answering = Usage(), {**handlers(self.source), Hop: tell}
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
        return run(self.path_requests(query, top_n, usage=usage), self.llm, handlers(self.source, on_hop), usage=usage)

    def explain(self, query: str, ranking: Sequence[Ranked[Any]]) -> Explanations:
        """Why passages or paths stand where they stand; of its own, `ranking.explain()` tells it.

        It searches once more, to know which links lead along the paths.

        Raises:
            InvalidInput: the entries are not of such a search.
        """
        return Explainable(ranking, self.search_paths(query).why).explain()

    @property
    def source(self) -> PassageSource:
        """Where its passages come from: the first stage, or its own index."""
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
    ) -> Requests[Ranking[Passage]]:
        """`search` as a generator of requests, for `drillrank.llm.run`.

        Args:
            query: The question.
            top_n: How many passages to return; None returns all.
            candidates: Take the place of what the first stage finds.
            scores: Theirs, for a prior that counts it.
            fetched: Of own passages only titles, addresses and links are used: each is fetched from the source before
                it is read, and what the source does not bring is not there.
            missing: How an LLM is asked for what paths lack; None asks one only if the search has an `llm`.
            usage: Where the caller counts its calls.
        """
        check_top_n(top_n)
        paths = yield from self.path_requests(
            query, None, candidates=candidates, scores=scores, fetched=fetched, missing=missing, usage=usage
        )
        state = cast("SearchState", paths.why)
        return Explainable(state.ranked_passages(paths)[:top_n], state)

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
    ) -> Requests[Ranking[Path]]:
        """`search_paths` as a generator of requests; further arguments as of `requests`."""
        check_top_n(top_n)
        check_query(query)
        settings, plan = self.settings, self.plan
        if candidates is None:
            [candidates] = yield [RetrievalRequest(query, plan.pool)]
            candidates = as_passages(candidates)[: plan.pool]
        first = by_id(candidates)
        collection: InMemoryPassages | CorpusPassages = self._collection
        if self._stored is not None:
            collection = self._stored.linking(list(first.values()))
        elif not collection.by_id:
            collection = InMemoryPassages(list(first.values()), self._scorer_of, self.links)
        first_hop = FirstHopPrior(self.prompt_rank.prior, candidates, scores, self.prompt_rank.settings.prior_weight)
        prior, scorer, surfer = plan.link_prior, collection.scorer, None
        if prior is not None:
            surfer = prior.build_surfer(collection.size, find_named_passages(query, collection.titles))
        state = SearchState(
            query,
            scorer.prompt_rank,
            collection.links,
            dict(first),
            {} if fetched else collection.by_id,
            surfer,
            partial(collection.namesakes, query),
            TokenCoverage(scorer.document_model, query, prior.aligned if prior else 0.0),
            scorer.reads_documents,
            collection.similarities(query) if plan.prune == "tfidf" else None,
        )
        missing_settings = missing or (settings if self.llm is not None else None)
        lacks = MissingInformation(missing_settings, query) if missing_settings else None
        pending = state.starts(first.values())
        found: list[Ranked[Path]] = []
        best: list[Ranked[Path]] = []
        for number in range(1, plan.hops + 1):
            frontier = scorer.ranked(query, pending)
            if number == 1:
                frontier = first_hop.rerank(frontier)
                best = [item for item in frontier if item.passage.passages[0].titled_text.strip()][: plan.pairs]
            shorter, found = found, found + frontier
            yield [Hop(number, tuple(frontier))]
            if number == plan.hops or not frontier or (plan.stops_early and should_stop(frontier, shorter)):
                break
            beam = plan.beam(number)
            beam_paths = [item.passage for item in frontier[:beam]]
            followed = {path.ids for path in beam_paths}
            paired = [item.passage for item in best if number == 1 and item.passage.ids not in followed]
            following = (yield from state.follow([*beam_paths, *paired], len(beam_paths)))[: len(beam_paths)]
            lacking = (yield from lacks.find_passages(beam_paths[0], plan.branch)) if lacks else ()
            state.name(beam_paths, lacking)
            beside = [*lacking, *(item.passage.passages[0] for item in best if number > 1)]
            pending = state.extended(frontier[:beam], [[*passages, *beside] for passages in following], plan.branch)
            if number == 1:
                pending += state.pairs(best)
            if not pending:
                break
            pending = list({one.path.ids: one for one in pending}.values())  # a pair may be linked, too
        ordered = merge_hops(found, first_hop.has_prior)[:top_n]
        if lacks:
            details = lacks.details() | ({"usage": usage.as_metadata()} if usage else {})
            for item in ordered:
                item.details |= details
        return Explainable(ordered, state)


class InMemoryPassages(EmptySource):
    """Passages in memory with their index, titles and links, and a scorer that knows their statistics."""

    def __init__(
        self,
        passages: Sequence[Passage],
        scorer_of: Callable[[Sequence[str] | CollectionStatistics], PathScorer],
        links: LinkSource | Sequence[LinkSource],
    ) -> None:
        self.by_id = unique_by_id(passages)
        self._texts = [passage.titled_text for passage in passages]
        self.scorer = scorer_of(self._texts)
        self.size = len(passages)
        self.titles: Names = index_titles(passages)
        self.links = bind_links(links, passages)
        self._namesakes = SharedTitles(passages)

    def namesakes(self, query: str, passages: Iterable[Passage]) -> dict[str, float]:
        """How much worse than a namesake's the titles of passages fit the question, of those that do."""
        return self._namesakes.title_penalties(query, passages)

    def retrieve(self, query: str, n: int, /) -> list[Passage]:
        """The passages most similar to a query, or after which it is likeliest."""
        passages = list(self.by_id.values())
        if self.scorer.document_model.reads_meaning:
            scores = self.scorer.document_model.document_log_probs(query, self._texts).sum(axis=1)
        else:
            scores = self._index.scores(query)
        return [passages[i] for i in top(scores, n)]

    def similarities(self, query: str) -> dict[str, float]:
        """Of each text to a question, by TF-IDF."""
        return dict(zip(self._texts, self._index.scores(query).tolist(), strict=True))

    @cached_property
    def _index(self) -> TfidfIndex:
        """Made when the collection is first searched itself, not for the candidates of a first stage."""
        return TfidfIndex(self._texts, language=self.scorer.language)


class CorpusPassages:
    """As `InMemoryPassages`, of a corpus: what is known of passages is read when a question wants it."""

    def __init__(
        self,
        corpus: Corpus,
        scorer_of: Callable[[Sequence[str] | CollectionStatistics], PathScorer],
        links: LinkSource | Sequence[LinkSource],
    ) -> None:
        self.corpus, self._scorer_of, self._given_links = corpus, scorer_of, links
        self.by_id: dict[str, Passage] = {}
        self.titles = corpus.names(f"titles {NAMES_VERSION}", list_title_names)
        self.version: tuple[int, int] | None = None
        self.links = bind_links(links, [], self._names)
        self.linking([])

    def linking(self, candidates: Sequence[Passage]) -> CorpusPassages:
        """The corpus as it is now; links that must know passages in memory are bound to these."""
        view = copy(self)
        view.links = bind_links(self._given_links, candidates, self._names)
        if (version := self.corpus.version()) != self.version:
            self.scorer = self._scorer_of(self.corpus.statistics())
            self.size, self.version = len(self.corpus), version
            view.scorer, view.size = self.scorer, self.size
        return view

    def update(self) -> None:
        """Keep the names of what is new."""
        self.titles.update()
        bind_links(self._given_links, [], lambda links: self._names(links, update=True))

    def namesakes(self, query: str, passages: Iterable[Passage]) -> dict[str, float]:
        """As of `InMemoryPassages`."""
        titles = {" ".join(title) for passage in passages if (title := title_match_tokens(passage))}
        ids = [id_ for named in self.titles.look_up(titles).values() for id_ in named]
        return SharedTitles(self.corpus.fetch(ids)).title_penalties(query, passages)

    def similarities(self, _query: str) -> dict[str, float]:
        """Nothing: the corpus knows no TF-IDF."""
        raise InvalidInput('prune="tfidf" needs passages in memory: a corpus is searched by BM25.')

    def _names(self, links: NamedLinks, *, update: bool = False) -> Names:
        names = self.corpus.names(f"{links!r} {NAMES_VERSION}", links.list_names)
        if update:
            names.update()
        return names


def add_embedding_model(prompt_rank: PromptRank, embed: Embed | None) -> tuple[PromptRank, EmbeddingModel | None]:
    """The ranker, and what reads meaning; a unigram model is part of that, and reads it, too.

    Raises:
        InvalidInput: the model embeds texts by itself, or `embed` is no function.
    """
    if embed is None:
        return prompt_rank, None
    model = prompt_rank.language_model
    if isinstance(model, EmbeddingModel):
        raise InvalidInput(f"The model {model.spec!r:.200} embeds texts by itself: leave embed out.")
    if not isinstance(model, UnigramModel):
        return prompt_rank, EmbeddingModel(embed)
    meaning = EmbeddingModel(embed, model)
    return prompt_rank.with_model(meaning), meaning


class PathScorer:
    """Scores paths by their posterior.

    Args:
        prompt_rank: The likelihood of the question after a path.
        texts: The collection, on which a copy of a lexical model is fitted that has not been fitted; or its statistics.
        cascade: How many paths of each call are scored by the main model, that of `prompt_rank`; a pruning model, the
            embedded unigram model, chooses them. None for all. The others follow in the order of the pruning model:
            after the worst of the chosen ones, with the pruning model's distances, and counted in the tokens of the
            main model.
        meaning: Says what each passage explains where the main model is no document model; None lets the embedded
            unigram model say it.
    """

    def __init__(
        self,
        prompt_rank: PromptRank,
        texts: Sequence[str] | CollectionStatistics,
        cascade: int | None = None,
        meaning: EmbeddingModel | None = None,
    ) -> None:
        self.prompt_rank = prompt_rank.with_model(prompt_rank.language_model.fitted(texts)) if texts else prompt_rank
        model = self.prompt_rank.language_model
        self.language = model.language
        self.document_model: DocumentModel
        self.reads_documents = isinstance(model, DocumentModel) and bool(texts)
        if isinstance(model, DocumentModel) and texts:
            self.document_model = model
        else:
            self.document_model = meaning.fitted(texts) if meaning else UnigramModel(language=model.language).fit(texts)
        self._cascade = (
            None if cascade is None else (PromptRank(UnigramModel(language=model.language).fit(texts)), cascade)
        )

    def ranked(self, query: str, paths: Sequence[CandidatePath]) -> list[Ranked[Path]]:
        """The paths, best first; ties keep the input order."""
        pruning, most = self._cascade or (self.prompt_rank, len(paths))
        if len(paths) <= most:
            return _posteriors(self.prompt_rank, query, paths)
        by_pruning = _posteriors(pruning, query, paths)
        chosen, pruned = by_pruning[:most], by_pruning[most:]
        first = sorted(item.details["position"] for item in chosen)
        by_model = _posteriors(self.prompt_rank, query, [paths[position] for position in first])
        fall = by_model[-1].score - chosen[-1].score
        for item in pruned:
            item.score = min(item.score + fall, by_model[-1].score)  # rounding must not lift it
            item.details |= {
                "model": "unigram",
                **{name: by_model[-1].details[name] for name in ("tokens", "reduce", "nothing_matched")},
            }
        return by_model + pruned


def _posteriors(prompt_rank: PromptRank, query: str, paths: Sequence[CandidatePath]) -> list[Ranked[Path]]:
    scored = prompt_rank.score_paths(query, [path for path, _ in paths])
    scores, details = [], []
    for (_, log_prior), (score, detail) in zip(paths, scored, strict=True):
        scores.append(score + log_prior / divisor(detail))
        details.append({**detail, "log_prior": log_prior})
    return ranked([path for path, _ in paths], scores, details)


def should_stop(frontier: Sequence[Ranked[Path]], shorter: Sequence[Ranked[Path]]) -> bool:
    """Whether the best path of a hop is less likely than the best of the hops before it.

    >>> a, b = Path((Passage("a"),)), Path((Passage("a"), Passage("b")))
    >>> shorter = [Ranked(a, -2.0, 1, {"tokens": 4})]
    >>> [should_stop([Ranked(b, score, 1, {"tokens": 4})], shorter) for score in (-1.9, -2.1)]
    [False, True]
    """
    of_shorter, of_longer = ([item.score * divisor(item.details) for item in paths] for paths in (shorter, frontier))
    return max(of_longer) < max(of_shorter, default=-math.inf)


def merge_hops(found: Sequence[Ranked[Path]], keep_first: bool) -> list[Ranked[Path]]:
    """The paths of all hops as one ranking; where none holds a word of the question, all count alike.

    That is, unless the first stage tells those of the first hop apart (`keep_first`): longer ones come last then.
    """
    nothing = all(item.details["nothing_matched"] for item in found)
    lowest = min((item.score for item in found), default=0.0)
    levels = [
        lowest if nothing and not (keep_first and len(item.passage.passages) == 1) else item.score for item in found
    ]
    details = [item.details | {"nothing_matched": nothing} for item in found]
    ordered = ranked([item.passage for item in found], levels, details)
    for item in ordered:
        del item.details["position"]  # the place among the paths of all hops says nothing
    return ordered
