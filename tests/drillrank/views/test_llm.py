"""An LLM's views: every chunk has them, whatever the LLM does."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.errors import DrillrankWarning, LLMFailure
from drillrank.llm import Usage, run
from drillrank.structure import parse_document
from drillrank.views import Chunker, MultiViewChunker, ViewWriter, keywords, parse_keywords, section_chunks, summaries
from tests.drillrank.helpers import Says, quiet, refuses

LONG = "Foxes hunt mice at night. " * 60
TEXT = f"# Animals\n\n## Foxes\n\n{LONG}\n\n## Owls {{section_text}}\n\nThey hoot {{section_name}}.\n\n## Deer\n"
DOCUMENT = parse_document(TEXT)
WHOLE = Chunker(max_tokens=None, min_tokens=None)
CHUNKS = WHOLE(DOCUMENT)
OTHER = WHOLE(parse_document(TEXT.replace("They hoot", "They sleep")))
BODIES = [chunk.body for chunk in CHUNKS]


answers = st.text(max_size=30) | st.sampled_from(
    ['["a", "b"]', "", "...", "[]", "word " * 50, None, 7, ValueError("no")]
)


@quiet
@given(st.lists(answers, max_size=12))
def test_every_chunk_has_its_views_whatever_the_llm_answers(script):
    [written] = run(ViewWriter(on_failure="fallback").write([CHUNKS]), Says(*script, ""))
    for body, words, summary in zip(BODIES, written["keywords"], written["summary"], strict=True):
        assert bool(words) == bool(summary.strip()) == bool(body)
    chunks = section_chunks(DOCUMENT, "d", texts=written, chunker=WHOLE)
    assert len([chunk for chunk in chunks if chunk.view == "raw"]) == len(BODIES)


def test_the_papers_prompts_are_filled_and_text_is_data():
    llm = Says("[some words]")
    run(ViewWriter().write([CHUNKS]), llm)
    assert llm.prompts[:2] == [
        "You are a helpful keyword extractor. You need to extract keywords from the following section. The keywords "
        "should consist of concepts, entities, or important descriptions that are related to the section text, which "
        f"could be used to answer any questions from users.\n\nSection Name: Foxes\n\nSection Text:\n"
        f"**Beginning of text**\n{BODIES[1]}\n**End of text**\n\n"
        "Please output format in list format: [...]. Do not output anything else aside from this list.",
        "You are a helpful summarization assistant. Please help me summarize the following section into no more than "
        f"10 sentences or 200 words.\n\nSection Name: Foxes\n\nSection Text: {BODIES[1]}",
    ]
    assert "Section Name: Owls {section_text}\n" in llm.prompts[2]
    assert "They hoot {section_name}." in llm.prompts[2]
    assert len(llm.prompts) == 3  # short and empty sections need no summary, empty ones no keywords


def test_without_an_answer_the_views_are_computed_and_it_is_said_once_or_it_is_an_error():
    for said, on_failure, problem in (
        (ValueError("out of order"), "fallback", r"Some calls of the LLM failed \(ValueError\)"),
        ("", None, "Some answers of the LLM have no keyword or no word"),
    ):
        with pytest.warns(DrillrankWarning, match=rf"^{problem}.*computed without the LLM") as caught:
            [written] = run(ViewWriter(on_failure=on_failure).write([CHUNKS]), Says(said))
        assert len(caught) == 1
        assert written == {"keywords": list(map(", ".join, keywords(BODIES))), "summary": summaries(BODIES)}
    for said, on_failure in ((ValueError("out of order"), None), (ValueError("out of order"), "raise"), ("", "raise")):
        with pytest.raises(LLMFailure):
            run(ViewWriter(on_failure=on_failure).write([CHUNKS]), Says(said))


def test_what_was_written_before_a_failure_stays_in_the_cache():
    writer, llm = ViewWriter(), Says("[one]", ValueError("out of order"), "[two]")
    with pytest.raises(LLMFailure, match="write keywords and summaries: ValueError: out of order"):
        run(writer.write([CHUNKS]), llm)
    assert len(writer.cache) == 1
    run(writer.write([CHUNKS]), llm)
    assert len(llm.prompts) == 4  # three views, and the call that failed


@quiet
def test_answers_are_remembered_by_content_and_model_and_failures_are_not():
    cache: dict[str, str] = {}
    run(ViewWriter("m", cache).write([CHUNKS]), Says(""))
    assert not cache

    def asked(writer, chunks):
        llm = Says(lambda prompt: f"[answer to {prompt[:9]}]")
        return run(writer.write([chunks]), llm), len(llm.prompts)

    first, _ = asked(ViewWriter("m", cache), CHUNKS)
    assert asked(ViewWriter("m", cache), CHUNKS) == (first, 0)
    assert asked(ViewWriter("m", cache), OTHER)[1] == 1
    assert asked(ViewWriter("other model", cache), CHUNKS)[1] == 3
    assert all(isinstance(entry, str) for pair in cache.items() for entry in pair)
    cache.update(dict.fromkeys(cache, ""))  # broken
    assert asked(ViewWriter("m", cache), CHUNKS)[1] == 3


test_unusable_settings_are_refused = refuses(
    *((lambda bad=bad: ViewWriter(**bad), "") for bad in ({"max_calls": 0}, {"on_failure": "perhaps"}))
)


def test_the_llm_is_asked_so_often_and_no_more():
    parts = (f"# Part {i}\n\n{'#' * (i % 5 + 1)} Word{i} {i}\n\nAbout {i} cats.\n\n" for i in range(300))
    tiny, usage, writer = parse_document("".join(parts)), Usage(), ViewWriter(max_calls=7)
    with pytest.warns(DrillrankWarning, match=r"Some .* computed without the LLM.*7 \(max_calls\)"):
        [written] = run(writer.write([WHOLE(tiny)]), lambda prompt: "[an answer]", usage=usage)
    assert usage.calls == 7
    assert written["keywords"].count("an answer") == 7
    assert all(words for words, chunk in zip(written["keywords"], WHOLE(tiny), strict=True) if "cats" in chunk.body)
    chunker = MultiViewChunker(llm=lambda prompt: "[a]", settings={"max_calls": 3})
    with pytest.warns(DrillrankWarning, match="max_calls"):
        chunker.chunks([("d", tiny)])
    with pytest.warns(DrillrankWarning, match="max_calls"):
        run(writer.write([WHOLE(tiny)]), lambda prompt: "[an answer]", usage=usage)
    assert usage.calls == 14  # what is remembered does not count


pieces = st.lists(st.sampled_from(['"', "'", "[", "]", ",", "\n", "- ", "a", "B c", "1. "])).map("".join)


@given(st.text() | pieces)
def test_any_answer_gives_a_list_of_different_keywords(answer):
    found = parse_keywords(answer)
    assert len({word.casefold() for word in found}) == len(found)
    for word in found:
        assert len(word.splitlines()) == 1
        assert word == word.strip()
        assert any(character.isalnum() or character == "_" for character in word)


MANY = " ".join(["long"] * 20)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("[alpha, beta gamma]", ["alpha", "beta gamma"]),
        ("Keywords: alpha; beta", ["alpha", "beta"]),
        ("1. alpha\n2) **beta**\n- alpha", ["alpha", "beta"]),
        ('{"keywords": ["alpha", "beta"]}', ["alpha", "beta"]),
        ('[["alpha", "beta"]]', ["alpha", "beta"]),
        ("__import__('os').system('x')", ["__import__('os').system('x')"]),
        ("I am sorry, but it is impossible for me to read the section that you gave me.", ["I am sorry"]),
        ("[]", []),
        (f"[{MANY}, short]", [MANY, "short"]),
        (f"- {MANY}\n- short", [MANY, "short"]),
        (f"1. {MANY}\n{'prose ' * 20}", [MANY]),
    ],
)
def test_usual_answers(answer, expected):
    assert parse_keywords(answer) == expected


async def test_async_equals_sync_and_an_asynchronous_llm_is_awaited(capsys):
    llm = SimpleNamespace(complete=lambda prompt: "[later]", acomplete=AsyncMock(return_value="[later]"))
    documents = [("a", DOCUMENT), ("b", parse_document("Only text."))]
    chunker = MultiViewChunker(max_tokens=None, min_tokens=None, llm=llm)
    expected = chunker.chunks(documents, show_progress=True)
    assert await chunker.achunks(documents, show_progress=True) == expected
    assert {chunk.text for chunk in expected[1]} == {"Only text.", "later"}
    assert {c.text.splitlines()[-1] for c in expected[0] if c.view == "keywords"} == {"later", "Deer"}
    told = capsys.readouterr().err
    assert "Writing views" in told
    assert "100%" in told


def test_a_summariser_takes_the_llms_place_and_chunks_of_any_size_can_be_written():
    llm = Says("[a]")
    chunker = MultiViewChunker(
        max_tokens=None, min_tokens=None, llm=llm, summarizer=lambda texts: [text[:9] for text in texts]
    )
    (chunks,) = chunker.chunks([("d", DOCUMENT)])
    shown = ["Foxes\nFoxes hun", "Owls {section_text}\nThey hoot", "Deer\nDeer"]
    assert [chunk.text for chunk in chunks if chunk.view == "summary"] == shown
    assert not any("summarization" in prompt for prompt in llm.prompts)
    paragraphs = Chunker("paragraph")(parse_document("# A\n\nOne fox.\n\nTwo owls.\n"))
    assert run(ViewWriter().write([paragraphs], ["keywords"]), llm) == [{"keywords": ["a", "a"]}]
