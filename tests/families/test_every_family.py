"""Every architecture that transformers has, tiny and random: its likelihood is that of one sequence at a time.

At lengths from a few tokens to three times every window and chunk, and on both sides of where rotary positions change;
prompts that begin alike and branch, several targets behind each, all in one call. `make test-families`; too long for
the suite. Architectures that cannot be made this small are skipped, by name.
"""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING

from drillrank.errors import InvalidInput
from drillrank.likelihood import HuggingFaceModel, Request
from drillrank.prompts import TruncatableText, prompt_text
from tests.drillrank.neural.conftest import wrapped
from tests.drillrank.neural.tokenizers_of_all_kinds import byte_level

if "DRILLRANK_FAMILIES" not in os.environ:  # before the configurations of all architectures are imported
    pytest.skip("two minutes of computing: make test-families", allow_module_level=True)

pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.timeout(300),
]

SMALL: dict[str, Any] = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "embedding_size", "word_embed_proj_dim"), 32),
    **dict.fromkeys(("intermediate_size", "d_ff", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim"), 48),
    **dict.fromkeys(("num_hidden_layers", "num_layers", "n_layer", "n_layers"), 4),
    **dict.fromkeys(("encoder_layers", "decoder_layers", "num_decoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "num_heads", "n_head", "n_heads"), 4),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), 4),
    **dict.fromkeys(("head_dim", "d_kv", "state_size", "kv_lora_rank", "q_lora_rank", "v_head_dim"), 8),
    **dict.fromkeys(("qk_rope_head_dim", "qk_nope_head_dim", "rotary_dim"), 4),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "n_ctx"), 512),
    **dict.fromkeys(("sliding_window", "window_size", "attention_chunk_size", "attention_window"), 100),
    "local_radius": 49,
    "vocab_size": 400,
    "unpadded_vocab_size": 400,
    "num_key_value_heads": 2,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "d_inner": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
CAUSAL_LM = transformers.AutoModelForCausalLM
CAUSAL = [(kind, CAUSAL_LM) for kind in MODEL_FOR_CAUSAL_LM_MAPPING]
SEQ2SEQ = [(kind, transformers.AutoModelForSeq2SeqLM) for kind in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING]
# A configuration with is_decoder=True makes them causal.
MASKED = {
    *("Bert", "BertGeneration", "BigBird", "Camembert", "CpmAnt", "Data2VecText", "Electra", "Ernie", "MegatronBert"),
    *("RemBert", "RoCBert", "RoFormer", "Roberta", "RobertaPreLayerNorm", "XLM", "XLMRoberta", "XLMRobertaXL", "XLNet"),
}
LEFT_OUT = {
    "ProphetNet": "predicts several tokens at once",
    "FSMT": "has no language model head of its own",
    "Xmod": "wants a language to be set",
    "FalconH1": "takes minutes without kernels of its own",
    "KimiLinear": "takes minutes without kernels of its own",
}
SHAPES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    **{kind.__name__.removesuffix("Config"): (kind, auto, {}) for kind, auto in [*CAUSAL, *SEQ2SEQ]},
    # What other settings of the same architectures do: windows beside whole attention, positions by length.
    "GPTNeo": (transformers.GPTNeoConfig, CAUSAL_LM, {"attention_types": [[["global", "local"], 2]]}),
    "Qwen2-sliding": (transformers.Qwen2Config, CAUSAL_LM, {"use_sliding_window": True, "max_window_layers": 2}),
    "Llama-dynamic": (
        transformers.LlamaConfig,
        CAUSAL_LM,
        {"max_position_embeddings": 100, "rope_parameters": {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 1e4}},
    ),
    "Phi3-longrope": (
        transformers.Phi3Config,
        CAUSAL_LM,
        {
            "original_max_position_embeddings": 100,
            "sliding_window": None,
            "rope_parameters": {
                "rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0] * 4,
                "long_factor": [1.0, 2.0, 4.0, 8.0], "original_max_position_embeddings": 100,
            },
        },
    ),
    "Llama-yarn": (
        transformers.LlamaConfig,
        CAUSAL_LM,
        {
            "rope_parameters": {
                "rope_type": "yarn", "factor": 4.0, "rope_theta": 1e4, "original_max_position_embeddings": 100,
            }
        },
    ),
    "Falcon-alibi": (transformers.FalconConfig, CAUSAL_LM, {"alibi": True}),
}  # fmt: skip
LENGTHS = (1, 60, 91, 104, 190, 300)  # tokens of documents, around the windows of 100
QUESTIONS = ["who hunts at night?", "why?"]
PROMPT, ENDS = "Passage: ", (". Please write a question.", ". Ask.")
WORDS = "Owls hunt at night; the sea is deep and wide, and it is salt, as everybody knows. "


def build(kind: Any, auto: Any, settings: dict[str, Any], place: Path) -> Any:
    """A saved model; whatever cannot be made of these sizes is skipped."""
    known = {*inspect.signature(kind.__init__).parameters, *getattr(kind, "__annotations__", {})}
    sizes = {name: value for name, value in SMALL.items() if name in known}
    for name, other in (getattr(kind, "attribute_map", None) or {}).items():
        if name in SMALL:
            sizes.setdefault(other, SMALL[name])
    if auto is transformers.AutoModelForSeq2SeqLM:
        sizes["decoder_start_token_id"] = 0
    torch.manual_seed(0)
    try:
        config = kind(**sizes | settings)
        with torch.device("meta"):
            size = sum(weight.numel() for weight in auto.from_config(config).parameters())
        if size > 30_000_000:
            pytest.skip(f"{size:,} weights at the least")
        model = auto.from_config(config)
    except Exception as error:
        pytest.skip(f"cannot be made this small: {error!r:.100}")
    for weight in model.parameters():
        if weight.is_floating_point():
            weight.data += 0.02 * torch.randn_like(weight)
    model.save_pretrained(place)
    special = {"eos_token": "</s>", "pad_token": "<pad>", "bos_token": "<s>"}
    wrapped(byte_level(["<pad>", "<s>", "</s>"]), **special).save_pretrained(place)
    return config


def expected(model: Any, tokenizer: Any, text: str, question: str) -> float:
    """The sum over the question's tokens: no batch, no padding, no cache, no memory of longer texts."""
    if model.config.is_encoder_decoder:
        prompt = [*tokenizer.prefix, *tokenizer(text).ids, *tokenizer.suffix]
        target = tokenizer(question).ids
        start = [model.config.decoder_start_token_id, *tokenizer.prefix]
        inputs = {"input_ids": torch.tensor([prompt]), "decoder_input_ids": torch.tensor([[*start, *target[:-1]]])}
        first = len(start) - 1
    else:
        prompt = [*tokenizer.prefix, *tokenizer(text).ids]
        whole = [*tokenizer.prefix, *tokenizer(f"{text} {question}").ids]
        target = whole[len(prompt) :]
        inputs, first = {"input_ids": torch.tensor([whole]), "use_cache": False}, len(prompt) - 1
    with torch.inference_mode():
        if not model.config.is_encoder_decoder:
            model(input_ids=torch.tensor([whole[:2]]), use_cache=False)
        logits = model(**inputs).logits[0, first : first + len(target)].double()
    return float(torch.log_softmax(logits, dim=1)[torch.arange(len(target)), target].sum())


@pytest.mark.parametrize("name", SHAPES)
def test_likelihood(name, tmp_path):
    kind, auto, settings = SHAPES[name]
    if name in LEFT_OUT:
        pytest.skip(LEFT_OUT[name])
    config = build(kind, auto, settings, tmp_path)
    reference = auto.from_pretrained(tmp_path, config=config, dtype=torch.float32).eval()
    ids = torch.tensor([[5, 6, 7]])
    try:
        reference(input_ids=ids, **({"decoder_input_ids": ids} if config.is_encoder_decoder else {"use_cache": False}))
    except Exception as error:
        pytest.skip(f"cannot compute at this size: {error!r:.100}")
    model = HuggingFaceModel(str(tmp_path), dtype="float32", max_length=500)
    if name in MASKED:
        with pytest.raises(InvalidInput, match="not a causal language model"):
            model.engine  # noqa: B018  # loads it
        return
    tokenizer = model.engine.tokenizer
    ends = tokenizer(WORDS * 20).ends
    texts = [(WORDS * 20)[: ends[length - 1]] for length in LENGTHS]
    requests = [
        Request((PROMPT, TruncatableText(text), end), question)
        for text in texts
        for end in ENDS
        for question in QUESTIONS
    ]
    found = [one.total for one in model.log_likelihood(requests, include_eos=False)]
    wanted = [expected(reference, tokenizer, prompt_text(one.prompt), one.target) for one in requests]
    assert found == pytest.approx(wanted, abs=1e-4)
    assert len({*found}) > 1
    some = requests[::5]  # other neighbours, and after longer texts
    assert [one.total for one in model.log_likelihood(some, include_eos=False)] == pytest.approx(wanted[::5], abs=1e-4)
    cached = HuggingFaceModel(str(tmp_path), dtype="float32", max_length=500, prefix_cache="40 MB")
    for _ in range(2):  # while prefixes are computed, and when they are kept
        likelihoods = cached.log_likelihood(requests, include_eos=False)
        assert [one.total for one in likelihoods] == pytest.approx(wanted, abs=1e-4)
