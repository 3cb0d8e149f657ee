from __future__ import annotations

import os
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank import D3, tokens
from drillrank.tokens import count_tokens, is_estimate, token_counter

any_text = st.text(st.characters(codec=None))  # lone surrogates too


@pytest.fixture
def encoding():
    """The true encoding, where a copy of it is at hand."""
    found = tokens._encoding()
    if found is None:
        pytest.skip("no copy of cl100k_base at hand")
    return found


@given(any_text)
def test_a_count_is_total_and_bounded(text):
    count = count_tokens(text)
    assert type(count) is int
    assert (count > 0) == bool(text)
    assert count <= len(text.encode("utf-8", "replace")) + 3 * len(text)


def test_counts_are_those_of_the_encoding(encoding):
    for text in ("Hello, world!", "Zürich 東京 \N{GRINNING FACE}", "a\n\n\tb  c", "<|endoftext|>"):
        assert count_tokens(text) == len(encoding.encode(text, disallowed_special=()))


def test_special_tokens_are_plain_text(encoding):
    assert count_tokens("<|endoftext|>") > 1


def test_long_texts_are_counted_in_linear_time_and_nearly_exactly(encoding):
    text = "The Rhine flows through Basel. " * 2000
    assert abs(count_tokens(text) - len(encoding.encode(text))) <= len(text) // 20_000
    assert count_tokens("a" * 200_000) > 10_000  # quadratic merging would not come back


def test_the_environment_is_left_alone(monkeypatch, tmp_path):
    def no_network(*args, **kwargs):
        raise AssertionError("counting tokens must not open a connection")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    for folder in (None, "", str(tmp_path)):
        if folder is None:
            monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
        else:
            monkeypatch.setenv("TIKTOKEN_CACHE_DIR", folder)
        before = dict(os.environ)
        tokens._encoding.cache_clear()
        count_tokens("some text")
        assert dict(os.environ) == before
    tokens._encoding.cache_clear()


@given(any_text)
def test_without_the_encoding_four_bytes_are_a_token(text):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tokens, "_encoding", lambda: None)
        size = len(text.encode("utf-8", "surrogatepass"))
        assert count_tokens(text) == size // 4 + bool(size % 4)


class Counts:
    """A model with a tokenizer of its own."""

    def complete(self, prompt):
        return "none"

    def count_tokens(self, text):
        return len(text.split())


def test_the_encoding_comes_before_a_models_own_tokenizer(encoding):
    assert token_counter(Counts()) is count_tokens
    assert not is_estimate(count_tokens)


def test_without_the_encoding_the_first_model_that_can_counts_or_the_estimate_says_so(monkeypatch):
    monkeypatch.setattr(tokens, "_encoding", lambda: None)
    model = Counts()
    assert token_counter(str.upper, None, model)("one two three") == 3
    assert token_counter(str.upper) is count_tokens
    assert is_estimate(count_tokens)
    assert not is_estimate(token_counter(model))
    document = "# One\n\nRain.\n\n# Two\n\nSnow."
    counted = D3(model).retrieve("Which?", [document]).usage
    estimated = D3(lambda prompt: "none").retrieve("Which?", [document]).usage
    assert not counted.estimated
    assert estimated.estimated
    assert 0 < counted.prompt_tokens < estimated.prompt_tokens


def test_threads_agree():
    texts = [f"text {i} of many, Zürich" * (i % 7) for i in range(200)]
    tokens._encoding.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        counted = list(pool.map(count_tokens, texts))
    assert counted == [count_tokens(text) for text in texts]
