"""Files of encoders on this machine, found by their paths alone: nothing is imported, loaded or downloaded."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from drillrank.files import cache_folder

ENCODER_FOLDER = "encoder"
"""Folder in drillrank's cache folder, such as `~/.cache/drillrank/encoder`, for a model that `onnx:` reads."""

ONNX_FILES = (
    "model.onnx",
    "onnx/model.onnx",
    "model_quantized.onnx",
    "onnx/model_quantized.onnx",
    "model_int8.onnx",
    "onnx/model_int8.onnx",
)
"""Names of the transformer's file in the directory of an `onnx:` model. The first that exists counts."""

_MINILM = "sentence-transformers/all-MiniLM-L6-v2"
_FASTEMBED_MODELS = {  # name of the model in fastembed, repository on Hugging Face, file of the transformer
    _MINILM: ("Qdrant/all-MiniLM-L6-v2-onnx", "model.onnx"),
    "BAAI/bge-small-en-v1.5": ("Qdrant/bge-small-en-v1.5-onnx-Q", "model_optimized.onnx"),
}
_MODEL_SUFFIXES = frozenset({".json", ".txt", ".model", ".safetensors", ".bin", ".onnx", ".onnx_data", ".npy"})
_SAMPLED_BLOCKS, _BLOCK_BYTES = 16, 1 << 16


class InstalledEncoder(NamedTuple):
    """Encoder that can be used without a download.

    Attributes:
        spec: Specification, as `load_encoder` takes it.
        options: Options of that encoder.
    """

    spec: str
    options: dict[str, Any]


def find_installed_encoder() -> InstalledEncoder | None:
    """Return the best encoder that needs neither torch nor a download. None if there is none.

    Candidates, best first: a model in the folder `encoder` of drillrank's cache folder; all-MiniLM-L6-v2 with its ONNX
    file in the cache of Hugging Face; all-MiniLM-L6-v2 and bge-small-en-v1.5 in the cache of fastembed.
    """
    if _is_installed("onnxruntime", "tokenizers"):
        cache = cache_folder()
        directories = [cache and cache / ENCODER_FOLDER, find_hub_snapshot(_MINILM)]
        for directory in filter(None, directories):
            if find_onnx_file(directory) and (directory / "tokenizer.json").is_file():
                return InstalledEncoder(f"onnx:{directory}", {})
    if _is_installed("fastembed"):
        folder = _find_fastembed_folder()
        for name in _FASTEMBED_MODELS if folder else ():
            if find_fastembed_snapshot(name):
                return InstalledEncoder(f"fastembed:{name}", {"local_files_only": True})
    return None


def _is_installed(*modules: str) -> bool:
    return all(find_spec(module) is not None for module in modules)


def find_onnx_file(directory: Path) -> Path | None:
    """Return the transformer's file in the directory of an `onnx:` model. None if there is none."""
    return next((directory / name for name in ONNX_FILES if (directory / name).is_file()), None)


def find_hub_snapshot(name: str, revision: str | None = None, folder: Path | None = None) -> Path | None:
    """Return the directory of a model in a cache of Hugging Face. None if the model is not there.

    Args:
        name: Model id, such as `"sentence-transformers/all-MiniLM-L6-v2"`. Its case does not count.
        revision: Branch, tag or commit. None means the branch `main`.
        folder: Folder of the cache. None means the user's.
    """
    wanted_folder = f"models--{name.replace('/', '--')}".lower()
    for model in _list_folders(_find_hub_folder() if folder is None else folder):
        if model.name.lower() != wanted_folder:
            continue
        reference = model / "refs" / (revision or "main")
        commit = reference.read_text().strip() if reference.is_file() else revision
        if commit and (snapshot := model / "snapshots" / commit).is_dir():
            return snapshot
    return None


def _find_hub_folder() -> Path:
    """Return the folder of Hugging Face's cache, by the variables that its library reads."""
    environment = os.environ
    if folder := environment.get("HF_HUB_CACHE") or environment.get("HUGGINGFACE_HUB_CACHE"):
        return Path(os.path.expanduser(folder))
    home = environment.get("HF_HOME") or os.path.join(environment.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    return Path(os.path.expanduser(home)) / "hub"


def find_fastembed_snapshot(name: str, folder: Path | None = None) -> Path | None:
    """Return the directory of a known model in the cache of fastembed. None if it is not there.

    Args:
        name: Name of the model in fastembed. Its case does not count.
        folder: Folder of the cache. None means the one that fastembed uses.
    """
    repositories = {model.lower(): files for model, files in _FASTEMBED_MODELS.items()}
    folder = folder or _find_fastembed_folder()
    if folder is None or name.lower() not in repositories:
        return None
    repository, model_file = repositories[name.lower()]
    snapshot = find_hub_snapshot(repository, folder=folder)
    is_complete = snapshot and (snapshot / model_file).is_file() and (snapshot / "tokenizer.json").is_file()
    return snapshot if is_complete else None


def _find_fastembed_folder() -> Path | None:
    """Return the folder of fastembed's cache. None if there is none that only the user can write.

    By default fastembed uses the folder for temporary files, in which any user of the machine could place a model.
    """
    if folder := os.environ.get("FASTEMBED_CACHE_PATH"):
        return Path(folder)
    temporary = Path(tempfile.gettempdir()) / "fastembed_cache"
    try:
        status = temporary.stat()
    except OSError:
        return None
    is_private = not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)
    return temporary if is_private else None


def list_model_files(name: str, revision: str | None = None) -> list[Path]:
    """Return the files of a model on this machine, in a fixed order. Empty if there are none.

    Args:
        name: Directory, or model id in the cache of Hugging Face.
        revision: Branch, tag or commit of a model id.
    """
    directory = Path(name)
    snapshot = directory if directory.is_dir() else find_hub_snapshot(name, revision)
    folders = [] if snapshot is None else [snapshot, *_list_folders(snapshot)]  # such as 1_Pooling
    files = (path for folder in folders for path in folder.iterdir() if path.is_file())
    return sorted(path for path in files if path.suffix in _MODEL_SUFFIXES)


def _list_folders(folder: Path) -> Iterator[Path]:
    """Yield the folders in a folder, in a fixed order. Nothing if it cannot be read."""
    try:
        yield from sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError:
        return


def fingerprint_files(files: Sequence[Path], more: str = "") -> str:
    """Return a digest of the content of files, 32 hexadecimal digits.

    Of a large file, its size and 16 blocks count, which are spread over it. Training changes all weights of a model, so
    this is enough to tell two models apart, and it takes milliseconds.

    Args:
        files: Files in a fixed order. Their names count, their folders do not.
        more: Text that counts too.
    """
    digest = hashlib.blake2b(more.encode("utf-8", "surrogatepass"), digest_size=16)
    for file in files:
        size = file.stat().st_size
        digest.update(f"\n{file.name} {size}\n".encode("utf-8", "surrogatepass"))
        with file.open("rb") as stream:
            for start in _sample_offsets(size):
                stream.seek(start)
                digest.update(stream.read(_BLOCK_BYTES))
    return digest.hexdigest()


def _sample_offsets(size: int) -> Iterable[int]:
    """Return offsets of the blocks to read: all blocks of a file of up to 1 MiB, or the first, the last and 14 more.

    >>> list(_sample_offsets(100_000))
    [0, 65536]
    >>> offsets = list(_sample_offsets(90_000_000))
    >>> len(offsets), offsets[0], offsets[-1] + 65536
    (16, 0, 90000000)
    """
    if size <= _SAMPLED_BLOCKS * _BLOCK_BYTES:
        return range(0, size, _BLOCK_BYTES)
    return [(size - _BLOCK_BYTES) * index // (_SAMPLED_BLOCKS - 1) for index in range(_SAMPLED_BLOCKS)]
