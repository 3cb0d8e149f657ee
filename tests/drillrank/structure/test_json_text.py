"""JSON: values with their keys, sections and exact spans."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import parse_document, read_document
from drillrank.errors import DrillrankWarning


def lines_of(text: str, format: str = "json") -> list[str]:
    document = parse_document(text, format)
    return [line for _, block in document.paragraphs() for line in document.readable(block).splitlines()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"dependencies": {"left-pad": "1.3.0"}}', ["dependencies > left-pad: 1.3.0"]),
        ('{"keywords": ["a", "b"], "n": null}', ["keywords: a, b", "n: null"]),
        ('{"users": [{"name": "Ann", "age": 3}]}', ["users[0] > name: Ann", "users[0] > age: 3"]),
        ('{"empty": {}, "none": []}', ["empty: {}", "none: []"]),
        ('[[1, 2], [3, [4]]]', ["[0]: 1, 2", "[1]: 3", "[1][1]: 4"]),
        ('"caf\\u00e9 \\ud83d\\ude00"', ["café \U0001f600"]),
        ('{"a": 1, /* why */ "b": [2,], // end\n}', ["a: 1", "/* why */", "b: 2", "// end"]),
        ("12.5e3", ["12.5e3"]),
        ('\ufeff{"a": true}', ["a: true"]),
        ('{"wrong": "\\x"}', ["wrong: \\x"]),
    ],
)  # fmt: skip
def test_values_show_their_keys(text, expected):
    assert lines_of(text) == expected


@pytest.mark.parametrize("indent", [None, 2])
def test_large_objects_are_sections(indent):
    value = {"name": "tool", "scripts": {f"run{n}": "words " * 20 for n in range(20)}, "license": "MIT"}
    text = json.dumps(value, indent=indent)
    document = parse_document(text, "json")
    assert [section.path for section in document.sections()] == [(), ("scripts",), ("license",)]
    _, scripts, license_section = document.sections()
    assert "scripts > run7: words" in document.readable(scripts)
    assert "MIT" not in document.readable(scripts)
    assert document.slice(license_section).startswith('"license"')


def test_items_of_a_list_stay_together():
    text = json.dumps([{"id": f"item{n}", "text": "words " * 100, "end": n} for n in range(20)])
    document = parse_document(text, "json")
    for block in document.blocks(document.sections()[0]):
        assert document.readable(block).count("> id:") == document.readable(block).count("> end:")


def test_a_list_under_a_key_is_a_section_of_its_own():
    text = json.dumps({"numbers": [f"number{n}" for n in range(500)], "other": {"a": "b" * 600, "c": "d" * 700}})
    document = parse_document(text, "json")
    assert [section.path for section in document.sections()] == [("numbers",), ("other",)]
    assert all(f"number{n}" in document.readable(document.sections()[0]) for n in range(500))


@pytest.mark.parametrize(
    "text", ['{"a" 1}', '{"a": 1', "[1 2]", '{"a"}', "]", "{1: 2}", "tru", '{"a": 1}}', '"a', "[" * 10_000]
)
def test_what_is_not_json_is_read_as_text(text):
    with pytest.warns(DrillrankWarning, match="not valid JSON"):
        document = parse_document(text, "json")
    assert "".join(document.readable(section) for section in document.sections()).strip() == text


def test_json_lines_keep_broken_lines():
    with pytest.warns(DrillrankWarning, match="1 line"):
        assert lines_of('{"a": 1}\r\nbroken {\r\n\r\n"x"\n', "jsonl") == ["[0] > a: 1", "[1]: broken {", "[2]: x"]


@pytest.mark.parametrize("size", [150, 100_000])
def test_long_keys_are_shown_once(size):
    key = "k" * size
    lines = lines_of(json.dumps({key: {f"a{n}": n for n in range(50)}}))
    assert sum(line.count("k") for line in lines) < size + 51 * 101
    assert any(key in line for line in lines)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["C", "Z"]), max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", min_size=1, max_size=3), inner, max_size=4)
    ),
)


def scalars(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for key, inner in value.items() for text in (key, *scalars(inner))]
    if isinstance(value, list):
        return [text for inner in value for text in scalars(inner)]
    return [value if isinstance(value, str) else json.dumps(value)]


@given(VALUES, st.sampled_from([None, 1]))
def test_no_value_and_no_key_is_lost(value, indent):
    text = json.dumps(value, indent=indent)
    document = parse_document(text, "json")
    shown = "\n".join(lines_of(text))
    assert all(scalar in shown for scalar in scalars(value))
    assert "".join(document.slice(section) for section in document.sections()) == text


def test_the_warning_about_broken_json_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "broken.json"
    file.write_text('{"a": [1, }} x')
    with pytest.warns(DrillrankWarning, match=r"broken\.json: .*not valid JSON"):
        assert read_document(file).text == '{"a": [1, }} x'
