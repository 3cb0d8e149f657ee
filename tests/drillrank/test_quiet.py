"""An application's log holds no debugging messages of what drillrank is made of."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import logging, sys
logging.basicConfig(level=logging.{root}, stream=sys.stdout, format="%(name)s %(levelname)s")
from drillrank import D3, PathSearch, PromptRank, Passage, parse_document
from drillrank.vectors import BM25Index, TfidfIndex
texts = ["# Foxes\\n\\nFoxes [hunt](mice).\\n\\n* a list", "<h1>Owls</h1><p>They hoot.</p>"]
texts.append("\\\\section{{Rhine}} A river.")
for text in texts:
    parse_document(text).sections()
BM25Index(texts).scores("foxes"), TfidfIndex(texts).scores("foxes")
D3().retrieve("Who hunts mice?", texts)
PathSearch(PromptRank(), [Passage(text) for text in texts]).search("Who hunts mice?")
"""


def said(root: str) -> list[str]:
    program = PROGRAM.format(root=root)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )


def test_no_dependency_debugs_in_the_application_s_log():
    for root in ("DEBUG", "INFO"):
        assert not [line for line in said(root) if line.endswith(" DEBUG") and not line.startswith("drillrank")]
