"""The benchmark's long documents through the parsers of both frameworks; skipped if the data is not at hand."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document as LangChainDocument
from llama_index.core import Document

from benchmarks.data import data_folder, read
from drillrank import parse_document
from langchain_ext import MultiViewTextSplitter
from llama_index_ext import MultiViewNodeParser
from tests.examples import some

pytestmark = pytest.mark.skipif(not data_folder().is_dir(), reason="the benchmark data is not at hand")


@pytest.mark.parametrize("name", ["longdoc/qasper", "longdoc/qasper_tune"])
def test_sections_tile_every_paper_and_raw_views_are_exact_slices(name):
    splitter, parser = MultiViewTextSplitter(), MultiViewNodeParser()
    for paper in some(read(name), 5):
        text = paper["markdown"]
        document = parse_document(text, format="markdown")
        assert "".join(map(document.slice, document.sections())) == text
        raw = [p for p in splitter.split_documents([LangChainDocument(text)]) if p.metadata["drillrank_view"] == "raw"]
        assert "".join(piece.page_content for piece in raw) == text
        nodes = [
            n for n in parser.get_nodes_from_documents([Document(text=text)]) if n.metadata["drillrank_view"] == "raw"
        ]
        assert all(text[node.start_char_idx : node.end_char_idx] == node.text for node in nodes)
        assert "".join(node.text for node in nodes) == text
