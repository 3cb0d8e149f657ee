"""Tokenizers of every kind, trained in a moment: each cuts a text, and what is left of it, in its own way."""

from __future__ import annotations

from collections.abc import Callable

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

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
