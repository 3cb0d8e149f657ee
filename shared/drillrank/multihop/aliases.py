"""Other names of the subject of a passage: aliases, acronyms and inflected titles."""

from __future__ import annotations

import re
from collections.abc import Iterator

from drillrank.multihop.links import links_from_metadata
from drillrank.passages import PARENTHETICAL, Passage, short_title

ALIASES_KEY = "aliases"  # of the metadata
_OPENING_LENGTH = 300  # characters of a text that introduce its subject
_MAX_NAME_WORDS = 12  # of a name that an acronym abbreviates
_ACRONYM = re.compile(r"[^\W\d_][\w&.-]{1,9}")
_IN_PARENTHESES = re.compile(rf"\(\s*({_ACRONYM.pattern})\s*[),;]")
_WORD = re.compile(r"[^\W_]+")
# A name of two words or more: a single word is mostly the name of something else, too.
_KNOWN_AS = re.compile(
    r"\b(?:(?:also|better|commonly|formerly|often|originally) (?:known as|called|named)|abbreviated(?: as| to)?)\s+"
    r"(?:[Tt]he\s+)?[\"“'‘]?(?P<name>[A-Z][\w'’-]*(?:\s+(?:(?:of|the|and|de|von)\s+)?[A-Z][\w'’-]*){1,5})"
    r"(?=\s*(?:[\"”’'`,.;:()]|(?:is|are|was|were|or|and)\b))"
)
_ARTICLE = re.compile(r"(?:The|An?)\s+\S")
_PHRASE = re.compile(r"[A-Z][a-z]+(?:[ -][a-z]+)+")  # in sentence case: a kind of thing, not a proper name


def find_aliases(passage: Passage) -> list[str]:
    """Return other names of the subject of a passage, each once.

    - Metadata `aliases`: a list, or a comma-separated string.
    - An acronym in parentheses, in the title or the opening of the text, if its letters begin the words of the title;
      or the name before these parentheses, if the title is the acronym.
    - A name of at least two words that the opening introduces by "also known as" and the like (English).
    - The title with a lowercase article, as inside a sentence.

    >>> find_aliases(Passage("It was founded in 1948.", title="World Health Organization (WHO)"))
    ['WHO']
    >>> find_aliases(Passage("The World Health Organization (WHO) was founded in 1948.", title="WHO"))
    ['World Health Organization']
    >>> pier = "The Silent Pier, also known as Thick Fog, is a film."
    >>> find_aliases(Passage(pier, title="The Silent Pier (film)", metadata={"aliases": "Pier 9"}))
    ['Pier 9', 'Thick Fog', 'the Silent Pier']
    """
    title, opening = short_title(passage), passage.text[:_OPENING_LENGTH]
    names = [
        *links_from_metadata(passage.metadata.get(ALIASES_KEY)),
        *_find_acronyms(passage.title, title, opening),
        *(match["name"].rstrip("'’-") for match in _KNOWN_AS.finditer(opening)),
        *([_lowercase_first(title)] if _ARTICLE.match(title) else ()),
    ]
    return [name for name in dict.fromkeys(names) if name != title]


def inflect_title(passage: Passage) -> list[str]:
    """Return a title in sentence case with a lowercase first letter, and its plurals (English). Others have none.

    >>> inflect_title(Passage("It flies low.", title="Cruise missile")), inflect_title(Passage("", title="Silent Pier"))
    (['cruise missile', 'cruise missiles', 'Cruise missiles'], [])
    """
    title = short_title(passage)
    if not _PHRASE.fullmatch(title):
        return []
    return [_lowercase_first(title), _pluralize(_lowercase_first(title)), _pluralize(title)]


def _find_acronyms(full_title: str, title: str, opening: str) -> Iterator[str]:
    if (parenthetical := PARENTHETICAL.search(full_title)) and _abbreviates(parenthetical["inside"], title):
        yield parenthetical["inside"]
    for match in _IN_PARENTHESES.finditer(opening):
        if match[1] == title:
            yield from _spell_out(title, opening[: match.start()])
        elif _abbreviates(match[1], title):
            yield match[1]


def _abbreviates(acronym: str, name: str) -> bool:
    """Return True if the letters of an acronym are the initials of a name: of all words, or of capitalized ones."""
    letters = "".join(filter(str.isalnum, acronym))
    if not _ACRONYM.fullmatch(acronym) or sum(map(str.isupper, letters)) < 2:
        return False
    initials = "".join(word[0] for word in _WORD.findall(name))
    capitals = "".join(letter for letter in initials if not letter.islower())
    return letters.upper() in (initials.upper(), capitals.upper())


def _spell_out(acronym: str, text_before: str) -> Iterator[str]:
    """Return the shortest end of a text that the acronym abbreviates."""
    for word in list(_WORD.finditer(text_before))[: -_MAX_NAME_WORDS - 1 : -1]:
        name = text_before[word.start() :].strip()
        if _abbreviates(acronym, name):
            yield name
            return


def _lowercase_first(name: str) -> str:
    return name[0].lower() + name[1:]


def _pluralize(name: str) -> str:
    if re.search(r"[^aeiou]y$", name):
        return f"{name[:-1]}ies"
    return f"{name}es" if re.search(r"(?:s|x|z|ch|sh)$", name) else f"{name}s"
