from __future__ import annotations

import json
from importlib import metadata

import pytest

from drillrank import errors


def test_each_error_is_ours_and_a_builtin():
    kinds = {errors.InvalidInput: ValueError, errors.UnknownModel: ValueError, errors.MissingExtra: ImportError}
    for kind, builtin in {**kinds, errors.LLMFailure: Exception}.items():
        assert issubclass(kind, errors.DrillrankError)
        assert issubclass(kind, builtin)


def test_of_warnings_the_last_ten_thousand_are_remembered():
    warned = errors.WarnOnce()
    assert len(warned.new("outdated", range(30_000))) == 30_000
    assert warned.new("outdated", range(20_000, 30_000)) == []
    assert warned.new("outdated", [0, 19_999]) == [0, 19_999]


WHEEL, GIT = "file:///tmp/drillrank-0.1.0-py3-none-any.whl", "https://a.test/d.git"


@pytest.mark.parametrize(
    ("noted", "after"),
    [
        (None, ""),  # from an index
        ({"url": WHEEL, "archive_info": {}}, f" @ {WHEEL}"),
        ({"url": GIT, "vcs_info": {"vcs": "git", "commit_id": "1"}}, f" @ git+{GIT}"),
    ],
)
def test_what_installs_an_extra_comes_from_where_the_distribution_came(monkeypatch, noted, after):
    monkeypatch.setattr(metadata.PathDistribution, "read_text", lambda *_: noted and json.dumps(noted))
    assert errors.install_command("files") == f'pip install "drillrank[files]{after}"'
