"""Path search on MuSiQue, 2WikiMultihopQA and HotpotQA, next to the published figures of other multi-hop systems.

`python -m benchmarks hipporag` runs the development pools. The published figures are for other questions and
larger pools. `--data DIR` reads a folder in one of two layouts:

- `<name>.json` and `<name>_corpus.json`: `reproduce/dataset` of github.com/OSU-NLP-Group/HippoRAG at commit c617143,
  the thousand questions of each set that most of these systems report. Both figures are then for the same questions.
  The blobs are 01ebb7c8 and fc0fcba0 (MuSiQue), 69b0e793 and dcb199ff (HotpotQA).
- `<name>/questions.jsonl` and `<name>/corpus.jsonl`: `datasets` of github.com/XieN-N/natural_rag at commit
  1d9cdec, which has 498 questions of MuSiQue, a third each with two, three and four hops. SHA-256 of the corpus begins
  with 3a1adff6, that of the questions with 96e5ccbb. Its HotpotQA is cut off or lacks gold passages, and is skipped.
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
SHARES, CUTS = (2, 5, 10), (2, 5)

# Recall@5 as the mean share of gold passages, in percent, in the order of NAMES. Sources: HippoRAG 2, PropRAG and
# BridgeRAG as README.md of github.com/andremir/BridgeRAG lists them; Vector Graph RAG and NV-Embed-v2:
# evaluation/README.md of github.com/zilliztech/vector-graph-rag; SAG: assets/main-result.png of
# github.com/Zleap-AI/SAG-Benchmark; BM25: arXiv 2502.14802, transcribed by third parties.
PUBLISHED = {
    "BM25": (43.5, 65.3, 74.8),
    "NV-Embed-v2": (69.7, 76.5, 94.5),
    "Vector Graph RAG": (73.0, 94.1, 96.3),
    "HippoRAG 2": (74.7, 90.4, 96.3),
    "PropRAG": (78.3, 94.1, 97.4),
    "SAG": (80.4, 93.3, 96.5),
    "BridgeRAG": (81.5, 95.3, 98.8),
}

# Share of questions by number of gold passages in HippoRAG 2's thousand of MuSiQue, counted from the ids in
# dataset/musique/questions.json of github.com/weiyifan1023/SeRAG at commit 660121d.
MUSIQUE_MIX = {2: 0.518, 3: 0.316, 4: 0.166}


class Asked(NamedTuple):
    """A question and the ids of its gold passages."""

    question: str
    gold: list[str]


class Dataset(NamedTuple):
    """A pool of passages and the questions to it."""

    pool: list[Passage]
    asked: list[Asked]


def main(data: str | None = None, model: str = "unigram", questions: int | None = None) -> None:
    """Print recall, time and size of BM25 and path search on every data set in the folder."""
    lm = load_language_model(model)
    for column, name in enumerate(NAMES):
        try:
            dataset = read_dev(name) if data is None else read_dataset(data, name)
        except InvalidInput as error:
            print(f"{name}: {error}")
            continue
        asked = dataset.asked[:questions]
        table = Table(
            "method", *(f"recall@{k} (%)" for k in SHARES), *(f"all gold@{k} (%)" for k in CUTS),
            "CPU ms per question", "index (CPU s)", "index (MB)",
            title=f"{name}: {len(asked)} questions, {len(dataset.pool):,} passages; paths scored by {lm.spec}",
        )  # fmt: skip
        rankings_by_method = {}
        for method, build in methods(lm, dataset.pool):
            started = time.process_time()
            search = build()
            built = time.process_time() - started
            rankings = [search(item.question) for item in asked]
            spent = time.process_time() - started - built
            rankings_by_method[method] = rankings
            table.add_row(
                method, *figures(asked, rankings), f"{1000 * spent / len(asked):.1f}", f"{built:.1f}", size(search)
            )
        for method, recalls in PUBLISHED.items():
            table.add_row(f"{method} (published)", "", f"{recalls[column]:.1f}", *[""] * 6)
        console = Console(width=180)
        console.print(table)
        if name == "musique":
            console.print(hop_table(asked, rankings_by_method))


def read_dev(name: str) -> Dataset:
    """Read the development questions and pool of a data set. Links of the passages are dropped."""
    dev_name = name.removesuffix("multihopqa")
    pool = [replace(passage, links=()) for passage in multihop_pool(dev_name)]
    return Dataset(pool, [Asked(item["question"], item["gold"]) for item in read(f"multihop/{dev_name}")])


def read_dataset(folder: str | Path, name: str) -> Dataset:
    """Read a data set in the layout of HippoRAG 2 or of natural_rag.

    Raises:
        InvalidInput: The folder has neither layout, a file is damaged, or a gold passage is not in the corpus.
    """
    for file, reader in ((f"{name}.json", _read_hipporag), (f"{name}/questions.jsonl", _read_natural_rag)):
        if (Path(folder) / file).is_file():
            try:
                return reader(Path(folder), name)
            except (json.JSONDecodeError, KeyError, OSError) as error:
                raise InvalidInput(f"{file} or its corpus cannot be read: {error!r:.200}. Fetch both again.") from None
    raise InvalidInput(f"{folder} has no {name}.json and no {name}/questions.jsonl. Give the folder that contains one.")


def _read_hipporag(folder: Path, name: str) -> Dataset:
    entries = json.loads((folder / f"{name}_corpus.json").read_text(encoding="utf-8"))
    distinct = {identity(entry["title"], entry["text"]): entry for entry in reversed(entries)}
    kept = [entry for entry in entries if distinct[identity(entry["title"], entry["text"])] is entry]
    pool = [Passage(entry["text"], id=str(number), title=entry["title"]) for number, entry in enumerate(kept)]
    id_by_text = {identity(passage.title, passage.text): passage.id for passage in pool}
    asked = []
    for number, sample in enumerate(json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))):
        texts = list(gold_texts(sample))
        gold = [id_by_text.get(identity(title, text)) for title, text in texts]
        asked.append(Asked(sample["question"], _require_gold(gold, number, [title for title, _ in texts])))
    return Dataset(pool, asked)


def _read_natural_rag(folder: Path, name: str) -> Dataset:
    entries, samples = (_read_lines(folder / name / file) for file in ("corpus.jsonl", "questions.jsonl"))
    pool = [Passage(entry["text"], id=entry["doc_id"], title=entry["title"]) for entry in entries]
    ids = {passage.id for passage in pool}
    asked = []
    for number, sample in enumerate(samples):
        gold = [id if id in ids else None for id in sample["gold_doc_ids"]]
        asked.append(Asked(sample["question"], _require_gold(gold, number, sample["gold_doc_ids"])))
    return Dataset(pool, asked)


def _read_lines(file: Path) -> list[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _require_gold(ids: list[str | None], number: int, names: list[str]) -> list[str]:
    """Return the distinct ids of the gold passages of a question.

    Raises:
        InvalidInput: There is no gold passage, or one is not in the corpus.
    """
    missing = [name for id, name in zip(ids, names, strict=True) if id is None]
    if missing or not ids:
        raise InvalidInput(f"gold passages of question {number} are not in the corpus, got {missing!r:.200}.")
    return list(dict.fromkeys(id for id in ids if id is not None))


def gold_texts(sample: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield title and text of each gold passage, from supporting facts or from paragraphs marked as supporting."""
    if "supporting_facts" in sample:
        titles = {title for title, *_ in sample["supporting_facts"]}
        yield from ((title, " ".join(sentences)) for title, sentences in sample["context"] if title in titles)
    else:
        for paragraph in sample["paragraphs"]:
            if paragraph["is_supporting"]:
                yield paragraph["title"], paragraph.get("paragraph_text") or paragraph["text"]


def identity(title: str, text: str) -> tuple[str, str]:
    """Return title and text without whitespace: some files join sentences with blanks and some without."""
    return "".join(title.split()), "".join(text.split())


def methods(lm: LanguageModel, pool: list[Passage]) -> Iterable[tuple[str, Callable[[], Callable[[str], list[str]]]]]:
    """Yield names, and functions that index the pool and return a function from a question to ids."""
    yield "BM25", lambda: _LexicalRanking(pool)
    kinds: list[tuple[LinkName, ...]] = [("titles",), ("titles", "names")]
    for kind in kinds:
        yield f"path search, links by {' and '.join(kind)}", partial(_PathRanking, lm, pool, kind)


class _LexicalRanking:
    def __init__(self, pool: list[Passage]) -> None:
        self._ids = [passage.id for passage in pool]
        self._index = BM25Index([passage.titled_text for passage in pool])

    def __call__(self, question: str) -> list[str]:
        return [self._ids[i] for i in top(self._index.scores(question), DEPTH)]


class _PathRanking:
    def __init__(self, lm: LanguageModel, pool: list[Passage], kinds: tuple[LinkName, ...]) -> None:
        self._search = PathSearch(PromptRank(lm), pool, links=named_links(kinds))

    def __call__(self, question: str) -> list[str]:
        return [item.passage.id for item in self._search.search(question)]


def figures(asked: list[Asked], rankings: list[list[str]]) -> list[str]:
    """Return recall as the mean share of gold, then the share of questions with all gold, in percent."""
    pairs = list(zip(asked, rankings, strict=True))
    return [
        *(f"{100 * mean_recall(asked, rankings, k):.1f}" for k in SHARES),
        *(f"{100 * _mean(recall_all(ids, item.gold, k) for item, ids in pairs):.1f}" for k in CUTS),
    ]


def mean_recall(asked: list[Asked], rankings: list[list[str]], k: int) -> float:
    """Return the mean share of gold passages among the first k."""
    return _mean(recall(ids, item.gold, k) for item, ids in zip(asked, rankings, strict=True))


def hop_table(asked: list[Asked], rankings_by_method: dict[str, list[list[str]]]) -> Table:
    """Return recall@5 by number of gold passages, and its mean in the mix of HippoRAG 2's thousand."""
    counts = {n: sum(len(item.gold) == n for item in asked) for n in MUSIQUE_MIX}
    table = Table(
        "method", *(f"{n} gold, {count} questions (%)" for n, count in counts.items()),
        "in the mix of HippoRAG 2's thousand (%)", title="recall@5 by number of gold passages",
    )  # fmt: skip
    for method, rankings in rankings_by_method.items():
        recalls = {n: mean_recall(*_with_gold(asked, rankings, n), 5) for n in MUSIQUE_MIX if counts[n]}
        weighted = sum(MUSIQUE_MIX[n] * value for n, value in recalls.items())
        table.add_row(
            method, *(f"{100 * recalls[n]:.1f}" if n in recalls else "" for n in MUSIQUE_MIX),
            f"{100 * weighted:.1f}" if len(recalls) == len(MUSIQUE_MIX) else "",
        )  # fmt: skip
    return table


def _with_gold(asked: list[Asked], rankings: list[list[str]], n: int) -> tuple[list[Asked], list[list[str]]]:
    """Return the questions with n gold passages and their rankings."""
    pairs = [(item, ids) for item, ids in zip(asked, rankings, strict=True) if len(item.gold) == n]
    return [item for item, _ in pairs], [ids for _, ids in pairs]


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / max(len(numbers), 1)


def size(search: object) -> str:
    """Return the megabytes of a pickled index, or "?" if it cannot be pickled."""
    try:
        return f"{len(pickle.dumps(search)) / 1e6:.1f}"
    except (TypeError, AttributeError, pickle.PicklingError):
        return "?"
