"""Read sentences for `check_support`: their claims, and their words with numbers, dates and units in one form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache

from drillrank.structure.cutting import sentences
from drillrank.text import terms

_MAX_CACHED_LENGTH = 50  # characters of a word
_WITHOUT_NAMES = {"german"}  # every noun has a capital
_PUNCTUATION = "\"'([{“”‘.,;:!?)]}*_`"
_NUMBER_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_MAY = "mai"  # the month, because "may" is a stop word
_MONTHS = (
    "januari",
    "februari",
    "march",
    "april",
    _MAY,
    "june",
    "juli",
    "august",
    "septemb",
    "octob",
    "novemb",
    "decemb",
)
_SYNONYMS = {
    **{word: str(number) for number, word in enumerate(_NUMBER_WORDS, start=1) if number > 1},
    **{month[:3]: month for month in _MONTHS},
    "sept": "septemb",
    "pct": "percent",
    "eur": "euro",
    "usd": "dollar",
    "gbp": "pound",
}
_UNITS = {"%": "percent", "$": "dollar", "€": "euro", "£": "pound", "¥": "yen"}
_ZEROS = {"thousand": 3, "million": 6, "mn": 6, "billion": 9, "bn": 9, "trillion": 12}
_ZEROS_OF_MONEY = {"k": 3, "m": 6, "b": 9}  # such as $1.2m
_NUMBER = re.compile(r"\d{1,20}(?:\.\d{1,10})?")
_ORDINAL = re.compile(r"\b(\d{1,4})(?:st|nd|rd|th)\b")
_DATE = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)|(\d\d?)\.(\d\d?)\.(\d{4})")
_THIN_SPACE = re.compile("(?<=\\d)[\u00a0\u2009\u202f](?=\\d{3}(?!\\d))")  # separates thousands
_NEGATED = re.compile(r"\b(do|does|did|is|are|was|were|would|could|should|has|have|had)nt\b|n't\b", re.IGNORECASE)
_CONTRACTIONS = {"can't": "can not", "won't": "will not", "shan't": "shall not", "cannot": "can not"}
_CITATION = re.compile(r"\s?\[\^?\d{1,3}(?:, ?\d{1,3}){0,20}\]")  # such as [2], which is no number of the sentence
_LINK = re.compile(r"\[([^\[\]\n]{1,300})\]\([^()\s]{1,1000}\)")
_LIST_MARK = re.compile(r"(?:[-*+•–]|\(?\d{1,2}[.)]|\(?[a-z][.)])\s+")
_BEGINNING = re.compile(  # of a sentence, and no part of the claim
    rf"^(?:{_LIST_MARK.pattern})?(?:(?:Yes|No)[,:;]\s+)?"
    r"(?:(?:According to|Based on) (?:the|this|these) (?:provided |given )?"
    r"(?:text|context|document|passage|file|source|evidence)s?,\s+)?",
    re.IGNORECASE,
)
_LABEL = re.compile(r"#{1,6}\s\D*|\*\*[^*\d]+\*\*|\D*:\**|\(?\d{1,2}[.)]|(?:[Yy]es|[Nn]o)[.!]?")
_ABBREVIATION = re.compile(r"\b(?:Ms|approx)\.$")  # after which the library ends a sentence
_SEPARATOR_ROW = re.compile(r"\|[ \t:|]*-[ \t:|-]*")


@dataclass(frozen=True, slots=True)
class Claim:
    """Sentence of an answer that passages may support, or row of a Markdown table.

    Attributes:
        sentence: The sentence or row as the answer has it.
        text: The same without list marks, citations and link targets. A row has its cells, separated by commas.
        header: Column names of a row, separated by commas. Empty for a sentence.
        text_with_header: A row with the column name before each cell. Otherwise `text`.
    """

    sentence: str
    text: str
    header: str
    text_with_header: str


@dataclass(frozen=True, slots=True)
class Token:
    """Word of a text: its term, its form, and True for a name (a capital within a sentence) or a number."""

    term: str
    form: str
    is_name: bool
    is_number: bool


def split_claims(answer: str) -> list[Claim]:
    r"""Return the sentences of an answer and the rows of its Markdown tables.

    Headings, introductions such as "Results:" and sentences without a letter or digit are left out. Headings and
    introductions with a digit are not.

    >>> for claim in split_claims("Costs:\n\n1) Rent is [1,350](a.md) euros [2].\n\n|year|rent|\n|--|--|\n|2021|9|"):
    ...     print(claim.text_with_header)
    Rent is 1,350 euros.
    year 2021, rent 9
    """
    claims = []
    for sentence, row in split_sentences_and_rows(answer):
        text = _clean(", ".join(cell for _, cell in row) if row else _BEGINNING.sub("", sentence))
        if any(map(str.isalnum, text)) and (row or not _LABEL.fullmatch(sentence)):
            header = ", ".join(name for name, _ in row)
            claims.append(Claim(sentence, text, header, _clean(describe_row(row)) if row else text))
    return claims


def split_sentences_and_rows(text: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield each sentence, and each row of a Markdown table with its column names and cells that are not empty."""
    prose, names = list[str](), list[str]()
    lines = text.splitlines(keepends=True)
    for line, following in zip(lines, [*lines[1:], ""], strict=False):
        row = line.strip()
        if names and row.startswith("|"):
            if not _SEPARATOR_ROW.fullmatch(row):
                cells = zip(names, _split_row(row), strict=False)
                yield row, [(name, cell) for name, cell in cells if cell]
        elif row.startswith("|") and _SEPARATOR_ROW.fullmatch(following.strip()):
            yield from _split_prose(prose)
            prose, names = [], [name.lower() for name in _split_row(row)]
        else:
            if _LIST_MARK.match(row):
                yield from _split_prose(prose)
                prose = []
            prose.append(line)
            names = []
    yield from _split_prose(prose)


def describe_row(row: list[tuple[str, str]]) -> str:
    """Return the cells of a row, each after its column name."""
    return ", ".join(f"{name} {cell}" for name, cell in row)


def _split_prose(lines: list[str]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    text, first = "".join(lines), None
    for start, end in sentences(text):
        first = start if first is None else first
        if not _ABBREVIATION.search(text, max(first, end - 10), end):
            yield text[first:end], []
            first = None
    if first is not None:
        yield text[first:].rstrip(), []


def _split_row(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split("|")]


def _clean(text: str) -> str:
    """Return a text without citations and link targets."""
    return _CITATION.sub("", _LINK.sub(r"\1", text))


def read_tokens(text: str, language: str) -> list[Token]:
    """Return the words of a sentence. 5%, 5 percent and five per cent have the same terms; so have dates and amounts.

    >>> [token.term for token in read_tokens("She can't pay $1.2 million by 2023-04-05.", "english")]
    ['she', 'can', 'not', 'pay', '1200000', 'dollar', 'by', '5', 'april', '2023']
    """
    text = _THIN_SPACE.sub("", text.replace("’", "'"))
    for contraction, words in _CONTRACTIONS.items():
        text = text.replace(contraction, words)
    tokens: list[Token] = []
    is_first = True
    for word in _NEGATED.sub(lambda match: f"{match[1] or ''} not", text).split():
        form = word.strip(_PUNCTUATION)
        is_name = not is_first and form[:1].isupper() and language not in _WITHOUT_NAMES
        is_first = word.endswith(":")
        for term in _read_terms(word, language) if len(word) <= _MAX_CACHED_LENGTH else terms(word, language):
            if term in _ZEROS and _multiply(tokens, form, _ZEROS[term]):
                continue
            if term == "cent" and tokens and tokens[-1].term == "per":
                tokens[-1] = replace(tokens[-1], term="percent", form=form)
                continue
            token = Token(term, form, is_name, any(map(str.isdigit, term)))
            if term == "may" and (is_name or (tokens and tokens[-1].is_number)):
                token = replace(token, term=_MAY)
            if token.is_number and tokens and tokens[-1].term == "may":
                tokens[-1] = replace(tokens[-1], term=_MAY)
            tokens.append(token)
    return tokens


def _multiply(tokens: list[Token], form: str, zeros: int) -> bool:
    """Multiply the number at the end of the tokens, or before a currency there. Return True if there is a number."""
    index = len(tokens) - 1 - bool(tokens and tokens[-1].term in _UNITS.values())
    number = (
        _append_zeros("1" if index >= 0 and tokens[index].term == "one" else tokens[index].term, zeros)
        if index >= 0
        else None
    )
    if number is None:
        return False
    tokens[index] = Token(number, f"{tokens[index].form} {form}", False, True)
    return True


def _append_zeros(number: str, zeros: int) -> str | None:
    """Return a number times 10 to the power of `zeros`, or None if it is not one.

    >>> _append_zeros("1.25", 3)
    '1250'
    """
    return format((Decimal(number) * 10**zeros).normalize(), "f") if _NUMBER.fullmatch(number) else None


@lru_cache(maxsize=20_000)
def _read_terms(word: str, language: str) -> tuple[str, ...]:
    """Return the terms of a word. A date is a day, a month and a year; a symbol is the word for it."""
    if match := _DATE.fullmatch(word.strip(_PUNCTUATION)):
        year, month, day = (match[1], match[2], match[3]) if match[1] else (match[6], match[5], match[4])
        if 1 <= int(month) <= len(_MONTHS):
            return str(int(day)), _MONTHS[int(month) - 1], year
    word_terms = [_SYNONYMS.get(term, term) for term in terms(_ORDINAL.sub(r"\1", word), language)]
    units = [unit for symbol, unit in _UNITS.items() if symbol in word]
    if len(word_terms) == 2 and units and word_terms[1] in _ZEROS_OF_MONEY:
        word_terms = [_append_zeros(word_terms[0], _ZEROS_OF_MONEY[word_terms[1]]) or word_terms[0]]
    return *word_terms, *units
