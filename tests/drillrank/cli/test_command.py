"""The commands: what they print, their status, and what they say of what they cannot use."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drillrank.cli import main, terminal
from drillrank.errors import MissingExtra
from drillrank.likelihood import UnigramModel
from tests.drillrank.helpers import write_rows

MANUAL = """# Kettle\n\nRead this first.\n
## Warranty\n\nThe warranty covers the heater for two years.\n\nIt leaves out damage by lime scale.\n
## Cleaning\n\nBoil vinegar and water once a month.\n"""


pytestmark = pytest.mark.usefixtures("own_cache", "wide")


@pytest.fixture
def manual(tmp_path: Path, monkeypatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("manual.md").write_text(MANUAL, encoding="utf-8")
    return "manual.md"


@pytest.fixture
def town_questions(manual) -> list[str]:
    towns = ["Basel", "Bonn", "Cologne", "Mainz"]
    rows = [{"id": town, "text": f"{town} is <b>a town</b> on the Rhine, with gates."} for town in towns]
    write_rows("towns.jsonl", rows)
    asked = [f"How many gates has {town}?,{town},{'|'.join(reversed(towns))}\n" for town in towns]
    Path("questions.csv").write_text("question,gold,bm25_top\n" + "".join(asked), encoding="utf-8")
    return ["questions.csv", "towns.jsonl", "--column", "candidates=bm25_top", "--measure", "AllR@1"]


MISUSES = {
    "": "Missing command",
    "aks manual.md Why?": "No such command 'aks'",
    "ask": "The question is missing. Give it last: drillrank ask FILE",
    "ask manual.md": "The question is missing after manual.md, which exists",
    "ask manual.md other.md": "The question is missing after other.md, which exists",
    "ask manual.md folder": "The question is missing after folder, which exists",
    "ask '' Why?": "empty name",
    "ask manual.md '  '": "query",
    "ask missing.md Why?": "missing.md cannot be read: No such file",
    "ask manual.md missing.md Why?": "missing.md cannot be read: No such file",
    "ask *.pdf Why?": "*.pdf cannot be read: matches no file",
    "ask **/*.pdf Why?": "**/*.pdf cannot be read: matches no file",
    "ask folder Why?": "There are no files to read",
    "ask empty.md Why?": "empty.md holds no text",
    "ask image.md Why?": "image.md is an image (PNG)",
    "ask manual.md image.md Why?": "image.md is an image (PNG)",
    "ask Why?": "There are no files to read",  # there is nothing on standard input
    "ask - --questions -": "only once",
    "ask --questions other.md": "There are no files to read",
    "ask manual.md --questions blank": "holds no question",
    "ask manual.md --questions missing": "missing cannot be read",
    "ask manual.md --questions .": "is not one file of questions",
    "ask manual.md Why? --model bert": "is not a language model that drillrank knows",
    "ask manual.md Why? --model hf:/nowhere": "/nowhere",
    "ask manual.md Why? --language klingon": "language must be one of",
    "ask manual.md Why? --as-of soon": "A date is a year",
    "ask manual.md Why? --top-n 0": "top_n",
    "ask manual.md Why? --top-n x": "'x' is not a valid integer",
    "ask manual.md Why? --topn 3": "'--top-n'",
    "ask manual.md Why? -x": "No such option",
    "ask manual.md Why? --\x1b[31mred": "No such option",
    "ask manual.md Why? --top-n": "requires an argument",
    "ask manual.md Why? --settings missing.json": "missing.json cannot be read",
    "ask manual.md Why? --settings manual.md": "manual.md is not JSON",
    "ask manual.md Why? --answer": "--answer needs an LLM",
    "ask manual.md Why? --llm localhost": "http://host:port/v1#model",
    "ask manual.md Why? --explain": "--explain is an option and the name of a file",
    "outline": "Missing argument 'FILE'",
    "outline folder": "folder is not one file",
    "outline *": "* is not one file",
    "outline missing.md": "missing.md cannot be read",
    "outline image.md": "image.md is an image (PNG)",
    "outline manual.md other.md": "unexpected extra argument",
    "components UPRR": "Use one of UPR",
    "compare missing.csv": "missing.csv cannot be read",
    "compare TOWNS --component UPPR": "No component is called 'UPPR'",
    "compare TOWNS --component UPR --component UPR": "Two components have one name",
    'compare TOWNS --component \'{"component": "PathSearch", "preset": "paper"}\'': "unigram",
    "compare TOWNS --component x={no": "--component x is not JSON",
    "compare TOWNS --column question": "--column is OURS=THEIRS",
    "compare TOWNS --html .": "cannot be written: it is a folder",
    "compare TOWNS --html manual.md/report.html": "cannot be written",
    "compare TOWNS --html questions.csv": "give the report a file of its own",
    "compare TOWNS --html folder/../towns.jsonl": "give the report a file of its own",
    "compare TOWNS --results r.jsonl --html folder/../r.jsonl": "give the report a file of its own",
    "tune TOWNS --component NO": "NO",
    "tune TOWNS --try mu": "--try is SETTING=LIST",
    "tune TOWNS --out folder": "cannot be written: it is a folder",
    "mcp missing": "missing",
    "mcp manual.md": "manual.md",
}


@pytest.mark.parametrize("command", MISUSES)
def test_a_misuse_is_one_line_and_status_2(town_questions, capsys, monkeypatch, command):
    for name, content in {"other.md": b"lime", "empty.md": b"", "blank": b"\n \n", "image.md": b"\x89PNG\0"}.items():
        Path(name).write_bytes(content)
    Path("folder").mkdir()
    if "--explain" in command:
        Path("--explain").touch()
    before = {file: file.read_bytes() for file in Path().rglob("*") if file.is_file()}
    with open(os.devnull, encoding="utf-8") as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert main(shlex.split(command.replace("TOWNS", " ".join(town_questions)))) == 2
    printed = capsys.readouterr()
    assert MISUSES[command] in printed.err
    assert len(printed.err.splitlines()) == 1
    assert not OBEYED.findall(printed.err)
    assert not printed.out
    assert {file: file.read_bytes() for file in Path().rglob("*") if file.is_file()} == before


@pytest.mark.parametrize(("error", "message"), [(MissingExtra("no torch"), "no torch"), (KeyError("x"), "a fault of")])
def test_a_model_that_cannot_be_loaded_is_told_before_anything_is_shown(manual, monkeypatch, capsys, error, message):
    class Broken(UnigramModel):
        def log_likelihood(self, *arguments, **options):
            raise error

    monkeypatch.setattr("drillrank.drilldown.d3.load_evidence_model", lambda spec: Broken())
    assert main(["ask", manual, "Why?", "--model", "hf:any"]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert len(printed.err.splitlines()) == 1
    assert not printed.out


@pytest.mark.parametrize(
    ("arguments", "status", "shown"),
    [
        ("--version", 0, r"drillrank \d+\.\d+\S*"),
        ("--help", 0, ".* ask .* doctor .* mcp .*Exit status: 0.*"),
        ("ask --help", 0, ".*Markdown, HTML, LaTeX or plain text.*"),
        ("doctor", 0, r".*llama-index-core \d.*models: unigram.*cache: .*drillrank, [\d.]+ MB"),
        ("components", 0, ".*UPRRerank.*MultiViewTextSplitter.*SelfAskChain.*"),
        ("components SelfAskChain", 0, ".*2210.03350.*needs: llm, retriever.*max_steps.*on_failure.*"),
        ("components D3", 0, r".*langchain_ext: D3Retriever.*settings\.max_calls.*"),
        ("outline manual.md", 0, r".*: 175 characters, 3 sections .*Kettle 0–28.*── Warranty 28–\d+ .*── Cleaning .*"),
        ("outline note.txt", 1, r"note\.txt: 4 characters, 1 section .*no heading.*"),
        ("outline page.html", 0, r".*── Care \d+–\d+"),
        ("outline man*", 0, ".*Cleaning.*"),
        ("ask manual.md 'Quantum chromodynamics'", 1, ".*speak of other subjects.*damage by lime scale.*"),
        ("ask manual.md 'Quantum chromodynamics' --unit paragraph --top-n 2", 1, ".*Nothing matched.*"),
        ("ask --explain manual.md xylophone --unit paragraph --top-n 2", 1,
            ".*Nothing matched.*What was opened, read and left.*"),
        ("ask --unit paragraph page.html note.txt soft", 0, r".*page\.html:1 .* Care -\d\.\d+ It is soft\."),
        ("ask manual.md 'What does the warranty leave out?' --top-n 1 --unit paragraph", 0,
            r".* 1\. manual\.md:9 88–123 Kettle > Warranty -\d\.\d+ It leaves out damage by lime scale."),
        ("ask utf16.md 'What does the warranty leave out?'", 0, ".*It leaves out damage by lime scale.*"),
        ("ask *.md empty.md lime", 0, ".*It leaves out damage.*"),
    ],
)  # fmt: skip
def test_what_a_command_prints(manual, capsys, arguments, status, shown):
    Path("note.txt").write_text("lime", encoding="utf-8")
    Path("page.html").write_text("Words first.<h2>Care</h2><p>It is <b>soft</b>.</p>", encoding="utf-8")
    Path("utf16.md").write_bytes(MANUAL.replace("\n", "\r\n").encode("utf-16"))
    Path("empty.md").touch()
    assert main(shlex.split(arguments)) == status
    printed = capsys.readouterr()
    assert re.fullmatch(shown, " ".join(printed.out.split()))
    assert ("empty.md holds no text" in printed.err) is ("empty" in arguments)


@pytest.mark.parametrize("n_images", [2, 12])
def test_skipped_files_are_indented_below_their_number(manual, capsys, n_images):
    for number in range(n_images):
        Path(f"{number:02}.md").write_bytes(b"\x89PNG\0")
    assert main(["ask", ".", "How is the kettle cleaned?", "--embed", "none", "--exclude", "*.absent"]) == 0
    summary, *details, warning = capsys.readouterr().err.splitlines()
    assert summary == f"drillrank: 1 file read, {n_images} skipped:"
    named = [f"   {number:02}.md" for number in range(min(n_images, 10))]
    assert [line[:8] for line in details[:10]] == named
    assert details[10:] == (["   and 2 more."] if n_images > 10 else [])
    assert warning.startswith("drillrank: --exclude '*.absent'")


def test_an_error_is_the_last_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("image.md").write_bytes(b"\x89PNG\0")
    assert main(["ask", ".", "Why?", "--embed", "none", "--exclude", "*.absent"]) == 2
    warning, error = capsys.readouterr().err.splitlines()
    assert "--exclude '*.absent'" in warning
    assert "There are no files to read" in error


@pytest.mark.parametrize("width", [40, 80])
def test_names_of_files_are_not_cut_where_there_is_little_room(manual, capsys, monkeypatch, width):
    monkeypatch.setattr(terminal, "console", terminal.Terminal(width=width))
    names = [f"{'a-long-folder-of-contracts/' * 4}lease-{letter}[red].md" for letter in "ab"]
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(f"# Lease\n\nThe [bold]rent[/bold] is due :x:.\n\n{name[-9]}", encoding="utf-8")
    assert main(["ask", "--unit", "paragraph", *names, "When is the rent due?"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in names[:1])
    assert "The [bold]rent[/bold] is due :x:." in printed  # markup in documents is data
    assert "The same text is in " + names[1] in printed


def test_ask_explains_on_request(manual, capsys):
    other = "other[red].md"
    Path(other).write_text("# Other\n\nThe kettle [red]is\x1b[31m red.\n\nThe heater again.\n", encoding="utf-8")
    asked = [manual, other, "What does the warranty of the heater cover?"]
    shown = {}
    for options in ((), ("--explain",), ("--json",), ("--json", "--explain")):
        assert main(["ask", "--unit", "paragraph", *options, *asked]) == 0
        shown[options] = capsys.readouterr().out
    assert shown["--explain",].startswith(shown[()])
    why = shown["--explain",].removeprefix(shown[()])
    assert f"1. {manual}: Kettle > Warranty: The warranty covers" in why
    assert all(part in why for part in ("Gain of each token", "▾ Warranty", f"▾ {other}"))
    assert "\x1b" not in why
    without, result = (json.loads(shown[options]) for options in (("--json",), ("--json", "--explain")))
    evidence = result["evidence"]
    assert {node["name"] for node in result.pop("tree") if node["kind"] == "document"} == {manual, other}
    assert [{name: value for name, value in item.items() if name != "explanation"} for item in evidence] == without[
        "evidence"
    ]
    for rank, item in enumerate(evidence, start=1):
        entry = item["explanation"]
        assert (item["rank"], entry["rank"]) == (rank, rank)
        assert sum(term["value"] for term in entry["terms"]) / entry["per"] == pytest.approx(item["score"])


# What a terminal would obey: C0 and C1 codes but for the line break, and signs that turn the direction of writing.
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
PIECES = st.sampled_from([
    *(b"\x1b[31m", b"\x1b]0;title\x07", b"\x1b]8;;http://a\x1b\\", b"\x07", b"\x7f", b"\x08", b"\r", b"\t", b"\n\n"),
    *(sign.encode() for sign in "\x9b\x85\u202e\u2066\u200f"),
    *(b"# ", b"words ", b"[red]", b"<p>", b"\\section{A}", b"| a | b |\n|---|---|\n"),
])  # fmt: skip


@settings(max_examples=int(os.environ.get("DRILLRANK_FUZZ", "25")), suppress_health_check=list(HealthCheck))
@given(st.lists(PIECES | st.binary(max_size=8), max_size=12).map(b"".join), st.text(max_size=8))
def test_nothing_in_a_document_or_a_question_reaches_the_terminal_as_a_command(capsys, tmp_path, content, question):
    file = tmp_path / "any\x1b[2J.md"
    file.write_bytes(content)
    status = main(["ask", str(file), f"words {question}"])
    printed = capsys.readouterr()
    # A file that claims to be a PDF is none.
    assert status < 2 or re.search(
        "is not text|holds no text|pdf|which drillrank does not read", printed.err, re.IGNORECASE
    )
    assert main(["outline", str(file)]) in (status, 0, 1)
    outline = capsys.readouterr()
    assert not OBEYED.findall(outline.out + outline.err)
    assert not OBEYED.findall(printed.out + printed.err)


def run(command: list[str], **options) -> subprocess.CompletedProcess:
    return subprocess.run(command, stderr=subprocess.PIPE, check=False, **options)


def test_the_installed_command_shows_a_terminal_without_unicode_what_it_can(tmp_path):
    file = tmp_path / "note.md"
    file.write_text("# Zürich\n\n東京 is far from Zürich.\n", encoding="utf-8")
    command = [Path(sys.executable).with_name("drillrank"), "ask", file, "Zürich?"]
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    result = run(command, stdout=subprocess.PIPE, env={**os.environ, **ascii_only})
    assert result.returncode == 0, result.stderr
    assert b"is far from Z?rich." in result.stdout
    assert b"Question: Z?rich?" in result.stdout


def test_an_output_that_is_closed_early_ends_the_command_quietly(manual):
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "drillrank", "ask", manual, "How is it cleaned?"]
    with os.fdopen(writing, "wb"):
        result = run(command, stdout=writing)
    assert (result.returncode, result.stderr) == (141, b"")
    result = run(f"{shlex.join(command)} >&-", shell=True)
    assert (result.returncode, result.stderr) == (0, b"")


def test_compare_prints_tables_and_writes_a_report(town_questions, capsys):
    report = Path("new", "report.html")
    shown = ["--component", "UPR", "--component", 'two={"component": "UPR", "depth": 2}', "--html", str(report)]
    assert main(["compare", *town_questions, *shown]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"┃ first stage +┃ BM25 +┃ first stage \+ BM25 +┃ UPR +┃ two +┃", printed)
    assert re.search(r"│ AllR@1 +│ 0\.250 +│ 1\.000 +│ 0\.250 +│ 1\.000 +│ 0\.500 +│", printed)
    assert all(re.search(rf"│ {row} +│ 0 +│ 0 +│ 0 +│ 0 +│ 0 +│", printed) for row in ("failed", "unjudged"))
    assert "first stage → UPR" in printed
    html = report.read_text(encoding="utf-8")
    assert "<b>a town</b>" not in html
    assert "&lt;b&gt;a town" in html
    assert not re.search(r'(?:src|href)="|url\(|@import', html)  # nothing is fetched
    assert html.count("<svg") == html.count('role="img" aria-label="') == 3
    assert re.search(r"some evidence was there</th>(<td>100.0%</td>){4}<td>50.0%</td>", html)  # of what it was shown
    assert main(["compare", *town_questions, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["components"]["UPR"]["means"] == {"AllR@1": 1.0}
    assert told["complete"] is True


def test_the_demo_shows_both_frameworks_and_they_agree(capsys, monkeypatch):
    demo = runpy.run_path(str(Path(__file__).resolve().parents[3] / "examples" / "demo.py"))["main"]
    demo()
    printed = capsys.readouterr().out
    assert "One section in three views" in printed
    llama_index, langchain = printed.split("LlamaIndex: three views")[1].split("LangChain: three views")
    assert "logarithm trap" in llama_index
    scores = [re.findall(r"-\d\.\d+ │$", part, re.MULTILINE) for part in (llama_index, langchain)]
    assert len(scores[0]) == 3
    assert scores[0] == scores[1]
    for name in ("llama_index_ext", "langchain_ext"):
        monkeypatch.setitem(sys.modules, name, None)
    demo()
    assert '"drillrank[llama-index]' in " ".join(capsys.readouterr().out.split())


def test_a_report_whose_file_cannot_be_written_in_the_end_leaves_the_tables(town_questions, capsys, monkeypatch):
    monkeypatch.setattr("drillrank.cli.compare.check_target", lambda path: None)  # it could be, at first
    assert main(["compare", *town_questions, "--html", str(Path().resolve())]) == 2
    told = capsys.readouterr()
    assert "AllR@1" in told.out
    assert "cannot be written" in " ".join(told.err.split())


def test_check_marks_each_sentence_with_its_place_and_fails_if_one_is_not_supported(manual, capsys):
    claims = "The warranty covers the heater for two years. The warranty covers the heater for three years."
    assert main(["check", claims, "manual.md", "--embed", "none"]) == 1
    out = capsys.readouterr().out
    assert "Supported: The warranty covers the heater for two years." in out
    assert "Not supported (compare: three): The warranty covers the heater for three years." in out
    assert "manual.md:" in out
    Path("answer.txt").write_text("Boil vinegar and water once a month.", encoding="utf-8")
    assert main(["check", "answer.txt", "manual.md", "--embed", "none", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["supported"]
    assert record["locations"][0]["file"] == "manual.md"
    assert record["locations"][0]["lines"]


def test_check_prints_the_section_of_a_passage_that_fits_the_sentence_above_it(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lease = "# Lease\n\n## Rent\n\nThe rent is 900 euros a month.\n\n## Notice\n\nThe notice period is three months.\n"
    Path("lease.md").write_text(lease, encoding="utf-8")
    main(["check", "The rent is 900 euros a month. The notice period is three weeks.", "lease.md", "--embed", "none"])
    lines = [line for line in capsys.readouterr().out.splitlines() if "lease.md:" in line]
    assert [line.rpartition(" > ")[2] for line in lines] == ["Rent", "Notice"]


def test_check_refuses_an_answer_without_a_sentence_and_missing_files(manual, capsys):
    assert main(["check", "...", "manual.md"]) == 2
    assert "An answer must have a sentence to check" in capsys.readouterr().err
    assert main(["check", "A claim.", "missing.md"]) == 2
    assert main(["check", "A claim."]) == 2


def test_ask_writes_the_gap_as_json(manual, capsys):
    assert main(["ask", "manual.md", "Which shop repairs the heater?", "--embed", "none", "--json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)["gap"].startswith("shop repairs")
