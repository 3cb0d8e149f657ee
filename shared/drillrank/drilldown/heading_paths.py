"""Find the heading path of each section in the runs of a stored document."""

from __future__ import annotations

from drillrank.structure import Document, Section, breadcrumb
from drillrank.structure.stored_chunks import HeadingPath
from drillrank.structure.text_runs import TextRun


class HeadingPaths:
    """Finds the heading paths of the sections of one document, run by run.

    Args:
        separator: Text between the headings of a joined path. A heading may contain it: paths of sections in earlier
            runs are remembered, and others are split at it.
    """

    def __init__(self, separator: str) -> None:
        self._separator = separator
        self._path_by_joined: dict[str, HeadingPath] = {}

    def find_paths(self, run: TextRun, document: Document) -> dict[Section, HeadingPath]:
        """Return the path of each section of a parsed run."""
        if isinstance(run.path, tuple):
            return _find_visible_paths(run, run.path, document)
        stored_path = run.path
        paths = [section.path for section in document.sections()]
        has_whole_path = any(len(path) > 1 and breadcrumb(path, self._separator) == stored_path for path in paths)
        if paths and paths[0] and has_whole_path:
            stored_path = ""
        for inner_path in paths:
            path = self._join(stored_path, inner_path)
            self._path_by_joined.setdefault(breadcrumb(path, self._separator), path)
        return {section: self._join(stored_path, section.path) for section in document.sections()}

    def split(self, joined_path: str) -> HeadingPath:
        """Return the headings of a joined path."""
        return self._path_by_joined.get(joined_path) or tuple(filter(None, joined_path.split(self._separator)))

    def is_last_heading(self, text: str, path: str | HeadingPath) -> bool:
        """Return True if a text is the last heading of a joined path."""
        heading = self._separator + breadcrumb([text], self._separator)
        return isinstance(path, str) and f"{self._separator}{path}".endswith(heading)

    def _join(self, stored_path: str, inner_path: HeadingPath) -> HeadingPath:
        """Return the path of a section inside a run. The run's path may end with the section's own heading."""
        heading = breadcrumb(inner_path[:1], self._separator)
        if inner_path and stored_path == heading:
            return inner_path
        if inner_path and stored_path.endswith(self._separator + heading):
            stored_path = stored_path[: -len(self._separator + heading)]
        return (*self.split(stored_path), *inner_path)


def _find_visible_paths(run: TextRun, run_path: HeadingPath, document: Document) -> dict[Section, HeadingPath]:
    """Return the headings of each section that chunks contain or name, below those of the run."""
    visible_paths: set[HeadingPath] = set()
    paths: dict[Section, HeadingPath] = {}
    for section in document.sections():
        if section.path and _shows_heading(run, document, section):
            visible_paths.add(section.path)
        inner_path = tuple(
            heading
            for depth, heading in enumerate(section.path, start=1)
            if run.named_headings is None or section.path[:depth] in visible_paths or heading in run.named_headings
        )
        is_repeated = run_path and inner_path and breadcrumb(run_path[-1:]) == breadcrumb(inner_path[:1])
        paths[section] = (*(run_path[:-1] if is_repeated and not run.is_below_path else run_path), *inner_path)
    return paths


def _shows_heading(run: TextRun, document: Document, section: Section) -> bool:
    if run.named_headings is None or section.heading in run.named_headings:
        return True
    headings = [block for block in document.blocks(section) if block.kind == "heading"]
    return any(any(run.list_stored_spans(block.start, block.end)) for block in headings)
