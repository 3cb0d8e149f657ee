r"""RTF: text, headings, tables and notes; what a reader does not see is left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import read_document
from drillrank.structure.rtf import convert_rtf
from tests.drillrank.structure.format_cases import CASES


def text_of(body: str | bytes, head: str = r"\ansi\ansicpg1252") -> str:
    content = body if isinstance(body, bytes) else body.encode("latin-1")
    return convert_rtf(b"{\\rtf1" + head.encode() + b" " + content + b"}").text


def test_a_file_is_known_by_its_first_bytes(tmp_path):
    file = tmp_path / "letter.doc"
    file.write_bytes(rb"{\rtf1\ansi{\fonttbl{\f0 Times;}}\f0 The rent is nine hundred euros.\par}")
    assert read_document(file).text == "The rent is nine hundred euros."


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (r"caf\'e9 \u8217? \u8364\'80 \emdash\~x", "café ’ € — x"),
        (r"\uc0\u1071  a \uc2\u1234xyz", "Я a Ӓz"),
        (r"\u55357?\u56832?", "\U0001f600"),
        (r"seen{\v hidden} and {\deleted gone}here", "seen and here"),
        (r"\v hidden\v0 seen", "seen"),
        (r"10{\super 2} m, H{\sub 2}O", "10^2 m, H2O"),
        (r"One.\par Two.\line Three.", "One.\n\nTwo. Three."),
        (r"{\info{\title no}}{\header no}{\footer no}{\pict 00ff}{\*\generator no;}yes", "yes"),
        (r"{\field{\*\fldinst HYPERLINK x}{\fldrslt the link}}", "the link"),
        (r"Rent{\footnote\pard {\super\chftn} See the lease.} is due.\par", "Rent is due.\n\nNote: See the lease."),
        (r"{\listtext\'b7\tab}first\par{\pntext 2.\tab}second\par", "- first\n\n2. second"),
        (r"a\bin4 {}}{b", "ab"),
        (r"# of shares\par", "\\# of shares"),
        (r"a\{b\}\\c", "a{b}\\c"),
    ],
)
def test_text_is_read_as_a_reader_sees_it(body, expected):
    assert text_of(body) == expected


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (r"\ansi\ansicpg1251", rb"\'d0\'e5\'ed\'f2\'e0"),
        (r"\ansi{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}}", rb"\f1\'d0\'e5\'ed\'f2\'e0"),
        (r"\ansi\ansicpg1251", "Рента".encode("cp1251")),
        (r"\ansi\ansicpg99999", r"\u1056?\u1077?\u1085?\u1090?\u1072?"),
    ],
)
def test_code_pages(head, body):
    assert text_of(body, head) == "Рента"


def test_double_byte_code_pages_may_contain_letters():
    assert text_of(rb"\'83e\'83X\'83g", r"\ansi\ansicpg932") == "テスト"


def test_headings_have_styles_or_outline_levels():
    styles = r"\ansi{\stylesheet{\s0 Normal;}{\s1 heading 1;}{\s5\outlinelevel1 My style;}{\s6 \'dcberschrift 3;}}"
    body = r"\pard\s1 One\par\pard text\par\pard\s5 Two\par\pard\s6 Three\par\pard\outlinelevel0 Four\par"
    assert text_of(body, styles) == "# One\n\ntext\n\n## Two\n\n### Three\n\n# Four"


def test_tables_keep_blank_cells():
    row = r"\trowd\cellx100\cellx200\pard\intbl "
    body = rf"Before\par{row}Region\cell Sales\cell\row{row}\cell 12\par 13\cell\row\pard After\par"
    assert text_of(body) == "Before\n\n| Region | Sales |\n| --- | --- |\n|  | 12 13 |\n\nAfter"


@pytest.mark.parametrize(
    "content", [b"{\\rtf1 }}}}a", b"{\\rtf1 {{{a", b"{\\rtf1 a\\", b"{\\rtf1 a\\'zz", b"{\\rtf1\\u a"]
)
def test_broken_files_are_read(content):
    assert "a" in convert_rtf(content).text


@given(st.lists(st.sampled_from(CASES["rtf"].pieces)).map(b"".join))
def test_words_in_any_order_are_read(body):
    text_of(body)


@given(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1))
def test_no_character_is_lost(text):
    numbers = memoryview(text.encode("utf-16-le")).cast("H")
    body = "".join(rf"\u{number - 0x10000 if number > 0x7FFF else number}?" for number in numbers)
    assert text_of(f"x{body}") == f"x{text}"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (r"{\rtf1{\stylesheet{\s1 heading 1;}{\s9 Title;}}\pard\s9 Report\par\pard\s1 One\par}", "# Report\n\n## One"),
        (r"{\rtf1{\stylesheet{\s1 heading 1;}{\s9 Title;}}\pard\s1 One\par\pard\s9 Annex\par}", "# One\n\n# Annex"),
        (r"{\rtf1{\fonttbl{\f0 Arial;}{\f3\fcharset2 Symbol;}}x {\f3\'b3} 5}", "x ≥ 5"),
        (r"{\rtf1{\fonttbl{\f4\fcharset2 Wingdings;}}{\f4\'fe} yes}", "☑ yes"),
        (r"{\rtf1{\upr{ANSI}{\*\ud{Füchse}}} hunt}".replace("ü", r"\u252?"), "Füchse hunt"),
        (r"{\rtf1{\info{\upr{\title A}{\*\ud{\title B}}}}text}", "text"),
    ],
)
def test_titles_symbols_and_unicode_forms_are_read(content: str, expected: str) -> None:
    assert convert_rtf(content.encode()).text == expected
