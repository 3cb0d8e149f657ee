"""MuSiQue, 2WikiMultihopQA and HotpotQA beside HippoRAG 2 and its successors.

`python -m tests.benchmarks hipporag` prints our rows on the dev pools, with the published ones, which are of other
questions and larger pools. With `--data DIR` it reads `<name>.json` and `<name>_corpus.json` as they stand in
`reproduce/dataset` of the public repository OSU-NLP-Group/HippoRAG: then both are of the same questions.
"""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from drillrank import Passage, PathSearch, PromptRank, load_language_model
from drillrank.errors import InvalidInput
from drillrank.evaluation.metrics import recall, recall_all
from drillrank.likelihood import LanguageModel
from drillrank.multihop.link_names import LinkName, named_links
from drillrank.vectors import BM25Index, top

from .data import multihop_pool, read

NAMES = ("musique", "2wikimultihopqa", "hotpotqa")
DEPTH = 100

# Recall@5 as mean share of gold, 1,000 questions each: HippoRAG 2 and its baselines (arXiv 2502.14802), PropRAG (arXiv
# 2504.18070), BridgeRAG as its authors report it. Transcribed by third parties: look them up before citing them.
PUBLISHED = {
    "BM25": (43.5, 65.3, 74.8),
    "NV-Embed-v2": (69.7, 76.5, 94.5),
    "HippoRAG 2": (74.7, 90.4, 96.3),
    "PropRAG": (78.3, 94.1, 97.4),
    "BridgeRAG, 3 LLM calls a question": (81.5, 95.3, 98.8),
    "SAG v2": (80.4, 93.3, 96.5),
}


class Asked(NamedTuple):
    """A question and the ids of its gold passages."""

    question: str
    gold: list[str]


def main(data: str | None = None, model: str = "unigram", questions: int | None = None) -> None:
    """Print recall, time and size of BM25 and path search on every data set that the folder holds."""
    lm = load_language_model(model)
    for column, name in enumerate(NAMES):
        if data is None:
            ours = name.removesuffix("multihopqa")
            pool = [replace(passage, links=()) for passage in multihop_pool(ours)]
            asked = [Asked(item["question"], item["gold"]) for item in read(f"multihop/{ours}")]
        elif (Path(data) / f"{name}.json").is_file():
            pool, asked = read_corpus(data, name), read_questions(data, name)
        else:
            print(f"{name}: no {name}.json in {data}.")
            continue
        asked = asked[:questions]
        table = Table(
            "method", "recall@2", "recall@5", "all gold@2", "all gold@5", "CPU ms a question", "index CPU s", "MB",
            title=f"{name}: {len(asked)} questions, {len(pool):,} passages; paths scored by {lm.spec}",
        )  # fmt: skip
        for method, build in methods(lm, pool):
            started = time.process_time()
            search = build()
            built = time.process_time() - started
            rankings = [search(item.question) for item in asked]
            spent = time.process_time() - started - built
            table.add_row(
                method, *figures(asked, rankings), f"{1000 * spent / len(asked):.1f}", f"{built:.1f}", size(search)
            )
        for method, recalls in PUBLISHED.items():
            table.add_row(f"{method} (published)", "", f"{recalls[column]:.1f}", *[""] * 5)
        Console(width=130).print(table)


def read_corpus(folder: str | Path, name: str) -> list[Passage]:
    """The passages, each once, with their place as id; titles and texts as they stand."""
    entries = json.loads((Path(folder) / f"{name}_corpus.json").read_text(encoding="utf-8"))
    distinct = {identity(entry["title"], entry["text"]): entry for entry in reversed(entries)}
    kept = [entry for entry in entries if distinct[identity(entry["title"], entry["text"])] is entry]
    return [Passage(entry["text"], id=str(number), title=entry["title"]) for number, entry in enumerate(kept)]


def read_questions(folder: str | Path, name: str) -> list[Asked]:
    """The questions with their gold passages.

    Raises:
        InvalidInput: a gold passage is not in the corpus.
    """
    ids = {identity(passage.title, passage.text): passage.id for passage in read_corpus(folder, name)}
    asked = []
    for number, sample in enumerate(json.loads((Path(folder) / f"{name}.json").read_text(encoding="utf-8"))):
        try:
            gold = [ids[identity(title, text)] for title, text in gold_texts(sample)]
        except KeyError as missing:
            raise InvalidInput(f"{name}.json: gold of question {number} is not in the corpus: {missing}") from None
        asked.append(Asked(sample["question"], list(dict.fromkeys(gold))))
    return asked


def gold_texts(sample: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Title and text of each gold passage: supporting facts name titles, paragraphs say it of themselves."""
    if "supporting_facts" in sample:
        titles = {title for title, *_ in sample["supporting_facts"]}
        yield from ((title, " ".join(sentences)) for title, sentences in sample["context"] if title in titles)
    else:
        for paragraph in sample["paragraphs"]:
            if paragraph["is_supporting"]:
                yield paragraph["title"], paragraph.get("paragraph_text") or paragraph["text"]


def identity(title: str, text: str) -> tuple[str, str]:
    """What makes two passages the same, whatever the white space: sentences are joined with and without blanks."""
    return "".join(title.split()), "".join(text.split())


def methods(lm: LanguageModel, pool: list[Passage]) -> Iterable[tuple[str, Callable[[], Callable[[str], list[str]]]]]:
    """Names, and functions that index the pool and give a function from a question to ids."""
    yield "BM25", lambda: _ByWords(pool)
    kinds: list[tuple[LinkName, ...]] = [("titles",), ("titles", "names")]
    for kind in kinds:
        yield f"path search, links by {' and '.join(kind)}", partial(_ByPaths, lm, pool, kind)


class _ByWords:
    def __init__(self, pool: list[Passage]) -> None:
        self._ids = [passage.id for passage in pool]
        self._index = BM25Index([passage.titled_text for passage in pool])

    def __call__(self, question: str) -> list[str]:
        return [self._ids[i] for i in top(self._index.scores(question), DEPTH)]


class _ByPaths:
    def __init__(self, lm: LanguageModel, pool: list[Passage], kinds: tuple[LinkName, ...]) -> None:
        self._search = PathSearch(PromptRank(lm), pool, links=named_links(kinds))

    def __call__(self, question: str) -> list[str]:
        return [item.passage.id for item in self._search.search(question)]


def figures(asked: list[Asked], rankings: list[list[str]]) -> list[str]:
    """Recall as mean share and as share of questions with all gold, in percent."""
    pairs = list(zip(asked, rankings, strict=True))
    return [
        f"{100 * sum(measure(ranking, item.gold, k) for item, ranking in pairs) / max(len(pairs), 1):.1f}"
        for measure in (recall, recall_all)
        for k in (2, 5)
    ]


def size(search: object) -> str:
    """Megabytes of the index, as pickle counts them."""
    try:
        return f"{len(pickle.dumps(search)) / 1e6:.1f}"
    except (TypeError, AttributeError, pickle.PicklingError):
        return "?"
