"""`python -m record REF`: the record of a commit and that of the tree that is checked out, and what differs.

    REF           the reference
    --against     another commit, in place of the tree that is checked out
    --only a,b    groups, or beginnings of their names
    --quick       a share of the questions, such as 0.1
    --fresh       take the records again, also those that are kept
    --list        the groups

Records are kept in `.records/` of the main checkout, by what the packages and the recorder hold. Exits with 0 if
nothing differs, 1 if something does, 2 if a record cannot be taken.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

from . import difference

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PACKAGES = ("shared/drillrank", "llama_index_ext", "langchain_ext")
COMMON = ("building.py", "data.py", "taking.py", "models.py")  # beside what a group's module imports
PROCESSES = 2

# Groups, those that take longest first: module and function.
GROUPS = {
    "paths-2wiki": "paths:two_wiki",
    "paths-hotpotqa": "paths:hotpotqa",
    "paths-musique": "paths:musique",
    "d3": "drilldown:d3",
    "d3-llm": "drilldown:d3_with_llm",
    "self-ask": "drilldown:self_ask",
    "llama-index-retrieve": "llama_index:retrievers",
    "langchain-retrieve": "langchain:retrievers",
    "llama-index-rerank": "llama_index:rerankers",
    "langchain-rerank": "langchain:rerankers",
    "views": "views:views",
    "promptrank": "rerank:promptrank",
    "upr": "rerank:upr",
    "brmgr": "rerank:brmgr",
    "neural": "neural:rankers",
    "unigram": "likelihood:unigram",
    "indexes": "likelihood:indexes",
    "structure": "structure:structure",
    "cli": "cli:commands",
    "cli-explain": "cli:explained",
    "cli-components": "cli:components",
    "compare": "evaluating:compare",
    "tune": "evaluating:tune",
    "explain": "explaining:explanations",
    "explain-text": "explaining:texts",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """What the module's docstring says; the exit status."""
    parser = argparse.ArgumentParser(prog="record", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("reference", nargs="?")
    parser.add_argument("--against")
    parser.add_argument("--only", default="")
    parser.add_argument("--quick", type=float, default=1.0)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--take", nargs=2, metavar=("GROUP", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if given.list:
        print(*GROUPS, sep="\n")
        return 0
    if given.take:
        return take(given.take[0], Path(given.take[1]), given.quick)
    if not given.reference:
        parser.error("name a commit to compare with")
    wanted = [name for name in given.only.split(",") if name]
    groups = [name for name in GROUPS if not wanted or name.startswith(tuple(wanted))]
    if not groups or not all(any(name.startswith(one) for name in GROUPS) for one in wanted):
        parser.error(f"the groups are {', '.join(GROUPS)}")
    try:
        old = records(given.reference, groups, given.quick, fresh=given.fresh)
        new = records(given.against, groups, given.quick, fresh=given.fresh, second=True)
    except RuntimeError as problem:
        print(problem, file=sys.stderr)
        return 2
    compared = {
        name: difference.compare(difference.read_record(old[name]), difference.read_record(new[name]))
        for name in groups
    }
    print(*difference.report(compared), sep="\n")
    changed = sum(len(one.changed) for one in compared.values())
    print(f"{sum(one.calls for one in compared.values())} calls, {changed} differ.")
    return 1 if changed else 0


def take(group: str, file: Path, share: float) -> int:
    """Take the record of one group with the packages that are imported here."""
    from .taking import Recorder

    module, _, function = GROUPS[group].partition(":")
    started = time.perf_counter()
    with Recorder(file, share, Path.cwd()) as recorder:
        getattr(importlib.import_module(f".{module}", __package__), function)(recorder)
    seconds = time.perf_counter() - started
    spent = f"{seconds:.0f} s, {time.process_time():.0f} s of one core"
    print(f"{group}: {recorder.calls} calls, {recorder.errors} of them errors, {spent}")
    return 0


def records(
    commit: str | None, groups: Sequence[str], share: float, *, fresh: bool, second: bool = False
) -> dict[str, Path]:
    """The files of a commit's records, or of those of the tree that is checked out, taken where they are not there.

    Raises:
        RuntimeError: a record cannot be taken, or the commit is unknown.
    """
    changes = "" if commit else git("status", "--porcelain", "--", *PACKAGES)
    tree = " ".join(git("rev-parse", f"{commit or 'HEAD'}:{package}") for package in PACKAGES)
    own = changes or (fresh and second)  # of equal packages, both are taken
    folder = cache() / (f"of-{digest(str(ROOT))}" if own else digest(tree))
    folder.mkdir(exist_ok=True)
    files = {name: folder / f"{name}-{share:g}-{recorder_key(name)}.jsonl.gz" for name in groups}
    lacking = [name for name in groups if fresh or changes or not files[name].exists()]
    if lacking:
        named = commit or ("the tree with its changes" if changes else "the tree")
        print(f"Taking {len(lacking)} groups of {named} ...", flush=True)
        with checked_out(commit) as place, ThreadPoolExecutor(PROCESSES) as pool:
            running = [pool.submit(taken, place, name, files[name], share) for name in lacking]
            try:
                for one in as_completed(running):
                    print(f"  {one.exception() or one.result()}", flush=True)
            except BaseException:
                pool.shutdown(cancel_futures=True)  # interrupted: what is running ends, and the worktree is removed
                raise
        if failed := sum(one.exception() is not None for one in running):
            raise RuntimeError(f"{failed} groups cannot be recorded.")
    return files


def taken(place: Path, group: str, file: Path, share: float) -> str:
    """Take a group's record in a process of its own, whose packages are those of a tree."""
    with tempfile.TemporaryDirectory(prefix="record-") as folder:
        keep = ("PATH", "HOME", "LANG", "DRILLRANK_DATA", "VIRTUAL_ENV")
        environment = {name: os.environ[name] for name in keep if name in os.environ} | {
            "PYTHONPATH": os.pathsep.join(map(str, (place / "shared", place, HERE.parent))),
            "PYTHONHASHSEED": "0",
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "HF_HUB_OFFLINE": "1",
            "XDG_CACHE_HOME": f"{folder}/cache",
            "NO_COLOR": "1",
            "COLUMNS": "120",
            "TERM": "dumb",
            "TZ": "UTC",
            "RECORD_MODELS": str(cache() / "models"),
        }
        partial = Path(folder) / "record.jsonl.gz"
        work = Path(folder) / "work"
        work.mkdir()
        command = [sys.executable, "-m", "record", "--take", group, str(partial), "--quick", str(share)]
        ended = subprocess.run(command, env=environment, cwd=work, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise RuntimeError(f"{group} cannot be recorded in {place}:\n{ended.stderr[-4000:]}")
        shutil.move(partial, file.with_suffix(f".{os.getpid()}"))
        file.with_suffix(f".{os.getpid()}").replace(file)
        return ended.stdout.strip().splitlines()[-1]


@contextmanager
def checked_out(commit: str | None) -> Iterator[Path]:
    """A tree with the files of a commit, in a git worktree that is there for a while; None for this one."""
    if commit is None:
        yield ROOT
        return
    with tempfile.TemporaryDirectory(prefix="record-tree-") as folder:
        place = Path(folder) / "tree"
        git("worktree", "add", "--detach", "--quiet", str(place), commit)
        try:
            yield place
        finally:
            git("worktree", "remove", "--force", str(place))


def cache() -> Path:
    """Where records are kept: one place for all worktrees of a clone."""
    place = Path(git("rev-parse", "--path-format=absolute", "--git-common-dir")).parent / ".records"
    (place / "models").mkdir(parents=True, exist_ok=True)
    (place / ".gitignore").write_text("*\n")
    return place


def recorder_key(group: str) -> str:
    """Of what a group's record depends on, beside the packages: its module and those that this imports."""
    wanted = {*COMMON, f"{GROUPS[group].partition(':')[0]}.py"}
    while True:
        texts = {name: (HERE / name).read_text() for name in wanted}
        imports = " ".join(re.findall(r"^from \.(\w* import .*)$", "".join(texts.values()), re.MULTILINE))
        more = {f"{name}.py" for name in re.findall(r"\w+", imports)} - {"names.py", *wanted}
        if not (more := {name for name in more if (HERE / name).exists()}):
            return digest("".join(texts[name] for name in sorted(texts)))
        wanted |= more


def digest(text: str) -> str:
    """A short name for a text."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def git(*arguments: str) -> str:
    """What a command of git prints.

    Raises:
        RuntimeError: it failed.
    """
    ended = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    if ended.returncode:
        raise RuntimeError(ended.stderr.strip())
    return ended.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
