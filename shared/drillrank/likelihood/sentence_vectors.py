"""Unit vectors of texts, each text encoded once; a directory keeps them for the next process."""

from __future__ import annotations

import hashlib
import os
import threading
import warnings
from collections import ChainMap, OrderedDict
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from copy import copy
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.files import whole_file

Floats32 = npt.NDArray[np.float32]
Encode = Callable[[list[str]], Any]

_REMEMBERED = 20_000  # vectors of texts that were not indexed: 30 MB at 384 dimensions
_SUFFIX = ".vectors.npz"


class SentenceVectors:
    """Vectors by text: indexed ones are kept for good, others as long as they are among the latest.

    Safe to share between threads; one thread encodes at a time.

    Args:
        encode: From texts to one vector each.
        directory: Where indexed vectors are kept, a file for each call of `index`; None keeps them in memory only,
            and so does, with a warning, a directory that cannot be written. Vectors of
            another encoder must lie in another directory.

    Raises:
        InvalidInput: the directory holds files that are not vectors.

    >>> vectors = SentenceVectors(lambda texts: [[len(text), 1.0] for text in texts])
    >>> vectors.of(["a", "bcd", "a"]).tolist()[1] == vectors.of(["bcd"]).tolist()[0]
    True
    """

    def __init__(self, encode: Encode, directory: str | os.PathLike[str] | None = None) -> None:
        self._encode = encode
        self._directory = None if directory is None else Path(directory)
        self._indexed: MutableMapping[bytes, Floats32] = {}
        self._latest: OrderedDict[bytes, Floats32] = OrderedDict()
        self._lock = threading.Lock()
        if self._directory is not None and self._directory.is_dir():
            for file in sorted(self._directory.glob(f"*{_SUFFIX}")):
                self._indexed.update(_read(file))

    def branch(self) -> SentenceVectors:
        """The same vectors for a collection of its own: what it indexes is kept as long as it is used itself.

        >>> asked = []
        >>> vectors = SentenceVectors(lambda texts: [asked.append(text) or [1.0] for text in texts])
        >>> vectors.branch().index(["a"])
        >>> vectors.branch().of(["a"]).tolist(), asked
        ([[1.0]], ['a'])
        """
        own = copy(self)  # with the same latest ones, and the same lock
        own._indexed = ChainMap({}, self._indexed)
        return own

    def index(self, texts: Iterable[str]) -> None:
        """Encode what is new among the texts, and keep all of them."""
        by_key = {_key(text): text for text in texts}
        with self._lock:
            unknown = {key: text for key, text in by_key.items() if key not in self._indexed}
            new = {key: self._latest[key] for key in unknown if key in self._latest}
            encoded = self._encoded({key: text for key, text in unknown.items() if key not in new})
            self._remember(encoded)
            new |= encoded
            self._indexed.update(new)
        if new and self._directory is not None:
            _write(self._directory, new)

    def of(self, texts: Sequence[str]) -> Floats32:
        """The texts' unit vectors, shape (texts, dimensions), float32; a blank text has the zero vector."""
        keys = [_key(text) for text in texts]
        with self._lock:
            known = {key: self._known(key) for key in keys}
            found = {key: vector for key, vector in known.items() if vector is not None}
            new = self._encoded({key: text for key, text in zip(keys, texts, strict=True) if key not in found})
            self._remember(new)
            found |= new
        return np.stack([found[key] for key in keys])

    def _remember(self, new: dict[bytes, Floats32]) -> None:
        self._latest |= new
        while len(self._latest) > _REMEMBERED:
            self._latest.popitem(last=False)

    def _known(self, key: bytes) -> Floats32 | None:
        if key in self._latest:
            self._latest.move_to_end(key)
        return self._indexed.get(key, self._latest.get(key))

    def _encoded(self, texts: dict[bytes, str]) -> dict[bytes, Floats32]:
        if not texts:
            return {}
        vectors = np.array(self._encode(list(texts.values())), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise InvalidInput(
                f"The encoder gave an array of shape {vectors.shape} for {len(texts)} texts: one vector of finite "
                "numbers each is wanted."
            )
        for known in chain(self._indexed.values(), self._latest.values()):
            if len(known) != vectors.shape[1]:
                raise InvalidInput(
                    f"The encoder's vectors have {vectors.shape[1]} numbers, those at hand {len(known)}: give each "
                    "encoder a directory of its own."
                )
            break
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        written = np.array([bool(text.strip()) for text in texts.values()])[:, None]
        unit = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=(lengths > 0) & written)
        return dict(zip(texts, unit, strict=True))


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _write(directory: Path, vectors: dict[bytes, Floats32]) -> None:
    """A new file. Where none can be written, the vectors serve this process alone."""
    keys = np.frombuffer(b"".join(vectors), dtype=np.uint8).reshape(-1, 16)
    try:
        with whole_file(directory / f"{hashlib.blake2b(keys.tobytes(), digest_size=8).hexdigest()}{_SUFFIX}") as file:
            np.savez(file, keys=keys, vectors=np.stack(list(vectors.values())))
    except OSError as cause:
        warnings.warn(
            f"{len(vectors)} vectors cannot be kept in {str(directory)!r}, and are made again by the next process: "
            f"{cause}.",
            DrillrankWarning,
            stacklevel=4,
        )


def _read(file: Path) -> dict[bytes, Floats32]:
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as kept:
            keys, vectors = kept["keys"], kept["vectors"]
        return {key.tobytes(): vector for key, vector in zip(keys, vectors.astype(np.float32), strict=True)}
    except Exception as error:
        raise InvalidInput(f"{str(file)!r} holds no vectors: {error}. Delete it, and they are made again.") from error
