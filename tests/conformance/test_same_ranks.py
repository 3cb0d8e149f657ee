"""A folder that is asked on the command line, and through a loader and the retriever of either host: the same ranks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document
from llama_index.core import SimpleDirectoryReader

import langchain_ext
import llama_index_ext
from drillrank.cli import main

LEASE = """# Lease of {tenant}

The tenant is {tenant}. This lease was signed in {year}.

## 1 Rent

The rent of {tenant} is {rent} euros a month, due as Section 3 says.

## 2 Notice

The notice period is {months} months. Dogs need consent.

## 3 Payment

Money is transferred by the third working day.

## 4 Annexes
"""
QUESTIONS = [
    "What notice period was agreed with Meyer in 2021?",
    "When is the rent of Rossi due?",
    "Which lease needs consent for dogs?",
    "How many whales are there?",
]


class FolderLoader(BaseLoader):
    """As the text loaders of the community packages load a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def lazy_load(self):
        for file in sorted(self.folder.iterdir()):
            yield Document(page_content=file.read_text(encoding="utf-8"), metadata={"source": str(file)})


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_ranks_of_the_command_line(tmp_path, capsys, monkeypatch, question):
    folder = tmp_path / "papers"
    folder.mkdir()
    for number, (tenant, year) in enumerate([("Meyer", 2020), ("Meyer", 2021), ("Rossi", 2020), ("Ito", 2022)]):
        text = LEASE.format(tenant=tenant, year=year, rent=900 + number, months=3 + number)
        (folder / f"{tenant.lower()}_{year}.{'md' if number % 2 else 'txt'}").write_text(text, encoding="utf-8")
    (folder / "whales.txt").write_text("Whales sing.\n\nTheir songs last for hours.", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    main(["ask", "papers", question, "--json"])
    records = json.loads(capsys.readouterr().out)["evidence"]
    ranks = [(Path(one["file"]).name, one["text"], pytest.approx(one["score"])) for one in records]
    assert ranks
    nodes = SimpleDirectoryReader("papers").load_data()
    found = llama_index_ext.D3Retriever(nodes, top_n=5).retrieve(question)[: len(ranks)]  # the others match nothing
    assert [(one.metadata["file_name"], one.node.get_content(), one.score) for one in found] == ranks
    documents = FolderLoader(Path("papers")).load()
    brought = langchain_ext.D3Retriever(documents=documents, top_n=5).invoke(question)
    shown = [(Path(d.metadata["source"]).name, d.page_content) for d in brought]
    assert shown[: len(ranks)] == [(name, text) for name, text, _ in ranks]
