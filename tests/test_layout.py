"""Layout of the tests: a directory for each package, a row of README.md for each, no imports between test modules."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import drillrank

TESTS = Path(__file__).resolve().parent
PACKAGES = {file.parent.name for file in Path(drillrank.__file__).parent.glob("*/__init__.py")} - {"data"}
ROWS = set(re.findall(r"^\| `([\w/]+)` \|", (TESTS / "README.md").read_text(encoding="utf-8"), re.MULTILINE))


def directories_of_tests(folder: Path) -> set[str]:
    return {f"{file.relative_to(TESTS).parent}" for file in folder.rglob("test_*.py")} - {"."}


def imported_modules(file: Path) -> set[str]:
    """Return the modules that a file imports, and the names that it imports from them, which may be modules."""
    modules = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules |= {f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names}
    return modules


def test_each_package_has_a_directory_of_tests():
    assert {f"drillrank/{package}" for package in PACKAGES} - directories_of_tests(TESTS) == set()


def test_the_readme_lists_each_directory_of_tests():
    assert directories_of_tests(TESTS) - {"drillrank"} | {"typed"} == ROWS


def test_no_module_imports_a_test_module():
    files = [file for folder in ("tests", "benchmarks", "tools") for file in (TESTS.parent / folder).rglob("*.py")]
    assert len(files) > 300
    imports = {(file.name, module) for file in files for module in imported_modules(file)}
    assert {pair for pair in imports if re.match(r"(?:tests)?\..*\btest_\w+", pair[1])} == set()
