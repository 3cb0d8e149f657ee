"""What the bare install weighs, and how long imports take beside `import langchain_core`, each in fresh processes.

`--data DIR` measures another checkout, say one of an older commit.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
LARGEST = 6  # parts of the install that are listed
ROUNDS = 9
STATEMENTS = (
    "import langchain_core", "import drillrank", "from drillrank import *", "from drillrank import UPR",
    "import drillrank.views", "import drillrank.multihop.search", "import drillrank.cli.ask",
    "import langchain_ext", "import llama_index_ext",
)  # fmt: skip
_TIMED = """import sys, time
known, started = len(sys.modules), time.perf_counter()
{}
print(time.perf_counter() - started, len(sys.modules) - known)"""


def main(data: str | None = None) -> None:
    """Print both tables."""
    root = ROOT if data is None else Path(data).resolve()
    console = Console(width=100)
    with TemporaryDirectory() as folder:
        console.print(installed(root, Path(folder)))
    console.print(imported(root))


def installed(root: Path, folder: Path) -> Table:
    """The size of what `pip install drillrank` adds to an empty environment, the largest parts by name."""
    options = ["--wheel", "--no-isolation", "--outdir", str(folder), str(root)]
    subprocess.run([sys.executable, "-m", "build", *options], check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True)
    python = folder / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "install", str(next(folder.glob("*.whl")))], check=True)
    (packages,) = (folder / "env").glob("[Ll]ib/**/site-packages")
    own = ("pip", "setuptools", "_distutils_hack", "pkg_resources", "distutils-precedence")
    sizes = {part.name: weight(part) for part in packages.iterdir() if not part.name.startswith(own)}
    table = Table("part", "MB", title="pip install drillrank, with compiled modules")
    for name in sorted(sizes, key=sizes.__getitem__, reverse=True)[:LARGEST]:
        table.add_row(name, f"{sizes[name] / 1e6:.1f}")
    table.add_row(f"all {len(sizes)}", f"{sum(sizes.values()) / 1e6:.1f}")
    return table


def weight(part: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    files = [part] if part.is_file() else [file for file in part.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)


def imported(root: Path) -> Table:
    """Seconds and modules of each statement; in each round, every statement has its turn."""
    path = os.pathsep.join(map(str, (root / "shared", root)))
    environment = {**os.environ, "PYTHONPATH": path}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # the first round compiles
    seconds: dict[str, list[float]] = {statement: [] for statement in STATEMENTS}
    modules: dict[str, int] = {}
    for round_ in range(ROUNDS + 1):
        for statement in STATEMENTS:
            command = [sys.executable, "-c", _TIMED.format(statement)]
            # Python imports from the current folder first.
            ran = subprocess.run(command, cwd=root, env=environment, check=True, capture_output=True, text=True)
            took, loaded = ran.stdout.split()
            modules[statement] = int(loaded)
            if round_:
                seconds[statement].append(float(took))
    table = Table("statement", "seconds", "modules", title=f"median of {ROUNDS} fresh processes each")
    for statement, times in seconds.items():
        table.add_row(statement, f"{median(times):.3f}", f"{modules[statement]:,}")
    return table
