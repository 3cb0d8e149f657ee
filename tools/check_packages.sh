#!/usr/bin/env bash
# Installs the wheels in dist/ into a clean environment, runs the example of each thin distribution's README, and starts
# the server of the .mcpb bundle, which uv installs.
set -euo pipefail
cd "$(dirname "$0")/.."
unset PYTHONPATH VIRTUAL_ENV
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$PYTHON" -m venv "$work/env"
wheel=$(echo dist/drillrank-*-py3-none-any.whl)
"$work/env/bin/python" tools/install.py "$wheel[llama-index,langchain,mcp]" dist/langchain_drillrank-*.whl \
    dist/llama_index_postprocessor_drillrank-*.whl dist/drillrank_haystack-*.whl
"$work/env/bin/python" tools/readme_examples.py packages/*/README.md
mkdir "$work/bundle" "$work/folder"
"$PYTHON" -m zipfile --extract dist/*.mcpb "$work/bundle"
echo "The warranty covers the heater." >"$work/folder/manual.md"
eval "$("$PYTHON" tools/install.py --environment)"
XDG_CACHE_HOME=$work UV_CACHE_DIR=$work/uv DRILLRANK_EMBED=none "$work/env/bin/python" tools/mcp_session.py "$work/folder" \
    "What does the warranty cover?" -- "$(dirname "$PYTHON")/uv" run --quiet --directory "$work/bundle" src/server.py "$work/folder"
