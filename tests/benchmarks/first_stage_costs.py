"""What the first stage as prior and the token of meaning cost: milliseconds a question, bytes a passage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.table import Table

from drillrank import UPR, Passage, load_language_model
from drillrank.likelihood import UnigramModel

from .measure import medians
from .minilm import Embed

BATCH = 10  # questions of a round; the next round asks others, so that no question's vector is at hand
ENCODING = "  of which encoding the question"
VARIANTS = {"UPR": None, "UPR, retrieval": "retrieval", "st": None, "st, retrieval": "retrieval"}


def costs(
    dataset: str,
    queries: Sequence[str],
    candidates: Sequence[tuple[list[Passage], list[float]]],
    texts: Sequence[str],
    encoder: Path,
    embed: Embed,
    vectors: Path,
) -> Table:
    """The table, medians side by side.

    Args:
        dataset: What the questions are called.
        queries: All of them.
        candidates: Of each question, with the first stage's scores.
        texts: The pool, on which the models are fitted.
        encoder: Folder of the sentence encoder.
        embed: The encoder as a function.
        vectors: Folder with the vectors of the pool.
    """

    def variant(name: str) -> UPR:
        kind = f"st:{encoder}" if name.startswith("st") else "unigram"
        options = {"directory": vectors} if name.startswith("st") else {}
        return UPR(load_language_model(kind, **options).fit(texts), prior=VARIANTS[name])  # type: ignore[arg-type]

    def rounds(ranker: UPR, scored: bool) -> Callable[[], object]:
        numbers = count()

        def run() -> None:
            start = next(numbers) * BATCH
            for place in range(start, start + BATCH):
                passages, scores = candidates[place % len(queries)]
                query = queries[place % len(queries)]
                ranker.rank(query, passages, scores=scores if scored else None)

        return run

    def encoding() -> Callable[[], object]:
        numbers = count()
        return lambda: [embed([queries[next(numbers) % len(queries)]]) for _ in range(BATCH)]

    runs = {name: rounds(variant(name), VARIANTS[name] is not None) for name in VARIANTS}
    runs[ENCODING] = encoding()
    seconds = medians(runs)
    of_words, of_vectors = _saved_words(texts) / len(texts), _size(vectors) / len(texts)
    depth = len(candidates[0][0])
    table = Table(
        "ranked by", "ms a question", "bytes a passage", title=f"{dataset}: {depth} candidates, {len(texts):,} passages"
    )
    for name in VARIANTS:
        kept = of_words + (of_vectors if name.startswith("st") else 0)
        table.add_row(name, f"{1000 * seconds[name] / BATCH:.1f}", f"{kept:,.0f}")
    table.add_row(ENCODING, f"{1000 * seconds[ENCODING] / BATCH:.1f}", "")
    return table


def _saved_words(texts: Sequence[str]) -> int:
    with TemporaryDirectory() as folder:
        UnigramModel().fit(texts).save(folder)
        return _size(Path(folder))


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
