"""Build dist/drillrank-VERSION.mcpb, a bundle for Claude Desktop with our wheel.

`python tools/mcpb.py WHEEL` writes the bundle next to the wheel. The manifest in packages/mcpb is checked against the
schema next to it, version 0.4 of github.com/modelcontextprotocol/mcpb (commit 27083dc, MIT licence). The desktop
application starts the bundle with uv, which installs the wheel with its dependencies at the first start.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import jsonschema

SOURCES = Path(__file__).parents[1] / "packages" / "mcpb"
_PROJECT = """[project]
name = "drillrank-mcpb"
version = "{version}"
requires-python = ">=3.10"
dependencies = ["drillrank[mcp,files]"]

[tool.uv.sources]
drillrank = {{ path = "{wheel}" }}
"""
_TIME = (2020, 1, 1, 0, 0, 0)  # of all files, so that the same wheel makes the same bundle


def read_manifest(version: str) -> dict[str, object]:
    """Return the manifest for a version, checked against the schema."""
    manifest = json.loads((SOURCES / "manifest.json").read_text(encoding="utf-8")) | {"version": version}
    schema = json.loads((SOURCES / f"mcpb-manifest-v{manifest['manifest_version']}.schema.json").read_text())
    jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker()).validate(manifest)
    return manifest


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
