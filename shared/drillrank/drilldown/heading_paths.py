"""Find the heading path of each section in the runs of a stored document."""

from __future__ import annotations

from drillrank.structure import Document, Section, breadcrumb
from drillrank.structure.stored_chunks import HeadingPath
from drillrank.structure.stored_runs import StoredRun


class HeadingPaths:
    """Finds the heading paths of the sections of one document, run by run.

    Args:
        separator: Text between the headings of a joined path. A heading may contain it: paths of sections in earlier
            runs are remembered, and others are split at it.
    """

    def __init__(self, separator: str) -> None:
        self._separator = separator
        self._path_by_joined: dict[str, HeadingPath] = {}

    def find_paths(self, run: StoredRun, document: Document) -> dict[Section, HeadingPath]:
        """Return the path of each section of a parsed run."""
        if isinstance(run.path, tuple):
            return _find_visible_paths(run, run.path, document)
        inner_paths = [section.path for section in document.sections()]
        path_above = self._find_path_above(run.path, document)
        for inner_path in inner_paths:
            path = self._join(run.path, path_above, inner_path)
            self._path_by_joined.setdefault(breadcrumb(path, self._separator), path)
        return {section: self._join(run.path, path_above, section.path) for section in document.sections()}

    def _find_path_above(self, stored_path: str, document: Document) -> str | None:
        """Return the joined headings above a run whose stored path contains several of its own headings, or else None.

        A chunk that begins with headings alone has the path of the last of them: its own text is below that.
        """
        inner_paths = [section.path for section in document.sections()]
        if not (inner_paths and inner_paths[0]):
            return None
        if any(len(path) > 1 and breadcrumb(path, self._separator) == stored_path for path in inner_paths):
            return ""
        last_path = _find_last_leading_path(document)
        end = self._separator + breadcrumb(last_path, self._separator)
        return stored_path.removesuffix(end) if len(last_path) > 1 and stored_path.endswith(end) else None

    def split(self, joined_path: str) -> HeadingPath:
        """Return the headings of a joined path."""
        return self._path_by_joined.get(joined_path) or tuple(filter(None, joined_path.split(self._separator)))

    def is_last_heading(self, text: str, path: str | HeadingPath) -> bool:
        """Return True if a text is the last heading of a joined path."""
        heading = self._separator + breadcrumb([text], self._separator)
        return isinstance(path, str) and f"{self._separator}{path}".endswith(heading)

    def _join(self, stored_path: str, path_above: str | None, inner_path: HeadingPath) -> HeadingPath:
        """Return the path of a section inside a run. The run's path may end with the section's own heading."""
        if path_above is None:
            heading = breadcrumb(inner_path[:1], self._separator)
            if inner_path and stored_path == heading:
                return inner_path
            path_above = stored_path.removesuffix(self._separator + heading) if inner_path else stored_path
        return (*self.split(path_above), *inner_path)


def _find_last_leading_path(document: Document) -> HeadingPath:
    """Return the path of the section with the first text, or of the last one without any text."""
    path: HeadingPath = ()
    for section in document.sections():
        path = section.path
        if any(block.kind != "heading" for block in document.blocks(section)):
            break
    return path


def _find_visible_paths(run: StoredRun, run_path: HeadingPath, document: Document) -> dict[Section, HeadingPath]:
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


def _shows_heading(run: StoredRun, document: Document, section: Section) -> bool:
    if run.named_headings is None or section.heading in run.named_headings:
        return True
    headings = [block for block in document.blocks(section) if block.kind == "heading"]
    return any(any(run.list_stored_spans(block.start, block.end)) for block in headings)
