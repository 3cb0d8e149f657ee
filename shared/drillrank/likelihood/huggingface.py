"""Any Hugging Face language model: loaded at the first use, from a model id or a directory."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from drillrank.errors import InvalidInput, require
from drillrank.likelihood.loading import (
    best_device,
    best_dtype,
    check_predicts,
    check_vocabulary,
    longest_input,
    pretrained,
    told,
)
from drillrank.likelihood.local import LocalModel
from drillrank.likelihood.torch_threads import require_torch, settle_threads

if TYPE_CHECKING:
    from drillrank.likelihood.torch_engine import TorchEngine

logger = logging.getLogger(__name__)

_DTYPES = ("auto", "float32", "bfloat16", "float16")


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

    Scores are natural log-probabilities per token of the model's own vocabulary.

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
    ) -> None:
        if dtype not in _DTYPES:
            raise InvalidInput(f"dtype is one of {', '.join(_DTYPES)}; not {dtype!r}.")
        require_torch("hf")
        require("transformers", "hf")
        model_kwargs = dict(model_kwargs or {})
        super().__init__(name, locals())

    def _load(self) -> TorchEngine:
        import torch
        import transformers

        from drillrank.likelihood.causal import CausalEngine
        from drillrank.likelihood.numerics import prepare
        from drillrank.likelihood.seq2seq import Seq2SeqEngine
        from drillrank.likelihood.text_tokenizer import TextTokenizer

        settle_threads()
        options = self._options
        source = {"revision": options["revision"], "trust_remote_code": options["trust_remote_code"]}
        with told(f"{self._name!r} is no model that can be loaded"):
            config = transformers.AutoConfig.from_pretrained(self._name, **source)
            named = transformers.AutoTokenizer.from_pretrained(self._name, **source)
            tokenizer = TextTokenizer(named)
        device = torch.device(options["device"] or best_device())
        dtype = getattr(torch, options["dtype"]) if options["dtype"] != "auto" else best_dtype(device)
        kind = transformers.AutoModelForSeq2SeqLM if config.is_encoder_decoder else transformers.AutoModelForCausalLM
        arguments = {"use_safetensors": True, **source, **options["model_kwargs"]}
        model = pretrained(kind, self._name, config=config, dtype=dtype, **arguments).to(device)
        check_vocabulary(self._name, tokenizer.text_tokens, model.get_input_embeddings().weight.shape[0])
        check_predicts(model, self._name)
        prepare(model)
        logger.info("Loaded %s on %s in %s.", self._name, device, dtype)
        if device.type == "cpu":
            logger.info("On a CPU, CTranslate2 in int8 is faster: drillrank.likelihood.conversion.convert.")
        engine = Seq2SeqEngine if config.is_encoder_decoder else CausalEngine
        return engine(
            model,
            tokenizer,
            eos_id=tokenizer.eos_id,
            window=options["max_length"] or longest_input(config, named),
            batch_tokens=options["batch_tokens"],
        )
