#!/usr/bin/env bash
# Installs the wheels in dist/ into a clean environment, imports each thin distribution and uses it once, and starts the
# server of the .mcpb bundle, which uv installs.
set -euo pipefail
cd "$(dirname "$0")/.."
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/python" tools/install.py dist/*.whl "$(echo dist/drillrank-*-py3-none-any.whl)[llama-index,langchain]" "haystack-ai>=2.12,<4"
cp packages/*/README.md --parents "$work" && cp tools/readme_examples.py "$work"
(cd "$work" && env/bin/python -W error::DeprecationWarning:drillrank readme_examples.py packages/*/README.md)
mkdir "$work/bundle" "$work/folder"
python3 -m zipfile --extract dist/*.mcpb "$work/bundle"
echo "The warranty covers the heater." >"$work/folder/manual.md"
"$PYTHON" tools/mcp_session.py "$work/folder" "What does the warranty cover?" -- \
    "$(dirname "$PYTHON")/uv" run --quiet --directory "$work/bundle" src/server.py "$work/folder"
