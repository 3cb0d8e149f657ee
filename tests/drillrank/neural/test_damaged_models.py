"""Models as a broken download, a full disk or a wrong copy leaves them: an error of ours, and never a random score."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from drillrank import UPR
from drillrank.errors import DrillrankError, InvalidInput
from drillrank.likelihood import HuggingFaceModel
from tests.drillrank.neural.conftest import between, loaded, saved, wrapped
from tests.drillrank.neural.tokenizers_of_all_kinds import word_piece

Damage = Callable[[Path], object]

QUESTION, PASSAGES = "who hunts at night?", ["Owls hunt at night.", "The sea is deep."]
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1234\n"
DAMAGES: dict[str, Damage] = {
    "gone": lambda file: file.unlink(),
    "empty": lambda file: file.write_bytes(b""),
    "half": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "not text": lambda file: file.write_bytes(bytes(range(256)) * 40),
    "a pointer to the file": lambda file: file.write_text(POINTER),
    "a folder": lambda file: (file.unlink(), file.mkdir()),
    "a list": lambda file: file.write_text("[1, 2]"),
    "without content": lambda file: file.write_text("{}"),
}
# What models are read from without: they score as before.
OPTIONAL = ("generation_config.json", "tokenizer_config.json", "drillrank.json")


@pytest.fixture(scope="module", params=["t5-tied", "llama"])
def family(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def whole(family, tmp_path_factory) -> Path:
    return saved(family, tmp_path_factory)


def scores(model) -> list[float]:
    return [item.score for item in UPR(model).rank(QUESTION, PASSAGES)]


@pytest.mark.parametrize("damage", DAMAGES)
def test_no_damaged_file_is_read_as_something_else(whole, damage, tmp_path):
    wanted = scores(loaded(whole))
    refused: dict[str, DrillrankError] = {}
    for number, name in enumerate(sorted(file.name for file in whole.iterdir())):
        copy = shutil.copytree(whole, tmp_path / str(number))
        DAMAGES[damage](copy / name)
        try:
            found = scores(loaded(copy))
        except DrillrankError as error:
            refused[name] = error
        else:
            assert name in OPTIONAL
            assert found == pytest.approx(wanted, abs=1e-6)
        if name in refused:
            assert isinstance(refused[name], InvalidInput)
            assert str(copy) in str(refused[name]) or "end-of-sequence" in str(refused[name])
    assert {"config.json", "tokenizer.json"} <= {*refused}


def change_weights(place: Path, change: Callable[[dict[str, torch.Tensor], str], object]) -> None:
    weights = load_file(place / "model.safetensors")
    change(weights, next(name for name in sorted(weights) if weights[name].ndim == 2))
    save_file(weights, place / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda weights, name: weights.pop(name), "checkpoint is incomplete"),
        (lambda weights, name: weights.update({name: weights[name][:-1].clone()}), "cannot be loaded"),
        (lambda weights, name: weights.update({name: weights[name] * math.nan}), "nan"),
    ],
)
def test_weights_that_are_missing_or_misshapen_or_broken(whole, change, told, tmp_path):
    copy = shutil.copytree(whole, tmp_path / "copy")
    change_weights(copy, change)
    with pytest.raises(DrillrankError, match=told):
        scores(HuggingFaceModel(str(copy), dtype="float32"))


def test_weights_that_nobody_asks_for_are_ignored(whole, tmp_path):
    copy = shutil.copytree(whole, tmp_path / "copy")
    change_weights(copy, lambda weights, name: weights.update({"some.head": torch.ones(3)}))
    assert scores(HuggingFaceModel(str(copy), dtype="float32")) == scores(HuggingFaceModel(str(whole), dtype="float32"))


def test_the_tokenizer_of_a_model_with_more_tokens_is_refused(family, whole, tmp_path):
    copy = shutil.copytree(whole, tmp_path / "copy")
    config = json.loads((copy / "config.json").read_text())
    config["vocab_size"] = 50
    (copy / "config.json").write_text(json.dumps(config))

    def shrink(weights, _):
        for name in [name for name, weight in weights.items() if 400 in weight.shape]:
            weights[name] = weights[name][:50].clone()

    change_weights(copy, shrink)
    with pytest.raises(InvalidInput, match="different models"):
        scores(HuggingFaceModel(str(copy), dtype="float32"))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_model_for_masked_tokens_has_no_likelihood(dtype, tmp_path):
    torch.manual_seed(3)
    config = transformers.BertConfig(
        vocab_size=400, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48
    )
    model = transformers.BertForMaskedLM(config)
    for weight in model.parameters():
        weight.data += 0.2 * torch.randn_like(weight)
    model.save_pretrained(tmp_path)
    tokenizer = between(word_piece(["[PAD]", "[UNK]", "[CLS]", "[SEP]"]), "[CLS] $A [SEP]")
    wrapped(tokenizer, pad_token="[PAD]", eos_token="[SEP]").save_pretrained(tmp_path)
    with pytest.raises(InvalidInput, match="not a causal language model"):
        scores(HuggingFaceModel(str(tmp_path), dtype=dtype))


def test_targets_need_a_beginning(tmp_path, tmp_path_factory):
    copy = shutil.copytree(saved("t5-tied", tmp_path_factory), tmp_path / "copy")
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "decoder_start_token_id": None}))
    with pytest.raises(InvalidInput, match="decoder_start_token_id"):
        scores(HuggingFaceModel(str(copy), dtype="float32"))
