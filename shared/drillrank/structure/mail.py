"""E-mail (EML) and mailboxes (MBOX): a message becomes a section with its subject, senders, text and attachments.

The standard library parses the messages. Some of its steps are quadratic, so headers and nesting are bounded first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from email import message_from_bytes
from email.header import decode_header
from email.message import Message

from drillrank import limits
from drillrank.errors import InvalidInput
from drillrank.structure.encodings import decode_text
from drillrank.structure.formats import ConvertedText
from drillrank.structure.markdown import heading, html_as_markdown, prose

_SHOWN_HEADERS = ("From", "To", "Cc", "Date")
_MAX_HEADER_CHARACTERS = 4_000
_MAX_NESTED_LINES = 20_000_000  # lines times nested parts: the parser asks every part about every line
_MAX_DEPTH = 50
# The parser takes quadratic time on parameters of headers, so long lists of them are cut.
_HEADER_WITH_PARAMETERS = re.compile(rb"(?im)^content-(?:type|disposition)[ \t]*:(?:[^\r\n]|\r?\n[ \t])*")
_NESTING_PART = re.compile(rb"(?i)\b(?:multipart|message)/")
_FIRST_HEADER = re.compile(rb"(?i)\s*(?:From [^\r\n]*\r?\n)?(?:[\w-]{1,100}[ \t]*:|>From )")
_MAILBOX_START = re.compile(rb"(?m)^From [^\r\n]*(?:\r?\n(?=[\w-]{1,100}:)|\d{4}\r?\n(?=\r?\n))")
_QUOTED_FROM = re.compile(rb"(?m)^>(>*From )")
_FORMAT_FLOWED = "flowed"
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")


def convert_eml(content: bytes) -> ConvertedText:
    """Convert an e-mail to Markdown.

    Raises:
        InvalidInput: The file is not an e-mail or nested too deeply; the message continues its name.
    """
    if _FIRST_HEADER.match(content) is None:
        raise InvalidInput("cannot be read as an e-mail: it does not begin with headers.")
    return _convert_messages([content], len(content))


def convert_mbox(content: bytes) -> ConvertedText:
    """Convert a mailbox to Markdown: one section for each message.

    Raises:
        InvalidInput: The file is not a mailbox, or too large; the message continues its name.
    """
    starts = [*_MAILBOX_START.finditer(content)]
    if not starts or content[: starts[0].start()].strip():
        raise InvalidInput("cannot be read as a mailbox: it does not begin with a line 'From '.")
    ends = [*(start.start() for start in starts[1:]), len(content)]
    messages = [content[start.end() : end] for start, end in zip(starts, ends, strict=True)]
    return _convert_messages([_QUOTED_FROM.sub(rb"\1", message) for message in messages], len(content))


def _convert_messages(messages: list[bytes], size: int) -> ConvertedText:
    """Convert messages to Markdown, in order."""
    blocks = (block for message in messages for block in _convert_message(_parse(message), 1))
    try:
        text = "\n\n".join(block for block in limits.check_parts(blocks, size) if block.strip())
    except RecursionError as problem:
        raise InvalidInput("cannot be read as an e-mail: its parts are nested too deeply.") from problem
    except InvalidInput as problem:
        raise InvalidInput(f"cannot be read as an e-mail: {problem}.") from problem
    return ConvertedText(text)


def _parse(content: bytes) -> Message:
    """Parse a message whose nesting is within limits."""
    n_nested = sum(1 for _ in _NESTING_PART.finditer(content))
    if n_nested * content.count(b"\n") > _MAX_NESTED_LINES:
        raise InvalidInput("it has too many parts")
    return message_from_bytes(_HEADER_WITH_PARAMETERS.sub(lambda header: header[0][:_MAX_HEADER_CHARACTERS], content))


def _convert_message(message: Message, level: int) -> Iterator[str]:
    """Yield the Markdown blocks of a message: subject, headers, text, attachments."""
    yield heading(level, _header(message, "Subject") or "(no subject)")
    header_lines = [f"{name}: {value}" for name in _SHOWN_HEADERS if (value := _header(message, name))]
    # Two spaces end a line in Markdown.
    yield "  \n".join(map(prose, header_lines))
    attachments: list[str] = []
    parts = [*_convert_part(message, level, attachments, 0)]
    if attachments:  # above the parts, or the line would belong to the last heading among them
        yield f"Attachments: {', '.join(attachments)}"
    yield from parts


def _convert_part(part: Message, level: int, attachments: list[str], depth: int) -> Iterator[str]:
    """Yield the Markdown blocks of a part, and collect the names of attachments.

    Args:
        part: Message or part of one.
        level: Level of the heading above.
        attachments: Names of attachments; this function adds to it.
        depth: Number of parts around this one.
    """
    if depth > _MAX_DEPTH:
        raise InvalidInput("its parts are nested too deeply")
    kind = part.get_content_type()
    children = [child for child in part.get_payload() if isinstance(child, Message)] if part.is_multipart() else []
    if kind == "multipart/alternative":
        children = _choose_alternative(children)
    if kind == "message/delivery-status":
        for child in children:
            yield "  \n".join(prose(f"{name}: {_header(child, name)}") for name in child)
    elif kind.startswith("message/") and children:
        attachments += filter(None, [_file_name(part)])
        for child in children:
            yield from _convert_message(child, level + 1)
    elif children:
        for child in children:
            yield from _convert_part(child, level, attachments, depth + 1)
    else:
        yield from _convert_leaf(part, kind, level, attachments)


def _choose_alternative(parts: list[Message]) -> list[Message]:
    """Return the plain text among versions of one text, in a list; without one, the last that can be read."""
    plain = [part for part in parts if part.get_content_type() == "text/plain" and _decode_part(part).strip()]
    readable = [part for part in parts if part.is_multipart() or part.get_content_maintype() == "text"]
    return [*plain, *reversed(readable), *parts][:1]


def _convert_leaf(part: Message, kind: str, level: int, attachments: list[str]) -> Iterator[str]:
    """Yield the Markdown blocks of a text, or note the name of an attachment."""
    name = _file_name(part)
    if name or part.get_content_disposition() == "attachment":
        attachments.append(name or f"(a file without a name, {kind[:100]})")
    if part.get_content_maintype() not in ("text", "multipart", "message"):  # the latter are broken
        return
    if name:
        yield heading(level + 1, name)
    text = _decode_part(part)
    if kind == "text/html":
        yield from html_as_markdown(text)
    else:
        if str(part.get_param("format", "")).lower() == _FORMAT_FLOWED:
            text = _join_flowed_lines(text, str(part.get_param("delsp", "")).lower() == "yes")
        yield from ("\n".join(map(prose, block.split("\n"))) for block in _BLANK_LINES.split(text.strip("\n")))


def _decode_part(part: Message) -> str:
    """Return the text of a part. An unknown encoding is guessed."""
    content = part.get_payload(decode=True)
    if not isinstance(content, bytes):
        return ""
    charset = part.get_content_charset() or ""
    try:
        text = content.decode(charset or "utf-8")
    except (LookupError, UnicodeError, ValueError):
        try:
            text = decode_text(content, may_declare=part.get_content_type() == "text/html")[0]
        except InvalidInput:
            text = content.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")


def _join_flowed_lines(text: str, without_spaces: bool = False) -> str:
    r"""Join the lines of a paragraph that end with a space, which may not be part of the text (RFC 3676).

    >>> _join_flowed_lines("One \ntwo.\nThree.\n-- \nAnn")
    'One two.\nThree.\n-- \nAnn'
    """
    joined: list[str] = []
    for line in text.split("\n"):
        if joined and joined[-1].endswith(" ") and joined[-1] != "-- " and not line.startswith(">") and line != "-- ":
            joined[-1] = (joined[-1][:-1] if without_spaces else joined[-1]) + line
        else:
            joined.append(line)
    return "\n".join(joined)


def _file_name(part: Message) -> str:
    try:
        return " ".join(_decode_words(str(part.get_filename() or "")).split())
    except (LookupError, UnicodeError, ValueError, TypeError):  # from encodings that the file names
        return ""


def _header(message: Message, name: str) -> str:
    """Return a header on one line; an empty string if it is missing."""
    return " ".join(_decode_words(str(message.get(name, ""))).split())


def _decode_words(value: str) -> str:
    """Decode the encoded words of a header.

    >>> _decode_words("=?utf-8?q?Gr=C3=BC=C3=9Fe?= from Ann")
    'Grüße from Ann'
    """
    value = value[:_MAX_HEADER_CHARACTERS]
    try:
        words = decode_header(value)
    except (ValueError, LookupError):  # of broken Base64
        return value
    return "".join(word if isinstance(word, str) else _decode_word(word, charset) for word, charset in words)


def _decode_word(word: bytes, charset: str | None) -> str:
    try:
        return word.decode(charset or "ascii")
    except (LookupError, UnicodeError, ValueError):
        return word.decode("utf-8", errors="replace")
