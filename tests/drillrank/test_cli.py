from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drillrank import cli
from drillrank.cli import terminal
from drillrank.errors import MissingExtra
from drillrank.likelihood import UnigramModel

MANUAL = """# Kettle

Read this first.

## Warranty

The warranty covers the heater for two years.

It leaves out damage by lime scale.

## Cleaning

Boil vinegar and water once a month.
"""


@pytest.fixture
def manual(tmp_path: Path) -> Path:
    file = tmp_path / "manual.md"
    file.write_text(MANUAL, encoding="utf-8")
    return file


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setattr(terminal, "console", terminal.Terminal(width=200, highlight=False, color_system=None))


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory):
    """No test touches the user's cache."""
    with pytest.MonkeyPatch.context() as patched:
        folder = tmp_path_factory.mktemp("cache")
        for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
            patched.setenv(name, str(folder))
        yield folder


def test_ask_explains_on_request(manual, tmp_path, capsys):
    other = tmp_path / "other[red].md"
    other.write_text("# Other\n\nThe kettle [red]is\x1b[31m red.\n\nThe heater again.\n", encoding="utf-8")
    asked = [str(manual), str(other), "What does the warranty of the heater cover?"]
    assert cli.main(["ask", *asked]) == 0
    plain = capsys.readouterr().out
    assert cli.main(["ask", "--explain", *asked]) == 0
    told = capsys.readouterr().out
    assert told.startswith(plain)
    why = told.removeprefix(plain)
    assert f"1. {manual}: Kettle > Warranty: The warranty covers" in why
    assert "Gain of each token" in why
    assert "▾ Warranty" in why
    assert f"▾ {other}" in why
    assert "\x1b" not in told
    assert cli.main(["ask", "--json", *asked]) == 0
    without = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert cli.main(["ask", "--json", "--explain", *asked]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [{k: v for k, v in record.items() if k not in ("explanation", "tree")} for record in records] == without
    assert ["tree" in record for record in records] == [True] + [False] * (len(records) - 1)
    for record in records:
        entry = record["explanation"]
        assert sum(term["value"] for term in entry["terms"]) / entry["per"] == pytest.approx(record["score"])
    assert {node["name"] for node in records[0]["tree"] if node["kind"] == "document"} == {str(manual), str(other)}
    assert cli.main(["ask", "--explain", str(manual), "xylophone"]) == 1
    assert "What was opened, read and left" in capsys.readouterr().out
    assert cli.main(["ask", "--explain", "--json", str(manual), "xylophone"]) == 1
    assert capsys.readouterr().out == ""


def test_ask_prints_evidence_and_outline_the_sections(manual, capsys):
    assert cli.main(["outline", str(manual)]) == 0
    tree = capsys.readouterr().out
    assert tree.index("Kettle") < tree.index("Warranty") < tree.index("Cleaning")
    assert cli.main(["ask", str(manual), "What does the warranty leave out?", "--top-n", "2"]) == 0
    evidence = capsys.readouterr().out
    assert "Kettle > Warranty" in evidence
    assert "It leaves out damage by lime scale." in evidence
    start = MANUAL.index("It leaves out")
    assert f"{start}–{start + len('It leaves out damage by lime scale.')}" in evidence
    assert "vinegar" not in evidence


def test_ask_takes_several_files_of_any_text(manual, tmp_path, capsys):
    note = tmp_path / "note.txt"
    note.write_text("[bold]Lime scale[/bold] comes off with vinegar.", encoding="utf-8")
    (tmp_path / "empty.md").touch()
    assert cli.main(["ask", str(manual), str(note), str(tmp_path / "empty.md"), "What helps against lime scale?"]) == 0
    assert "[bold]Lime scale[/bold] comes off" in capsys.readouterr().out  # markup in documents is data


def test_bytes_that_are_no_utf8_are_shown_and_reported(tmp_path, capsys):
    file = tmp_path / "latin.txt"
    file.write_bytes("Straße und Café".encode("latin-1"))
    assert cli.main(["ask", str(file), "und"]) == 0
    printed = capsys.readouterr()
    assert "not UTF-8" in printed.err
    assert "Stra�e und Caf�" in printed.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ask", "{missing}", "question"], "cannot be read"),
        (["ask", "{empty}", "question"], "no file to read"),
        (["ask", "{manual}"], "no question after"),
        (["ask", "{folder}/*.pdf", "question"], "matches no file"),
        (["ask", "{manual}", "--questions", "{blank}"], "no question"),
        (["ask", "-", "--questions", "-"], "only once"),
        (["outline", "{folder}"], "not one file"),
        (["outline", "{binary}"], "is no text"),
        (["ask", "{manual}", "  "], "query"),
        (["ask", "{manual}", "question", "--model", "bert"], "names no kind of language model"),
        (["ask", "{manual}", "question", "--top-n", "0"], "top_n"),
        (["ask", "{manual}", "{binary}", "question"], "is no text"),
        (["demo", " "], "query"),
    ],
)
def test_bad_input_is_one_clear_line_and_status_2(arguments, message, manual, capsys):
    places = {"manual": manual, "folder": manual.parent, "missing": manual.parent / "missing.md"}
    places |= {"binary": manual.with_name("image.md"), "empty": manual.with_name("empty")}
    places["empty"].mkdir()
    places["blank"] = manual.with_name("blank")
    places["blank"].write_text("\n \n", encoding="utf-8")
    places["binary"].write_bytes(b"\x89PNG\r\n\x1a\n\xff\xfe")
    assert cli.main([argument.format(**places) for argument in arguments]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert len(printed.err.splitlines()) == 1
    assert not printed.out


def test_demo_shows_both_frameworks_and_they_agree(capsys):
    assert cli.main(["demo"]) == 0
    printed = capsys.readouterr().out
    assert "One section in three views" in printed
    llama_index, langchain = printed.split("LlamaIndex: three views")[1].split("LangChain: three views")
    assert "The logarithm trap" in llama_index
    rows = [[line for line in part.splitlines() if "handbook >" in line] for part in (llama_index, langchain)]
    assert len(rows[0]) == 3
    assert rows[0] == rows[1]


def test_demo_without_the_frameworks_says_how_to_install_them(monkeypatch, capsys):
    for name in ("llama_index_ext", "langchain_ext"):
        monkeypatch.setitem(sys.modules, name, None)
    assert cli.main(["demo"]) == 0
    printed = capsys.readouterr().out
    assert 'pip install "drillrank[llama-index]"' in printed
    assert 'pip install "drillrank[langchain]"' in printed


def run(*arguments, stdout=subprocess.PIPE, **environment) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "drillrank", *map(str, arguments)]
    return subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, check=False, env={**os.environ, "COLUMNS": "120", **environment}
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--version"], r"drillrank \d+\.\d+\S*"),
        (["ask", "--help"], ".*Markdown, HTML, LaTeX or plain text.*"),
        (["--help"], ".*Exit status: 0.*"),
    ],
)
def test_it_tells_its_version_its_formats_and_its_exit_status(capsys, arguments, told):
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == 0
    assert re.fullmatch(told, " ".join(capsys.readouterr().out.split()))


def test_errors_of_the_module_are_told_on_standard_error_before_anything_is_shown(manual):
    result = run("ask", manual, "missing.md", "Why?")
    assert result.returncode == 2
    assert result.stderr.startswith(b"drillrank: missing.md cannot be read")
    assert not result.stdout


def test_a_model_that_cannot_be_loaded_is_told_before_anything_is_shown(manual, monkeypatch, capsys):
    class Missing(UnigramModel):
        def log_likelihood(self, *arguments, **options):
            raise MissingExtra("torch is not available")

    monkeypatch.setattr("drillrank.drilldown.d3.load_evidence_model", lambda spec: Missing())
    assert cli.main(["ask", str(manual), "Why?", "--model", "hf:any"]) == 2
    printed = capsys.readouterr()
    assert printed.err == "drillrank: torch is not available\n"
    assert not printed.out


# What a terminal would obey: C0 and C1 codes but for the line break, and signs that turn the direction of writing.
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
pieces = st.sampled_from(
    [
        b"\x1b[31m",
        b"\x1b]0;title\x07",
        b"\x1b]8;;http://a\x1b\\",
        b"\x07",
        b"\x7f",
        b"\x08",
        b"\r",
        b"\t",
        b"\n\n",
        b"# ",
    ]
    + [sign.encode() for sign in "\x9b\x85\u202e\u2066\u200f"]
    + [b"words ", b"[red]", b"<p>", b"\\section{A}", b"| a | b |\n|---|---|\n"]
)


@settings(max_examples=int(os.environ.get("DRILLRANK_FUZZ", "25")), suppress_health_check=list(HealthCheck))
@given(st.lists(pieces | st.binary(max_size=8), max_size=12).map(b"".join), st.text(max_size=8))
def test_nothing_in_a_document_or_a_question_reaches_the_terminal_as_a_command(capsys, tmp_path, content, question):
    file = tmp_path / "any\x1b[2J.md"
    file.write_bytes(content)
    status = cli.main(["ask", str(file), f"words {question}"])
    printed = capsys.readouterr()
    assert status < 2 or "is no text" in printed.err or "pdf" in printed.err.lower()  # a file that claims to be one
    assert cli.main(["outline", str(file)]) in (status, 0, 1)
    outline = capsys.readouterr()
    assert not OBEYED.findall(outline.out + outline.err)
    assert not OBEYED.findall(printed.out + printed.err)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_a_text_that_names_its_encoding_is_read(tmp_path, capsys, encoding):
    file = tmp_path / "note.md"
    file.write_bytes(MANUAL.replace("\n", "\r\n").encode(encoding))
    assert cli.main(["ask", str(file), "What does the warranty leave out?", "--top-n", "1"]) == 0
    printed = capsys.readouterr()
    assert "It leaves out damage by lime scale." in printed.out
    assert not printed.err


def test_a_file_is_read_in_the_format_that_its_name_says(tmp_path, capsys):
    file = tmp_path / "page.html"
    file.write_text("Words first.<h2>Care</h2><p>It is <b>soft</b>.</p>", encoding="utf-8")
    assert cli.main(["outline", str(file)]) == 0
    assert re.search(r"── Care \d+–\d+", capsys.readouterr().out)


@pytest.mark.parametrize(("question", "told"), [("Quantum chromodynamics", True), ("What does it cover?", False)])
def test_a_question_that_shares_no_word_with_the_text_is_told_so(manual, capsys, question, told):
    assert cli.main(["ask", str(manual), question]) == int(told)
    assert ("Nothing matched" in capsys.readouterr().out) is told


def test_the_installed_command_shows_a_terminal_without_unicode_what_it_can(tmp_path):
    file = tmp_path / "note.md"
    file.write_text("# Zürich\n\n東京 is far from Zürich.\n", encoding="utf-8")
    command = [Path(sys.executable).with_name("drillrank"), "ask", file, "Zürich?"]
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    result = subprocess.run(command, capture_output=True, check=False, env={**os.environ, **ascii_only})
    assert result.returncode == 0, result.stderr
    assert b"is far from Z?rich." in result.stdout
    assert b"Question: Z?rich?" in result.stdout


def test_an_output_that_is_closed_early_ends_the_command_quietly(manual):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        result = run("ask", manual, "How is it cleaned?", stdout=writing)
    finally:
        os.close(writing)
    assert result.returncode == 141
    assert not result.stderr
    closed = f'"{sys.executable}" -m drillrank ask "{manual}" "How is it cleaned?" >&-'
    result = subprocess.run(closed, shell=True, stderr=subprocess.PIPE, check=False)
    assert (result.returncode, result.stderr) == (0, b"")


@pytest.fixture
def town_questions(tmp_path: Path) -> list[str]:
    towns = ["Basel", "Bonn", "Cologne", "Mainz"]
    corpus, questions = tmp_path / "towns.jsonl", tmp_path / "questions.csv"
    rows = [{"id": town, "text": f"{town} is <b>a town</b> on the Rhine, with gates."} for town in towns]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    asked = [f"How many gates has {town}?,{town},{'|'.join(reversed(towns))}\n" for town in towns]
    questions.write_text("question,gold,bm25_top\n" + "".join(asked), encoding="utf-8")
    return [str(questions), str(corpus), "--column", "candidates=bm25_top", "--measure", "AllR@1"]


def test_compare_prints_tables_and_writes_a_report(town_questions, tmp_path, capsys):
    report = tmp_path / "report.html"
    shown = ["--component", "UPR", "--component", 'two={"component": "UPR", "depth": 2}', "--html", str(report)]
    assert cli.main(["compare", *town_questions, *shown]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"┃ first stage +┃ BM25 +┃ first stage \+ BM25 +┃ UPR +┃ two +┃", printed)
    assert re.search(r"│ AllR@1 +│ 0\.250 +│ 1\.000 +│ 0\.250 +│ 1\.000 +│ 0\.500 +│", printed)
    assert re.search(r"│ failed +│ 0 +│ 0 +│ 0 +│ 0 +│ 0 +│", printed)
    assert re.search(r"│ unjudged +│ 0 +│ 0 +│ 0 +│ 0 +│ 0 +│", printed)
    assert "first stage → UPR" in printed
    html = report.read_text(encoding="utf-8")
    assert "<b>a town</b>" not in html
    assert "&lt;b&gt;a town" in html
    assert not re.search(r'(?:src|href)="|url\(|@import', html)  # nothing is fetched
    assert html.count("<svg") == html.count('role="img" aria-label="') == 3
    assert re.search(r"some evidence was there</th>(<td>100.0%</td>){4}<td>50.0%</td>", html)  # of what it was shown


@pytest.mark.parametrize("report", [".", "questions.csv/report.html"])
def test_a_report_that_cannot_be_written_is_told_before_anything_is_asked(town_questions, tmp_path, capsys, report):
    results = tmp_path / "results.jsonl"
    files = ["--html", str(tmp_path / report), "--results", str(results)]
    assert cli.main(["compare", *town_questions, *files]) == 2
    assert "cannot be written" in " ".join(capsys.readouterr().err.split())
    assert not results.exists()


def test_a_report_whose_file_cannot_be_written_in_the_end_leaves_the_tables(
    town_questions, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("drillrank.cli.compare.check_target", lambda path: None)  # it could be, at first
    assert cli.main(["compare", *town_questions, "--html", str(tmp_path)]) == 2
    told = capsys.readouterr()
    assert "AllR@1" in told.out
    assert "cannot be written" in " ".join(told.err.split())


def test_a_report_makes_its_folder(town_questions, tmp_path):
    assert cli.main(["compare", *town_questions, "--html", str(tmp_path / "new" / "report.html")]) == 0
    assert (tmp_path / "new" / "report.html").exists()


@pytest.mark.parametrize("place", ["questions.csv", "towns.jsonl", "of/../results.jsonl"])
def test_the_report_takes_the_place_of_no_other_file(town_questions, tmp_path, capsys, place):
    (tmp_path / "of").mkdir()
    results, before = tmp_path / "results.jsonl", (tmp_path / "questions.csv").read_bytes()
    given = ["--results", str(results), "--html", str(tmp_path / place)]
    assert cli.main(["compare", *town_questions, *given]) == 2
    assert "give the report a file of its own" in " ".join(capsys.readouterr().err.split())
    assert (tmp_path / "questions.csv").read_bytes() == before
    assert not results.exists()


def test_compare_cuts_no_digits_off_where_there_is_little_room(town_questions, capsys, monkeypatch):
    monkeypatch.setattr(terminal, "console", terminal.Terminal(highlight=False, width=40))
    named = [f'[red]{n}={{"component": "UPR", "depth": {n + 1}}}' for n in range(3)]
    assert cli.main(["compare", *town_questions, *(word for one in named for word in ("--component", one))]) == 0
    printed = capsys.readouterr().out
    assert "…" not in printed
    assert "[red]" in printed
    assert max(map(len, printed.splitlines())) <= 40


def test_compare_in_json(town_questions, capsys):
    assert cli.main(["compare", *town_questions, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["components"]["UPR"]["means"] == {"AllR@1": 1.0}
    assert told["complete"] is True


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--component", "UPPR"], "No component is called 'UPPR'"),
        (["--component", "UPR", "--component", "UPR"], "Two components have one name"),
        (["--component", "x={no"], "--component x is no JSON"),
        (["--column", "question"], "--column is OURS=THEIRS"),
    ],
)
def test_compare_says_what_cannot_be_used(town_questions, arguments, said, capsys):
    assert cli.main(["compare", *town_questions, *arguments]) == 2
    assert said in capsys.readouterr().err
