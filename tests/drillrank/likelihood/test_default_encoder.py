"""The encoder of the command line if the user names none, found by its files alone."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from drillrank.errors import InvalidInput
from drillrank.likelihood import encoder_files
from drillrank.likelihood.encoder_files import find_hub_snapshot, find_installed_encoder, fingerprint_files
from drillrank.likelihood.encoders import EMBED_VARIABLE, default_encoder

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
BGE = "BAAI/bge-small-en-v1.5"
COMMIT = "0123456789abcdef"


@pytest.fixture
def caches(tmp_path, monkeypatch):
    """Empty caches, with all libraries installed as far as the search can see."""
    monkeypatch.delenv(EMBED_VARIABLE, raising=False)
    monkeypatch.setattr(encoder_files, "cache_folder", lambda: tmp_path / "drillrank")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(tmp_path / "fastembed"))
    monkeypatch.setattr(encoder_files, "find_spec", lambda name: name)
    return tmp_path


def write_model(directory: Path, *names: str) -> Path:
    for name in names:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(b"content")
    return directory


def write_snapshot(cache: Path, repository: str, *names: str) -> Path:
    model = cache / f"models--{repository.replace('/', '--')}"
    write_model(model, "refs/main")
    (model / "refs" / "main").write_text(COMMIT)
    return write_model(model / "snapshots" / COMMIT, *names)


def test_without_models_there_is_no_encoder(caches):
    assert default_encoder() is None


@pytest.mark.parametrize("name", ["model.onnx", "onnx/model.onnx", "model_quantized.onnx", "model_int8.onnx"])
def test_a_model_in_the_cache_folder_of_drillrank_counts(caches, name):
    directory = write_model(caches / "drillrank" / "encoder", name, "tokenizer.json")
    assert find_installed_encoder() == (f"onnx:{directory}", {})


def test_a_model_without_its_tokenizer_does_not_count(caches):
    write_model(caches / "drillrank" / "encoder", "model.onnx")
    write_snapshot(caches / "hub", MINILM, "onnx/model.onnx")
    write_snapshot(caches / "fastembed", "Qdrant/all-MiniLM-L6-v2-onnx", "model.onnx")
    assert find_installed_encoder() is None


def test_the_cache_of_hugging_face_counts_if_it_has_the_onnx_file(caches):
    directory = write_snapshot(caches / "hub", MINILM, "tokenizer.json", "model.safetensors")
    assert find_installed_encoder() is None
    write_model(directory, "onnx/model.onnx")
    assert find_installed_encoder() == (f"onnx:{directory}", {})


@pytest.mark.parametrize(
    ("name", "repository", "file"),
    [
        (MINILM, "Qdrant/all-MiniLM-L6-v2-onnx", "model.onnx"),
        (BGE, "qdrant/bge-small-en-v1.5-onnx-q", "model_optimized.onnx"),  # as older versions spell it
    ],
)
def test_a_model_in_the_cache_of_fastembed_counts_and_is_not_downloaded(caches, name, repository, file):
    write_snapshot(caches / "fastembed", repository, file, "tokenizer.json")
    assert find_installed_encoder() == (f"fastembed:{name}", {"local_files_only": True})


def test_the_best_candidate_wins(caches):
    write_snapshot(caches / "fastembed", "Qdrant/all-MiniLM-L6-v2-onnx", "model.onnx", "tokenizer.json")
    write_snapshot(caches / "fastembed", "Qdrant/bge-small-en-v1.5-onnx-Q", "model_optimized.onnx", "tokenizer.json")
    assert find_installed_encoder().spec == f"fastembed:{MINILM}"
    directory = write_model(caches / "drillrank" / "encoder", "model.onnx", "tokenizer.json")
    assert find_installed_encoder().spec == f"onnx:{directory}"


@pytest.mark.parametrize(
    ("missing", "expected"),
    [("onnxruntime", "fastembed:"), ("tokenizers", "fastembed:"), ("fastembed", "onnx:")],
)
def test_a_model_counts_only_if_its_library_is_installed(caches, monkeypatch, missing, expected):
    write_model(caches / "drillrank" / "encoder", "model.onnx", "tokenizer.json")
    write_snapshot(caches / "fastembed", "Qdrant/all-MiniLM-L6-v2-onnx", "model.onnx", "tokenizer.json")
    monkeypatch.setattr(encoder_files, "find_spec", lambda name: None if name == missing else name)
    assert find_installed_encoder().spec.startswith(expected)
    monkeypatch.setattr(encoder_files, "find_spec", lambda name: None)
    assert find_installed_encoder() is None


@pytest.mark.skipif(sys.platform == "win32", reason="the temporary folder belongs to the user")
def test_a_temporary_folder_that_others_can_write_does_not_count(caches, monkeypatch):
    monkeypatch.delenv("FASTEMBED_CACHE_PATH")
    monkeypatch.setattr(tempfile, "tempdir", str(caches))
    folder = caches / "fastembed_cache"
    write_snapshot(folder, "Qdrant/all-MiniLM-L6-v2-onnx", "model.onnx", "tokenizer.json")
    folder.chmod(0o755)
    assert find_installed_encoder().spec == f"fastembed:{MINILM}"
    folder.chmod(0o777)
    assert find_installed_encoder() is None


def test_the_variable_turns_it_off(caches, monkeypatch):
    write_model(caches / "drillrank" / "encoder", "model.onnx", "tokenizer.json")
    monkeypatch.setenv(EMBED_VARIABLE, "None")
    assert default_encoder() is None


def test_the_variable_names_an_encoder(caches, monkeypatch):
    pytest.importorskip("onnxruntime")
    directory = write_model(caches / "other", "model.onnx", "tokenizer.json")
    monkeypatch.setenv(EMBED_VARIABLE, f"onnx:{directory}")
    assert default_encoder().spec == f"onnx:{directory}"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [("minilm", "'minilm' is not an encoder"), ("onnx:no/such/folder", "'no/such/folder' must have the files")],
)
def test_a_variable_that_names_no_encoder_is_refused_by_its_name(caches, monkeypatch, spec, problem):
    pytest.importorskip("onnxruntime")
    monkeypatch.setenv(EMBED_VARIABLE, spec)
    with pytest.raises(InvalidInput, match=f"The environment variable DRILLRANK_EMBED cannot be used: {problem}"):
        default_encoder()


def test_the_search_imports_nothing_and_is_fast(tmp_path):
    code = (
        "import sys; from drillrank.likelihood.encoders import default_encoder\n"
        "before = set(sys.modules); found = default_encoder()\n"
        "print(found, {name.split('.')[0] for name in set(sys.modules) - before} & "
        "{'torch', 'onnxruntime', 'fastembed', 'sentence_transformers', 'model2vec', 'huggingface_hub', 'tokenizers'})"
    )
    environment = {
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "None set()\n"


def test_the_search_takes_milliseconds(caches):
    find_installed_encoder()
    started = time.perf_counter()
    find_installed_encoder()
    assert time.perf_counter() - started < 0.02


def test_a_snapshot_is_found_by_its_branch_or_commit(tmp_path):
    snapshot = write_snapshot(tmp_path, MINILM, "config.json")
    assert find_hub_snapshot(MINILM.upper(), folder=tmp_path) == snapshot
    assert find_hub_snapshot(MINILM, COMMIT, folder=tmp_path) == snapshot
    assert find_hub_snapshot(MINILM, "v2", folder=tmp_path) is None
    assert find_hub_snapshot(BGE, folder=tmp_path) is None
    assert find_hub_snapshot(BGE, folder=tmp_path / "missing") is None


def test_a_fingerprint_depends_on_content_and_not_on_the_folder_or_the_time(tmp_path):
    content = bytes(range(256)) * 8192  # 2 MiB
    first, second = write_model(tmp_path / "a", "model.onnx"), write_model(tmp_path / "b", "model.onnx")
    for directory in (first, second):
        (directory / "model.onnx").write_bytes(content)
    expected = fingerprint_files([first / "model.onnx"])
    assert fingerprint_files([second / "model.onnx"]) == expected
    for changed in (content[::-1], content + b"x", content[:-1] + b"x", b"x" + content[1:]):
        (second / "model.onnx").write_bytes(changed)
        assert fingerprint_files([second / "model.onnx"]) != expected
    assert fingerprint_files([first / "model.onnx"], "an option") != expected
