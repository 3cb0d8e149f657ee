"""Answers, passages and languages that `check_support` refuses."""

from __future__ import annotations

from drillrank import check_support
from tests.drillrank.helpers import refuses

TEXT = "Basel is a town on the Rhine."
test_input_that_cannot_be_checked_is_refused = refuses(
    *(
        (lambda language=language: check_support("A town.", [TEXT], language=language), "language must be one of")
        for language in ("klingon", "", None, 3)
    ),
    *(
        (lambda answer=answer: check_support(answer, [TEXT]), "answer must be a string")
        for answer in (None, 3, b"text", ["a"])
    ),
    (lambda: check_support("A town.", [3]), "got 3"),
)
