"""Code that runs in a worker process: tasks come in on one pipe, and answers go out on another.

`drillrank.structure.isolation` starts the processes. Both sides exchange frames: JSON and bytes, each with its length.
"""

from __future__ import annotations

import json
import os
import select
import signal
import struct
import traceback
from collections.abc import Callable, Mapping
from importlib import import_module
from io import FileIO
from threading import Thread
from typing import Any, NamedTuple

from drillrank import limits
from drillrank.errors import InvalidInput, MissingExtra
from drillrank.structure.formats import Converter

Task = Callable[[bytes, Mapping[str, Any]], tuple[Any, bytes]]
"""Function from the content of a file and arguments to a JSON value and bytes."""

_LENGTHS = struct.Struct(">QQ")  # of the JSON and of the bytes
_FILE_BYTES = 64 << 20  # that a worker may write into files
_MEGABYTE = 1 << 20


class Frame(NamedTuple):
    """One message between the processes: a JSON value and bytes."""

    value: Any
    attachment: bytes = b""


class ProcessLimits(NamedTuple):
    """Limits of a worker for one file, from its size and its number of pages.

    Attributes:
        cpu_seconds: Processor time, which does not grow when other programs keep the machine busy.
        seconds: Time on the clock.
        memory_bytes: Resident memory.
        answer_bytes: Length of the answer.
    """

    cpu_seconds: float
    seconds: float
    memory_bytes: int
    answer_bytes: int

    @classmethod
    def of_file(cls, size: int, n_pages: int = 0) -> ProcessLimits:
        """Return the limits for a file of `size` bytes. Pages count only if there are enough bytes for them."""
        n_pages = max(0, min(n_pages, size // limits.PAGE_BYTES))
        cpu_seconds = (
            limits.PROCESS_SECONDS
            + limits.PROCESS_SECONDS_PER_MEGABYTE * size / _MEGABYTE
            + limits.PROCESS_SECONDS_PER_PAGE * n_pages
        )
        memory_bytes = (
            limits.PROCESS_BYTES + limits.PROCESS_BYTES_PER_BYTE * size + limits.PROCESS_BYTES_PER_PAGE * n_pages
        )
        return cls(
            cpu_seconds,
            limits.PROCESS_WAIT + limits.PROCESS_WAIT_PER_SECOND * cpu_seconds,
            min(memory_bytes, max(limits.PROCESS_BYTES, limits.PROCESS_BYTES_MOST)),
            min(16 * _MEGABYTE + 100 * size, 1 << 31),
        )


def write_frame(file: FileIO, frame: Frame) -> None:
    """Write a frame to an unbuffered file."""
    encoded = json.dumps(frame.value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    for part in (_LENGTHS.pack(len(encoded), len(frame.attachment)), encoded, frame.attachment):
        remaining = memoryview(part)
        while remaining:
            remaining = remaining[file.write(remaining) :]


def read_frame(file: FileIO, most_bytes: int | None = None) -> Frame | None:
    """Read a frame; return None if the other process closed the pipe.

    Raises:
        InvalidInput: The frame has more than `most_bytes` bytes, or is not JSON.
    """
    lengths = _read_exactly(file, _LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    value_length, attachment_length = _LENGTHS.unpack(lengths)
    if most_bytes is not None and value_length + attachment_length > most_bytes:
        raise InvalidInput(f"its text has more than {most_bytes} bytes")
    encoded = _read_exactly(file, value_length)
    attachment = _read_exactly(file, attachment_length)
    if len(encoded) < value_length or len(attachment) < attachment_length:
        return None
    try:
        text = encoded.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as cause:
        raise InvalidInput("its reader answered what is not UTF-8") from cause
    return Frame(limits.read_json(text, "its reader's answer"), attachment)


def _read_exactly(file: FileIO, length: int) -> bytes:
    """Return the next `length` bytes of an unbuffered file; fewer if it ends."""
    parts: list[bytes] = []
    while length and (part := file.read(min(length, _MEGABYTE))):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


class WorkerProcess:
    """The worker process itself: reads tasks and answers them until its parent closes the pipe or stays silent.

    Attributes:
        current: The worker if this process is one, else None.
        is_second_attempt: True while the worker reads a file over which another one crashed.
    """

    current: WorkerProcess | None = None

    def __init__(self) -> None:
        # A library that prints or reads standard input must not take part in the exchange.
        self._requests = FileIO(os.dup(0), "r")
        self._answers = FileIO(os.dup(1), "w")
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        self._file_size = 0
        self.is_second_attempt = False

    def serve(self) -> None:
        """Answer tasks, one at a time."""
        _prepare_process(self._answers.fileno())
        while self._has_request():
            request = read_frame(self._requests)
            if request is None:
                break
            self._take_settings(request)
            self.report(started=True)
            answer = _carry_out(request)
            self._limit_seconds(None)
            write_frame(self._answers, answer)
        os._exit(0)  # nothing is worth the time that tearing down takes

    def report(self, **progress: object) -> None:
        """Tell the parent how far the task is: `started=True`, or `pages=` with the number of pages of the file."""
        pages = progress.get("pages")
        if isinstance(pages, int):
            self._limit_seconds(ProcessLimits.of_file(self._file_size, pages))
        write_frame(self._answers, Frame({"progress": progress}))

    def _has_request(self) -> bool:
        """Wait for a request; return False if none comes for `limits.PROCESS_IDLE_SECONDS`."""
        if not hasattr(select, "poll"):
            return True
        poller = select.poll()
        poller.register(self._requests.fileno(), select.POLLIN)
        return bool(poller.poll(limits.PROCESS_IDLE_SECONDS * 1000))

    def _take_settings(self, request: Frame) -> None:
        """Apply the parent's values of `drillrank.limits` and the limits for this file."""
        for name, value in request.value["limits"].items():
            setattr(limits, name, value)
        self._file_size = len(request.attachment)
        self.is_second_attempt = bool(request.value["arguments"].get("after_crash"))
        self._limit_seconds(ProcessLimits.of_file(self._file_size))

    def _limit_seconds(self, file_limits: ProcessLimits | None) -> None:
        """Let the system end this process at its limits, even if the parent cannot. None removes the limits."""
        if not hasattr(signal, "alarm"):
            return
        import resource

        signal.alarm(0 if file_limits is None else int(file_limits.seconds) + 5)
        if file_limits is not None:
            used = resource.getrusage(resource.RUSAGE_SELF)
            _set_limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime + file_limits.cpu_seconds) + 1)
            _set_limit(resource.RLIMIT_DATA, file_limits.memory_bytes + limits.RESERVED_BYTES)


def _prepare_process(answers: int) -> None:
    """Ignore interrupts, limit what this process writes, and end it with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    try:
        import resource
    except ImportError:  # not a POSIX system
        return
    pending = select.poll()  # until the parent no longer reads the answers
    pending.register(answers, 0)
    Thread(target=lambda: (pending.poll(), os._exit(1)), daemon=True).start()
    _set_limit(resource.RLIMIT_FSIZE, _FILE_BYTES)
    _set_limit(resource.RLIMIT_CORE, 0)


def _set_limit(limit: int, value: int) -> None:
    """Set the soft limit of a resource, at most to its hard limit."""
    import resource

    _, hard = resource.getrlimit(limit)
    resource.setrlimit(limit, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def _carry_out(request: Frame) -> Frame:
    """Run the task of a request; return its result, or the error as a message that continues the file's name."""
    value = request.value
    try:
        task: Task = find_function(value["task"])
        result, attachment = task(request.attachment, value["arguments"])
        return Frame({"result": result}, attachment)
    except MissingExtra as error:
        return Frame({"error": "missing extra", "message": str(error)})
    except FunctionNotFound as error:
        return Frame({"error": "import", "message": str(error)})
    except InvalidInput as error:
        return Frame({"error": "invalid", "message": str(error)})
    except (MemoryError, RecursionError) as error:
        return Frame({"error": "fault", "message": f"it needs too much memory ({type(error).__name__})"})
    except Exception as error:  # no words of the error: they may be the document's
        line = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(line.filename)}:{line.lineno}"
        return Frame({"error": "fault", "message": f"its reader failed ({type(error).__name__} at {where})"})


class FunctionNotFound(Exception):
    """A module cannot be imported or has no such function."""


def find_function(reference: str) -> Any:
    """Return the function that a reference such as "package.module:name" names.

    Raises:
        FunctionNotFound: The module cannot be imported or has no such function.
    """
    module_name, _, qualified_name = reference.partition(":")
    try:
        function: Any = import_module(module_name)
        for name in qualified_name.split("."):
            function = getattr(function, name)
    except Exception as cause:  # a module may raise anything
        raise FunctionNotFound(f"{reference} cannot be imported: {type(cause).__name__}") from cause
    return function


def convert(content: bytes, arguments: Mapping[str, Any]) -> tuple[Any, bytes]:
    """Convert a file; the task of `drillrank.structure.isolation.convert_file`."""
    converter: Converter = find_function(arguments["converter"])
    if arguments["format"] == "pdf":
        report_pages(content, after_crash=arguments["after_crash"])
    text, pages, warnings = converter(content)
    marks = None if pages is None else list(zip(pages.starts, pages.numbers, pages.labels, strict=True))
    return {"pages": marks, "warnings": list(warnings)}, text.encode("utf-8", "surrogatepass")


def report_pages(content: bytes, *, after_crash: bool) -> None:
    """Tell the parent the number of pages of a PDF, so that a long one gets more time.

    After a crash, which counting may have caused, take as many pages as the size allows.
    """
    if WorkerProcess.current is not None:
        WorkerProcess.current.report(pages=len(content) if after_crash else _count_pages(content))


def _count_pages(content: bytes) -> int:
    """Return the number of pages of a PDF, or 0 if it cannot be opened; the converter then says why."""
    from drillrank.structure.pdf import count_pages  # in a worker for PDFs alone

    try:
        return count_pages(content)
    except Exception:  # a library's, about a file that the converter is going to refuse
        return 0


def main() -> None:
    """Run this process as a worker. The arguments are the entries of the caller's `sys.path`."""
    WorkerProcess.current = WorkerProcess()
    WorkerProcess.current.serve()
