"""Digests of documents: which documents count as versions by their wording, whatever the unit and the length."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank.corpus.documents import list_paragraphs
from drillrank.drilldown.versions import Versions
from drillrank.structure import parse_document
from drillrank.text_digests import MAX_DIGESTS, DocumentDigests, text_digests
from tests.examples import examples

POLICY = "# Travel policy\n\nHotels are paid up to {} euros a night.\n\nTrains are booked in second class.\n"
ONE_PARAGRAPH = "The notice period of a permanent contract is {} days after the probation.\n"
LEASE_A = """# Lease

The landlord lets the flat on the third floor of Mill Street 4 in Basel to Anna Meier.

The rent is 1,450 francs a month, due on the first day of each month.

Dogs are not allowed. The garden may be used by all tenants until ten in the evening.
"""
LEASE_B = """# Lease

The landlord lets the house at Lake Road 17 in Thun, with its garage and boat shed, to the Keller family.

The tenants pay 2,900 francs a quarter in advance, and heating is billed in July.

Pets need a written permission. Snow on the drive is cleared by the tenants.
"""
WORDS = [f"word{number}" for number in range(900)]


def long_text(seed: int, n_paragraphs: int = 60, n_words: int = 40) -> list[str]:
    chosen = random.Random(seed)
    return [" ".join(chosen.choices(WORDS, k=n_words)) for _ in range(n_paragraphs)]


def shuffled(listed: list[str]) -> list[str]:
    return random.Random(5).sample(listed, len(listed))


def next_report(listed: list[str]) -> list[str]:
    """Every third paragraph is new, and one word in twenty of the others changes: a report of the next year."""
    changed = [" ".join(f"new{i}" if i % 20 == 7 else word for i, word in enumerate(p.split())) for p in listed]
    return [new if i % 3 == 0 else old for i, (old, new) in enumerate(zip(changed, long_text(77), strict=True))]


LONG = long_text(1)
SAME = {
    "one number of two paragraphs": (POLICY.format(120), POLICY.format(150)),
    "one number of one paragraph": (ONE_PARAGRAPH.format(30), ONE_PARAGRAPH.format(60)),
    "one word": (ONE_PARAGRAPH.format(30), ONE_PARAGRAPH.format(30).replace("permanent", "temporary")),
    "reordered paragraphs": (LEASE_A, "\n\n".join(reversed(LEASE_A.strip().split("\n\n")))),
    "an extended version": (POLICY.format(120), f"{POLICY.format(120)}\n{LEASE_B}"),
    "an extended version with another number": (LEASE_A, f"{LEASE_A.replace('1,450', '1,520')}\n{LEASE_B}"),
    "capitals and white space": (LEASE_A, LEASE_A.upper().replace(" ", "  ")),
    "a long text with some other numbers": ("\n\n".join(LONG), "\n\n".join([*LONG[:50], *long_text(2, 10)])),
    "a long text in another order": ("\n\n".join(LONG), "\n\n".join(shuffled(LONG))),
    "a long extended version": ("\n\n".join(LONG), "\n\n".join([*LONG, *long_text(3, 100)])),
}
OTHER = {
    "two flats": (LEASE_A, LEASE_B),
    "too short to tell": ("The rent is 100 francs.", "The rent is 200 francs."),
    "other words": (POLICY.format(1), ONE_PARAGRAPH.format(1)),
    "reports of two years": ("\n\n".join(LONG), "\n\n".join(next_report(LONG))),
    "a cover note and a long text": (ONE_PARAGRAPH, "\n\n".join(long_text(4, 400))),
    "nothing": ("", ""),
}


def digests_of(text: str, unit: str) -> DocumentDigests:
    units = list_paragraphs(parse_document(text, "markdown"), "0", unit)
    return DocumentDigests(text_digests(readable.text for _, _, readable in units))


@pytest.mark.parametrize("unit", ["paragraph", "passage"])
@pytest.mark.parametrize("case", SAME)
def test_documents_with_mostly_the_same_wording_are_similar(case, unit):
    one, other = (digests_of(text, unit) for text in SAME[case])
    assert one.is_similar(other)
    assert other.is_similar(one)


@pytest.mark.parametrize("unit", ["paragraph", "passage"])
@pytest.mark.parametrize("case", OTHER)
def test_documents_with_other_wording_are_not_similar(case, unit):
    one, other = (digests_of(text, unit) for text in OTHER[case])
    assert not one.is_similar(other)
    assert not other.is_similar(one)


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.sampled_from([*LONG[:8], POLICY, LEASE_A, "a", "", "東京の夏", "x\n\ny"]), max_size=9), st.data())
def test_digests_do_not_depend_on_how_paragraphs_are_grouped(texts, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(texts)), max_size=3)))
    groups = ["\n\n".join(texts[a:b]) for a, b in zip([0, *cuts], [*cuts, len(texts)], strict=True)]
    digests = text_digests(texts)
    assert text_digests(groups) == digests
    assert DocumentDigests(digests).share_in_common(DocumentDigests(digests)) == (1.0 if digests else 0.0)
    assert all(0 <= digest < 1 << 62 for digest in digests)


def test_digests_are_bounded_and_the_same_everywhere():
    digests = text_digests(long_text(1, 500))
    assert len(digests) == MAX_DIGESTS
    assert text_digests(["The rent is 5."])[0] == 274799393221292607
    assert not DocumentDigests([-5, 1 << 63, *digests[:0]]).is_similar(DocumentDigests(digests))  # a damaged corpus


def test_the_share_of_long_documents_is_close_to_the_true_one():
    one, other = long_text(6, 400), [*long_text(6, 400)[:300], *long_text(7, 100)]
    share = DocumentDigests(text_digests(one)).share_in_common(DocumentDigests(text_digests(other)))
    assert 0.66 < share < 0.84


def test_many_documents_of_one_name_take_linear_time():
    def seconds(n_documents: int) -> float:
        digests = [text_digests([f"{POLICY} Day {day}: {' '.join(long_text(day, 1))}"]) for day in range(n_documents)]
        versions = Versions({day: f"{2000 + day % 20}-01.md" for day in range(n_documents)}, digests.__getitem__)
        start = time.process_time()
        versions.list_versions(0)
        return time.process_time() - start

    seconds(50)
    assert min(seconds(800) for _ in range(3)) < 8 * seconds(200) + 0.2
