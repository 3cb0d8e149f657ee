"""Folders, patterns, standard input, JSON and the corpus of the command line."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import warnings
from contextlib import closing
from dataclasses import replace
from multiprocessing import Process
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drillrank import D3, limits
from drillrank.cli import main
from drillrank.cli.corpus import FileCorpus
from drillrank.cli.sources import Source, found_sources
from drillrank.corpus import corpus as implementation
from drillrank.corpus import documents
from drillrank.errors import DrillrankWarning, InvalidInput, MissingExtra
from drillrank.structure import parse_document, read_document
from drillrank.structure.document import document_from_json, document_to_json
from drillrank.structure.pages import Pages
from tests.processes import interruptible

MANUAL = "# Kettle\n\n## Warranty\n\nThe warranty covers the heater.\n\n## Care\n\nBoil vinegar.\n"


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("cache")
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(name, str(folder))
    return folder


def ask(*arguments, **options):
    environment = {**os.environ, "COLUMNS": "120", **options.pop("env", {})}
    command = [sys.executable, "-m", "drillrank", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False, env=environment, **options)


def records(printed: str) -> list[dict]:
    return [json.loads(line) for line in printed.splitlines()]


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8).filter(
    lambda name: name not in (".", "..") and len(name.encode()) < 100
)
CONTENTS = st.sampled_from([b"", b"kettle", b"# A\r\n\r\nkettle\r\n", b"\0kettle", "Käse kettle".encode("latin-1")])
TREES = st.recursive(CONTENTS, lambda inside: st.dictionaries(NAMES, inside, max_size=3), max_leaves=6)


def write(tree: dict | bytes, at: Path) -> dict[str, bytes]:
    """Write a tree; its files by name, but for hidden ones and those that share a name where case does not count."""
    if isinstance(tree, bytes):
        at.write_bytes(tree)
        return {str(at): tree}
    at.mkdir()
    return {
        name: content
        for child, below in tree.items()
        for name, content in write(below, at / child).items()
        if not child.startswith(".")
    }


@settings(
    max_examples=int(os.environ.get("DRILLRANK_FUZZ", "25")), suppress_health_check=list(HealthCheck), deadline=None
)
@given(st.dictionaries(NAMES, TREES, max_size=3))
def test_every_file_of_a_folder_is_read_once_or_told(tmp_path_factory, tree):
    root = tmp_path_factory.mktemp("tree") / "root"
    files = write(tree, root)
    with found_sources([str(root)]) as (found, skipped):
        assert not skipped
        assert sorted(source.name for source in found) == sorted(files)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DrillrankWarning)  # of what is no UTF-8
            read = FileCorpus(found, None)
        told = {one.name: one.reason for one in read.skipped}
        names = list(read.names.values())
        assert sorted([*names, *told]) == sorted(files)
        assert all("is no text" in told[name] for name, content in files.items() if b"\0" in content)
        assert len({files[name] for name in names}) <= len(names)


def test_a_folder_of_odd_things_ends_and_says_what_it_skipped(tmp_path, capsys):
    folder = tmp_path / "contracts"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "a\nb\x1b[2J.md").write_text(MANUAL, encoding="utf-8")
    (folder / "deep" / "round").symlink_to(folder)
    (folder / "nowhere.md").symlink_to(folder / "missing")
    (folder / "again.md").symlink_to(folder / "deep" / "a\nb\x1b[2J.md")
    (folder / "image.png").write_bytes(b"\x89PNG\r\n\0")
    (folder / ".hidden").write_text("warranty", encoding="utf-8")
    os.mkfifo(folder / "pipe")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(os.path.relpath(folder / "s"))
    with listening:
        assert main(["ask", str(folder), "What does the warranty cover?"]) == 0
    printed = capsys.readouterr()
    assert "The warranty covers the heater." in printed.out
    assert printed.out.count("covers the heater") == 1
    assert "1 files read, 4 skipped" in printed.err
    for said in ("nowhere.md cannot be read", "image.png is no text", "pipe is no file", "s is no file"):
        assert said in printed.err
    assert "\x1b" not in printed.out + printed.err


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX's")
def test_what_may_not_be_read_is_skipped_in_folders_and_refused_by_name(tmp_path, monkeypatch, capsys):
    good, secret = tmp_path / "good.md", tmp_path / "secret.md"
    good.write_text(MANUAL, encoding="utf-8")
    secret.write_text(MANUAL + "more", encoding="utf-8")
    opened = os.open

    def refusing(path, *arguments, **options):  # root may read what its mode forbids
        if str(path).endswith("secret.md"):
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refusing)
    assert main(["ask", str(tmp_path), "warranty"]) == 0
    assert "secret.md cannot be read: Permission denied" in capsys.readouterr().err
    assert main(["ask", str(good), str(secret), "warranty"]) == 2
    printed = capsys.readouterr()
    assert "secret.md cannot be read: Permission denied" in printed.err
    assert not printed.out


def test_huge_files_of_a_folder_wait_to_be_named(tmp_path, monkeypatch, capsys):
    (tmp_path / "huge.md").write_text(MANUAL, encoding="utf-8")
    (tmp_path / "small.md").write_text("The warranty.", encoding="utf-8")
    monkeypatch.setattr(limits, "FILE_BYTES", 20)
    assert main(["ask", str(tmp_path), "warranty", "--json"]) == 0
    printed = capsys.readouterr()
    assert {Path(record["file"]).name for record in records(printed.out)} == {"small.md"}
    assert "huge.md is larger than" in printed.err
    assert main(["ask", str(tmp_path / "huge.md"), "warranty"]) == 0


def test_json_gives_the_places_of_what_d3_finds(tmp_path, capsys):
    file = tmp_path / "manual.md"
    file.write_bytes(MANUAL.replace("\n", "\r\n").encode())
    assert main(["ask", str(file), "What does the warranty cover?", "--json", "--top-n", "1"]) == 0
    (record,) = records(capsys.readouterr().out)
    document = read_document(file)
    (found,) = D3().retrieve("What does the warranty cover?", [document], 1)
    start, end = record["span"]
    assert document.text[start:end] == record["text"] == found.passage.text == "The warranty covers the heater."
    assert (record["score"], record["file"]) == (found.score, str(file))
    assert (record["section"], record["page"]) == (["Kettle", "Warranty"], None)


def test_several_questions_patterns_and_standard_input(tmp_path, capsys):
    (tmp_path / "a.md").write_text(MANUAL, encoding="utf-8")
    (tmp_path / "b.txt").write_text("Vinegar removes lime.", encoding="utf-8")
    asked = tmp_path / "asked"
    asked.write_text("What does the warranty cover?\r\n\r\nzyzzyva\nWhat removes lime?\n", encoding="utf-8")
    assert main(["ask", str(tmp_path / "[ab].*"), "--questions", str(asked), "--json", "--top-n", "1"]) == 0
    found = records(capsys.readouterr().out)
    assert [(one["question"], Path(one["file"]).name) for one in found] == [
        ("What does the warranty cover?", "a.md"),
        ("What removes lime?", "b.txt"),
    ]
    for given_ in (["-"], []):
        result = ask("ask", *given_, "warranty", "--json", "--top-n", "1", input=MANUAL.encode())
        assert result.returncode == 0, result.stderr
        assert records(result.stdout.decode())[0]["file"] == "(standard input)"
    result = ask("ask", tmp_path / "b.txt", "--questions", "-", "--json", input=b"lime\n")
    assert records(result.stdout.decode())[0]["question"] == "lime"
    assert ask("ask", "warranty", input=b"\0\1").stderr.startswith(b"drillrank: (standard input) is no text")


@pytest.mark.parametrize("at", range(3))
def test_options_stand_anywhere(tmp_path, capsys, at):
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text(f"{MANUAL}\n{name}", encoding="utf-8")
    words = [str(tmp_path / "a.md"), str(tmp_path / "b.md"), "the warranty"]
    for options in (["--json"], ["--top-n", "2", "--json", "--no-cache"]):
        assert main(["ask", *words[:at], *options, *words[at:]]) == 0
        found = records(capsys.readouterr().out)
        assert {item["question"] for item in found} == {"the warranty"}
        files = {Path(place["file"]).name for item in found for place in (item, *item.get("also", ()))}
        assert files == {"a.md", "b.md"}
        assert main(["ask", *words[:at], *options, *words[at:-1], "-5 degrees in the warranty"]) == 0
        assert {item["question"] for item in records(capsys.readouterr().out)} >= {"-5 degrees in the warranty"}
    for more in (["--jsn"], ["-x"]):
        with pytest.raises(SystemExit, match="2"):
            main(["ask", *words[:at], "--json", *words[at:], *more])
        assert "unrecognized arguments" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["outline", *words[:2]])


def test_a_pattern_goes_on_without_what_cannot_be_read(tmp_path, capsys):
    (tmp_path / "good.md").write_text(MANUAL, encoding="utf-8")
    (tmp_path / "photo.md").write_bytes(b"\x89PNG\r\n\x1a\n\xff\xfe")
    assert main(["ask", str(tmp_path / "*.md"), "--json", "warranty"]) == 0
    printed = capsys.readouterr()
    assert "1 files read, 1 skipped" in printed.err
    assert "photo.md is no text" in printed.err
    assert {Path(item["file"]).name for item in records(printed.out)} == {"good.md"}
    assert main(["ask", str(tmp_path / "photo*"), "warranty"]) == 2
    assert "is no text" in capsys.readouterr().err
    assert main(["outline", str(tmp_path / "good*")]) == 0


def test_html_is_shown_without_its_marks(tmp_path, capsys):
    page = (
        "<html><body><h1>Web</h1><p>The <b>notice</b> period is 14&nbsp;days.</p><ul><li>none</li></ul></body></html>"
    )
    (tmp_path / "a.html").write_text(page, encoding="utf-8")
    assert main(["ask", str(tmp_path / "a.html"), "notice period"]) == 0
    printed = capsys.readouterr().out
    assert "The notice period is 14" in printed
    assert "<" not in printed
    assert main(["ask", "--json", str(tmp_path / "a.html"), "notice period"]) == 0
    first, *_ = records(capsys.readouterr().out)
    assert first["text"] == "The notice period is 14 days."
    assert "<b>notice</b>" in page[slice(*first["span"])]
    long = " ".join(f"The <b>kettle</b> number {number} boils water." for number in range(400))
    (tmp_path / "long.html").write_text(f"<h1>Kettles</h1><p>{long}</p>", encoding="utf-8")
    assert main(["ask", str(tmp_path / "long.html"), "kettle 399", "--top-n", "1"]) == 0
    printed = capsys.readouterr().out
    assert "number 0 boils" not in printed
    assert "<" not in printed


def test_the_status_is_that_of_grep(tmp_path, capsys):
    (tmp_path / "a.md").write_text(MANUAL, encoding="utf-8")
    assert main(["ask", str(tmp_path), "zyzzyva", "--json"]) == 1
    assert capsys.readouterr().out == ""
    assert main(["outline", str(tmp_path / "a.md")]) == 0
    (tmp_path / "b.txt").write_text("no heading here", encoding="utf-8")
    assert main(["outline", str(tmp_path / "b.txt")]) == 1


def test_a_second_question_parses_nothing(tmp_path, capsys, monkeypatch):
    for number in range(12):
        (tmp_path / f"{number}.md").write_text(f"# Part {number}\n\nThe valve{number} opens.\n", encoding="utf-8")
    assert main(["ask", str(tmp_path), "valve7", "--json"]) == 0
    first = capsys.readouterr().out
    monkeypatch.setattr(documents, "read_document", None)
    assert main(["ask", str(tmp_path), "valve7", "--json"]) == 0
    assert capsys.readouterr().out == first
    assert Path(records(first)[0]["file"]).name == "7.md"
    with pytest.raises(TypeError):
        main(["ask", str(tmp_path), "valve7", "--no-cache"])


@pytest.mark.parametrize("damage", ["garbage", "cut", "parse", "lengths", "entries", "table"])
def test_a_damaged_cache_is_made_anew(tmp_path, own_cache, capsys, damage):
    for number in range(12):
        (tmp_path / f"{number}.md").write_text(f"# Part {number}\n\nThe valve{number} opens.\n", encoding="utf-8")
    assert main(["ask", str(tmp_path), "valve7 opens", "--json"]) == 0
    right = capsys.readouterr().out
    (file,) = own_cache.rglob("*.sqlite")
    if damage == "garbage":
        file.write_bytes(b"no database" * 1000)
    elif damage == "cut":
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    else:
        with sqlite3.connect(file) as connection:
            connection.execute(
                {
                    "parse": "UPDATE documents SET parse = X'00FF'",
                    "lengths": "UPDATE blocks SET lengths = X'00'",
                    "entries": "UPDATE postings SET entries = X'FFFFFFFF'",
                    "table": "CREATE TABLE more (a)",
                }[damage]
            )
        connection.close()
    for _ in range(2):
        assert main(["ask", str(tmp_path), "valve7 opens", "--json"]) == 0
        assert capsys.readouterr().out == right


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, capsys, monkeypatch):
    (tmp_path / "a.md").write_text(MANUAL, encoding="utf-8")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert main(["ask", str(tmp_path / "a.md"), "warranty"]) == 0
    printed = capsys.readouterr()
    assert "Nothing is cached" in printed.err
    assert "covers the heater" in printed.out


def sources_of(*files: Path) -> list[Source]:
    return [Source(str(file), file) for file in files]


def test_a_corpus_that_another_process_has_locked_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("drillrank.corpus.database.PATIENCE", 0.05)
    folder, manual = tmp_path / "cache", tmp_path / "manual.md"
    manual.write_text(MANUAL, encoding="utf-8")
    FileCorpus(sources_of(manual), folder)
    [kept] = folder.glob("*.sqlite")
    before = kept.stat().st_ino
    with closing(sqlite3.connect(kept, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.warns(DrillrankWarning, match="cache cannot be used, all is read anew"):
            corpus = FileCorpus(sources_of(manual), folder)
        other.rollback()
    assert corpus.ask(D3(), lambda files: D3().retrieve("warranty", files, 1)).found
    assert kept.stat().st_ino == before
    monkeypatch.setattr(documents, "read_document", None)  # it is known
    assert FileCorpus(sources_of(manual), folder).ask(D3(), lambda files: D3().retrieve("warranty", files, 1)).found


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX's")
@pytest.mark.parametrize("trick", ["writable", "link to a folder", "link to a file", "pipe"])
def test_what_others_may_have_written_is_not_read(tmp_path, own_cache, capsys, trick):
    manual, folder, elsewhere = tmp_path / "manual.md", own_cache / "drillrank", tmp_path / "elsewhere"
    manual.write_text(MANUAL, encoding="utf-8")
    ask = ["ask", str(manual), "warranty", "--json"]
    assert main(ask) == 0
    [kept] = folder.glob("*.sqlite")
    assert (folder.stat().st_mode & 0o077, kept.stat().st_mode & 0o077) == (0, 0)
    with closing(sqlite3.connect(kept)) as database, database:
        database.execute("UPDATE passages SET text = replace(text, 'heater', 'lie123')")
    assert main(ask) == 0
    assert "lie123" in capsys.readouterr().out  # as long as it is the user's own
    if trick == "writable":
        folder.chmod(0o777)
    elif trick == "link to a folder":
        folder.rename(elsewhere)
        folder.symlink_to(elsewhere)
    else:
        kept.rename(elsewhere)
        kept.symlink_to(elsewhere) if trick == "link to a file" else os.mkfifo(kept)
    assert main(ask) == 0
    printed = capsys.readouterr()
    assert "covers the heater" in printed.out
    assert "Nothing is cached" in printed.err or "cache cannot be used" in printed.err
    assert elsewhere.exists() or trick in ("writable", "pipe")


def test_without_a_home_nothing_is_cached(tmp_path, capsys, monkeypatch):
    """As in a container whose user has no entry among the system's."""
    (tmp_path / "a.md").write_text(MANUAL, encoding="utf-8")

    def homeless(path):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", homeless)
    assert main(["ask", str(tmp_path / "a.md"), "warranty"]) == 0
    printed = capsys.readouterr()
    assert "Nothing is cached: Could not determine home directory." in printed.err
    assert "covers the heater" in printed.out


def test_what_another_process_has_cached_meanwhile_is_kept(tmp_path, own_cache, monkeypatch):
    """Two commands that begin together miss the same files; the second to finish leaves what the first one uses."""
    for number in range(3):
        (tmp_path / f"{number}.md").write_text(f"# Part {number}\n\nvalve{number}\n", encoding="utf-8")
    kept: list[FileCorpus] = []
    with found_sources([str(tmp_path)]) as (found, _):

        def slow(path):
            monkeypatch.setattr(documents, "read_document", read_document)
            kept.append(FileCorpus(found, own_cache))
            return read_document(path)

        monkeypatch.setattr(documents, "read_document", slow)
        kept.append(FileCorpus(found, own_cache))
    for corpus in kept:
        [item] = corpus.ask(D3(), lambda files: D3().retrieve("valve0", files, 1))
        assert Path(corpus.names[item.passage.metadata["document"]]).name == "0.md"
    assert list(own_cache.glob("*.sqlite"))


def _fill(folder: Path, files: list[Path]) -> None:
    FileCorpus(sources_of(*files), folder)


def test_many_processes_fill_one_corpus_and_one_may_die(tmp_path, monkeypatch):
    monkeypatch.setattr(implementation, "BATCH", 5)
    files = [tmp_path / f"{number}.md" for number in range(40)]
    for number, file in enumerate(files):
        file.write_text(f"# Part {number}\n\nvalve{number}\n", encoding="utf-8")
    filling = [Process(target=_fill, args=(tmp_path / "cache", files)) for _ in range(3)]
    for process in filling:
        process.start()
    time.sleep(0.05)
    filling[0].kill()
    for process in filling:
        process.join()
    assert [process.exitcode for process in filling[1:]] == [0, 0]
    monkeypatch.setattr(documents, "read_document", None)  # all are known
    corpus = FileCorpus(sources_of(*files), tmp_path / "cache")
    found = corpus.ask(D3(), lambda known: D3().retrieve("Part", known, 40))
    texts = {corpus.names[item.passage.metadata["document"]]: item.passage.text for item in found}
    assert texts == {str(file): f"valve{number}" for number, file in enumerate(files)}


def test_many_files_are_read_by_several_processes_as_by_one(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    texts = [f"# Part {number}\n\n{f'The valve{number} opens. ' * 5_000}".encode() for number in range(40)]
    files = [tmp_path / f"{number:02}.md" for number in range(40)]
    for file, text in zip(files, [b"\0", b"valve \xe9", *texts[2:]], strict=True):
        file.write_bytes(text)
    counted = []

    def track(found, number):
        for one in found:
            counted.append(number)
            yield one

    for _ in range(2):  # what a file is warned of is said again
        with pytest.warns(DrillrankWarning, match=r"01\.md is not UTF-8"):
            corpus = FileCorpus([Source(file.name, file, named=False) for file in files], tmp_path / "cache", track)
        assert [one.reason.partition(":")[0] for one in corpus.skipped] == ["00.md is no text"]
        assert list(corpus.names.values()) == [file.name for file in files[1:]]
    assert counted == [40] * 40 + [2] * 2
    with pytest.warns(DrillrankWarning):
        expected = D3().retrieve("valve", [read_document(file) for file in files[1:]], 40)
    found = corpus.ask(D3(), lambda known: D3().retrieve("valve", known, 40))
    assert [item.passage.text for item in found] == [item.passage.text for item in expected]


def test_bad_files_of_a_folder_are_left_out_one_by_one(tmp_path):
    files = [tmp_path / f"{number}.md" for number in range(6)]
    for number, file in enumerate(files):
        file.write_bytes(b"\0\1" * number if number % 2 else b"valve %d" % number)
    corpus = FileCorpus([Source(str(file), file, named=False) for file in files], tmp_path / "cache")
    assert list(corpus.names.values()) == [str(file) for file in files[::2]]
    assert [one.name for one in corpus.skipped] == [str(file) for file in files[1::2]]
    with pytest.raises(InvalidInput, match=r"1\.md is no text"):
        FileCorpus(sources_of(*files), tmp_path / "cache")


@pytest.mark.parametrize("now", [0.0, -1e9, 1e12])
def test_a_clock_that_jumps_costs_time_and_nothing_else(tmp_path, monkeypatch, capsys, now):
    (tmp_path / "a.md").write_text(MANUAL, encoding="utf-8")
    command = ["ask", str(tmp_path / "a.md"), "warranty", "--json"]
    printed = set()
    for clock in (time.time, lambda: now, time.time):
        monkeypatch.setattr(implementation.time, "time", clock)
        assert main(command) == 0
        printed.add(capsys.readouterr())
    assert len(printed) == 1


def test_an_interrupt_ends_with_its_status_and_no_traceback(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    command = [sys.executable, "-m", "drillrank", "ask", str(tmp_path / "pipe"), "warranty"]
    process = interruptible(command)
    writing = os.open(tmp_path / "pipe", os.O_WRONLY)  # opens as soon as the command reads
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    os.close(writing)
    assert process.returncode == 130
    assert b"Traceback" not in errors


@settings(max_examples=50, deadline=None)
@given(st.text("#ab |-\n`*", max_size=60), st.sampled_from(["markdown", "text", "html"]))
def test_saved_documents_come_back_equal(text, format):
    document = parse_document(f"§ 1 Term\n\n{text}", format)
    document = replace(document, pages=Pages.of([(0, 3, "iii"), (4, 5, "5")]))
    assert document_from_json(document_to_json(document)) == document


def test_what_a_missing_extra_would_read_is_skipped_by_name(tmp_path, monkeypatch, capsys):
    (tmp_path / "a.md").write_text(MANUAL, encoding="utf-8")
    (tmp_path / "b.pdf").write_bytes(b"%PDF-1.7")

    def without_pdf(path):
        if path.suffix == ".pdf":
            raise MissingExtra('To install it: pip install "drillrank[pdf]"')
        return read_document(path)

    monkeypatch.setattr(documents, "read_document", without_pdf)
    assert main(["ask", str(tmp_path), "warranty"]) == 0
    assert f"{tmp_path / 'b.pdf'}: To install it" in capsys.readouterr().err
