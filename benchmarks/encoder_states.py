"""T5 as late interaction: a question to 100 passages whose encoder states are kept, or keys and values of all layers.

Keys and values of the decoder's cross-attention are projections of the encoder's states. They save their matrix
products at each question, and take 2 * layers times the memory. Models are randomly initialised in real shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

import torch
import transformers
from rich.console import Console
from rich.table import Table
from transformers.modeling_outputs import BaseModelOutput

from .neural_operations import executed

N_PASSAGES, PASSAGE_TOKENS, QUESTION_TOKENS = 100, 185, 13
REPEATS = 3
SHAPES: dict[str, dict[str, int]] = {
    "T5-small": {"d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8},
    "T5-base": {"d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_heads": 12},
}


def main() -> None:
    """Print one table."""
    table = Table("shape", "kept", "kB a token", "operations", "processor s", "ratio", title=f"{N_PASSAGES} passages")
    for name, shape in SHAPES.items():
        torch.manual_seed(0)
        config = transformers.T5Config(vocab_size=32128, decoder_start_token_id=0, **shape)
        network = transformers.T5ForConditionalGeneration(config).bfloat16().eval()
        variants = _build_variants(network)
        n_states = shape["d_model"]
        n_projected = 2 * shape["num_layers"] * shape["d_kv"] * shape["num_heads"]
        kilobytes = dict(zip(variants, (0, 2 * n_states / 1000, 2 * n_projected / 1000), strict=True))
        seconds: dict[str, float] = {}
        for variant, run in variants.items():
            operations = executed(run)
            seconds[variant] = _time(run)
            ratio = seconds["nothing"] / seconds[variant]
            row = (f"{kilobytes[variant]:.1f}", f"{operations / 1e9:.0f} G", f"{seconds[variant]:.2f}", f"{ratio:.1f}x")
            table.add_row(name, variant, *row)
    Console(width=100).print(table)


def _build_variants(network: Any) -> dict[str, Callable[[], Any]]:
    """Return what runs for one question: with nothing kept, the encoder's states, and their projections."""
    sources = torch.randint(10, 30_000, (N_PASSAGES, PASSAGE_TOKENS))
    targets = torch.randint(10, 30_000, (N_PASSAGES, QUESTION_TOKENS))
    with torch.inference_mode():
        states = network.get_encoder()(input_ids=sources).last_hidden_state
        encoded = BaseModelOutput(last_hidden_state=states)
        first = network(encoder_outputs=encoded, decoder_input_ids=targets, use_cache=True)
        projections = first.past_key_values.cross_attention_cache

    def run_on_projections() -> Any:
        cache = transformers.EncoderDecoderCache(transformers.DynamicCache(), projections)
        return network(encoder_outputs=encoded, decoder_input_ids=targets, past_key_values=cache, use_cache=True)

    return {
        "nothing": partial(network, input_ids=sources, decoder_input_ids=targets, use_cache=False),
        "states": partial(network, encoder_outputs=encoded, decoder_input_ids=targets, use_cache=False),
        "keys and values": run_on_projections,
    }


def _time(run: Callable[[], Any]) -> float:
    """Return the processor time of the fastest of some runs, which other processes hardly change."""
    best = float("inf")
    with torch.inference_mode():
        for _ in range(REPEATS):
            started = process_time()
            run()
            best = min(best, process_time() - started)
    return best
