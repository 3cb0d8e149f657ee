"""What many passages cost, and how each cost grows.

For the corpus alone, passages are put together from sentences of the dev pools and made-up rare words by Zipf's law;
questions are 3 to 15 successive words of dev questions. Paths and views are measured on made-up linked passages: path
search holds everything in memory, or keeps its collection in a corpus; three views are indexed in memory. Each
measurement runs in a process of its own. Times of the CPU are hardly changed by others on the machine.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain, islice
from pathlib import Path

import numpy as np

from drillrank import Corpus, Passage, PathSearch, PromptRank
from drillrank.views import VIEWS, MultiViewIndex, ViewText
from tests.linked_passages import linked_passages, questions, word

from .data import multihop_pool, read, rerank_pool
from .growth import print_growth, sizes_of
from .measure import resident

SIZES = (10_000, 30_000, 100_000)
ASKED = 20
ASKED_OF_THE_CORPUS = 300
WAYS = ("corpus", "paths, in memory", "paths, corpus", "three views, in memory")
COSTS = ("index, CPU s", "bytes a passage", "peak RSS, MB", "on disk, MB", "CPU ms a question")
STEP = 10_000  # passages that are added at once
DEPTH = 100
MULTIHOP = {"hotpotqa": ["hotpotqa"], "2wiki": ["2wiki"], "musique": ["musique", "musique_tune"]}
_RARE = 200_000  # made-up words


def main(questions: int = ASKED, data: str = ",".join(map(str, SIZES))) -> None:
    """Print the table; `data` may name other sizes, with commas."""
    print_growth("Many passages", __name__, WAYS, sizes_of(data), questions)


def pools() -> Iterator[tuple[str, list[Passage], list[str]]]:
    """Name, passages and questions of each dev pool."""
    for name, files in MULTIHOP.items():
        yield name, multihop_pool(name), [item["question"] for file in files for item in read(f"multihop/{file}")]
    for name in ("squad", "nq"):
        yield name, rerank_pool(name), [item["question"] for item in read(f"rerank/{name}")]
    for name in ("qasper", "qasper_tune"):
        papers = read(f"longdoc/{name}")
        passages = [
            Passage(text, id=f"{paper['id']}/{number}/{place}", title=" > ".join(section["path"]))
            for paper in papers
            for number, section in enumerate(paper["sections"])
            for place, text in enumerate(section["paragraphs"])
        ]
        yield name, passages, [item["question"] for paper in papers for item in paper["questions"]]


def recombined(size: int) -> Iterator[Passage]:
    """Passages of two to six sentences of the dev pools with eight made-up words, two of them the title."""
    texts = [text for _, passages, _ in pools() for text in (passage.text for passage in passages)]
    sentences = [sentence for text in texts for sentence in re.split(r"(?<=[.!?]) +", text) if sentence]
    words, cumulative = [word(rank) for rank in range(_RARE)], list(accumulate((n + 1) ** -1.07 for n in range(_RARE)))
    drawn = random.Random(0)
    for number in range(size):
        first, *others = drawn.choices(sentences, k=drawn.randint(2, 6))
        rare = drawn.choices(words, cum_weights=cumulative, k=8)
        yield Passage(" ".join([first, *rare[2:], *others]), id=f"p{number}", title=" ".join(rare[:2]).title())


def shortened_questions(count: int) -> list[str]:
    """So many of 3 to 15 successive words of dev questions."""
    drawn = random.Random(1)
    asked = [question.split() for _, _, of_pool in pools() for question in of_pool]
    cut = []
    for words in drawn.choices(asked, k=count):
        length = drawn.randint(3, 15)
        start = drawn.randrange(max(1, len(words) - length + 1))
        cut.append(" ".join(words[start : start + length]))
    return cut


def _measured(way: str, size: int, asked: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "corpus.db"
        return _corpus_costs(file, size) if way == WAYS[0] else _path_costs(way, size, asked, file)


def _corpus_costs(file: Path, size: int) -> dict[str, float]:
    asked = json.dumps(shortened_questions(ASKED_OF_THE_CORPUS))
    corpus, passages = Corpus(file), recombined(size)
    first = next(passages)  # it reads the dev pools
    before = _resident_before()
    passages, seconds = chain([first], passages), list[float]()
    while some := list(islice(passages, STEP)):
        started = time.process_time()
        corpus.add(some)
        seconds.append(time.process_time() - started)
    added = (resident("VmHWM") - before) / 1000
    ask = [sys.executable, "-m", __spec__.name, str(file)]
    asking = subprocess.run(ask, check=True, stdout=subprocess.PIPE, input=asked.encode())
    per_passage = file.stat().st_size / size
    last = float(np.mean(seconds[-5:]))
    costs = {"first 10,000, CPU s": seconds[0], "last 10,000, CPU s": last, "bytes a passage": per_passage}
    return {**costs, "RSS that adding adds, MB": added, **json.loads(asking.stdout)}


def _resident_before() -> int:
    """Resident memory in kB; the peak counts from here on."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return resident()


def _asked(file: str) -> dict[str, float]:
    """What questions cost in a process that does nothing else."""
    asked, corpus, before = json.load(sys.stdin), Corpus(file), _resident_before()
    cpu, wall = [], []
    for question in asked:
        started, clock = time.process_time(), time.perf_counter()
        corpus.search(question, DEPTH)
        cpu.append(1000 * (time.process_time() - started))
        wall.append(1000 * (time.perf_counter() - clock))
    named = {
        f"{kind} ms a question, {share} %": float(np.percentile(times, share))
        for kind, times in (("CPU", cpu), ("wall", wall))
        for share in (50, 95, 100)
    }
    peak = resident("VmHWM")
    return {**named, "RSS that questions add, MB": (peak - before) / 1000, "peak RSS while asking, MB": peak / 1000}


def _path_costs(way: str, size: int, asked: int, file: Path) -> dict[str, float]:
    some = list(islice(linked_passages(size), 2_000))
    asking = questions(some, asked + 1)
    before = 1024 * resident()
    started = time.process_time()
    ask = _index(way, size, file)
    seconds = time.process_time() - started
    on_disk = file.stat().st_size if file.exists() else 0
    ask(asking[0])  # what is made once
    held = on_disk or 1024 * resident() - before
    started = time.process_time()
    for question in asking[1:]:
        ask(question)
    of_question = (time.process_time() - started) / asked
    values = (seconds, held / size, resident("VmHWM") / 1000, on_disk / 1e6, 1000 * of_question)
    return dict(zip(COSTS, values, strict=True))


def _index(way: str, size: int, file: Path) -> Callable[[str], object]:
    passages = linked_passages(size)
    if way == WAYS[1]:
        return PathSearch(PromptRank(), list(passages)).search
    if way == WAYS[2]:
        corpus = Corpus(file)
        corpus.add(passages)
        return PathSearch(PromptRank(), first_stage=corpus).search
    return MultiViewIndex(chunk for passage in passages for chunk in _views(passage)).search


def _views(passage: Passage) -> list[ViewText]:
    """The text, its ten longest words, its first third."""
    words = passage.text.split()
    texts = (passage.titled_text, " ".join(sorted(words, key=len)[-10:]), " ".join(words[: len(words) // 3]))
    return [ViewText(passage.id, view, text) for view, text in zip(VIEWS, texts, strict=True)]


def _run(arguments: Sequence[str]) -> dict[str, float]:
    return _asked(*arguments) if len(arguments) == 1 else _measured(arguments[0], *map(int, arguments[1:]))


if __name__ == "__main__":
    print(json.dumps(_run(sys.argv[1:])))
