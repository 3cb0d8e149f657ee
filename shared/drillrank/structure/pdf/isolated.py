"""Read a PDF file in a process of its own, which may crash, run out of memory or never end, and takes nothing with it.

The process reads the file from its standard input and writes the text, or what is wrong, to its standard output.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from multiprocessing import spawn
from pathlib import Path
from typing import Any

from drillrank.errors import InvalidInput, MissingExtra
from drillrank.structure.pages import Pages
from drillrank.structure.pdf.reading import printed_pages, text_of

SECONDS = 300  # for one file
MEMORY = 3 << 30  # bytes for one file, where the system has such limits; PDFium sets one gigabyte aside, used or not
# The paths are the caller's: one of its folder could hold a module that is named like one of the standard library.
_START = "import sys; sys.path[:] = sys.argv[4:]; from drillrank.structure.pdf.isolated import serve; serve()"


def read_pdf(path: Path) -> tuple[str, Pages]:
    """The text of a PDF file as Markdown, and its pages.

    Headings are those of the file's bookmarks; where there are none or few, what stands out by its font. Running
    headers, footers and page numbers are left out. Tables have a row a line, cells between ` | `.

    The interpreter of the process is `sys.executable`, or what `multiprocessing.set_executable` was told.

    Raises:
        InvalidInput: the file cannot be opened, is broken or encrypted, has no text, or takes more than 300 seconds or
            three gigabytes.
        MissingExtra: the extra `pdf` is not installed.
    """
    answer = _answer(path, alone=False)
    if "crashed" in answer:
        answer = _answer(path, alone=True)
    match answer:
        case {"text": text, "pages": pages}:
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
    try:
        file = path.open("rb")
    except OSError as cause:
        return {"problem": f"cannot be read: {cause.strerror}."}
    with file:
        try:
            command = [os.fsdecode(spawn.get_executable()), "-c", _START, *limits, *map(str, sys.path)]
            done = subprocess.run(command, stdin=file, capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return {"problem": f"cannot be read as PDF: it took more than {SECONDS} seconds."}
        except (OSError, TypeError) as cause:  # TypeError: an interpreter that does not know where it is
            return {"problem": f"cannot be read as PDF, which takes a Python that starts: {cause}."}
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        answer = {"crashed": said[-1] if said else ""}
    return answer


def serve() -> None:
    """Answer for the file on standard input; the whole work of the process."""
    seconds, memory, alone = map(int, sys.argv[1:4])
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # a library that prints shall not speak in between
    _limit(seconds, memory)
    json.dump(_read(sys.stdin.buffer.read(), alone=bool(alone)), answers)
    answers.flush()
    os._exit(0)  # nothing is worth the time that tearing down takes


def _read(content: bytes, *, alone: bool) -> dict[str, Any]:
    try:
        text, pages = text_of(printed_pages(content, alone=alone))
    except MissingExtra as missing:
        return {"missing": str(missing)}
    except InvalidInput as problem:
        return {"problem": str(problem)}
    return {"text": text, "pages": list(zip(pages.starts, pages.numbers, pages.labels, strict=True))}


def _limit(seconds: int, memory: int) -> None:
    """Limits that hold even when the process that waits for this one is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who waits for this process ends it
    try:
        import resource
    except ImportError:  # of POSIX
        return
    signal.alarm(seconds + 5)
    for limit, most in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(limit)
        resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
