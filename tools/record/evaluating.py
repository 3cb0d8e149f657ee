"""Comparing and tuning on small sets: means, differences, verdicts, what was found; never how long it took."""

from __future__ import annotations

from typing import Any

from . import drilldown, paths, rerank
from .building import build, got, imported
from .data import candidates, papers, pool, read
from .taking import Recorder

COMPARE: dict[str, Any] = {
    "first_stage": None,
    "candidates": 50,
    "measures": None,
    "primary": None,
    "columns": None,
    "prices": None,
    "results": None,
}


def compare(recorder: Recorder) -> None:
    """Rerankers over given candidates, searches over a corpus, drilling down in documents."""
    comparing = imported("drillrank.evaluation:compare")
    upr, brmgr = imported("drillrank:UPR"), imported("drillrank:PromptRank")
    rankers = {
        "UPR": build(upr, "unigram", **rerank.UPR | {"preset": None}),
        "UPR, prior": build(upr, "unigram", **rerank.UPR | {"preset": None, "prior": "retrieval"}),
        "PromptRank": build(brmgr, "unigram", **rerank.PROMPTRANK | {"demonstrations": ()}),
        "backwards": _backwards,
    }
    for dataset in ("nq", "squad"):
        rows = [
            {
                "id": item["id"],
                "question": item["question"],
                "gold": item["gold"],
                "answers": item["answers"],
                "candidates": candidates(dataset, item, 10),
                "scores": [1 - at / 10 for at in range(10)],
            }
            for item in recorder.some(read(f"rerank/{dataset}"), 30)
        ]
        recorder.take(f"rerankers/{dataset}", lambda: compared(build(comparing, rows, rankers, **COMPARE)))
        recorder.take(f"rerankers, one measure/{dataset}", lambda: compared(
            build(comparing, rows, rankers, **COMPARE | {"measures": ["nDCG@10", "R@5"], "primary": "R@5"})
        ))  # fmt: skip
    for count in (5, 30):
        rows = [
            {"id": item["id"], "question": item["question"], "gold": item["gold"], "answers": [item["answer"]]}
            for item in recorder.some(read("multihop/musique"), count)
        ]
        searches = {**rankers, "PathSearch": paths.search("musique")}
        recorder.take(f"searches/{count}", lambda: compared(
            build(comparing, rows, searches, pool("musique"), **COMPARE | {"candidates": 20})
        ))  # fmt: skip
    _documents(recorder, comparing, rankers)


def _backwards(_query: str, passages: Any) -> Any:
    return list(reversed(passages))


def _documents(recorder: Recorder, comparing: Any, rankers: dict[str, Any]) -> None:
    folder = recorder.folder / "papers"
    folder.mkdir()
    rows = []
    for number, paper in enumerate(recorder.some(papers(), 5)):
        (folder / f"{number}.md").write_text(paper["markdown"], encoding="utf-8")
        for asked in paper["questions"][:4]:
            spans = [paper["sections"][i]["paragraphs"][j] for evidence in asked["evidence"] for i, j in evidence]
            if spans:
                rows.append({"id": asked["id"], "question": asked["question"], "spans": spans})
    finder = build(imported("drillrank:D3"), None, "unigram", **drilldown.D3)
    ready = finder.prepare([file.read_text(encoding="utf-8") for file in sorted(folder.iterdir())])
    several = {"UPR": rankers["UPR"], "D3": "D3", "own D3": lambda question: finder.retrieve(question, ready, 10)}
    for name, components in {"documents": several, "documents, alone": {"UPR": rankers["UPR"]}}.items():
        recorder.take(f"{name}/qasper", lambda: compared(
            build(comparing, rows, components, [str(folder)], **COMPARE | {"candidates": 20})
        ))  # fmt: skip


def compared(found: Any) -> dict[str, Any]:
    """All but the seconds."""
    return {
        "measures": found.measures,
        "primary": found.primary,
        "gold": {question: sorted(ids) for question, ids in sorted((got(found, "gold") or {}).items())},
        "values": got(found, "values"),
        "pairs": [
            {
                "id": f"{pair.before} - {pair.after}, {pair.measure}",
                "difference": list(pair.difference),
                "p": pair.adjusted_p,
                "verdict": pair.verdict,
            }
            for pair in found.pairs
        ],
        "reach": {name: list(reach) for name, reach in got(found, "reach").items()},
        "results": {
            name: {
                question: [{"id": id_, "score": score} for id_, score in zip(one.ids, one.scores, strict=True)][:10]
                for question, one in of_component.items()
            }
            for name, of_component in got(found, "results").items()
        },
        "problems": found.problems,
        "advice": list(found.advice),
    }


def tune(recorder: Recorder) -> None:
    """Grids over a prior's weight and the model's smoothing: adopted, and kept as it is."""
    tuning = imported("drillrank.evaluation:tune")
    rows = [
        {
            "id": item["id"],
            "question": item["question"],
            "gold": item["gold"],
            "candidates": candidates("squad", item, 8),
            "scores": [1 - at / 8 for at in range(8)],
        }
        for item in recorder.some(read("rerank/squad"), 40)
    ]
    for name, given, grid in (
        ("prior", "UPR", {"prior_weight": [1.0, 4.0], "mu": []}),
        ("smoothing", "UPR", {"mu": [30, 1000]}),
        ("ensemble", "PromptRank", {"mu": [30]}),
    ):
        for seed in (0, 1):

            def tuned() -> dict[str, Any]:
                found = build(
                    tuning,
                    rows,
                    given,
                    None,
                    grid=grid,
                    folds=3,
                    seed=seed,
                    measure="RR",
                    first_stage=None,
                    candidates=50,
                )
                told = found.to_dict()
                return {key: value for key, value in told.items() if key != "milliseconds"}

            recorder.take(f"{name}/{seed}", tuned)
