"""Small changes to a loaded model: the same formulas, in fewer steps or with less rounding."""

from __future__ import annotations

import copy
from typing import Any

import torch
from transformers.activations import GELUTanh, NewGELUActivation

# Their normalisation accepts float32 and hands on the weights' dtype, so the residual stream may be wider than these.
_WIDE_RESIDUALS = ("t5", "mt5", "umt5")


def prepare(model: Any) -> None:
    """Make one step of written-out GELUs; in half precision, keep in float32 what rounding harms most.

    Logits rounded to bfloat16 tie candidates whose scores are close, and a T5's residual stream, rounded after every
    layer, costs more accuracy than its weights do.
    """
    for module in list(model.modules()):
        for name, child in module.named_children():
            if isinstance(child, NewGELUActivation):
                setattr(module, name, GELUTanh())
    if model.dtype == torch.float32:
        return
    model.set_output_embeddings(copy.deepcopy(model.get_output_embeddings()).float())
    if model.config.model_type in _WIDE_RESIDUALS:
        for stack in (model.get_encoder(), model.get_decoder()):
            stack.embed_tokens.register_forward_hook(lambda _module, _inputs, states: states.float())
