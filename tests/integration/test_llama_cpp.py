"""A real llama.cpp on this machine: `make test-llama-cpp`, which builds it into an environment of its own.

Both of its servers: the Python binding's, which speaks as OpenAI does, and llama.cpp's own, where there is one.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from drillrank import UPR, Relevance, load_language_model
from drillrank.errors import DrillrankError, LacksCapability
from drillrank.evaluation.settings_file import keyword_arguments
from drillrank.likelihood import HuggingFaceModel, ServedModel
from tests.drillrank.neural.conftest import wrapped
from tests.drillrank.neural.tokenizers_of_all_kinds import CHAT, byte_level

PYTHON = os.environ.get("DRILLRANK_LLAMA_CPP_PYTHON")
SERVER = os.environ.get("DRILLRANK_LLAMA_SERVER")
pytestmark = [
    pytest.mark.skipif(not PYTHON, reason="DRILLRANK_LLAMA_CPP_PYTHON names no environment: make test-llama-cpp"),
    pytest.mark.timeout(600),
]
TEXTS = ["The Rhine is a river.", "Emma is a novel.", "Basel " * 60, "東京 is a town.", "Zürich"]
QUESTION = "who wrote it?"
PAIRS = [("e", "s"), ("a", "i"), ("n", "o")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    torch.manual_seed(7)
    config = transformers.LlamaConfig(
        vocab_size=400, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=512, bos_token_id=0, eos_token_id=2,
    )  # fmt: skip
    network = transformers.LlamaForCausalLM(config)
    for weight in network.parameters():
        weight.data *= 3
    tokenizer = wrapped(byte_level(["<|endoftext|>", "<|im_start|>", "<|im_end|>"]), eos_token="<|im_end|>")
    answers = tokenizer.convert_tokens_to_ids([answer for pair in PAIRS for answer in pair])
    others = [id_ for id_ in range(400) if id_ not in answers]
    network.lm_head.weight.data[others] = 0  # so that an answer with a positive logit is among the likeliest
    place = tmp_path_factory.mktemp("llama")
    network.save_pretrained(place)
    np.savez(place / "weights.npz", **{name: weight.numpy() for name, weight in network.state_dict().items()})
    tokenizer.chat_template = CHAT
    tokenizer.save_pretrained(place)
    subprocess.run([str(PYTHON), str(Path(__file__).with_name("tiny_gguf.py")), str(place)], check=True)
    return place


def started(command: list[str], folder: Path) -> Iterator[str]:
    """The server's address, once it answers. Told nothing, it would keep keys and values in float16."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with (folder / f"{port}.log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port), "--model", str(folder / "tiny.gguf")],
            env={**os.environ, "PYTHONPATH": ""},
            stdout=log,
            stderr=log,
            cwd=folder,
        )
    address = f"http://127.0.0.1:{port}/v1"
    try:
        for _ in range(120):
            assert process.poll() is None, (folder / f"{port}.log").read_text()[-3000:]
            try:
                assert ServedModel(address, retries=0).server
                break
            except DrillrankError:
                time.sleep(1)
        yield address
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def binding(folder) -> Iterator[str]:
    yield from started(
        [str(PYTHON), "-m", "llama_cpp.server", "--n_ctx", "512", "--type_k", "0", "--type_v", "0"], folder
    )


@pytest.fixture(scope="module")
def own(folder) -> Iterator[str]:
    if not SERVER:
        pytest.skip("DRILLRANK_LLAMA_SERVER names no llama-server")
    in_float32 = "--cache-type-k f32 --cache-type-v f32 --flash-attn off"
    yield from started([SERVER, "--ctx-size", "512", "--parallel", "1", *in_float32.split()], folder)


def assert_same(there, here, question: str, texts: list[str], **asked) -> int:
    """What the server tells is what the model here says, and what it bounds is no more than that; how many it told."""
    found, expected = (
        Relevance(model, **keyword_arguments(Relevance, asked)).rank(question, texts) for model in (there, here)
    )
    of = {item.details["position"]: item.details for item in expected}
    told = 0
    for item in found:
        for name in ("positive", "negative"):
            value = of[item.details["position"]][name]
            if name in item.details["bounded"]:
                assert value <= item.details[name] + 1e-3
            else:
                assert item.details[name] == pytest.approx(value, abs=1e-3)
                told += 1
    return told


@pytest.mark.filterwarnings("ignore:.*reported neither answer")
@pytest.mark.parametrize(("positive", "negative"), PAIRS)
def test_relevance_over_the_binding_is_that_of_the_model_here(binding, folder, positive, negative):
    here = HuggingFaceModel(str(folder), dtype="float32")
    there = load_language_model(binding, tokenizer=str(folder))
    assert assert_same(there, here, QUESTION, TEXTS, preset="yes-no", positive=positive, negative=negative)


def test_the_binding_tells_no_likelihood(binding, folder):
    with pytest.raises(LacksCapability, match="Relevance"):
        UPR(load_language_model(binding, tokenizer=str(folder))).rank(QUESTION, TEXTS)


@pytest.mark.filterwarnings("ignore:.*reported neither answer")
@pytest.mark.parametrize(("positive", "negative"), PAIRS)
@pytest.mark.parametrize("preset", ["monot5", "qwen3-reranker", "yes-no"])
def test_relevance_over_llama_cpps_own_server_is_that_of_the_model_here(own, folder, preset, positive, negative):
    here = HuggingFaceModel(str(folder), dtype="float32")
    there = load_language_model(own, tokenizer=str(folder))
    texts = [*TEXTS, "Emma <|im_end|> is."]  # a control token in a document is text: ids say so
    assert assert_same(there, here, QUESTION, texts, preset=preset, positive=positive, negative=negative)


def test_llama_cpps_own_server_tells_no_likelihood(own, folder):
    with pytest.raises(LacksCapability, match="vLLM"):
        UPR(load_language_model(own, tokenizer=str(folder))).rank(QUESTION, TEXTS)
