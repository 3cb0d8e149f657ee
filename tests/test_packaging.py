"""What an installation holds, and what importing it loads."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import zipfile
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest

import drillrank
from tests.heavy_libraries import HEAVY

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # which pytest brings there

ROOT = Path(__file__).resolve().parents[1]


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)


def loaded_by(statement: str) -> set[str]:
    result = python(f"import sys\n{statement}\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))")
    assert result.returncode == 0, result.stderr
    return set(result.stdout.split())


@pytest.mark.parametrize("module", ["drillrank", "drillrank.views", "drillrank.frameworks", "drillrank.cli"])
def test_importing_the_core_loads_no_framework_and_no_heavy_library(module):
    loaded = loaded_by(f"import {module}")
    assert "drillrank" in loaded
    assert not loaded & (HEAVY | {"llama_index", "langchain_core", "openai"})
    assert "rich" not in loaded or module == "drillrank.cli"


def test_importing_the_package_loads_no_component_and_not_numpy():
    result = python("import sys, drillrank\nprint(*sys.modules)")
    assert result.returncode == 0, result.stderr
    loaded = result.stdout.split()
    assert {name for name in loaded if name.startswith("drillrank")} == {"drillrank", "drillrank.lazy"}
    assert "numpy" not in loaded


EACH_NAME_FIRST = """
import os, drillrank, numpy  # a library's own modules do not depend on which name comes first
for name in drillrank.__all__:
    child = os.fork()  # as cheap as a process in which nothing is loaded
    if not child:
        try:
            assert name in dir(drillrank) and getattr(drillrank, name) is getattr(drillrank, name)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0, name
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_each_public_name_can_be_asked_for_first():
    result = python(EACH_NAME_FIRST)
    assert result.returncode == 0, result.stderr


def test_types_and_loader_know_the_same_public_names():
    tree = ast.parse(Path(drillrank.__file__).read_text(encoding="utf-8"))
    for_types = next(node for node in tree.body if isinstance(node, ast.If))
    homes = {alias.name: node.module for node in for_types.body for alias in node.names}
    assert homes == {name: f"drillrank.{home}" for name, home in drillrank._MODULE_BY_NAME.items()}
    assert sorted(homes) == sorted(drillrank.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'drillrank' has no attribute 'UPPR'"):
        drillrank.UPPR  # noqa: B018
    with pytest.raises(ImportError, match="UPPR"):
        from drillrank import UPPR  # noqa: F401


def test_the_bare_install_does_all_the_embedded_work():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [re.match(r"[\w-]+", line).group() for line in project["dependencies"]]
    for name in names:  # what they need in turn
        names += [re.match(r"[\w-]+", line).group() for line in requires(name) or () if "extra ==" not in line]
    tops = {top for top, owners in packages_distributions().items() if {*map(_folded, owners)} & {*map(_folded, names)}}
    assert not tops & {"scipy", "sklearn", "tiktoken", "torch", "pydantic"}
    script = [sys.executable, str(ROOT / "tests" / "bare_install.py"), *sorted(tops)]
    result = subprocess.run(script, capture_output=True, text=True, cwd=ROOT, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert 'pip install "drillrank[clusters]' in result.stdout


def _folded(name):
    return name.lower().replace("_", "-")


@pytest.mark.parametrize(
    ("adapter", "framework", "extra"),
    [("llama_index_ext", "llama_index", "llama-index"), ("langchain_ext", "langchain_core", "langchain")],
)
def test_a_missing_framework_is_named_with_its_extra_and_cause(adapter, framework, extra):
    result = python(f"import sys\nsys.modules['{framework}'] = None\nimport {adapter}")
    assert result.returncode == 1
    assert f'pip install "drillrank[{extra}]' in result.stderr
    assert "MissingExtra" in result.stderr
    assert "direct cause" in result.stderr


def test_the_kit_names_pytest_if_it_is_missing():
    result = python("import sys\nsys.modules['pytest'] = None\nimport drillrank.testing")
    assert result.returncode == 1
    assert "MissingExtra" in result.stderr
    assert 'pip install "drillrank[testing]' in result.stderr


def test_the_kit_loads_no_framework():
    assert not loaded_by("import drillrank.testing") & {"llama_index", "langchain_core", "torch"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_the_wheel_holds_three_packages_and_no_module_called_shared(wheel):
    tops = {name.split("/")[0] for name in wheel.namelist() if ".dist-info" not in name}
    assert tops == {"drillrank", "llama_index_ext", "langchain_ext"}


def test_the_wheel_holds_types_licence_and_command(wheel):
    names = wheel.namelist()
    for package in ("drillrank", "llama_index_ext", "langchain_ext"):
        assert f"{package}/py.typed" in names
    assert "drillrank/testing/record_stores.py" in names
    for file in (
        "english_stems.tsv.gz",
        "german_stems.tsv.gz",
        "pinned_stems.tsv",
        "english_stop_words.txt",
        "LICENSE-pyspellchecker",
    ):
        assert f"drillrank/data/{file}" in names
    for licence in ("LICENSE", "LICENSE-pyspellchecker", "LICENSE-scikit-learn"):
        assert any("licenses/" in name and name.endswith(f"/{licence}") for name in names)
    entry_points = next(name for name in names if name.endswith("entry_points.txt"))
    assert "drillrank = drillrank.cli:main" in wheel.read(entry_points).decode()
    metadata = wheel.read(next(name for name in names if name.endswith("METADATA"))).decode()
    assert "Requires-Dist: llama-index-core<0.15,>=0.14.10; extra == 'llama-index'" in metadata
    assert "Requires-Dist: langchain-core<2,>=1.3; extra == 'langchain'" in metadata
    assert "Requires-Dist: tiktoken>=0.8; extra == 'tiktoken'" in metadata
    always = {
        line.split()[1].split(">")[0] for line in metadata.splitlines() if "Requires-Dist" in line and ";" not in line
    }
    assert not always & {"tiktoken", "pyspellchecker", "scipy", "scikit-learn"}


def test_a_test_that_hangs_does_not_hang_the_run(pytestconfig):
    assert 0 < float(pytestconfig.getini("timeout")) <= 300
    assert pytestconfig.getini("timeout_method") == "thread"  # a signal leaves worker threads running
