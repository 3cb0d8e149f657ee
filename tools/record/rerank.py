"""Rankers with the embedded model: UPR, BRMGR, PromptRank."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from .building import build, imported
from .data import candidates, cosines, passages, pool, read
from .taking import Recorder, embed

UPR_TEMPLATE = "Passage: {title} {text}. Please write a question based on this passage."
UPR = {"template": UPR_TEMPLATE, "max_passage_tokens": None, "prior": None, "prior_weight": 1.0}
BRMGR = UPR | {
    "generated_template": "Question: {question} Please write a passage that answers this question.",
    "first": "generated",
    "guard": False,
    "generated_share": 1.0,
    "max_generated_tokens": 512,
}
INSTRUCTIONS = (
    "{path} Review previous documents and ask some question. Question:",
    "{path} Review the previous documents and answer question. Question:",
    "{path} Read the previous documents and write the following question. Question:",
    "{path} Search previous documents and ask the question. Question:",
    "To analyze the documents and ask question. {path} Question:",
)
PROMPTRANK: dict[str, Any] = {
    "instructions": INSTRUCTIONS,
    "ensemble": "max",
    "temperature": 1.0,
    "demonstrations_per_prompt": 2,
    "max_document_tokens": 230,
    "max_prompt_tokens": None,
    "preset": None,
    "prior": None,
    "prior_weight": 1.0,
}


@lru_cache(maxsize=4)
def fitted(name: str) -> Any:
    """The embedded model, fitted with a pool."""
    texts = [passage.titled_text for passage in (passages(name).values() if name in ("nq", "squad") else pool(name))]
    return build(imported("drillrank:load_language_model"), "unigram", mu=300.0).fit(texts)


def upr(recorder: Recorder) -> None:
    """UPR over what BM25 found, for one question and for many."""
    ranker = imported("drillrank:UPR")
    variants: dict[str, dict[str, Any]] = {
        "default": {},
        "another template": {"template": "({title}) {text}"},
        "30 tokens": {"max_passage_tokens": 30},
        "prior by rank": {"prior": "retrieval"},
        "half a prior": {"prior": "retrieval", "prior_weight": 0.5},
        "prior of cosines": {"prior": "cosine"},
    }
    for dataset, count in (("nq", 60), ("squad", 40)):
        asked = recorder.some(read(f"rerank/{dataset}"), count)
        for state in ("unfitted", "fitted"):
            model = fitted(dataset) if state == "fitted" else "unigram"
            for name, settings in variants.items():
                upr = build(ranker, model, **UPR | {"preset": None} | settings)
                for item in asked:
                    found = candidates(dataset, item, 10)
                    scores = cosines(10) if settings.get("prior") else None
                    call = f"{name}, {state}, {dataset}/{item['id']}"
                    recorder.take(call, lambda: upr.rank(item["question"], found, None, scores=scores))
                    if name == "prior by rank":
                        recorder.take(f"{name}, no scores, {state}, {dataset}/{item['id']}", lambda: upr.rank(
                            item["question"], found, 5
                        ))  # fmt: skip
                many = asked[:10]
                recorder.take(f"{name}, {state}, {dataset}/many", lambda: upr.rank_many(
                    [item["question"] for item in many], [candidates(dataset, item, 6) for item in many], 3
                ))  # fmt: skip
    plain = build(ranker, "unigram", **UPR, preset=None)
    texts = ["Basel lies on the Rhine.", "", "Basel lies on the Rhine.", "東京", "the of and"]
    for number, question in enumerate(("Where is Basel?", "zzz qqq", "the of", "東京は？", "1,234")):
        recorder.take(f"odd/{number}", lambda: plain.rank(question, texts))
        recorder.take(f"odd, nothing/{number}", lambda: plain.rank(question, []))
        recorder.take(f"odd, awaited/{number}", lambda: plain.arank(question, texts, 2))
        recorder.take(f"odd, likelihoods/{number}", lambda: plain.likelihoods(question, texts))


def written(item: dict[str, Any]) -> list[str]:
    """A few passages as an LLM might have written them: one is blank, one is a repetition."""
    answer = item["answers"][0]
    return [*item["generated"], f"It was {answer}.", "", f"It was {answer}.", "Nobody knows, I am afraid, but perhaps."]


def brmgr(recorder: Recorder) -> None:
    """BRMGR over NQ with one generated sentence and a few of ours."""
    ranker = imported("drillrank:BRMGR")
    variants: dict[str, dict[str, Any]] = {
        "default": {},
        "retrieved first": {"first": "retrieved"},
        "guard": {"guard": True},
        "guard of 0.5": {"guard": 0.5},
        "a third generated": {"generated_share": 0.34},
        "8 tokens": {"max_generated_tokens": 8, "max_passage_tokens": 40},
        "prior": {"prior": "retrieval"},
        "another template": {"generated_template": "{question} Answer in a sentence."},
    }
    asked = recorder.some(read("rerank/nq"), 40)
    _cluster_prompts(recorder)
    for state in ("unfitted", "fitted"):
        model = fitted("nq") if state == "fitted" else "unigram"
        for name, settings in variants.items():
            brmgr = build(ranker, model, **BRMGR | settings)
            for item in asked:
                scores = cosines(8) if settings.get("prior") else None
                recorder.take(f"{name}, {state}/{item['id']}", lambda: brmgr.rank(
                    item["question"], candidates("nq", item, 8), written(item), 9, scores=scores
                ))  # fmt: skip
            many = asked[:6]
            recorder.take(f"{name}, {state}/many", lambda: brmgr.rank_many(
                [item["question"] for item in many],
                [candidates("nq", item, 5) for item in many],
                [written(item) for item in many],
            ))  # fmt: skip


def _cluster_prompts(recorder: Recorder) -> None:
    """Prompts for what is generated, made of examples."""
    prompts = imported("drillrank.generation:cluster_prompts")
    examples = [(item["question"], candidates("nq", item, 1)[0].text) for item in read("rerank/nq")[:40]]
    instruction = "Provide a background document to answer the given question. {question}"
    for name, vectors in (("words", None), ("embed", embed)):
        recorder.take(f"cluster prompts/{name}", lambda: build(
            prompts, examples, 4, 3, instruction=instruction, embed=vectors, seed=0
        ))  # fmt: skip


def paths_of(item: dict[str, Any], dataset: str) -> list[Any]:
    """Paths of one, two and three of a question's own passages."""
    by_id = {passage.id: passage for passage in pool(dataset)}
    own = [by_id[id_] for id_ in item["candidates"][:8]]
    path = imported("drillrank:Path")
    pairs = [(first, second) for first in own[:4] for second in own[:4] if first is not second]
    return [path(passages) for passages in [*((one,) for one in own), *pairs, tuple(own[:3])]]


def starts(paths: Sequence[Any]) -> list[float | None]:
    """Scores of a first stage: of each path's first passage."""
    ids = list(dict.fromkeys(path.ids[0] for path in paths))
    by_id = dict(zip(ids, cosines(len(ids)), strict=True))
    return [by_id[path.ids[0]] for path in paths]


def demonstrations(count: int) -> Sequence[Any]:
    """Train questions with their gold paths."""
    passage, path = imported("drillrank:Passage"), imported("drillrank:Path")
    demonstration = imported("drillrank.rerank.demonstrations:Demonstration")
    return [
        demonstration(
            path([passage(text, title=title) for title, text in item["path"]]), item["question"], item["type"]
        )
        for item in read("multihop/demos")[:count]
    ]


def promptrank(recorder: Recorder) -> None:
    """PromptRank over paths of each question's own passages."""
    ranker = imported("drillrank:PromptRank")
    variants: dict[str, dict[str, Any]] = {
        "default": {},
        "mean, one instruction": {"ensemble": "mean", "instructions": INSTRUCTIONS[:1]},
        "temperature": {"temperature": 1.4},
        "short documents": {"max_document_tokens": 25, "max_prompt_tokens": 60},
        "demonstrations": {"demonstrations": demonstrations(3)},
        "prior": {"prior": "retrieval"},
    }
    for dataset in ("hotpotqa", "musique"):
        asked = recorder.some(read(f"multihop/{dataset}"), 30)
        for name, settings in variants.items():
            for state in ("unfitted", "fitted"):
                model = fitted(dataset) if state == "fitted" else "unigram"
                ranks = build(ranker, model, **PROMPTRANK | {"demonstrations": ()} | settings)
                for item in asked:
                    paths = paths_of(item, dataset)
                    scores = starts(paths) if settings.get("prior") else None
                    recorder.take(f"{name}, {state}, {dataset}/{item['id']}", lambda: ranks.rank(
                        item["question"], paths, 12, scores=scores
                    ))  # fmt: skip
                many = asked[:5]
                recorder.take(f"{name}, {state}, {dataset}/many", lambda: ranks.rank_many(
                    [item["question"] for item in many], [paths_of(item, dataset) for item in many], 4
                ))  # fmt: skip
