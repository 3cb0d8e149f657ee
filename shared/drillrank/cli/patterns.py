"""Patterns of the options `--include` and `--exclude`, which select files by their paths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from drillrank.errors import InvalidInput, warn
from drillrank.files import compile_rule

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


def select_paths(paths: Sequence[str], include: Iterable[str], exclude: Iterable[str]) -> list[bool]:
    """Return, for each path, True if a file with that path is to be read.

    A path is selected if it matches `include` and does not match `exclude`. Without `include`, every path matches it.

    Args:
        paths: Paths of files, relative to the folder in which they were found, with `/` between the parts.
        include: Patterns as in a `.gitignore`. The last one that matches a path decides; one with `!` takes back.
        exclude: Patterns of the same kind.

    Raises:
        InvalidInput: A pattern is empty or a comment, or matching it could take more than linear time.

    Warns:
        DrillrankWarning: A pattern matches no path.

    >>> select_paths(["a.md", "drafts/b.md", "c.txt"], ["*.md"], ["drafts/"])
    [True, False, False]
    """
    include, exclude = list(include), list(exclude)
    is_included = _match_paths("--include", include, paths) if include else [True] * len(paths)
    is_excluded = _match_paths("--exclude", exclude, paths)
    return [included and not excluded for included, excluded in zip(is_included, is_excluded, strict=True)]


def _match_paths(option: str, patterns: Sequence[str], paths: Sequence[str]) -> list[bool]:
    """Return, for each path, True if the patterns of an option match it."""
    is_matched = [False] * len(paths)
    for pattern in patterns:
        rule = _compile_pattern(option, pattern)
        # None if the pattern does not match; False if it matches and begins with an exclamation mark
        decisions = [rule.check_file(path).include for path in paths]
        if all(decision is None for decision in decisions):
            warn(
                f"{option} {pattern!r:.200} matches no file. Check its spelling, and write it "
                "relative to the folder that you named: in the folder 'docs', the pattern of docs/drafts/a.md is "
                "'drafts/a.md'."
            )
        is_matched = [old if new is None else new for old, new in zip(is_matched, decisions, strict=True)]
    return is_matched


def _compile_pattern(option: str, pattern: str) -> GitIgnoreSpec:
    """Return the rule of a pattern."""
    rule = compile_rule(pattern)
    if rule is None or all(part.include is None for part in rule.patterns):
        raise InvalidInput(
            f"{option} must be a pattern such as '*.md' or 'drafts/', with at most three asterisks in a name, got "
            f"{pattern!r:.200}."
        )
    return rule
