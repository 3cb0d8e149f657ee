"""Bytes of text files: UTF-8, declared encodings, legacy encodings that are guessed, and what is not text."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.structure import read_document
from drillrank.structure.encodings import decode_text

GUESSED = {
    "cp1252": [
        "Die Straße ist “lang”.",
        "Café",
        "El niño pagó la pensión mañana.",
        "Tenant’s fee is £900 – “monthly”.",
    ],
    "cp1250": ["Najemca płaci czynsz każdego miesiąca.", "Nájemce platí nájemné každý měsíc v pořádku."],
    "iso8859_2": ["Zażółć gęślą jaźń", "A bérlő minden hónapban fizet, és őszintén köszönjük."],
    "mac_roman": ["Größe und Straße", "La società più bella è qui", "Le bail est résilié à l’échéance."],
    "cp850": ["Größe: 12 m", "La città è più bella."],
    "cp1251": ["Арендатор платит 900 рублей.", "Привет", "ДОГОВОР АРЕНДЫ", "Орендар сплачує 900 гривень щомісяця."],
    "koi8_r": ["Арендатор платит 900 рублей.", "Договор аренды", "Москва, 2020 г."],
    "cp866": ["Арендатор платит 900 рублей.", "ДОГОВОР АРЕНДЫ"],
    "iso8859_5": ["Арендатор платит 900 рублей.", "Съешь ещё этих мягких булок."],
    "cp1253": ["Ο μισθωτής πληρώνει 900 ευρώ.", "Καλημέρα κόσμε"],
    "cp1254": ["Kiracı her ay kirayı öder.", "Işık ve gölge, ağaç değil"],
    "cp1255": ["השוכר משלם כל חודש", "שלום עולם"],
    "cp1256": ["يدفع المستأجر كل شهر", "مرحبا بالعالم"],
    "cp1257": ["Nuomininkas moka kiekvieną mėnesį už šį būstą."],
    "cp874": ["ผู้เช่าจ่ายค่าเช่าทุกเดือน", "สวัสดีชาวโลก"],
    "shift_jis": ["賃料は月額九百円です。", "東京", "カタカナとひらがな"],
    "euc_jp": ["賃料は月額九百円です。", "こんにちは世界", "契約期間は二年とする。"],
    "gbk": ["租金每月九百元。", "北京", "房屋租赁合同", "甲方和乙方"],
    "big5": ["租金每月九百元。", "合約期限為兩年", "國立臺灣大學"],
    "euc_kr": ["임대료는 월 900원입니다.", "서울", "보증금은 반환된다"],
}


@pytest.mark.parametrize(("encoding", "text"), [(name, text) for name, texts in GUESSED.items() for text in texts])
def test_short_texts_in_legacy_encodings_are_read_right(encoding, text):
    decoded, [warning] = decode_text(text.encode(encoding), may_declare=False)
    assert decoded == text
    assert warning.startswith("is not UTF-8: it is read as ")


@pytest.mark.parametrize("encoding", ["cp1252", "cp1251", "shift_jis", "gbk"])
def test_the_warning_names_the_file_and_the_encoding(tmp_path, encoding):
    file = tmp_path / "a.txt"
    file.write_bytes(GUESSED[encoding][0].encode(encoding))
    name = {"cp1252": "windows-1252", "cp1251": "windows-1251", "shift_jis": "cp932"}.get(encoding, encoding)
    with pytest.warns(DrillrankWarning, match=rf"a\.txt is not UTF-8: it is read as {name}, which is a guess"):
        assert read_document(file).text == GUESSED[encoding][0]


def test_a_long_text_is_decoded_whole():
    text = "ASCII alone.\n" * 50_000 + "Der Mieter trägt die Kosten für Öl.\r\n" * 500
    assert decode_text(text.encode("cp1252"), may_declare=False)[0] == text


@pytest.mark.parametrize("text", ["Größe", "Арендатор платит", "東京", "plain", "\ufefftext"])
def test_utf8_is_read_without_a_warning(text):
    for may_declare in (True, False):
        assert decode_text(text.encode("utf-8"), may_declare=may_declare) == (text.removeprefix("\ufeff"), ())


@pytest.mark.parametrize(
    ("declaration", "encoding", "text"),
    [
        ("<meta charset={}>", "koi8-r", "да"),
        ("<meta http-equiv=a content='text/html; charset={}'>", "iso-8859-2", "łó"),
        ("<?xml version='1.0' encoding='{}'?>", "shift_jis", "東"),
        ("<meta charset='{}'>", "x-sjis", "東京"),
        ("<meta charset={}>", "gb2312", "镕"),  # beyond GB 2312: read as GB 18030, as browsers do
        ("<meta charset={}>", "latin1", "“a”"),
        ("<meta charset={}>", "iso-2022-jp", "東京"),
        ("\\usepackage[{}]{{inputenc}}", "latin9", "12 €"),
        ("# -*- coding: {} -*-", "cp1250", "Łódź"),
        ('@charset "{}";', "windows-1257", "ąč"),
    ],
)
def test_a_declared_encoding_comes_before_a_guess(declaration, encoding, text):
    codec = {"x-sjis": "shift_jis", "gb2312": "gbk", "latin1": "cp1252", "latin9": "iso8859_15"}.get(encoding, encoding)
    content = f"{declaration.replace('{{', '{').replace('}}', '}').replace('{}', encoding, 1)}\n{text}"
    assert decode_text(content.encode(codec), may_declare=True) == (content, ())


def test_utf8_comes_before_a_declared_encoding():
    text = "<meta charset=iso-8859-1><p>Größe"
    assert decode_text(text.encode(), may_declare=True) == (text, ())


def test_a_wrong_declaration_is_not_believed():
    for name in ("utf-8", "shift_jis", "us-ascii", "klingon"):
        text = f"<meta charset={name}><p>Größe über Straße"
        assert decode_text(text.encode("cp1252"), may_declare=True)[0] == text


@pytest.mark.parametrize(
    "name",
    [
        *("zlib", "bz2", "rot13", "hex", "base64", "uu", "quopri", "idna", "punycode", "undefined", "unicode_escape"),
        *("raw_unicode_escape", "utf-7", "mbcs", "oem", "utf-16", "utf-32", "charmap", "palmos", "nosuch"),
    ],
)
def test_only_text_encodings_are_declared(name):
    text = f"<html><meta charset={name}><p>für b-c\\x41 {'b-c ' * 20}</p>"
    assert decode_text(text.encode("cp1252", "replace"), may_declare=True)[0].endswith(
        "<p>für b-c\\x41 " + "b-c " * 20 + "</p>"
    )
    plain = f"<meta charset={name}><p>a</p>"
    assert decode_text(plain.encode("utf-8"), may_declare=True) == (plain, ())


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize(
    "text", ["The Rhine flows.\r\n", "Größe", "Арендатор платит 900", "東京 is a town\n", "租金每月 900 元。"]
)
def test_wide_encodings_need_no_byte_order_mark(encoding, text):
    assert decode_text(text.encode(encoding), may_declare=False)[0] == text
    marked = decode_text(f"\ufeff{text}".encode(encoding), may_declare=False)
    assert (marked[0].removeprefix("\ufeff"), marked[1]) == (text, ())


@pytest.mark.parametrize(
    "content",
    [
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0" + bytes(range(256)),
        b"\x7fELF\2\1\1\0" + bytes(range(255, 0, -1)) * 4,
        bytes(range(1, 256)),
        b"text\0text",
        b"GIF89a\1\2\xff\xfe\x00",
    ],
)
def test_what_is_not_text_is_refused(content):
    with pytest.raises(InvalidInput, match=r"^is not text\.$"):
        decode_text(content, may_declare=False)


def test_damaged_utf8_stays_utf8():
    content = "Größe über Straße, für März".encode() + b"\xff"
    text, [warning] = decode_text(content, may_declare=False)
    assert text == "Größe über Straße, für März\ufffd"
    assert warning == "is not UTF-8: unreadable bytes are shown as \ufffd."


@given(st.binary(max_size=200), st.booleans())
def test_all_bytes_are_text_or_refused(content, may_declare):
    for head in (b"", b"<meta charset=shift_jis>", b"<meta charset=idna>", b"\xff\xfe", b"\x1b$B"):
        with contextlib.suppress(InvalidInput):
            text, warnings = decode_text(head + content, may_declare=may_declare)
            assert isinstance(text, str)
            assert all(warning.endswith(".") for warning in warnings)
