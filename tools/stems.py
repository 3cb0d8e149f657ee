"""Makes the data files of `drillrank.data` from pyspellchecker's lists and the releases of PyStemmer.

    python tools/stems.py        # with pyspellchecker 0.9.1 and pip

Only needed for other lists, another release of PyStemmer, or another analyzer; scores change with each.
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

from drillrank.text import terms

DATA = Path(__file__).resolve().parents[1] / "shared" / "drillrank" / "data"
STEMMERS = ("2.2.0.3", "3.0.0", "3.1.0")  # the last one's stems count
RAREST = 1e-7  # an English stem's share of all counts; `drillrank.likelihood.unigram.UNLISTED`
COMMON = 1e-5  # the same of other languages, where mostly small words have to be known
LIST = "pyspellchecker 0.9.1"
CODES = {
    "english": "en",
    "dutch": "nl",
    "french": "fr",
    "german": "de",
    "italian": "it",
    "portuguese": "pt",
    "russian": "ru",
    "spanish": "es",
}


def word_counts(language: str) -> dict[str, int]:
    """How often each word occurs in a language, in the list's order."""
    found = importlib.util.find_spec("spellchecker")
    if found is None or not found.submodule_search_locations:
        sys.exit(f"The word lists are missing: pip install {LIST.replace(' ', '==')}")
    file = Path(found.submodule_search_locations[0]) / "resources" / f"{CODES[language]}.json.gz"
    counts: dict[str, int] = json.loads(gzip.decompress(file.read_bytes()))
    return {word: count for word, count in counts.items() if word.isalnum()}


def stem_counts(language: str) -> dict[str, int]:
    """The counts of words with the same stem added up, those of the rarest stems left out."""
    added: Counter[str] = Counter()
    for word, count in word_counts(language).items():
        for stem in terms(word, language):
            added[stem] += count
    fewest = (RAREST if language == "english" else COMMON) * added.total()
    return {stem: count for stem, count in added.items() if count > fewest}


def stems_of_release(release: str, words: list[str]) -> list[str]:
    """What a release of PyStemmer makes of English words."""
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
    lines = [f"# {says}", "# MIT licence: LICENSE-pyspellchecker; made by tools/stems.py"]
    return "".join(f"{line}\n" for line in [*lines, *(f"{left}\t{right}" for left, right in rows)]).encode()


def main() -> None:
    """Write all files."""
    words = list(word_counts("english"))
    by_release = [stems_of_release(release, words) for release in STEMMERS]
    differing = [(word, stems[-1]) for word, *stems in zip(words, *by_release, strict=True) if len(set(stems)) > 1]
    says = f"Words of {LIST} that PyStemmer {', '.join(STEMMERS)} stem differently, with the last one's stem"
    (DATA / "pinned_stems.tsv").write_bytes(table(differing, says))
    for language in CODES:
        kept = stem_counts(language)
        says = f"{language.title()} stems and their counts: the word frequencies of {LIST} (OpenSubtitles)"
        (DATA / f"{language}_stems.tsv.gz").write_bytes(gzip.compress(table(kept.items(), says), 9, mtime=0))
        print(f"{language}: {len(kept)} stems")
    print(f"{len(differing)} pinned words")


if __name__ == "__main__":
    main()
