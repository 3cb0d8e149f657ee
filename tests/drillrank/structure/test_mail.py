"""E-mail: subject, senders, text and attachments of messages."""

from __future__ import annotations

import time
from contextlib import suppress
from email.message import EmailMessage

import pytest

from drillrank import read_document
from drillrank.errors import InvalidInput
from drillrank.structure.mail import convert_eml, convert_mbox


def message_of(text: str = "The rent is due.", **headers: str) -> EmailMessage:
    message = EmailMessage()
    for name, value in {"Subject": "Rent", "From": "Ann <ann@example.org>", "To": "bob@example.org", **headers}.items():
        message[name] = value
    message.set_content(text)
    return message


def test_the_subject_is_the_heading(tmp_path):
    file = tmp_path / "a.eml"
    file.write_bytes(bytes(message_of(Date="Mon, 05 May 2031 10:00:00 +0000", Cc="Cem <c@example.org>")))
    document = read_document(file)
    assert [section.path for section in document.sections()] == [("Rent",)]
    for line in ("From: Ann <ann@example.org>", "To: bob@example.org", "Cc: Cem", "Date: Mon, 05 May 2031", "is due."):
        assert line in document.text


def test_plain_text_is_chosen_before_html():
    message = message_of("plain words")
    message.add_alternative("<p>markup words</p>", subtype="html")
    assert "plain words" in convert_eml(bytes(message)).text
    assert "markup words" not in convert_eml(bytes(message)).text


def test_html_alone_is_read_as_a_page():
    message = EmailMessage()
    message["Subject"] = "Offer"
    message.set_content("<h2>Price</h2><p>Nine <b>euros</b>.</p><script>x</script>", subtype="html")
    assert convert_eml(bytes(message)).text.endswith("## Price\n\nNine euros.")


def test_attachments_are_named_and_texts_among_them_read():
    message = message_of()
    message.add_attachment(b"%PDF-1.4", maintype="application", subtype="pdf", filename="lease.pdf")
    message.add_attachment("a,b\n1,2", filename="table.csv", subtype="csv")
    text = convert_eml(bytes(message)).text
    assert "Attachments: lease.pdf, table.csv" in text
    assert "## table.csv\n\na,b\n1,2" in text
    assert "PDF-1.4" not in text


def test_a_forwarded_message_is_a_section_below():
    message = message_of("See below.")
    message.add_attachment(message_of("The inner text.", Subject="First notice"))
    assert "## First notice" in convert_eml(bytes(message)).text
    assert "The inner text." in convert_eml(bytes(message)).text


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        (b"Content-Type: text/plain; charset=iso-8859-1", b"caf\xe9", "café"),
        (b"Content-Type: text/plain; charset=koi8-r", "рента".encode("koi8-r"), "рента"),
        (b"Content-Type: text/plain; charset=x-unknown", "café".encode(), "café"),
        (b"Content-Type: text/plain; charset=utf-8", b"caf\xe9", "caf"),
        (b"Content-Type: text/plain; charset=hex", b"cafe", "cafe"),
        (b"Content-Transfer-Encoding: quoted-printable\nContent-Type: text/plain", b"caf=C3=A9 =\nx", "café x"),
        (b"Content-Type: text/plain\nContent-Transfer-Encoding: base64", b"Y2FmZQ==", "cafe"),
        (b"Content-Type: text/plain\nContent-Transfer-Encoding: base64", b"Y2FmZQ", "cafe"),
        (b"Content-Type: text/plain; format=flowed", b"one \ntwo", "one two"),
        (b"Content-Type: multipart/mixed", b"no boundary", "no boundary"),
        (b"X-Odd: 1", b"# no heading", "\\# no heading"),
    ],
)  # fmt: skip
def test_encodings(headers, body, expected):
    assert expected in convert_eml(b"Subject: a\n" + headers + b"\n\n" + body).text


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (b"=?utf-8?q?Gr=C3=BC=C3=9Fe?=", "Grüße"),
        (b"=?koi8-r?B?8NLJ18XU?= Bob", "Привет Bob"),
        (b"=?x-none?q?abc?=", "abc"),
        (b"=?utf-8?b?!!!?=", "# "),
        (b"two\n lines", "two lines"),
        (b"", "(no subject)"),
        (b"# mark", "# # mark"),
    ],
)
def test_subjects(subject, expected):
    assert expected in convert_eml(b"From: a\nSubject: " + subject + b"\n\nText.").text


def test_a_report_of_delivery_is_read():
    report = (
        b"--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; x\n\nStatus: 5.1.1\nAction: failed\n--b--\n"
    )
    text = convert_eml(b"Subject: Undelivered\nContent-Type: multipart/report;\n boundary=b\n\n" + report).text
    assert "Status: 5.1.1" in text
    assert "Action: failed" in text


def test_a_mailbox_has_a_section_for_each_message():
    box = b"From a@b Mon\nSubject: One\n\nFirst.\n>From here on.\n\nFrom c@d Tue\nSubject: Two\n\nSecond.\n"
    text = convert_mbox(box).text
    assert text.startswith("# One\n\nFirst.")
    assert "\nFrom here on." in text
    assert "# Two\n\nSecond." in text


def test_messages_of_a_mailbox_may_lack_headers():
    box = b"From a@b Mon Jun 01 10:00:00 2009\n\nFirst. \nFrom here on.\n\nFrom c@d Mon Jun 01 2009\n\nSecond.\n"
    text = convert_mbox(box).text
    assert text.count("# (no subject)") == 2
    assert "From here on." in text


HOSTILE = {
    "nested messages": b"Content-Type: message/rfc822\n\n" * 5_000,
    "nested parts": b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (i, i) for i in range(3_000)),
    "many headers": b"A: b\n" * 100_000,
    "parameters": b"Content-Type: text/plain" + b'; a="b' * 100_000 + b"\n\nhi",
    "parts of a name": b"Content-Disposition: attachment" + b'; filename*0="a"' * 50_000 + b"\n\n",
    "encoded words": b"Subject: " + b"=?a?q?" * 100_000 + b"\n\nhi",
    "folded header": b"Subject: a\n" + b" b\n" * 100_000,
    "boundaries": b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\n" * 20_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_time_is_bounded(name):
    start = time.process_time()
    with suppress(InvalidInput):
        convert_eml(HOSTILE[name])
    assert time.process_time() - start < 10


def test_flowed_lines_whose_last_space_is_no_text_are_joined_without_it() -> None:
    content = b"Subject: s\r\nContent-Type: text/plain; format=flowed; delsp=yes\r\n\r\none tw \r\no three\r\n"
    assert "one two three" in convert_eml(content).text
