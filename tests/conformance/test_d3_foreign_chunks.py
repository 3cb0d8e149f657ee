"""D3 over what other splitters made: whose text, from where, and what is missing, in both hosts."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document as Page
from langchain_text_splitters import MarkdownHeaderTextSplitter, RecursiveCharacterTextSplitter
from llama_index.core.node_parser import MarkdownNodeParser, SentenceSplitter

from drillrank.errors import DrillrankWarning
from tests.conformance.frameworks import Found, LangChain, LlamaIndex, both_frameworks
from tests.examples import examples, size

PARAGRAPHS = {"unit": "paragraph"}
QUESTION = "When does the fox hunt at night?"
BLOCKS = [
    "The fox hunts at night. It sleeps by day. The fox hunts at night.",
    "The fox hunts at night.",
    "An owl hunts, too.\n  This line is indented. The fox hunts at night.",
    "- a fox\n  - a fox of the night\n- an owl",
    "| animal | hunts |\n|---|---|\n| fox | at night |",
    "```\n# no heading\n\n  fox = night\n```",
    "Über 🦊 schläft man nicht. Nachts jagt er.",
]
HEADINGS = ["# Fox", "## Fox", "## Owls *and* foxes", "### Fox", "# Night"]


def markdown(blocks: Sequence[str]) -> str:
    return "\n\n".join(blocks)


texts = st.lists(st.sampled_from(BLOCKS + HEADINGS), min_size=1, max_size=10).map(markdown)


def generated(number: int) -> str:
    draw = random.Random(number)
    parts = []
    for _ in range(12):
        parts += [draw.choice(HEADINGS), *draw.choices(BLOCKS, k=3), f"Fact {draw.randint(1, 99)} of the fox at night."]
    return markdown(parts)


def recursive(size: int, overlap: int, index: bool) -> Callable[[list[Page]], list[Page]]:
    return RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=overlap, add_start_index=index).split_documents


def along_headings(strip: bool, again: int = 0) -> Callable[[list[Page]], list[Page]]:
    def split(pages: list[Page]) -> list[Page]:
        splitter = MarkdownHeaderTextSplitter([("#", "h1"), ("##", "h2")], strip_headers=strip)
        chunks = [
            Page(page_content=chunk.page_content, metadata={**page.metadata, **chunk.metadata})
            for page in pages
            for chunk in splitter.split_text(page.page_content)
        ]
        return recursive(again, again // 3, index=True)(chunks) if again else chunks

    return split


def found_in(
    host: Any, split: Any, originals: Sequence[str], lent: bool, unit: str = "paragraph"
) -> list[tuple[Found, str]]:
    """All that is found, each with the text of its document."""
    if host is LangChain:
        documents = [host.document(text, source=f"{n}.md") for n, text in enumerate(originals)]
    else:
        documents = [host.document(text, str(n)) for n, text in enumerate(originals)]
    fields = {"repeats": True, "max_documents": len(documents), "unit": unit}
    retriever = host.ext.D3Retriever(
        documents if lent else [], source=host.index(*split(documents)), top_n=10_000, settings=fields
    )
    found = host.retrieve(retriever, QUESTION)
    assert len({one.id for one in found}) == len(found)
    names = [one.metadata["source"][:-3] if host is LangChain else one.document for one in found]
    return [(one, originals[int(name)]) for one, name in zip(found, names, strict=True)]


SPLITTERS = {
    "recursive": (LangChain, recursive(90, 0, index=True), False),
    "recursive, overlap": (LangChain, recursive(90, 40, index=True), False),
    "recursive, no index, lent": (LangChain, recursive(90, 40, index=False), True),
    "sentences": (LlamaIndex, SentenceSplitter(chunk_size=60, chunk_overlap=20), False),
    "sentences, lent": (LlamaIndex, SentenceSplitter(chunk_size=60, chunk_overlap=0), True),
    "markdown nodes": (LlamaIndex, MarkdownNodeParser(), False),
    "markdown nodes, lent": (LlamaIndex, MarkdownNodeParser(), True),
}


@pytest.mark.parametrize(("host", "split", "lent"), SPLITTERS.values(), ids=SPLITTERS)
def test_hundreds_of_citations_are_where_they_say(host, split, lent):
    found = found_in(host, split, [generated(number) for number in range(size(40))], lent)
    assert len(found) >= size(1000)
    for one, original in found:
        assert one.start is not None
        assert original[one.start : one.start + len(one.text)] == one.text


@pytest.mark.parametrize(("host", "split", "lent"), SPLITTERS.values(), ids=SPLITTERS)
def test_passages_of_chunks_are_cited_where_they_begin(host, split, lent):
    found = found_in(host, split, [generated(number) for number in range(10)], lent, "passage")
    assert len(found) >= 20
    for one, original in found:
        assert one.start is not None
        assert remove_white_space(original[one.start :]).startswith(remove_white_space(one.text))


def test_a_passage_of_chunks_without_overlap_is_its_source():
    text = "The fox hunts at night. It sleeps by day.\n\nThe owl hunts, too. " * 4
    found = found_in(LangChain, recursive(30, 0, index=True), [text.strip()], False, "passage")
    assert found
    for one, original in found:
        assert one.text.replace("\n", " ") == original[one.start : one.start + len(one.text)].replace("\n", " ")


def remove_white_space(text: str) -> str:
    return "".join(text.split())


UNSURE = {
    "recursive, no index": (LangChain, recursive(90, 40, index=False)),
    "headings": (LangChain, along_headings(strip=True)),
    "headings, recursive": (LangChain, along_headings(strip=False, again=60)),
    **{name: (host, split) for name, (host, split, lent) in SPLITTERS.items() if not lent},
}


@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(texts, min_size=1, max_size=3, unique=True), st.sampled_from(sorted(UNSURE)))
def test_no_citation_is_wrong_and_nothing_is_invented(originals, name):
    if "headings" in name:  # a lone chunk without any cannot be told from a whole document
        originals = [f"# Fox\n\n{text}" for text in originals]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = found_in(*UNSURE[name], originals, False)
    for one, original in found:
        if one.start is not None:
            assert original[one.start : one.start + len(one.text)] == one.text
        for part in (
            one.text.splitlines() if "headings" in name else [one.text]
        ):  # headings between two lines are left out
            assert "".join(part.split()) in "".join(original.split())
    unknown = name in ("headings", "headings, recursive", "recursive, no index")
    assert {warning.category for warning in caught} <= {DrillrankWarning}
    assert unknown or not caught
    assert len(caught) <= 1


@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(texts, st.integers(20, 200), st.integers(0, 15), st.booleans())
def test_any_setting_of_a_splitter(text, size, overlap, lent):
    found = [one for one, _ in found_in(LangChain, recursive(size, overlap, index=True), [text], lent)]
    for one in found:
        assert text[one.start : one.start + len(one.text)] == one.text
    words = {word for word in text.split() if word.isalpha() and "#" not in word}
    headed = {word for line in text.splitlines() if line.startswith("#") for word in line.split()}
    assert words - headed <= {word.strip("*") for one in found for word in one.text.split()} | headed


def test_headings_come_from_metadata_where_texts_have_none():
    text = "# Animals\n\n## Foxes\n\nThe fox hunts at night.\n\n## Owls\n\nThe owl does, too."
    with pytest.warns(DrillrankWarning, match="add_start_index"):
        found = found_in(LangChain, along_headings(strip=True), [text], False)
    for some in (found, found_in(LlamaIndex, MarkdownNodeParser(), [text], False)):
        paths = {one.text: one.metadata["drillrank_section_path"] for one, _ in some}
        assert paths == {"The fox hunts at night.": "Animals > Foxes", "The owl does, too.": "Animals > Owls"}


def test_offsets_in_what_was_cut_again_are_not_those_of_the_document():
    text = "Words   first, in   front.\n\n\n\nThe   fox hunts at night.\n\n# Fox\n\nIt sleeps by day. It hunts."
    with pytest.warns(DrillrankWarning, match="add_start_index"):
        found = found_in(LangChain, along_headings(strip=True, again=30), [text], False)
    assert [one.start for one, _ in found] == [None] * len(found)


# The store


@pytest.mark.parametrize(
    ("host", "split"),
    [
        (LangChain, recursive(200, 0, index=True)),
        (LangChain, LangChain.split),
        (LlamaIndex, SentenceSplitter()),
        (LlamaIndex, LlamaIndex.split),
        (LlamaIndex, MarkdownNodeParser()),
    ],
)
def test_an_update_between_two_questions_is_seen(host, split):
    old, new = (host.document(f"# Fox\n\nThe fox hunts {when}.", "p", source="p.md") for when in ("at night", "by day"))
    store, pieces = host.index(), split([old])
    retriever = host.ext.D3Retriever([old], source=store, settings=PARAGRAPHS)
    host.add(store, *pieces)
    assert [one.text for one in host.retrieve(retriever, QUESTION)] == ["The fox hunts at night."]
    if host is LangChain:
        store.delete([*store.store])
    else:
        store.delete_ref_doc("p", delete_from_docstore=True)
    with pytest.warns(DrillrankWarning, match="The source is empty"):
        assert host.retrieve(retriever, QUESTION) == []
    host.add(store, *split([new]))
    with pytest.warns(DrillrankWarning, match="differ from what the source found"):
        assert [one.text for one in host.both(retriever, QUESTION)] == ["The fox hunts by day."]


@pytest.mark.parametrize("tenant", [None, "a"])
@pytest.mark.parametrize(
    ("host", "split"),
    [(LangChain, recursive(60, 20, index=True)), (LlamaIndex, SentenceSplitter(chunk_size=30, chunk_overlap=8))],
)
def test_two_owners_of_one_place_are_never_mixed(host, split, tenant):
    words = {"a": "The fox of Ada hunts at night. " * 8, "b": "The fox of Bob hunts by day. " * 8}
    path = {"source": "fox.md"} if host is LangChain else {}
    chunks = [chunk for one, text in words.items() for chunk in split([host.document(text, "fox", tenant=one, **path)])]
    mine = host.filters(tenant="a") if tenant else None
    retriever = host.ext.D3Retriever(source=host.index(*chunks), filters=mine, top_n=99)
    with nullcontext() if tenant else pytest.warns(DrillrankWarning, match="same offset"):
        found = host.retrieve(retriever, QUESTION)
    assert found
    assert {one.metadata["tenant"] for one in found} <= {tenant or "b", "a"}
    assert len({one.id for one in found}) == len(found)
    for one in found:
        assert words[one.metadata["tenant"]][one.start :].startswith(one.text)


def test_what_is_given_with_another_label_gives_way():
    chunk = LangChain.record("The fox hunts at night.", source="fox.md", tenant="a")
    given = LangChain.document("# Fox\n\nThe fox hunts at night.\n\nB's secret.", source="fox.md", tenant="b")
    retriever = LangChain.ext.D3Retriever([given], source=LangChain.retriever(chunk), top_n=9)
    with pytest.warns(DrillrankWarning, match="differ"):
        found = LangChain.retrieve(retriever, QUESTION)
    assert [(one.text, one.metadata["tenant"]) for one in found] == [("The fox hunts at night.", "a")]


@both_frameworks
def test_restricted_sections_are_neither_read_nor_named(host):
    text = "# Fox\n\nThe fox hunts at night.\n\n## Secret den\n\nBelow the oak.\n\n# Owl\n\nIt hunts at night, too."
    pieces = [
        host.changed(one, role="hunter" if one.metadata["drillrank_section_path"].endswith("den") else "all")
        for one in host.sections(("fox", text))
    ]
    prompts: list[str] = []
    retriever = host.ext.D3Retriever(
        [host.document(text, "fox")],
        source=host.index(*pieces),
        llm=host.llm(["Fox", "1"], prompts=prompts),
        filters=host.filters(role="all"),
        settings=PARAGRAPHS,
    )
    assert [one.text for one in host.retrieve(retriever, QUESTION)] == ["The fox hunts at night."]
    assert prompts
    assert not [word for word in ("oak", "Secret") if word in "".join(prompts)]


@pytest.mark.parametrize("cut", [False, True])
def test_an_offset_of_the_users_own_stays(cut):
    page = LangChain.document("# Fox\n\nIt hunts at night.", "fox", start_index="page 7", view="mine")
    given = LangChain.split([page]) if cut else [page]
    [found] = LangChain.ext.D3Retriever(documents=given, top_n=1).invoke(QUESTION)
    assert (found.metadata["start_index"], found.metadata["view"]) == ("page 7", "mine")
    assert page.page_content[found.metadata["drillrank_start"] : found.metadata["drillrank_end"]] == found.page_content
