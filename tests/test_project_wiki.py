"""Project wikis of the benchmark `wiki_hops`: their questions are sound, and `ask` answers some of them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.folders import characters_needed
from benchmarks.wiki_hops import BRIDGES, DEVELOPMENT, HOPS, MIDDLE_LIMIT, TEST, ask_questions, read_questions
from drillrank import D3, read_document
from drillrank.drilldown.settings import D3Settings

WIKIS = pytest.mark.parametrize("wiki", [TEST, DEVELOPMENT], ids=lambda wiki: wiki.name)
_LINKS = re.compile(r"\]\(([^)\s]+)\)|href=\"([^\"]+)\"|`[^`<]+<([^>]+)>`_")


def test_the_wikis_have_the_sizes_that_their_descriptions_name():
    assert _sizes(TEST) == (60, {"two-place": 30, "one-place": 15})
    assert _sizes(DEVELOPMENT) == (21, {"two-place": 10, "one-place": 5})
    for wiki, least in ((TEST, 8), (DEVELOPMENT, 3)):
        bridges = Counter(row["bridge"] for row in read_questions(wiki) if "gold2" in row)
        assert set(bridges) == set(BRIDGES)
        assert min(bridges.values()) >= least


@WIKIS
def test_each_gold_text_is_once_in_the_wiki_and_in_what_a_reader_sees(wiki):
    texts, readable = _texts(wiki), _readable_texts(wiki)
    for row in read_questions(wiki):
        for place in ("", "2") if "gold2" in row else ("",):
            gold, file = " ".join(row[f"gold{place}"].split()), row[f"file{place}"]
            assert {name: text.count(gold) for name, text in texts.items() if gold in text} == {file: 1}, row["id"]
            assert characters_needed([readable[file]], {"gold": gold}) < float("inf"), row["id"]
        assert row.get("file2") != row["file"], row["id"]


@WIKIS
def test_all_links_lead_to_pages_and_headings_of_the_wiki(wiki):
    n_links = 0
    for path in _pages(wiki):
        for target, heading in _link_targets(path):
            assert target.is_file(), (path, target)
            names = {re.sub(r"[^\w-]", "", line.strip("# ").lower().replace(" ", "-")) for line in _headings(target)}
            assert not heading or heading in names, (path, heading)
            n_links += 1
    assert n_links >= 10


@WIKIS
def test_the_first_page_refers_to_the_second_and_the_question_does_not_name_it(wiki):
    texts = _texts(wiki)
    for row in (row for row in read_questions(wiki) if "gold2" in row):
        if row["bridge"] == "link":
            targets = [target for target, _ in _link_targets(wiki / row["file"])]
            assert (wiki / row["file2"]).resolve() in targets, row["id"]
            mention = Path(row["file2"]).stem.replace("-", " ")
        else:
            mention = row["mention"]
            assert mention in texts[row["file"]], row["id"]
            assert mention.lower() in texts[row["file2"]].lower(), row["id"]
        if row["bridge"] == "title":
            assert mention.lower() in _headings(wiki / row["file2"])[0].lower(), row["id"]
        assert mention.lower() not in row["question"].lower(), row["id"]


def test_ask_answers_questions_with_one_place():
    one_place = [row for row in read_questions(DEVELOPMENT) if row["kind"] == "one-place"]
    needed = ask_questions(DEVELOPMENT / "files", one_place, {"terms": D3()})["terms"]
    assert sum(n <= MIDDLE_LIMIT for n in needed) >= len(one_place) - 1


def test_ask_with_two_hops_answers_more_questions_with_two_places_and_loses_no_others():
    questions = read_questions(DEVELOPMENT)
    systems = {name: D3(settings=D3Settings(**HOPS[name])) for name in ("--hops 1", "--hops 2")}
    needed_by_system = ask_questions(DEVELOPMENT / "files", questions, systems)
    answered_by_system = {
        name: {row["id"] for row, n in zip(questions, needed, strict=True) if n <= MIDDLE_LIMIT}
        for name, needed in needed_by_system.items()
    }
    one_place = {row["id"] for row in questions if row["kind"] == "one-place"}
    assert answered_by_system["--hops 1"] & one_place <= answered_by_system["--hops 2"]
    assert len(answered_by_system["--hops 2"] - one_place) > len(answered_by_system["--hops 1"] - one_place)


def _sizes(wiki: Path) -> tuple[int, dict[str, int]]:
    """Return the number of pages and the numbers of questions by kind."""
    return len(_pages(wiki)), dict(Counter(row["kind"] for row in read_questions(wiki)))


def _pages(wiki: Path) -> list[Path]:
    """Return the files of a wiki."""
    return sorted(path for path in (wiki / "files").rglob("*") if path.is_file())


def _texts(wiki: Path) -> dict[str, str]:
    """Return the text of each page without tags and with white space normalized, by its name."""
    raw = {path.relative_to(wiki).as_posix(): path.read_text(encoding="utf-8") for path in _pages(wiki)}
    return {
        name: " ".join((re.sub(r"<[^>]+>", " ", text) if name.endswith("html") else text).split())
        for name, text in raw.items()
    }


def _readable_texts(wiki: Path) -> dict[str, str]:
    """Return each page as drillrank reads it, by its name."""
    documents = {path.relative_to(wiki).as_posix(): read_document(path) for path in _pages(wiki)}
    return {name: "\n".join(map(document.readable, document.sections())) for name, document in documents.items()}


def _headings(page: Path) -> list[str]:
    """Return the lines of a page that may be headings, its title first."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".md":
        return re.findall(r"^#+ .*$", text, flags=re.MULTILINE)
    return re.findall(r"<h1>(.*)</h1>", text) if page.suffix == ".html" else text.splitlines()


def _link_targets(page: Path) -> list[tuple[Path, str]]:
    """Return the file and the heading (or nothing) of each relative link of a page."""
    links = ["".join(groups) for groups in _LINKS.findall(page.read_text(encoding="utf-8"))]
    parts = [link.partition("#") for link in links if "://" not in link]
    return [((page.parent / file).resolve() if file else page, heading) for file, _, heading in parts]
