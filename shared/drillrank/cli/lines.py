"""Line numbers of evidence in text files, as an editor counts them."""

from __future__ import annotations

from drillrank.cli.corpus import FileCorpus
from drillrank.cli.sources import InputFile
from drillrank.errors import DrillrankError
from drillrank.structure.cutting import trimmed_end
from drillrank.structure.formats import find_format_by_file_name, find_format_of_file


def number_lines(text: str, start: int, end: int) -> tuple[int, int]:
    r"""Return the numbers of the first and the last line of a span, starting at 1.

    A line ends with a line feed, a carriage return or both.

    >>> number_lines("One.\r\nTwo,\r\nstill two.\r\n\r\nThree.", 6, 24)
    (2, 3)
    """
    first = 1 + _count_line_ends(text, 0, start)
    return first, first + _count_line_ends(text, start, trimmed_end(text, start, end))


def _count_line_ends(text: str, start: int, end: int) -> int:
    ends_in_two_characters = text.count("\r\n", start, end)
    return text.count("\n", start, end) + text.count("\r", start, end) - ends_in_two_characters


class LineNumbers:
    """Line numbers of spans in the files of a corpus. The text of each document is read once.

    Args:
        corpus: Corpus with the parsed documents of the files.
    """

    def __init__(self, corpus: FileCorpus) -> None:
        self._corpus = corpus
        self._text_by_id: dict[str, str | None] = {}

    def find(self, document_id: str, span: tuple[int, int] | None) -> tuple[int, int] | None:
        """Return the first and the last line of a span; None if the file is not text, as a PDF is not.

        Args:
            document_id: Id of the file's document.
            span: Start and end in characters of the document's text; None if they are unknown.
        """
        if span is None:
            return None
        if document_id not in self._text_by_id:
            is_text = is_text_file(self._corpus.files[document_id])
            self._text_by_id[document_id] = self._corpus.document(document_id).text if is_text else None
        text = self._text_by_id[document_id]
        return None if text is None else number_lines(text, *span)

    def find_pages(self, document_id: str, span: tuple[int, int]) -> tuple[int, int] | None:
        """Return the numbers of the first and the last page of a span; None if the file has no pages."""
        return self._corpus.document(document_id).page_numbers(*span)

    def find_section(self, document_id: str, span: tuple[int, int]) -> tuple[str, ...]:
        """Return the headings from the root to the section in which a span begins."""
        sections = self._corpus.document(document_id).sections()
        return next((section.path for section in sections if section.start <= span[0] < section.end), ())


def is_text_file(file: InputFile) -> bool:
    """Return True if the text of a file's document is the decoded file, so that both have the same lines.

    Other files, such as PDF and DOCX, are converted. A file that cannot be read any more is not text.
    """
    named = find_format_by_file_name(file.path.name)
    if named is not None and named.convert is not None:  # content of such a file need not be read
        return False
    try:
        file_format = find_format_of_file(file.path.name, file.read())
    except DrillrankError:
        return False
    return file_format is None or file_format.convert is None
