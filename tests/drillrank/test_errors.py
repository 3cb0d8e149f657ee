from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest

from drillrank import errors


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (errors.InvalidInput, ValueError),
        (errors.UnknownModel, ValueError),
        (errors.MissingExtra, ImportError),
        (errors.LLMFailure, Exception),
    ],
)
def test_each_error_is_ours_and_a_builtin(kind, builtin):
    assert issubclass(kind, errors.DrillrankError)
    assert issubclass(kind, builtin)


def test_the_warning_is_a_user_warning():
    assert issubclass(errors.DrillrankWarning, UserWarning)
    assert not issubclass(errors.DrillrankWarning, errors.DrillrankError)


def test_require_hands_back_the_module():
    assert errors.require("email.message", "hf") is sys.modules["email.message"]


def test_require_shows_the_true_cause(tmp_path, monkeypatch):
    (tmp_path / "half_installed.py").write_text("import a_module_that_it_lacks\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(errors.MissingExtra, match=r"a_module_that_it_lacks.*drillrank\[server\]") as raised:
        errors.require("half_installed", "server")
    assert isinstance(raised.value.__cause__, ModuleNotFoundError)


def test_require_hides_no_other_error(tmp_path, monkeypatch):
    (tmp_path / "broken_module.py").write_text("raise RuntimeError('broken')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RuntimeError, match="broken"):
        errors.require("broken_module", "server")


def test_the_core_imports_no_framework():
    heavy = ("torch", "transformers", "llama_index", "langchain_core", "openai", "matplotlib")
    code = f"import sys, drillrank; print([name for name in {heavy} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("noted", "after"),
    [
        (None, ""),  # from an index
        ('{"url": "file:///tmp/drillrank-0.1.0-py3-none-any.whl", "archive_info": {}}', " @ file:///tmp/drillrank-0.1.0-py3-none-any.whl"),
        ('{"url": "https://a.test/d.git", "vcs_info": {"vcs": "git", "commit_id": "1"}}', " @ git+https://a.test/d.git"),
    ],
)  # fmt: skip
def test_what_installs_an_extra_comes_from_where_the_distribution_came(monkeypatch, noted, after):
    monkeypatch.setattr(metadata.PathDistribution, "read_text", lambda self, name: noted)
    assert errors.install_command("files") == f'pip install "drillrank[files]{after}"'
