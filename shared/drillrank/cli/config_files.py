"""Entries in configuration files of other programs. Everything else in a file stays as it is, comments included."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from drillrank.errors import InvalidInput, require

# A comment without an end goes to the end of the text, so that the time is linear.
_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_TRAILING_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)
_INDENT = "  "
_decoder = json.JSONDecoder()

Entry = Mapping[str, Any]


class ConfigFormat(NamedTuple):
    """Functions that read and edit the text of a configuration file.

    Attributes:
        load: Returns the values of a text.
        set_entry: Returns a text with an entry `name` in its table `key`.
        remove_entry: Returns a text without the entry `name` of its table `key`.
    """

    load: Callable[[str], dict[str, Any]]
    set_entry: Callable[[str, str, str, Entry], str]
    remove_entry: Callable[[str, str, str], str]


def config_format(file_name: str) -> ConfigFormat:
    """Return the format of a file: TOML, or JSON with comments."""
    if file_name.endswith(".toml"):
        return ConfigFormat(_load_toml, _set_toml_entry, _remove_toml_entry)
    return ConfigFormat(_load_json, _set_json_entry, _remove_json_entry)


def get_entry(text: str, file_name: str, key: str, name: str) -> Entry | None:
    """Return the entry `name` of the table `key`; None if there is none.

    Raises:
        InvalidInput: The text cannot be read, or the table is not one.
    """
    table = config_format(file_name).load(text).get(key, {})
    if not isinstance(table, dict):
        raise InvalidInput(f"{key} must be a table, got {type(table).__name__}. Correct the file.")
    entry = table.get(name)
    return entry if isinstance(entry, dict) else None


def set_entry(text: str, file_name: str, key: str, name: str, entry: Entry) -> str:
    """Return the text of a configuration file with an entry.

    Args:
        text: Text of the file; empty for a new file.
        file_name: Name of the file, whose ending decides the format.
        key: Name of the table.
        name: Name of the entry.
        entry: The entry.

    Raises:
        InvalidInput: The text cannot be read or edited.

    >>> print(set_entry('{"theme": "dark"} // mine', "a.json", "servers", "b", {"command": "c"}))
    {"theme": "dark", "servers": {
      "b": {
        "command": "c"
      }
    }} // mine
    """
    get_entry(text, file_name, key, name)
    file_format = config_format(file_name)
    expected = file_format.load(text)
    expected[key] = {**expected.get(key, {}), name: entry}
    return _check_edit(file_format.set_entry(text, key, name, entry), file_format, expected)


def remove_entry(text: str, file_name: str, key: str, name: str) -> str:
    """Return the text of a configuration file without an entry, which must exist.

    Raises:
        InvalidInput: The text cannot be read or edited.
    """
    file_format = config_format(file_name)
    edited = file_format.remove_entry(text, key, name)
    expected = file_format.load(text)
    del expected[key][name]
    if key not in file_format.load(edited):
        del expected[key]
    return _check_edit(edited, file_format, expected)


def _check_edit(text: str, file_format: ConfigFormat, expected: Mapping[str, Any]) -> str:
    """Return an edited text whose values are those that it must have."""
    if file_format.load(text) != expected:
        raise InvalidInput("the file cannot be edited without changing something else. Edit it by hand.")
    return text


# --- JSON with comments


def _load_json(text: str) -> dict[str, Any]:
    if not text.strip("\ufeff \t\r\n"):
        return {}
    try:
        values = json.loads(_without_comments(text))
    except (ValueError, RecursionError) as cause:
        raise InvalidInput(f"it is not valid JSON: {cause!s:.200}. Correct the file.") from cause
    if not isinstance(values, dict):
        raise InvalidInput(f"it must contain a JSON object, got {type(values).__name__}. Correct the file.")
    return values


def _without_comments(text: str) -> str:
    """Return JSON with spaces for comments, trailing commas and a byte order mark, so that offsets stay the same."""
    return _TRAILING_COMMA.sub(_blank, _blank_comments(text))


def _blank_comments(text: str) -> str:
    return _COMMENT.sub(_blank, f" {text[1:]}" if text.startswith("\ufeff") else text)


def _blank(match: re.Match[str]) -> str:
    """Return a string of JSON, or spaces for something else."""
    return match[0] if match[0].startswith('"') else " " * len(match[0])


class _Member(NamedTuple):
    start: int
    value_start: int
    end: int


def _list_members(blanked: str, start: int) -> tuple[dict[str, _Member], int]:
    """Return the members of the object that starts at an offset, by name, and the offset of its closing brace."""
    members: dict[str, _Member] = {}
    index = _skip_spaces(blanked, start + 1)
    while blanked[index] != "}":
        index = _skip_spaces(blanked, index + 1) if blanked[index] == "," else index
        name, after = _decoder.raw_decode(blanked, index)
        value_start = _skip_spaces(blanked, _skip_spaces(blanked, after) + 1)
        end = _decoder.raw_decode(blanked, value_start)[1]
        members[name] = _Member(index, value_start, end)
        index = _skip_spaces(blanked, end)
    return members, index


def _skip_spaces(text: str, index: int) -> int:
    while text[index] in " \t\r\n":
        index += 1
    return index


def _set_json_entry(text: str, key: str, name: str, entry: Entry) -> str:
    if not text.strip("\ufeff \t\r\n"):
        return json.dumps({key: {name: entry}}, indent=_INDENT, ensure_ascii=False) + "\n"
    blanked = _without_comments(text)
    root = blanked.index("{")
    tables = _list_members(blanked, root)[0]
    if key not in tables:
        return _insert_member(text, blanked, root, key, {name: entry})
    entries = _list_members(blanked, tables[key].value_start)[0]
    if name not in entries:
        return _insert_member(text, blanked, tables[key].value_start, name, entry)
    member = entries[name]
    value = _render(entry, _line_indent(text, member.start), text)
    return text[: member.value_start] + value + text[member.end :]


def _insert_member(text: str, blanked: str, start: int, name: str, value: Entry) -> str:
    """Return a text with a new last member in the object that starts at an offset."""
    members, close = _list_members(blanked, start)
    newline, indent = _newline(text), _line_indent(text, start) + _INDENT
    if not members:
        member = f"{json.dumps(name)}: {_render(value, indent, text)}"
        return f"{text[:close].rstrip()}{newline}{indent}{member}{newline}{_line_indent(text, start)}{text[close:]}"
    first, last = next(iter(members.values())), max(member.end for member in members.values())
    if not text[text.rfind("\n", 0, first.start) + 1 : first.start].strip():  # members have lines of their own
        indent = _line_indent(text, first.start)
    with_commas = _blank_comments(text)
    comma = with_commas.find(",", last, close)
    comma_text, end = ("", comma + 1) if comma >= 0 else (",", last)
    line_end = next((index for index in range(end, close) if with_commas[index] in "\r\n"), -1)
    if line_end < 0:  # the object ends on this line
        member = f"{json.dumps(name)}: {_render(value, _line_indent(text, start), text)}"
        return f"{text[:end]}{comma_text} {member}{text[end:]}"
    member = f"{json.dumps(name)}: {_render(value, indent, text)}"
    return f"{text[:end]}{comma_text}{text[end:line_end]}{newline}{indent}{member}{text[line_end:]}"


def _remove_json_entry(text: str, key: str, name: str) -> str:
    blanked = _without_comments(text)
    table = _list_members(blanked, blanked.index("{"))[0][key]
    members = _list_members(blanked, table.value_start)[0]
    start, _, end = members[name]
    with_commas = _blank_comments(text)
    ends_before = [member.end for member in members.values() if member.end < start]
    comma = _skip_spaces(with_commas, end)
    if with_commas[comma] == ",":
        text = f"{text[:start]}{text[end:comma]}{text[comma + 1 :]}"
    elif ends_before:  # the comma before the last member goes with it
        comma = with_commas.index(",", max(ends_before))
        text = f"{text[:comma]}{text[comma + 1 : start]}{text[end:]}"
        start -= 1
    else:
        text = text[:start] + text[end:]
    return _remove_blank_line(text, start)


def _remove_blank_line(text: str, index: int) -> str:
    """Return a text without the line of an offset, if it is blank."""
    start, end = text.rfind("\n", 0, index) + 1, text.find("\n", index) + 1
    return text[:start] + text[end:] if end and not text[start:end].strip() else text


def _render(value: Entry, indent: str, text: str) -> str:
    """Return a value as JSON in several lines, of which all but the first one are indented."""
    lines = json.dumps(value, indent=_INDENT, ensure_ascii=False).split("\n")
    return f"{_newline(text)}{indent}".join(lines)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _line_indent(text: str, index: int) -> str:
    """Return the spaces with which the line of an offset begins."""
    line = text[text.rfind("\n", 0, index) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


# --- TOML


def _load_toml(text: str) -> dict[str, Any]:
    return dict(_parse_toml(text).unwrap())


def _parse_toml(text: str) -> Any:
    tomlkit = require("tomlkit", "mcp")
    try:
        return tomlkit.parse(text)
    except (ValueError, RecursionError) as cause:
        raise InvalidInput(f"it is not valid TOML: {cause!s:.200}. Correct the file.") from cause


def _set_toml_entry(text: str, key: str, name: str, entry: Entry) -> str:
    tomlkit = require("tomlkit", "mcp")
    document = _parse_toml(text)
    table = tomlkit.table()
    table.update(entry)
    if key not in document:
        document[key] = tomlkit.table(is_super_table=True)
    document[key][name] = table
    return str(tomlkit.dumps(document))


def _remove_toml_entry(text: str, key: str, name: str) -> str:
    document = _parse_toml(text)
    del document[key][name]
    if not document[key]:
        del document[key]
    return str(require("tomlkit", "mcp").dumps(document))
