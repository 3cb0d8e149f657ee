"""Rankers with tiny neural models: what is asked of them, what they say, and what becomes of it."""

from __future__ import annotations

from typing import Any

from . import models
from .building import build, imported
from .data import candidates, cosines, passages, read
from .rerank import BRMGR, INSTRUCTIONS, PROMPTRANK, UPR, UPR_TEMPLATE, demonstrations, paths_of, written
from .taking import Recorder

RELEVANCE: dict[str, Any] = dict.fromkeys(
    ("template", "instruction", "positive", "negative", "transform", "scale", "shift", "chat", "max_passage_tokens")
)


def loaded(kind: str, **options: Any) -> Any:
    """A tiny model, in single precision."""
    more = {} if kind == "encoder" else {"dtype": "float32", "device": "cpu"}
    return build(imported("drillrank:load_language_model"), models.spec(kind), **more | options)


def rankers(recorder: Recorder) -> None:
    """Every ranker with a T5, a GPT-2, a Llama and a sentence encoder."""
    asked = recorder.some(read("rerank/nq"), 6)
    for kind in ("t5", "gpt2", "llama"):
        model = loaded(kind)
        pairs = [(candidates("nq", item, 1)[0].text, item["question"]) for item in asked]
        recorder.take(f"{kind}/likelihood", lambda: model.log_likelihood(pairs), neural=True)
        for eos in (False, True):
            recorder.take(f"{kind}/likelihood, end {eos}", lambda: model.log_likelihood(
                pairs, temperature=1.4, include_eos=eos
            ), neural=True)  # fmt: skip
        recorder.take(f"{kind}/first tokens", lambda: [model.first_tokens(text, 7) for text, _ in pairs])
        _upr(recorder, kind, model, asked)
        _relevance(recorder, kind, model, asked)
        brmgr = build(imported("drillrank:BRMGR"), model, **BRMGR | {"guard": kind == "t5"})
        for item in asked[:3]:
            recorder.take(f"brmgr, {kind}/{item['id']}", lambda: brmgr.rank(
                item["question"], candidates("nq", item, 4), written(item)
            ), neural=True)  # fmt: skip
        _promptrank(recorder, kind, model)
    _encoder(recorder, asked)


def _upr(recorder: Recorder, kind: str, model: Any, asked: Any) -> None:
    variants: dict[str, dict[str, Any]] = {
        "default": {},
        "20 tokens": {"max_passage_tokens": 20},
        "prior": {"prior": "retrieval"},
        **{preset: {"preset": preset} for preset in ("upr", "rankify", "rerankers", "brmgr")},
    }
    for name, settings in variants.items():
        upr = build(imported("drillrank:UPR"), model, **UPR | {"preset": None} | settings)
        for item in asked[:3]:
            scores = cosines(8) if settings.get("prior") else None
            recorder.take(f"upr, {name}, {kind}/{item['id']}", lambda: upr.rank(
                item["question"], candidates("nq", item, 8), scores=scores
            ), neural=True)  # fmt: skip
        recorder.take(f"upr, {name}, {kind}/many", lambda: upr.rank_many(
            [item["question"] for item in asked], [candidates("nq", item, 3) for item in asked]
        ), neural=True)  # fmt: skip


def _relevance(recorder: Recorder, kind: str, model: Any, asked: Any) -> None:
    relevance, monot5 = imported("drillrank:Relevance"), imported("drillrank:MonoT5")
    rankers = {
        preset: build(relevance, model, **RELEVANCE | {"preset": preset} | more)
        for preset, more in (
            ("monot5", {}),
            ("qwen3-reranker", {}),
            ("mxbai-rerank-v2", {"instruction": "Find evidence."}),
            ("bge-reranker-v2-gemma", {}),
            ("zerank-1-small", {}),
            ("zerank-2", {}),
            ("ctxl-rerank-v2", {"positive": "0"}),
            ("yes-no", {"chat": False, "max_passage_tokens": 20}),
        )
    } | {
        "own": build(
            relevance, model, **RELEVANCE | {
                "preset": "yes-no", "template": "{query} {text} Relevant:", "positive": "1", "negative": "0",
                "transform": "margin", "scale": 0.5, "shift": 0.1, "chat": False,
            }
        )
    }  # fmt: skip
    if kind == "t5":
        rankers["MonoT5"] = build(monot5, model, max_passage_tokens=None)
        rankers["MonoT5, 20 tokens"] = build(monot5, model, max_passage_tokens=20)
    for name, ranker in rankers.items():
        for item in asked[:2]:
            recorder.take(f"relevance, {name}, {kind}/{item['id']}", lambda: ranker.rank(
                item["question"], candidates("nq", item, 6), 5
            ), neural=True)  # fmt: skip


def _promptrank(recorder: Recorder, kind: str, model: Any) -> None:
    variants: dict[str, dict[str, Any]] = {
        "default": {},
        "mean, temperature": {"ensemble": "mean", "temperature": 1.4, "instructions": INSTRUCTIONS[:2]},
        "demonstrations": {"demonstrations": demonstrations(4), "instructions": INSTRUCTIONS[:2]},
        "preset": {"preset": "promptrank", "ensemble": "mean", "instructions": INSTRUCTIONS[:2]},
        "short": {"max_document_tokens": 30, "max_prompt_tokens": 90, "instructions": INSTRUCTIONS[:1]},
    }
    for name, settings in variants.items():
        ranker = build(imported("drillrank:PromptRank"), model, **PROMPTRANK | {"demonstrations": ()} | settings)
        for item in recorder.some(read("multihop/musique"), 2):
            recorder.take(f"promptrank, {name}, {kind}/{item['id']}", lambda: ranker.rank(
                item["question"], paths_of(item, "musique")[:12]
            ), neural=True)  # fmt: skip


def _encoder(recorder: Recorder, asked: Any) -> None:
    """Words and meaning."""
    model = loaded("encoder")
    fitted = model.fitted([passage.titled_text for passage in list(passages("nq").values())[:200]])
    for state, one in (("unfitted", model), ("fitted", fitted)):
        upr = build(imported("drillrank:UPR"), one, **UPR | {"preset": None, "template": UPR_TEMPLATE})
        promptrank = build(imported("drillrank:PromptRank"), one, **PROMPTRANK | {"demonstrations": ()})
        for item in asked:
            recorder.take(f"upr, encoder, {state}/{item['id']}", lambda: upr.rank(
                item["question"], candidates("nq", item, 6)
            ), neural=True)  # fmt: skip
        for item in recorder.some(read("multihop/musique"), 3):
            recorder.take(f"promptrank, encoder, {state}/{item['id']}", lambda: promptrank.rank(
                item["question"], paths_of(item, "musique")[:9]
            ), neural=True)  # fmt: skip
