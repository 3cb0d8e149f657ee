"""The same scores, chunks and identifiers on every machine: the numbers here must not change by themselves."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st

from drillrank import UPR, Passage, parse_document, terms
from drillrank.data import read_table
from drillrank.views import make_cutter, section_chunks

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = """# Foxes

Foxes hunt at night. Their dens lie below old roots, and the cubs stay there until autumn.

## Food

They eat mice, beetles and berries: about 500 g a day, in the city whatever the bins hold.

# Whales

Whales sing, and their songs travel far. Zürich has none; 東京 shows some on film.
"""
CHUNKS = [
    ("1161ce06-f025-5b5c-992e-9a90152c2e8e", 0, 9),
    ("a7947d7f-ad19-5144-9e00-d0acb52ce2d7", 9, 101),
    ("03c93f99-8bc1-52c0-acac-8cd292b0a8be", 101, 177),
    ("05d69f01-808c-53bd-b2b1-cbd86ad3a1d8", 177, 202),
    ("b155c5ed-08b8-508b-bb28-8b47d05751e6", 202, 253),
    ("19b66ba9-8d3f-5698-995e-3446486e6c77", 253, 293),
]


def readme_scores() -> list[float]:
    passages = ["Basel is a town in Switzerland.", "The Rhine is the river that flows through Basel."]
    return [entry.score for entry in UPR().rank("Which river flows through Basel?", passages)]


def handbook_scores() -> list[float]:
    passages = [
        Passage("Mulberry leaves feed the silkworm.", title="Mulberry"),
        Passage("Silkworms are raised for their cocoons.", title="Sericulture"),
    ]
    return [entry.score for entry in UPR().rank("Why are silkworms raised?", passages)]


def chunks() -> list[tuple[str, int, int]]:
    cutter = make_cutter("section", max_tokens=20)
    made = section_chunks(parse_document(DOCUMENT), "animals.md", ["raw"], cutter=cutter)
    return [(chunk.id, chunk.start, chunk.end) for chunk in made]


def test_the_examples_of_readme_and_handbook_have_these_scores():
    assert readme_scores() == pytest.approx([-5.97332834112248, -8.042770470049915], abs=1e-9)
    assert handbook_scores() == pytest.approx([-5.458620191387874, -6.340736522876254], abs=1e-9)


def test_a_document_has_these_chunks_and_ids():
    assert chunks() == CHUNKS


def test_a_passage_without_an_id_has_this_one():
    assert Passage("The Rhine flows through Basel.", title="Rhine").id == "7a7e4a03214073113ca58cf6c134d765"


def test_neither_hash_seed_nor_locale_nor_what_is_installed_changes_them():
    environment = {
        "PYTHONHASHSEED": "1",
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "TIKTOKEN_CACHE_DIR": os.devnull,
        "TZ": "Asia/Tokyo",
    }
    code = (
        "import json, sys\n"
        "for name in ('tiktoken', 'spellchecker', 'transformers', 'llama_index'): sys.modules[name] = None\n"
        "from tests.drillrank.test_same_everywhere import chunks, readme_scores\n"
        "print(json.dumps([readme_scores(), chunks()]))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, env={**os.environ, **environment}
    )
    assert result.returncode == 0, result.stderr
    scores, made = json.loads(result.stdout)
    assert scores == readme_scores()
    assert made == [list(chunk) for chunk in CHUNKS]


def test_the_frequency_table_is_what_its_script_makes():
    """Also says that the installed stemmer and the table agree on every listed word."""
    found = importlib.util.find_spec("spellchecker")
    if found is None:
        pytest.skip("pyspellchecker, which the script reads, is not installed")
    script = runpy.run_path(str(ROOT / "tools" / "english_stems.py"))
    counts = script["word_counts"]()
    made = script["stem_counts"](counts, terms.terms(" ".join(counts)))
    table = read_table("english_stems.tsv.gz")
    assert list(table.items()) == [(stem, str(count)) for stem, count in made.items()]
    assert len(table) == 23_935


def test_the_table_says_where_it_comes_from():
    folder = ROOT / "shared" / "drillrank" / "data"
    with gzip.open(folder / "english_stems.tsv.gz", "rt", encoding="utf-8") as lines:
        head = [next(lines), next(lines)]
    assert "pyspellchecker 0.9.1" in head[0]
    assert "MIT licence" in head[1]
    assert (folder / "LICENSE-pyspellchecker").is_file()


class OldStemmer:
    """Stems a few words as PyStemmer 2.2 and 3.0 do."""

    def stemWord(self, word):
        return {"organization": "organ", "internal": "intern", "added": "ad", "rivers": "river"}.get(word, word)


def test_words_that_releases_of_the_stemmer_stem_differently_have_one_stem(monkeypatch):
    text = "The rivers added internal organization"
    expected = ["the", "river", "add", "internal", "organiz"]
    assert terms.terms(text) == expected
    old = terms._Stems()
    monkeypatch.setattr(old, "_stemmer", OldStemmer())
    monkeypatch.setattr(terms._per_thread, "stems", old, raising=False)
    assert terms.terms(text) == expected


@given(st.lists(st.text("abAB1_ İßéſ", max_size=60)))
def test_words_that_are_remembered_have_the_stems_of_new_ones(texts):
    """However few are remembered: the stems are those of the stemmer, asked word by word."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(terms, "_REMEMBERED", 3)
        patched.setattr(terms, "_LONG", 5)
        patched.setattr(terms._per_thread, "stems", terms._Stems(), raising=False)
        stemmer = Stemmer.Stemmer("english")
        for text in texts * 2:
            assert terms.terms(text) == [stemmer.stemWord(word.lower()) for word in re.findall(r"\w+", text)]
        assert len(terms._per_thread.stems) <= 3
        assert all(len(word) <= 5 for word in terms._per_thread.stems)
