"""Read a PDF file in a process of its own, which may crash, run out of memory or never end, and takes nothing with it.

The process reads the file from its standard input and writes the text, or what is wrong, to its standard output.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import warnings
from multiprocessing import spawn
from pathlib import Path
from threading import Thread
from typing import Any

from drillrank.errors import DrillrankWarning, InvalidInput, MissingExtra
from drillrank.structure.pages import Pages
from drillrank.structure.pdf.reading import printed_pages, text_of

SECONDS = 300  # for one file
MEMORY = 3 << 30  # bytes for one file, where the system has such limits; PDFium sets one gigabyte aside, used or not
# The paths are the caller's: one of its folder could hold a module that is named like one of the standard library.
_START = "import sys; sys.path[:] = sys.argv[4:]; from drillrank.structure.pdf.isolated import serve; serve()"
_READER = "_DRILLRANK_PDF_READER"  # set in the environment of the process, which starts none of its own
_STARTED = b"\n"  # its first word, which JSON may begin with


def read_pdf(path: Path) -> tuple[str, Pages]:
    """The text of a PDF file as Markdown, and its pages.

    Headings are those of the file's bookmarks; where there are none or few, what stands out by its font. Running
    headers, footers and page numbers are left out. Tables have a row a line, cells between ` | `.

    The interpreter of the process is `sys.executable`, or what `multiprocessing.set_executable` was told. Pages that
    cannot be read are left out, with a warning.

    Raises:
        InvalidInput: the file cannot be opened, is broken or encrypted, has no text, or takes more than 300 seconds or
            three gigabytes.
        MissingExtra: the extra `pdf` is not installed.
    """
    answer = _answer(path, alone=False)
    if "crashed" in answer:
        answer = _answer(path, alone=True)
    match answer:
        case {"text": text, "pages": pages, "unread": unread}:
            if unread:
                told = f"{path}: {len(unread)} of its pages cannot be read and are left out, page {unread[0]} first."
                warnings.warn(told, DrillrankWarning, stacklevel=3)
            return text, Pages.of(pages)
        case {"missing": missing}:
            raise MissingExtra(missing)
        case {"problem": problem}:
            raise InvalidInput(f"{path} {problem}")
    raise InvalidInput(
        f"{path} cannot be read as PDF: its reader crashed, or needed more than {MEMORY >> 30} GB. {answer['crashed']}"
    )


def _answer(path: Path, *, alone: bool) -> dict[str, Any]:
    """What the process says of a file."""
    limits = [str(SECONDS), str(MEMORY), str(int(alone))]
    python = os.fsdecode(spawn.get_executable() or "")
    if _READER in os.environ:
        return {"problem": _no_python(python, "it is this program, started once more")}
    try:
        file = path.open("rb")
    except OSError as cause:
        return {"problem": f"cannot be read: {cause.strerror}."}
    with file:
        try:
            done = subprocess.run(
                [python, "-c", _START, *limits, *map(str, sys.path)],
                stdin=file,
                capture_output=True,
                timeout=SECONDS,
                env={**os.environ, _READER: "1"},
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"problem": f"cannot be read as PDF: it took more than {SECONDS} seconds."}
        except OSError as cause:
            return {"problem": _no_python(python, cause)}
    said = "".join(done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:])
    if not done.stdout.startswith(_STARTED):
        return {"problem": _no_python(python, said or f"it ended with {done.returncode}")}
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        answer = {"crashed": said}
    return answer


def _no_python(python: str, cause: object) -> str:
    return (
        f"cannot be read as PDF, which takes a Python that starts; {python!r} does not ({cause}). "
        "Name one with multiprocessing.set_executable."
    )


def serve() -> None:
    """Answer for the file on standard input; the whole work of the process."""
    seconds, memory, alone = map(int, sys.argv[1:4])
    answers = os.dup(1)
    os.dup2(2, 1)  # a library that prints shall not speak in between
    os.write(answers, _STARTED)
    _limit(seconds, memory, answers)
    answer = json.dumps(_read(sys.stdin.buffer.read(), alone=bool(alone)))
    with os.fdopen(answers, "w", encoding="ascii") as file:
        file.write(answer)
    os._exit(0)  # nothing is worth the time that tearing down takes


def _read(content: bytes, *, alone: bool) -> dict[str, Any]:
    try:
        printed = printed_pages(content, alone=alone)
        text, pages = text_of(printed)
    except MissingExtra as missing:
        return {"missing": str(missing)}
    except InvalidInput as problem:
        return {"problem": str(problem)}
    marks = list(zip(pages.starts, pages.numbers, pages.labels, strict=True))
    return {"text": text, "pages": marks, "unread": printed.unread}


def _limit(seconds: int, memory: int, answers: int) -> None:
    """Limits that hold even when the process that waits for this one is gone; with it, this one ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who waits for this process ends it
    try:
        import resource
    except ImportError:  # of POSIX
        return
    Thread(target=_end_unheard, args=(answers,), daemon=True).start()
    signal.alarm(seconds + 5)
    for limit, most in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(limit)
        resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _end_unheard(answers: int) -> None:
    """End when nobody is left to read the answers."""
    waiting = select.poll()
    waiting.register(answers, 0)
    waiting.poll()
    os._exit(1)
