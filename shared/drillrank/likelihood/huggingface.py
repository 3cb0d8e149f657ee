"""Any Hugging Face language model: loaded at the first use, from a model id or a directory, whole or not at all."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from drillrank.errors import InvalidInput, invalid_input, require
from drillrank.likelihood.local import LocalModel
from drillrank.likelihood.process import require_torch, settle_threads
from drillrank.likelihood.tokenizer import TextTokenizer

if TYPE_CHECKING:
    import torch

    from drillrank.likelihood.torch_engine import TorchEngine

logger = logging.getLogger(__name__)

_DTYPES = ("auto", "float32", "bfloat16", "float16")
_RESERVED = ("config", "dtype", "torch_dtype", "revision", "trust_remote_code", "output_loading_info")


class HuggingFaceModel(LocalModel["TorchEngine"]):
    """An encoder-decoder or decoder-only language model through transformers.

    Args:
        name: Model id or directory.
        device: `"cuda"`, `"mps"`, `"cpu"` ...; None takes the first of these that is there.
        dtype: Of the weights: `"float32"`, `"bfloat16"`, `"float16"`, or `"auto"`: bfloat16 where the device computes
            in it fast, else float32. The output layer and all probabilities are float32 or wider whatever the rest.
        batch_tokens: Tokens of one batch after padding; None for what suits the device.
        max_length: Longest prompt in tokens, special tokens included; None for the model's own limit. Documents are
            shortened to it, instructions never.
        model_kwargs: Passed to `from_pretrained`.
        revision: Branch, tag or commit of the model.
        trust_remote_code: Whether code that comes with the model may run. Leave it False.
        chat: Whether each prompt is the user's turn of a conversation and what is scored the assistant's, by the
            tokenizer's chat template: for models that were tuned to chat. Rankers of relevance decide for themselves.
        show_progress: Whether a bar on standard error counts what has been read.

    Scores are natural log-probabilities per token of the model's own vocabulary. They do not depend on who else asks.
    Within one call, passages are computed in batches, whose shapes change the last digits: by some 1e-6 a token in
    float32, 1e-2 in bfloat16.

    Raises:
        MissingExtra: torch or transformers is not installed.
        InvalidInput: an option cannot be used.
    """

    kind = "hf"

    def __init__(
        self,
        name: str,
        *,
        device: str | None = None,
        dtype: str = "auto",
        batch_tokens: int | None = None,
        max_length: int | None = None,
        model_kwargs: dict[str, Any] | None = None,
        revision: str | None = None,
        trust_remote_code: bool = False,
        chat: bool = False,
        show_progress: bool = False,
    ) -> None:
        if dtype not in _DTYPES:
            raise InvalidInput(f"dtype is one of {', '.join(_DTYPES)}; not {dtype!r:.200}.")
        model_kwargs = dict(model_kwargs or {})
        if taken := [option for option in _RESERVED if option in model_kwargs]:
            raise InvalidInput(f"model_kwargs cannot hold {', '.join(taken)}: give the model's own options, as dtype=.")
        require_torch("hf")
        require("transformers", "hf")
        super().__init__(name, locals())

    def _load(self) -> TorchEngine:
        import torch
        import transformers

        from drillrank.likelihood.torch_engine import TorchEngine

        settle_threads()
        options = self._options
        source = {"revision": options["revision"], "trust_remote_code": options["trust_remote_code"]}
        with invalid_input(f"{self._name!r:.200} is no model that can be loaded"):
            config = transformers.AutoConfig.from_pretrained(self._name, **source)
            host = transformers.AutoTokenizer.from_pretrained(self._name, **source)
            tokenizer = TextTokenizer(host)
        device = torch.device(options["device"] or best_device())
        dtype = getattr(torch, options["dtype"]) if options["dtype"] != "auto" else best_dtype(device)
        kind = transformers.AutoModelForSeq2SeqLM if config.is_encoder_decoder else transformers.AutoModelForCausalLM
        arguments = {"use_safetensors": True, **source, **options["model_kwargs"]}
        model = pretrained(kind, self._name, config=config, dtype=dtype, **arguments).to(device)
        if tokenizer.text_tokens > (known := model.get_input_embeddings().weight.shape[0]):
            raise InvalidInput(
                f"The tokenizer of {self._name!r:.200} has {tokenizer.text_tokens} tokens and the model {known}: "
                "it is another's."
            )
        _check_predicts(model, self._name)
        logger.info("Loaded %s on %s in %s.", self._name, device, dtype)
        if (
            device.type == "cpu" and config.is_encoder_decoder
        ):  # decoders are as fast in bfloat16, and nearer to float32
            logger.info("On a CPU, CTranslate2 in int8 is faster: drillrank.likelihood.ct2.convert.")
        window = options["max_length"] or longest_input(config, host)
        return TorchEngine(model, tokenizer, window=window, batch_tokens=options["batch_tokens"])


def pretrained(kind: Any, name: str, **options: Any) -> Any:
    """A model of transformers in evaluation mode, with every weight from the checkpoint: others would be random.

    Args:
        kind: A class with `from_pretrained`.
        name: Model id or directory.
        options: Passed on.

    Raises:
        InvalidInput: the weights cannot be read, or some are missing.
    """
    with invalid_input(
        f"The weights of {name!r:.200} cannot be loaded",
        'Only safetensors files are read, whole ones; model_kwargs={"use_safetensors": False} reads pickled weights, '
        "which can run code: trust their source.",
    ):
        model, report = kind.from_pretrained(name, output_loading_info=True, **options)
    parameters = dict(model.named_parameters())
    missing = sorted(parameters.keys() & report["missing_keys"])
    if missing:
        raise InvalidInput(
            f"{name!r:.200} lacks {len(missing)} weights of a {type(model).__name__}, which would be random, such as "
            f"{missing[0]}: the checkpoint is incomplete, or of another kind of model."
        )
    return model.eval()


def _check_predicts(model: Any, name: str) -> None:
    """Reject what has no likelihood of a target, token by token.

    Raises:
        InvalidInput: an encoder-decoder that does not say where targets begin; a decoder that sees the tokens it is to
            predict, as a model for masked tokens does.
    """
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING

    config = model.config
    if config.is_encoder_decoder:
        if not isinstance(getattr(config, "decoder_start_token_id", None), int):
            raise InvalidInput(f"config.json of {name!r:.200} has no decoder_start_token_id, where targets begin.")
        return
    masked = type(config) in MODEL_FOR_MASKED_LM_MAPPING or config.model_type in ("bert-generation", "cpmant", "xlnet")
    causal = any(getattr(config, setting, False) for setting in ("is_decoder", "causal"))
    both_ways = getattr(config.get_text_config(), "use_bidirectional_attention", None) in (True, "all")
    if both_ways or (masked and not causal):
        raise InvalidInput(
            f"{name!r:.200} is no causal language model: a {type(model).__name__} sees the tokens that it is to "
            "predict, as do all models for masked tokens, such as BERT: they have no likelihood of a question."
        )


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
