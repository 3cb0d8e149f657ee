"""The same scores, chunks and identifiers on every machine: the numbers here must not change by themselves."""

from __future__ import annotations

import gzip
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import drillrank
from drillrank import UPR, Passage, parse_document
from drillrank.data import read_table
from drillrank.likelihood.unigram import LISTED
from drillrank.views import Chunker, section_chunks
from tests.examples import some

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = """# Foxes\n
Foxes hunt at night. Their dens lie below old roots, and the cubs stay there until autumn.\n
## Food\n
They eat mice, beetles and berries: about 500 g a day, in the city whatever the bins hold.\n
# Whales\n
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


def chunks() -> list[tuple[str, int, int]]:
    cutter = Chunker("section", max_tokens=20)
    made = section_chunks(parse_document(DOCUMENT), "animals.md", ["raw"], chunker=cutter)
    return [(chunk.id, chunk.start, chunk.end) for chunk in made]


def test_the_examples_of_readme_and_page_have_these_scores_and_a_document_these_chunks_and_ids():
    assert readme_scores() == pytest.approx([-5.973328581621262, -8.042771177559604], abs=1e-9)
    texts = {"Mulberry": "Mulberry leaves feed the silkworm.", "Sericulture": "Silkworms are raised for their cocoons."}
    found = UPR().rank("Why are silkworms raised?", [Passage(text, title=title) for title, text in texts.items()])
    assert [entry.score for entry in found] == pytest.approx([-5.458620624842791, -6.340737257898692], abs=1e-9)
    assert chunks() == CHUNKS


def test_neither_hash_seed_nor_locale_nor_what_is_installed_changes_them():
    environment = {"PYTHONHASHSEED": "1", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment |= {"TIKTOKEN_CACHE_DIR": os.devnull, "TZ": "Asia/Tokyo"}
    code = (
        "import json, sys\n"
        "for name in ('tiktoken', 'spellchecker', 'transformers', 'llama_index'): sys.modules[name] = None\n"
        "from tests.drillrank.test_same_everywhere import chunks, readme_scores\n"
        "print(json.dumps([readme_scores(), chunks()]))"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, **environment})
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == [readme_scores(), [list(chunk) for chunk in CHUNKS]]


@pytest.mark.parametrize(("language", "stems"), some([("english", 23_938), ("german", 2_427), ("russian", 3_411)], 3))
def test_the_frequency_tables_are_what_their_script_makes(language, stems):
    """Also says that the installed stemmer and the table agree on every listed word."""
    pytest.importorskip("spellchecker", reason="which the script reads")
    made = runpy.run_path(str(ROOT / "tools" / "stems.py"))["stem_counts"](language)
    table = read_table(f"{language}_stems.tsv.gz")
    assert list(table.items()) == [(stem, str(count)) for stem, count in made.items()]
    assert len(table) == stems


def test_the_tables_say_where_they_come_from():
    folder = Path(drillrank.__file__).parent / "data"
    tables = sorted(folder.glob("*_stems.tsv.gz"))
    assert {table.name.partition("_")[0] for table in tables} == LISTED
    for table in tables:
        with gzip.open(table, "rt", encoding="utf-8") as lines:
            head = [next(lines), next(lines)]
        assert "pyspellchecker 0.9.1" in head[0]
        assert "MIT licence" in head[1]
    assert (folder / "LICENSE-pyspellchecker").is_file()
