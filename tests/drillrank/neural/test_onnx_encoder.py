"""Encoders in ONNX Runtime: the vectors of sentence-transformers, without torch."""

from __future__ import annotations

import json
import math
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from drillrank import D3, UPR, PathSearch, PromptRank
from drillrank.errors import InvalidInput, UnknownModel
from drillrank.likelihood import EmbeddingModel
from drillrank.likelihood.encoders import (
    OnnxEncoder,
    SentenceTransformerEncoder,
    as_encoder,
    load_encoder,
)
from drillrank.multihop.path_rerank import PathRerank
from drillrank.structure import parse_document
from drillrank.views import MultiViewIndex, section_chunks
from tests.drillrank.helpers import refuses
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


def test_vectors_are_those_of_sentence_transformers(directories):
    reference = SentenceTransformerEncoder(str(directories[0]), device="cpu")
    for threads in (None, 1, 3):
        encoder = OnnxEncoder(str(directories[1]), threads=threads)
        for function, expected in ((encoder, reference(TEXTS)), (encoder.questions, reference.questions(TEXTS))):
            unit = expected / np.linalg.norm(expected, axis=1, keepdims=True)
            np.testing.assert_allclose(function(TEXTS), unit, atol=1e-5)


@pytest.mark.parametrize("int8", [False, True])
def test_a_vector_does_not_depend_on_the_other_texts(directories, tmp_path, int8):
    encoder = OnnxEncoder(str(export_encoder(directories[0], tmp_path / "model", int8=int8)))
    together = encoder(TEXTS)
    np.testing.assert_array_equal(together, np.concatenate([encoder([text]) for text in TEXTS]))
    np.testing.assert_array_equal(together[::-1], encoder(TEXTS[::-1]))
    assert encoder([]).shape[0] == 0


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
    encoder = load_encoder(f"onnx:{directories[1]}", threads=4)
    again = pickle.loads(pickle.dumps(encoder))
    assert (again.spec, again.options) == (encoder.spec, encoder.options)
    np.testing.assert_array_equal(again(TEXTS[:1]), encoder(TEXTS[:1]))


def test_a_fingerprint_depends_on_the_files_that_are_read(directories, tmp_path):
    shutil.copytree(directories[1], tmp_path / "model")
    encoder, copied = OnnxEncoder(str(directories[1])), OnnxEncoder(str(tmp_path / "model"), threads=1)
    assert encoder.fingerprint() == copied.fingerprint() == encoder.fingerprint()
    (tmp_path / "model" / "README.md").write_text("not read")
    assert encoder.fingerprint() == copied.fingerprint()
    (tmp_path / "model" / "1_Pooling" / "config.json").write_text('{"pooling_mode": "cls"}')
    assert encoder.fingerprint() != copied.fingerprint()


def test_fingerprints_of_other_libraries_depend_on_the_files_and_the_options(directories, tmp_path):
    encoder = load_encoder(f"st:{directories[0]}", device="cpu", batch_size=3)
    expected = encoder.fingerprint()
    assert expected == load_encoder(f"st:{directories[0]}").fingerprint()
    assert expected != load_encoder(f"st:{directories[0]}", truncate_dim=4).fingerprint()
    shutil.copytree(directories[0], tmp_path / "model")
    weights = next((tmp_path / "model").glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    assert expected != load_encoder(f"st:{tmp_path / 'model'}").fingerprint()


def test_a_lone_surrogate_is_read_as_a_replacement_character(directories):
    for encoder in (OnnxEncoder(str(directories[1])), SentenceTransformerEncoder(str(directories[0]))):
        np.testing.assert_array_equal(encoder(["a \ud800 river"]), encoder(["a \ufffd river"]))


def test_torch_is_not_imported(directories):
    code = (
        "import sys; from drillrank.likelihood.encoders import load_encoder; "
        f"load_encoder('onnx:{directories[1]}')(['a river']); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_directory_without_a_model_is_refused_at_once(tmp_path):
    for directory, problem in ((tmp_path, "lacks one of them"), (tmp_path / "missing", "does not exist")):
        with pytest.raises(InvalidInput, match=rf"tokenizer\.json and model\.onnx or .*, but it {problem}"):
            OnnxEncoder(str(directory))


def test_a_damaged_model_is_refused(directories, tmp_path):
    for file in directories[1].iterdir():
        if file.is_file():
            (tmp_path / file.name).write_bytes(file.read_bytes()[:100])
    (tmp_path / "tokenizer.json").write_text(json.dumps({"version": "1.0"}))
    with pytest.raises(InvalidInput, match="cannot be loaded"):
        OnnxEncoder(str(tmp_path))(["a"])


test_what_is_not_a_specification_is_refused = refuses(
    *((lambda spec=spec: load_encoder(spec), "is not an encoder") for spec in ("minilm", "", ":", "hf:x", None, 3)),
    error=UnknownModel,
)


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ("onnx:{folder}", {"depth": 3}, r"An option of onnx: is unknown: \['depth'\]"),
        ("onnx:{folder}", {"threads": 0}, "threads must be a whole number"),
        ("onnx:", {}, "needs a model id or a directory"),
    ],
)
def test_an_encoder_with_options_that_cannot_be_used_is_refused(directories, spec, options, message):
    with pytest.raises(InvalidInput, match=message):
        load_encoder(spec.format(folder=directories[1]), **options)


def test_every_embed_argument_takes_a_specification(directories):
    spec = f"onnx:{directories[1]}"
    question, texts = "Which river?", [text for text in TEXTS if text]
    encoder = load_encoder(spec)
    for result, expected in (
        (D3(embed=spec).retrieve(question, texts), D3(embed=encoder).retrieve(question, texts)),
        (
            PathSearch(PromptRank(), texts, embed=spec).search(question),
            PathSearch(PromptRank(), texts, embed=encoder).search(question),
        ),
        (
            PathRerank(PromptRank(), embed=spec).rank(question, texts),
            PathRerank(PromptRank(), embed=encoder).rank(question, texts),
        ),
        (
            UPR(EmbeddingModel(spec)).rank(question, texts),
            UPR(EmbeddingModel(encoder)).rank(question, texts),
        ),
    ):
        assert [(item.passage.text, item.score) for item in result] == [
            (item.passage.text, item.score) for item in expected
        ]
    chunks = section_chunks(parse_document("# Rhine\n\nA river.\n\n# Night\n\nShe works.\n"), "d")
    assert MultiViewIndex(chunks, embed=spec).search(question) == MultiViewIndex(chunks, embed=encoder).search(question)


def test_equal_specifications_share_one_encoder(directories):
    spec = f"onnx:{directories[1]}"
    first = as_encoder(spec)
    assert as_encoder(spec) is first
    assert as_encoder(None) is None
    assert as_encoder(len) is len


test_an_argument_that_is_no_encoder_is_refused = refuses(
    *(
        (lambda make=make, embed=embed: make(embed), message)
        for make in (lambda embed: D3(embed=embed), EmbeddingModel, as_encoder)
        for embed, message in (
            ("minilm", "embed='minilm' is not an encoder. Write st:NAME"),
            (5, "embed must turn texts into vectors, got 5"),
            ("onnx:no/such/folder", "'no/such/folder' must have the files"),
        )
    ),
    *(
        (lambda values=values: D3(embed=lambda texts: values).retrieve("Which river?", TEXTS[:2]), message)
        for values, message in (
            ([[math.nan, 1.0]], "vectors? of finite numbers"),
            ([[1.0]], "vectors? of finite numbers"),
            ([1.0, 1.0], "vectors? of finite numbers"),
        )
    ),
)


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
