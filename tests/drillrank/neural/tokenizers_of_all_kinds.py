"""Tokenizers of every kind, trained in a moment: each cuts a text, and what is left of it, in its own way."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from drillrank.likelihood.tokenizer import Tokenised

TEXT = [
    "The old town of Basel lies on the Rhine, a river of Europe.",
    "Emma is a novel by Jane Austen; who wrote it? Please write a question based on this passage.",
    "Passage: Document: Question: Review previous documents and ask some question.",
    "Zürich, café, 東京 and naïve readers: 42 times the answer!",
] * 3
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def byte_level(special: list[str], vocabulary: int = 400) -> Tokenizer:
    """GPT-2, BART, Qwen2: byte pairs of any text, no unknown token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    return tokenizer


def byte_fallback(special: list[str], vocabulary: int = 400) -> Tokenizer:
    """Llama 2, Mistral: pairs of characters; one that is unknown has a token for each of its bytes."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=["<unk>", *special, *BYTES], initial_alphabet=["▁"], limit_alphabet=60,
        show_progress=False,
    )  # fmt: skip
    tokenizer.train_from_iterator([text.replace(" ", "▁") for text in TEXT[:3]], trainer)
    return tokenizer


def pairs(special: list[str], vocabulary: int = 300) -> Tokenizer:
    """The first byte-pair models: words of characters, neighbouring unknown ones fused."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=["<unk>", *special], show_progress=False)
    tokenizer.train_from_iterator(TEXT, trainer)
    return tokenizer


def unigram(special: list[str], vocabulary: int = 300) -> Tokenizer:
    """T5: the likeliest pieces of a normalised text, in which one character can be several."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=vocabulary, special_tokens=[*special, "<unk>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    return tokenizer


def word_piece(special: list[str], vocabulary: int = 300) -> Tokenizer:
    """BERT: the longest piece first, a word with anything unknown in it as one token."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>", max_input_chars_per_word=30))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=vocabulary, special_tokens=["<unk>", *special], show_progress=False)
    tokenizer.train_from_iterator(TEXT, trainer)
    return tokenizer


KINDS: dict[str, Callable[[list[str]], Tokenizer]] = {
    "byte-level": byte_level,
    "byte-fallback": byte_fallback,
    "pairs": pairs,
    "unigram": unigram,
    "word-piece": word_piece,
}


CHAT = (
    "{{ '<|endoftext|>' }}{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


ODD = ["…", "½", "ﬁ", "ﷺ", "é", "e\u0301", "\u0301", "東京", "🦊", "👩‍👩‍👧", "ß", "İ", "각", "\u200b", "\u3000", "\x00"]


PLAIN = ["Basel", " the", "Rhine", " ", "  ", "\n", "\t", ".", ",", "42", "'s", "-----", "▁", "<s>", "<unk>", "<0x0A>"]


texts = st.lists(st.sampled_from(PLAIN) | st.sampled_from(ODD) | st.characters(exclude_categories=["Cs"])).map("".join)


class Simple:
    """A tokenizer whose tokens are what a pattern finds: what fits can be told without trying."""

    def __init__(self, pattern):
        self.pattern = re.compile(pattern, re.DOTALL)

    def batch(self, texts, marks=None):
        return [self(text) for text in texts]

    def marks(self, prompt):
        return ()

    def __call__(self, text, marks=()):
        spans = np.array([found.span() for found in self.pattern.finditer(text)], dtype=np.int64).reshape(-1, 2)
        return Tokenised([0] * len(spans), spans[:, 1])

    def length(self, text):
        return len(self(text).ids)

    def beginning(self, text, count):
        return text if count == self.length(text) else text[: [0, *self(text).ends.tolist()][count]]
