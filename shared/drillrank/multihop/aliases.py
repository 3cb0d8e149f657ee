"""Other names of a passage."""

from __future__ import annotations

import re
from collections.abc import Iterator

from drillrank.multihop.links import links_from_metadata
from drillrank.passages import PARENTHETICAL, Passage, short_title

ALIASES_KEY = "aliases"  # of the metadata
_OPENING = 300  # characters of a text that introduce its subject
_ACRONYM = re.compile(r"[^\W\d_][\w&.-]{1,9}")
_IN_PARENTHESES = re.compile(rf"\(\s*({_ACRONYM.pattern})\s*[),;]")
_WORD = re.compile(r"[^\W_]+")
_MOST_WORDS = 12  # of a name that an acronym stands for
_KNOWN_AS = re.compile(
    r"\b(?:(?:also|better|commonly|formerly|often|originally) (?:known as|called|named)|abbreviated(?: as| to)?)\s+"
    r"(?:[Tt]he\s+)?[\"“'‘]?(?P<name>[A-Z][\w'’-]*(?:\s+(?:(?:of|the|and|de|von)\s+)?[A-Z][\w'’-]*){1,5})"
    r"(?=\s*(?:[\"”’'`,.;:()]|(?:is|are|was|were|or|and)\b))"
)  # of two words or more: one alone is mostly the name of something else, too
_ARTICLE = re.compile(r"(?:The|An?)\s+\S")
_PHRASE = re.compile(r"[A-Z][a-z]+(?:[ -][a-z]+)+")  # written as in a sentence: a kind of thing, not one of its own


def find_aliases(passage: Passage) -> list[str]:
    """Other names of what a passage is about, each once.

    - what its metadata list as `aliases`: a list, or one string with commas;
    - the acronym that the title's parenthetical holds, or parentheses in the text's opening, where its letters begin
      the title's words; the name before those parentheses, where the title is the acronym;
    - what the opening says that it is "also known as", two words or more (English);
    - the title with its article written small, as inside a sentence.

    >>> find_aliases(Passage("It was founded in 1948.", title="World Health Organization (WHO)"))
    ['WHO']
    >>> find_aliases(Passage("The World Health Organization (WHO) was founded in 1948.", title="WHO"))
    ['World Health Organization']
    >>> pier = "The Silent Pier, also known as Thick Fog, is a film."
    >>> find_aliases(Passage(pier, title="The Silent Pier (film)", metadata={"aliases": "Pier 9"}))
    ['Pier 9', 'Thick Fog', 'the Silent Pier']
    """
    title, opening = short_title(passage), passage.text[:_OPENING]
    names = [
        *links_from_metadata(passage.metadata.get(ALIASES_KEY)),
        *_acronyms(passage.title, title, opening),
        *(found["name"].rstrip("'’-") for found in _KNOWN_AS.finditer(opening)),
        *([_small(title)] if _ARTICLE.match(title) else ()),
    ]
    return [name for name in dict.fromkeys(names) if name != title]


def inflect_title(passage: Passage) -> list[str]:
    """A title of several words, of which only the first has a capital, in small letters, and its plurals (English).

    >>> inflect_title(Passage("It flies low.", title="Cruise missile")), inflect_title(Passage("", title="Silent Pier"))
    (['cruise missile', 'cruise missiles', 'Cruise missiles'], [])
    """
    title = short_title(passage)
    return [_small(title), _plural(_small(title)), _plural(title)] if _PHRASE.fullmatch(title) else []


def _acronyms(full_title: str, title: str, opening: str) -> Iterator[str]:
    if (found := PARENTHETICAL.search(full_title)) and _stands_for(found["inside"], title):
        yield found["inside"]
    for found in _IN_PARENTHESES.finditer(opening):
        if found[1] == title:
            yield from _spelled_out(title, opening[: found.start()])
        elif _stands_for(found[1], title):
            yield found[1]


def _stands_for(acronym: str, name: str) -> bool:
    """Whether an acronym's letters begin the words of a name: all of them, or those with a capital."""
    letters = "".join(filter(str.isalnum, acronym))
    if not _ACRONYM.fullmatch(acronym) or sum(map(str.isupper, letters)) < 2:
        return False
    initials = "".join(word[0] for word in _WORD.findall(name))
    capitals = "".join(letter for letter in initials if not letter.islower())
    return letters.upper() in (initials.upper(), capitals.upper())


def _spelled_out(acronym: str, before: str) -> Iterator[str]:
    """The shortest end of a text that the acronym stands for."""
    for word in list(_WORD.finditer(before))[: -_MOST_WORDS - 1 : -1]:
        name = before[word.start() :].strip()
        if _stands_for(acronym, name):
            yield name
            return


def _small(name: str) -> str:
    return name[0].lower() + name[1:]


def _plural(name: str) -> str:
    if re.search(r"[^aeiou]y$", name):
        return f"{name[:-1]}ies"
    return f"{name}es" if re.search(r"(?:s|x|z|ch|sh)$", name) else f"{name}s"
