"""Cutting documents into views in both hosts: a node parser of LlamaIndex, a text splitter of LangChain."""

from __future__ import annotations

import pickle
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank.errors import DrillrankWarning
from drillrank.text import count_tokens
from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks
from tests.examples import examples

BOOK = "Preface.\n\n# Rivers\n\nThey carry water.\n\n## The Rhine\n\nIt flows through Basel.\n"


def documents(host):
    """Of LangChain also twins without ids."""
    names = ["a", "b"] if host is LlamaIndex else ["a", None, None]
    return [host.document(BOOK, name, source=f"{name or 'b'}.md") for name in names]


def split(host, given_ones=None, **fields):
    return host.split(documents(host) if given_ones is None else given_ones, **fields)


async def asplit(host, made):
    again = made.aget_nodes_from_documents if host is LlamaIndex else made.atransform_documents
    return dumped(await again(documents(host)))


def dumped(records):
    return [record.model_dump_json() for record in records]


def cut(splitter, given_ones):
    return getattr(splitter, "split_documents", splitter)(given_ones)


def view_of(record):
    return record.metadata["drillrank_view"]


@both_frameworks
@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.sampled_from(["# A\n", "## B\n", "text\n", "\n", "```\n", "# in code\n", "é\u2028x\r\n", "- list\n", "\t"])
    ).map("".join)
    | st.text(max_size=60)
)
def test_raw_pieces_tile_the_document_and_spans_are_exact(host, text):
    document = host.document(text, "d")
    pieces = split(host, [document])
    kept, spans = set(), {}
    for piece in (piece for piece in pieces if view_of(piece) == "raw"):
        start, end = piece.metadata["drillrank_start"], piece.metadata["drillrank_end"]
        host_s = (piece.start_char_idx, piece.end_char_idx) if host is LlamaIndex else (piece.metadata["start_index"],)
        assert host_s == (start, end)[: len(host_s)]
        assert text[start:end] == host.text_of(piece)
        assert kept.isdisjoint(range(start, end))
        kept.update(range(start, end))
        spans[piece.metadata["drillrank_section_id"]] = start, end
    assert all(i in kept for i, character in enumerate(text) if not character.isspace())
    for piece in pieces:
        names = (f"drillrank_{name}" for name in ("start", "end"))
        assert tuple(map(piece.metadata.get, names)) == spans[piece.metadata["drillrank_section_id"]]


@both_frameworks
def test_ids_are_unique_and_the_same_in_every_run_and_documents_are_not_mutated(host):
    given_ones = documents(host)
    before = dumped(given_ones)
    pieces = split(host, given_ones)
    assert dumped(given_ones) == before
    assert len(set(map(host.id_of, pieces))) == len(pieces)
    assert dumped(split(host)) == dumped(pieces)


@both_frameworks
def test_other_views_lead_to_their_section_and_hold_no_copy_of_it(host):
    pieces = split(host)
    raw = {host.id_of(piece): piece for piece in pieces if view_of(piece) == "raw"}
    others = [piece for piece in pieces if view_of(piece) != "raw"]
    assert set(map(view_of, others)) == {"keywords", "summary"}
    for piece in others:
        section = host.text_of(raw[piece.metadata["drillrank_section_id"]])
        assert section not in host.text_of(piece)
        assert not any(section in str(value) for value in piece.metadata.values())


@both_frameworks
def test_metadata_is_kept_and_flat_and_the_path_is_whole(host):
    pieces = split(host, documents(host)[:1], settings={"separator": " / "})
    assert {piece.metadata["source"] for piece in pieces} == {"a.md"}
    assert all(isinstance(value, str | int) for piece in pieces for value in piece.metadata.values())
    paths = [piece.metadata["drillrank_section_path"] for piece in pieces if view_of(piece) == "raw"]
    assert paths == ["", "Rivers", "Rivers / The Rhine"]


@both_frameworks
async def test_async_equals_sync_and_runs_on_a_thread(host):
    threads = []

    def recorded(text):
        threads.append(threading.get_ident())
        return count_tokens(text)

    made = host.splitter(settings={"tokens": recorded})
    threads.clear()  # of what it was made with
    assert await asplit(host, made) == dumped(split(host))
    assert threads
    assert threading.get_ident() not in threads


@both_frameworks
def test_empty_input_and_pickle(host):
    blank = [host.document(text) for text in ("", " \n")]
    assert split(host, []) == split(host, blank, views=["raw"]) == []
    copy = pickle.loads(pickle.dumps(host.splitter(views=["raw"])))
    assert dumped(cut(copy, documents(host))) == dumped(split(host, views=["raw"]))


@both_frameworks
@pytest.mark.parametrize("view", ["raw", "keywords", "summary"])
def test_a_view_that_is_made_alone_is_that_of_a_whole_split(host, view):
    def described(pieces):
        return [
            (host.id_of(piece), host.text_of(piece), piece.metadata["drillrank_section_id"])
            for piece in pieces
            if view_of(piece) == view
        ]

    assert described(split(host, views=[view])) == described(split(host)) != []


@both_frameworks
def test_records_of_another_splitter_are_ranked_as_they_are_with_a_warning(host):
    plain = [host.record("plain", "p", view="of the lake"), host.record("other", "o")]
    with pytest.warns(DrillrankWarning, match="did not make"):
        retriever = host.ext.MultiViewRetriever(plain, top_n=1)
    [hit] = host.retrieve(retriever, "plain")
    assert (hit.id, hit.text, hit.metadata["view"]) == ("p", "plain", "of the lake")


@both_frameworks
async def test_a_model_writes_the_views_once(host, capsys):
    prompts, cache = [], {}
    llm = host.llm(['["written words"]'], prompts=prompts)
    made = host.splitter(llm=llm, cache=cache, **({} if host is LlamaIndex else {"show_progress": True}))
    pieces = cut(made, documents(host))
    assert host is LlamaIndex or "Writing views" in capsys.readouterr().err
    assert len(prompts) == len(cache) == 3  # equal documents share what was written
    written = [host.text_of(piece) for piece in pieces if view_of(piece) == "keywords"]
    assert len(written) == 3 * len(documents(host))
    assert all(text.endswith("written words") for text in written)
    assert await asplit(host, made) == dumped(pieces)
    assert len(prompts) == 3


@both_frameworks
def test_what_counts_tokens_is_named(host):
    fields = {"views": ["raw"], "chunking": "fixed", "max_tokens": 4}
    text = "One two three four five six seven eight nine."
    pieces = split(host, [host.document(text)], settings={"tokens": lambda text: len(text.split())}, **fields)
    assert [len(host.text_of(piece).split()) for piece in pieces] == [4, 4, 1]


# LangChain's own: what is around a piece is in its metadata, context in its text


def test_context_is_in_the_page_content_and_the_source_in_the_metadata():
    pieces = split(LangChain, chunking="paragraph", max_tokens=50, context=["headings", "keywords"])
    raw = [piece for piece in pieces if view_of(piece) == "raw"]
    for piece in raw:
        start, text = piece.metadata["start_index"], piece.metadata.get("drillrank_section_text", piece.page_content)
        assert BOOK[start : start + len(text)] == text
        assert piece.page_content.endswith(text)
    assert raw[2].page_content.startswith("The Rhine\nflows, Basel\n\n## The Rhine")
    [found] = LangChain.ext.MultiViewRetriever(pieces, top_n=1).invoke("the Rhine")
    assert BOOK[found.metadata["start_index"] :].startswith(found.page_content)
    assert found.metadata["drillrank_section_path"] == "Rivers > The Rhine"


def test_the_host_s_other_ways_to_split():
    splitter, expected = LangChain.splitter(), dumped(split(LangChain))
    assert dumped(splitter.transform_documents(documents(LangChain))) == expected
    given = [document.metadata for document in documents(LangChain)[1:]]
    assert dumped(splitter.create_documents([BOOK] * 2, given)) == dumped(split(LangChain, documents(LangChain)[1:]))


def test_pieces_name_what_is_around_them():
    raw = [piece.metadata for piece in LangChain.sections(("book", BOOK)) if view_of(piece) == "raw"]
    preface, rivers, rhine = (metadata["drillrank_section_id"] for metadata in raw)
    names = ("previous", "next", "parent")
    around = [tuple(metadata.get(f"drillrank_{name}_id") for name in names) for metadata in raw]
    assert around == [(None, rivers, None), (preface, rhine, preface), (rivers, None, rivers)]


MANUAL = (
    "# Mill\n\n"
    + "The old mill grinds corn. " * 40
    + "\n\nNote:\n\n- one\n- two\n\n# Wheel\n\nRound.\n\n# Axle\n\nOf oak.\n"
)


@both_frameworks
def test_passages_are_whole_and_their_spans_exact(host):
    raw = [
        record for record in split(host, [host.document(MANUAL, "d")], chunking="passage") if view_of(record) == "raw"
    ]
    spans = [(record.metadata["drillrank_start"], record.metadata["drillrank_end"]) for record in raw]
    assert [host.text_of(record) for record in raw] == [MANUAL[start:end] for start, end in spans]
    assert MANUAL[spans[0][1] : spans[1][0]].isspace()
    assert "Note:\n\n- one\n- two" in "".join(MANUAL[start:end] for start, end in spans)
    assert MANUAL[spans[-1][0] : spans[-1][1]].endswith("# Wheel\n\nRound.\n\n# Axle\n\nOf oak.")
