"""A fitted unigram model in a directory: μ, language and the collection's word counts, without its texts, as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import cast

from drillrank.errors import InvalidInput
from drillrank.files import whole_file
from drillrank.likelihood.collection import Collection
from drillrank.text import ANALYZER, LANGUAGES

FILE = "unigram.json"
FORMAT, VERSION = "drillrank unigram", 1


def write_collection(directory: str | os.PathLike[str], mu: float, collection: Collection) -> str:
    """Write the file, in one step; the directory's absolute path.

    Raises:
        InvalidInput: the file cannot be written there.
    """
    folder = Path(directory).expanduser().absolute()
    content = {
        "format": FORMAT,
        "version": VERSION,
        "analyzer": ANALYZER,
        "language": collection.language,
        "mu": mu,
        "counts": collection.frequencies(),
    }
    try:
        with whole_file(folder / FILE) as file:
            file.write(json.dumps(content).encode())
    except OSError as cause:
        raise InvalidInput(f"The unigram model cannot be saved in {str(folder)!r}: {cause}") from cause
    return str(folder)


def read_collection(directory: str) -> tuple[float, Collection]:
    """μ and the collection; a file that has not changed is read once.

    Raises:
        InvalidInput: there is no such file, or it is not what `write_collection` writes.
    """
    path = Path(directory).expanduser().absolute() / FILE
    try:
        state = path.stat()
    except (OSError, ValueError) as cause:
        raise InvalidInput(
            f"No unigram model is saved in {directory!r}: {cause}. UnigramModel().fit(texts).save(directory) saves one."
        ) from cause
    return _read(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=8)
def _read(path: Path, _modified: int, _size: int) -> tuple[float, Collection]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as cause:
        raise InvalidInput(f"{str(path)!r} is no saved unigram model: {cause}.") from cause
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InvalidInput(f"{str(path)!r} is no saved unigram model: save one with UnigramModel.save.")
    for name, known in (("version", VERSION), ("analyzer", ANALYZER)):
        if content.get(name) != known:
            raise InvalidInput(
                f"{str(path)!r} has {name} {content.get(name)!r:.200}, and this drillrank reads {known}: fit and save "
                "the model again."
            )
    mu, language, counts = content.get("mu"), content.get("language"), content.get("counts")
    if type(mu) not in (int, float) or language not in LANGUAGES or not _are_counts(counts):
        raise InvalidInput(
            f"{str(path)!r} is damaged: mu is a number, language one that there is, counts whole numbers from 1 on by "
            "word."
        )
    return float(cast("float", mu)), Collection(saved=cast("Mapping[str, int]", counts), language=str(language))


def _are_counts(counts: object) -> bool:
    return isinstance(counts, dict) and all(type(count) is int and 0 < count < 2**53 for count in counts.values())
