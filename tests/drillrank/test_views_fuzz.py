"""The views of generated documents of every format: nothing fails, no word is lost or doubled, spans lie in the text.

100 documents per format; `DRILLRANK_FUZZ=10000` asks for more.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drillrank.structure import parse_document
from drillrank.views import Chunker, section_chunks
from tests.drillrank.test_structure_fuzz import html, latex, markdown, plain, words_of

fuzz = settings(
    max_examples=int(os.environ.get("DRILLRANK_FUZZ", "100")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
UNCUT = [Chunker(max_tokens=None, min_tokens=None), Chunker(max_tokens=None, min_tokens=20), Chunker("paragraph", None)]
CUT = [
    Chunker(),
    Chunker("section", 12, None),
    Chunker("section", 30, 20),
    Chunker("paragraph", 10),
    Chunker("content_aware_fixed", 8),
    Chunker("fixed", 8),
]
TEXTS = {"markdown": markdown, "html": html, "latex": latex, "text": plain}


@pytest.mark.parametrize("format", TEXTS)
@fuzz
@given(data=st.data())
def test_views(format, data):
    document = parse_document(data.draw(TEXTS[format]), format)
    cutter = data.draw(st.sampled_from(UNCUT + CUT))
    chunks = section_chunks(document, "d", chunker=cutter, context=["headings", "keywords"])
    raw = [chunk for chunk in chunks if chunk.view == "raw"]
    sections = {chunk.id: chunk for chunk in raw}
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    assert len({(chunk.section_id, chunk.view) for chunk in chunks}) == len(chunks)
    for chunk in chunks:
        assert chunk.text.strip()
        assert 0 <= chunk.start <= chunk.end <= len(document.text)
        section = sections[chunk.section_id]
        assert (chunk.start, chunk.end, chunk.path) == (section.start, section.end, section.path)
        assert chunk.parent_id is None or chunk.parent_id in sections
    assert [chunk.start for chunk in raw] == sorted(chunk.start for chunk in raw)
    if cutter in UNCUT:
        assert "\n".join(chunk.text for chunk in raw).split() == words_of(document)
    if cutter in UNCUT and format in ("markdown", "text"):
        assert all(chunk.text == document.text[chunk.start : chunk.end] for chunk in raw)
    found = {letter for chunk in raw for letter in chunk.text}
    assert found >= {letter for word in words_of(document) for letter in word}
