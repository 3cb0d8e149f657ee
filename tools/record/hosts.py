"""The components of both hosts, over the same documents, stores, filters and LLMs: what differs is in `Host`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from . import drilldown, rerank
from .building import build, imported
from .data import candidates, papers, pool, read
from .explaining import named
from .neural import RELEVANCE, loaded
from .paths import MISSING_PROMPT, prior
from .taking import Recorder, ScriptedLLM, embed
from .views import view_answers

RERANKER: dict[str, Any] = {"score": "log_likelihood", "score_threshold": None, "explain": False, "top_n": None}
PATHS: dict[str, Any] = rerank.PROMPTRANK | {
    "hops": None,
    "beam": None,
    "branch": None,
    "pairs": 6,
    "cascade": None,
    "embed": None,
    "links_key": "links",
    "links": ("metadata", "hyperlinks", "titles"),
    "demonstrations": (),
    "title_key": "title",
    "explain": False,
}
SPLITTER: dict[str, Any] = {
    "views": ("raw", "keywords", "summary"),
    "on_failure": "continue",
    "workers": 1,
    "chunking": "section",
    "max_tokens": None,
    "min_tokens": None,
    "tokens": None,
    "context": (),
    "summarizer": None,
    "separator": " > ",
    "namespace": None,
    "namespace_key": None,
    "join_pages": True,
    "llm": None,
}
VIEWS: dict[str, Any] = {"retriever": "bm25", "weights": None, "top_n": 5, "expand": None, "explain": False}
DRILL: dict[str, Any] = drilldown.D3 | {"explain": False, "top_n": None, "separator": " > ", "join_pages": True}


@dataclass(frozen=True)
class Text:
    """A record of either host."""

    id: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    score: float | None = None


class Host(ABC):
    """What the calls need of a host.

    Attributes:
        package: Of the adapter.
        given: What the argument for records is called in retrievers of views and paths.
        filters: What the argument for filters is called.
        splitter: Name of the component that cuts documents.
        answerer: Name of the component of self-ask.
    """

    package: str
    given: str
    filters: str
    splitter: str
    answerer: str

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def component(self, name: str, *arguments: Any, **pinned: Any) -> Any:
        """One of the adapter's."""
        with self.recorder.before():
            return build(imported(f"{self.package}:{name}"), *arguments, **pinned)

    @property
    @abstractmethod
    def reads(self) -> dict[str, Any]:
        """What a reranker of passages reads beside the text."""

    @property
    @abstractmethod
    def reads_of_paths(self) -> dict[str, Any]:
        """What a component of paths reads beside the text."""

    @abstractmethod
    def document(self, text: Text) -> Any:
        """A whole document."""

    @abstractmethod
    def record(self, text: Text) -> Any:
        """What rerankers are given."""

    @abstractmethod
    def records(self, texts: Sequence[Text]) -> list[Any]:
        """What retrievers are given."""

    @abstractmethod
    def store(self, records: Sequence[Any]) -> Any:
        """A vector store with an embedding that knows words."""

    @abstractmethod
    def retriever(self, store: Any, k: int, view: str | None = None) -> Any:
        """The host's own, over a store."""

    @abstractmethod
    def by_key(self, records: Sequence[Any]) -> Any:
        """A store of records by id."""

    @abstractmethod
    def llm(self, script: ScriptedLLM) -> Any:
        """The host's LLM."""

    @abstractmethod
    def of_tenant(self, tenant: str) -> Any:
        """The host's filters."""

    @abstractmethod
    def reranked(self, component: Any, query: str, records: Sequence[Any], *, awaited: bool = False) -> Any:
        """What a reranker returns."""

    @abstractmethod
    def found(self, component: Any, query: str, *, awaited: bool = False) -> Any:
        """What a retriever returns."""

    @abstractmethod
    def split(self, component: Any, documents: Sequence[Any], *, awaited: bool = False) -> list[Any]:
        """What cuts documents makes of them."""

    @abstractmethod
    def answered(self, component: Any, query: str, *, awaited: bool = False) -> Any:
        """What self-ask returns."""

    def take(self, name: str, one: str, call: Callable[..., Any], *, neural: bool = False, both: bool = True) -> None:
        """A call, and the same one awaited."""
        self.recorder.take(f"{name}/{one}", lambda: call(awaited=False), neural=neural)
        if both:
            self.recorder.take(f"{name}, awaited/{one}", lambda: call(awaited=True), neural=neural)


def explanation(told: Any) -> Any:
    """Of one result, as the host's record or event has it: names and values."""
    return None if told is None else {"score": told["score"], "summands": list(named(told))}


# Rerankers


def rerankers(host: Host) -> None:
    """All five, with every scale, threshold and prior."""
    asked = host.recorder.some(read("rerank/nq"), 20)
    fitted = rerank.fitted("nq")
    variants: dict[str, dict[str, Any]] = {
        "default": {"model": fitted},
        "unfitted": {"model": "unigram"},
        "top three": {"model": fitted, "top_n": 3},
        "prior": {"model": fitted, "prior": "retrieval"},
        "prior of cosines": {"model": fitted, "prior": "cosine", "prior_weight": 0.5},
        "probability": {"model": fitted, "score": "probability"},
        "softmax": {"model": fitted, "score": "softmax", "top_n": 4},
        "threshold": {"model": fitted, "score": "softmax", "score_threshold": 0.1},
        "explained": {"model": fitted, "explain": True, "top_n": 3},
        "20 tokens": {"model": fitted, "max_passage_tokens": 20},
    }
    for name, settings in variants.items():
        pinned = RERANKER | host.reads | settings
        upr = host.component("UPRRerank", **rerank.UPR | {"preset": None} | pinned)
        brmgr = host.component("BRMGRRerank", **rerank.BRMGR | {"origin_key": "drillrank_origin"} | pinned)
        for item in asked if name == "default" else asked[:6]:
            found = [host.record(text) for text in passages_of(item)]
            host.take(f"UPRRerank, {name}", item["id"], lambda awaited: host.reranked(
                upr, item["question"], found, awaited=awaited
            ), both=item is asked[0])  # fmt: skip
            mixed = [*found, *map(host.record, generated_of(item))]
            host.take(f"BRMGRRerank, {name}", item["id"], lambda awaited: host.reranked(
                brmgr, item["question"], mixed, awaited=awaited
            ), both=item is asked[0])  # fmt: skip
    _relevance(host, asked)
    _path_reranker(host)


def passages_of(item: dict[str, Any]) -> list[Text]:
    """What BM25 found, with scores."""
    return [
        Text(passage.id, passage.text, {"title": passage.title, "page": at}, round(0.9 - 0.04 * at, 3))
        for at, passage in enumerate(candidates("nq", item, 7))
    ]


def generated_of(item: dict[str, Any]) -> list[Text]:
    """What an LLM wrote."""
    return [
        Text(f"written {at}", text, {"drillrank_origin": "generated"})
        for at, text in enumerate(rerank.written(item))
        if text
    ]


def _relevance(host: Host, asked: Sequence[dict[str, Any]]) -> None:
    model = loaded("t5")
    rankers = {
        "RelevanceRerank": host.component(
            "RelevanceRerank", model=model, **RELEVANCE | RERANKER | host.reads | {"preset": "monot5"}
        ),
        "MonoT5Rerank": host.component(
            "MonoT5Rerank", model=model, max_passage_tokens=None, **RERANKER | host.reads | {"score": "probability"}
        ),
        "UPRRerank, t5": host.component(
            "UPRRerank", model=model, **rerank.UPR | RERANKER | host.reads | {"preset": None, "explain": True}
        ),
    }
    for name, ranker in rankers.items():
        for item in asked[:3]:
            found = [host.record(text) for text in passages_of(item)]
            host.take(name, item["id"], lambda awaited: host.reranked(
                ranker, item["question"], found, awaited=awaited
            ), neural=True, both=item is asked[0])  # fmt: skip


@lru_cache(maxsize=1)
def linked() -> list[Text]:
    """Passages of some questions, with titles, addresses and links among themselves."""
    items = read("multihop/hotpotqa")[:25]
    wanted = {id_ for item in items for id_ in item["candidates"]}
    kept = [passage for passage in pool("hotpotqa") if passage.id in wanted]
    return [
        Text(
            passage.id,
            f"{passage.text} See [{kept[at - 3].title}](/{kept[at - 3].id})." if at % 5 == 0 else passage.text,
            {
                "title": passage.title,
                "links": ", ".join(link for link in passage.links if link in wanted),
                "source": f"/{passage.id}",
                "tenant": "ab"[at % 7 == 0],
                "level": at % 4,
            },
            round(0.9 - at * 0.001, 4),
        )
        for at, passage in enumerate(kept)
    ]


def _path_reranker(host: Host) -> None:
    by_id = {text.id: text for text in linked()}
    store = host.store(host.records(linked()))
    variants: dict[str, dict[str, Any]] = {
        "default": {},
        "metadata": {"links": ("metadata",), "hops": 2},
        "names, prior": {"links": ("titles", "names"), "prior": "retrieval"},
        "docstore": {"docstore": host.by_key(host.records(linked()))},
        "retriever": {"retriever": host.retriever(store, 5), "hops": 2},
        "filtered": {"docstore": host.by_key(host.records(linked())), host.filters: host.of_tenant("a")},
        "explained": {"explain": True, "top_n": 4},
        "as in the paper": {"hops": 2, "beam": 5, "branch": 3, "pairs": 0, "link_prior": None, "ensemble": "mean"},
    }
    for name, settings in variants.items():
        pinned = PATHS | {"link_prior": prior()} | RERANKER | host.reads | host.reads_of_paths | settings
        ranker = host.component("PromptRankRerank", model="unigram", **pinned)
        for at, item in enumerate(host.recorder.some(read("multihop/hotpotqa"), 6)):
            found = [host.record(by_id[id_]) for id_ in item["candidates"]]
            host.take(f"PromptRankRerank, {name}", item["id"], lambda awaited: host.reranked(
                ranker, item["question"], found, awaited=awaited
            ), both=at == 0)  # fmt: skip


# Retrievers


def retrievers(host: Host) -> None:
    """Views, paths, generated passages, drilling down, self-ask: in memory and over stores, filtered or not."""
    _views(host)
    _paths(host)
    _generated(host)
    _drills(host)
    _self_ask(host)


def documents() -> list[Text]:
    """Papers and a manual of two tenants, and one that is three pages of a file."""
    texts = [
        Text(paper["id"], paper["markdown"], {"title": paper["title"], "source": f"{paper['id']}.md"})
        for paper in papers()[:4]
    ]
    texts += [Text("manual", drilldown.MANUAL, {"title": "Manual", "source": "manual.md"})]
    texts += [Text("flat", "A note without headings about the Danube. " * 3 + "\n\nAnd Vienna.", {"source": "n.txt"})]
    marked = [
        Text(one.id, one.text, {**one.metadata, "tenant": "ab"[at % 3 == 0], "level": at})
        for at, one in enumerate(texts)
    ]
    pages = drilldown.MANUAL.split("\n## ")
    file = {
        "file_path": "/m/manual.pdf",
        "file_name": "manual.pdf",
        "source": "/m/manual.pdf",
        "tenant": "a",
        "level": 1,
    }
    return marked + [
        Text(f"page {number}", page, {**file, "page": number, "page_label": str(number + 1)})
        for number, page in enumerate(pages)
    ]


def questions(host: Host) -> list[str]:
    """About the documents."""
    asked = [one["question"] for paper in papers()[:3] for one in paper["questions"][:2]]
    return list(host.recorder.some([*asked, "How many hours does the battery last?", "Who lives on the Danube?"], 8))


def _views(host: Host) -> None:
    texts = documents()
    given = list(map(host.document, texts))
    splits: dict[str, dict[str, Any]] = {
        "default": {},
        "namespace": {"namespace_key": "tenant", "separator": " / "},
        "pages apart": {"join_pages": False, "max_tokens": 150},
        "paragraphs": {"chunking": "paragraph", "context": ("headings",), "views": ("raw", "summary")},
        "an llm": {"llm": host.llm(ScriptedLLM(host.recorder, view_answers)), "views": ("raw", "keywords")},
    }
    for name, settings in splits.items():

        def cut(awaited: bool) -> Any:
            return host.split(host.component(host.splitter, **SPLITTER | settings), given, awaited=awaited)

        host.take(f"{host.splitter}", name, cut)
    made = host.split(host.component(host.splitter, **SPLITTER), given)
    store = host.store(made)
    by_view = {view: host.retriever(store, 8, view) for view in ("raw", "keywords", "summary")}
    foreign = host.records([Text(f"f{at}", text.text[:400], dict(text.metadata)) for at, text in enumerate(texts)])
    sources: dict[str, dict[str, Any]] = {
        "memory": {host.given: made},
        "memory, tfidf, weights": {host.given: made, "retriever": "tfidf", "weights": {"raw": 1.0, "summary": 0.5}},
        "memory, neighbours": {host.given: made, "expand": "neighbours", "top_n": 2},
        "memory, parents": {host.given: made, "expand": "parent", "top_n": 3},
        "memory, filtered": {host.given: made, host.filters: host.of_tenant("a")},
        "memory, foreign": {host.given: foreign},
        "memory, explained": {host.given: made, "explain": True},
        "store": {"source": store},
        "store, filtered": {"source": store, host.filters: host.of_tenant("b"), "top_n": 3},
        "store, neighbours": {"source": store, "expand": "neighbours", "top_n": 2},
        "store, explained": {"source": store, "explain": True, "top_n": 2},
        "one retriever": {"source": host.retriever(store, 12)},
        "a retriever for each view": {"source": by_view, host.given: made},
    }
    for name, settings in sources.items():
        retriever = host.component("MultiViewRetriever", **VIEWS | settings)
        for number, question in enumerate(questions(host)):
            host.take(f"MultiViewRetriever, {name}", str(number), lambda awaited: host.found(
                retriever, question, awaited=awaited
            ), both=number == 0)  # fmt: skip


def _paths(host: Host) -> None:
    records = host.records(linked())
    store = host.store(records)
    found = host.retriever(store, 30)
    llm = host.llm(ScriptedLLM(host.recorder, lambda prompt: prompt.partition("\n\n")[2][:40]))
    variants: dict[str, dict[str, Any]] = {
        "given": {host.given: records},
        "store": {},
        "docstore": {"docstore": host.by_key(records), host.given: records[:40]},
        "filtered": {host.given: records, host.filters: host.of_tenant("a")},
        "names, second retrieval": {host.given: records, "links": ("titles", "names", "retrieval"), "hops": 2},
        "an llm": {host.given: records, "llm": llm, "hops": 2},
        "prior, explained": {host.given: records, "prior": "retrieval", "explain": True},
        "all": {host.given: records, "top_n": None, "hops": 1},
    }
    for name, settings in variants.items():
        more = {"on_failure": "continue", "missing_prompt": MISSING_PROMPT, "llm": None, "top_n": 5}
        pinned = PATHS | {"link_prior": prior()} | more | host.reads_of_paths | settings
        retriever = host.component("PromptRankRetriever", retriever=found, model="unigram", **pinned)
        for at, item in enumerate(host.recorder.some(read("multihop/hotpotqa"), 6)):
            host.take(f"PromptRankRetriever, {name}", item["id"], lambda awaited: host.found(
                retriever, item["question"], awaited=awaited
            ), both=at == 0)  # fmt: skip


def _generated(host: Host) -> None:
    store = host.store(host.records(linked()))
    scripts: dict[str, Sequence[Any]] = {
        "answers": ["It was a band from Ohio.", "The film was made in 1994 by Ada Holm.", "Nobody knows."],
        "faults": ["", RuntimeError("down"), "<think>hm</think>It was made in 1994."],
    }
    variants: dict[str, dict[str, Any]] = {
        "default": {},
        "two, prior": {"n_generated": 2, "prior": "retrieval", "top_n": 4},
        "guard, filtered": {"guard": True, host.filters: host.of_tenant("a")},
        "explained": {"explain": True, "first": "retrieved", "generated_share": 0.4},
    }
    more = {
        "n_generated": 3,
        "on_failure": "continue",
        "workers": 1,
        "explain": False,
        "top_n": None,
        "origin_key": "drillrank_origin",
        "prompts": imported("drillrank.prompts:GENREAD_PROMPTS"),
    }
    for name, settings in variants.items():
        for kind, script in scripts.items():
            for at, item in enumerate(host.recorder.some(read("multihop/hotpotqa"), 4)):

                def retrieved(awaited: bool) -> Any:
                    llm = host.llm(ScriptedLLM(host.recorder, script))
                    pinned = rerank.BRMGR | more | settings
                    return host.found(
                        host.component(
                            "BRMGRRetriever", retriever=host.retriever(store, 6), llm=llm, model="unigram", **pinned
                        ),
                        item["question"],
                        awaited=awaited,
                    )

                host.take(f"BRMGRRetriever, {name}, {kind}", item["id"], retrieved, both=at == 0)


def _drills(host: Host) -> None:
    texts = documents()
    given = list(map(host.document, texts))
    made = host.split(host.component(host.splitter, **SPLITTER), given)
    store = host.store(made)
    foreign = host.store(
        host.records([Text(f"f{at}", one.text[:900], dict(one.metadata)) for at, one in enumerate(texts)])
    )
    scripts = {
        name: host.llm(ScriptedLLM(host.recorder, list(drilldown.ANSWERS[name]))) for name in ("numbers", "list")
    }
    variants: dict[str, dict[str, Any]] = {
        "documents": {"documents": given},
        "documents, five": {"documents": given, "top_n": 5},
        "pages apart": {"documents": given, "join_pages": False, "top_n": 3},
        "sections": {"documents": made, "top_n": 4},
        "filtered": {"documents": given, host.filters: host.of_tenant("a"), "top_n": 4},
        "embed": {"documents": given, "embed": embed},
        "explained": {"documents": given, "explain": True, "top_n": 3},
        "store": {"source": store},
        "store, filtered": {"source": store, host.filters: host.of_tenant("a"), "top_n": 4},
        "retriever": {"source": host.retriever(store, 6), "top_n": 3},
        "documents behind a store": {"source": foreign, "documents": given, "top_n": 3},
        "foreign store": {"source": foreign, "top_n": 3},
        "numbers": {"documents": given, "llm": scripts["numbers"], "sections_by": "ids"},
        "list": {"source": store, "llm": scripts["list"], "on_empty": "likelihood", "explain": True},
    }
    for name, settings in variants.items():
        retriever = host.component("D3Retriever", model="unigram", **DRILL | {"llm": None} | settings)
        for number, question in enumerate(questions(host)):
            host.take(f"D3Retriever, {name}", str(number), lambda awaited: host.found(
                retriever, question, awaited=awaited
            ), both=number == 0 and "llm" not in settings)  # fmt: skip


def _self_ask(host: Host) -> None:
    prompts = imported("drillrank.prompts:SELF_ASK_PROMPT"), imported("drillrank.prompts:ANSWER_PROMPT")
    pinned = drilldown.SELF_ASK | {"prompt": prompts[0], "answer_prompt": prompts[1]}
    inner = host.component(
        "D3Retriever", documents=list(map(host.document, documents())), model="unigram", **DRILL | {"top_n": 2}
    )
    for name, script in drilldown.SCRIPTS.items():
        for kind, more in {
            "default": {},
            "filtered": {host.filters: host.of_tenant("a")},
            "short": {"max_steps": 1, "max_prompt_tokens": 500},
        }.items():

            def answered(awaited: bool) -> Any:
                llm = host.llm(ScriptedLLM(host.recorder, script))
                engine = host.component(host.answerer, retriever=inner, llm=llm, **pinned | more)
                return host.answered(engine, "How long does the battery last?", awaited=awaited)

            host.take(f"{host.answerer}, {kind}", name, answered)
