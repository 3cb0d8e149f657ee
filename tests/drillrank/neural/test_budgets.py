"""Token budgets on tokenizers of every kind and on any text.

100 cases of each; `DRILLRANK_FUZZ=10000` asks for more.
"""

from __future__ import annotations

import math
import os

import pytest
import transformers
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from drillrank.errors import InvalidInput
from drillrank.likelihood import Request
from drillrank.likelihood.tokenizer import TextTokenizer, allot, fit_to_budgets
from drillrank.prompts import TruncatableText
from tests.drillrank.neural.tokenizers_of_all_kinds import KINDS, Simple, texts
from tests.examples import examples

FUZZ = int(os.environ.get("DRILLRANK_FUZZ", "100"))
fuzz = settings(max_examples=FUZZ, suppress_health_check=[HealthCheck.too_slow])
kinds = st.sampled_from(sorted(KINDS))
befores = st.sampled_from(["", "Passage: ", "Passage:", "東"])
afters = st.sampled_from(["", " Question:", ". Ask.", "s"])


class Counting(TextTokenizer):
    """Counts how often it is asked, and how many tokens the longest answer has."""

    calls, longest = 0, 1

    def batch(self, texts, marks=None):
        found = super().batch(texts, marks)
        self.calls, self.longest = self.calls + 1, max(self.longest, *(len(tokens.ids) for tokens in found))
        return found


@pytest.fixture(scope="module")
def tokenizers():
    made = {}
    for kind, make in KINDS.items():
        backend = make(["<s>", "</s>"])
        made[kind] = Counting(transformers.PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="</s>"))
    return made


def fit(tokenizer, request, window=None, *, with_target=False):
    tokenizer.calls, tokenizer.longest = 0, 1
    [fitted] = fit_to_budgets([request], tokenizer, window, with_targets=with_target)
    searches = 1 + sum(isinstance(part, TruncatableText) for part in request.prompt)
    assert tokenizer.calls <= 2 + searches * (6 + math.log2(tokenizer.longest))
    return fitted


def length(tokenizer, before, text, after):
    """Tokens of a text between others: those that end in it."""
    return sum(len(before) < end <= len(before + text) for end in tokenizer(before + text + after).ends)


def ends_behind(tokenizer, before, text, after, kept):
    """Where the text's tokens beyond the kept ones end."""
    first, last = len(before) + len(kept), len(before) + len(text)
    return [int(end) - len(before) for end in tokenizer(before + text + after).ends if first < end <= last]


@fuzz
@given(kinds, texts, st.integers(1, 60), befores, afters)
@example("byte-level", "🦊" * 200, 230, "Passage: ", ". Please write a question based on this passage.")
@example("unigram", "½" * 30, 10, "Document: ", " Question:")
@example("byte-fallback", "東京" * 30, 10, "", "")
def test_a_document_keeps_the_longest_beginning_within_its_limit(tokenizers, kind, text, limit, before, after):
    tokenizer = tokenizers[kind]
    fitted = fit(tokenizer, Request((before, TruncatableText(text, limit), after), "who?"))
    kept = fitted.text[len(before) : len(fitted.text) - len(after)]
    assert fitted.text == before + kept + after
    assert text.startswith(kept)
    assert length(tokenizer, before, kept, after) <= limit
    assert fitted.tokens.ids == tokenizer(fitted.text).ids
    left_out = ends_behind(tokenizer, before, text, after, kept)
    assert fitted.cut_tokens == (len(left_out) if kept != text else 0)
    # None that is more than three tokens longer would have fitted; a character can have four.
    assert all(length(tokenizer, before, text[:end], after) > limit for end in left_out[3:])


@fuzz
@given(
    kinds,
    st.lists(st.tuples(texts, st.none() | st.integers(1, 60)), min_size=1, max_size=3),
    st.none() | st.integers(0, 80),
    st.none() | st.integers(0, 80),
    st.booleans(),
    st.sampled_from(["", " ", ". "]),
)
def test_all_limits_of_a_prompt_are_kept_or_it_is_refused(
    tokenizers, kind, documents, max_tokens, window, with_target, seam
):
    tokenizer = tokenizers[kind]
    parts = [part for text, limit in documents for part in (TruncatableText(text, limit), seam)]
    request = Request((*parts, "Ask."), "who?", max_tokens)
    try:
        fitted = fit(tokenizer, request, window, with_target=with_target)
    except InvalidInput as error:
        assert "left of" in str(error) or "The question" in str(error)  # noqa: PT017  # whether it is raised depends
        return
    assert fitted.text.endswith("Ask.")
    assert window is None or len(fitted.tokens.ids) <= window
    in_prompt = sum(end <= len(fitted.text) for end in fitted.tokens.ends) if with_target else len(fitted.tokens.ids)
    assert max_tokens is None or in_prompt <= max_tokens
    uncut = "".join(part if isinstance(part, str) else part.text for part in request.prompt)
    assert (fitted.cut_tokens > 0) == (fitted.text != uncut)


SIMPLE = {"characters": Simple("."), "words": Simple(r"\S+")}


def fit_simply(kind, request, window=None, *, with_targets=False):
    [fitted] = fit_to_budgets([request], SIMPLE[kind], window, with_targets=with_targets)
    return fitted


@settings(max_examples=examples(400))
@given(
    st.sampled_from([("characters", ""), ("characters", " "), ("words", " "), ("words", " | ")]),
    st.lists(st.tuples(st.text("a ", max_size=14), st.none() | st.integers(0, 12)), max_size=3),
    st.sampled_from(["", "Read: "]),
    st.sampled_from([("", False), (" Ask.", False), (" Ask.", True)]),
    st.none() | st.integers(0, 40),
    st.none() | st.integers(0, 40),
)
@example(("characters", ""), [("aaaa", None), ("", None), ("", None)], "", ("", False), 1, None)
def test_where_lengths_add_up_each_document_keeps_what_is_allotted_to_it(
    tokens, documents, before, end, max_tokens, window
):
    (kind, seam), (after, with_targets) = tokens, end
    tokenizer = SIMPLE[kind]
    parts = [part for text, limit in documents for part in (seam, TruncatableText(text, limit))]
    request = Request((before, *parts, after), "who?", max_tokens)
    texts, limits = [text for text, _ in documents], [limit for _, limit in documents]
    lengths = list(map(tokenizer.length, texts))
    wording = tokenizer.length(before) + tokenizer.length(seam) * len(documents) + tokenizer.length(after)
    behind = tokenizer.length(" who?") if with_targets else 0
    rooms = [most for most in (max_tokens, None if window is None else window - behind) if most is not None]
    room = min(rooms) - wording if rooms else sum(lengths)
    caps = [length if limit is None else min(length, limit) for length, limit in zip(lengths, limits, strict=True)]
    nothing_left = any(length and not cap for length, cap in zip(lengths, caps, strict=True))
    if nothing_left or room < min(sum(caps), sum(cap > 0 for cap in caps)):
        with pytest.raises(InvalidInput, match=r"left of|The question"):
            fit_simply(kind, request, window, with_targets=with_targets)
        return
    kept = allot(caps, [None] * len(caps), max(room, 0))
    fitted = fit_simply(kind, request, window, with_targets=with_targets)
    shown = [tokenizer.beginning(text, keep) for text, keep in zip(texts, kept, strict=True)]
    assert fitted.text == before + "".join(seam + text for text in shown) + after
    assert fitted.cut_tokens == sum(lengths) - sum(kept)


@pytest.mark.parametrize("limit", [1, 4])
def test_a_beginning_that_falls_apart_into_more_tokens_than_the_whole_is_not_kept(limit):
    fallen = Simple(r"\S+(?=.*!)|\S")  # a text that has lost its end is one of characters
    request = Request((TruncatableText("Basel lies on the Rhine!", limit),), "who?")
    [fitted] = fit_to_budgets([request], fallen, None, with_targets=False)
    assert fitted.text == ""


@pytest.mark.parametrize(
    ("prompt", "target", "blank"),
    [
        *((prompt, "who?", " ") for prompt in ("Ask:", "a b:", "b :", ":")),
        *((prompt, "who?", "") for prompt in ("", "Ask: ", "Ask:\n")),
        *(("Ask:", target, "") for target in (" who?", "\twho?")),
        *(("Ask:", target, " ") for target in ("I do", "?")),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_blank_stands_before_the_target_unless_there_is_one(tokenizers, kind, prompt, target, blank):
    fitted = fit(tokenizers[kind], Request((prompt,), target), with_target=True)
    assert fitted.text == prompt
    assert fitted.tokens.ids == tokenizers[kind](prompt + blank + target).ids


@pytest.mark.parametrize(
    ("parts", "target", "budget", "window", "message"),
    [
        (("aa", TruncatableText("b")), "who?", None, 5, "^The question, .* has 5 tokens, and the model reads 5 at"),
        (
            ("aa", TruncatableText("b")),
            "who?",
            None,
            6,
            "rest of the prompt has 2 tokens, the text behind it 5, and 6 that the",
        ),
        (
            (TruncatableText("bb"), "aa"),
            "who?",
            2,
            None,
            r"has 2 tokens, the text behind it 5, and 2 of the prompt are .* 'aa'",
        ),
        (
            (TruncatableText("bb"), TruncatableText("b")),
            "who?",
            1,
            None,
            "rest of the prompt has 0 tokens, .* begins with ''",
        ),
        (("zz", TruncatableText("b"), "aaa"), "who?", 5, None, "rest of the prompt has 5 tokens, .* begins with 'aaa'"),
    ],
)
def test_a_refusal_counts_what_cannot_be_cut(parts, target, budget, window, message):
    with pytest.raises(InvalidInput, match=message):
        fit_simply("characters", Request(parts, target, budget), window, with_targets=True)
