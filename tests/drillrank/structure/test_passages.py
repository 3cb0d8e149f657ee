"""Tests of `cut_passages`: tiling, limits, section ends, joined neighbors, labels, long blocks."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank.errors import InvalidInput
from drillrank.structure import Document, parse_document
from drillrank.structure.passages import DocumentPassage, cut_passages
from tests.examples import examples, size

SENTENCES = "The old mill grinds corn. Its wheel turns day and night. Nobody stops it. "

markdown_blocks = st.sampled_from(
    [
        "# Mill\n", "## Wheel\n", "### Care and use\n", "One short line.\n", SENTENCES * 2 + "\n", SENTENCES * 8 + "\n",
        "**prepublishOnly**\n", "Note:\n", "- one\n- two\n- three\n", "- " + "\n- ".join(SENTENCES.split()) + "\n",
        "| Name | Use |\n|---|---|\n| wheel | turns |\n", "| A | B |\n|---|---|\n" + "| cell | other cell |\n" * 20,
        "```\ncode()\n```\n", "```\n" + "line()\n\nother()\n" * 20 + "```\n", "x" * 300 + "\n", "\n\n\n", "1. a\n",
        "日本語の文章です。これは長い文です。" * 10 + "\n",
    ]
)  # fmt: skip
markdown_texts = st.lists(markdown_blocks, max_size=12).map("\n".join)
html_blocks = st.sampled_from(
    ["<h1>Mill &amp; co</h1>", "<h2>Wheel</h2>", f"<p>{SENTENCES * 3}</p>", "<p>Note:</p>", "<ul><li>one<li>two</ul>",
     "<table><tr><th>A<th>B" + "<tr><td>cell<td>other" * 12 + "</table>", "<pre>a\n\nb</pre>", "<!-- hidden -->"]
)  # fmt: skip


def visible_characters(document: Document) -> str:
    blocks = [block for section in document.sections() for block in document.blocks(section)]
    return "".join("".join(document.readable(block).split()) for block in blocks)


def repeated_head(document: Document, passage: DocumentPassage) -> str:
    """Text in front of the passage's own: the head of a table whose later part begins the passage."""
    source = document.text[passage.start : passage.end]
    assert passage.text.endswith(source)
    return passage.text[: len(passage.text) - len(source)]


def texts_of(text: str, size: int = 1200, format: str = "markdown") -> list[str]:
    return [passage.text for passage in cut_passages(parse_document(text, format), size)]


@settings(max_examples=examples(200), deadline=None)
@given(markdown_texts, st.integers(1, 400))
def test_spans_tile_the_text_of_a_markdown_document(text, size):
    document = parse_document(text, "markdown")
    passages = cut_passages(document, size)
    end, characters = 0, ""
    for passage in passages:
        assert end <= passage.start < passage.end
        assert not document.text[end : passage.start].strip(), "lost text"
        assert len(passage.text) <= size
        head = repeated_head(document, passage)
        assert not head or (passage.blocks[0].kind == "table" and document.readable(passage.blocks[0]).startswith(head))
        characters += "".join(document.text[passage.start : passage.end].split())
        end = passage.end
    assert not document.text[end:].strip(), "lost text"
    assert characters == visible_characters(document)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(html_blocks, max_size=10).map("\n".join), st.integers(200, 600))
def test_the_readable_text_of_html_is_in_the_passages_once(text, size):
    document = parse_document(text, "html")
    passages = cut_passages(document, size)
    characters = "".join("".join(passage.text.split()) for passage in passages)
    for head in ("A|B",):  # repeated in later parts of a table
        assert characters.replace(head, "") == visible_characters(document).replace(head, "")
    assert all(len(passage.text) <= size for passage in passages)
    assert all(passage.start == passage.blocks[0].start for passage in passages)
    assert all(passage.end == passage.blocks[-1].end for passage in passages)


@settings(max_examples=examples(100), deadline=None)
@given(markdown_texts, st.integers(150, 600))
def test_no_word_is_cut_that_fits_in_a_passage(text, size):
    document = parse_document(
        text.replace("日本語の文章です。これは長い文です。" * 10, "").replace("x" * 300, "x" * 90), "markdown"
    )
    words = [word for p in cut_passages(document, size) for word in document.text[p.start : p.end].split()]
    assert words == document.text.split()


# --- Ends of sections and joined neighbors


def test_a_passage_ends_with_its_section():
    text = f"# One\n\n{SENTENCES * 9}\n\n# Two\n\n{SENTENCES * 9}\n"
    assert [passage.section_path for passage in cut_passages(parse_document(text))] == [("One",), ("Two",)]


def test_short_neighbors_are_joined_across_sections_with_all_their_headings():
    text = "# Manual\n\n## Care\n\nRinse.\n\n## Warranty\n\nTwo years.\n\n# Contact\n\nWrite.\n"
    [passage] = cut_passages(parse_document(text))
    assert passage.headings == (("Manual",), ("Manual", "Care"), ("Manual", "Warranty"), ("Contact",))
    assert passage.title == "Manual > Care > Warranty > Contact"
    assert [section.heading for section in passage.sections] == ["Manual", "Care", "Warranty", "Contact"]
    assert (passage.start, passage.end) == (0, len(text.rstrip()))
    assert passage.text == text.rstrip()


def test_sections_of_equal_path_count_once():
    [passage] = cut_passages(parse_document("# Day\n\nRain.\n\n# Day\n\nSun.\n"))
    assert passage.headings == (("Day",),)
    assert len(passage.sections) == 2


def test_neighbors_that_are_long_together_stay_apart():
    text = f"# One\n\n{SENTENCES * 6}\n\n# Two\n\n{SENTENCES * 6}\n"
    assert len(cut_passages(parse_document(text))) == 2


def test_text_before_the_first_heading_has_no_headings():
    passage = cut_passages(parse_document(f"{SENTENCES * 15}\n\n# One\n\nText.\n"))[0]
    assert (passage.headings, passage.section_path, passage.title) == ((), (), "")


def test_a_heading_without_text_goes_with_the_section_below_it():
    text = f"# One\n\n{SENTENCES * 13}\n\n# Two\n\n## Below\n\n{SENTENCES * 13}\n"
    assert [passage.section_path for passage in cut_passages(parse_document(text))] == [("One",), ("Two",)]
    assert texts_of(text)[1].startswith("# Two\n\n## Below\n\nThe old mill")


def test_skipped_sections_are_in_no_passage():
    document = parse_document("# One\n\nA.\n\n# Two\n\nB.\n\n# Three\n\nC.\n")
    first, _, third = document.sections()
    assert [passage.text for passage in cut_passages(document, sections=[first, third])] == [
        "# One\n\nA.",
        "# Three\n\nC.",
    ]


# --- Labels


@pytest.mark.parametrize(
    "label",
    ["**prepublishOnly**", "Note:", "The steps are these:", "_Options_", "Prerequisites", "**Values:**", "手順："],
)
@pytest.mark.parametrize(
    "block", ["- one\n- two\n- three", "```\nnpm run build\n```", "| a | b |\n|---|---|\n| 1 | 2 |"]
)
def test_a_label_stays_with_the_list_code_or_table_that_follows(label, block):
    filler = SENTENCES * 2
    text = f"{filler}\n\n{label}\n\n{block}\n\n{filler}\n"
    size = len(filler) + len(label) + 10  # the label fits in the first passage, the block does not
    assert any(passage.startswith(f"{label}\n\n{block}") for passage in texts_of(text, size))


@pytest.mark.parametrize(
    "caption", ["Table 3. Prices of wheels in the years before.", "Listing 2: How it turns.", "Tabelle 1"]
)
def test_a_caption_stays_with_what_follows(caption):
    filler = SENTENCES * 2
    block = "| a | b |\n|---|---|\n| 1 | 2 |"
    size = len(filler) + len(caption) + 10
    assert any(
        passage.startswith(f"{caption}\n\n{block}") for passage in texts_of(f"{filler}\n\n{caption}\n\n{block}\n", size)
    )


def test_labels_in_a_row_stay_together():
    block = "- one\n- two\n- three"
    text = f"{SENTENCES}\n\n**Options**\n\nChoose one:\n\n{block}\n"
    assert texts_of(text, len(SENTENCES) + 20)[-1] == f"**Options**\n\nChoose one:\n\n{block}"


def test_a_label_stays_with_the_first_part_of_a_long_block():
    rows = "\n".join(f"- item number {number}" for number in range(100))
    text = f"{SENTENCES * 3}\n\nThese are the items:\n\n{rows}\n"
    passages = texts_of(text, 400)
    assert any("These are the items:\n\n- item number 0\n" in passage for passage in passages)


def test_the_last_sentence_of_a_long_paragraph_introduces_the_list():
    text = f"{SENTENCES * 3}Do this first:\n\n- " + "\n- ".join(["stop the wheel"] * 10) + "\n"
    first, second = texts_of(text, 300)
    assert first == (SENTENCES * 3).rstrip()
    assert second.startswith("Do this first:\n\n- stop")


def test_a_sentence_is_not_a_label():
    text = f"{SENTENCES * 2}\n\nIt rained.\n\n- one\n- two\n- three\n"
    assert texts_of(text, len(SENTENCES * 2) + 15)[1].startswith("- one")


def test_a_heading_stays_with_its_text():
    text = f"# One\n\n{SENTENCES * 3}\n\n## Two\n\n{SENTENCES * 3}\n\n## Three\n\n{SENTENCES * 30}\n"
    assert not any(passage.rsplit("\n", 1)[-1].startswith("#") for passage in texts_of(text, 300))


# --- Long blocks


@pytest.mark.parametrize("size", [100, 400, 1200])
def test_a_long_paragraph_is_cut_at_sentences(size):
    passages = texts_of(SENTENCES * 50, size)
    assert len(passages) > 3
    assert all(passage.endswith(".") and passage[0].isupper() for passage in passages)


@pytest.mark.parametrize(
    ("head", "format"),
    [
        ("| Name | Price |\n|---|---:|\n", "markdown"),
        ("| A |\n|:-:|\n", "markdown"),
        ("| Long name | B | C |\n| --- | --- | --- |\n", "markdown"),
    ],
)
def test_a_long_table_repeats_its_head(head, format):
    columns = head.split("\n")[0].count("|") - 1
    rows = "".join("|" + f" {number} |" * columns + "\n" for number in range(200))
    document = parse_document(head + rows, format)
    passages = cut_passages(document, 300)
    assert len(passages) > 3
    assert all(passage.text.startswith(head) for passage in passages)
    assert "".join(document.text[passage.start : passage.end] + "\n" for passage in passages) == head + rows


def test_a_long_html_table_repeats_its_first_row():
    rows = "".join(f"<tr><td>wheel {number}<td>{number} francs" for number in range(100))
    passages = cut_passages(parse_document(f"<table><tr><th>Part<th>Price{rows}</table>", "html"), 300)
    assert len(passages) > 3
    assert all(passage.text.startswith("Part | Price\n") for passage in passages)


def test_the_head_of_a_table_is_not_repeated_if_it_is_longer_than_half_a_passage():
    head = "| " + "name " * 40 + "|\n|---|\n"
    assert sum("name name" in passage for passage in texts_of(head + "| 1 |\n" * 100, 250)) == 1


def test_long_code_is_cut_at_blank_lines_first():
    function = "def f():\n    a()\n\n    b()\n\n\n"
    passages = texts_of("```\n" + function * 20 + "```\n", 130)
    assert len(passages) > 3
    assert all(passage.startswith(("def f()", "    b()")) for passage in passages[1:])


def test_long_code_without_blank_lines_is_cut_between_lines():
    passages = texts_of("```\n" + "call(argument)\n" * 50 + "```\n", 100)
    assert all(set(passage.split("\n")) <= {"call(argument)", "```"} for passage in passages)


def test_a_long_list_is_cut_between_items():
    item = "- turn the wheel\n  and stop it\n"
    passages = texts_of(item * 30, 100)
    assert all(passage.startswith("- turn") and passage.endswith("stop it") for passage in passages)


def test_a_word_longer_than_a_passage_is_cut():
    assert "".join(texts_of("x" * 1000, 100)) == "x" * 1000


# --- Other formats, arguments, time


def test_latex_and_html_are_readable_and_their_spans_point_into_the_source():
    latex = "\\section{Mill}\nIt \\emph{turns}.\n\n\\section{Wheel}\nRound \\& old.\n"
    [passage] = cut_passages(parse_document(latex, "latex"))
    assert "turns" in passage.text
    assert "\\" not in passage.text
    assert "\\emph{turns}" in latex[passage.start : passage.end]
    html = "<h1>Mill</h1><p>Fish &amp; chips</p>"
    [passage] = cut_passages(parse_document(html, "html"))
    assert passage.text == "Mill\n\nFish & chips"
    assert html[passage.start : passage.end] == html


@pytest.mark.parametrize("size", [40, 90, 400])
def test_parts_of_a_list_with_markup_have_the_spans_of_their_lines(size):
    markdown = "".join(
        f'{n}. <span class="term">Clause {n}.</span> The <b>tenant</b> keeps {n} dogs.\n' for n in range(1, 30)
    )
    passages = cut_passages(parse_document(markdown, "markdown"), size)
    assert len(passages) > 2
    end = 0
    for passage in passages:
        source = markdown[passage.start : passage.end]
        assert "<" not in passage.text
        assert {*re.findall(r"\d+", passage.text)} <= {*re.findall(r"\d+", source)}
        assert len(source.splitlines()) == len(passage.text.splitlines())
        assert passage.start >= end or size == 40  # a line may be in two small passages
        end = passage.end


def test_parts_of_a_block_whose_lines_differ_from_the_source_have_its_span():
    html = "<ul>" + "".join(f"<li>Clause {n} is about dogs.</li>" for n in range(30)) + "</ul>"
    assert {(passage.start, passage.end) for passage in cut_passages(parse_document(html, "html"), 90)} == {
        (0, len(html))
    }


def test_hidden_blocks_are_not_shown():
    html = "<p>One.</p><script>secret()</script><p>Two.</p>"
    [passage] = cut_passages(parse_document(html, "html"))
    assert passage.text == "One.\n\nTwo."


@pytest.mark.parametrize("text", ["", " \n\n", "\ufeff"[:0]])
def test_a_document_without_text_has_no_passages(text):
    assert cut_passages(parse_document(text, "markdown")) == []


def test_pages_are_those_of_the_span():
    assert cut_passages(parse_document("# A\n\nOne.\n"))[0].pages is None


def test_a_size_below_one_is_refused():
    with pytest.raises(InvalidInput, match="max_characters"):
        cut_passages(parse_document("a"), 0)


@pytest.mark.parametrize(
    "unit",
    [
        "a\n\n",
        "# h\n\n",
        "# h\n\n## g\n\n",
        "- a\n",
        "a:\n\n",
        "**a**\n\n",
        "| a |\n|---|\n",
        "x",
        "A b. ",
        "a:\n\n- b\n\n",
        "```\n\n```\n",
    ],
)
def test_time_grows_linearly(unit):
    def seconds(n: int) -> float:
        document = parse_document(unit * n, "markdown")
        start = time.process_time()
        cut_passages(document)
        return time.process_time() - start

    n = size(2000)
    small, large = min(seconds(n) for _ in range(3)), seconds(8 * n)
    assert large < 40 * small + size(2000) / 4000
