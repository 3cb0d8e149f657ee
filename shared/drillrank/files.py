"""Files and folders: read regular files within limits, and write a file or folder completely or not at all."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import uuid
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from drillrank import limits
from drillrank.errors import InvalidInput, warn

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IgnoreRules = list[tuple[str, "GitIgnoreSpec"]]
"""Folders, each with the rules of its `.gitignore`."""
_IGNORE_BYTES = 1_000_000  # of a .gitignore
_N_NAMED_LINKS = 3  # in a warning
_SPECIAL = "a pipe or device has this name"
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_CAN_OPEN_BELOW = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")


@contextmanager
def open_file(path: str | os.PathLike[str], folder: str | os.PathLike[str] | None = None) -> Iterator[BinaryIO]:
    """Open a regular file for reading. Opening a pipe does not wait for its writer.

    Args:
        path: Path of the file.
        folder: Folder that the file must be in, even if another process replaces parts of the path by links meanwhile.
            None allows any place.

    Raises:
        InvalidInput: The file cannot be opened or read, is outside the folder, or is a folder, a pipe or a device.
    """
    try:
        descriptor = os.open(path, _OPEN_FLAGS) if folder is None else _open_below(path, folder)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InvalidInput(f"{path} cannot be read: it is not a regular file. Name a file.")
            yield file
    except InvalidInput:
        raise
    except (OSError, ValueError) as cause:  # ValueError: a name that no file can have
        raise InvalidInput(f"{path} cannot be read: {getattr(cause, 'strerror', None) or cause}.") from cause


def _open_below(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> int:
    """Return a descriptor of a file in a folder. No link is followed while the file is opened."""
    real_folder = os.path.realpath(folder)
    real_path = Path(os.path.realpath(path))
    if not real_path.is_relative_to(real_folder) or real_path == Path(real_folder):
        raise InvalidInput(f"{path} cannot be read: it is not in {folder}.")
    if not _CAN_OPEN_BELOW:
        return os.open(real_path, _OPEN_FLAGS)
    # The real path has no links. One that appears now was put there to lead elsewhere, so the system refuses it.
    *folders, name = real_path.relative_to(real_folder).parts
    descriptor = os.open(real_folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in folders:
            child = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = child
        return os.open(name, _OPEN_FLAGS | os.O_NOFOLLOW, dir_fd=descriptor)
    finally:
        os.close(descriptor)


def find_read_problem(path: Path) -> str:
    """Return why a file that no caller named is skipped, as words that follow its name. Empty if it can be read."""
    try:
        status = path.stat()
    except (OSError, ValueError) as cause:
        return f"cannot be read: {getattr(cause, 'strerror', None) or cause}"
    if not stat.S_ISREG(status.st_mode):
        return "is not a file"
    is_too_large = status.st_size > limits.FILE_BYTES
    return f"is larger than {limits.FILE_BYTES // 1_000_000} MB: name it to have it read" if is_too_large else ""


def list_files(folder: Path, *, follow_links: bool = False) -> Iterator[tuple[Path, str]]:
    """List the files below a folder by name, each with its `find_read_problem`.

    The list has no hidden files (their names begin with a dot) and no files that a `.gitignore` excludes. Rules of
    folders above count up to the root of the repository. Each folder is entered once, however many links lead to it.

    Args:
        folder: Folder to search, at most `limits.FOLDER_DEPTH` levels deep. It is searched even if it is ignored.
        follow_links: Whether to follow links that lead outside the folder. Otherwise a warning names them.
    """
    entered: set[str] = set()
    errors: list[OSError] = []
    links: list[Path] = []
    rules_by_folder = {str(folder): _read_rules_above(folder)}
    for parent, folders, files in os.walk(folder, onerror=errors.append, followlinks=True):
        rules = [*rules_by_folder.pop(parent, ()), *_read_rules(Path(parent))]
        if (real_parent := os.path.realpath(parent)) in entered:
            folders.clear()
            continue
        entered.add(real_parent)
        for names in (folders, files):
            visible = [Path(parent, name) for name in sorted(names) if not name.startswith(".")]
            candidates = [path for path in visible if not _is_ignored(path, names is folders, rules)]
            outside = {p for p in candidates if not follow_links and p.is_symlink() and is_outside(p, folder)}
            links += sorted(outside)
            names[:] = [path.name for path in candidates if path not in outside]
        rules_by_folder |= {os.path.join(parent, name): rules for name in folders}
        if folders and len(Path(parent).parts) - len(folder.parts) >= limits.FOLDER_DEPTH:
            folders.clear()
            yield Path(parent), "has folders that lie too deep: name them to have them read"
        yield from ((path, find_read_problem(path)) for path in (Path(parent, name) for name in files))
    yield from ((Path(error.filename), f"cannot be read: {error.strerror}") for error in errors)
    warn_about_links(links, folder)


def _read_rules(folder: Path) -> IgnoreRules:
    """Return the rules of the `.gitignore` in a folder, with a warning about lines that are not rules."""
    try:
        with open_file(folder / ".gitignore") as file:
            lines = file.read(_IGNORE_BYTES).decode(errors="replace").splitlines()
    except InvalidInput:  # usually, there is none
        return []
    from pathspec import GitIgnoreSpec

    usable = [line for line in lines if compile_rule(line) is not None]
    if len(usable) < len(lines):
        n_rules = len(lines) - len(usable)
        rules = "1 rule is not" if n_rules == 1 else f"{n_rules} rules are not"
        warn(f"{folder / '.gitignore'}: {rules} applied, because git or drillrank cannot read them.")
    return [(os.path.abspath(folder), GitIgnoreSpec.from_lines(usable))]


def compile_rule(line: str) -> GitIgnoreSpec | None:
    """Return a line of a `.gitignore` as a rule. None if it is refused, or could take more than linear time.

    >>> compile_rule("*.md").match_file("notes/a.md"), compile_rule("*" * 9)
    (True, None)
    """
    # Matching a long name against many asterisks would take hours.
    if line.count("**") >= 4 or max(part.count("*") for part in line.split("/")) >= 4:
        return None
    from pathspec import GitIgnoreSpec

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of `re`, about "[[" in a rule
        try:
            rule = GitIgnoreSpec.from_lines([line])
            rule.check_file("name")
        except (ValueError, re.error):
            return None
    return rule


def _read_rules_above(folder: Path) -> IgnoreRules:
    """Return the rules of the repository above a folder. Empty outside a repository and if they exclude the folder."""
    parents = Path(os.path.abspath(folder)).parents
    root_index = next((index for index, parent in enumerate(parents) if (parent / ".git").exists()), -1)
    rules = [rule for parent in reversed(parents[: root_index + 1]) for rule in _read_rules(parent)]
    return [] if _is_ignored(folder, True, rules) else rules


def _is_ignored(path: Path, is_folder: bool, rules: IgnoreRules) -> bool:
    """Return True if the last matching ignore rule excludes the path."""
    for folder, spec in reversed(rules):
        is_excluded = spec.check_file(os.path.relpath(path, folder) + "/" * is_folder).include
        if is_excluded is not None:
            return is_excluded
    return False


def is_outside(path: Path, folder: Path) -> bool:
    """Return True if links on a path lead outside a folder."""
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def warn_about_links(links: Sequence[Path], folder: Path) -> None:
    """Warn once about all links that lead outside a folder, and name the first ones."""
    if links:
        n_more = len(links) - _N_NAMED_LINKS
        named = ", ".join(f"{os.path.relpath(link, folder)!r:.200}" for link in links[:_N_NAMED_LINKS])
        more = f" and {n_more} more" if n_more > 0 else ""
        lead = "1 symbolic link leads" if len(links) == 1 else f"{len(links)} symbolic links lead"
        was = "was" if len(links) == 1 else "were"
        warn(
            f"{lead} outside {folder} and {was} not followed: {named}{more}. Pass the files or folders that links "
            "lead to as arguments, or add --follow-links on the command line."
        )


def check_model_directory(name: str) -> None:
    """Raise an error if the name of a model can only be that of a directory, and this directory does not exist.

    Raises:
        InvalidInput: It does not exist.

    >>> check_model_directory("google/flan-t5-base")
    >>> check_model_directory("./flan")
    Traceback (most recent call last):
    ...
    drillrank.errors.InvalidInput: The directory './flan' does not exist. Name a directory, or the id of a model.
    """
    is_path = name.startswith(("/", ".", "~")) or name.count("/") > 1 or "\\" in name
    if is_path and not Path(name).is_dir():
        raise InvalidInput(f"The directory {name!r:.200} does not exist. Name a directory, or the id of a model.")


def check_target(path: str | os.PathLike[str]) -> None:
    """Refuse a path to which no file can be written: before hours of work for that file, not after them.

    Raises:
        InvalidInput: The path is a folder or a device, or its folder is a file or cannot be written to.
    """
    target = Path(path).absolute()
    if target.is_dir():
        raise InvalidInput(f"{path} cannot be written: it is a folder. Name a file.")
    if _is_pipe_or_device(target):
        raise InvalidInput(f"{path} cannot be written: {_SPECIAL}. Choose another path.")
    existing_parent = next(parent for parent in target.parents if parent.exists())
    if not existing_parent.is_dir() or not os.access(existing_parent, os.W_OK):
        raise InvalidInput(
            f"{path} cannot be written: {existing_parent} is not a writable folder. Choose another path."
        )


@contextmanager
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """Write a new file that replaces the one at the path when the block ends without an error.

    Raises:
        OSError: The file cannot be written; the old file stays as it is.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replace_file(Path(folder, "notes")) as file:
    ...         _ = file.write(b"all of it")
    ...     os.listdir(folder)
    ['notes']
    """
    if _is_pipe_or_device(path):  # root could otherwise replace /dev/null by a report
        raise OSError(errno.EEXIST, _SPECIAL, str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    part = _temporary_path(path)
    try:
        with part.open("xb") as file:
            yield file
        _sync(part)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _is_pipe_or_device(path: Path) -> bool:
    """Return True if the path is a pipe or device."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _sync(file: Path) -> None:
    """Write a file to the disk. Without this, a power cut can leave the new name with no content."""
    with file.open("rb+") as content:
        os.fsync(content.fileno())


def _temporary_path(path: Path) -> Path:
    """Return a new path in the same folder."""
    return path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")


def make_private_folder(folder: Path) -> None:
    """Make a folder that only the user may write to: files of others there would be shown as evidence.

    Raises:
        OSError: The folder cannot be made, or others may write to it.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    status = folder.lstat()
    if sys.platform != "win32" and (
        not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022
    ):
        raise PermissionError("others may write there")


def cache_folder() -> Path | None:
    """Return the folder of drillrank's cache. None, with a warning, if the user has no home folder."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        base = base if Path(base).is_absolute() else "~/.cache"
    try:
        return Path(base).expanduser() / "drillrank"
    except RuntimeError as cause:
        warn(f"Nothing is cached: {cause}")
        return None
