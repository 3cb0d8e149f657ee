"""The command line, in this process: what it prints, and its exit status."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .building import imported
from .data import papers, read
from .drilldown import MANUAL
from .structure import files
from .taking import Recorder

TIMES = re.compile(r"\b(?:p50|p95|ms)\b")
SECONDS = ("seconds", "p50", "p95", "per_second", "preparing", "milliseconds")


def commands(recorder: Recorder) -> None:
    """`ask`, `outline`, `compare` and `tune` in a folder of files."""
    folder = recorder.folder / "docs"
    folder.mkdir()
    made = files(folder, list(papers()[:5]))
    (folder / "manual.md").write_text(MANUAL, encoding="utf-8")
    names = [*(file.name for file in made if file.suffix != ".json"), "manual.md"]
    with _inside(folder):
        for name in names:
            recorder.take(f"outline/{name}", lambda: run("outline", name))
            recorder.take(f"ask one/{name}", lambda: run("ask", "--json", name, "What is evaluated?"))
        asked = [one["question"] for paper in papers()[:5] for one in paper["questions"][:3]]
        for number, question in enumerate(recorder.some([*asked, "How long does the battery last?", "zzz"], 17)):
            for kind, options in {
                "ask": (),
                "ask, json": ("--json",),
                "ask, two": ("--json", "--top-n", "2"),
                "ask, no cache": ("--json", "--no-cache"),
                "ask, unigram": ("--model", "unigram", "--json"),
            }.items():
                recorder.take(f"{kind}/{number}", lambda: run("ask", *options, ".", question))
        (folder / "questions.txt").write_text("\n".join(asked[:4]), encoding="utf-8")
        recorder.take("ask, questions/4", lambda: run("ask", "--json", "--questions", "questions.txt", "manual.md"))
        for number, words in enumerate(
            (["nothing.md", "Who?"], ["manual.md"], ["manual.md", " "], ["--top-n", "0", "manual.md", "Who?"])
        ):
            recorder.take(f"ask, wrong/{number}", lambda: run("ask", *words))
        _compare_and_tune(recorder)


def explained(recorder: Recorder) -> None:
    """`ask --explain`."""
    folder = recorder.folder / "docs"
    folder.mkdir()
    files(folder, list(papers()[:5]))
    with _inside(folder):
        for number, question in enumerate([paper["questions"][0]["question"] for paper in papers()[:4]]):
            recorder.take(f"ask, explained/{number}", lambda: run("ask", "--explain", ".", question))


def components(recorder: Recorder) -> None:
    """`components`, and what there is to set in each."""
    recorder.take("components/all", lambda: run("components"))
    names = ("UPR", "MonoT5", "Relevance", "BRMGR", "PromptRank", "PathSearch", "MultiViewChunker", "MultiViewIndex")
    for name in (*names, "D3", "SelfAsk", "UPRRerank", "SelfAskChain", "Nothing"):
        recorder.take(f"components/{name}", lambda: run("components", name))


def _compare_and_tune(recorder: Recorder) -> None:
    pool = {item["id"]: item for item in read("rerank/nq_passages")}
    rows = [
        {
            "id": item["id"],
            "question": item["question"],
            "gold": item["gold"],
            "candidates": [{"id": id_, "text": pool[id_]["text"]} for id_ in item["bm25_top"][:8]],
        }
        for item in recorder.some(read("rerank/nq"), 25)
    ]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    weights = '{"component": "UPR", "prior": "retrieval", "prior_weight": 2.0}'
    several = ("--component", "UPR", "--component", f"weighted={weights}", "--component", "PromptRank")
    recorder.take("compare/json", lambda: run("compare", "rows.jsonl", *several, "--json"))
    recorder.take("compare/table", lambda: run("compare", "rows.jsonl", *several, "--measure", "RR"))
    grid = ("--try", "prior_weight=[1.0,4.0]", "--try", "mu=[30]", "--measure", "RR", "--folds", "3", "--seed", "0")
    recorder.take("tune/json", lambda: run("tune", "rows.jsonl", *grid, "--out", "set.json", "--json"))
    recorder.take("tune/text", lambda: run("tune", "rows.jsonl", *grid, "--out", "set.json"))
    recorder.take("tune/file", lambda: json.loads(Path("set.json").read_text("utf-8")))
    recorder.take("compare/settings", lambda: run("compare", "rows.jsonl", "--settings", "set.json", "--json"))


def run(*words: str) -> dict[str, Any]:
    """A command's status and lines."""
    main = imported("drillrank.cli:main")
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(list(words))
        except SystemExit as end:
            status = end.code
    return {"status": status, "out": _lines(out), "err": _lines(err)}


def _lines(stream: io.TextIOWrapper) -> list[Any]:
    """Lines, those of JSON as objects, without seconds."""
    stream.flush()
    lines = stream.buffer.getvalue().decode("utf-8").splitlines()  # type: ignore[attr-defined]  # a BytesIO
    return [
        _untimed(json.loads(line)) if line.startswith("{") else line.rstrip()
        for line in lines
        if line.startswith("{") or (line.strip() and not TIMES.search(line))
    ]


def _untimed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _untimed(one) for key, one in value.items() if key not in SECONDS}
    return list(map(_untimed, value)) if isinstance(value, list) else value


@contextlib.contextmanager
def _inside(folder: Any) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  # until the process ends
    try:
        yield
    finally:
        os.chdir(before)
