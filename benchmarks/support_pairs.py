"""Sentences of documents, and the same sentences with one fact changed: 300 pairs from QASPER and the folders' files.

A pair is a sentence of 8 to 40 words and a copy in which a script changed a number, a name or a negation. Half of the
new numbers, and all new names, occur elsewhere in the same document, so that they cannot be refused because no text
has them. The evidence is the passage with the sentence, and its two neighbors on each side. Every third pair is unseen:
no threshold was chosen on it. The paraphrases of `kept/support_paraphrases.json` were written by a language model.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from drillrank.structure.cutting import sentences

from .data import data_folder, read
from .folders import _read_folder

KINDS = ("number", "name", "negation")
PAIRS = 50  # of each kind and corpus
PASSAGE_CHARACTERS = 1200
NEIGHBORS = 2  # passages on each side of the one with the sentence
PARAPHRASES = Path(__file__).parent / "kept" / "support_paraphrases.json"

_NUMBER = re.compile(r"(?<![\w.,$-])\d+(?:[.,]\d+)*(?![\w-]|[.,]\d)")
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}(?: [A-Z][a-z]{2,}){0,2}(?![\w-])")
_AUXILIARY = re.compile(r" (is|are|was|were|can|will|should|must|may|could)(?= [a-z])(?! not\b)")
_NOT = re.compile(r" not(?= [a-z])")
_PLAIN = re.compile(r"[A-Z][\w\s,;:()'’%.$-]*[a-z\d)%]\.")


class Pair(NamedTuple):
    """A sentence, its changed copy, and the passages.

    Attributes:
        kind: `"number"`, `"name"` or `"negation"`.
        sentence: Sentence as the document has it.
        changed: The same with one fact changed.
        passages: Passage with the sentence, and its neighbors, in the document's order.
        is_unseen: True if no threshold was chosen on this pair.
        paraphrase: The sentence in other words; empty if there is none.
    """

    kind: str
    sentence: str
    changed: str
    passages: tuple[str, ...]
    is_unseen: bool
    paraphrase: str


@lru_cache(maxsize=1)
def make_pairs() -> list[Pair]:
    """Return 300 pairs, always the same."""
    paraphrase_by_sentence = json.loads(PARAPHRASES.read_text()) if PARAPHRASES.exists() else {}
    pairs: list[Pair] = []
    for documents in (_read_papers(), _read_files()):
        rng = random.Random(63)
        located = list(_list_sentences(documents))
        candidates = [(kind, document, index) for kind in KINDS for document, index in located]
        rng.shuffle(candidates)
        n_by_kind = dict.fromkeys(KINDS, 0)
        used = set()
        for kind, document, index in candidates:
            sentence, passage_index = document.sentences[index]
            if n_by_kind[kind] == PAIRS or sentence in used:
                continue
            changed = _change(kind, sentence, document, rng)
            if changed is None:
                continue
            used.add(sentence)
            n_by_kind[kind] += 1
            passages = document.passages[max(passage_index - NEIGHBORS, 0) : passage_index + NEIGHBORS + 1]
            paraphrase = paraphrase_by_sentence.get(sentence, "")
            pairs.append(Pair(kind, sentence, changed, passages, len(pairs) % 3 == 0, paraphrase))
    return pairs


class _Document(NamedTuple):
    """Passages of a document, and its sentences with the index of their passage."""

    passages: tuple[str, ...]
    sentences: list[tuple[str, int]]
    numbers: list[str]
    names: list[str]


def pack_text(text: str) -> list[str]:
    """Return the sentences of a text, packed into passages."""
    passages: list[str] = []
    for start, end in sentences(text):
        sentence = " ".join(text[start:end].split())
        if passages and len(passages[-1]) + len(sentence) < PASSAGE_CHARACTERS:
            passages[-1] += f" {sentence}"
        else:
            passages.append(sentence)
    return passages


def _make_document(passages: list[str]) -> _Document:
    text = " ".join(passages)
    located = [
        (passage[start:end], index) for index, passage in enumerate(passages) for start, end in sentences(passage)
    ]
    numbers, names = (list(dict.fromkeys(pattern.findall(text))) for pattern in (_NUMBER, _NAME))
    return _Document(tuple(passages), located, numbers, names)


def _read_papers() -> Iterator[_Document]:
    for paper in read("longdoc/qasper"):
        paragraphs = [text for section in paper["sections"] for text in section["paragraphs"]]
        yield _make_document(pack_text("\n\n".join(paragraphs)))


def _read_files() -> Iterator[_Document]:
    for document in _read_folder(data_folder() / "folders").values():
        texts = [document.readable(block) for _, block in document.paragraphs()]
        yield _make_document(pack_text("\n\n".join(texts)))


def _list_sentences(documents: Iterator[_Document]) -> Iterator[tuple[_Document, int]]:
    for document in documents:
        for index, (sentence, _) in enumerate(document.sentences):
            if 8 <= len(sentence.split()) <= 40 and _PLAIN.fullmatch(sentence):
                yield document, index


def _change(kind: str, sentence: str, document: _Document, rng: random.Random) -> str | None:
    """Return a sentence with one fact changed; None if it has no fact of this kind."""
    if kind == "negation":
        if match := _NOT.search(sentence):
            return sentence[: match.start()] + sentence[match.end() :]
        match = _AUXILIARY.search(sentence)
        return match and f"{sentence[: match.end()]} not{sentence[match.end() :]}"
    matches = list((_NUMBER if kind == "number" else _NAME).finditer(sentence))
    if not matches:
        return None
    match = rng.choice(matches)
    others = document.numbers if kind == "number" else document.names
    others = [other for other in others if other not in sentence and not {*other.split()} & {*sentence.split()}]
    if kind == "number":
        others = [other for other in others if len(other) == len(match[0]) and "." not in other]
        if not others or rng.random() < 0.5:
            others = [_change_digit(match[0], rng)]
    if not others:
        return None
    return sentence[: match.start()] + rng.choice(others) + sentence[match.end() :]


def _change_digit(number: str, rng: random.Random) -> str:
    index = rng.choice([index for index, character in enumerate(number) if character.isdigit()])
    digit = rng.choice([digit for digit in "123456789" if digit != number[index]])
    return number[:index] + digit + number[index + 1 :]
