"""Makes the data files of `drillrank.data` from pyspellchecker's English list and the releases of PyStemmer.

    python tools/english_stems.py        # with pyspellchecker 0.9.1 and pip

Only needed for another list or another release of PyStemmer; scores change with either.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "shared" / "drillrank" / "data"
STEMMERS = ("2.2.0.3", "3.0.0", "3.1.0")  # the last one's stems count
RAREST = 1e-7  # a stem's share of all counts; `drillrank.likelihood.background.UNLISTED`
LIST = "pyspellchecker 0.9.1"


def word_counts() -> dict[str, int]:
    """How often each word occurs in general English, in the list's order."""
    found = importlib.util.find_spec("spellchecker")
    if found is None or not found.submodule_search_locations:
        sys.exit(f"The word list is missing: pip install {LIST.replace(' ', '==')}")
    file = Path(found.submodule_search_locations[0]) / "resources" / "en.json.gz"
    counts: dict[str, int] = json.loads(gzip.decompress(file.read_bytes()))
    return {word: count for word, count in counts.items() if word.isalnum()}


def stem_counts(counts: dict[str, int], stems: Iterable[str]) -> dict[str, int]:
    """The counts of words with the same stem added up, those of the rarest stems left out."""
    added: Counter[str] = Counter()
    for stem, count in zip(stems, counts.values(), strict=True):
        added[stem] += count
    fewest = RAREST * added.total()
    return {stem: count for stem, count in added.items() if count > fewest}


def stems_of_release(release: str, words: list[str]) -> list[str]:
    """What a release of PyStemmer makes of words."""
    code = (
        "import json, sys, Stemmer; json.dump(Stemmer.Stemmer('english').stemWords(json.load(sys.stdin)), sys.stdout)"
    )
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder]
        subprocess.run([*pip, f"PyStemmer=={release}"], check=True)
        told = subprocess.run(
            [sys.executable, "-c", code],
            input=json.dumps(words),
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONPATH": folder, "PYTHONUTF8": "1"},
        )
    stems: list[str] = json.loads(told.stdout)
    return stems


def table(rows: Iterable[tuple[str, object]], says: str) -> bytes:
    """Comment lines, then two columns."""
    lines = [f"# {says}", "# MIT licence: LICENSE-pyspellchecker; made by tools/english_stems.py"]
    return "".join(f"{line}\n" for line in [*lines, *(f"{left}\t{right}" for left, right in rows)]).encode()


def main() -> None:
    """Write both files."""
    counts = word_counts()
    words = list(counts)
    by_release = [stems_of_release(release, words) for release in STEMMERS]
    kept = stem_counts(counts, by_release[-1])
    content = table(kept.items(), f"English stems and their counts: the word frequencies of {LIST} (OpenSubtitles)")
    (DATA / "english_stems.tsv.gz").write_bytes(gzip.compress(content, 9, mtime=0))
    differing = [(word, stems[-1]) for word, *stems in zip(words, *by_release, strict=True) if len(set(stems)) > 1]
    says = f"Words of {LIST} that PyStemmer {', '.join(STEMMERS)} stem differently, with the last one's stem"
    (DATA / "pinned_stems.tsv").write_bytes(table(differing, says))
    print(f"{len(kept)} stems, {len(differing)} pinned words")


if __name__ == "__main__":
    main()
