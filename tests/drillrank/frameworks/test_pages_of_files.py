"""Pages of one file: which documents are joined, and what metadata say of the pages of a part."""

from __future__ import annotations

import pytest

from drillrank.frameworks.files import file_metadata
from drillrank.frameworks.pages import join_pages, read_pages, with_pages_of_span, without_page_keys
from drillrank.structure import Pages, parse_document
from drillrank.structure.pages import page_range
from tests.drillrank.helpers import refuses

ROMAN = Pages((0, 40, 90), (3, 4, 6), ("iii", "iv", "1"))


def members(*metadata):
    return [one.page_indices for one in join_pages(("Text.", one) for one in metadata)]


@pytest.mark.parametrize(
    ("first", "second", "are_joined"),
    [
        ({"source": "a", "page": 0}, {"source": "a", "page": 1}, True),
        ({"source": "a", "page": 0}, {"source": "a", "page": 5}, True),
        ({"source": "a", "page": 0.0}, {"source": "a", "page": 1.0}, True),  # as Pinecone keeps numbers
        ({"source": "a", "page": 0.5}, {"source": "a", "page": 1.5}, False),
        ({"source": "a", "page": 1.0}, {"source": "a", "page": 1.0}, False),
        ({"source": "a", "page": 1}, {"source": "a", "page": 0}, False),
        ({"source": "a", "page": 0}, {"source": "b", "page": 1}, False),
        ({"file_name": "a", "page_number": 1}, {"file_name": "a", "page_number": 2}, True),
        ({"file_path": "a", "page_label": "1"}, {"file_path": "a", "page_label": "2"}, True),
        ({"file_path": "a", "page_label": "2"}, {"file_path": "a", "page_label": "2"}, False),
        ({"file_path": "a", "page_label": "9"}, {"file_path": "a", "page_label": "10"}, True),
        ({"file_path": "a", "page_label": "3"}, {"file_path": "a", "page_label": "2"}, False),
        ({"file_path": "a", "page_label": "3"}, {"file_path": "a", "page_label": "1"}, True),  # after a preface
        ({"file_name": "a", "page_label": "3"}, {"file_name": "a", "page_label": "1"}, False),  # of another folder
        ({"file_path": "a", "page_label": "iv"}, {"file_path": "a", "page_label": "1"}, True),
        ({"file_path": "a", "page_label": "iv"}, {"file_path": "a", "page_label": "v"}, True),
        ({"file_path": "a", "page_label": "iv"}, {"file_path": "a", "page_label": ""}, False),
        ({"file_path": "a", "page_label": "9" * 5_000}, {"file_path": "a", "page_label": "10"}, True),  # no number
        (
            {"file_path": "a", "total_pages": 2, "source": "1"},
            {"file_path": "a", "total_pages": 2, "source": "2"},
            True,
        ),
        (
            {"file_path": "a", "total_pages": 2, "source": "2"},
            {"file_path": "a", "total_pages": 2, "source": "1"},
            False,
        ),
        ({"file_path": "a", "source": "1"}, {"file_path": "a", "source": "2"}, False),
        ({"source": "a", "page": "0"}, {"source": "a", "page": "1"}, False),  # no numbers, and no labels
        ({"source": "a", "page": "0"}, {"source": "a", "page": 1}, False),
        ({"source": "a"}, {"source": "a"}, False),
        ({"page": 0}, {"page": 1}, False),
        ({"source": "a", "page": 0, "x": 1}, {"source": "a", "page": 1, "x": 2}, False),
        ({"source": "a", "page": 0, "x": 1}, {"source": "a", "page": 1, "x": 1}, True),
        ({"source": "a", "page": 0}, {"source": "a", "page": 1, "x": 1}, False),
        ({"source": "a", "page": 0, "start_index": 0}, {"source": "a", "page": 1, "start_index": 0}, False),
        ({"source": "a", "page": 0, "drillrank_pages": ""}, {"source": "a", "page": 1, "drillrank_pages": ""}, False),
        ({"source": "a", "file_name": "x", "page": 0}, {"source": "b", "file_name": "x", "page": 1}, False),
    ],
)
def test_two_pages(first, second, are_joined):
    assert members(first, second) == ([(0, 1)] if are_joined else [(0,), (1,)])


@pytest.mark.parametrize(
    ("before", "after", "between"),
    [
        ("The fox goes", "home.", "\n"),
        ("The fox, ", " home.", "\n"),
        ("The fox goes.", "home.", "\n\n"),
        ("The fox goes", "Home.", "\n\n"),
        ("The fox 7", "home.", "\n\n"),
        ("", "home.", "\n\n"),
        ("The fox", "", "\n\n"),
    ],
)
def test_what_stands_between_pages(before, after, between):
    [one] = join_pages([(before, {"source": "a", "page": 4}), (after, {"source": "a", "page": 6})])
    assert one.text == before + between + after
    assert one.pages == Pages((0, len(before + between)), (5, 7), ("5", "7"))


def test_labels_and_numbers_of_joined_pages():
    labels = [("A.", {"source": "a", "page_label": label}) for label in ("i", "ii", "1")]
    assert join_pages(labels)[0].pages == Pages((0, 4, 8), (1, 2, 3), ("i", "ii", "1"))
    counted = [("A.", {"source": "a", "page_number": n, "page_label": f"S{n}"}) for n in (2, 3)]
    assert join_pages(counted)[0].pages == Pages((0, 4), (2, 3), ("S2", "S3"))
    kept = Pages((0, 3), (1, 2), ("1", "2"))
    assert join_pages([("One two", {"source": "a", "drillrank_pages": kept.as_json()})])[0].pages == kept


@pytest.mark.parametrize(
    ("metadata", "pages"),
    [
        ({"source": "a", "page": 6, "page_label": "v"}, Pages((0,), (7,), ("v",))),
        ({"source": "a", "page_number": 7}, Pages((0,), (7,), ("7",))),
        ({"file_path": "a", "page_label": "1"}, Pages((0,), (1,), ("1",))),
        ({"file_path": "a", "page_label": "7"}, None),  # the first of a file whose pages begin at 7, or the seventh
        ({"page": 6}, None),
        ({"source": "a"}, None),
    ],
)
def test_a_page_that_stands_alone(metadata, pages):
    assert join_pages([("Text.", metadata)])[0].pages == pages


def test_the_pages_that_a_record_tells():
    assert read_pages({"drillrank_pages": ROMAN.as_json(), "drillrank_first_page": 9}) == ROMAN
    assert read_pages({"drillrank_first_page": 3}) == Pages((0,), (3,), ("3",))
    assert read_pages({"drillrank_first_page": 3.0}) == Pages((0,), (3,), ("3",))
    assert read_pages({"drillrank_first_page": "3"}) is None
    assert read_pages({"page": 3}) is None


def test_metadata_of_a_part():
    given = {"page": 2, "page_number": 3, "page_label": "iii", "x": 1}
    ours = {"drillrank_first_page": 4, "drillrank_last_page": 6}
    both = Pages((40, 90), (4, 6), ("iv", "1"))
    found = with_pages_of_span(given, ROMAN, 50, 95)
    assert found == {"page": 3, "page_number": 4, "page_label": "iv", "x": 1, **ours, "drillrank_pages": both.as_json()}
    assert with_pages_of_span({"page_label": "iii"}, ROMAN, 90, 95)["page_label"] == "1"
    assert with_pages_of_span({"page": "2"}, ROMAN, 90, 95)["page"] == "2"
    assert with_pages_of_span({"page": 2.0}, ROMAN, 90, 95)["page"] == 5
    assert with_pages_of_span({}, ROMAN, None, 5)["drillrank_last_page"] == 6
    assert with_pages_of_span({}, ROMAN, 5, None)["drillrank_last_page"] == 6
    assert with_pages_of_span(given, None, 1, 2) == given
    assert "drillrank_pages" not in with_pages_of_span(given, ROMAN, 0, 5)
    assert given == {"page": 2, "page_number": 3, "page_label": "iii", "x": 1}


def test_metadata_of_a_file():
    document = parse_document("Foxes.")
    assert file_metadata(document) == {"drillrank_format": "text"}
    object.__setattr__(document, "pages", ROMAN)
    described = {"drillrank_format": "text", "drillrank_pages": ROMAN.as_json()}
    assert file_metadata(document) == described
    pages = {"page": 0, "page_label": "iii", "page_number": 1}
    assert without_page_keys(described | pages | {"x": 2}) == described | {"x": 2}


test_pages_that_are_none = refuses(
    (lambda: Pages((), (), ()), "not empty"),
    (lambda: Pages((0,), (1, 2), ("1",)), "not empty"),
    (lambda: Pages((0, 1), (1, 2), ("1",)), "not empty"),
    (lambda: Pages((3, 1), (1, 2), ("1", "2")), "starts must not decrease"),
    (lambda: Pages((1, 3), (2, 1), ("1", "2")), "numbers must not decrease"),
)


def test_pages_of_spans():
    spans = ((0, 40), (39, 41), (40, 40), (0, 91), (90, 999))
    assert [ROMAN.between(*span) for span in spans] == [(3, 3), (3, 4), (4, 4), (3, 6), (6, 6)]
    assert Pages((10, 20), (1, 2), ("1", "2")).between(0, 5) == (1, 1)
    assert (ROMAN.label(4), ROMAN.label(6)) == ("iv", "1")
    assert ROMAN.within(41, 95) == Pages((40, 90), (4, 6), ("iv", "1"))
    assert Pages.from_json(ROMAN.as_json()) == ROMAN
    assert Pages((0,), (1,), ("ä",)).as_json() == '[[0,1,"ä"]]'
    damaged = ("", "1", "[]", "[[0]]", '[["a",1,"1"]]', "[[1,1,1],[0,1,1]]")
    assert {Pages.from_json(text) for text in damaged} == {None}
    assert (page_range((3, 3)), page_range((3, 5))) == ("p. 3", "pp. 3–5")


def test_documents_that_cannot_be_pages_stay_as_they_are():
    metadata = [{"source": "a", "page": number} for number in range(5)]
    documents = [("Text.", one) for one in metadata]
    joined = join_pages(documents, [True, True, False, True, True])
    assert [one.page_indices for one in joined] == [(0, 1), (2,), (3, 4)]
    assert joined[1].pages is None
