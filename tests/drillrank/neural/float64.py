"""The yardstick: transformers alone in float64, one sequence at a time: no padding, batch, cache or shared prefix.

The golden scores (`golden.py`) hold transformers itself to an implementation that shares no code with it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from scipy.special import log_softmax
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer, PreTrainedModel


class Network:
    """A model in float64; `config` is its configuration as a dictionary."""

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = copy.deepcopy(model).double().eval()
        self.config = model.config.to_dict()

    def logits(self, ids: Sequence[int], encoder_ids: Sequence[int] = ()) -> np.ndarray:
        """Behind each id."""
        inputs = {"decoder_input_ids": ids, "input_ids": encoder_ids} if encoder_ids else {"input_ids": ids}
        with torch.inference_mode():
            found = self.model(**{name: torch.tensor([own]) for name, own in inputs.items()}, use_cache=False)
        return found.logits[0].numpy()


def of_ids(
    network: Network,
    before: Sequence[int],
    target: Sequence[int],
    encoder_ids: Sequence[int] = (),
    temperature: float = 1,
) -> np.ndarray:
    """Log-probability of each target id after the ids in front of it."""
    logits = network.logits([*before, *target][:-1], encoder_ids)[len(before) - 1 :]
    return log_softmax(logits / temperature, axis=-1)[np.arange(len(target)), target]


class Yardstick:
    """A saved model and its tokenizer."""

    def __init__(self, folder: Path) -> None:
        encodes = AutoConfig.from_pretrained(folder).is_encoder_decoder
        self.network = Network((AutoModelForSeq2SeqLM if encodes else AutoModelForCausalLM).from_pretrained(folder))
        self.tokenizer = AutoTokenizer.from_pretrained(folder)

    def __call__(self, context: str, target: str, *, include_eos: bool, temperature: float = 1) -> np.ndarray:
        """Log-probability of each token of the target after the context; neither may hold control tokens."""
        end = [self.tokenizer.eos_token_id] if include_eos else []
        if self.network.config.get("is_encoder_decoder"):
            encoded = self.tokenizer(target, return_special_tokens_mask=True)
            ids, added = encoded["input_ids"], encoded["special_tokens_mask"]
            before = [self.network.config["decoder_start_token_id"], *ids[: added.index(0)]]
            labels = [i for i, special in zip(ids, added, strict=True) if not special]
            return of_ids(self.network, before, labels + end, self.tokenizer(context)["input_ids"], temperature)
        blank = "" if context[-1:].isspace() or target[:1].isspace() else " "
        encoded = self.tokenizer(context + blank + target, return_offsets_mapping=True)
        first = sum(last <= len(context) for _, last in encoded["offset_mapping"])
        ids = encoded["input_ids"]
        return of_ids(self.network, ids[:first], ids[first:] + end, (), temperature)
