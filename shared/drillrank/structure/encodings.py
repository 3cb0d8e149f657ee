"""Text encodings: the bytes of a file become characters."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections import Counter

from drillrank.data import read_table
from drillrank.errors import InvalidInput
from drillrank.structure.encoding_detection import detect_encoding

_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")  # bytes that no text in a Latin encoding contains
_MARKUP_DECLARATION = re.compile(
    rb"""<(?:meta\b[^<>]{0,200}?\bcharset|\?xml\b[^<>]{0,200}?\bencoding)\s{0,9}=\s{0,9}["']?\s{0,9}([\w.:-]{1,40})""",
    re.IGNORECASE,
)
_OTHER_DECLARATION = re.compile(  # of LaTeX, style sheets, and the comments that Python and editors read
    rb"""\\usepackage\[([\w-]{1,40})\]\{inputenc\}|@charset\s{1,9}["']([\w.:-]{1,40})|coding[:=]\s{0,9}([\w.:-]{1,40})"""
)
_HEAD_BYTES = 1024
_BOMS = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"}  # before those of UTF-16, which begin alike
_BOMS |= {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_MIN_UTF8_SHARE = 0.5  # of the characters beyond ASCII; a text with more of them is damaged UTF-8
_MIN_DECLARED_SHARE = 0.9  # of the characters beyond ASCII; a text with fewer of them has another encoding
_MAX_UNPRINTABLE_SHARE = 0.02
_MIN_WIDE_SHARE = 0.6  # of the characters; UTF-16 has characters of few scripts


def decode_text(content: bytes, *, may_declare: bool) -> tuple[str, tuple[str, ...]]:
    """Decode the bytes of a text file.

    Without a byte order mark, the encoding is UTF-8 if it fits, else the declared one, else the likeliest one.

    Args:
        content: Content of the file.
        may_declare: True if the file may declare its encoding as HTML and XML do.

    Returns:
        The text, and warnings about what could not be decoded; each continues the file's name.

    Raises:
        InvalidInput: The file is not text; the message continues its name.
    """
    for mark, encoding in _BOMS.items():
        if content.startswith(mark):
            return _decode_damaged(content, encoding)
    if b"\0" in content:
        return _decode_wide(content)
    declared = _find_declared_encoding(content, may_declare)
    if b"\x1b" in content:  # ISO-2022 writes all characters in seven bits
        text = _decode_strictly(content, declared or ("iso2022_jp_2" if b"\x1b$" in content else "utf-8-sig"))
        if text is not None and declared:
            return text, ()
        if text is not None and "\x1b" not in text:
            return text, (_guess_warning("iso2022_jp_2"),)
    text = _decode_strictly(content, "utf-8-sig")
    if text is not None:
        return text, ()
    if declared and _has_few_errors(content, declared, _MIN_DECLARED_SHARE):
        return content.decode(declared, errors="replace"), ()
    if _BINARY.search(content):
        raise InvalidInput("is not text.")
    if _has_few_errors(content, "utf-8-sig", _MIN_UTF8_SHARE):
        return _decode_damaged(content, "utf-8-sig")
    guess = detect_encoding(content)
    text = _decode_strictly(content, "gb18030" if guess == "gbk" else guess)
    if text is not None:
        return text, (_guess_warning(guess),)
    replacement_warning = "unreadable bytes are shown as \ufffd."
    return content.decode(guess, errors="replace"), (f"{_guess_warning(guess)[:-1]}, and {replacement_warning}",)


def _decode_strictly(content: bytes, encoding: str) -> str | None:
    """Return the text; None if the encoding does not fit."""
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        return None


def _decode_damaged(content: bytes, encoding: str) -> tuple[str, tuple[str, ...]]:
    """Return the text of a known encoding with U+FFFD for what cannot be decoded, and a warning if there is such."""
    text = _decode_strictly(content, encoding)
    if text is not None:
        return text, ()
    name = encoding.upper().removesuffix("-SIG")
    return content.decode(encoding, errors="replace"), (f"is not {name}: unreadable bytes are shown as \ufffd.",)


def _decode_wide(content: bytes) -> tuple[str, tuple[str, ...]]:
    """Return the text of UTF-16 or UTF-32 without a byte order mark.

    Raises:
        InvalidInput: The content is in neither.
    """
    for size, encodings in ((4, ("utf-32-le", "utf-32-be")), (2, ("utf-16-le", "utf-16-be"))):
        texts = [text for encoding in encodings if (text := _decode_strictly(content, encoding)) is not None]
        texts = [text for text in texts if _is_readable(text)]
        if size == 2:  # most zero bytes are halves of ASCII characters
            texts = [text for text in texts if 3 * _count_ascii(text) >= content.count(0)]
        if texts:
            # Bytes in the wrong order turn spaces and digits into signs of other scripts.
            text = max(texts, key=_count_ascii)
            warning = f"has no byte order mark: it is read as UTF-{8 * size}. Save it as UTF-8 if this is wrong."
            return text, (warning,)
    raise InvalidInput("is not text.")


def _count_ascii(text: str) -> int:
    """Return the number of ASCII characters in a text."""
    return len(text.encode("ascii", errors="ignore"))


def _is_readable(text: str) -> bool:
    """Return True if a text has few control characters and most characters are of few scripts."""
    counts = Counter(text)
    n_unprintable = sum(
        n
        for character, n in counts.items()
        if unicodedata.category(character) in ("Cc", "Cn", "Co", "Cs") and character not in "\t\n\r\x0c"
    )
    # The bytes of a picture are characters of a hundred blocks; those of a language are of a few.
    blocks: Counter[int] = Counter()
    for character, n in counts.items():
        blocks[-1 if "\u2e80" <= character <= "\ud7ff" else ord(character) >> 8] += n
    n_usual = sum(n for _, n in blocks.most_common(3))
    return n_unprintable <= _MAX_UNPRINTABLE_SHARE * len(text) and n_usual >= _MIN_WIDE_SHARE * len(text)


def _has_few_errors(content: bytes, encoding: str, min_share: float) -> bool:
    """Return True if at least this share of the characters beyond ASCII can be decoded."""
    text = content.decode(encoding, errors="replace")
    n_errors = text.count("\ufffd")
    n_characters = len(text) - _count_ascii(text)
    return n_characters - n_errors >= min_share * n_characters


def _guess_warning(encoding: str) -> str:
    """Return the warning that an encoding was guessed."""
    name = encoding.replace("_", "-")
    name = f"windows-{name[2:]}" if name.startswith("cp125") else name
    return f"is not UTF-8: it is read as {name}, which is a guess. Save it as UTF-8 if this is wrong."


def _find_declared_encoding(content: bytes, may_declare: bool) -> str:
    """Return the encoding that a file declares, as browsers read it; an empty string if it declares no other one."""
    head = content[:_HEAD_BYTES]
    declaration = (_MARKUP_DECLARATION.search(head) if may_declare else None) or _OTHER_DECLARATION.search(head)
    if declaration is None:
        return ""
    label = next(filter(None, declaration.groups())).decode().lower()
    codec_by_name = read_table("text_encodings.tsv")
    try:
        name = codecs.lookup(codec_by_name.get(label, label)).name
    except LookupError:
        return ""
    return codec_by_name.get(name, "")
