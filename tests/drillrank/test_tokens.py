"""Token counts: the same wherever they are made, and those of a tokenizer where one is named."""

from __future__ import annotations

import pickle
import socket
import sys
from pathlib import Path

import pytest

from drillrank import D3, SelfAsk, parse_document
from drillrank.text import count_tokens, token_counter
from drillrank.views import Chunker
from tests.drillrank.helpers import Says, refuses

TEXT = "# Zürich\n\nThe <b>Limmat</b> leaves the lake here: 3,600 m³/min.\r\n\n\tcode = f(x)  # 東京 🦊 Ῥῆνος\n"


@pytest.fixture
def encodings(monkeypatch):
    """The true encodings, where a copy of them is at hand."""
    core = pytest.importorskip("llama_index.core")
    folder = Path(core.__file__).parent / "_static" / "tiktoken_cache"
    if not folder.is_dir():
        pytest.skip("no copy of cl100k_base at hand")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
    return pytest.importorskip("tiktoken")


def test_counts_are_these_numbers_on_every_machine():
    counted = {"": 0, " ": 0, "\n": 1, "x" * 1000: 91, " " * 1000: 16, "東京 🦊": 3, "\ud800": 1, TEXT: 44}
    counted |= {"The Rhine flows through Basel.": 6, "internationalisation": 2, "Mississippi USA 1234567": 6}
    counted |= {"a\n\n    b = c": 5, "Ῥῆνος Рейн": 6}
    assert {text: count_tokens(text) for text in counted} == counted


def test_no_file_is_read_and_no_connection_made_and_nothing_that_is_installed_changes_the_count(monkeypatch, tmp_path):
    def refused(*args, **kwargs):
        raise AssertionError("counting tokens must not ask anybody")

    before = count_tokens(TEXT)
    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr("builtins.open", refused)
    for module in ("tiktoken", "transformers", "llama_index"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert count_tokens(TEXT) == before


def test_english_comes_close_to_the_encodings_of_large_models(encodings):
    text = (Path(__file__).parents[2] / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    for encoding in ("cl100k_base", "o200k_base"):
        assert count_tokens(text) == pytest.approx(token_counter(f"tiktoken:{encoding}")(text), rel=0.05)


def test_a_named_encoding_counts_exactly_and_knows_no_special_tokens(encodings):
    true = encodings.get_encoding("cl100k_base")
    for tokens in ("tiktoken:cl100k_base", true):
        count = token_counter(tokens)
        for text in ("Hello, world!", "Zürich 東京 🦊", "a\n\n\tb  c", "<|endoftext|>"):
            assert count(text) == len(true.encode(text, disallowed_special=())) > 1
        assert pickle.loads(pickle.dumps(count))(TEXT) == count(TEXT)
        assert count is not count_tokens
    long = "The Rhine flows through Basel. " * 2000
    assert abs(token_counter("tiktoken:cl100k_base")(long) - len(true.encode(long))) <= len(long) // 20_000


class Tokenizer:
    """As those of transformers: callable, and `encode` adds special tokens unless told not to."""

    def __call__(self, text):
        return {"input_ids": self.encode(text)}

    def encode(self, text, add_special_tokens=True):
        return text.split() + ["</s>"] * add_special_tokens


class Model(Says):
    """A model that counts."""

    def count_tokens(self, text):
        return len(text.split())


@pytest.mark.parametrize("tokens", [Tokenizer(), Model("none"), lambda text: len(text.split())])
def test_a_function_a_tokenizer_or_a_model_counts_where_the_user_names_it(tokens):
    count = token_counter(tokens)
    assert count("one two three") == 3
    assert count is not count_tokens
    document = "# One\n\nRain falls.\n\n# Two\n\nSnow melts, and the water runs."
    units = Chunker("fixed", max_tokens=6, tokens=tokens)(parse_document(document))
    assert [len(unit.text.split()) for unit in units] == [6, 6]
    llm = Says("none")
    usage = D3(llm, settings={"tokens": tokens}).retrieve("Which?", [document]).usage
    assert usage.prompt_tokens == sum(len(prompt.split()) for prompt in llm.prompts)
    asked = SelfAsk(lambda prompt: "So the final answer is: snow", lambda question: [], tokens=tokens).answer("Which?")
    assert asked.usage.completion_tokens == 6


NO_COUNTERS = ["cl100k_base", "tiktoken:", "hf:gpt2", 3, "tiktoken:no_such", str.upper, object()]
test_what_cannot_count_is_refused_at_once = refuses(
    *((lambda tokens=tokens: token_counter(tokens), "tiktoken") for tokens in NO_COUNTERS),
    *((lambda tokens=tokens: D3(settings={"tokens": tokens}), "tiktoken") for tokens in NO_COUNTERS),
    *((lambda tokens=tokens: Chunker("section", tokens=tokens), "tiktoken") for tokens in NO_COUNTERS),
)
