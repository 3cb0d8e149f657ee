"""Why results stand where they stand: the summands of each score, and the text that shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from . import drilldown, paths, rerank
from .building import build, imported
from .data import candidates, cosines, papers, read
from .neural import RELEVANCE, loaded
from .taking import Recorder, ScriptedLLM
from .views import CHUNKER


def explanations(recorder: Recorder) -> None:
    """Named summands and what they add up to."""
    for name, ranking, neural in _rankings(recorder):
        recorder.take(name, lambda: summands(ranking().explain()), neural=neural)


def texts(recorder: Recorder) -> None:
    """As it is printed, line by line, and how much HTML and SVG there is."""
    for name, ranking, neural in _rankings(recorder):
        if not neural:
            recorder.take(name, lambda: str(ranking().explain()).splitlines())
            recorder.take(f"{name}, pages", lambda: _pages(ranking().explain()))


def _pages(why: Any) -> dict[str, str]:
    return {"html": why._repr_html_(), "svg": why.svg()}


def summands(why: Any) -> Any:
    """Entries as ids, named values and their sum, whichever classes hold them; and the tree of a drill-down."""
    told = why.to_dict()
    return {
        "entries": [
            {
                "rank": entry["rank"],
                "score": entry["score"],
                "total": one.total,
                "name": entry["name"],
                "summands": list(named(entry)),
                "per": entry["per"],
            }
            for one, entry in zip(why, told["entries"], strict=True)
        ],
        "tree": [
            [
                node["kind"],
                node["depth"],
                node["name"],
                node.get("fate", node.get("outcome")),
                node["score"],
                node["id"],
            ]
            for node in told.get("tree", ())
        ],
    }


def named(entry: dict[str, Any]) -> Iterator[list[Any]]:
    """Each summand of an entry as its name and value, whether terms hold them or, as at first, lists of each kind."""
    terms = {term["name"]: term for term in entry.get("terms", ())}
    nothing, gains, path = (
        terms.pop(name, {}).get("terms", ()) for name in ("question after nothing", "gains", "path")
    )
    for before, gain in zip(nothing, gains, strict=True):
        yield [gain["name"], gain["value"] + before["value"], gain["value"]]
    for token in entry.get("tokens", ()):
        yield [token["token"], token["gain"] + token["nothing"], token["gain"]]
    for step in path:
        yield [f"{step['text']}: {step['name']}", step["value"]]
    for step in entry.get("steps", ()):
        yield [f"{step['by']}: {step['document']}", step["log_prior"]]
    for part in (*entry.get("parts", ()), *terms.values()):
        if part["name"] != "log-odds":  # of P(yes) and P(no), which are told otherwise now
            yield [part["name"], part["value"]]
    for view in entry.get("views", ()):
        yield [f"{view['view']} view", view["value"]]


def _rankings(recorder: Recorder) -> Iterator[tuple[str, Callable[[], Any], bool]]:
    """Rankings of every component, each with a name."""
    asked = recorder.some(read("rerank/nq"), 15)
    settings = {"default": {}, "prior": {"prior": "retrieval"}}
    for state in ("unfitted", "fitted"):
        model = rerank.fitted("nq") if state == "fitted" else "unigram"
        for name, more in settings.items():
            upr = build(imported("drillrank:UPR"), model, **rerank.UPR | {"preset": None} | more)
            brmgr = build(imported("drillrank:BRMGR"), model, **rerank.BRMGR | more)
            for item in asked:
                scores = cosines(6) if more else None
                found = candidates("nq", item, 6)
                yield (
                    f"UPR, {name}, {state}/{item['id']}",
                    lambda: upr.rank(item["question"], found, 3, scores=scores),
                    False,
                )
                yield f"BRMGR, {name}, {state}/{item['id']}", lambda: brmgr.rank(
                    item["question"], found, rerank.written(item), 5, scores=scores
                ), False  # fmt: skip
    ranker = build(imported("drillrank:PromptRank"), "unigram", **rerank.PROMPTRANK | {"demonstrations": ()})
    for dataset in ("hotpotqa", "musique"):
        for item in recorder.some(read(f"multihop/{dataset}"), 6):
            yield f"PromptRank, {dataset}/{item['id']}", lambda: ranker.rank(
                item["question"], rerank.paths_of(item, dataset), 5
            ), False  # fmt: skip
        for name, more in (
            ("default", {}),
            ("no prior", {"link_prior": None}),
            ("prior of the first stage", {"prior": "retrieval"}),
        ):
            search = paths.search(dataset, **more)
            for item in recorder.some(read(f"multihop/{dataset}"), 6):
                yield f"PathSearch, {name}, {dataset}/{item['id']}", lambda: search.search(item["question"], 6), False
                yield f"paths, {name}, {dataset}/{item['id']}", lambda: search.search_paths(item["question"], 6), False
    yield from _of_documents(recorder)
    for kind in ("t5", "gpt2"):
        model = loaded(kind)
        upr = build(imported("drillrank:UPR"), model, **rerank.UPR | {"preset": None})
        relevance = build(imported("drillrank:Relevance"), model, **RELEVANCE | {"preset": "monot5"})
        for item in asked[:3]:
            found = candidates("nq", item, 4)
            yield f"UPR, {kind}/{item['id']}", lambda: upr.rank(item["question"], found), True
            yield f"Relevance, {kind}/{item['id']}", lambda: relevance.rank(item["question"], found), True


def _of_documents(recorder: Recorder) -> Iterator[tuple[str, Callable[[], Any], bool]]:
    chunker = build(imported("drillrank.views:MultiViewChunker"), **CHUNKER)
    parse = imported("drillrank:parse_document")
    finder = build(imported("drillrank:D3"), None, "unigram", **drilldown.D3)
    for paper in recorder.some(papers(), 6):
        chunks = chunker.chunks([(paper["id"], parse(paper["markdown"]))])[0]
        index = build(imported("drillrank.views:MultiViewIndex"), chunks, retriever="bm25", weights=None)
        ready = finder.prepare([paper["markdown"]])
        for asked in paper["questions"][:2]:
            yield f"MultiViewIndex/{asked['id']}", lambda: index.search(asked["question"], 5), False
            yield f"D3/{asked['id']}", lambda: finder.retrieve(asked["question"], ready, 4), False
            llm = ScriptedLLM(recorder, drilldown.oracle(paper, asked, by="names"))
            with_llm = build(imported("drillrank:D3"), llm, "unigram", **drilldown.D3)
            yield f"D3 with an LLM/{asked['id']}", lambda: with_llm.retrieve(asked["question"], ready), False
