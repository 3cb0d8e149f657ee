"""Annotations and form fields of PDFs are text, with a label, near their place."""

from __future__ import annotations

import pytest

from drillrank.errors import InvalidInput
from drillrank.structure.pdf import convert_pdf
from tests.hostile_pdfs import shown, stream
from tests.pdf_files import Text, lines, pdf_of, with_annotations

pytest.importorskip("liteparse", reason="needs the extra pdf")
pytest.importorskip("pypdfium2", reason="needs the extra pdf")

LEASE = "The lease of the meadow is for two years and may be renewed by both parties."
BOX = b"/Rect [72 600 300 620] /F 4"
FORM = b"<< /Fields [OWN] >>"


def text_with(*annotations: bytes, form: bytes = b"", page: list[Text] | None = None) -> str:
    pdf = with_annotations(pdf_of([page or lines(LEASE)]), *annotations, form=form)
    return convert_pdf(pdf.content()).text


def widget(entries: bytes) -> bytes:
    return b"<< /Type /Annot /Subtype /Widget %s %s >>" % (entries, BOX)


def test_notes_and_text_boxes():
    note = b"<< /Type /Annot /Subtype /Text /Contents (Board wants three years) %s >>" % BOX
    box = b"<< /Type /Annot /Subtype /FreeText /Contents (Approved by the board) /DA (/R 12 Tf) %s >>" % BOX
    mark = b"<< /Type /Annot /Subtype /Highlight /Contents (Check this) %s >>" % BOX
    text = text_with(note, box, mark)
    assert "\n\nNote: Board wants three years\n" in text
    assert "\n\nText box: Approved by the board\n" in text
    assert "\n\nNote: Check this\n" in text


def test_what_links_and_popups_hold_is_not_repeated():
    link = b"<< /Type /Annot /Subtype /Link /Contents (Go there) %s >>" % BOX
    popup = b"<< /Type /Annot /Subtype /Popup /Contents (Popped) %s >>" % BOX
    assert text_with(link, popup) == f"{LEASE}\n"


@pytest.mark.parametrize("form", [b"", FORM])
def test_fields_without_appearance(form):
    assert "Form field (tenant): Jordan Badger" in text_with(
        widget(b"/FT /Tx /T (tenant) /V (Jordan Badger)"), form=form
    )
    text = text_with(widget(b"/FT /Tx /T (t1) /TU (Name of the tenant) /V (Jordan Badger)"), form=form)
    assert "Form field (Name of the tenant): Jordan Badger" in text
    assert "Form field (country): NO" in text_with(widget(b"/FT /Ch /T (country) /Opt [(NO) (SE)] /V (NO)"), form=form)
    assert text_with(widget(b"/FT /Tx /T (empty)"), form=form) == f"{LEASE}\n"


def test_a_field_whose_value_is_drawn_is_not_repeated():
    drawing = shown(b"Jordan Badger").replace(b"72 700", b"2 5")
    appearance = stream(
        drawing, b"/Type /XObject /Subtype /Form /BBox [0 0 228 20] /Resources << /Font << /R 4 0 R >> >>"
    )
    pdf = with_annotations(
        pdf_of([lines(LEASE)]),
        widget(b"/FT /Tx /T (tenant) /V (Jordan Badger) /AP << /N 9 0 R >>"),
        form=b"<< /Fields [8 0 R] >>",
    )
    pdf.objects.append(appearance)
    assert convert_pdf(pdf.content()).text.count("Jordan Badger") == 1


@pytest.mark.parametrize(("state", "text"), [(b"Yes", "checked"), (b"Off", "not checked")])
def test_check_boxes(state, text):
    box = widget(b"/FT /Btn /T (agreed) /V /%s /AS /%s /AP << /N << /Yes 4 0 R /Off 4 0 R >> >>" % (state, state))
    assert f"\n\nCheck box (agreed): {text}\n" in text_with(box, form=FORM)


def test_a_note_follows_the_nearest_paragraph():
    page = [*lines(LEASE, y=100), *lines("The rent is due on the first day of the month.", y=300)]
    note = b"<< /Type /Annot /Subtype /Text /Contents (Three years) /Rect [72 640 90 660] /F 4 >>"
    assert text_with(note, page=page).split("\n\n")[1] == "Note: Three years"


def test_a_page_that_has_only_a_filled_field_has_text():
    text = text_with(widget(b"/FT /Tx /T (tenant) /V (Jordan Badger)"), form=FORM, page=[Text(" ")])
    assert text == "Form field (tenant): Jordan Badger\n"
    with pytest.raises(InvalidInput, match="has no text: a scanned document"):
        text_with(widget(b"/FT /Tx /T (tenant)"), form=FORM, page=[Text(" ")])


def test_notes_are_no_markup_and_of_bounded_length():
    note = b"<< /Type /Annot /Subtype /Text /Contents (%s) %s >>" % (b"# a " * 20_000, BOX)
    assert len(text_with(note)) < 25_000
    many = [b"<< /Type /Annot /Subtype /Text /Contents (Note %d) %s >>" % (at, BOX) for at in range(1_500)]
    assert "Note: Note 999\n" in text_with(*many)
