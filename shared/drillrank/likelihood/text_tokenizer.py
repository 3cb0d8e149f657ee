"""Tokenising text as data: exact offsets, control tokens where the wording is trusted and nowhere else.

A Hugging Face tokenizer maps a literal `</s>` inside a document to the end-of-sequence token, and fast tokenizers
share their truncation and padding settings between threads. This one is a private copy whose control tokens have
names that no text can hold; it never truncates or pads, and special tokens are added by hand. Those of trusted wording
are given these names before the whole is tokenised at once.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput, require
from drillrank.likelihood.chat import ChatTemplate
from drillrank.prompts import Evidence, Prompt, Wording
from drillrank.text import without_surrogates

_SECRET = 17  # characters of a control token's name here
_BYTE = re.compile("<0x[0-9A-F]{2}>")

Marks = tuple[tuple[int, int], ...]
"""Where the control tokens of a text stand: offsets of the first character and behind the last."""


@dataclass(frozen=True, slots=True)
class Tokenised:
    """Token ids of a text, and the characters that each token covers.

    Attributes:
        ids: Token ids, shape (tokens,).
        starts: Offset of each token's first character.
        ends: Offset behind each token's last character.
    """

    ids: list[int]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]


class TextTokenizer:
    """A tokenizer for text alone, made from a Hugging Face tokenizer.

    Attributes:
        prefix: Ids that the tokenizer puts in front of a text, such as a beginning-of-sequence token.
        suffix: Ids that it puts behind a text, such as an end-of-sequence token.
        chat: Its template for conversations.
        eos_id: The end-of-sequence token, or None.
        text_tokens: One more than the highest id of a token that text may become.

    Raises:
        InvalidInput: the tokenizer has no fast backend, or surrounds a text in a way that is not understood.
    """

    def __init__(self, tokenizer: Any) -> None:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise InvalidInput(f"{type(tokenizer).__name__} has no fast tokenizer, which exact offsets need.")
        tokenizers = require("tokenizers", "hf")
        serialised, self._secret_names = _without_control_tokens(backend.to_str())
        self._backend = tokenizers.Tokenizer.from_str(serialised)
        longest_first = sorted(self._secret_names, key=lambda name: -len(name))  # as the tokenizer itself matches them
        self._control = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        self._marks_in = lru_cache(256)(self._find)  # candidates share their wording
        self.text_tokens = max(self._backend.get_vocab(with_added_tokens=False).values(), default=-1) + 1
        self.token_names: list[str] = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
        bare = self("a").ids
        whole: list[int] = tokenizer("a")["input_ids"]
        places = [at for at in range(len(whole) - len(bare) + 1) if whole[at : at + len(bare)] == bare]
        if not places:
            raise InvalidInput(f"The special tokens of {type(tokenizer).__name__} around a text are not understood.")
        self._host = tokenizer
        self.chat = ChatTemplate(tokenizer)
        self.eos_id: int | None = tokenizer.eos_token_id
        unknown = getattr(self._backend.model, "unk_token", None)
        self._unknown = {tokenizer.unk_token_id, None if unknown is None else self._backend.token_to_id(unknown)}
        self.prefix, self.suffix = whole[: places[0]], whole[places[0] + len(bare) :]

    def __call__(self, text: str, marks: Marks = ()) -> Tokenised:
        """Tokenise one text."""
        return self.batch([text], [marks])[0]

    def batch(self, texts: Sequence[str], marks: Sequence[Marks] | None = None) -> list[Tokenised]:
        """Tokenise texts; each as it would be alone. A lone surrogate is read as U+FFFD.

        Args:
            texts: Any texts.
            marks: Which control tokens in each are meant as such; None for texts that are all data.
        """
        marks = marks or [()] * len(texts)
        named = [
            self._with_secret_names(without_surrogates(text), some) for text, some in zip(texts, marks, strict=True)
        ]
        tokenised = []
        for encoding, some in zip(self._backend.encode_batch(named, add_special_tokens=False), marks, strict=True):
            offsets = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
            if some:
                offsets = _original(offsets, some)
            tokenised.append(Tokenised(encoding.ids, offsets[:, 0], offsets[:, 1]))
        return tokenised

    def marks(self, prompt: Prompt) -> Marks:
        """Where in the prompt's text its trusted wording holds control tokens."""
        found: list[tuple[int, int]] = []
        at = 0
        for part in prompt:
            if isinstance(part, Wording):
                found += [(at + start, at + end) for start, end in self._marks_in(part)]
            at += len(part.text) if isinstance(part, Evidence) else len(part)
        return tuple(found)

    def started(self, ids: list[int]) -> list[int]:
        """A tokenised prompt behind the tokens of `prefix`, unless its wording begins with them, as in a chat."""
        return ids if ids[: len(self.prefix)] == self.prefix else [*self.prefix, *ids]

    def answer_id(self, answer: str | int) -> int:
        """The id of the one token that an answer is: its text, its name in the vocabulary, or its id.

        Raises:
            InvalidInput: it is no token of this model, or several.
        """
        if isinstance(answer, int):
            if not 0 <= answer < len(self.token_names):
                raise InvalidInput(f"The model has no token {answer}: its {len(self.token_names)} begin with 0.")
            return answer
        ids = self(answer).ids
        if len(ids) == 1 and ids[0] not in self._unknown:
            return ids[0]
        if answer in self.token_names:
            return self.token_names.index(answer)
        names = ", ".join(repr(self.token_names[id_]) for id_ in ids)
        raise InvalidInput(
            f"The answer {answer!r} is {names} to this model, and one token is needed: give a word that is one, its "
            "name in the vocabulary, or its id; with a blank in front if it follows one."
        )

    def answer_text(self, answer: str | int) -> str:
        """The text of the one token that an answer is.

        Raises:
            InvalidInput: as `answer_id`.
        """
        text: str = self._host.decode([self.answer_id(answer)])
        return text

    def defused(self, text: str) -> str:
        """A text for a server that takes control tokens in it for such: each is broken by a zero-width space."""
        return self._control.sub(lambda found: f"{found[0][0]}\u200b{found[0][1:]}", text)

    def _find(self, wording: str) -> Marks:
        return tuple(match.span() for match in self._control.finditer(wording))

    def _with_secret_names(self, text: str, marks: Marks) -> str:
        pieces, at = [], 0
        for start, end in marks:
            pieces += [text[at:start], self._secret_names[text[start:end]]]
            at = end
        return "".join([*pieces, text[at:]])


def _original(offsets: npt.NDArray[np.int64], marks: Marks) -> npt.NDArray[np.int64]:
    """Offsets in a text with secret names, as offsets in the text without."""
    ends = np.array([end for _, end in marks])
    longer = np.cumsum([_SECRET - (end - start) for start, end in marks])
    before = np.searchsorted(ends + longer, offsets, side="right")  # names that end at an offset or in front of it
    shifted: npt.NDArray[np.int64] = offsets - np.concatenate([[0], longer])[before]
    return shifted


def _without_control_tokens(serialised: str) -> tuple[str, dict[str, str]]:
    """The same tokenizer with unguessable names for its control tokens, and nothing added, cut or padded; the names."""
    parts = json.loads(serialised)
    model = parts["model"]
    vocabulary = model["vocab"]
    pieces = {*vocabulary} if isinstance(vocabulary, dict) else {piece for piece, _ in vocabulary}
    # What stands for a byte controls nothing, though some tokenizers list it so: any text may need it.
    parts["added_tokens"] = [
        token
        for token in parts["added_tokens"]
        if not (_BYTE.fullmatch(token["content"]) and token["content"] in pieces)
    ]
    renamed = {
        token["content"]: f"\0{secrets.token_hex((_SECRET - 1) // 2)}"
        for token in parts["added_tokens"]
        if token["special"]
    }
    for token in parts["added_tokens"]:
        token["content"] = renamed.get(token["content"], token["content"])
    if isinstance(vocabulary, dict):
        model["vocab"] = {renamed.get(piece, piece): id_ for piece, id_ in vocabulary.items()}
    else:
        model["vocab"] = [[renamed.get(piece, piece), score] for piece, score in vocabulary]
    if model.get("unk_token") in renamed:
        model["unk_token"] = renamed[model["unk_token"]]
    parts |= {"post_processor": None, "truncation": None, "padding": None}
    return json.dumps(parts), renamed
