"""PDF files that were made to harm: each is an error of ours that names it, or a document, and nothing else happens."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from drillrank import limits, read_document
from drillrank.errors import InvalidInput
from drillrank.structure import Document
from drillrank.structure import isolation as isolated
from tests.hostile_pdfs import SAID, Hostile, drawn, hostile, large, mapped, packed_page, pages, stream
from tests.pdf_files import lines, pdf_of

pytest.importorskip("liteparse", reason="needs the extra pdf")
pytest.importorskip("pypdfium2", reason="needs the extra pdf")

T = TypeVar("T")
LARGE = bool(os.environ.get("DRILLRANK_LARGE"))


def read(content: bytes, folder: Path) -> Document:
    file = folder / "report.pdf"
    file.write_bytes(content)
    return read_document(file)


def as_expected(kind: Hostile, folder: Path) -> None:
    problem, document = "", None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            document = read(kind.make(), folder)
        except InvalidInput as error:
            problem = str(error)
    warned = [str(warning.message).removeprefix(f"{folder / 'report.pdf'}: ").split()[0] for warning in caught]
    assert warned == ([str(kind.unread)] if kind.unread else [])
    if document is None:
        assert not kind.text, problem
        assert problem.startswith(f"{folder / 'report.pdf'} ")
        assert kind.problem in problem
    else:
        assert not kind.problem, document.text[:200]
        assert kind.text in document.text
        assert "".join(document.slice(section) for section in document.sections()) == document.text
        assert document.pages is not None


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", list(hostile()), ids=lambda kind: kind.name)
def test_an_error_of_ours_or_a_document(kind, tmp_path, capfd):
    as_expected(kind, tmp_path)
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(not LARGE, reason="set DRILLRANK_LARGE=1: takes minutes, and gigabytes of memory")
@pytest.mark.timeout(700)
@pytest.mark.parametrize("kind", list(large()), ids=lambda kind: kind.name)
def test_large_ones(kind, tmp_path):
    import resource

    as_expected(kind, tmp_path)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 < limits.PROCESS_BYTES_MOST + 2**28


def test_what_never_ends_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "PROCESS_SECONDS", 1)
    monkeypatch.setattr(limits, "PROCESS_SECONDS_PER_MEGABYTE", 0)
    with pytest.raises(InvalidInput, match=r"report\.pdf cannot be read as PDF: it took more than [\d.]+ seconds"):
        read(packed_page(stream(b"0 0 m 9 9 l S\n" * 500_000)), tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="where the system has such limits")
def test_what_takes_too_much_memory_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "PROCESS_BYTES_MOST", 100 << 20)
    monkeypatch.setattr(limits, "PROCESS_BYTES", 100 << 20)
    file = tmp_path / "report.pdf"
    file.write_bytes(pdf_of(pages()).content())
    os.truncate(file, 200 << 20)
    with pytest.raises(InvalidInput, match=r"report\.pdf cannot be read as PDF: it needed more than 105 MB of memory"):
        read_document(file)


def test_a_crash_is_told(tmp_path, monkeypatch):
    isolated._pool.close()
    monkeypatch.setattr(
        isolated, "_START", "import os; os.write(1, b'\\n'); os.write(2, b'Trace\\nNo such thing'); os.abort()"
    )
    with pytest.raises(InvalidInput, match=r"report\.pdf cannot be read as PDF: its reader crashed.*No such thing"):
        read(b"%PDF-1.7", tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="a script of the shell")
def test_a_program_that_is_its_own_interpreter_does_not_start_itself_for_ever(tmp_path, monkeypatch):
    """A frozen program that reads a file at its start would start itself for ever."""
    program = tmp_path / "program"
    code = f"from drillrank import read_document; read_document({str(tmp_path / 'report.pdf')!r})"
    is_own = f"import sys; sys.executable = {str(program)!r}"
    begin = f"#!/bin/sh\necho >> {program}.starts\n[ $(wc -l < {program}.starts) -lt 4 ] || exit 1\n"
    program.write_text(f"{begin}exec '{sys.executable}' -c \"{is_own}; {code}\"\n", encoding="utf-8")
    program.chmod(0o700)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    isolated._pool.close()
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(InvalidInput, match=r"report\.pdf cannot be read as PDF"):
        read(pdf_of(pages()).content(), tmp_path)
    assert len(Path(f"{program}.starts").read_text().splitlines()) == 2  # for the file, and for its pages alone


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_process_ends_with_the_one_that_waits_for_it(tmp_path, monkeypatch):
    (tmp_path / "report.pdf").write_bytes(packed_page(stream(b"0 0 m 9 9 l S\n" * 500_000)))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    code = "import sys; from drillrank import read_document; read_document(sys.argv[1])"
    waiting = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "report.pdf")])
    reader = until(Path(f"/proc/{waiting.pid}/task/{waiting.pid}/children").read_text)
    until(lambda: len(os.listdir(f"/proc/{int(reader)}/task")) > 1)  # it listens
    waiting.kill()
    waiting.wait()
    stat = Path(f"/proc/{int(reader)}/stat")
    until(lambda: not stat.exists() or stat.read_text().rsplit(")")[1].split()[0] == "Z")


def until(condition: Callable[[], T]) -> T:
    """What a condition is when it holds, at last."""
    end = time.monotonic() + 20
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def test_no_module_is_taken_from_the_folder_of_the_caller(tmp_path, monkeypatch):
    for name in ("json", "liteparse", "pickle", "resource", "drillrank"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('taken')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    isolated._pool.close()
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", ".")])
    assert SAID in read(pdf_of(pages()).content(), tmp_path).text


def test_the_modules_of_the_caller_are_found(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    isolated._pool.close()
    monkeypatch.setattr(sys, "path", [*sys.path, str(Path(isolated.__file__).parents[3])])
    assert SAID in read(pdf_of(pages()).content(), tmp_path).text


def test_labels_of_pages(tmp_path):
    [kind] = [kind for kind in hostile() if kind.name == "the labels of pages"]
    found = read(kind.make(), tmp_path).pages
    assert found is not None
    assert (found.labels, found.numbers) == (("i", "ii", "1"), (1, 2, 3))


def test_a_page_on_its_side_is_turned_and_notes_at_the_side_of_others_stand_below(tmp_path):
    table = [(f"Net sales {year}", f"$ {year}7") for year in range(2021, 2027)]
    turned = b"BT /R 10 Tf 0 1 -1 0 %d %d Tm (%s) Tj ET\n"
    sideways = b"".join(
        turned % (100 + 14 * at, x, cell.encode())
        for at, row in enumerate(table)
        for x, cell in zip((100, 400), row, strict=True)
    )
    text = read(drawn(sideways), tmp_path).text
    rows = [f"| {name} | {value} |" for name, value in table]
    assert [text.count(row) for row in rows] == [1] * 6
    assert [text.index(row) for row in rows] == sorted(text.index(row) for row in rows)
    upright = pdf_of([lines("The fox hunts mice. " * 20)])
    upright.objects[6] = stream(upright.objects[6].split(b"stream\n")[1] + turned % (20, 300, b"At the side"))
    assert read(upright.content(), tmp_path).text.endswith("\n\nAt the side\n")


def test_right_to_left(tmp_path):
    """What stands to the right is read first, words and columns."""
    hebrew = b"1 beginbfrange <61> <74> <05D0> endbfrange"
    column = [(267, b"aa bb"), (240, b"cc dd")], [(87, b"ee ff"), (60, b"gg hh")]
    said = b"".join(
        b"BT /U 9 Tf %d %d Td (%s) Tj ET\n" % (x, 600 - 13 * at - 4 * side, word)
        for side, words in enumerate(column)
        for at in range(14)
        for x, word in words
    )
    text = read(mapped(hebrew, said), tmp_path).text
    letters = [chr(0x5D0 + at) * 2 for at in range(8)]
    assert text.split()[4:8] == [letters[1], letters[0], letters[3], letters[2]]
    assert text.rindex(letters[0]) < text.index(letters[4])
