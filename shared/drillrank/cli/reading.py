"""Reading of files for the corpus of the command line: small texts in this process, all other files in workers."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

from drillrank import limits
from drillrank.cli.sources import InputFile
from drillrank.corpus.documents import DocumentContext, DocumentRecord, PassageIndices, Unit, prepare_document
from drillrank.errors import DrillrankError, DrillrankWarning, InvalidInput
from drillrank.files import open_file
from drillrank.structure.builtin_formats import is_builtin
from drillrank.structure.formats import Format, find_format_by_file_name, find_format_of_file
from drillrank.structure.isolation import ReaderFailure, close_workers, run_task
from drillrank.structure.packages import is_package
from drillrank.structure.read import content_key, read_content
from drillrank.structure.worker import Frame
from drillrank.text_digests import MAX_DIGESTS

EMPTY = "holds no text."
UNREADABLE = "! "
"""Beginning of a problem that kept a file from being read. It is stored, so that the file is not read again."""
_BYTES_PER_WORKER = 500_000  # of files for which starting one more process is worth it
_AHEAD = 4  # files for each worker that are read before the corpus has taken them
_HEAD_BYTES = 1024
_PROBLEM_CHARACTERS = 500


class KeyedFile(NamedTuple):
    """A file with the key of its content (`drillrank.structure.file_key`)."""

    key: bytes
    file: InputFile


def read_files(files: Sequence[KeyedFile], unit: Unit) -> Iterator[tuple[KeyedFile, DocumentRecord | Exception]]:
    """Read files in order, each as a document cut into units, to write, or the error that it caused.

    Small texts are read in this process: the scanners of drillrank's own text formats take linear time, and starting a
    process takes longer. Files in formats of third parties are read here, too, because a worker does not know those
    formats; their converters run in workers that can import them. All other files are read in workers.
    """
    here = _find_files_to_read_here(files)
    in_workers = [index for index in range(len(files)) if index not in here]
    if not in_workers:
        yield from ((keyed, _read_here(keyed, unit)) for keyed in files)
        return
    size = sum(_size(files[index].file) for index in in_workers)
    n_workers = min(os.cpu_count() or 1, len(in_workers), 1 + size // _BYTES_PER_WORKER)
    stopped = Event()
    threads = ThreadPoolExecutor(n_workers)
    reading: dict[int, Future[DocumentRecord | Exception]] = {}
    queue = iter(in_workers)
    try:
        for index in islice(queue, _AHEAD * n_workers):
            reading[index] = threads.submit(_read_in_worker, files[index], unit, stopped)
        for index, keyed in enumerate(files):
            if index in here:
                yield keyed, _read_here(keyed, unit)
                continue
            yield keyed, reading.pop(index).result()
            for next_index in islice(queue, 1):
                reading[next_index] = threads.submit(_read_in_worker, files[next_index], unit, stopped)
    except BaseException:  # such as an interrupt: the threads must not wait for their workers
        stopped.set()
        threads.shutdown(wait=False, cancel_futures=True)
        close_workers()
        raise
    threads.shutdown()


def _find_files_to_read_here(files: Sequence[KeyedFile]) -> set[int]:
    """Return the indices of the files that are not read in workers; see `read_files`."""
    text_size = 0
    texts: set[int] = set()
    third_party: set[int] = set()
    for index, (_, file) in enumerate(files):
        file_format = _find_format(file)
        if file_format is not None and not is_builtin(file_format):
            third_party.add(index)
        elif file_format is None or file_format.convert is None:
            texts.add(index)
            text_size += _size(file)
    return third_party | (texts if text_size <= limits.READ_HERE_BYTES else set())


def _find_format(file: InputFile) -> Format | None:
    try:
        with open_file(file.path) as content:
            head = content.read(_HEAD_BYTES)
            return find_format_of_file(file.path.name, head + content.read() if is_package(head) else head)
    except InvalidInput:  # reading the file will report it
        return find_format_by_file_name(file.path.name)


def _size(file: InputFile) -> int:
    try:
        return file.path.stat().st_size
    except OSError:
        return 0


def _read_here(keyed: KeyedFile, unit: Unit) -> DocumentRecord | Exception:
    """Read a file in this process."""
    try:
        content = _read_unchanged(keyed)
        return prepare_content(content, keyed.key.hex(), keyed.file.path, unit)._replace(key=keyed.key)
    except (DrillrankError, MemoryError, RecursionError) as error:
        return error
    except Exception as error:  # of a third party's format: it must not end the run
        return InvalidInput(f"{keyed.file.path} cannot be read: its reader failed with {type(error).__name__}.")


def _read_unchanged(keyed: KeyedFile) -> bytes:
    """Return the content of a file.

    Raises:
        InvalidInput: The content has another key than before, or cannot be read.
    """
    content = keyed.file.read()
    if content_key(content, keyed.file.path) != keyed.key:
        raise InvalidInput(f"{keyed.file.path} was changed while it was read: try again.")
    return content


def _read_in_worker(keyed: KeyedFile, unit: Unit, stopped: Event) -> DocumentRecord | Exception:
    """Read a file in a worker, and once more in another one if the first crashed and the format has a second way."""
    path = keyed.file.path
    try:
        content = _read_unchanged(keyed)
    except (DrillrankError, MemoryError, RecursionError) as error:
        return error
    try:
        arguments = {"id": keyed.key.hex(), "path": str(path), "unit": unit, "after_crash": False}
        try:
            frame = run_task("drillrank.cli.reading:prepare_in_worker", arguments, content)
        except ReaderFailure as failure:
            file_format = find_format_of_file(path.name, content)
            can_retry = failure.is_crash and file_format is not None and file_format.convert_after_crash is not None
            if stopped.is_set() or not can_retry:
                raise
            arguments["after_crash"] = True
            frame = run_task("drillrank.cli.reading:prepare_in_worker", arguments, content)
        return _prepared_from_frame(frame, keyed.key)
    except ReaderFailure as failure:  # perhaps only today: too slow, or without memory
        return InvalidInput(f"{path} cannot be read: {failure}.")
    except InvalidInput as error:
        problem = str(error).replace(str(path), "{}")[:_PROBLEM_CHARACTERS]
        return DocumentRecord(f"{keyed.key.hex()} {UNREADABLE}{problem}", keyed.key, rows=())
    except (DrillrankError, MemoryError, RecursionError) as error:
        return error


def prepare_content(content: bytes, id_: str, path: Path, unit: Unit) -> DocumentRecord:
    """Return a file as it is written to the corpus, under a key that the caller replaces.

    Warnings become part of the id, after a space and with {} for the path: later commands show them again.

    Raises:
        DrillrankError: The file cannot be read.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DrillrankWarning)
        document = read_content(content, path)
    problem = " ".join(str(warning.message).replace(str(path), "{}") for warning in caught)[:_PROBLEM_CHARACTERS]
    record = prepare_document(document, f"{id_} {problem}" if problem else id_, unit)
    return record if record.rows else record._replace(id=f"{id_} {{}} {EMPTY}")


def prepare_in_worker(content: bytes, arguments: Mapping[str, Any]) -> tuple[Any, bytes]:
    """Read a file; the task of a worker."""
    record = prepare_content(content, arguments["id"], Path(arguments["path"]), arguments["unit"])
    parts = [record.parse or b"", *record.indices, record.digests]
    value = {
        "id": record.id,
        "rows": record.rows,
        "context": record.context,
        "has_pages": record.has_pages,
        "lengths": list(map(len, parts)),
    }
    return value, b"".join(parts)


def _prepared_from_frame(frame: Frame, key: bytes) -> DocumentRecord:
    """Return what a worker read. It is checked, because a malicious file may control the worker.

    Raises:
        ReaderFailure: The answer has another form than that of `prepare_in_worker`.
    """
    match frame.value:
        case {
            "id": str(id_),
            "rows": list(rows),
            "context": [list(headings), str(beginning)],
            "has_pages": bool(has_pages),
            "lengths": list(lengths),
        }:
            parts = _split(frame.attachment, lengths)
            n_rows = len(rows)
            if (
                id_.partition(" ")[0] == key.hex()
                and all(map(_is_row, rows))
                and all(map(_is_heading, headings))
                and [len(part) for part in parts[1:4]] == [4 * n_rows] * 3
                and _are_digests(parts[4])
            ):
                parse, *indices, digests = parts
                context = DocumentContext(list(map(tuple, headings)), beginning)
                passages = [tuple(row) for row in rows]
                return DocumentRecord(id_, key, parse, passages, context, has_pages, PassageIndices(*indices), digests)
    raise ReaderFailure("its reader's answer has an unknown form")


def _split(attachment: bytes, lengths: list[Any]) -> list[bytes]:
    """Return the five parts of an attachment; empty ones if the lengths do not fit."""
    parts: list[bytes] = []
    if len(lengths) == 5 and all(isinstance(length, int) and length >= 0 for length in lengths):
        for length in lengths:
            parts.append(attachment[:length])
            attachment = attachment[length:]
    return parts or [b""] * 5


def _is_row(row: object) -> bool:
    """Return True if a value is a passage as the corpus writes it."""
    match row:
        case [str(), int(digest), str(), str(), "[]", str(metadata)]:
            try:
                passage_metadata = json.loads(metadata)
            except (ValueError, RecursionError):
                return False
            return (
                -(1 << 63) <= digest < 1 << 63
                and isinstance(passage_metadata, dict)
                and {"start", "end"} <= passage_metadata.keys()
                and all(map(_is_span, passage_metadata.get("paragraph_spans", [])))
            )
    return False


def _is_span(span: object) -> bool:
    """Return True if a value is a `ParagraphSpan` as the corpus writes it."""
    return isinstance(span, list) and len(span) == 4 and all(type(offset) is int for offset in span)


def _are_digests(content: bytes) -> bool:
    """Return True if a value is packed digests as the corpus writes them."""
    return len(content) % 8 == 0 and len(content) <= 8 * MAX_DIGESTS


def _is_heading(heading: object) -> bool:
    """Return True if a value is a heading as the corpus writes it."""
    match heading:
        case [int(first_passage), str(), str()]:
            return 0 <= first_passage < 1 << 32
    return False
