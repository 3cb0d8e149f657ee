"""The tools of `drillrank mcp`: compact answers, places, budgets, near names, and nothing outside the folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from drillrank import D3
from drillrank.cli.folder_tools import FolderTools, _count_by_folder, name_folders, suggest, to_text
from drillrank.errors import InvalidInput
from drillrank.text import count_tokens
from tests import pdf_files

MANUAL = "# Kettle\n\n## Warranty\n\nThe warranty covers the heater.\n\n### Not\n\nLime.\n\n## Care\n\nBoil vinegar.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "manual.md").write_text(MANUAL, encoding="utf-8")
    (folder / "sub" / "long.txt").write_text("The pot is wide.\n" * 2_000, encoding="utf-8")
    pages = [pdf_files.lines(f"The lease of page {number} ends in May.", y=110) for number in (1, 2, 3)]
    (folder / "lease_2021.pdf").write_bytes(pdf_files.pdf_of([[*page] for page in pages]).content())
    (folder / "image.png").write_bytes(b"\x89PNG\0")
    (folder / ".env").write_text("KEY=heater", encoding="utf-8")
    (tmp_path / "secret.md").write_text("The secret heater.", encoding="utf-8")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    return folder


def tools_of(*folders: Path, **options) -> FolderTools:
    return FolderTools(D3(), [*map(str, folders)], **options)


def test_a_passage_has_its_place_and_no_field_twice(folder):
    answer = tools_of(folder).ask("What does the warranty cover?", top_n=1)
    text = to_text(answer)
    assert json.loads(text)["found"] is True
    [evidence] = json.loads(text)["evidence"]
    assert set(evidence) == {"at", "section", "best", "text"}
    assert (evidence["at"], evidence["section"], evidence["best"]) == ("manual.md:1-13", "Kettle", "5")
    assert text.count("The warranty covers the heater.") == 1
    assert "null" not in text


def test_pages_are_places(folder):
    [evidence] = tools_of(folder).ask("When does the lease of page 2 end?", top_n=1)["evidence"]
    assert (evidence["at"], evidence["best"]) == ("lease_2021.pdf#page=1-3", "#page=2")


def test_nothing_that_matches_is_said(folder):
    answer = tools_of(folder).ask("Quantum chromodynamics?")
    assert (answer["found"], answer["evidence"]) == (False, [])
    assert "Ask again in words that the files may use." in answer["finding"]


def test_a_budget_counts_the_whole_answer(folder):
    for number in range(9):
        (folder / f"warranty_of_{number}.md").write_text(f"The warranty {number} covers the part {number}.\n" * 9)
    tools = tools_of(folder)
    sizes = [count_tokens(to_text(tools.ask("What does the warranty cover?", max_tokens=n))) for n in (300, 600, 2_000)]
    assert [size <= limit for size, limit in zip(sizes, (300, 600, 2_000), strict=True)] == [True] * 3
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[1] < sizes[2]


def test_the_passages_after_the_first_ones(folder):
    for number in range(9):
        (folder / f"warranty_of_{number}.md").write_text(f"The warranty {number} covers the part {number}.\n" * 9)
    tools, question = tools_of(folder), "What does the warranty cover?"
    everything = [item["at"] for item in tools.ask(question, top_n=12)["evidence"]]
    first = tools.ask(question, top_n=3)
    second = tools.ask(question, top_n=3, start=first["next"])
    third = tools.ask(question, max_tokens=400, start=second["next"])
    parts = [item["at"] for answer in (first, second, third) for item in answer["evidence"]]
    assert parts == everything[: len(parts)]
    assert len(parts) > 6
    assert third["next"] == len(parts)
    last = tools.ask(question, start=99)
    assert (last["evidence"], last["next"], last["found"]) == ([], None, first["found"])


@pytest.mark.parametrize("max_tokens", [150, 300, 450, 1_000])
def test_parts_of_a_limited_size_have_each_passage_once(folder, max_tokens):
    for number in range(9):
        text = f"The warranty {number} covers the part {number}. "
        (folder / f"warranty_of_{number}.md").write_text(text * (1 + 11 * (number % 3)))
    tools, question = tools_of(folder), "What does the warranty cover?"
    everything = [item["at"] for item in tools.ask(question, top_n=50)["evidence"]]
    parts: list[str] = []
    start = 0
    while start is not None:
        answer = tools.ask(question, max_tokens=max_tokens, start=start)
        assert len(answer["evidence"]) == 1 or count_tokens(to_text(answer)) <= max_tokens
        parts += [item["at"] for item in answer["evidence"]]
        start = answer["next"]
    assert parts == everything
    assert len(parts) > 8


def test_a_passage_that_is_too_long_loses_its_middle(folder):
    (folder / "warranty.md").write_text("The warranty covers the kettle. " + "Pots are wide. " * 60)
    answer = tools_of(folder).ask("What does the warranty cover?", max_tokens=200, include=["warranty.md"])
    [evidence] = answer["evidence"]
    assert count_tokens(to_text(answer)) <= 200
    assert evidence["text"].startswith("The warranty covers the kettle.")
    assert " … " in evidence["text"]
    [whole] = tools_of(folder).ask("What does the warranty cover?", max_tokens=1, include=["warranty.md"])["evidence"]
    assert len(whole["text"]) > 800


def test_filters_select_files(folder):
    tools = tools_of(folder)
    evidence = tools.ask("Is the pot wide?", include=["*.md", "*.pdf"], exclude=["lease*"])["evidence"]
    assert {item["at"].partition(":")[0] for item in evidence} <= {"manual.md"}
    assert tools.outline(include=["sub/"]) == {"files": {"sub/": ["long.txt"]}}
    early = tools.ask("When does the lease of page 2 end?", as_of="2020")["evidence"]
    assert not [item for item in early if "lease_2021" in item["at"]]


def test_problems_are_named_up_to_three(folder):
    for number in range(4):
        (folder / f"image_{number}.png").write_bytes(b"\x89PNG\0" + bytes([number]))
    *named, others = tools_of(folder).ask("What does the warranty cover?")["problems"]
    assert len(named) == 3
    assert named[0].startswith("image.png is an image (PNG)")
    assert others == "3 other problems."  # two images, and a link that leads outside


def test_files_are_listed_by_folder_in_parts(folder):
    assert tools_of(folder).outline() == {
        "files": {"": ["image.png", "lease_2021.pdf", "manual.md"], "sub/": ["long.txt"]}
    }
    for number in range(3_000):
        path = folder / f"part_{number % 3}" / f"note_{number:04}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    tools = tools_of(folder)
    first = tools.outline()
    assert count_tokens(to_text(first)) < 3_000
    assert first["folders"] == {"/": 3, "part_0/": 1_000, "part_1/": 1_000, "part_2/": 1_000, "sub/": 1}
    names, answer = [], {"next": 0}
    while answer.get("next") is not None:
        answer = tools.outline(start=answer["next"])
        names += [folder + name for folder, group in answer["files"].items() for name in group]
    assert len(names) == len(set(names)) == first["n_files"] == 3_004


def test_sections_have_levels_and_places(folder):
    tools = tools_of(folder)
    sections = tools.outline("manual.md")["sections"]
    assert sections == ["# Kettle :1", "## Warranty :3-5", "### Not :7-9", "## Care :11-13"]
    assert tools.outline("manual.md", max_tokens=1) == {"sections": ["# Kettle :1"], "next": 1}
    assert tools.outline("manual.md", start=2)["sections"] == sections[2:]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("manual.md", MANUAL),
        ("./sub/../manual.md", MANUAL),
        ("manual.md:5", "The warranty covers the heater.\n"),
        ("manual.md:5-7", "The warranty covers the heater.\n\n### Not\n"),
        ("manual.md:11-99", "## Care\n\nBoil vinegar.\n"),
    ],
)
def test_a_place_is_read(folder, file, text):
    assert tools_of(folder).read(file)["text"] == text


def test_a_section_is_read_with_those_in_it(folder):
    answer = tools_of(folder).read("manual.md", "Kettle > Warranty")
    assert answer["text"] == MANUAL[MANUAL.index("## W") : MANUAL.index("## C")]
    assert answer["at"] == "manual.md:3-9"


def test_pages_are_read(folder):
    tools = tools_of(folder)
    text = tools.read("lease_2021.pdf#page=2")["text"]
    assert "page 2" in text
    assert "page 1" not in text
    assert "page 3" not in text
    assert "page 3" in tools.read("lease_2021.pdf#page=2-3")["text"]


def test_a_long_file_is_read_in_parts_that_end_with_lines(folder):
    tools, text, start = tools_of(folder), "", 0
    while start is not None:
        part = tools.read(str(folder / "sub" / "long.txt"), start=start, max_tokens=500)
        assert count_tokens(part["text"]) <= 500
        assert part["text"].endswith("wide.\n")
        text, start = text + part["text"], part["next"]
    assert text == (folder / "sub" / "long.txt").read_text(encoding="utf-8")


def test_a_file_whose_name_looks_like_a_place_is_a_file(folder):
    (folder / "notes:5").write_text("one\ntwo\n")
    assert tools_of(folder).read("notes:5")["text"] == "one\ntwo\n"
    assert tools_of(folder).read("notes:5:2")["text"] == "two\n"


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("handbook.docx", "office/handbook.docx"),
        ("OFFICE/Handbook.docx", "office/handbook.docx"),
        ("office/handbok.docx", "office/handbook.docx"),
        ("travel.md", "a/travel.md"),
    ],
)
def test_near_names_are_suggested(name, suggested):
    assert repr(suggested) in suggest(name, ["office/handbook.docx", "a/travel.md", "b/travel.md"])


def test_nothing_is_suggested_for_a_name_like_no_other():
    assert suggest("zebra", ["office/handbook.docx"]) == ""


def test_many_folders_are_counted_in_linear_time():
    names = [f"all/{number}/notes.md" for number in range(100_000)]
    assert _count_by_folder(names) == {}
    assert _count_by_folder([*names[:2], "notes.md"]) == {"all/": 2, "/": 1}


def test_several_folders_have_names(folder, tmp_path):
    other = tmp_path / "other" / "docs"
    other.mkdir(parents=True)
    (other / "lid.md").write_text("The warranty covers the lid.")
    tools = tools_of(folder, other)
    assert [*name_folders([str(folder), str(other), str(folder)])] == ["docs/", "docs-2/"]
    assert tools.outline()["files"]["docs-2/"] == ["lid.md"]
    assert tools.ask("Does the warranty cover the lid?", top_n=1)["evidence"][0]["at"] == "docs-2/lid.md:1"
    assert tools.read("docs-2/lid.md")["text"] == "The warranty covers the lid."
    assert tools.read(str(other / "lid.md"))["at"] == "docs-2/lid.md:1"
    with pytest.raises(InvalidInput, match="not a file of these folders"):
        tools.read("docs-2/../../secret.md")


def test_new_and_changed_files_are_read(folder):
    tools = tools_of(folder)
    tools.ask("Does the warranty cover the lid?")
    (folder / "new.md").write_text("The warranty covers the lid.", encoding="utf-8")
    assert tools.ask("Does the warranty cover the lid?", top_n=1)["evidence"][0]["at"] == "new.md:1"
    (folder / "new.md").write_text("The warranty covers\nthe red lid.", encoding="utf-8")
    assert tools.read("new.md:2")["text"] == "the red lid."


OUTSIDE = ("../secret.md", "link.md", ".env", "sub", "/etc/passwd", "sub/../../secret.md", "\0", "-", "link.md:1")
REFUSED = [
    *((tool, {"file": file}, "is not a file of this folder") for tool in ("read", "outline") for file in OUTSIDE),
    ("read", {"file": "maual.md"}, "Did you mean 'manual.md'?"),
    ("read", {"file": "long.txt"}, "Did you mean 'sub/long.txt'?"),
    ("read", {"file": "manual.md", "section": "warranty"}, "Did you mean 'Kettle > Warranty'?"),
    ("read", {"file": "manual.md", "section": "Kettle > None"}, "has no section"),
    ("read", {"file": "manual.md#page=2"}, "has no page 2"),
    ("read", {"file": "manual.md:40"}, "has 14 lines, got 40-40"),
    ("read", {"file": "manual.md:5-4"}, "got 5-4"),
    ("read", {"file": "lease_2021.pdf:1"}, "has 0 lines"),
    ("read", {"file": "lease_2021.pdf#page=9"}, "has no page 9"),
    ("read", {"file": "image.png"}, "image.png is an image (PNG)"),
    ("read", {"file": "manual.md", "max_tokens": 0}, "max_tokens"),
    ("outline", {"max_tokens": 0}, "max_tokens"),
    ("outline", {"start": -1}, "start must be 0"),
    ("read", {"file": "manual.md", "start": -1}, "start must be 0"),
    ("ask", {"question": "Who?", "start": -1}, "start must be 0"),
    ("ask", {"question": " "}, "query"),
    ("ask", {"question": "Who?", "top_n": 0}, "top_n"),
    ("ask", {"question": "Who?", "max_tokens": 0}, "max_tokens"),
    ("ask", {"question": "Who?", "include": ["#"]}, "--include must be a pattern"),
    ("ask", {"question": "Who?", "as_of": "soon"}, "A date is a year"),
]


@pytest.mark.parametrize(("tool", "arguments", "message"), REFUSED)
def test_what_is_refused(folder, tool, arguments, message):
    with pytest.raises(InvalidInput) as refusal:
        getattr(tools_of(folder), tool)(**arguments)
    assert message in str(refusal.value)
    assert "secret heater" not in str(refusal.value)


def test_a_file_that_becomes_a_link_outside_is_not_read(folder, tmp_path):
    tools = tools_of(folder)
    assert tools.read("manual.md")["text"] == MANUAL
    (folder / "manual.md").unlink()
    (folder / "manual.md").symlink_to(tmp_path / "secret.md")
    with pytest.raises(InvalidInput, match="not a file of this folder"):
        tools.read("manual.md")
    assert "secret" not in str(tools.ask("Which is the secret heater?")["evidence"])


def test_links_are_followed_on_request(folder):
    tools = tools_of(folder, follow_links=True)
    assert tools.ask("Which is the secret heater?")["evidence"][0]["at"].startswith("link.md")
    assert tools.read("link.md")["text"] == "The secret heater."
