"""Worker processes that read files: a file that crashes its reader, or never ends, does no other harm.

`convert_file` converts one file, and `run_task` runs any task on the content of a file. At most one worker for each
core lives on between files. A worker that exceeds a limit of `drillrank.limits` or crashes is replaced by a new one.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from threading import Condition, Event, Thread
from typing import Any, cast

from drillrank import limits
from drillrank.errors import DrillrankError, InvalidInput, MissingExtra
from drillrank.lazy import LazyFunction
from drillrank.structure.formats import ConvertedText, Converter, Format
from drillrank.structure.pages import Pages
from drillrank.structure.worker import (
    Frame,
    FunctionNotFound,
    ProcessLimits,
    WorkerProcess,
    find_function,
    read_frame,
    report_pages,
    write_frame,
)

# The caller's paths replace those of the process: a folder of the latter could contain a module named like another.
_START = "import sys; sys.path[:] = sys.argv[1:]; from drillrank.structure.worker import main; main()"
# Variables that a process needs; the rest may contain secrets.
_ENVIRONMENT = (
    *("PATH", "PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT"),
    *("HOME", "TMPDIR", "TEMP", "TMP", "LANG", "LC_ALL", "LC_CTYPE"),
)
_MARK = "_DRILLRANK_WORKER"  # set for a worker: a frozen program, which is its own Python, starts once
_PAUSES = (0.001, 0.02)  # seconds between two looks at a worker: the first and the longest
_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0
_CLOCK_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 0


class ReaderFailure(InvalidInput):
    """A worker crashed or exceeded a limit; the message continues "cannot be read: ".

    Attributes:
        is_crash: True if the worker crashed, so that another way to read the file may succeed.
    """

    is_crash = False


def convert_file(format: Format, path: Path, content: bytes) -> ConvertedText:
    """Convert the content of a file to text, in a worker if a worker can import the format's converter.

    Args:
        format: Format with a converter.
        path: Path of the file, for messages.
        content: Content of the file.

    Raises:
        InvalidInput: The file cannot be converted; the message begins with its name.
        MissingExtra: A library that reads this format is not installed.
    """
    assert format.convert is not None
    try:
        return _convert(format, content)
    except ReaderFailure as problem:
        raise InvalidInput(f"{path} cannot be read as {format.name.upper()}: {problem}.") from problem
    except InvalidInput as problem:
        raise InvalidInput(f"{path} {problem}") from problem


def _convert(format: Format, content: bytes) -> ConvertedText:
    """Convert with the format's first converter, and with its second one if the first crashed its process."""
    assert format.convert is not None
    if WorkerProcess.current is not None:
        return _convert_in_worker(format, content, WorkerProcess.current)
    try:
        return _convert_with(format.convert, content, format.name)
    except ReaderFailure as problem:
        if not problem.is_crash or format.convert_after_crash is None:
            raise
    return _convert_with(format.convert_after_crash, content, format.name, after_crash=True)


def _convert_in_worker(format: Format, content: bytes, worker: WorkerProcess) -> ConvertedText:
    """Convert in this process, which is a worker whose task is to read the whole file."""
    if format.name == "pdf":
        report_pages(content, after_crash=worker.is_second_attempt)
    converter = (worker.is_second_attempt and format.convert_after_crash) or format.convert
    assert converter is not None
    return converter(content)


def _convert_with(
    converter: Converter, content: bytes, format_name: str, *, after_crash: bool = False
) -> ConvertedText:
    """Convert in a worker, or in this process if a worker cannot import the converter."""
    if reference := _reference_of(converter):
        arguments = {"converter": reference, "format": format_name, "after_crash": after_crash}
        with suppress(FunctionNotFound):
            return _converted_text(run_task("drillrank.structure.worker:convert", arguments, content))
    try:
        return converter(content)
    except DrillrankError:
        raise
    except Exception as error:
        raise ReaderFailure(f"its reader failed ({type(error).__name__})") from error


def _reference_of(converter: Converter) -> str:
    """Return the reference by which a worker can import a converter; empty if it cannot."""
    if isinstance(converter, LazyFunction):
        return converter.reference
    module_name = getattr(converter, "__module__", None) or "__main__"
    reference = f"{module_name}:{getattr(converter, '__qualname__', '')}"
    try:
        is_importable = module_name != "__main__" and find_function(reference) is converter
    except FunctionNotFound:
        return ""
    return reference if is_importable else ""


def _converted_text(frame: Frame) -> ConvertedText:
    """Return the text of a worker's answer, which is checked: a file may have taken over the worker."""
    match frame.value:
        case {"pages": list() | None as marks, "warnings": [*warnings]} if all(isinstance(w, str) for w in warnings):
            try:
                pages = None if marks is None else Pages.of([(int(s), int(n), str(label)) for s, n, label in marks])
                return ConvertedText(frame.attachment.decode("utf-8", "surrogatepass"), pages, tuple(warnings))
            except (TypeError, ValueError) as cause:
                raise ReaderFailure("its reader's answer has an unknown form") from cause
    raise ReaderFailure("its reader's answer has an unknown form")


def run_task(task: str, arguments: Mapping[str, Any], content: bytes) -> Frame:
    """Run a task in a worker; may be called from several threads.

    Args:
        task: Function as "module:name" (`drillrank.structure.worker.Task`).
        arguments: Arguments of the task, as JSON.
        content: Content of a file.

    Returns:
        What the task returned. The caller must check its form: a file may have taken over the worker.

    Raises:
        InvalidInput: The task raised it; the message continues the file's name.
        ReaderFailure: The worker crashed or exceeded a limit.
        MissingExtra: A library is not installed.
        FunctionNotFound: The worker cannot import the task or a function that it needs.
    """
    if _MARK in os.environ and WorkerProcess.current is None:
        raise ReaderFailure(f"{sys.executable} is not Python, but this program, which cannot start workers")
    answer = _pool.run({"task": task, "arguments": dict(arguments)}, content)
    match answer.value:
        case {"result": result}:
            return Frame(result, answer.attachment)
        case {"error": "missing extra", "message": str(message)}:
            raise MissingExtra(message)
        case {"error": "import", "message": str(message)}:
            raise FunctionNotFound(message)
        case {"error": "invalid", "message": str(message)}:
            raise InvalidInput(message)
        case {"error": "fault", "message": str(message)}:
            raise ReaderFailure(message)
    raise ReaderFailure("its reader's answer has an unknown form")


def close_workers() -> None:
    """End all workers. Files that they are reading count as crashes."""
    _pool.close()


class _Exchange:
    """One request to a worker and its answers, carried out by a thread that may block.

    Attributes:
        done: Set when the answer is complete or the worker is gone.
        answer: The answer; None if there is none (yet).
        problem: Reason why the answer cannot be used; empty if there is none.
        has_started: True as soon as the worker has the whole request.
        n_pages: Number of pages of the file, as far as the worker has reported it.
    """

    def __init__(self, requests: FileIO, answers: FileIO, request: Frame) -> None:
        self.done = Event()
        self.answer: Frame | None = None
        self.problem = ""
        self.has_started = False
        self.n_pages = 0
        self._pipes = requests, answers
        self._request = request
        Thread(target=self._carry_out, daemon=True).start()

    def _carry_out(self) -> None:
        requests, answers = self._pipes
        size = len(self._request.attachment)
        try:
            write_frame(requests, self._request)
            while frame := read_frame(answers, ProcessLimits.of_file(size, self.n_pages).answer_bytes):
                if not isinstance(frame.value, dict) or "progress" not in frame.value:
                    self.answer = frame
                    break
                self._note(frame.value["progress"])
        except InvalidInput as problem:
            self.problem = str(problem)
        except (OSError, ValueError, MemoryError):  # the worker is gone
            pass
        finally:
            self.done.set()

    def _note(self, progress: object) -> None:
        match progress:
            case {"pages": int(n_pages)}:
                self.n_pages = n_pages
            case _:
                self.has_started = True


class _Worker:
    """A worker process, as its parent sees it: answers one request at a time."""

    def __init__(self) -> None:
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the worker)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, *map(str, sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment | {_MARK: "1"},
            bufsize=0,  # a buffer has a lock, which could stay locked after a fork
        )
        self._n_requests = 0
        self.is_closed = False

    def run(self, request: Frame) -> Frame | None:
        """Return the answer to a request; None if the worker had ended before it saw the request.

        Raises:
            ReaderFailure: The worker crashed or exceeded a limit. It is closed.
        """
        self._n_requests += 1
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        exchange = _Exchange(cast("FileIO", self._process.stdin), cast("FileIO", self._process.stdout), request)
        try:
            problem = self._watch(exchange, len(request.attachment)) or exchange.problem
        except BaseException:  # such as an interrupt
            self.close()
            raise
        if exchange.answer is not None and not problem:
            return exchange.answer
        was_idle = self._n_requests > 1 and not exchange.has_started and not problem
        failure = ReaderFailure(problem or self._explain_end(len(request.attachment), exchange.n_pages))
        failure.is_crash = not problem and "took more than" not in str(failure)
        self.close()
        if was_idle:
            return None
        raise failure

    def _watch(self, exchange: _Exchange, size: int) -> str:
        """Wait until an exchange is done; return the limit that the worker exceeded, or an empty string."""
        pause, longest_pause = _PAUSES
        start, cpu_start, was_started = time.monotonic(), 0.0, False
        while not exchange.done.wait(pause):
            pause = min(2 * pause, longest_pause)
            file_limits = ProcessLimits.of_file(size, exchange.n_pages)
            cpu_seconds, memory_bytes = self._usage()
            if exchange.has_started and not was_started:  # before, it imported modules
                start, cpu_start, was_started = time.monotonic(), cpu_seconds, True
            seconds = time.monotonic() - start
            if seconds > (file_limits.seconds if was_started else limits.PROCESS_START_SECONDS):
                return f"it took more than {seconds:.0f} seconds"
            if was_started and cpu_seconds - cpu_start > file_limits.cpu_seconds:
                return f"it took more than {file_limits.cpu_seconds:.3g} seconds of processor time"
            if memory_bytes > file_limits.memory_bytes:
                return f"it needed more than {file_limits.memory_bytes / 1e6:.0f} MB of memory"
        return ""

    def _usage(self) -> tuple[float, int]:
        """Return processor time in seconds and resident memory in bytes; zeros on systems other than Linux."""
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
            resident = Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]
            return (int(fields[11]) + int(fields[12])) / _CLOCK_TICKS, int(resident) * _PAGE_SIZE
        except (OSError, IndexError, ValueError):
            return 0.0, 0

    def _explain_end(self, size: int, n_pages: int) -> str:
        """Return why the process ended by itself, with the last line that it wrote to its standard error."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        status = self._process.returncode
        if status is not None and -status in (getattr(signal, "SIGXCPU", 0), getattr(signal, "SIGALRM", 0)) and status:
            return f"it took more than {ProcessLimits.of_file(size, n_pages).cpu_seconds:.3g} seconds"
        self._errors.seek(0)
        lines = self._errors.read(1_000_000).decode("utf-8", "replace").strip().splitlines()
        return f"its reader crashed. {lines[-1][:200] if lines else ''}".rstrip(". ")

    @property
    def is_spent(self) -> bool:
        """Return True if the process has ended, read many files, or keeps much memory."""
        return (
            self.is_closed
            or self._process.poll() is not None
            or self._n_requests >= limits.PROCESS_FILES
            or self._usage()[1] > limits.PROCESS_IDLE_BYTES
        )

    def close(self) -> None:
        """End the process."""
        self.is_closed = True
        self._process.kill()
        self._process.wait()
        self.forget()

    def forget(self) -> None:
        """Close this process's ends of the pipes, in a child that must not use or end its parent's worker, too."""
        self._process.returncode = self._process.returncode or 0
        for file in (self._errors, self._process.stdin, self._process.stdout):
            if file is not None:
                with suppress(OSError):
                    file.close()


class _WorkerPool:
    """Workers, at most one for each core; a caller waits while all are busy."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._idle: list[_Worker] = []
        self._workers: set[_Worker] = set()
        self._n_starting = 0

    def run(self, request: Mapping[str, Any], content: bytes) -> Frame:
        """Return a worker's answer to a request about a file; see `run_task`."""
        values = {
            name: value for name, value in vars(limits).items() if name.isupper() and isinstance(value, int | float)
        }
        frame = Frame({**request, "limits": values}, content)
        while True:
            worker = self._take()
            try:
                answer = worker.run(frame)
            finally:
                self._give_back(worker)
            if answer is not None:
                return answer

    def close(self) -> None:
        """End all workers."""
        with self._changed:
            workers, self._workers, self._idle = [*self._workers], set(), []
        for worker in workers:
            worker.close()

    def forget(self) -> None:
        """Drop all workers after a fork: they are the parent's."""
        for worker in self._workers:
            worker.forget()
        self.__init__()  # type: ignore[misc]  # another thread of the parent may have held the lock

    def _take(self) -> _Worker:
        with self._changed:
            while not self._idle and len(self._workers) + self._n_starting >= (os.cpu_count() or 1):
                self._changed.wait()
            while self._idle:
                worker = self._idle.pop()
                if not worker.is_spent:
                    return worker
                self._remove(worker)
            self._n_starting += 1
        try:
            new_worker = _Worker()
        except OSError as cause:
            raise ReaderFailure(f"no process can be started to read it ({cause.strerror})") from cause
        finally:
            with self._changed:
                self._n_starting -= 1
                self._changed.notify()
        with self._changed:
            self._workers.add(new_worker)
        return new_worker

    def _give_back(self, worker: _Worker) -> None:
        with self._changed:
            if worker not in self._workers:  # the pool was closed
                worker.close()
            elif worker.is_spent:
                self._remove(worker)
            else:
                self._idle.append(worker)
            self._changed.notify()

    def _remove(self, worker: _Worker) -> None:
        self._workers.discard(worker)
        if not worker.is_closed:
            worker.close()


_pool = _WorkerPool()
atexit.register(_pool.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)
