"""Cutting documents into views in both hosts: a node parser of LlamaIndex, a text splitter of LangChain."""

from __future__ import annotations

import pickle
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from llama_index.core.schema import Document as NodesDocument

from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.text import count_tokens
from tests.conformance.hosts import LlamaIndex, both_hosts

BOOK = "Preface.\n\n# Rivers\n\nThey carry water.\n\n## The Rhine\n\nIt flows through Basel.\n"


def documents(host):
    """Of LangChain also twins without ids."""
    if host is LlamaIndex:
        return [NodesDocument(text=BOOK, id_=id_, metadata={"source": f"{id_}.md"}) for id_ in "ab"]
    first = Document(id="a", page_content=BOOK, metadata={"source": "a.md"})
    return [first, *(Document(page_content=BOOK, metadata={"source": "b.md"}) for _ in "bc")]


def splitter(host, *arguments, **fields):
    cls = host.ext.MultiViewNodeParser if host is LlamaIndex else host.ext.MultiViewTextSplitter
    return cls(*arguments, **fields)


def split(host, given_ones=None, **fields):
    made, given_ones = splitter(host, **fields), documents(host) if given_ones is None else given_ones
    return made(given_ones) if host is LlamaIndex else made.split_documents(given_ones)


async def asplit(host, made):
    again = made.aget_nodes_from_documents if host is LlamaIndex else made.atransform_documents
    return dumped(await again(documents(host)))


def dumped(records):
    return [record.model_dump_json() for record in records]


def view_of(record):
    return record.metadata["drillrank_view"]


def text_of(record):
    return record.page_content if isinstance(record, Document) else record.text


def id_of(record):
    return record.id if isinstance(record, Document) else record.node_id


@both_hosts
@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(["# A\n", "## B\n", "text\n", "\n", "```\n", "# in code\n", "é\u2028x\r\n", "- list\n", "\t"])
    ).map("".join)
    | st.text(max_size=60)
)
def test_raw_pieces_tile_the_document_and_spans_are_exact(host, text):
    document = NodesDocument(text=text, id_="d") if host is LlamaIndex else Document(text, id="d")
    pieces = split(host, [document])
    kept, spans = set(), {}
    for piece in (piece for piece in pieces if view_of(piece) == "raw"):
        start, end = piece.metadata["drillrank_start"], piece.metadata["drillrank_end"]
        host_s = (piece.start_char_idx, piece.end_char_idx) if host is LlamaIndex else (piece.metadata["start_index"],)
        assert host_s == (start, end)[: len(host_s)]
        assert text[start:end] == text_of(piece)
        assert kept.isdisjoint(range(start, end))
        kept.update(range(start, end))
        spans[piece.metadata["drillrank_section_id"]] = start, end
    assert all(i in kept for i, character in enumerate(text) if not character.isspace())
    for piece in pieces:
        names = (f"drillrank_{name}" for name in ("start", "end"))
        assert tuple(map(piece.metadata.get, names)) == spans[piece.metadata["drillrank_section_id"]]


@both_hosts
def test_ids_are_unique_and_the_same_in_every_run_and_documents_are_not_mutated(host):
    given_ones = documents(host)
    before = dumped(given_ones)
    pieces = split(host, given_ones)
    assert dumped(given_ones) == before
    assert len(set(map(id_of, pieces))) == len(pieces)
    assert dumped(split(host)) == dumped(pieces)


@both_hosts
def test_other_views_lead_to_their_section_and_hold_no_copy_of_it(host):
    pieces = split(host)
    raw = {id_of(piece): piece for piece in pieces if view_of(piece) == "raw"}
    others = [piece for piece in pieces if view_of(piece) != "raw"]
    assert set(map(view_of, others)) == {"keywords", "summary"}
    for piece in others:
        section = text_of(raw[piece.metadata["drillrank_section_id"]])
        assert section not in text_of(piece)
        assert not any(section in str(value) for value in piece.metadata.values())


@both_hosts
def test_metadata_is_kept_and_flat_and_the_path_is_whole(host):
    pieces = split(host, documents(host)[:1], settings={"separator": " / "})
    assert {piece.metadata["source"] for piece in pieces} == {"a.md"}
    assert all(isinstance(value, str | int) for piece in pieces for value in piece.metadata.values())
    paths = [piece.metadata["drillrank_section_path"] for piece in pieces if view_of(piece) == "raw"]
    assert paths == ["", "Rivers", "Rivers / The Rhine"]


@both_hosts
async def test_async_equals_sync_and_runs_on_a_thread(host):
    threads = []

    def recorded(text):
        threads.append(threading.get_ident())
        return count_tokens(text)

    made = splitter(host, settings={"tokens": recorded})
    threads.clear()  # of what it was made with
    assert await asplit(host, made) == dumped(split(host))
    assert threads
    assert threading.get_ident() not in threads


@both_hosts
def test_empty_input_and_pickle(host):
    blank = [NodesDocument(text=text) if host is LlamaIndex else Document(text) for text in ("", " \n")]
    assert split(host, []) == split(host, blank, views=["raw"]) == []
    copy = pickle.loads(pickle.dumps(splitter(host, views=["raw"])))
    again = copy(documents(host)) if host is LlamaIndex else copy.split_documents(documents(host))
    assert dumped(again) == dumped(split(host, views=["raw"]))


@both_hosts
@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"views": []}, "views"),
        ({"views": ["raw", "title"]}, "views"),
        ({"views": "raw"}, "views"),
        ({"chunking": "fixed", "max_tokens": None}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 5, "min_tokens": 6}, "max_tokens"),
        ({"context": ["title"]}, "context"),
        ({"settings": {"workers": 0}}, "workers"),
        ({"settings": {"tokens": 3}}, "tokens"),
    ],
)
def test_senseless_fields_are_refused(host, fields, match):
    with pytest.raises(InvalidInput, match=match):
        splitter(host, **fields)


@both_hosts
def test_records_of_another_splitter_are_ranked_as_they_are_with_a_warning(host):
    plain = [host.record("plain", "p", view="of the lake"), host.record("other", "o")]
    with pytest.warns(DrillrankWarning, match="did not make"):
        retriever = host.ext.MultiViewRetriever(plain, top_n=1)
    [hit] = host.retrieve(retriever, "plain")
    assert (hit.id, hit.text, hit.metadata["view"]) == ("p", "plain", "of the lake")
    with pytest.raises(InvalidInput, match="raw"):
        host.ext.MultiViewRetriever([piece for piece in split(host) if view_of(piece) != "raw"])


@both_hosts
async def test_a_model_writes_the_views_once(host):
    prompts, cache = [], {}
    llm = host.llm(['["written words"]'], prompts=prompts)
    made = splitter(host, llm=llm, cache=cache, **({} if host is LlamaIndex else {"show_progress": True}))
    pieces = made(documents(host)) if host is LlamaIndex else made.split_documents(documents(host))
    assert len(prompts) == len(cache) == 3  # equal documents share what was written
    written = [text_of(piece) for piece in pieces if view_of(piece) == "keywords"]
    assert len(written) == 3 * len(documents(host))
    assert all(text.endswith("written words") for text in written)
    assert await asplit(host, made) == dumped(pieces)
    assert len(prompts) == 3


@both_hosts
def test_what_counts_tokens_is_named(host):
    fields = {"views": ["raw"], "chunking": "fixed", "max_tokens": 4}
    text = "One two three four five six seven eight nine."
    document = NodesDocument(text=text) if host is LlamaIndex else Document(text)
    pieces = split(host, [document], settings={"tokens": lambda text: len(text.split())}, **fields)
    assert [len(text_of(piece).split()) for piece in pieces] == [4, 4, 1]
