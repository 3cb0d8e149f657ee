"""A corpus and its questions on a Ray cluster: views of many documents, scores of many (question, candidates) rows.

Ray distributes, retries and holds back; each actor makes its splitter, or loads its model, once.

    import ray
    from corpus import Scorer, Views

    documents = ray.data.read_text("papers/", include_paths=True).rename_columns({"text": "page_content"})
    pieces = documents.map_batches(Views, compute=ray.data.ActorPoolStrategy(size=8), batch_size=16)
    pieces.write_parquet("pieces/")

    rows = ray.data.read_json("questions.jsonl")  # a question and its candidates in each row
    rows.map_batches(Scorer, fn_constructor_kwargs={"model": "hf:google/flan-t5-base"}, num_gpus=1, batch_size=32,
                     compute=ray.data.ActorPoolStrategy(size=4)).write_parquet("scores/")

LlamaIndex has a pipeline of its own: `RayIngestionPipeline` takes `MultiViewNodeParser` as it is.
"""

from __future__ import annotations

import json
from typing import Any

from langchain_core.documents import Document

from drillrank import UPR, load_language_model
from langchain_ext import MultiViewTextSplitter

Batch = dict[str, Any]  # columns by name


class Views:
    """Rows of documents (`page_content`; `path` or `id`, if there is one) become rows of their sections' views.

    Args:
        settings: Of `MultiViewTextSplitter`.
    """

    def __init__(self, **settings: Any) -> None:
        self._splitter = MultiViewTextSplitter(**settings)

    def __call__(self, batch: Batch) -> Batch:
        """Columns `id`, `page_content`, and `metadata` as JSON, which any store reads back."""
        columns = {name: list(values) for name, values in batch.items() if name in ("id", "path")}
        documents = [
            Document(
                id=columns["id"][row] if "id" in columns else None,
                page_content=text,
                metadata={"source": columns["path"][row]} if "path" in columns else {},
            )
            for row, text in enumerate(batch["page_content"])
        ]
        pieces = self._splitter.split_documents(documents)
        return {
            "id": [piece.id for piece in pieces],
            "page_content": [piece.page_content for piece in pieces],
            "metadata": [json.dumps(piece.metadata) for piece in pieces],
        }


class Scorer:
    """Adds `scores` to rows with a `question` and its `candidates`: one per candidate, in the same order.

    The model scores all rows of a batch together.

    Args:
        model: A specification. Save a fitted embedded model and pass `"unigram:<directory>"`. Without fitting, the
            score of a passage depends slightly on the other candidates.
        options: Options of the model, such as `dtype`.
    """

    def __init__(self, model: str = "unigram", **options: Any) -> None:
        self._ranker = UPR(load_language_model(model, **options))

    def __call__(self, batch: Batch) -> Batch:
        """The batch with scores, mean log-likelihoods of the question's tokens."""
        candidates = [list(some) for some in batch["candidates"]]
        rankings = self._ranker.rank_many(list(batch["question"]), candidates)
        in_order = [sorted(ranking, key=lambda item: item.details["position"]) for ranking in rankings]
        return {**batch, "candidates": candidates, "scores": [[item.score for item in ranking] for ranking in in_order]}
