"""Separate processes that convert files: a file that crashes its reader, or never ends, harms no other.

The process reads the file from its standard input and writes the text, or what is wrong, to its standard output.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

from drillrank.errors import InvalidInput, MissingExtra
from drillrank.files import open_file
from drillrank.structure.formats import ConvertedText, Converter, Format
from drillrank.structure.pages import Pages

SECONDS = 300  # for one file
MEMORY = 3 << 30  # bytes for one file, where the system has such limits; PDFium sets one gigabyte aside, used or not
# The paths are the caller's: one of its folder could hold a module that is named like one of the standard library.
_START = "import sys; sys.path[:] = sys.argv[4:]; from drillrank.structure.isolation import serve; serve()"
_FILE_BYTES = 64 << 20  # of what the process may write into files
# What a process needs of its environment; the rest may hold secrets.
_ENVIRONMENT = (
    *("PATH", "PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT"),
    *("HOME", "TMPDIR", "TEMP", "TMP", "LANG", "LC_ALL", "LC_CTYPE"),
)
_READER = "_DRILLRANK_PDF_READER"  # set for the process: a frozen program, which is its own Python, starts once


def convert_file(format: Format, path: Path) -> ConvertedText:
    """Convert a file to text.

    Raises:
        InvalidInput: The file cannot be open_file or converted; the message begins with its name.
        MissingExtra: A library that reads this format is not installed.
    """
    if format.name == "pdf":
        return _convert_pdf(path)
    assert format.convert is not None
    with open_file(path) as file:
        content = file.read()
    try:
        return format.convert(content)
    except InvalidInput as problem:
        raise InvalidInput(f"{path} {problem}") from problem


def _convert_pdf(path: Path) -> ConvertedText:
    answer = _answer(path, alone=False)
    if "crashed" in answer:
        answer = _answer(path, alone=True)
    match answer:
        case {"text": text, "pages": pages, "warnings": warnings}:
            return ConvertedText(text, Pages.of(pages), tuple(warnings))
        case {"missing": missing}:
            raise MissingExtra(missing)
        case {"problem": problem}:
            raise InvalidInput(f"{path} {problem}")
    raise InvalidInput(
        f"{path} cannot be read as PDF: its reader crashed, or needed more than {MEMORY >> 30} GB. {answer['crashed']}"
    )


def _answer(path: Path, *, alone: bool) -> dict[str, Any]:
    """What the process says of a file."""
    settings = [str(SECONDS), str(MEMORY), str(int(alone))]
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    if _READER in os.environ:
        return {"problem": f"cannot be read as PDF: {sys.executable} is no Python, but this program."}
    with path.open("rb") as file:
        try:
            done = subprocess.run(
                [sys.executable, "-c", _START, *settings, *map(str, sys.path)],
                stdin=file,
                capture_output=True,
                timeout=SECONDS,
                env=environment | {_READER: "1"},
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"problem": f"cannot be read as PDF: it took more than {SECONDS} seconds."}
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        answer = {"crashed": "".join(done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:])}
    return answer


def serve() -> None:
    """Answer for the file on standard input; the whole work of the process."""
    from drillrank.structure.pdf import convert_pdf, convert_pdf_pages_alone

    seconds, memory, alone = map(int, sys.argv[1:4])
    answers = os.dup(1)
    os.dup2(2, 1)  # a library that prints shall not speak in between
    _limit(seconds, memory, answers)
    content = sys.stdin.buffer.read()
    convert: Converter = convert_pdf_pages_alone if alone else convert_pdf
    try:
        text, pages, warnings = convert(content)
        assert pages is not None
        marks = list(zip(pages.starts, pages.numbers, pages.labels, strict=True))
        answer: dict[str, Any] = {"text": text, "pages": marks, "warnings": warnings}
    except MissingExtra as missing:
        answer = {"missing": str(missing)}
    except InvalidInput as problem:
        answer = {"problem": str(problem)}
    with os.fdopen(answers, "w", encoding="ascii") as file:
        json.dump(answer, file)
    os._exit(0)  # nothing is worth the time that tearing down takes


def _limit(seconds: int, memory: int, answers: int) -> None:
    """Limits that hold even when the process that waits for this one is gone; with it, this one ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who waits for this process ends it
    try:
        import resource
    except ImportError:  # of POSIX
        return
    pending = select.poll()  # until nobody is left to read the answers
    pending.register(answers, 0)
    Thread(target=lambda: (pending.poll(), os._exit(1)), daemon=True).start()
    signal.alarm(seconds + 5)
    for limit, most in (
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_FSIZE, _FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(limit)
        resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
