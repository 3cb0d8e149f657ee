"""The thin distributions in packages/ and the bundle for Claude Desktop. `make dist` installs and uses them."""

from __future__ import annotations

import importlib.util
import json
import zipfile
from pathlib import Path

import pytest

import langchain_ext
import llama_index_ext
from drillrank import D3
from drillrank.cli.folder_tools import FolderTools

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ROOT / "packages"
MODULES = {
    "langchain-drillrank": ("langchain_drillrank", langchain_ext),
    "llama-index-postprocessor-drillrank": ("llama_index/postprocessor/drillrank", llama_index_ext),
}


def load(path: Path):
    spec = importlib.util.spec_from_file_location(path.parent.name if path.stem == "__init__" else path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def project(folder: Path) -> dict:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("name", MODULES)
def test_a_thin_distribution_has_the_classes_of_the_adapter(name):
    folder, adapter = MODULES[name]
    module = load(PACKAGES / name / folder / "__init__.py")
    rerankers = [public for public in adapter.__all__ if public.endswith("Rerank")]
    assert module.__all__ == (adapter.__all__ if adapter is langchain_ext else rerankers)
    assert all(getattr(module, public) is getattr(adapter, public) for public in module.__all__)


@pytest.mark.parametrize("file", sorted(PACKAGES.glob("*/pyproject.toml")), ids=lambda file: file.parent.name)
def test_a_thin_distribution_has_the_version_of_drillrank(file):
    version = project(ROOT)["version"]
    assert project(file.parent)["version"] == version
    assert any(f">={version}" in line for line in project(file.parent)["dependencies"])


def test_the_haystack_ranker_is_short():
    [file] = PACKAGES.glob("drillrank-haystack/**/*.py")
    assert len(file.read_text().splitlines()) < 80


def test_the_bundle_has_the_keys_of_a_manifest_and_contains_the_wheel(tmp_path):
    mcpb = load(ROOT / "tools" / "mcpb.py")
    wheel = tmp_path / "drillrank-0.3.0-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    content = mcpb.build(wheel).read_bytes()
    assert mcpb.build(wheel).read_bytes() == content
    with zipfile.ZipFile(tmp_path / "drillrank-0.3.0.mcpb") as archive:
        manifest = json.loads(archive.read("manifest.json"))
        assert archive.read(wheel.name) == b"wheel"
        assert manifest["server"]["entry_point"] in archive.namelist()
        source = tomllib.loads(archive.read("pyproject.toml").decode())["tool"]["uv"]["sources"]["drillrank"]
    assert source == {"path": wheel.name}
    assert manifest["version"] == "0.3.0"
    tools = FolderTools(D3(), [str(tmp_path)])
    assert all(hasattr(tools, tool["name"]) for tool in manifest["tools"])
    for wrong in ({**manifest, "tool": []}, {name: manifest[name] for name in manifest if name != "server"}):
        with pytest.raises(ValueError, match=r"tool|server"):
            mcpb.check_manifest(wrong)
