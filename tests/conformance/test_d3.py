"""Drilling down in both hosts: what an LLM of theirs chooses, in documents, indexes and what retrievers find."""

from __future__ import annotations

import asyncio
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import StorageContext
from llama_index.core.node_parser import SentenceSplitter

from drillrank.errors import DrillrankWarning, LLMFailure
from drillrank.text import count_tokens
from tests.conformance.corpus import ticks_during
from tests.conformance.dictionary_stores import DictionaryStore
from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks, build, each_reader
from tests.conformance.readers import ASKED, BOOK, TARGET, Crowd, about, adversary, scripts
from tests.conformance.text_store import TextStore
from tests.examples import examples

TOWN = "# Town {n}\n\nBread.\n\n## People\n\n{n} people live here."
NOTHING = object()


def book(host):
    return host.document(BOOK, "book", source="book.md")


def towns(host):
    return [host.document(TOWN.format(n=n), f"town {n}") for n in range(4)]


def drill(host, *given_ones, llm=NOTHING, **fields):
    """A retriever of paragraphs of the book, or what is given; with an LLM that finds the target, or what is given."""
    chooses = host.reader(about("2.3")) if llm is NOTHING else llm
    documents = given_ones or (() if "source" in fields else (book(host),))
    fields.setdefault("unit", "paragraph")
    return build(host.ext.D3Retriever, list(documents), llm=chooses, **fields)


def texts(found):
    return [one.text for one in found]


def check_target(host, retriever):
    """The one thing that is found is the target, at its place, with its document's metadata."""
    [found] = host.both(retriever, ASKED)
    assert found.text == TARGET == BOOK[found.start : found.start + len(TARGET)]
    assert (found.document, found.metadata["source"]) == ("book", "book.md")
    assert found.metadata["drillrank_section_path"] == "Part 2 > Chapter 2.3"
    assert {key.removeprefix("drillrank_") for key in found.metadata}.isdisjoint({"view", "section_text", "next_id"})
    return found


@both_frameworks
def test_the_llm_chooses_and_its_cost_is_told(host):
    crowd = Crowd()
    retriever = drill(host, llm=host.reader(about("2.3"), crowd))
    found = check_target(host, retriever)
    cost = {"drillrank_prompt_tokens": sum(map(count_tokens, crowd.prompts[:2])), "drillrank_llm_calls": 2}
    assert cost.items() <= found.metadata.items()
    if host is LlamaIndex:
        [hit] = retriever.retrieve(ASKED)
        assert "tokens" not in hit.node.get_content("llm") + hit.node.get_content("embed")


VARIANTS = [
    {},
    {"sections_by": "json"},
    {"paragraphs": "hierbase"},
    {"summary_words": 3, "summarizer": "llm"},
    {"paragraphs": "likelihood", "guard_tokens": 60, "max_prompt_tokens": 200},
]


@pytest.mark.filterwarnings("ignore::drillrank.errors.DrillrankWarning")
@pytest.mark.parametrize("fields", VARIANTS, ids=str)
@each_reader
async def test_async_gives_the_same_at_the_same_cost(host, kind, fields):
    made = [drill(host, llm=host.reader(about("2.3"), kind=kind), **fields) for _ in range(2)]
    expected = host.retrieve(made[0], ASKED)
    assert TARGET in texts(expected)
    assert await host.aretrieve(made[1], ASKED) == expected


@each_reader
async def test_eight_questions_at_once_give_the_same(host, kind):
    retriever = drill(host, llm=host.reader(about("2.3"), Crowd(0.1), kind), workers=4, max_prompt_tokens=200)
    expected = host.retrieve(retriever, ASKED)
    assert await asyncio.gather(*(host.aretrieve(retriever, ASKED) for _ in range(8))) == [expected] * 8
    jobs = [lambda: host.retrieve(retriever, ASKED)] * 8 + [lambda: asyncio.run(host.aretrieve(retriever, ASKED))]
    with ThreadPoolExecutor(9) as pool:
        assert [found.result() for found in [pool.submit(job) for job in jobs]] == [expected] * 9
    if host is LangChain:
        batches = [*await retriever.abatch([ASKED] * 8), *retriever.batch([ASKED] * 8, {"max_concurrency": 8})]
        assert [LangChain._found(found) for found in batches] == [expected] * 16


@each_reader
async def test_the_loop_goes_on_while_the_llm_thinks(host, kind):
    crowd = Crowd(0.2)
    retriever = drill(host, llm=host.reader(about("2.3"), crowd, kind))
    assert await ticks_during(host.aretrieve(retriever, ASKED)) >= 15
    assert threading.get_ident() not in crowd.threads


def down(prompt: str) -> str:
    raise ConnectionError("no route")


@both_frameworks
@pytest.mark.parametrize(
    ("answer", "match", "raises", "falls_back"),
    [
        (down, r"choose sections \(D3\): ConnectionError: no route", (None, "raise"), ("fallback",)),
        (lambda prompt: "what?", "chooses nothing that was offered", ("raise",), (None, "fallback")),
    ],
)
async def test_failures_raise_or_fall_back_as_the_policy_says(host, answer, match, raises, falls_back):
    for on_failure in falls_back:
        with pytest.warns(DrillrankWarning, match="problems"):
            [first, *_] = found = host.retrieve(drill(host, llm=host.reader(answer), on_failure=on_failure), ASKED)
        assert TARGET in texts(found)
        assert "chosen by likelihood" in first.metadata["drillrank_problems"]
    for on_failure in raises:
        strict = drill(host, llm=host.reader(answer), on_failure=on_failure)
        with pytest.raises(LLMFailure, match=match):
            host.retrieve(strict, ASKED)
        with pytest.raises(LLMFailure, match=match):
            await host.aretrieve(strict, ASKED)


@both_frameworks
def test_the_hosts_embedding_model_takes_part(host):
    """Texts are near questions if they are of the same colour, which questions say in their own way."""
    colours = host.document("# One\n\nIt is red here.\n\n# Two\n\nIt is blue here.", "colours")
    model = host.embedding(
        lambda text: [float("red" in text), float("blue" in text)],
        lambda text: [float("warm" in text), float("cold" in text)],
    )
    for question, colour in (("A warm one?", "red"), ("A cold one?", "blue")):
        [found] = host.retrieve(drill(host, colours, llm=None, embed=model, top_n=1), question)
        assert colour in found.text
    by_function = drill(host, colours, llm=None, embed=lambda texts: [[float("red" in text), 1.0] for text in texts])
    assert "red" in host.retrieve(by_function, "The red one?")[0].text


# Collections


FIELDS = [
    {},
    {"max_tokens": 12},
    {"chunking": "fixed", "max_tokens": 30},
    {"views": ["raw"]},
    {"context": ["headings"]},
]


@both_frameworks
@pytest.mark.parametrize("fields", FIELDS, ids=str)
def test_a_store_of_sections_leads_into_the_structure_of_the_document(host, fields):
    pieces = host.split([book(host)], **fields)
    if host is LlamaIndex:  # that keeps texts, as servers do, beside an empty docstore
        little = host.index(*pieces, storage_context=StorageContext.from_defaults(vector_store=TextStore()))
    else:  # that knows nothing by id
        little = DictionaryStore(pieces)
    crowd = Crowd()
    llm, index = host.reader(about("2.3"), crowd), host.index(*pieces)
    for given_ones, source in (
        ([], {"source": index}),
        ([], {"source": little}),
        (pieces, {"source": host.over(index, 1)}),
        ([book(host)], {"source": host.over(index, 1)}),
        (pieces, {}),
    ):
        crowd.prompts.clear()
        check_target(host, drill(host, *given_ones, llm=llm, **source))
        assert crowd.prompts[0].count("* Section: ") == 12


@both_frameworks
def test_sections_alone_are_drilled_into_where_there_is_no_more_to_be_had(host):
    pieces = host.sections(("book", BOOK), *((f"town {n}", TOWN.format(n=n)) for n in range(4)))
    retriever = drill(host, source=host.ext.MultiViewRetriever(pieces, top_n=2))
    assert TARGET in texts(host.both(retriever, ASKED))


@both_frameworks
def test_whole_documents_and_chunks_lead_to_the_documents_at_hand(host):
    records = [*towns(host), book(host)]
    assert texts(host.retrieve(drill(host, *records), ASKED)) == [TARGET]
    assert texts(host.retrieve(drill(host, source=host.retriever(*records)), ASKED)) == [TARGET]
    if host is LlamaIndex:
        source = host.index(*SentenceSplitter(chunk_size=60, chunk_overlap=0)(records))
    else:
        source = host.retriever(host.record(BOOK[:200], source="book.md"))
    assert texts(host.retrieve(drill(host, *records, source=source), ASKED)) == [TARGET]


@both_frameworks
def test_the_best_few_documents_are_drilled_into(host):
    records = towns(host)
    source = host.retriever(*records, records[0], book(host))
    assert texts(host.retrieve(drill(host, source=source, max_documents=4), ASKED)) == []
    assert texts(host.retrieve(drill(host, source=source, max_documents=5), ASKED)) == [TARGET]


# Adversaries


@both_frameworks
@settings(max_examples=examples(25), deadline=None)
@given(
    scripts,
    st.sampled_from(["base", "hierbase", "likelihood"]),
    st.sampled_from(["names", "json"]),
    st.sampled_from([150, 4000]),
    st.sampled_from([0, 60]),
    st.sampled_from([0, 1]),
)
def test_whatever_the_llm_says(host, script, paragraphs, sections_by, budget, guard, kind):
    fields: dict[str, Any] = {
        "paragraphs": paragraphs,
        "sections_by": sections_by,
        "max_prompt_tokens": budget,
        "guard_tokens": guard,
        "on_failure": "fallback",
    }
    documents = book(host), towns(host)[0]
    retriever = drill(host, *documents, llm=host.reader(adversary(script), kind=kind), **fields)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found, heard = host.hear(retriever, ASKED)
    told = {str(warning.message) for warning in caught}
    assert {warning.category for warning in caught} <= {DrillrankWarning}
    assert bool(told) == bool([problem for event in heard for problem in event.get("problems", ())])
    places = [(one.document, one.start) for one in found]
    assert len({one.id for one in found}) == len(set(places)) == len(found)
    sources = {"book": BOOK, "town 0": TOWN.format(n=0)}
    for one, (name, start) in zip(found, places, strict=True):
        assert sources[name][start : start + len(one.text)] == one.text
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        again = asyncio.run(host.aretrieve(retriever, ASKED))
    assert again == found
    assert {str(warning.message) for warning in caught} == told


PAGE = (
    "<html><body><h1>Kettle &amp; pot</h1><p>Fish &amp; <b>chips</b> fry.</p><h2>Care</h2><p>Dry it.</p></body></html>"
)
PAPER = "\\section{Kettle}\nFish \\& \\emph{chips} fry.\n\n\\section{Care}\nDry it.\n"


@pytest.mark.parametrize("text", [PAGE, PAPER], ids=["html", "latex"])
@both_frameworks
def test_evidence_of_a_text_with_markup_is_readable_and_starts_where_its_source_does(host, text):
    retriever = drill(host, host.document(text, "page"), llm=None, top_n=1)
    [found] = host.both(retriever, "Do fish and chips fry?")
    assert found.text == "Fish & chips fry."
    assert found.start == text.index("<p>Fish" if text is PAGE else "Fish")
