"""Rules of prose that can be counted: openings of docstrings, and terms that readers stumbled over."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("shared/drillrank", "llama_index_ext", "langchain_ext", "examples", "packages")
CODE = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md*")])

# A docstring starts with a verb or with the noun that it describes.
NOUN_CLAUSE = re.compile(r"\W*(?:As|By|How|Of|So|That|Those|What|Where|Whether|Which|Who|Whoever|Why)\b")

# Literal translations, and words without an actor. The framework is never "the host"; a server's host is.
TERMS = {
    "anew": r"\banew\b",
    "at another place": r"\bstands? (?:at|behind|beside|for itself|in|there|where)\b",
    "beside": r"\bbeside\b",
    "bring": r"\bbrings?\b",
    "from ... on": r"\bfrom \d+ on\b",
    "host": r"\b(?:both|either|the|a|this) hosts?\b(?! and port|:port)|\bhosts?'s?\b",
    "is no": r"(?<!there )\b(?:is|are) no (?!longer\b|more\b|less\b|\w+er\b|such\b)\w+",
    "nobody": r"\b(?:nobody|somebody|whoever)\b",
    "of yours": r"\bof (?:yours|theirs|ours)\b",
    "so many": r"\bso many\b",
    "tells": r"\btells? (?:nothing|of|what|whether)\b",
}
ANY_TERM = re.compile("|".join(f"(?:{pattern})" for pattern in TERMS.values()), re.IGNORECASE)


def docstrings(tree):
    nodes = (ast.AsyncFunctionDef, ast.ClassDef, ast.FunctionDef, ast.Module)
    for node in ast.walk(tree):
        if isinstance(node, nodes) and (text := ast.get_docstring(node)):
            yield getattr(node, "lineno", 1), text


def messages(tree):
    """Yield the sentences among the string literals: five words or more on one line."""
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = " ".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            text = node.value
        else:
            continue
        if text.count(" ") > 3 and "\n" not in text.strip():
            yield node.lineno, text


def offences(file):
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".py":
        prose = re.sub(r"```.*?```", lambda block: "\n" * block[0].count("\n"), text, flags=re.DOTALL)
        lines = list(enumerate(prose.splitlines(), 1))
        return [f"{n}: {term[0]!r}" for n, line in lines for term in ANY_TERM.finditer(line)]
    tree = ast.parse(text)
    openings = [f"{n}: opens with {doc[:30]!r}" for n, doc in docstrings(tree) if NOUN_CLAUSE.match(doc)]
    prose = [(n, re.sub(r">>>.*", "", doc)) for n, doc in docstrings(tree)] + list(messages(tree))
    return openings + [f"{n}: {term[0]!r}" for n, line in prose for term in ANY_TERM.finditer(line)]


@pytest.mark.parametrize("file", [*CODE, *PAGES], ids=lambda file: str(file.relative_to(ROOT)))
def test_prose_follows_the_rules_that_can_be_counted(file):
    assert offences(file) == []


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("page.md", "The host's retriever is one of yours.\n", ["1: 'The host'", "1: 'of yours'"]),
        ("page.md", "Fine.\n```\nThe host's loader\n```\nIt is no list.\n", ["5: 'is no list'"]),
        ("code.py", '"""What is ranked."""\n', ["1: opens with 'What is ranked.'"]),
        ("code.py", 'x = f"the model {x} is no model of this kind"\n', ["1: 'is no model'"]),
        ("code.py", '"""Return the host and port, which is no longer than 5."""\n', []),
    ],
)
def test_the_check_finds_offences(tmp_path, name, text, expected):
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    assert offences(file) == expected
