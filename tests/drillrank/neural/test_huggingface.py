"""What torch alone does: sharing prefixes, windows, batches that do not fit, precision."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers
from hypothesis import HealthCheck, settings

from drillrank.errors import InvalidInput
from drillrank.likelihood import HuggingFaceModel, Request, load_language_model
from drillrank.likelihood.tokenizer import TextTokenizer
from drillrank.likelihood.torch_engine import TorchEngine
from drillrank.prompts import TruncatableText
from tests.drillrank.neural.conftest import FAMILIES, MORE_TOKENIZERS, between, saved, wrapped
from tests.drillrank.neural.float64 import Network, of_ids
from tests.drillrank.neural.tokenizers_of_all_kinds import byte_level
from tests.examples import size

hypothesis = settings(max_examples=size(12), deadline=None, suppress_health_check=list(HealthCheck))


# Fixtures of its own: those of the other tests would be handed the wrong folder from the session's cache.
@pytest.fixture(scope="module", params=[*FAMILIES, *MORE_TOKENIZERS])
def folder(request, tmp_path_factory):
    return saved(request.param, tmp_path_factory)


@pytest.fixture(scope="module")
def model(folder):
    return HuggingFaceModel(str(folder), dtype="float32")


def read_by(network, tokenizer, requests):
    """Likelihoods by a network in memory."""
    model = HuggingFaceModel("in-memory", dtype="float32")
    model._engine = TorchEngine(network, tokenizer, window=None, batch_tokens=None)
    return model.log_likelihood(requests, include_eos=False)


@pytest.mark.parametrize("sharing", [True, False])
def test_a_sliding_window_is_respected(sharing):
    """With and without a common beginning: within the window it is computed once."""
    torch.manual_seed(4)
    size = {"vocab_size": 400, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    window = 200 if sharing else 12
    network = transformers.MistralForCausalLM(transformers.MistralConfig(**size, **heads, sliding_window=window)).eval()
    for parameter in network.parameters():
        parameter.data *= 3
    tokenizer = TextTokenizer(wrapped(between(byte_level(["<unk>", "<s>"]), "<s> $A")))
    context, target = "The old town of Basel lies on the Rhine, a river of Europe. " * 2, "which river?"
    read = []
    hook = network.register_forward_pre_hook(
        lambda _, __, inputs: read.append(inputs["input_ids"].shape), with_kwargs=True
    )
    requests = [Request((TruncatableText(context), end), target) for end in ("", *(f" Ask {i}." for i in range(4)))]
    together = read_by(network, tokenizer, requests)
    hook.remove()
    assert len(read) == (2 if sharing else 1)
    whole = [*tokenizer.prefix, *tokenizer(f"{context}{target}").ids]
    count = len(together[0].log_probs)
    expected = of_ids(Network(network), whole[:-count], whole[-count:])
    np.testing.assert_allclose(together[0].log_probs, expected, atol=1e-4)


def test_a_batch_that_does_not_fit_is_halved(model, request):
    pairs = [(f"Basel {i}", "who?") for i in range(5)]
    expected = [result.total for result in model.log_likelihood(pairs)]
    engine = model.engine
    refused = []

    def small_memory(_module, _args, inputs):
        batch = max(value.shape[0] for name, value in inputs.items() if name.endswith("input_ids"))
        if batch > 1:
            refused.append(batch)
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    hook = engine.model.register_forward_pre_hook(small_memory, with_kwargs=True)
    request.addfinalizer(hook.remove)
    assert [result.total for result in model.log_likelihood(pairs)] == pytest.approx(expected, abs=1e-4)
    assert refused


@pytest.mark.parametrize(
    "options",
    [
        {"dtype": "int8"},
        {"no_such": 1},
        *({"model_kwargs": {name: "x"}} for name in ("dtype", "torch_dtype", "config", "trust_remote_code")),
    ],
)
def test_bad_options(folder, options):
    with pytest.raises(InvalidInput):
        load_language_model(f"hf:{folder}", **options)
