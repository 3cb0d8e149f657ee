"""Any Hugging Face language model: loaded at the first use, from a model id or a directory."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from drillrank.errors import InvalidInput, require
from drillrank.likelihood.base import (
    LanguageModel,
    Likelihood,
    NextTokenRequest,
    NextTokens,
    Request,
    TrainedAnswers,
    as_said,
)
from drillrank.likelihood.loading import best_device, best_dtype, longest_input
from drillrank.likelihood.prompt_tokens import fit_to_budgets
from drillrank.likelihood.trained_answers import read_trained_answers
from drillrank.prompts import Evidence

if TYPE_CHECKING:
    from drillrank.likelihood.engine import Engine

logger = logging.getLogger(__name__)

_DTYPES = ("auto", "float32", "bfloat16", "float16")


class HuggingFaceModel(LanguageModel):
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
        if not name:
            raise InvalidInput('"hf:" needs a model id or a directory behind the colon.')
        if dtype not in _DTYPES:
            raise InvalidInput(f"dtype is one of {', '.join(_DTYPES)}; not {dtype!r}.")
        require("torch", "hf")
        require("transformers", "hf")
        self._name = name
        self._options: dict[str, Any] = {
            "device": device,
            "dtype": dtype,
            "batch_tokens": batch_tokens,
            "max_length": max_length,
            "model_kwargs": dict(model_kwargs or {}),
            "revision": revision,
            "trust_remote_code": trust_remote_code,
            "chat": chat,
        }
        self._engine: Engine | None = None
        self._lock = threading.Lock()

    @property
    def spec(self) -> str:
        """`"hf:"` and the model's name."""
        return f"hf:{self._name}"

    @property
    def options(self) -> dict[str, Any]:
        """The options, as given."""
        return dict(self._options)

    @property
    def include_eos_by_default(self) -> bool:
        """True for encoder-decoder models, whose training targets end with the end-of-sequence token."""
        return self.engine.include_eos_by_default

    @property
    def engine(self) -> Engine:
        """The loaded model; loads it if need be."""
        with self._lock:
            if self._engine is None:
                self._engine = self._load()
            return self._engine

    def _log_likelihood(self, requests: Sequence[Request], temperature: float, include_eos: bool) -> list[Likelihood]:
        return self.engine.log_likelihood(as_said(requests, self._options["chat"]), temperature, include_eos)

    @property
    def tells_next_tokens(self) -> bool:
        """True."""
        return True

    def _next_tokens(self, requests: Sequence[NextTokenRequest], logits: bool) -> list[NextTokens]:
        return self.engine.next_tokens(requests, logits)

    @cached_property
    def trained_answers(self) -> TrainedAnswers | None:
        """What the checkpoint's `1_LogitScore/config.json` names, if it has one."""
        return read_trained_answers(self._name, self._options["revision"])

    def first_tokens(self, text: str, count: int) -> str:
        """The longest beginning of a text that has at most `count` tokens, special ones not counted.

        Longest as budgets have it: it has `count` tokens, or more than that with one token more of the text.
        """
        request = Request((Evidence(text, count),), "")
        [fitted] = fit_to_budgets([request], self.engine.tokenizer, None, with_targets=False)
        return fitted.text

    def count_tokens(self, text: str) -> int:
        """Tokens of a text, special tokens not counted."""
        return len(self.engine.tokenizer(text).ids)

    def __getstate__(self) -> dict[str, Any]:
        """Without weights: they are loaded again."""
        return {"name": self._name, "options": self._options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["name"], **state["options"])  # type: ignore[misc]

    def _load(self) -> Engine:
        import torch
        import transformers

        from drillrank.likelihood.causal import CausalEngine
        from drillrank.likelihood.numerics import prepare
        from drillrank.likelihood.seq2seq import Seq2SeqEngine
        from drillrank.likelihood.text_tokenizer import TextTokenizer

        options = self._options
        source = {"revision": options["revision"], "trust_remote_code": options["trust_remote_code"]}
        try:
            config = transformers.AutoConfig.from_pretrained(self._name, **source)
            tokenizer = transformers.AutoTokenizer.from_pretrained(self._name, **source)
        except OSError as error:
            raise InvalidInput(f"{self._name!r} is no model that can be loaded: {error}") from error
        device = torch.device(options["device"] or best_device())
        dtype = getattr(torch, options["dtype"]) if options["dtype"] != "auto" else best_dtype(device)
        kind = transformers.AutoModelForSeq2SeqLM if config.is_encoder_decoder else transformers.AutoModelForCausalLM
        arguments = {"use_safetensors": True, **source, **options["model_kwargs"]}
        try:
            model: Any = kind.from_pretrained(self._name, config=config, dtype=dtype, **arguments)
        except OSError as error:
            raise InvalidInput(
                f"The weights of {self._name!r} cannot be loaded: {error} Only safetensors files are read; "
                'model_kwargs={"use_safetensors": False} reads pickled weights, which can run code: trust their source.'
            ) from error
        model.to(device).eval()
        prepare(model)
        logger.info("Loaded %s on %s in %s.", self._name, device, dtype)
        engine = Seq2SeqEngine if config.is_encoder_decoder else CausalEngine
        return engine(
            model,
            TextTokenizer(tokenizer),
            eos_id=tokenizer.eos_token_id,
            window=options["max_length"] or longest_input(config, tokenizer),
            batch_tokens=options["batch_tokens"],
        )
