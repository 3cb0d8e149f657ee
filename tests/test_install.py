"""`tools/install.py`: uv looks where pip looks, and pip installs what uv cannot."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = runpy.run_path(str(ROOT / "tools" / "install.py"))


def test_uv_looks_where_pip_is_configured_to_look(tmp_path):
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = https://everywhere.test/simple\ntimeout = 9\n"
        "extra-index-url =\n    https://one.test\n    https://two.test\n"
        "[install]\nindex-url = https://installs.test/simple\n[download]\nfind-links = /nowhere\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    environment |= {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf"), "PIP_FIND_LINKS": "/a/wheels /b/wheels"}
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], env=environment, capture_output=True, text=True, check=True
    ).stdout
    told = SCRIPT["uv_environment"](SCRIPT["pip_options"](listing), {"UV_INDEX": "https://uv.test", "PATH": "/bin"})
    assert told["UV_DEFAULT_INDEX"] == "https://installs.test/simple"
    assert told["UV_FIND_LINKS"] == "/a/wheels,/b/wheels"
    assert told["UV_INDEX"] == "https://uv.test"
    assert told["PATH"] == "/bin"


def test_without_a_configuration_uv_is_told_no_place():
    told = SCRIPT["uv_environment"](SCRIPT["pip_options"](""), {})
    assert not [name for name in told if name not in ("UV_INDEX_STRATEGY", "UV_LINK_MODE")]


@pytest.mark.parametrize(
    ("failing", "installers", "status"),
    [((), ["uv"], 0), (("uv",), ["uv", "pip"], 0), (("no uv",), ["pip"], 0), (("uv", "pip"), ["uv", "pip"], 1)],
)
def test_pip_installs_what_uv_cannot(monkeypatch, capsys, failing, installers, status):
    wanted = ["--editable", ".[dev]"]
    ran = []

    def run(command, **options):
        if command[-1].startswith("uv=="):
            return SimpleNamespace(returncode=int("no uv" in failing))
        if command[-2:] == ["config", "list"]:
            return SimpleNamespace(returncode=0, stdout="")
        assert command[-2:] == wanted
        ran.append(command[command.index("-m") + 1])
        return SimpleNamespace(returncode=int(ran[-1] in failing))

    monkeypatch.setattr(subprocess, "run", run)
    assert SCRIPT["install"](wanted) == status
    assert ran == installers
    assert ("trying pip" in capsys.readouterr().err) == ("uv" in failing)
