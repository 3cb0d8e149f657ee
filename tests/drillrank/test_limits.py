"""Inputs that were made to harm: each is one error or one warning, and the run goes on."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from drillrank import Passage, limits, parse_document, read_document
from drillrank.cli import main
from drillrank.cli.sources import list_input_files
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.evaluation import compare
from drillrank.evaluation.corpora import read_corpus
from drillrank.evaluation.questions import read_questions
from drillrank.structure.document import document_from_json, document_to_json
from drillrank.structure.imported import document_from_docling
from drillrank.structure.pages import Pages
from tests.examples import size

GOOD = "# Kettle\n\nThe warranty covers the heater.\n"


pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with one good file."""
    here = tmp_path / "folder"
    here.mkdir()
    (here / "good.md").write_text(GOOD, encoding="utf-8")
    monkeypatch.chdir(here)
    return here


def files_of(printed: str) -> set[str]:
    """Return the files of the evidence, and those with the same text."""
    results = map(json.loads, printed.splitlines())
    evidence = [item for result in results for item in result.get("evidence", ())]
    return {place["file"] for item in evidence for place in (item, *item.get("also", ()))}


# JSON


@pytest.mark.parametrize("deep", ["[" * 100_000, "[" * 300 + "]" * 300], ids=["endless", "300 deep"])
def test_deep_json_is_an_error_wherever_json_is_read(deep, folder, capsys):
    row = {"question": "Who?", "gold": ["1"]}
    line = json.dumps(row | {"more": 0}).replace('"more": 0', f'"more": {deep}')
    (folder / "asked.jsonl").write_text(line + "\n", encoding="utf-8")
    (folder / "results.jsonl").write_text(deep + "\n", encoding="utf-8")
    (folder / "asked.csv").write_text(f'question,gold\nWho?,"{deep}"\n', encoding="utf-8")
    for read in (
        lambda: read_questions(folder / "asked.jsonl"),
        lambda: read_questions(folder / "asked.csv"),
        lambda: compare([row], {"UPR": "UPR"}, [Passage("a", id="1")], results=folder / "results.jsonl"),
        lambda: document_from_json(deep),
        lambda: document_from_docling(f'{{"body": {deep}}}'),
    ):
        with pytest.raises(InvalidInput, match="nested too deeply") as raised:
            read()
        assert len(str(raised.value)) < 400
    assert Pages.from_json(deep) is None
    for command in (["compare", "asked.jsonl"], ["compare", "asked.jsonl", "--component", f'{{"mu": {deep}}}']):
        assert main(command) == 2
        assert "nested too deeply" in capsys.readouterr().err
    assert main(["tune", "asked.jsonl", "--try", f"mu={deep}"]) == 2
    assert "nested too deeply" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["[" + "[]," * 10_000 + "[]]", '{"a": ' * 200 + "1" + "}" * 200])
def test_json_with_too_many_lists_and_objects_is_refused(text):
    limits.read_json(text, "The answer")
    with pytest.raises(InvalidInput, match=r"The answer is not JSON .more than 100 lists and objects"):
        limits.read_json(text, "The answer", 100)


@pytest.mark.parametrize(
    "value",
    ["[" * 1000, '\\" [' * 1000, "\\\\", '"' * 999, ["{[" * 300], {"[" * 300: [1]}, "]" * 1000 + "\\\\\\" + "[" * 1000],
)
def test_brackets_in_strings_of_json_do_not_count(value):
    assert limits.read_json(json.dumps(value), "The answer", 5) == value


LONG = ['"' + '\\"' * 15_000_000 + '"', '"' + "[" * 20_000_000, "\\" * 20_000_001, "1" * 20_000_000, "{" * 20_000_000]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", LONG, ids=["quotes", "brackets", "backslashes", "digits", "objects"])
def test_long_json_takes_little_time_and_memory(text):
    if text.endswith('\\""'):
        assert len(limits.read_json(text, "The answer", 1000)) == 15_000_000
    else:
        with pytest.raises(InvalidInput, match=r"The answer is not JSON"):
            limits.read_json(text, "The answer", 1000)


SAVED = json.loads(document_to_json(parse_document("# Sea\n\nDeep.\n\n## Fish\n\nCod.\n")))


@pytest.mark.parametrize(
    "change",
    [
        lambda saved: saved["sections"][0].__setitem__(2, -5),
        lambda saved: saved["sections"][-1].__setitem__(3, 10**9),
        lambda saved: saved["sections"][0].__setitem__(3, saved["sections"][0][3] - 1),
        lambda saved: saved["sections"][0].__setitem__(3, "9"),
        lambda saved: saved["blocks"][0][1].__setitem__(2, 10**9),
        lambda saved: saved["blocks"][1][0].__setitem__(1, 0),
        lambda saved: saved["blocks"][0].reverse(),
        lambda saved: saved["blocks"].pop(),
        lambda saved: saved["blocks"][0][0].__setitem__(1, 0.0),
        lambda saved: saved.__setitem__("text", saved["text"][:-1]),
    ],
)
def test_a_saved_document_with_places_outside_its_text_is_refused(change):
    saved = json.loads(json.dumps(SAVED))
    document_from_json(json.dumps(saved))
    change(saved)
    with pytest.raises(InvalidInput, match="must be a document saved"):
        document_from_json(json.dumps(saved))


# Arguments


@pytest.mark.parametrize("name", ["--settings=s.json", "--settings", "--json", "--questions=s.json", "-x", "-"])
@pytest.mark.parametrize("command", ["ask", "compare"])
def test_a_files_name_is_no_option(folder, capsys, name, command):
    (folder / name).write_text(GOOD, encoding="utf-8")
    (folder / "s.json").write_text("{}", encoding="utf-8")
    assert main([command, *sorted(os.listdir(folder)), "the warranty"]) == 2  # as a shell writes `*`
    printed = capsys.readouterr()
    assert f"{name} is an option and the name of a file" in printed.err
    assert not printed.out


@pytest.mark.parametrize("command", [["ask", "--" + "x" * 9999], ["ask", "x" * 9999, "Who?"], ["outline", "x*" * 9999]])
def test_what_is_quoted_of_an_argument_ends(folder, capsys, command):
    assert main(command) == 2
    [told] = capsys.readouterr().err.splitlines()
    assert len(told) < 300


# Files


def test_two_asterisks_enter_no_circle(folder):
    (folder / "a").mkdir()
    (folder / "a" / "deep.md").write_text("deep", encoding="utf-8")
    for name in ("one", "two"):
        (folder / name).symlink_to(folder)  # in circles there would be 2^40 folders
    for pattern, names in {
        "**/*.md": ["a/deep.md", "good.md"],
        "**": ["a/deep.md", "good.md"],
        "a/**": ["a/deep.md"],
    }.items():
        sources, skipped = list_input_files([pattern])
        assert sorted(source.name for source in sources) == names
        assert not skipped
    sources, _ = list_input_files([str(folder.parent / "f*" / "**" / "d*.md")])
    assert [source.path for source in sources] == [folder / "a" / "deep.md"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
@pytest.mark.parametrize("place", ["pipe", os.devnull])
def test_what_is_no_plain_file_is_no_document(folder, place):
    os.mkfifo(folder / "pipe")
    with pytest.raises(InvalidInput, match="not a regular file"):
        read_document(place)


@pytest.mark.parametrize("name", ["-", "/dev/zero"])
def test_a_stream_ends_at_the_limit(folder, capsys, monkeypatch, name):
    monkeypatch.setattr(limits, "FILE_BYTES", 2_000_000)
    monkeypatch.setattr(sys, "stdin", open("/dev/zero"))  # noqa: SIM115
    with sys.stdin:
        assert main(["ask", name, "What does the warranty cover?"]) == 2
    assert "has more than 2 MB" in capsys.readouterr().err


def test_a_deep_folder_is_read_as_far_as_the_limit(folder, capsys):
    for depth in range(limits.FOLDER_DEPTH + 20):
        place = folder.joinpath(*"d" * depth)
        place.mkdir(exist_ok=True)
        (place / f"{depth}.md").write_text(f"{GOOD}{depth}", encoding="utf-8")
    for given in (".", "**/*.md"):
        sources, skipped = list_input_files([given])
        assert len(sources) == limits.FOLDER_DEPTH + 2
        assert len(skipped) == (given == ".")
    assert main(["ask", ".", "What does the warranty cover?"]) == 0
    assert capsys.readouterr().err.count("too deep") == 1


def test_links_that_lead_outside_are_followed_on_request(folder, capsys):
    outside = folder.parent / "outside"
    (outside / "more").mkdir(parents=True)
    (outside / "secret.md").write_text(f"{GOOD}secret", encoding="utf-8")
    (outside / "more" / "other.md").write_text(f"{GOOD}other", encoding="utf-8")
    (folder / ".kept").mkdir()
    (folder / ".kept" / "inside.md").write_text(f"{GOOD}inside", encoding="utf-8")
    (folder / "inside.md").symlink_to(Path(".kept", "inside.md"))
    (folder / "secret.md").symlink_to(outside / "secret.md")
    (folder / "sub").mkdir()
    (folder / "sub" / "more").symlink_to(outside / "more")
    for given, left in ((".", 2), ("*", 1), ("**/*.md", 1), ("s*/m*/*.md", 1)):
        assert main(["ask", given, "What does the warranty cover?", "--json"]) == (2 if given.startswith("s*") else 0)
        printed = capsys.readouterr()
        assert files_of(printed.out) == (set() if given.startswith("s*") else {"good.md", "inside.md"})
        told = [line for line in printed.err.splitlines() if "not followed" in line]
        assert given.startswith("s*") or "secret.md'" in printed.err
        assert sum(int(line.split(": ")[1].split(" ")[0]) for line in told) >= left
        assert "1 links" not in printed.err
        assert main(["ask", given, "What does the warranty cover?", "--json", "--follow-links"]) == 0
        printed = capsys.readouterr()
        assert not {"secret.md", "other.md"}.isdisjoint(map(os.path.basename, files_of(printed.out)))
        assert "not followed" not in printed.err
    assert main(["ask", "secret.md", "What does the warranty cover?", "--json"]) == 0  # it was named


def test_one_bad_file_never_ends_a_run(folder, capsys, monkeypatch):
    monkeypatch.setattr(limits, "FILE_BYTES", 2_000_000)
    for number in range(3):
        (folder / f"good{number}.md").write_text(f"{GOOD}{number}", encoding="utf-8")
    (folder / "heading.md").write_text(f"# {'fox ' * size(250_000)}\n\n{GOOD}", encoding="utf-8")
    bad = {
        "bytes.md": b"\x89PNG\r\n\0",
        "broken.pdf": b"%PDF-1.7 broken",
        "broken.docx": b"PK\x03\x04 broken",
        "broken.epub": b"PK\x03\x04 broken",
        "large.md": b"a" * 2_000_001,
        "bomb.md": b"takes more memory than there is",
        "secret.md": b"The warranty.",
    }
    for name, content in bad.items():
        (folder / name).write_bytes(content)
    os.mkfifo(folder / "pipe.md")
    (folder / "nowhere.md").symlink_to(folder / "missing")
    parsed = parse_document

    def without_memory(text, *arguments, **options):
        if "more memory" in text:
            raise MemoryError
        return parsed(text, *arguments, **options)

    opened = os.open

    def refusing(path, *arguments, **options):  # root may read what its mode forbids
        if str(path).endswith("secret.md"):
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments, **options)

    monkeypatch.setattr(limits, "READ_HERE_BYTES", 10_000_000)  # in this process
    monkeypatch.setattr("drillrank.structure.read.parse_document", without_memory)
    monkeypatch.setattr(os, "open", refusing)
    bad |= {"pipe.md": b"", "nowhere.md": b""}
    assert main(["ask", ".", "What does the warranty cover?", "--json", "--top-n", "9"]) == 0
    printed = capsys.readouterr()
    good = {"good.md", "good0.md", "good1.md", "good2.md", "heading.md"}
    assert files_of(printed.out) == good
    for name in bad:
        assert sum(name in line for line in printed.err.splitlines()) == 1, (name, printed.err)
    bad["numbers.csv"] = b"animal,legs\nfox,4\n"
    (folder / "numbers.csv").write_bytes(bad["numbers.csv"])
    with pytest.warns(DrillrankWarning) as warned:
        corpus = read_corpus(folder)
    assert corpus.documents.keys() == good
    told = [str(warning.message) for warning in warned]
    for name in bad.keys() - {"broken.docx", "broken.epub"}:  # a comparison reads texts, PDFs and tables
        assert sum(name in line for line in told) == 1, (name, told)
