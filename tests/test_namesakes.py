"""Another package may be called as an adapter is: in the same folder, before it or behind it on sys.path."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import langchain_ext
from drillrank.errors import DrillrankWarning
from drillrank.frameworks.namesakes import find_added_modules, load_adapter, warn_about_namesakes

FOLDER = Path(langchain_ext.__file__).parent


@pytest.fixture
def other(tmp_path: Path) -> Path:
    (tmp_path / "other" / "langchain_ext").mkdir(parents=True)
    (tmp_path / "other" / "langchain_ext" / "__init__.py").write_text("VALUE = 1\n")
    return tmp_path / "other"


def test_a_package_behind_the_adapter_is_a_warning(other, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(other)])
    with pytest.warns(DrillrankWarning, match="is another package called langchain_ext"):
        warn_about_namesakes("langchain_ext", FOLDER)
    assert load_adapter("langchain_ext") is langchain_ext


def test_a_package_before_the_adapter_is_an_error(other, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(other), *sys.path])
    with pytest.raises(ImportError, match="Python imports it instead of the one of drillrank"):
        load_adapter("langchain_ext")


def test_the_adapter_alone_is_no_warning(recwarn):
    warn_about_namesakes("langchain_ext", FOLDER)
    assert not recwarn.list


def test_modules_that_another_package_installed_into_the_adapter(tmp_path):
    folder = tmp_path / "langchain_ext"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
    record = "".join(f"langchain_ext/{path.name},,\n" for path in folder.glob("*.py"))
    (tmp_path / "drillrank-0.1.0.dist-info").mkdir()
    (tmp_path / "drillrank-0.1.0.dist-info" / "METADATA").write_text("Name: drillrank\nVersion: 0.1.0\n")
    (tmp_path / "drillrank-0.1.0.dist-info" / "RECORD").write_text(record)
    assert find_added_modules(folder) == []
    (folder / "vectors.py").write_text("")
    (folder / "chains.py").write_text("")
    assert find_added_modules(folder) == ["chains.py", "vectors.py"]


def test_the_import_itself_warns(other):
    code = f"import sys; sys.path.append({str(other)!r}); import langchain_ext"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "is another package called langchain_ext" in result.stderr
