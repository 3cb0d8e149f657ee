"""Build dist/drillrank-VERSION.mcpb, a bundle for Claude Desktop with our wheel.

`python tools/mcpb.py WHEEL` writes the bundle next to the wheel. It checks that the manifest in packages/mcpb has the
keys of version 0.4 of github.com/modelcontextprotocol/mcpb. If MCPB_SCHEMA names a file with the published JSON
schema, the manifest is checked against it, too. The desktop application starts the bundle with uv, which installs the
wheel with its dependencies at the first start.
"""

from __future__ import annotations

import json
import os
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parents[1] / "packages" / "mcpb"
_PROJECT = """[project]
name = "drillrank-mcpb"
version = "{version}"
requires-python = ">=3.10"
dependencies = ["drillrank[mcp,files]"]

[tool.uv.sources]
drillrank = {{ path = "{wheel}" }}
"""
_REQUIRED = {"manifest_version", "name", "version", "description", "author", "server"}
_OPTIONAL = {"display_name", "long_description", "user_config", "tools", "compatibility", "keywords", "license"}
_OF_SERVER = {"type", "entry_point", "mcp_config"}
_TIME = (2020, 1, 1, 0, 0, 0)  # of all files, so that the same wheel makes the same bundle


def read_manifest(version: str) -> dict[str, Any]:
    """Return the manifest for a version, checked."""
    manifest = json.loads((SOURCES / "manifest.json").read_text(encoding="utf-8")) | {"version": version}
    check_manifest(manifest)
    if schema := os.environ.get("MCPB_SCHEMA"):
        import jsonschema

        validator = jsonschema.Draft7Validator(json.loads(Path(schema).read_text(encoding="utf-8")))
        validator.validate(manifest)
    return manifest


def check_manifest(manifest: Mapping[str, Any]) -> None:
    """Check the keys of a manifest.

    Raises:
        ValueError: A key is missing or unknown.
    """
    missing = _REQUIRED - manifest.keys() | _OF_SERVER - manifest.get("server", {}).keys()
    unknown = manifest.keys() - _REQUIRED - _OPTIONAL
    if missing or unknown or "name" not in manifest["author"] or manifest["manifest_version"] != "0.4":
        raise ValueError(f"The manifest lacks {sorted(missing)} and has the unknown keys {sorted(unknown)}.")


def build(wheel: Path) -> Path:
    """Write the bundle with a wheel next to it, and return its path."""
    version = wheel.name.split("-")[1]
    files = {
        "manifest.json": json.dumps(read_manifest(version), indent=2, ensure_ascii=False).encode() + b"\n",
        "pyproject.toml": _PROJECT.format(version=version, wheel=wheel.name).encode(),
        "src/server.py": (SOURCES / "src" / "server.py").read_bytes(),
        wheel.name: wheel.read_bytes(),
    }
    bundle = wheel.with_name(f"drillrank-{version}.mcpb")
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, _TIME), content, zipfile.ZIP_DEFLATED)
    return bundle


if __name__ == "__main__":
    print(build(Path(sys.argv[1])))
