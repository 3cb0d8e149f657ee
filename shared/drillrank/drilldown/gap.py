"""Words to search for next: what the best passage leaves open of a question, and the names that it adds.

A question that needs two places is often answered by a second search. Its words are those content words of the question
that the best passage does not contain, and the names in that passage that the question does not contain: one of them
usually leads to the second place.
"""

from __future__ import annotations

import re

from drillrank.drilldown.confidence import read_stop_words
from drillrank.text import terms

MAX_NAMES = 10  # the first ones of the passage
MAX_CHARACTERS = 300
_PUNCTUATION = "\"'([{“”‘’.,;:!?)]}"
_NAME = re.compile(r"(?<![^\W\d_])[^\W\d_a-zß-öø-ÿ][\w'’-]{1,40}(?: [^\W\d_a-zß-öø-ÿ][\w'’-]{1,40}){0,5}")


def find_gap(question: str, passage: str, language: str = "english") -> str:
    """Return the words to search for next. Empty if the passage contains all content words of the question.

    Args:
        question: The question.
        passage: Best passage, with its headings or title.
        language: Language of the stemmer.

    >>> find_gap("In which country was the author of Emma born?", "Emma is a novel that Jane Austen wrote.")
    'country author born Jane Austen'
    """
    stop_words = read_stop_words(language)
    passage_terms, question_terms = set(terms(passage, language)), set(terms(question, language))
    open_words: dict[str, None] = {}
    for word in question.split():
        word_terms = [term for term in terms(word, language) if term not in stop_words]
        if word_terms and not passage_terms.issuperset(word_terms):
            open_words[word.strip(_PUNCTUATION)] = None
    if not open_words:
        return ""
    names: dict[str, None] = {}
    for match in _NAME.finditer(passage):
        new_terms = [term for term in terms(match[0], language) if term not in stop_words | question_terms]
        if new_terms and match[0][0].isupper() and len(names) < MAX_NAMES:
            names[match[0]] = None
    query = " ".join([*open_words, *names])
    return query if len(query) <= MAX_CHARACTERS else query[:MAX_CHARACTERS].rpartition(" ")[0]
