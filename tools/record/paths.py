"""Path search over the open pools of three multi-hop data sets."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from .building import build, got, imported
from .data import pool, read
from .rerank import PROMPTRANK, fitted
from .taking import Recorder, ScriptedLLM, embed

MISSING_PROMPT = (
    "Documents that were found for a question:\n\n{documents}\n\nQuestion: {question}\n\nThe answer may need one more "
    "document. Name what is still missing as a short search query, with the names that the documents tell. If nothing "
    "is missing, answer: nothing.\n\nSearch query:"
)
SEARCH: dict[str, Any] = {
    "hops": None,
    "beam": None,
    "branch": None,
    "pairs": 6,
    "cascade": None,
    "embed": None,
    "links": None,
    "first_stage": None,
    "pool": 100,
    "llm": None,
    "on_failure": "continue",
    "missing_prompt": MISSING_PROMPT,
}


def prior(**shares: float) -> Any:
    """A prior over links, with what was its default."""
    return imported("drillrank.multihop.prior:PathPrior")(**{"jump": 0.5, "named": 0.5, "single": 0.05} | shares)


def search(dataset: str, state: str = "unfitted", **settings: Any) -> Any:
    """A path search over a pool."""
    ranking = {name: settings.pop(name) for name in ("prior", "ensemble", "temperature") if name in settings}
    model = fitted(dataset) if state == "fitted" else "unigram"
    ranker = build(imported("drillrank:PromptRank"), model, **PROMPTRANK | {"demonstrations": ()} | ranking)
    return build(imported("drillrank:PathSearch"), ranker, pool(dataset), **SEARCH | {"link_prior": prior()} | settings)


def _first_stage(dataset: str, name: str) -> Any:
    """A retriever of one's own."""
    index = imported(f"drillrank.retrieval:{name}")([passage.titled_text for passage in pool(dataset)])
    top = imported("drillrank.retrieval:top")
    return lambda query, n: [pool(dataset)[at] for at in top(index.scores(query), n)]


def variants(recorder: Recorder, dataset: str) -> dict[str, dict[str, Any]]:
    """Settings, each with a name."""
    source = {
        name: imported(place)
        for name, place in {
            "given": "drillrank.multihop.links:given_links",
            "retrieved": "drillrank.multihop.links:RetrievedLinks",
            "metadata": "drillrank.multihop.links:MetadataLinks",
            "hyperlinks": "drillrank.multihop.hyperlinks:Hyperlinks",
            "titles": "drillrank.multihop.mentions:TitleMentions",
            "names": "drillrank.multihop.mentions:NameMentions",
        }.items()
    }

    def missing(prompt: str) -> str:
        names = re.findall(r"\b[A-Z]\w+(?: [A-Z]\w+)+", prompt.partition("Question:")[0])
        return names[len(names) // 2] if names else "nothing"

    return {
        "default": {},
        "as in the paper": {"hops": 2, "beam": 5, "branch": 3, "pairs": 0, "link_prior": None},
        "one hop": {"hops": 1},
        "no prior, 3 hops": {"hops": 3, "link_prior": None},
        "another prior": {"link_prior": prior(jump=0.3, named=0.2, single=0.2), "hops": 2},
        "cascade": {"cascade": 40, "hops": 2},
        "narrow": {"beam": 3, "branch": 2, "pairs": 3, "pool": 20},
        "mean, temperature": {"ensemble": "mean", "temperature": 1.4, "hops": 2},
        "titles": {"links": source["titles"](aliases=True, inflected=False)},
        "names": {"links": [source["given"], source["names"]()]},
        "second retrieval": {"links": [source["given"], source["retrieved"](3)], "hops": 2},
        "hyperlinks and metadata": {"links": [source["metadata"]("links"), source["hyperlinks"]()], "hops": 2},
        "a function": {"links": lambda passage: passage.links[:2], "hops": 2},
        "fitted": {"state": "fitted"},
        "prior of the first stage": {"prior": "retrieval"},
        "embed": {"embed": embed, "hops": 2},
        "an llm": {"llm": ScriptedLLM(recorder, missing), "hops": 2},
        "failing llm": {"llm": ScriptedLLM(recorder, [RuntimeError("down"), "nothing"]), "hops": 3},
        "first stage of tfidf": {"first_stage": _first_stage(dataset, "TfidfIndex")},
        "first stage of bm25": {"first_stage": _first_stage(dataset, "BM25Index")},
    }


MAIN = ("default", "as in the paper", "names", "fitted", "second retrieval")


def _taken(recorder: Recorder, dataset: str, count: int, names: Collection[str]) -> None:
    asked = recorder.some(read(f"multihop/{dataset}"), count)
    for name, settings in variants(recorder, dataset).items():
        if name not in names:
            continue
        searching = search(dataset, **settings)
        for item in asked if name in MAIN else asked[: max(count // 4, 1)]:
            recorder.take(f"{name}/{item['id']}", lambda: searching.search(item["question"], 20))
        hops: list[Any] = []
        first = asked[0]["question"]
        recorder.take(f"{name}/paths", lambda: searching.search_paths(first, 20, on_hop=hops.append))
        recorder.take(f"{name}/hops", lambda: [[got(hop, "number"), got(hop, "paths")[:10]] for hop in hops])
        recorder.take(f"{name}/awaited", lambda: searching.asearch(first, 10))


def hotpotqa(recorder: Recorder) -> None:
    """HotpotQA, where most links are titles."""
    _taken(recorder, "hotpotqa", 40, (*MAIN, "titles", "embed", "first stage of tfidf"))


def two_wiki(recorder: Recorder) -> None:
    """2Wiki, with chains of up to four."""
    _taken(recorder, "2wiki", 40, (*MAIN, "no prior, 3 hops", "prior of the first stage", "first stage of bm25"))


def musique(recorder: Recorder) -> None:
    """MuSiQue, with every setting."""
    _taken(recorder, "musique", 30, variants(recorder, "musique"))
