"""Several versions of one document side by side: the newest is read, or that of a date."""

from __future__ import annotations

import json
import os

import pytest

from drillrank import D3
from drillrank.cli import main
from tests.drillrank.helpers import paragraph_d3

LEASE = "# Lease\n\nThe tenant lives in Basel.\n\nThe rent is {} francs a month.\n\nNo dogs.\n\nKeys are returned."
QUESTION = "How many francs is the rent a month?"


def rents(question, names, *, as_of=None, dates=(), texts=None):
    """The rents that are found, with details."""
    texts = texts or [LEASE.format(100 * number) for number in range(1, len(names) + 1)]
    d3 = paragraph_d3(settings={"as_of": as_of})
    found = d3.retrieve(question, d3.prepare(texts, names, dates), 20)
    return {item.passage.text.split()[3]: item.details for item in found if "rent" in item.passage.text}


@pytest.mark.parametrize(
    ("names", "newest"),
    [
        (["lease 2021.md", "lease 2023.md", "lease 2022.md"], "200"),
        (["lease_2023-06.pdf", "lease_2023-11.pdf"], "200"),
        (["Lease of 3 May 2022", "Lease of 12 March 2022"], "100"),
        (["lease_v2.docx", "lease_v10.docx", "lease_v9.docx"], "200"),
        (["2021/lease.md", "2019/lease.md"], "100"),
        (["lease FY19.md", "lease FY21.md"], "200"),
    ],
)
def test_of_several_versions_the_newest_is_read_and_the_others_are_named(names, newest):
    found = rents(QUESTION, names)
    assert set(found) == {newest}
    [details] = found.values()
    assert {*details["other_versions"]} == {*names} - {names[int(newest) // 100 - 1]}


@pytest.mark.parametrize(("as_of", "rent"), [("2022", "100"), ("2023-05", "100"), ("2023-06", "200"), ("2024", "200")])
def test_as_of_takes_the_version_of_that_time(as_of, rent):
    found = rents(QUESTION, ["lease_2021.md", "lease_2023-06-20.md"], as_of=as_of)
    assert {name: details["version"] for name, details in found.items()} == {
        rent: {"100": "2021", "200": "2023-06-20"}[rent]
    }


def test_nothing_is_read_that_is_later():
    assert rents(QUESTION, ["lease_2021.md", "lease_2023.md"], as_of="2020") == {}


def test_a_question_that_names_a_date_is_asked_of_all_versions():
    found = rents("How many francs was the rent a month in 2021?", ["lease_2021.md", "lease_2023.md"])
    assert set(found) == {"100", "200"}
    assert next(iter(found)) == "100"


def test_the_documents_own_date_comes_last():
    assert set(rents(QUESTION, ["lease.md", "lease.txt"], dates=[(2023, 1, 2), (2022, 5, 6)])) == {"100"}
    assert set(rents(QUESTION, ["lease 2020.md", "lease 2021.md"], dates=[(2023, 1, 2), (2022, 5, 6)])) == {"200"}
    assert set(rents(QUESTION, [None, None], dates=[(2023, 1, 2), (2022, 5, 6)], as_of="2022")) == {"200"}


@pytest.mark.parametrize(
    ("names", "texts"),
    [
        (["Acme 2021.md", "Globex 2023.md"], None),  # other names
        (["report 2021.md", "report 2023.md"], ["The rent is 100 francs.", "# B\n\nThe rent is 200 francs."]),  # others
        (["lease.md", "lease.txt"], None),  # nothing tells which is newer
    ],
)
def test_other_documents_are_no_versions(names, texts):
    found = rents(QUESTION, names, texts=texts)
    assert set(found) == {"100", "200"}
    assert not any("other_versions" in details for details in found.values())


def test_on_the_command_line(tmp_path, capsys):
    for year, rent in ((2021, 100), (2023, 200)):
        (tmp_path / f"lease_{year}.md").write_text(LEASE.format(rent), encoding="utf-8")
    for options, rent, other in (([], "200", "2021"), (["--as-of", "2022-03"], "100", "2023")):
        assert main(["ask", str(tmp_path), QUESTION, "--json", *options]) == 0
        first = json.loads(capsys.readouterr().out)["evidence"][0]
        assert rent in first["text"]
        assert [os.path.basename(name) for name in first["other_versions"]] == [f"lease_{other}.md"]
    assert main(["ask", str(tmp_path), QUESTION]) == 0
    assert "The version of 2023" in capsys.readouterr().out
    assert main(["ask", str(tmp_path), QUESTION, "--as-of", "2020"]) == 1
    assert "Files dated after 2020 were not searched." in capsys.readouterr().err
    for wrong in ("soon", "2023-13", "2023-02-30", "2023-06-30-1"):
        assert main(["ask", str(tmp_path), QUESTION, "--as-of", wrong]) == 2
        assert "A date is a year" in capsys.readouterr().err


@pytest.mark.parametrize("number", ["9" * 5_000, ".".join(["1"] * 5_000), "9" * 5_000 + ".1"])
def test_a_version_of_any_length_is_no_fault(tmp_path, capsys, number):
    for name in (f"lease v{number[:200]}.md", "lease v2.md"):
        (tmp_path / name).write_text(f"# Lease v{number}\n\nThe notice period is a month. {name}\n", encoding="utf-8")
    assert main(["ask", str(tmp_path), "notice period?", "--no-cache"]) == 0
    assert "fault of drillrank" not in capsys.readouterr().err


TRAVEL = "# Travel policy\n\nHotels are paid up to {} euros a night.\n\nTrains are booked in second class.\n"


@pytest.mark.parametrize("unit", ["paragraph", "passage"])
@pytest.mark.parametrize(("as_of", "euros"), [(None, "150"), ("2023-06", "120")])
def test_two_paragraphs_that_differ_in_one_number_are_versions(unit, as_of, euros):
    d3 = D3(settings={"unit": unit, "as_of": as_of})
    names = ["travel-policy-2023-01.md", "travel-policy-2024-01.md"]
    prepared = d3.prepare([TRAVEL.format(120), TRAVEL.format(150)], names)
    first, *rest = d3.retrieve("How much is paid for a hotel?", prepared, 5)
    assert euros in first.passage.text
    assert not any("Hotels" in item.passage.text for item in rest)
    assert len(first.details["other_versions"]) == 1


def test_a_short_document_of_a_folder_answers_in_its_newest_version(tmp_path, capsys):
    for date, euros in (("2023-01", 120), ("2024-01", 150)):
        (tmp_path / f"travel-policy-{date}.md").write_text(TRAVEL.format(euros), encoding="utf-8")
    for options, euros, other in (([], "150", "120"), (["--as-of", "2023-06"], "120", "150")):
        assert main(["ask", str(tmp_path), "How much is paid for a hotel?", "--json", "--no-cache", *options]) == 0
        output = capsys.readouterr().out
        assert f"{euros} euros" in output
        assert f"{other} euros" not in output
