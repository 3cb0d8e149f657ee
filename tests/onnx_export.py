"""Export a sentence-transformers model to ONNX, for tests and benchmarks."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

CONFIGURATION = (
    "tokenizer.json",
    "config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
)


def export_encoder(directory: Path, into: Path, *, int8: bool = False) -> Path:
    """Write `model.onnx` and the configuration files of an encoder into a new directory.

    Args:
        directory: A sentence-transformers model.
        into: The new directory.
        int8: Whether to quantize the weights to 8 bits, each channel with its own scale. With one scale per matrix, the
            vectors of MiniLM have a cosine of .95 to the original ones, in place of .99.
    """
    import transformers

    _copy_configuration(directory, into)
    network = transformers.AutoModel.from_pretrained(directory, attn_implementation="eager")
    _export(network, into / "model.onnx", "last_hidden_state")
    if int8:
        from onnxruntime.quantization import QuantType, quantize_dynamic

        quantize_dynamic(into / "model.onnx", into / "model.int8", weight_type=QuantType.QInt8, per_channel=True)
        (into / "model.int8").replace(into / "model.onnx")
    return into


def export_cross_encoder(directory: Path, into: Path) -> Path:
    """Write `onnx/model.onnx` and the configuration files of a cross-encoder into a new directory, for fastembed."""
    import transformers

    _copy_configuration(directory, into)
    (into / "onnx").mkdir()
    network = transformers.AutoModelForSequenceClassification.from_pretrained(directory, attn_implementation="eager")
    _export(network, into / "onnx/model.onnx", "logits")
    return into


def _copy_configuration(directory: Path, into: Path) -> None:
    for name in CONFIGURATION:
        if (directory / name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(directory / name, into / name)


def _export(network: Any, file: Path, output_name: str) -> None:
    """Write a transformer with positional inputs and one of its outputs."""
    import torch

    ids = torch.ones((2, 8), dtype=torch.int64)
    names = ["input_ids", "attention_mask"] + ["token_type_ids"] * (network.config.model_type == "bert")
    axes = {name: {0: "texts", 1: "tokens"} for name in [*names, output_name]}

    class OneOutput(torch.nn.Module):
        """The transformer with positional inputs and one output."""

        def __init__(self) -> None:
            super().__init__()
            self.network = network.eval()

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            return getattr(self.network(**dict(zip(names, inputs, strict=True))), output_name)

    inputs = tuple(torch.zeros_like(ids) if name == "token_type_ids" else ids for name in names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            OneOutput(), inputs, str(file), input_names=names, output_names=[output_name],
            dynamic_axes=axes, opset_version=17, dynamo=False,
        )  # fmt: skip
