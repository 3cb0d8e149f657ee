"""What every Hugging Face model is loaded with here: device, precision, what it can read, whether it is whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from drillrank.errors import DrillrankError, InvalidInput

if TYPE_CHECKING:
    import torch


@contextmanager
def told(message: str, advice: str = "") -> Iterator[None]:
    """Tell what a library raises over a model's files, which may be anything, as one error of ours.

    Args:
        message: What cannot be done; the library's words follow.
        advice: Stands after them.

    Raises:
        InvalidInput: the block raised an error that is not ours.

    >>> with told("'m' is no model that can be loaded"):
    ...     {}["weight"]
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: 'm' is no model that can be loaded: KeyError: 'weight'.
    """
    try:
        yield
    except DrillrankError:
        raise
    except Exception as error:
        kind = "" if isinstance(error, OSError | ValueError) else f"{type(error).__name__}: "
        raise InvalidInput(f"{message}: {kind}{str(error).rstrip('.')}. {advice}".rstrip()) from error


def pretrained(kind: Any, name: str, **options: Any) -> Any:
    """A model of transformers in evaluation mode, with every weight from the checkpoint: others would be random.

    Args:
        kind: A class with `from_pretrained`.
        name: Model id or directory.
        options: Passed on.

    Raises:
        InvalidInput: the weights cannot be read, or some are missing.
    """
    with told(
        f"The weights of {name!r} cannot be loaded",
        'Only safetensors files are read, whole ones; model_kwargs={"use_safetensors": False} reads pickled weights, '
        "which can run code: trust their source.",
    ):
        model, report = kind.from_pretrained(name, output_loading_info=True, **options)
    parameters = dict(model.named_parameters())
    missing = sorted(parameters.keys() & report["missing_keys"])
    if missing:
        raise InvalidInput(
            f"{name!r} lacks {len(missing)} weights of a {type(model).__name__}, which would be random, such as "
            f"{missing[0]}: the checkpoint is incomplete, or of another kind of model."
        )
    return model.eval()


def check_predicts(model: Any, name: str) -> None:
    """Reject what has no likelihood of a target, token by token.

    Raises:
        InvalidInput: an encoder-decoder that does not say where targets begin; a decoder that sees the tokens it is to
            predict, as a model for masked tokens does.
    """
    import torch

    if model.config.is_encoder_decoder:
        if not isinstance(getattr(model.config, "decoder_start_token_id", None), int):
            raise InvalidInput(f"config.json of {name!r} has no decoder_start_token_id, with which its targets begin.")
        return
    first, one, other = torch.linspace(0, model.get_input_embeddings().weight.shape[0] - 1, 5).long()[1:4].tolist()
    ids = torch.tensor([[first, one, one], [first, other, other]], device=model.device)
    with torch.inference_mode():
        said = model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits[:, 0].float()
    rounding = 8 * torch.finfo(model.dtype).eps
    if (said[0] - said[1]).abs().max() > max(rounding, 1e-5) * said.abs().max():
        raise InvalidInput(
            f"{name!r} is no causal language model: what it says at a token depends on the tokens that follow, which "
            "it is to predict. Models for masked tokens, such as BERT, have no likelihood of a question."
        )


def check_vocabulary(name: str, tokens: int, known: int) -> None:
    """Reject the tokenizer of another model.

    Args:
        name: Of the model.
        tokens: That the tokenizer makes of text.
        known: That the model has.

    Raises:
        InvalidInput: the model has fewer.
    """
    if tokens > known:
        raise InvalidInput(f"The tokenizer of {name!r} has {tokens} tokens and the model {known}: it is another's.")


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
