"""Control tokens: the user's in instructions and templates, text in documents and questions; and conversations."""

from __future__ import annotations

import numpy as np
import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank import UPR
from drillrank.errors import InvalidInput
from drillrank.likelihood import HuggingFaceModel, Request
from drillrank.likelihood.tokenizer import TextTokenizer
from drillrank.prompts import TruncatableText, TrustedText, prompt_text
from tests.drillrank.neural.conftest import saved
from tests.drillrank.neural.float64 import Yardstick, of_ids
from tests.drillrank.neural.tokenizers_of_all_kinds import CHAT, KINDS

CONTROL = ["<|im_start|>", "<|im_end|>", "<s>", "</s>"]
WORDS = ["Basel", " the", "Rhine", " ", "\n", "東京", "é", "🦊", "who?", "\ud83e"]
kinds = st.sampled_from(sorted(KINDS))
phrases = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map("".join)
wording = st.lists(st.sampled_from([*CONTROL, *WORDS]), max_size=6).map("".join).map(TrustedText)
data = st.lists(st.sampled_from([*CONTROL, *WORDS]), max_size=6).map("".join)
prompts = st.lists(wording | data | data.map(TruncatableText), min_size=1, max_size=6).map(tuple)


@pytest.fixture(scope="module")
def tokenizers():
    hosts = {
        kind: transformers.PreTrainedTokenizerFast(tokenizer_object=make(CONTROL), eos_token="</s>", unk_token="<unk>")
        for kind, make in KINDS.items()
    }
    return {kind: (host, TextTokenizer(host)) for kind, host in hosts.items()}


@settings(deadline=None)
@given(kinds, prompts)
def test_control_tokens_of_the_wording_are_encoded_as_the_tokenizer_does_and_others_are_text(tokenizers, kind, prompt):
    host, ours = tokenizers[kind]
    text = prompt_text(prompt)
    tokens = ours(text, ours.marks(prompt))
    special = host.convert_tokens_to_ids(CONTROL)
    in_wording = [name for part in prompt if isinstance(part, TrustedText) for name in _names(part)]
    assert [id_ for id_ in tokens.ids if id_ in special] == host.convert_tokens_to_ids(in_wording)
    if len(in_wording) == len(_names(text)):  # nothing else for the tokenizer to take for one
        assert tokens.ids == host(text.replace("\ud83e", "\ufffd"), add_special_tokens=False)["input_ids"]
    starts = [0, *tokens.ends.tolist()][:-1]  # a token begins where the one before it ends
    for id_, start, end in zip(tokens.ids, starts, tokens.ends.tolist(), strict=True):
        if id_ in special:
            # A tokenizer of word pieces drops half a character, which then counts to the token after it.
            assert text[start:end].strip("\ud83e \n") == host.convert_ids_to_tokens(id_)
    assert (tokens.ends[1:] >= tokens.ends[:-1]).all()
    assert all(0 <= start <= end <= len(text) for start, end in zip(starts, tokens.ends.tolist(), strict=True))


def _names(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text):
        name = next((name for name in CONTROL if text.startswith(name, at)), None)
        found += [name] if name else []
        at += len(name or "x")
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("added", ["<think>", "[TOOL_CALLS]", "<|user|>"])
def test_added_markup_that_is_not_special_is_text_in_a_document_and_markup_in_wording(kind, added):
    host = transformers.PreTrainedTokenizerFast(tokenizer_object=KINDS[kind](["<s>", "</s>"]), unk_token="<unk>")
    host.add_tokens(["  ", "Baselland", "..."])
    plain = TextTokenizer(host)(f"a {added} b").ids
    host.add_tokens([added])
    ours, id_ = TextTokenizer(host), host.convert_tokens_to_ids(added)
    assert id_ not in ours(f"a {added} b").ids
    assert ours(f"a {added} b").ids == plain
    assert ours(added, ours.marks((TrustedText(added),))).ids.count(id_) == 1
    for word in ("Baselland", "..."):  # which any text may hold
        assert host.convert_tokens_to_ids(word) in ours(f"a {word} b").ids


@pytest.fixture(scope="module")
def chatting(tmp_path_factory):
    """A decoder-only model with a chat template, whose tokenizer puts nothing in front by itself."""
    folder = saved("qwen2", tmp_path_factory)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = CHAT
    tokenizer.save_pretrained(folder)
    return folder


def in_chat(yardstick: Yardstick, question: str, answer: str) -> np.ndarray:
    """As the tokenizer of transformers renders and reads a conversation, scored in float64."""
    turns = [{"role": "user", "content": question}]
    before = yardstick.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    encoded = yardstick.tokenizer(before + answer, add_special_tokens=False, return_offsets_mapping=True)
    first = sum(end <= len(before) for _, end in encoded["offset_mapping"])
    ids = encoded["input_ids"]
    return of_ids(yardstick.network, ids[:first], ids[first:])


def test_upr_in_a_conversation(chatting):
    yardstick = Yardstick(chatting)
    texts = ["The Rhine is a river.", "Emma is a novel."]
    ranking = UPR(HuggingFaceModel(str(chatting), dtype="float32", chat=True)).rank("who wrote it?", texts)
    for item in ranking:
        asked = f"Passage: {item.passage.text}. Please write a question based on this passage."
        assert item.score == pytest.approx(in_chat(yardstick, asked, "who wrote it?").mean(), abs=1e-4)
    plain = UPR(HuggingFaceModel(str(chatting), dtype="float32")).rank("who wrote it?", texts)
    assert [item.score for item in plain] != pytest.approx([item.score for item in ranking], abs=1e-3)


def test_what_a_template_says_for_a_model_that_thinks_first_stands_in_front_of_the_answer(chatting):
    tokenizer = transformers.AutoTokenizer.from_pretrained(chatting)
    tokenizer.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}<think>\n\n</think>\n\n"
        "{% endif %}{{ m.content | trim }}<|im_end|>\n{% endfor %}"
    )
    said = TextTokenizer(tokenizer).in_chat(Request((TruncatableText(" \n", 7), "  Who? ", TrustedText(" ")), "x"))
    assert prompt_text(said.prompt) == (
        "<|im_start|>user\nWho?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    )
    assert [part.max_tokens for part in said.prompt if isinstance(part, TruncatableText)] == [7]


@pytest.mark.parametrize(
    ("template", "match"),
    [
        (None, "has no chat template: leave chat out"),
        ("{{ raise_exception('no system') }}", "cannot be used: no system"),
        ("{{ messages[0].content | upper }}", "does not say question and answer as they are"),
    ],
)
def test_a_template_that_is_of_no_use_is_a_clear_error(chatting, template, match):
    tokenizer = transformers.AutoTokenizer.from_pretrained(chatting)
    tokenizer.chat_template = template
    with pytest.raises(InvalidInput, match=match):
        TextTokenizer(tokenizer).in_chat(Request(("a",), "b"))
