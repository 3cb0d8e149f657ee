from __future__ import annotations

from importlib import metadata

import pytest

from drillrank import errors


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (errors.InvalidInput, ValueError),
        (errors.UnknownModel, ValueError),
        (errors.MissingExtra, ImportError),
        (errors.LLMFailure, Exception),
    ],
)
def test_each_error_is_ours_and_a_builtin(kind, builtin):
    assert issubclass(kind, errors.DrillrankError)
    assert issubclass(kind, builtin)


def test_of_warnings_the_last_ten_thousand_are_remembered():
    warned = errors.WarnOnce()
    assert len(warned.new("outdated", range(30_000))) == 30_000
    assert warned.new("outdated", range(20_000, 30_000)) == []
    assert warned.new("outdated", [0, 19_999]) == [0, 19_999]


@pytest.mark.parametrize(
    ("noted", "after"),
    [
        (None, ""),  # from an index
        ('{"url": "file:///tmp/drillrank-0.1.0-py3-none-any.whl", "archive_info": {}}', " @ file:///tmp/drillrank-0.1.0-py3-none-any.whl"),
        ('{"url": "https://a.test/d.git", "vcs_info": {"vcs": "git", "commit_id": "1"}}', " @ git+https://a.test/d.git"),
    ],
)  # fmt: skip
def test_what_installs_an_extra_comes_from_where_the_distribution_came(monkeypatch, noted, after):
    monkeypatch.setattr(metadata.PathDistribution, "read_text", lambda self, name: noted)
    assert errors.install_command("files") == f'pip install "drillrank[files]{after}"'
