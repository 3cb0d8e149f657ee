"""Encoders in ONNX Runtime: the vectors of sentence-transformers, without torch."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from drillrank.errors import InvalidInput, MissingExtra, UnknownModel
from drillrank.likelihood.encoders import ENCODERS, Encoder, OnnxEncoder, SentenceTransformerEncoder, load_encoder
from tests.drillrank.neural.tiny_encoder import saved_encoder
from tests.onnx_export import export_encoder

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
pytest.importorskip("sentence_transformers")

TEXTS = [
    "The physician treats patients in the hospital. She works at night.",
    "The Rhine flows through Basel. It is a river of Europe.",
    "",
    "Zürich",
    "river " * 200,
]


@pytest.fixture(scope="module")
def directories(tmp_path_factory):
    place = tmp_path_factory.mktemp("encoders")
    torch_directory = Path(saved_encoder(place, TEXTS))
    export_encoder(torch_directory, place / "onnx")
    return torch_directory, place / "onnx"


def test_vectors_are_those_of_sentence_transformers_whatever_the_batch(directories):
    reference = SentenceTransformerEncoder(str(directories[0]), device="cpu")
    for batch_size in (1, 2, 32):
        encoder = OnnxEncoder(str(directories[1]), batch_size=batch_size)
        for function, expected in ((encoder, reference(TEXTS)), (encoder.questions, reference.questions(TEXTS))):
            unit = expected / np.linalg.norm(expected, axis=1, keepdims=True)
            np.testing.assert_allclose(function(TEXTS), unit, atol=1e-5)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"pooling_mode": "cls"}, "cls"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode_max_tokens": True}, "max"),
        ({"pooling_mode": "mean"}, "mean"),
        (None, "mean"),
    ],
)
def test_the_pooling_is_read_from_the_files(directories, tmp_path, config, expected):
    shutil.copytree(directories[1], tmp_path / "model")
    shutil.rmtree(tmp_path / "model" / "1_Pooling")
    if config is not None:
        (tmp_path / "model" / "1_Pooling").mkdir()
        (tmp_path / "model" / "1_Pooling" / "config.json").write_text(json.dumps(config))
    encoder = OnnxEncoder(str(tmp_path / "model"))
    session, tokenizer = encoder.model.session, encoder.model.tokenizer
    encoding = tokenizer.encode(TEXTS[0])
    names = [entry.name for entry in session.get_inputs()]
    values = {"input_ids": encoding.ids, "attention_mask": encoding.attention_mask, "token_type_ids": encoding.type_ids}
    [vectors] = session.run(None, {name: np.array([values[name]], dtype=np.int64) for name in names})
    pooled = {"cls": vectors[0, 0], "max": vectors[0].max(axis=0), "mean": vectors[0].mean(axis=0)}[expected]
    np.testing.assert_allclose(encoder([TEXTS[0]])[0], pooled / np.linalg.norm(pooled), atol=1e-6)


def test_an_unknown_pooling_is_refused(directories, tmp_path):
    shutil.copytree(directories[1], tmp_path / "model")
    (tmp_path / "model" / "1_Pooling" / "config.json").write_text('{"pooling_mode": "lasttoken"}')
    with pytest.raises(InvalidInput, match="must be one of mean, cls, max, got 'lasttoken'"):
        OnnxEncoder(str(tmp_path / "model"))(["a"])


def test_a_pickled_encoder_is_loaded_again(directories):
    encoder = load_encoder(f"onnx:{directories[1]}", batch_size=4)
    again = pickle.loads(pickle.dumps(encoder))
    assert (again.spec, again.options) == (encoder.spec, encoder.options)
    np.testing.assert_array_equal(again(TEXTS[:1]), encoder(TEXTS[:1]))


def test_torch_is_not_imported(directories):
    code = (
        "import sys; from drillrank.likelihood.encoders import load_encoder; "
        f"load_encoder('onnx:{directories[1]}')(['a river']); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_directory_without_a_model_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"must have the files tokenizer\.json and model\.onnx"):
        OnnxEncoder(str(tmp_path))(["a"])


def test_a_damaged_model_is_refused(directories, tmp_path):
    for file in directories[1].iterdir():
        if file.is_file():
            (tmp_path / file.name).write_bytes(file.read_bytes()[:100])
    (tmp_path / "tokenizer.json").write_text(json.dumps({"version": "1.0"}))
    with pytest.raises(InvalidInput, match="cannot be loaded"):
        OnnxEncoder(str(tmp_path))(["a"])


@pytest.mark.parametrize("kind", list(ENCODERS))
def test_a_library_that_is_not_installed_is_named_with_its_extra(kind, monkeypatch):
    encoder: type[Encoder] = ENCODERS[kind]
    monkeypatch.setitem(sys.modules, encoder.library, None)
    with pytest.raises(MissingExtra, match=rf'pip install "drillrank\[{encoder.extra}\]'):
        load_encoder(f"{kind}:some/model")


@pytest.mark.parametrize("spec", ["minilm", "", ":", "hf:x", None, 3])
def test_what_is_not_a_specification_is_refused(spec):
    with pytest.raises(UnknownModel, match="is not an encoder"):
        load_encoder(spec)


def test_unknown_options_and_an_empty_name_are_refused(directories):
    with pytest.raises(InvalidInput, match=r"An option of onnx: is unknown: \['depth'\]"):
        load_encoder(f"onnx:{directories[1]}", depth=3)
    with pytest.raises(InvalidInput, match="needs a model id or a directory"):
        load_encoder("onnx:")


def test_fastembed_gives_the_vectors_of_the_same_model(directories):
    fastembed = pytest.importorskip("fastembed")
    from fastembed.common.model_description import ModelSource, PoolingType

    fastembed.TextEmbedding.add_custom_model(
        model="tests/tiny", pooling=PoolingType.MEAN, normalization=True, sources=ModelSource(hf="tests/tiny"), dim=24,
        model_file="model.onnx",
    )  # fmt: skip
    encoder = load_encoder("fastembed:tests/tiny", specific_model_path=str(directories[1]))
    texts = [text for text in TEXTS if text]
    np.testing.assert_allclose(encoder(texts), OnnxEncoder(str(directories[1]))(texts), atol=1e-5)
    assert encoder.questions(texts).shape == (len(texts), 24)


def test_a_model_that_fastembed_does_not_know_is_refused():
    pytest.importorskip("fastembed")
    with pytest.raises(InvalidInput, match=r"The encoder 'fastembed:some/model' cannot be loaded"):
        load_encoder("fastembed:some/model")(["a"])
