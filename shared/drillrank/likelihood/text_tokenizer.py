"""Tokenising text as data: exact offsets, no control tokens, safe in threads.

A Hugging Face tokenizer maps a literal `</s>` inside a document to the end-of-sequence token, and fast tokenizers
share their truncation and padding settings between threads. This one is a private copy whose control tokens have
names that no text can hold; it never truncates or pads, and special tokens are added by hand.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from drillrank.errors import InvalidInput, require
from drillrank.surrogates import without_surrogates

_BYTE = re.compile("<0x[0-9A-F]{2}>")


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

    Raises:
        InvalidInput: the tokenizer has no fast backend, or surrounds a text in a way that is not understood.
    """

    def __init__(self, tokenizer: Any) -> None:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise InvalidInput(f"{type(tokenizer).__name__} has no fast tokenizer, which exact offsets need.")
        tokenizers = require("tokenizers", "hf")
        self._backend = tokenizers.Tokenizer.from_str(_without_control_tokens(backend.to_str()))
        self.token_names: list[str] = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
        bare = self("a").ids
        whole: list[int] = tokenizer("a")["input_ids"]
        places = [at for at in range(len(whole) - len(bare) + 1) if whole[at : at + len(bare)] == bare]
        if not places:
            raise InvalidInput(f"The special tokens of {type(tokenizer).__name__} around a text are not understood.")
        self.prefix, self.suffix = whole[: places[0]], whole[places[0] + len(bare) :]

    def __call__(self, text: str) -> Tokenised:
        """Tokenise one text."""
        return self.batch([text])[0]

    def batch(self, texts: Sequence[str]) -> list[Tokenised]:
        """Tokenise texts; each as it would be alone. A lone surrogate is read as U+FFFD."""
        encodings = self._backend.encode_batch(list(map(without_surrogates, texts)), add_special_tokens=False)
        tokenised = []
        for encoding in encodings:
            offsets = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
            tokenised.append(Tokenised(encoding.ids, offsets[:, 0], offsets[:, 1]))
        return tokenised


def _without_control_tokens(serialised: str) -> str:
    """The same tokenizer with unguessable names for its control tokens, and nothing added, cut or padded."""
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
    renamed = {token["content"]: f"\0{secrets.token_hex(8)}" for token in parts["added_tokens"] if token["special"]}
    for token in parts["added_tokens"]:
        token["content"] = renamed.get(token["content"], token["content"])
    if isinstance(vocabulary, dict):
        model["vocab"] = {renamed.get(piece, piece): id_ for piece, id_ in vocabulary.items()}
    else:
        model["vocab"] = [[renamed.get(piece, piece), score] for piece, score in vocabulary]
    if model.get("unk_token") in renamed:
        model["unk_token"] = renamed[model["unk_token"]]
    parts |= {"post_processor": None, "truncation": None, "padding": None}
    return json.dumps(parts)
