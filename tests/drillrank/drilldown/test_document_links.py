"""Links between documents: hyperlinks, file names, titles and names, and the paths that D3 makes of them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import D3, Corpus, Passage, parse_document
from drillrank.cli import main
from drillrank.cli.folder_tools import FolderTools
from drillrank.drilldown.document_links import FileNames, list_heading_names, list_names
from drillrank.errors import InvalidInput
from drillrank.structure.hyperlinks import find_hyperlinks
from drillrank.structure.read import read_document
from drillrank.text import count_tokens

WIKI = {
    "wiki/sites/harbour.md": (
        "# Harbour site\n\nThe cups there seized; they gave way to [the other kind](../parts/wind.md#power).\n"
    ),
    "wiki/parts/wind.md": "# Anemometers\n\n## Mounting\n\nOn a mast, high up.\n\n## Power\n\nIt draws 28 mA.\n",
    "wiki/parts/lamps.md": "# Lamps\n\nLamps on the quay draw power at night, much of it.\n",
    "wiki/people.md": "# People\n\nQuinlan repairs what salt water breaks.\n",
}
QUESTION = "Which current has the instrument that came when cups at the harbour seized?"


def prepare(texts: Mapping[str, str], **settings: object) -> tuple[D3, object]:
    d3 = D3(settings=settings)
    return d3, d3.prepare([parse_document(text, "markdown") for text in texts.values()], list(texts))


def ask(texts: Mapping[str, str], question: str = QUESTION, top_n: int | None = 3, **settings: object):
    d3, prepared = prepare(texts, **settings)
    return d3.retrieve(question, prepared, top_n)  # type: ignore[arg-type]


def linked(result) -> list[tuple[str, str, str]]:
    return [(*item.details["path"], item.details["link"]["kind"]) for item in result if "link" in item.details]


# --- Sources of links


@pytest.mark.parametrize(
    ("source", "format_name", "targets"),
    [
        ("[a](b.md) and [c][1].\n\n[1]: ../d.md 'Title'\n", "markdown", ["b.md", "../d.md"]),
        ("[mail](mailto:a@b.c), [here](#part), <a HREF='x%20y.html'>x</a>", "html", ["x%20y.html"]),
        ("[[Oak tree|oaks]] but not `[[ -f x ]]`", "markdown", ["[[Oak tree"]),
        ("See :doc:`/start`, `text <a.rst>`_ and name_.\n", "rst", ["/start", "a.rst"]),
        ("`guide`_\n\n.. _guide: guide.rst\n", "rst", ["guide.rst"]),
        ("No link: [a], (b), [c] (d).", "markdown", []),
    ],
)
def test_targets_of_each_syntax(source, format_name, targets):
    assert [link.target for link in find_hyperlinks(source, format_name)] == targets


@given(st.text(alphabet="[]()<>a href=\"'`_:|#./\n", max_size=200))
def test_any_source_has_links_in_order(source):
    for format_name in ("markdown", "rst", "html"):
        starts = [link.start for link in find_hyperlinks(source, format_name)]
        assert starts == sorted(starts)
        assert all(0 <= start < len(source) for start in starts)


class _CountedSource(str):
    """Text that counts how often it is searched for a substring."""

    n_searches = 0

    def __contains__(self, part: str) -> bool:
        self.n_searches += 1
        return super().__contains__(part)


def test_a_source_is_not_searched_again_for_each_definition():
    source = _CountedSource("[a][7]\n" + "".join(f"[{i}]: file{i}.md\n" for i in range(100)))
    assert [link.target for link in find_hyperlinks(source, "text")] == ["file7.md"]
    assert source.n_searches < 10


@pytest.mark.parametrize("unit", ["passage", "paragraph"])
def test_corpus_keeps_links_of_passages(tmp_path, unit):
    corpus = Corpus(tmp_path / "corpus.sqlite", unit=unit)
    corpus.add([(name, parse_document(text, "markdown")) for name, text in WIKI.items()])
    links = [passage.metadata.get("links", ()) for passage in corpus.passages("wiki/sites/harbour.md")]
    assert links == [(("../parts/wind.md#power", "the other kind"),)]


# --- Files


FILES = FileNames(
    ["w/a.md", "w/Sub Folder/b.md", "w/sub/README.md", "w/sub/c.rst", "x/c.rst", "w/sub/page.md"], "english"
)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("Sub%20Folder/b.md#A-Part", [(1, "a-part")]),
        ("./SUB%20folder/../Sub Folder/b.md?raw=1", [(1, "")]),
        ("sub/", [(2, "")]),
        ("sub/page.html", [(5, "")]),
        ("/sub/c", [(3, "")]),
        ("../x/c.rst", [(4, "")]),
        ("nowhere.md", []),
        ("README.md", []),
        ("https://example.org/w/sub/page.md", []),
        ("mailto:page.md", []),
        ("http://[broken", []),
        ("[[page#Part one", [(5, "part-one")]),
        ("[[Nowhere", []),
        ("", []),
    ],
)
def test_targets_lead_to_files(target, expected):
    assert FILES.resolve(target, 0) == expected


def test_equal_file_names_lead_to_the_one_in_the_folder():
    assert FILES.resolve("c.rst", 2) == [(3, "")]
    assert FILES.resolve("c.rst", 0) == []  # either could be meant


@given(st.text(max_size=60), st.integers(0, 5))
def test_any_target_leads_to_given_files(target, document):
    assert all(0 <= linked_document < 6 for linked_document, _ in FILES.resolve(target, document))


def test_ordinary_words_are_no_titles():
    passage = Passage("", metadata={"section_path": ("Status", "Question", "Order boards")})
    assert [name for name, _ in list_heading_names(passage, "english")] == ["order board"]
    assert list_names(Passage("The box is sent to them, again and again, in May."), "english") == {}


# --- Paths


def test_a_passage_leads_to_the_section_that_its_link_names():
    assert linked(ask(WIKI, hops=1)) == []
    result = ask(WIKI, hops=2)
    first, second = result[0], result[1]
    assert first.passage.metadata["document"] == 0
    assert (second.details["path"], second.details["link"]) == (
        (first.passage.id, second.passage.id),
        {"kind": "link", "text": "the other kind", "document": 0},
    )
    assert "28 mA" in second.passage.text
    assert first.score >= second.score == max(item.score for item in result[1:])


def test_default_follows_where_words_are_left_open():
    assert linked(ask(WIKI)) == linked(ask(WIKI, hops=2))[:1]
    assert linked(ask(WIKI, "harbour cups seized")) == []  # the best passage has all words


def test_titles_and_names_lead_on():
    texts = {
        "a.md": "# Outage\n\nThe outage in spring was found by Quinlan, who knew the Tide table well.\n",
        "b.md": "# Staff\n\nQuinlan lives in Oban.\n",
        "c.md": "# Tide table\n\nIt is printed in Leith.\n",
    }
    result = ask(texts, "Where does the finder of the outage in spring live?", hops=2)
    kinds = {item.passage.metadata["document"]: item.details["link"] for item in result if "link" in item.details}
    assert {(document, link["kind"], link["text"]) for document, link in kinds.items()} == {
        (1, "name", "Quinlan"),
        (2, "title", "Tide table"),
    }


def test_cycles_end_and_links_to_nowhere_lead_nowhere():
    texts = {
        "a.md": "# A1 page\n\nThe first wheel turns [b](b.md), [itself](a.md), [lost](lost.md).\n",
        "b.md": "# B1 page\n\nThe other wheel turns back to [a](a.md).\n",
    }
    result = ask(texts, "Which first wheel turns?", hops=2)
    ids = [item.passage.id for item in result]
    assert len(ids) == len(set(ids)) == 2
    assert len(linked(result)) <= 1


def test_only_given_documents_are_followed():
    without_target = {name: text for name, text in WIKI.items() if name != "wiki/parts/wind.md"}
    corpus = Corpus()
    corpus.add([(name, parse_document(text, "markdown")) for name, text in WIKI.items()])
    d3 = D3(settings={"hops": 2})
    some = d3.prepare_corpus(corpus, {name: name for name in without_target})
    assert {item.passage.metadata["document"] for item in d3.retrieve(QUESTION, some, 9)} <= without_target.keys()


@pytest.mark.parametrize("hops", [None, 2])
def test_corpus_and_memory_give_the_same_paths(tmp_path, hops):
    d3, prepared = prepare(WIKI, hops=hops)
    corpus = Corpus(tmp_path / "corpus.sqlite")
    corpus.add([("other", parse_document("# Anemometers\n\nA page of another folder, on Power.", "markdown"))])
    corpus.add([(name, parse_document(text, "markdown")) for name, text in WIKI.items()])
    stored = d3.prepare_corpus(corpus, {name: name for name in WIKI})
    names = list(WIKI)
    for question in (QUESTION, "Who repairs the harbour site?", "lamps power"):
        in_memory, on_disk = d3.retrieve(question, prepared, 4), d3.retrieve(question, stored, 4)
        assert [
            (
                names[item.passage.metadata["document"]],
                item.passage.metadata["start"],
                item.score,
                item.details.get("path_gain"),
            )
            for item in in_memory
        ] == [
            (
                item.passage.metadata["document"],
                item.passage.metadata["start"],
                item.score,
                item.details.get("path_gain"),
            )
            for item in on_disk
        ]


def test_a_changed_file_has_its_new_headings_and_links(tmp_path):
    corpus, d3 = Corpus(tmp_path / "corpus.sqlite"), D3(settings={"hops": 2})
    corpus.add([(name, parse_document(text, "markdown")) for name, text in WIKI.items()])
    assert linked(d3.retrieve(QUESTION, corpus, 3))
    changed = WIKI["wiki/sites/harbour.md"].replace("[the other kind](../parts/wind.md#power)", "nothing")
    corpus.add([("wiki/sites/harbour.md", parse_document(changed, "markdown"))])
    assert not [link for link in linked(d3.retrieve(QUESTION, corpus, 3)) if link[2] == "link"]


PARTS = [
    "Quinlan",
    "mast",
    "cups",
    "[see](a.md)",
    "[b](b.md#Cups)",
    "[[c]]",
    "salt",
    "harbour",
    "Tide table",
    "# Cups\n\n",
    "\n\n",
]


@given(st.lists(st.lists(st.sampled_from(PARTS), min_size=1, max_size=12).map(" ".join), min_size=1, max_size=4),
       st.sampled_from(["salt on the mast", "Which cups has the harbour?"]), st.integers(1, 5))  # fmt: skip
def test_evidence_is_distinct_sorted_and_exact(texts, question, top_n):
    documents = [parse_document(text, "markdown") for text in texts]
    d3 = D3(settings={"hops": 2})
    result = d3.retrieve(question, d3.prepare(documents, [f"{letter}.md" for letter in "abcd"][: len(texts)]), top_n)
    ids, scores = [item.passage.id for item in result], [item.score for item in result]
    assert len(ids) == len(set(ids)) <= top_n
    assert scores == sorted(scores, reverse=True)
    for item in result:
        start, end = item.details["span"]
        assert documents[item.passage.metadata["document"]].text[start:end] == item.passage.text
        if "link" in item.details:
            first, last = item.details["path"]
            assert last == item.passage.id
            assert first.partition(":")[0] != last.partition(":")[0]
            assert ids.index(first) < ids.index(last)
    assert [entry.score for entry in result.explain()] == scores


def test_explanation_names_the_link_and_its_terms_add_up():
    result = ask(WIKI, hops=2)
    why = result.explain()
    assert "a better passage leads here" in str(why)
    assert [report.chosen for report in result.steps if report.kind == "links"] == [
        tuple(item.passage.id for item in result if "link" in item.details)
    ]


def test_max_tokens_limits_paths_too():
    d3, prepared = prepare(WIKI, hops=2)
    result = d3.retrieve(QUESTION, prepared, max_tokens=60)  # type: ignore[arg-type]
    assert sum(len(item.passage.text.split()) for item in result) <= 60


def test_a_path_stands_together_within_max_tokens():
    texts = {"wiki/quay.md": "# Quay\n\nThe current at the harbour is strong.\n", **WIKI}
    documents_by_hops = {}
    for hops in (1, 2):
        d3, prepared = prepare(texts, hops=hops)
        result = d3.retrieve(QUESTION, prepared, max_tokens=70)  # type: ignore[arg-type]
        documents_by_hops[hops] = [list(texts)[int(item.passage.metadata["document"])] for item in result]
        assert sum(count_tokens(item.passage.text) for item in result) <= 70
    assert documents_by_hops[1][:2] == ["wiki/sites/harbour.md", "wiki/quay.md"]
    assert documents_by_hops[2][:2] == ["wiki/sites/harbour.md", "wiki/parts/wind.md"]


def test_html_and_rst_files_link_each_other(tmp_path: Path):
    (tmp_path / "a.html").write_text("<h1>Mill</h1><p>The mill grinds what <a href='sub/b.rst'>the farm</a> grows.</p>")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.rst").write_text("Fields\n======\n\nBarley ripens in August.\n")
    paths = [tmp_path / "a.html", tmp_path / "sub" / "b.rst"]
    d3 = D3(settings={"hops": 2})
    prepared = d3.prepare([read_document(path) for path in paths], ["a.html", "sub/b.rst"])
    [_, second] = d3.retrieve("What is in the sacks that the mill grinds?", prepared, 2)
    assert second.details["link"] == {"kind": "link", "text": "the farm", "document": 0}


# --- The command line and the tools of agents


@pytest.fixture
def wiki(tmp_path, monkeypatch, own_cache, wide) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in WIKI.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    return tmp_path


def run_ask(capsys, *words: str) -> str:
    main(["ask", "wiki", QUESTION, "--embed", "none", *words])
    return str(capsys.readouterr().out)


def test_ask_prints_from_where_a_link_leads(wiki, capsys):
    assert "\n2. and from there, by the link “the other kind”: wiki/parts/wind.md:" in run_ask(capsys, "--hops", "2")
    assert "and from" not in run_ask(capsys, "--hops", "1")


def test_ask_has_the_path_as_json(wiki, capsys):
    for _ in range(2):  # read, then cached
        evidence = json.loads(run_ask(capsys, "--hops", "2", "--json"))["evidence"]
        assert [item.get("from") for item in evidence[:2]] == [
            None,
            {"file": "wiki/sites/harbour.md", "kind": "link", "text": "the other kind", "rank": 1},
        ]
    assert "here" in run_ask(capsys, "--hops", "2", "--explain")


def test_a_moved_folder_is_followed_by_its_new_names(wiki, capsys):
    run_ask(capsys, "--hops", "2")
    os.rename("wiki/parts", "wiki/things")
    assert "wind.md" in run_ask(capsys, "--hops", "2").partition("\n2. ")[2].partition("\n")[0]  # by its unique name
    os.rename("wiki/things/wind.md", "wiki/things/air.md")
    assert "and from there, by the link" not in run_ask(capsys, "--hops", "2")


@pytest.mark.parametrize("value", ["0", "3", "two"])
def test_bad_hops_of_a_command(wiki, capsys, value):
    assert main(["ask", "wiki", QUESTION, "--hops", value]) == 2
    assert "--hops" in capsys.readouterr().err


def test_agents_get_the_path(wiki):
    tools = FolderTools(D3(), ["."])
    evidence = tools.ask(QUESTION, hops=2)["evidence"]
    assert evidence[1]["from"] == "wiki/sites/harbour.md, by the link 'the other kind'"
    assert not any(item["from"] for item in tools.ask(QUESTION, hops=1)["evidence"])
    with pytest.raises(InvalidInput, match="hops"):
        tools.ask(QUESTION, hops=7)
