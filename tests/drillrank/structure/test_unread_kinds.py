"""Kinds of files that are not read: what is said about them."""

from __future__ import annotations

import pytest

from drillrank import read_document
from drillrank.errors import InvalidInput
from drillrank.structure.unread_kinds import describe_unread

CONTENTS = {
    "image.md": (b"\x89PNG\r\n\x1a\n\0\0", "is an image (PNG)"),
    "photo.txt": (b"\xff\xd8\xff\xe0\0\x10JFIF", "is an image (JPEG)"),
    "film.md": (b"\0\0\0\x18ftypmp42\0\0", "is a video (MP4)"),
    "sound.md": (b"RIFF\0\0\0\0WAVEfmt ", "is an audio file (WAV)"),
    "backup.md": (b"PK\x03\x04\x14\0\0\0", "is an archive (ZIP)"),
    "backup.tar": (b"a" * 100 + b"\0" * 157 + b"ustar\0" + b"\0" * 100, "is an archive (TAR)"),
    "plugin.whl": (b"PK\x03\x04\x14\0\0\0", "is a package of software (WHL)"),
    "letter.doc": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0", "is an old Word file (DOC)"),
    "talk.ppt": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0", "is an old PowerPoint file (PPT)"),
    "mail.msg": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0", "is an Outlook message (MSG)"),
    "places.md": (b"SQLite format 3\0", "is a database (SQLITE)"),
    "weights.bin": (b"\x80\x02}q\0.", "is a Python pickle"),
    "model.safetensors": (b"\x08\0\0\0\0\0\0\0{}", "is the weights of a model (SAFETENSORS)"),
    "table.parquet": (b"PAR1\x15\0\x15", "is a table of data (PARQUET)"),
    "unknown.xyz": (b"\0\1\2", "is not text"),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_a_file_that_is_not_read_is_named_as_what_it_is(tmp_path, name):
    content, reason = CONTENTS[name]
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(InvalidInput) as error:
        read_document(file)
    assert str(error.value).startswith(f"{file} {reason}")
    assert str(error.value).endswith(".")


@pytest.mark.parametrize("text", ["ID3 is a tag.", "BZh was here", "GGUF files", "MZ is a name", "PK is a doctor"])
def test_a_text_that_begins_like_a_signature_is_read(tmp_path, text):
    file = tmp_path / "note.md"
    file.write_text(text)
    assert read_document(file).text == text


def test_a_text_with_the_ending_of_an_unread_kind_is_read(tmp_path):
    file = tmp_path / "words.dat"
    file.write_text("The rent is nine hundred euros.")
    assert "nine hundred" in read_document(file).text


def test_advice_says_what_to_do():
    assert describe_unread("a.doc", b"") == "is an old Word file (DOC), which drillrank does not read: save it as DOCX."
    assert describe_unread("notes.md", b"# Notes") is None
    assert describe_unread("noending", b"") is None
