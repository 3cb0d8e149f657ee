"""YAML: values with their keys, sections and exact spans; nothing is constructed or expanded."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import parse_document
from drillrank.structure.yaml_text import find_key_end


def lines_of(text: str) -> list[str]:
    document = parse_document(text, "yaml")
    return [line for _, block in document.paragraphs() for line in document.readable(block).splitlines()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("services:\n  web:\n    image: nginx\n", ["services > web > image: nginx"]),
        ("tags:\n- a\n- b\nnext: c\n", ["tags[0]: a", "tags[1]: b", "next: c"]),
        ("s:\n  - name: x\n    run: y\n  -\n    z: 1\n", ["s[0] > name: x", "s[0] > run: y", "s[1] > z: 1"]),
        ("- - a\n  - b\n- c\n", ["[0][0]: a", "[0][1]: b", "[1]: c"]),
        ("run: |\n  one\n\n  two: 2\nlast: 3\n", ["run: one", "", "two: 2", "last: 3"]),
        ("text: >-\n  long\n  line\n", ["text: long", "line"]),
        ("list: [1, 2,\n  3]\nend: x", ["list: [1, 2,", "3]", "end: x"]),
        ("map: {a: 1,\n b: 2\n}\nend: x", ["map: {a: 1,", "b: 2", "}", "end: x"]),
        ('"a: b": \'c\'\nurl: http://x\n', ["a: b: c", "url: http://x"]),
        ("text: 'it''s'\nmore: \"a \\\"b\\\"\n  c\"\n", ["text: 'it''s'", 'more: "a \\"b\\"', 'c"']),
        ("empty:\nnull: ~\n", ["empty", "null: ~"]),
        ("# why\na: 1 # here\n# end\n", ["# why", "a: 1 # here", "# end"]),
        ("%YAML 1.2\n---\na: 1\n--- \nb: 2\n...\n", ["%YAML 1.2", "a: 1", "b: 2"]),
        ("title: [draft\nauthor: Ann\n", ["title: [draft", "author: Ann"]),
        ("{{ if x }}\na: {{ y }}\n", ["{{ if x }}", "a: {{ y }}"]),
        ("a: 1\r\nb:\r\n  c: 2\r\n", ["a: 1", "b > c: 2"]),
        ("plain words\nmore words", ["plain words", "more words"]),
        ("\ufeffa: 1", ["a: 1"]),
    ],
)  # fmt: skip
def test_values_show_their_keys(text, expected):
    assert lines_of(text) == expected


def test_aliases_are_not_expanded():
    bomb = "a: &a [x, x]\n" + "".join(f"b{n}: &b{n} [*{'a' if not n else f'b{n - 1}'}, *a]\n" for n in range(30))
    assert sum(map(len, lines_of(bomb))) <= len(bomb)
    assert "base: &x" in lines_of("base: &x\n  k: 1\nother: *x\n")


def test_tags_construct_nothing():
    assert lines_of("a: !!python/object/apply:os.system ['true']\n") == ["a: !!python/object/apply:os.system ['true']"]


def test_large_objects_are_sections():
    services = "".join(f"  service{n}:\n    image: words{n} and more words than that\n" for n in range(40))
    text = f"version: 3\n# All of them.\nservices:\n{services}volumes:\n  data: x\n"
    document = parse_document(text, "yaml")
    assert [section.path for section in document.sections()][:2] == [(), ("services",)]
    assert document.sections()[-1].path == ("volumes",)
    assert "volumes > data: x" in document.readable(document.sections()[-1])
    assert "services > service7 > image: words7" in "\n".join(lines_of(text))
    assert "# All of them." in lines_of(text)


def test_a_list_under_a_key_in_the_same_column_is_one_section_with_its_comments():
    items = "".join(f"# Step {n} does this and that.\n- name: step {n}\n  run: many words\n" for n in range(40))
    document = parse_document(f"a: 1\nsteps:\n{items}end: 2\n", "yaml")
    assert [section.path for section in document.sections()] == [(), ("steps",), ("end",)]
    assert "# Step 39 does" in document.readable(document.sections()[1])


def test_deep_indents_take_little_time():
    start = time.process_time()
    parse_document("".join(" " * depth + "a:\n" for depth in range(1_500)), "yaml")
    assert time.process_time() - start < 5


@given(st.text(st.sampled_from("ab:- \n#'\"|>[]{}&*!?%\t\r")))
def test_any_text_is_tiled_and_no_letter_is_lost(text):
    document = parse_document(text, "yaml")
    assert "".join(document.slice(section) for section in document.sections()) == text
    shown = "\n".join(document.readable(section) for section in document.sections())
    assert all(shown.count(letter) >= text.count(letter) for letter in "ab")


def test_a_key_ends_with_a_colon_and_a_space():
    assert find_key_end("a: b: c") == 1
    assert find_key_end("a:b") == -1
    assert find_key_end("'it''s': x") == 7
    assert find_key_end("a #b: c") == -1
