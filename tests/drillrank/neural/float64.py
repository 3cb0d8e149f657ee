"""The yardstick: language models in plain numpy and float64, one sequence at a time, no padding, no batch, no cache.

Written from the papers' equations and the layout of the saved weights. It shares no code with transformers but the
tokenizer, and none with the package.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file
from scipy.special import erf, log_softmax, softmax
from transformers import AutoTokenizer

ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    "gelu_new": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}


class Network:
    """A saved model's configuration and weights, and the layers that all families have."""

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, Any]) -> None:
        self.config = config
        self.weights = {name: np.asarray(weight, dtype=np.float64) for name, weight in weights.items()}

    def linear(self, x, name):
        weight = self.weights[f"{name}.weight"]
        if self.config["model_type"] == "gpt2":  # its layers are saved as (in, out)
            weight = weight.T
        return x @ weight.T + self.weights.get(f"{name}.bias", 0)

    def norm(self, x, name):
        """Layer norm, or the root-mean-square norm of families that have no bias there."""
        if f"{name}.bias" in self.weights:
            x = x - x.mean(axis=-1, keepdims=True)
        epsilon = self.config.get("layer_norm_epsilon", self.config.get("rms_norm_eps", 1e-5))
        scaled = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + epsilon)
        return scaled * self.weights[f"{name}.weight"] + self.weights.get(f"{name}.bias", 0)

    def attention(self, q, k, v, bias, *, heads, scaled=True, rotate=lambda x: x):
        """Queries, keys and values of shape (tokens, heads * width); bias of shape (heads or 1, queries, keys)."""
        width = q.shape[1] // heads
        q, k, v = (x.reshape(len(x), -1, width).swapaxes(0, 1) for x in (q, k, v))
        q, k = rotate(q), rotate(k)
        k, v = (np.repeat(x, heads // len(x), axis=0) for x in (k, v))  # grouped queries share keys and values
        scores = q @ k.swapaxes(1, 2) / (math.sqrt(width) if scaled else 1)
        return (softmax(scores + bias, axis=-1) @ v).swapaxes(0, 1).reshape(q.shape[1], -1)


def past(tokens: int, window: int | None = None) -> np.ndarray:
    """Hides what comes later, and what is `window` or more tokens back."""
    back = np.arange(tokens)[:, None] - np.arange(tokens)
    return np.where((back >= 0) & (back < (window or tokens)), 0.0, -np.inf)[None]


def gpt2(net: Network, ids: Sequence[int]) -> np.ndarray:
    c, embedding = net.config, net.weights["transformer.wte.weight"]
    x = embedding[ids] + net.weights["transformer.wpe.weight"][: len(ids)]
    for layer in range(c["n_layer"]):
        name = f"transformer.h.{layer}"
        qkv = np.split(net.linear(net.norm(x, f"{name}.ln_1"), f"{name}.attn.c_attn"), 3, axis=1)
        x = x + net.linear(net.attention(*qkv, past(len(ids)), heads=c["n_head"]), f"{name}.attn.c_proj")
        hidden = ACTIVATIONS[c["activation_function"]](net.linear(net.norm(x, f"{name}.ln_2"), f"{name}.mlp.c_fc"))
        x = x + net.linear(hidden, f"{name}.mlp.c_proj")
    return net.norm(x, "transformer.ln_f") @ embedding.T


def llama(net: Network, ids: Sequence[int]) -> np.ndarray:
    """Llama, Qwen2 (biases for queries, keys and values) and Mistral (a window)."""
    c, embedding = net.config, net.weights["model.embed_tokens.weight"]
    heads, x = c["num_attention_heads"], embedding[ids]
    half = (c.get("head_dim") or c["hidden_size"] // heads) // 2
    angles = np.arange(len(ids))[:, None] * c["rope_parameters"]["rope_theta"] ** (-np.arange(half) / half)

    def rotate(x):  # each pair (i, i + half) of a head turns by an angle that grows with the position
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)], -1)

    bias = past(len(ids), c.get("sliding_window"))
    for layer in range(c["num_hidden_layers"]):
        name = f"model.layers.{layer}"
        y = net.norm(x, f"{name}.input_layernorm")
        qkv = (net.linear(y, f"{name}.self_attn.{part}_proj") for part in "qkv")
        x = x + net.linear(net.attention(*qkv, bias, heads=heads, rotate=rotate), f"{name}.self_attn.o_proj")
        y = net.norm(x, f"{name}.post_attention_layernorm")
        gate = ACTIVATIONS[c["hidden_act"]](net.linear(y, f"{name}.mlp.gate_proj"))
        x = x + net.linear(gate * net.linear(y, f"{name}.mlp.up_proj"), f"{name}.mlp.down_proj")
    return net.norm(x, "model.norm") @ net.weights.get("lm_head.weight", embedding).T


def _projected(net: Network, name: str, x, memory, bias, heads):
    """An attention block of BART and OPT."""
    inputs = {"q": x, "k": memory, "v": memory}
    qkv = (net.linear(y, f"{name}.{part}_proj") for part, y in inputs.items())
    return net.linear(net.attention(*qkv, bias, heads=heads), f"{name}.out_proj")


def opt(net: Network, ids: Sequence[int]) -> np.ndarray:
    c, embedding = net.config, net.weights["model.decoder.embed_tokens.weight"]
    x = embedding[ids] + net.weights["model.decoder.embed_positions.weight"][2 : 2 + len(ids)]  # two rows are reserved
    for layer in range(c["num_hidden_layers"]):
        name = f"model.decoder.layers.{layer}"
        y = net.norm(x, f"{name}.self_attn_layer_norm")
        x = x + _projected(net, f"{name}.self_attn", y, y, past(len(ids)), c["num_attention_heads"])
        hidden = net.linear(net.norm(x, f"{name}.final_layer_norm"), f"{name}.fc1")
        x = x + net.linear(ACTIVATIONS[c["activation_function"]](hidden), f"{name}.fc2")
    return net.norm(x, "model.decoder.final_layer_norm") @ embedding.T


def bart(net: Network, ids: Sequence[int], encoder_ids: Sequence[int]) -> np.ndarray:
    embedding = net.weights["model.shared.weight"]
    states = _bart_stack(net, "encoder", encoder_ids, np.zeros((1, 1, 1)), None)
    states = _bart_stack(net, "decoder", ids, past(len(ids)), states)
    return states @ embedding.T + net.weights["final_logits_bias"]


def _bart_stack(net: Network, side: str, ids: Sequence[int], bias, encoder_states):
    c, name = net.config, f"model.{side}"
    x = net.weights["model.shared.weight"][ids] * (math.sqrt(c["d_model"]) if c["scale_embedding"] else 1)
    x = x + net.weights[f"{name}.embed_positions.weight"][2 : 2 + len(ids)]  # two rows are reserved
    x = net.norm(x, f"{name}.layernorm_embedding")
    for layer in range(c[f"{side}_layers"]):
        here, heads = f"{name}.layers.{layer}", c[f"{side}_attention_heads"]
        x = net.norm(x + _projected(net, f"{here}.self_attn", x, x, bias, heads), f"{here}.self_attn_layer_norm")
        if encoder_states is not None:
            cross = _projected(net, f"{here}.encoder_attn", x, encoder_states, 0.0, heads)
            x = net.norm(x + cross, f"{here}.encoder_attn_layer_norm")
        hidden = ACTIVATIONS[c["activation_function"]](net.linear(x, f"{here}.fc1"))
        x = net.norm(x + net.linear(hidden, f"{here}.fc2"), f"{here}.final_layer_norm")
    return x


def t5(net: Network, ids: Sequence[int], encoder_ids: Sequence[int]) -> np.ndarray:
    """T5 of 2019 (tied, scaled output, ReLU) and T5 1.1, Flan-T5 (own output matrix, gated GELU)."""
    states = _t5_stack(net, "encoder", encoder_ids, None)
    states = _t5_stack(net, "decoder", ids, states)
    if net.config["scale_decoder_outputs"]:
        states = states * net.config["d_model"] ** -0.5
    return states @ net.weights.get("lm_head.weight", net.weights["shared.weight"]).T


def _t5_stack(net: Network, side: str, ids: Sequence[int], encoder_states):
    c, x = net.config, net.weights["shared.weight"][ids]
    decoder = encoder_states is not None
    relative = net.weights[f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
    bias = relative[_t5_buckets(c, len(ids), both_sides=not decoder)].transpose(2, 0, 1)
    if decoder:
        bias = bias + past(len(ids))
    for layer in range(c["num_decoder_layers" if decoder else "num_layers"]):
        name = f"{side}.block.{layer}.layer"
        y = net.norm(x, f"{name}.0.layer_norm")
        x = x + _t5_attention(net, f"{name}.0.SelfAttention", y, y, bias)
        if decoder:
            y = net.norm(x, f"{name}.1.layer_norm")
            x = x + _t5_attention(net, f"{name}.1.EncDecAttention", y, encoder_states, 0.0)
        name = f"{name}.{2 if decoder else 1}"
        y, act = net.norm(x, f"{name}.layer_norm"), ACTIVATIONS[c["dense_act_fn"]]
        if c["is_gated_act"]:
            hidden = act(net.linear(y, f"{name}.DenseReluDense.wi_0")) * net.linear(y, f"{name}.DenseReluDense.wi_1")
        else:
            hidden = act(net.linear(y, f"{name}.DenseReluDense.wi"))
        x = x + net.linear(hidden, f"{name}.DenseReluDense.wo")
    return net.norm(x, f"{side}.final_layer_norm")


def _t5_attention(net: Network, name: str, x, memory, bias):
    qkv = (net.linear(x, f"{name}.q"), net.linear(memory, f"{name}.k"), net.linear(memory, f"{name}.v"))
    return net.linear(net.attention(*qkv, bias, heads=net.config["num_heads"], scaled=False), f"{name}.o")


def _t5_buckets(config: Mapping[str, Any], tokens: int, *, both_sides: bool) -> np.ndarray:
    """Near distances have a bucket each, farther ones share buckets that widen by the logarithm."""
    ahead = np.arange(tokens) - np.arange(tokens)[:, None]
    buckets = config["relative_attention_num_buckets"] // (2 if both_sides else 1)
    exact = buckets // 2
    distance = abs(ahead) if both_sides else np.maximum(-ahead, 0)
    span = math.log(config["relative_attention_max_distance"] / exact)
    far = exact + np.log(np.maximum(distance, 1) / exact) / span * (buckets - exact)
    side = buckets * (ahead > 0) if both_sides else 0
    return side + np.where(distance < exact, distance, np.minimum(far.astype(int), buckets - 1))


FAMILIES = {"gpt2": gpt2, "llama": llama, "qwen2": llama, "mistral": llama, "opt": opt, "bart": bart, "t5": t5}


def of_ids(
    network: Network,
    before: Sequence[int],
    target: Sequence[int],
    encoder_ids: Sequence[int] = (),
    temperature: float = 1,
) -> np.ndarray:
    """Log-probability of each target id after the ids in front of it."""
    inputs = [[*before, *target][:-1], *([encoder_ids] if encoder_ids else [])]
    logits = FAMILIES[network.config["model_type"]](network, *inputs)[len(before) - 1 :]
    return log_softmax(logits / temperature, axis=-1)[np.arange(len(target)), target]


class Yardstick:
    """A saved model and its tokenizer."""

    def __init__(self, folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.network = Network(config, load_file(folder / "model.safetensors"))
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
