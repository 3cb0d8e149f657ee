from __future__ import annotations

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
