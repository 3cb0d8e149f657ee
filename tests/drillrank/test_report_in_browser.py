"""The report in a browser, where there is one: its tables can be sorted, and are plain tables without a script."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest

from drillrank.evaluation import compare, html_report
from drillrank.evaluation.report_tables import SORTING, table
from tests.drillrank.test_comparison import BACKWARDS, CORPUS, last_first

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
ROWS = [
    ["UPR", "+1.000", "-0.500 to +2.000", "1,000.5", "9.5%", "–"],
    ["<b>a</b> 10", "-2.500", "-3.000 to -1.000", "20.0", "100.0%", "7"],
    ["a 9", "+0.000", "+0.000 to +0.000", "nan", "9.25%", "–"],
    ["first stage", "+10.000", "-10.000 to +1.000", "3.0", "0.0%", "12"],
]
CLICKING = """
<script>
const told = [...document.querySelectorAll("main > .scroll > table")].map(table =>
  [...table.tHead.rows[0].cells].map(head => [1, 2].map(() => {
    head.firstChild.click();
    const sorted = [...table.tHead.rows[0].cells].map(cell => cell.getAttribute("aria-sort"));
    return [sorted, [...table.tBodies[0].rows].map(row => row.cells[0].textContent)];
  })));
document.body.innerHTML = "<pre>" + JSON.stringify(told) + "</pre>";
</script>
"""


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
def test_columns_are_sorted_by_what_they_hold(tmp_path):
    names = ["name", "difference", "interval", "count", "share", "would tell"]
    page = tmp_path / "page.html"
    page.write_text(f"<main>{table('Some', names, ROWS)}</main><script>{SORTING}</script>{CLICKING}", encoding="utf-8")
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    shown = subprocess.run(
        [BROWSER, *arguments, page.as_uri()], capture_output=True, encoding="utf-8", timeout=60, check=True
    ).stdout
    [found] = json.loads(re.search(r"<pre>(.*)</pre>", shown)[1])
    order = [
        ["a 9", "a 10", "first stage", "UPR"],
        ["a 10", "a 9", "UPR", "first stage"],
        ["first stage", "a 10", "UPR", "a 9"],
        ["first stage", "a 10", "UPR", "a 9"],
        ["first stage", "a 9", "UPR", "a 10"],
        ["a 10", "first stage", "UPR", "a 9"],
    ]
    unknown = [0, 0, 0, 1, 0, 2]
    for column, (ascending, descending) in enumerate(found):
        known = len(ROWS) - unknown[column]
        others = [None] * (len(names) - 1)
        assert ascending == [[*others[:column], "ascending", *others[column:]], ascending[1]]
        assert descending[0] == [*others[:column], "descending", *others[column:]]
        assert ascending[1][:known] == order[column][:known]
        assert descending[1][:known] == order[column][:known][::-1]
        assert set(descending[1][known:]) == set(order[column][known:])


def test_without_a_script_it_is_a_plain_table():
    page = html_report(compare(BACKWARDS, {"UPR": "UPR", "wrong": last_first}, CORPUS, measures=["AllR@1", "F1@2"]))
    assert page.count("<script") == page.count(f"<script>{SORTING}</script>") == 1
    plain = page.replace(SORTING, "")
    assert "<button" not in plain
    assert "aria-sort=" not in re.sub(r"<style>.*?</style>", "", plain, flags=re.DOTALL)
    top = re.findall(r"^(?:<h2>[^<]*</h2>)<div class=\"scroll\"[^>]*><table>", page, flags=re.MULTILINE)
    assert len(top) == 4  # the tables that are sorted stand right in <main>
    assert all(f"<h2>{name}</h2>" in page for name in ("Quality", "Differences", "Where evidence is lost", "Costs"))
