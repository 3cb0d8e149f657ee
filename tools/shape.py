"""The shape of a checkout in figures: files, lines, imports, circles, public names.

    python tools/shape.py            # this checkout
    python tools/shape.py ../before . # two side by side, say a worktree of an older commit and this one

Imports are read, not run; those inside functions and under TYPE_CHECKING count like all others.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

CORE, ADAPTERS = "drillrank", ("llama_index_ext", "langchain_ext")
FOLDERS = {CORE: "shared", **dict.fromkeys(ADAPTERS, ".")}


class Import(NamedTuple):
    """One imported name.

    Attributes:
        module: The module that is imported: the deepest one known, or the one written.
        name: What is taken from it; empty where the module itself is imported.
        line: Where the statement stands.
        for_types: Whether it is read by type checkers only.
    """

    module: str
    name: str
    line: int
    for_types: bool = False


def modules(root: Path) -> dict[str, Path]:
    """The modules of the three packages by dotted name, in the order of their names."""
    found: dict[str, Path] = {}
    for package, folder in FOLDERS.items():
        for file in sorted((root / folder / package).rglob("*.py")):
            parts = file.relative_to(root / folder).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imports(source: str, importer: str, known: Mapping[str, Path]) -> Iterator[Import]:
    """What a module imports, wherever in it the statement stands."""
    tree = ast.parse(source)
    for_types = {
        below
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for statement in node.body
        for below in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, "", node.lineno, node in for_types)
        elif isinstance(node, ast.ImportFrom):
            start = _package(importer, known, node.level) if node.level else ""
            base = ".".join(filter(None, (start, node.module)))
            for alias in node.names:
                deeper = f"{base}.{alias.name}"
                module, name = (deeper, "") if deeper in known else (base, alias.name)
                yield Import(module, name, node.lineno, node in for_types)


def _package(importer: str, known: Mapping[str, Path], level: int) -> str:
    """The package from which a relative import of so many dots starts."""
    is_package = importer in known and known[importer].name == "__init__.py"
    parts = importer.split(".")
    return ".".join(parts[: len(parts) - level + is_package])


def graph(root: Path) -> dict[str, list[Import]]:
    """What each module of the three packages imports."""
    known = modules(root)
    return {name: list(imports(file.read_text(encoding="utf-8"), name, known)) for name, file in known.items()}


def circles(edges: Mapping[str, list[Import]]) -> list[list[str]]:
    """Modules that import each other, directly or over others; each circle once, its shortest way round."""
    targets = {name: [one.module for one in found if one.module in edges] for name, found in edges.items()}
    found: dict[frozenset[str], list[str]] = {}
    for name in targets:
        way = _way_back(name, targets)
        if way:
            found.setdefault(frozenset(way), way)
    return list(found.values())


def _way_back(start: str, targets: Mapping[str, list[str]]) -> list[str]:
    """The shortest way from a module back to itself; empty if there is none."""
    came_from: dict[str, str] = {}
    level = [start]
    while level:
        following = []
        for name in level:
            for target in targets[name]:
                if target not in came_from:
                    came_from[target] = name
                    following.append(target)
        if start in came_from:
            way = [came_from[start]]
            while way[-1] != start:
                way.append(came_from[way[-1]])
            return way[::-1]
        level = following
    return []


def public_names(source: str) -> list[str]:
    """`__all__` of a module, or what it imports under its own name (`import A as A`)."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return list(ast.literal_eval(node.value))
    aliases = [one for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) for one in node.names]
    return [one.name for one in aliases if one.name == one.asname]


def loaded_modules(root: Path, statement: str) -> int | None:
    """How many modules a statement loads in a fresh process; None where it fails."""
    path = os.pathsep.join(str((root / folder).resolve()) for folder in dict.fromkeys(FOLDERS.values()))
    code = f"import sys; before = len(sys.modules)\n{statement}\nprint(len(sys.modules) - before)"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,  # from where Python imports first
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    return int(ran.stdout) if ran.returncode == 0 else None


def shape(root: Path) -> dict[str, object]:
    """The figures of a checkout."""
    known, edges = modules(root), graph(root)
    lines = {name: len(file.read_text(encoding="utf-8").splitlines()) for name, file in known.items()}
    figures: dict[str, object] = {}
    for package in FOLDERS:
        own = [name for name in known if name.split(".")[0] == package]
        figures[f"{package}: files"] = len(own)
        figures[f"{package}: lines"] = sum(lines[name] for name in own)
        figures[f"{package}: longest file"] = max(lines[name] for name in own)
        figures[f"{package}: public names"] = len(public_names(known[package].read_text(encoding="utf-8")))
        if package in ADAPTERS:
            used = {one.module for name in own for one in edges[name] if one.module.split(".")[0] == CORE}
            figures[f"{package}: core modules imported"] = len(used)
    round_trips = circles(edges)
    figures["circles"] = len(round_trips)
    for way in round_trips:
        figures[f"  {' → '.join([*way, way[0]])}"] = ""
    for package in FOLDERS:
        figures[f"modules loaded by import {package}"] = loaded_modules(root, f"import {package}")
    names = ", ".join(public_names(known[CORE].read_text(encoding="utf-8")))
    figures[f"modules loaded by all public names of {CORE}"] = loaded_modules(root, f"from {CORE} import {names}")
    return figures


def main(arguments: list[str]) -> int:
    """Print the figures of the checkouts given, or of this one; returns the exit status."""
    roots = [Path(argument) for argument in arguments] or [Path(__file__).resolve().parents[1]]
    columns = [shape(root) for root in roots]
    rows = list(dict.fromkeys(name for column in columns for name in column))
    width = max(map(len, rows))
    print(" " * width, *(f"{str(root)[-20:]:>20}" for root in roots))
    for name in rows:
        print(f"{name:{width}}", *(f"{column.get(name, '')!s:>20}" for column in columns))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
