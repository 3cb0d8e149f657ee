"""Meaning without torch: a model2vec model distilled from MiniLM, as `m2v:` behind nothing and beside words alone.

Distilled as model2vec does it: every token of the vocabulary is embedded by itself, the vectors are reduced to their
principal components, and weighted by how rare the token is (Zipf's law: the vocabulary is in the order of frequency).
Candidates are BM25's first 20, and the union of BM25's and MiniLM's first 20 (`both`), which holds what words miss.
κ may be chosen on the first half of each data set; the second half is for the figures.
"""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from drillrank import UPR, Passage, load_language_model
from drillrank.evaluation.metrics import hit
from drillrank.likelihood.encoder import SentenceVectors
from drillrank.likelihood.encoders import Model2VecEncoder
from drillrank.passages import Ranking
from drillrank.vectors import top

from .data import read, rerank_pool
from .measure import gain, medians
from .minilm import minilm, minilm_folder

DIMENSIONS = 256
SIF = 1e-4  # Arora et al. (2017)
DEPTH = 20
SEED = 40
KAPPAS = (5.0, 10.0, 20.0, 40.0)


def distilled(folder: Path, into: Path) -> None:
    """Write a model2vec model of the encoder in a folder."""
    import torch
    import transformers
    from model2vec import StaticModel

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    start, end = tokenizer.cls_token_id, tokenizer.sep_token_id
    rows = []
    with torch.inference_mode():
        for first in range(0, len(tokenizer), 1024):
            tokens = torch.arange(first, min(first + 1024, len(tokenizer)))
            ids = torch.stack([torch.full_like(tokens, start), tokens, torch.full_like(tokens, end)], dim=1)
            rows.append(model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state.mean(dim=1).numpy())
    vectors = np.concatenate(rows)
    centred = vectors - vectors.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    reduced = centred @ directions[:, ::-1][:, :DIMENSIONS]
    chances = 1 / np.arange(2, len(reduced) + 2)
    weights = SIF / (SIF + chances / chances.sum())
    table = (reduced * weights[:, None]).astype(np.float16)
    StaticModel(table, tokenizer.backend_tokenizer, normalize=True).save_pretrained(into)


def main(questions: int | None = None, vectors: str | None = None) -> None:
    """Print top-1 on NQ and SQuAD, and what it takes.

    Args:
        questions: Of each data set, drawn with a seed; None takes all.
        vectors: Folder of MiniLM's vectors; None keeps none.
    """
    embed = minilm()
    table = Table("data", "candidates", "ranked by", "1st half, top-1", "2nd half, top-1", "top-3", "Δ1 to unigram")
    with TemporaryDirectory() as temporary:
        static = Path(temporary) / "static"
        distilled(minilm_folder(), static)
        for data in ("nq", "squad"):
            asked = read(f"rerank/{data}")
            drawn = range(len(asked)) if questions is None else random.Random(SEED).sample(range(len(asked)), questions)
            second = np.array([place >= len(asked) / 2 for place in drawn])
            asked = [asked[place] for place in drawn]
            pool = rerank_pool(data)
            texts = [passage.titled_text for passage in pool]
            known = SentenceVectors(embed, Path(vectors or temporary) / "minilm")
            known.index(texts)
            cosines = known.of([row["question"] for row in asked]) @ known.of(texts).T
            models = {"unigram": load_language_model("unigram").fit(texts)}
            for kappa in (*KAPPAS, "fit"):
                models[f"m2v, κ {kappa}"] = load_language_model(f"m2v:{static}", kappa=kappa).fit(texts)
            models["unigram+m2v"] = load_language_model(f"unigram+m2v:{static}").fit(texts)
            for candidates, lists in _candidates(asked, pool, cosines).items():
                words: npt.NDArray[np.float64] = np.zeros((0, 2))
                for name, model in models.items():
                    at = _hits(asked, UPR(model, prior=None).rank_many([row["question"] for row in asked], lists))
                    words = at if name == "unigram" else words
                    figures = (at[~second, 0], at[second, 0], at[second, 1])
                    means = (f"{values.mean():.3f}" for values in figures)
                    change = gain((at - words)[second, 0])
                    table.add_row(f"{data}, {len(asked)}", candidates, name, *means, change)
        encode = Model2VecEncoder(str(static))
        seconds = medians({"": lambda: encode(texts[:1000])}, repeats=3)[""]
        size = sum(file.stat().st_size for file in static.iterdir())
    Console(width=160).print(table)
    print(f"{size / 1e6:.0f} MB; 1,000 passages of SQuAD are embedded in {seconds:.2f} s.")


def _candidates(asked: list[dict[str, Any]], pool: list[Passage], cosines: Any) -> dict[str, list[list[Passage]]]:
    by_id = {passage.id: passage for passage in pool}
    by_words = [[by_id[id_] for id_ in row["bm25_top"][:DEPTH]] for row in asked]
    by_meaning = [[pool[place] for place in top(row, DEPTH)] for row in cosines]
    pairs = zip(by_words, by_meaning, strict=True)
    return {"BM25": by_words, "both": [list({p.id: p for p in (*one, *other)}.values()) for one, other in pairs]}


def _hits(asked: list[dict[str, Any]], rankings: list[Ranking[Passage]]) -> npt.NDArray[np.float64]:
    """Whether the gold passage is the first, and among the first three, shape (questions, 2)."""
    hits = [
        [hit([item.passage.id for item in ranking], row["gold"], k) for k in (1, 3)]
        for row, ranking in zip(asked, rankings, strict=True)
    ]
    return np.array(hits, dtype=np.float64)
