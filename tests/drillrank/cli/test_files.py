"""Folders, patterns, standard input, JSON and the corpus of the command line."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drillrank import D3
from drillrank.cli import main, reading
from drillrank.cli.corpus import FileCorpus
from drillrank.cli.sources import InputFile, list_input_files
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.evaluation import compare
from drillrank.explanation.explanations import SCORING
from drillrank.structure import parse_document
from drillrank.structure.document import document_from_json, document_to_json
from drillrank.structure.isolation import ReaderFailure
from drillrank.structure.pages import Pages
from drillrank.structure.worker import Frame
from tests.drillrank.helpers import quiet
from tests.processes import interruptible

MANUAL = "# Kettle\n\n## Warranty\n\nThe warranty covers the heater.\n\n## Care\n\nBoil vinegar.\n"
QUESTION = "What does the warranty cover?"
posix = pytest.mark.skipif(os.name == "nt", reason="modes, pipes and links are POSIX's")


pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def inside(tmp_path, monkeypatch):
    folder = tmp_path / "docs"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def valves(inside):
    for number in range(12):
        Path(f"{number}.md").write_text(f"# Part {number}\n\nThe valve{number} opens.\n", encoding="utf-8")
    return inside


def records(printed: str) -> list[dict]:
    return [json.loads(line) for line in printed.splitlines()]


def asked(capsys, *arguments: str, status: int = 0) -> tuple[list[dict], str]:
    """Return the evidence of all questions on standard output, and standard error."""
    assert main(["ask", "--json", *arguments]) == status
    printed = capsys.readouterr()
    return [item for result in records(printed.out) for item in result.get("evidence", ())], printed.err


def write(tree: dict[str, str | bytes]) -> None:
    for name, content in tree.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())


def sources_of(*files: Path, named: bool = True) -> list[InputFile]:
    return [InputFile(str(file), file, named) for file in files]


def evidence(corpus: FileCorpus, question: str) -> tuple[str, str]:
    """Name of the best file, and its text."""
    found = corpus.ask(D3(), lambda files: D3().retrieve(question, files, 1))[0].passage
    return corpus.names[found.metadata["document"]], found.text


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8).filter(
    lambda name: name not in (".", "..") and len(name.encode()) < 100
)
CONTENTS = st.sampled_from([b"", b"kettle", b"# A\r\n\r\nkettle\r\n", b"\0kettle", "Käse kettle".encode("latin-1")])
TREES = st.recursive(CONTENTS, lambda inside: st.dictionaries(NAMES, inside, max_size=3), max_leaves=6)


def planted(tree: dict | bytes, at: Path) -> dict[str, bytes]:
    """Write a tree; its files by name, but for hidden ones."""
    if isinstance(tree, bytes):
        at.write_bytes(tree)
        return {str(at): tree}
    at.mkdir()
    return {
        name: content
        for child, below in tree.items()
        for name, content in planted(below, at / child).items()
        if not child.startswith(".")
    }


@quiet  # of what is no UTF-8
@settings(max_examples=int(os.environ.get("DRILLRANK_FUZZ", "25")), suppress_health_check=list(HealthCheck))
@given(st.dictionaries(NAMES, TREES, max_size=3))
def test_every_file_of_a_folder_is_read_once_or_told(tmp_path_factory, tree):
    root = tmp_path_factory.mktemp("tree") / "root"
    files = planted(tree, root)
    found, skipped = list_input_files([str(root)])
    assert not skipped
    assert sorted(source.name for source in found) == sorted(files)
    read = FileCorpus(found, None, "english")
    names = list(read.names.values())
    assert len(names) + len(read.skipped) == len(files)
    assert len({(files[name], Path(name).suffix.lower()) for name in names}) == len(names)
    for name, content in files.items():
        reason = "is not text" if b"\0" in content else "holds no text" if not content else "has the same content as"
        assert name in names or [one for one in read.skipped if one.startswith(f"{name} {reason}")]


IGNORED = {
    ".git/config": "x",
    ".venv/lib/a.md": MANUAL,
    ".gitignore": "build/\n*.log\n!kept.log\n/top.md\n*a*a*a*a*a*a*a*b\n",
    "docs/.gitignore": "draft*\n",
    **dict.fromkeys(["build/a.md", "run.log", "top.md", "docs/draft.md", "docs/build/b.md"], f"{MANUAL}\n\nno\n"),
    **{name: f"{MANUAL}\n\n{name}\n" for name in ("docs/top.md", "kept.log", "sub/word.docx.md", "a" * 200)},
}


@pytest.mark.filterwarnings("ignore:.*rule is not applied:drillrank.errors.DrillrankWarning")
def test_what_is_hidden_or_ignored_is_read_by_no_command(inside):
    write(IGNORED)
    read = {"a" * 200, "docs/top.md", "kept.log", "sub/word.docx.md"}
    for arguments, names in {
        ".": read,
        "docs": {"docs/top.md"},  # as the rules of the repository have it
        "build": {"build/a.md"},  # it was named
        "**/*.md": {"docs/top.md", "sub/word.docx.md"},
        "docs/**": {"docs/top.md"},
        "top.md docs": {"top.md", "docs/top.md"},
        "*.log": {"kept.log", "run.log"},  # as a shell has it
    }.items():
        found, skipped = list_input_files(arguments.split())
        assert {source.name for source in found} == names
        assert not skipped
    question = {"question": QUESTION, "spans": ["The warranty covers the heater."]}
    ends: set[str] = set()

    def system(query, passages):
        ends.update(passage.text.split()[-1] for passage in passages)
        return passages

    compare([question], {"system": system}, ".", measures=["RR"])
    assert {"docs/top.md", "sub/word.docx.md"} <= ends
    assert "no" not in ends


def test_several_questions_patterns_and_standard_input(inside, capsys):
    write({"a.md": MANUAL, "b.txt": "Vinegar removes lime."})
    write({"asked": f"{QUESTION}\r\n\r\nzyzzyva\nWhat removes lime?\n"})
    assert main(["ask", "--json", "[ab].*", "--questions", "asked", "--top-n", "1"]) == 0
    first, nothing, second = records(capsys.readouterr().out)
    for result, question, file in ((first, QUESTION, "a.md"), (second, "What removes lime?", "b.txt")):
        assert (result["question"], result["found"], result["scoring"]) == (question, True, SCORING)
        assert [item["file"] for item in result["evidence"]] == [file]
    assert (nothing["question"], nothing["found"]) == ("zyzzyva", False)
    assert "evidence" not in nothing
    assert main(["ask", "--json", "a.md", "zyzzyva"]) == 1
    [whole] = records(capsys.readouterr().out)  # a small file is shown whole
    assert (whole["found"], [item["file"] for item in whole["evidence"]]) == (False, ["a.md"])
    for arguments, given_, names in (
        (["-", "warranty"], MANUAL, "(standard input)"),
        (["warranty"], MANUAL, "(standard input)"),
        (["b.txt", "--questions", "-"], "lime\n", "b.txt"),
    ):
        command = [sys.executable, "-m", "drillrank", "ask", *arguments, "--json", "--top-n", "1"]
        result = subprocess.run(command, input=given_, capture_output=True, text=True, check=True)
        assert [item["file"] for item in records(result.stdout)[0]["evidence"]] == [names]


@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("options", [["--json"], ["--top-n", "2", "--json", "--no-cache"]])
def test_options_stand_anywhere(inside, capsys, at, options):
    write({name: f"{MANUAL}\n{name}" for name in ("a.md", "b.md")})
    words = ["a.md", "b.md", "the warranty"]
    for question in (words[-1], "-5 years of the warranty of the heater"):
        assert main(["ask", *words[:at], *options, *words[at:-1], question]) == 0
        [result] = records(capsys.readouterr().out)
        assert result["question"] == question
        evidence = result["evidence"]
        assert {place["file"] for item in evidence for place in (item, *item.get("also", ()))} == {"a.md", "b.md"}


def test_a_second_question_parses_nothing_and_warns_again(valves, capsys, monkeypatch):
    write({"latin.txt": "Straße und Café".encode("latin-1"), "empty.md": ""})
    first, errors = asked(capsys, ".", "valve7")
    assert first[0]["file"] == "7.md"
    assert "latin.txt is not UTF-8" in errors
    assert "empty.md holds no text" in errors
    monkeypatch.setattr(reading, "read_content", None)
    assert asked(capsys, ".", "valve7") == (first, errors)
    assert asked(capsys, "latin.txt", "und")[0][0]["text"] == "Straße und Café"
    assert "TypeError" in asked(capsys, ".", "valve7", "--no-cache", status=2)[1]


DAMAGE = {
    "parse": "UPDATE documents SET parse = X'00FF'",
    "lengths": "UPDATE blocks SET lengths = X'00'",
    "entries": "UPDATE postings SET entries = X'FFFFFFFF'",
    "table": "CREATE TABLE more (a)",
}


@pytest.mark.parametrize("damage", ["garbage", "cut", *DAMAGE])
def test_a_damaged_cache_is_made_anew(valves, own_cache, capsys, damage):
    right, _ = asked(capsys, ".", "valve7 opens")
    (file,) = own_cache.rglob("*.sqlite")
    if damage == "garbage":
        file.write_bytes(b"no database" * 1000)
    elif damage == "cut":
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    else:
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute(DAMAGE[damage])
    for _ in range(2):
        assert asked(capsys, ".", "valve7 opens")[0] == right


def homeless(path):
    """As in a container whose user has no entry among the system's."""
    raise RuntimeError("Could not determine home directory.")


@pytest.mark.parametrize("homeless", [None, homeless])
def test_a_cache_that_cannot_be_written_is_done_without(inside, capsys, monkeypatch, homeless):
    write({"a.md": MANUAL})
    if homeless:
        monkeypatch.setattr(Path, "expanduser", homeless)
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", str(inside / "a.md"))
    [first], errors = asked(capsys, "a.md", "warranty")
    assert "Nothing is cached" in errors
    assert "covers the heater" in first["text"]


@posix
@pytest.mark.parametrize("trick", ["writable", "link to a folder", "link to a file", "pipe"])
def test_what_others_may_have_written_is_not_read(inside, own_cache, capsys, trick):
    write({"manual.md": MANUAL})
    folder, elsewhere = own_cache / "drillrank", own_cache / "elsewhere"
    asked(capsys, "manual.md", "warranty")
    [kept] = folder.glob("*.sqlite")
    assert (folder.stat().st_mode & 0o077, kept.stat().st_mode & 0o077) == (0, 0)
    with closing(sqlite3.connect(kept)) as database, database:
        database.execute("UPDATE passages SET text = replace(text, 'heater', 'lie123')")
    assert "lie123" in asked(capsys, "manual.md", "warranty")[0][0]["text"]  # as long as it is the user's own
    if trick == "writable":
        folder.chmod(0o777)
    elif trick == "link to a folder":
        folder.rename(elsewhere)
        folder.symlink_to(elsewhere)
    else:
        kept.rename(elsewhere)
        kept.symlink_to(elsewhere) if trick == "link to a file" else os.mkfifo(kept)
    [first], errors = asked(capsys, "manual.md", "warranty")
    assert "covers the heater" in first["text"]
    assert "Nothing is cached" in errors or "cache cannot be used" in errors
    assert elsewhere.exists() or trick == "writable"


def test_many_files_are_read_by_several_processes_as_by_one(inside, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    texts = [f"# Part {number}\n\n{f'The valve{number} opens. ' * 5_000}".encode() for number in range(40)]
    files = [Path(f"{number:02}.md") for number in range(40)]
    write(dict(zip(map(str, files), [b"\0", b"valve \xe9", *texts[2:]], strict=True)))
    sources = sources_of(*files, named=False)
    counted: list[tuple[int, int]] = []
    for _ in range(2):  # what a file is warned of is said again
        with pytest.warns(DrillrankWarning, match=r"01\.md is not UTF-8"):
            corpus = FileCorpus(sources, inside / "cache", "english", lambda *done: counted.append(done))
        assert [one.partition(":")[0] for one in corpus.skipped] == ["00.md is not text."]
        assert list(corpus.names.values()) == [file.name for file in files[1:]]
    assert counted == [(number, 40) for number in range(1, 41)]  # in the second round none is read
    for number in (2, 20, 39):
        assert evidence(corpus, f"valve{number}")[0] == f"{number:02}.md"


GOOD_FILES = {f"good{number}.md": f"# Part {number}\n\nThe valve{number} opens.\n" for number in range(3)}
HOSTILE_FILES: dict[str, bytes] = {
    "broken.pdf": b"%PDF-1.7 broken",
    "broken.docx": b"PK\x03\x04 broken",
    "broken.epub": b"PK\x03\x04 broken",
    "zeros.pptx": bytes(5_000),
    "image.md": b"\x89PNG\r\n\0",
    "escape\x1b[31m.md": b"\0",
    "new\nline.md": b"\0",
}


@posix
def test_one_hostile_file_of_each_kind_costs_one_line_and_all_good_files_are_read(inside, capsys):
    write({**GOOD_FILES, **HOSTILE_FILES, "sub/.gitignore": "[z-a]\n\\\n!\n", "sub/good4.md": "The valve4 opens."})
    Path(os.fsdecode(b"half\xff.md")).write_bytes(b"\0")
    os.mkfifo("pipe.md")
    Path("nowhere.md").symlink_to("missing")
    folder = inside
    for _ in range(60):
        folder = folder / "deep"
        folder.mkdir()
    found, errors = asked(capsys, ".", "--top-n", "9", "Which valve0 valve1 valve2 valve4 opens?")
    assert {one["file"] for one in found} == {*GOOD_FILES, "sub/good4.md"}
    assert "\x1b[31m" not in errors
    assert "fault of drillrank" not in errors
    assert "3 rules are not applied" in errors
    for name in ("broken.pdf", "broken.docx", "broken.epub", "zeros.pptx", "image.md", "pipe.md", "nowhere.md"):
        assert sum(name in line for line in errors.splitlines()) <= 1, errors


@pytest.mark.skipif(sys.platform == "win32", reason="links")
def test_a_link_that_takes_a_files_place_is_not_followed(inside):
    (inside.parent / "secret.md").write_text("TOPSECRET", encoding="utf-8")
    write({"a.md": MANUAL, "sub/b.md": MANUAL})
    [file] = [file for file in list_input_files(["."])[0] if file.name == "a.md"]
    assert file.read() == MANUAL.encode()
    Path("a.md").unlink()
    Path("a.md").symlink_to(inside.parent / "secret.md")
    with pytest.raises(InvalidInput, match=r"a\.md cannot be read: it is not in \."):
        file.read()
    Path("a.md").unlink()
    Path("a.md").symlink_to("sub/b.md")
    assert file.read() == MANUAL.encode()  # a link within the folder


@posix
def test_a_file_that_vanishes_or_becomes_a_folder_is_one_line(valves):
    files = list_input_files(["."])[0]
    files[0].path.unlink()
    files[1].path.unlink()
    files[1].path.mkdir()
    corpus = FileCorpus(files, None, "english")
    assert len(corpus.names) == len(files) - 2
    assert len(corpus.skipped) == 2


def test_a_file_that_changes_between_its_key_and_its_reading_is_refused(valves):
    [file] = list_input_files(["1.md"])[0]
    [(_, result)] = reading.read_files([reading.KeyedFile(b"another key", file)], "paragraph")
    assert "was changed while it was read" in str(result)


def test_what_a_worker_answers_is_checked(inside):
    value, attachment = reading.prepare_in_worker(MANUAL.encode(), {"id": "ff", "path": "a.md", "unit": "paragraph"})
    value = json.loads(json.dumps(value))
    assert reading._prepared_from_frame(Frame(value, attachment), b"\xff").rows
    for change in (
        {"id": "other"}, {"rows": [[1]]}, {"rows": None}, {"lengths": [1, 2]}, {"lengths": "abcd"}, {"context": []},
        {"rows": [["a", 2**70, "", "", "[]", "{}"]]}, {"rows": value["rows"][:1]},
        {"context": [[[-1, "", ""]], ""]}, {"has_pages": 1},
    ):  # fmt: skip
        with pytest.raises(ReaderFailure, match=r"unknown form"):
            reading._prepared_from_frame(Frame({**value, **change}, attachment), b"\xff")


STARTING = """
import os, signal, sys
class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == "drillrank.cli.ask":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
from drillrank.cli import main, reading
sys.exit(main(["ask", "-", "warranty"]))
"""


def test_an_interrupt_while_the_command_starts_is_no_traceback():
    process = interruptible([sys.executable, "-c", STARTING])
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, b"")


@posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_with_their_status_and_leave_no_copy(inside, number):
    os.mkfifo("pipe")
    Path("tmp").mkdir()
    command = [sys.executable, "-m", "drillrank", "ask", "pipe", "warranty"]
    process = interruptible(command, env={**os.environ, "TMPDIR": str(inside / "tmp")})
    writing = os.open("pipe", os.O_WRONLY)  # opens as soon as the command reads
    assert list(Path("tmp").iterdir())
    for one in (number, signal.SIGINT, signal.SIGTERM):  # whoever sends them is impatient
        process.send_signal(one)
    _, errors = process.communicate(timeout=60)
    os.close(writing)
    assert process.returncode in (128 + one for one in (number, signal.SIGINT, signal.SIGTERM))
    assert b"Traceback" not in errors
    assert not list(Path("tmp").iterdir())


@given(st.text("#ab |-\n`*", max_size=60), st.sampled_from(["markdown", "text", "html"]))
def test_saved_documents_come_back_equal(text, format):
    document = parse_document(f"§ 1 Term\n\n{text}", format)
    document = replace(document, pages=Pages.of([(0, 3, "iii"), (4, 5, "5")]))
    assert document_from_json(document_to_json(document)) == document


def test_a_broken_file_is_not_read_again(inside, capsys, monkeypatch):
    write({"a.md": MANUAL, "broken.pdf": b"%PDF-1.7 broken"})
    _, first = asked(capsys, ".", QUESTION)
    monkeypatch.setattr(reading, "run_task", lambda *_: pytest.fail("it is read again"))
    _, second = asked(capsys, ".", QUESTION)
    assert first == second
    assert "broken.pdf cannot be read" in second
    assert main(["ask", "broken.pdf", QUESTION]) == 2
    assert "broken.pdf cannot be read" in capsys.readouterr().err
    Path("broken.pdf").write_bytes(b"%PDF-1.7 also broken")
    with pytest.raises(pytest.fail.Exception):
        main(["ask", ".", QUESTION])
