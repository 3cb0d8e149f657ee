"""Worker processes: each file is read within limits, and no file harms another or this process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import pytest

from drillrank import limits, read_document
from drillrank.errors import InvalidInput, MissingExtra
from drillrank.structure import isolation
from drillrank.structure.formats import ConvertedText, find_format, register_format
from drillrank.structure.isolation import ReaderFailure, run_task
from drillrank.structure.pages import Pages

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
TASKS = """
import os, sys, time
from drillrank.errors import InvalidInput, MissingExtra
from drillrank.structure.formats import ConvertedText
from drillrank.structure.pages import Pages

def echo(content, arguments):
    return {"pid": os.getpid(), **arguments}, content

def crash(content, arguments):
    os.write(2, b"The last words\\n")
    os.abort()

def leave(content, arguments):
    os._exit(0)

def hang(content, arguments):
    time.sleep(1000)

def spin(content, arguments):
    while True:
        pass

def eat(content, arguments):
    eaten = []
    while True:
        eaten.append(bytearray(10_000_000))

def flood(content, arguments):
    return None, bytes(100_000_000)

def chatter(content, arguments):
    print("x" * 100_000, flush=True)
    sys.stdin.read()
    return "said", b""

def lie(content, arguments):
    from drillrank.structure.worker import WorkerProcess
    os.write(WorkerProcess.current._answers.fileno(), b"\\xff" * 1_000)
    time.sleep(1000)

def deep(content, arguments):
    value = []
    for _ in range(500):
        value = [value]
    return value, b""

def fault(content, arguments):
    return {}["a word of the document"]

def recurse(content, arguments):
    return recurse(content, arguments)

def refuse(content, arguments):
    raise InvalidInput("is encrypted.")

def lack(content, arguments):
    raise MissingExtra("install it")

def secrets(content, arguments):
    return dict(os.environ), b""

def convert_words(content):
    text = content.decode() + f" by {os.getpid()}"
    return ConvertedText(text, Pages.of([(0, 1, "i")]), ("has one word.",))

def convert_crash(content):
    os.abort()

def convert_fault(content):
    return content["words"]
"""


@pytest.fixture
def tasks(tmp_path, monkeypatch):
    """A module of a third party that workers can import."""
    (tmp_path / "worker_tasks.py").write_text(TASKS, encoding="utf-8")
    isolation.close_workers()
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "worker_tasks"
    isolation.close_workers()
    sys.modules.pop("worker_tasks", None)


def echo(tasks: str) -> int:
    """Return the process that answers a good request."""
    frame = run_task(f"{tasks}:echo", {"word": "fox"}, b"hen")
    assert (frame.value["word"], frame.attachment) == ("fox", b"hen")
    return int(frame.value["pid"])


def test_a_worker_is_used_again(tasks):
    assert echo(tasks) == echo(tasks) != os.getpid()


@pytest.mark.parametrize("words", ["", "\ud800 \x00 ü 🦊", "x" * 3_000_000])
def test_any_text_and_bytes_come_back(tasks, words):
    frame = run_task(f"{tasks}:echo", {"word": words}, words.encode("utf-8", "surrogatepass"))
    assert (frame.value["word"], frame.attachment) == (words, words.encode("utf-8", "surrogatepass"))


FAILURES = {
    "crash": "its reader crashed. The last words",
    "leave": "its reader crashed",
    "spin": "it took more than .* seconds of processor time",
    "hang": "it took more than .* seconds",
    "flood": "its text has more than .* bytes",
    "lie": "its text has more than .* bytes",
    "deep": "nested too deeply",
    "fault": r"its reader failed \(KeyError at worker_tasks.py:\d+\)",
    "recurse": "it needs too much memory",
}


@pytest.mark.parametrize("task", FAILURES)
def test_a_task_that_fails_is_one_error_and_the_next_file_is_read(tasks, task, monkeypatch):
    monkeypatch.setattr(limits, "PROCESS_SECONDS", 0.5)
    monkeypatch.setattr(limits, "PROCESS_WAIT", 1.0)
    monkeypatch.setattr(limits, "PROCESS_WAIT_PER_SECOND", 2.0 if task == "hang" else 6.0)
    with pytest.raises(ReaderFailure, match=FAILURES[task]) as raised:
        run_task(f"{tasks}:{task}", {}, b"")
    assert "a word of the document" not in str(raised.value)
    echo(tasks)


@linux
def test_a_task_that_eats_memory_is_ended(tasks, monkeypatch):
    monkeypatch.setattr(limits, "PROCESS_BYTES", 150_000_000)
    with pytest.raises(ReaderFailure, match=r"150 MB of memory|too much memory"):
        run_task(f"{tasks}:eat", {}, b"")
    echo(tasks)


def test_what_a_library_prints_is_no_answer(tasks):
    assert run_task(f"{tasks}:chatter", {}, b"").value == "said"


def test_errors_of_ours_keep_their_class(tasks):
    with pytest.raises(InvalidInput, match=r"^is encrypted\.$"):
        run_task(f"{tasks}:refuse", {}, b"")
    with pytest.raises(MissingExtra, match="install it"):
        run_task(f"{tasks}:lack", {}, b"")


def test_a_worker_has_no_secrets(tasks, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert "secret" not in run_task(f"{tasks}:secrets", {}, b"").value.values()


@linux
def test_a_worker_that_dies_while_it_is_idle_is_replaced(tasks):
    first = echo(tasks)
    os.kill(first, 9)
    assert echo(tasks) != first


@linux
def test_a_worker_without_work_ends(tasks, monkeypatch):
    monkeypatch.setattr(limits, "PROCESS_IDLE_SECONDS", 0.2)
    first = echo(tasks)
    end = time.monotonic() + 20
    while Path(f"/proc/{first}/stat").read_text().rsplit(")")[1].split()[0] != "Z":
        assert time.monotonic() < end
        time.sleep(0.05)
    assert echo(tasks) != first


def test_a_worker_is_replaced_after_some_files(tasks, monkeypatch):
    monkeypatch.setattr(limits, "PROCESS_FILES", 2)
    assert len({echo(tasks) for _ in range(6)}) == 3


def test_threads_share_one_worker_for_each_core(tasks, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    processes: list[int] = []
    threads = [Thread(target=lambda: processes.extend(echo(tasks) for _ in range(5))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(processes) == 30
    assert len(set(processes)) <= 2


@linux
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_child_has_workers_of_its_own(tasks):
    first = echo(tasks)
    child = os.fork()
    if not child:
        status = 1
        try:
            status = int(echo(tasks) == first)
        finally:
            isolation.close_workers()
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert echo(tasks) == first


def test_nothing_is_left_when_python_ends(tasks, tmp_path):
    code = (
        "from drillrank.structure.isolation import run_task; print(run_task('worker_tasks:echo', {}, b'').value['pid'])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    command = [sys.executable, "-W", "error", "-c", code]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert not result.stderr
    with pytest.raises(ProcessLookupError):
        os.kill(int(result.stdout), 0)


@pytest.fixture
def registered():
    """Formats of a third party, removed after the test."""
    from drillrank.structure import formats

    before = [dict(mapping) for mapping in (formats._format_by_name, formats._format_by_suffix)]
    yield
    for mapping, old in zip((formats._format_by_name, formats._format_by_suffix), before, strict=True):
        mapping.clear()
        mapping.update(old)


def test_a_converter_of_a_third_party_runs_in_a_worker(tasks, registered, tmp_path):
    import worker_tasks  # type: ignore[import-not-found]

    register_format("words", [".words"], [], "text", convert=worker_tasks.convert_words)
    (tmp_path / "a.words").write_bytes(b"Foxes")
    with pytest.warns(UserWarning, match=r"a\.words: has one word\."):
        document = read_document(tmp_path / "a.words")
    assert document.text.startswith("Foxes by ")
    assert not document.text.endswith(f" {os.getpid()}")
    assert document.pages == Pages((0,), (1,), ("i",))


def test_a_converter_that_no_worker_can_import_runs_here(registered, tmp_path):
    register_format("words", [".words"], [], "text", convert=lambda content: ConvertedText(f"{os.getpid()}"))
    (tmp_path / "a.words").write_bytes(b"Foxes")
    assert read_document(tmp_path / "a.words").text == str(os.getpid())


@pytest.mark.parametrize("can_import", [True, False])
def test_a_converter_with_a_fault_is_an_error_that_names_the_file(tasks, registered, tmp_path, can_import):
    import worker_tasks

    converter = worker_tasks.convert_fault
    register_format("words", [".words"], [], "text", convert=converter if can_import else lambda c: converter(c))
    (tmp_path / "a.words").write_bytes(b"Foxes")
    with pytest.raises(InvalidInput, match=r"a\.words cannot be read as WORDS: its reader failed \(TypeError"):
        read_document(tmp_path / "a.words")


def test_after_a_crash_the_second_converter_is_tried_in_a_new_worker(tasks, registered, tmp_path):
    import worker_tasks

    crash, words = worker_tasks.convert_crash, worker_tasks.convert_words
    register_format("words", [".words"], [], "text", convert=crash, convert_after_crash=words)
    (tmp_path / "a.words").write_bytes(b"Foxes")
    with pytest.warns(UserWarning, match="one word"):
        assert read_document(tmp_path / "a.words").text.startswith("Foxes by ")
    register_format("words", [".words"], [], "text", convert=crash, convert_after_crash=crash)
    with pytest.raises(InvalidInput, match=r"a\.words cannot be read as WORDS: its reader crashed"):
        read_document(tmp_path / "a.words")


def test_limits_grow_with_bytes_and_with_pages_that_have_bytes():
    of_file = isolation.ProcessLimits.of_file
    assert of_file(0) == of_file(0, 10**9) == of_file(0, -5)
    assert of_file(10**6).cpu_seconds > of_file(0).cpu_seconds
    assert of_file(10**6, 100).memory_bytes > of_file(10**6).memory_bytes
    assert of_file(10**6, 10**9).cpu_seconds == of_file(10**6, 10**6 // limits.PAGE_BYTES).cpu_seconds
    assert of_file(37_000, 10**9).cpu_seconds < 5
    assert of_file(37_000, 10**9).memory_bytes < 500_000_000
    assert of_file(10**12, 10**9).memory_bytes == limits.PROCESS_BYTES_MOST


def test_every_converter_of_ours_can_be_imported_by_a_worker():
    for name in ("pdf", "docx", "pptx", "epub"):
        converter = find_format(name).convert
        assert converter is not None
        assert isolation._reference_of(converter)
