"""What every Hugging Face model is loaded with here: device, precision, and how much it can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def best_device() -> str:
    """`"cuda"`, `"mps"` or `"cpu"`: the first that is there."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def best_dtype(device: torch.device) -> torch.dtype:
    """bfloat16 where the device computes in it fast, else float32."""
    import torch

    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
    if device.type == "cpu" and torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return torch.bfloat16
    return torch.float32


def longest_input(config: Any, tokenizer: Any) -> int | None:
    """Tokens of the longest input that the model was made for, special ones included; None if it does not say."""
    limits = [getattr(config, name, None) for name in ("max_position_embeddings", "n_positions")]
    limits.append(tokenizer.model_max_length if config.is_encoder_decoder else None)
    known = [limit for limit in limits if isinstance(limit, int) and 0 < limit < 10_000_000]
    return min(known) if known else None


def longest_target(config: Any) -> int | None:
    """Positions of an encoder-decoder's target, special tokens included; None if it does not count them."""
    if not config.is_encoder_decoder:
        return None
    encoder: int | None = getattr(config, "max_position_embeddings", None)
    decoder: int | None = getattr(config, "max_decoder_position_embeddings", encoder)
    return decoder
