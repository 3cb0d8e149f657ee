"""Work of a model, counted in rows and tokens of forward passes."""

from __future__ import annotations

from contextlib import contextmanager


@contextmanager
def counted(model):
    """Of each forward pass, while this lasts: rows, tokens that are computed, and tokens whose states they stand on."""
    passes = []

    def count(_module, _args, inputs):
        rows, width = inputs["input_ids"].shape
        cache = inputs.get("cache", inputs.get("past_key_values"))
        passes.append((rows, width, cache.get_seq_length() if cache is not None else 0))

    hook = model.engine.model.register_forward_pre_hook(count, with_kwargs=True)
    try:
        yield passes
    finally:
        hook.remove()
