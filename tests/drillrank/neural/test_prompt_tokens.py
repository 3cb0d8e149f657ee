"""Prompts and their targets as the token ids that a model reads."""

from __future__ import annotations

import pickle

import pytest
import transformers
from tokenizers.processors import TemplateProcessing

from drillrank.errors import InvalidInput, LacksCapability
from drillrank.likelihood import HuggingFaceModel, NextTokenRequest, Request
from drillrank.likelihood.tokenizer import TextTokenizer, as_one_string, fit_to_budgets
from drillrank.prompts import TruncatableText
from tests.drillrank.neural.conftest import smallest
from tests.drillrank.neural.tokenizers_of_all_kinds import Simple, byte_level, word_piece

DOCUMENT = "The old town of Basel lies on the Rhine, a river of Europe."
TARGET = "Which town lies on the Rhine?"
CHAT = "{% for turn in messages %}{{ '<s>' + turn.role + ': ' + turn.content + '\n' }}{% endfor %}"


@pytest.fixture(scope="module")
def tokenizer():
    """One that puts `<s>` in front of every text."""
    backend = byte_level(["<s>", "</s>"])
    backend.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    host = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>")
    host.chat_template = CHAT
    return TextTokenizer(host)


def asked(text=DOCUMENT, target=TARGET, **options):
    return Request(("Read: ", TruncatableText(text), " Ask."), target, **options)


def test_a_token_is_known_by_its_id_or_its_name(tokenizer):
    names = tokenizer.token_names
    assert tokenizer.eos_id == tokenizer.answer_id("</s>") == 1
    assert [tokenizer.answer_id(id_) for id_ in (0, len(names) - 1)] == [0, len(names) - 1]
    assert [tokenizer.answer_id("a")] == tokenizer("a").ids[-1:]
    for wrong in (-1, len(names)):
        with pytest.raises(InvalidInput, match="has no token"):
            tokenizer.answer_id(wrong)
    parts = ", ".join(repr(names[id_]) for id_ in tokenizer("Basel").ids)
    with pytest.raises(LacksCapability, match=f"is {parts} to this model, and one token is needed"):
        tokenizer.answer_id("Basel")
    words = transformers.PreTrainedTokenizerFast(tokenizer_object=word_piece(["<s>"]), unk_token="<unk>")
    for unknown in ("zq", "a zq"):
        with pytest.raises(InvalidInput, match="'<unk>'") as refused:
            TextTokenizer(words).answer_id(unknown)
        assert refused.type is InvalidInput  # and not what another model could do
    assert tokenizer.defused("a <s> b") == "a <\u200bs> b"


def test_a_model_ends_a_target_if_asked_and_travels_as_its_options(tmp_path):
    model = HuggingFaceModel(str(smallest(tmp_path)), dtype="float32")
    sent = pickle.loads(pickle.dumps(model))
    assert (type(sent), sent.spec, sent.options) == (HuggingFaceModel, model.spec, model.options)
    first = sent.first_tokens(DOCUMENT, 3)
    assert DOCUMENT.startswith(first)
    assert sent.count_tokens(first) == 3
    pairs = [("Basel", "who?")]
    [bare], [ended] = (sent.log_likelihood(pairs, include_eos=end) for end in (False, True))
    assert ended.tokens == [*bare.tokens, "<|endoftext|>"]


@pytest.mark.parametrize("end", [(), (1,), (1, 1, 1)])
def test_a_string_is_the_prefix_the_prompt_its_target_and_the_end(tokenizer, end):
    assert tokenizer.prefix == [0]
    [(ids, first, cut, _)] = as_one_string([asked()], tokenizer, None, end)
    assert ids == [0, *tokenizer(f"Read: {DOCUMENT} Ask. {TARGET}").ids, *end]
    assert first == 1 + len(tokenizer(f"Read: {DOCUMENT} Ask.").ids)
    assert cut == 0


@pytest.mark.parametrize("end", [(), (1, 1, 1)])
def test_prefix_target_and_end_count_for_the_window(tokenizer, end):
    [(whole, _, _, _)] = as_one_string([asked()], tokenizer, None, end)
    [found] = as_one_string([asked()], tokenizer, len(whole), end)
    assert found[0] == whole
    for window in range(len(whole) - 12, len(whole)):
        [(ids, first, cut, _)] = as_one_string([asked()], tokenizer, window, end)
        assert window - 3 <= len(ids) <= window
        assert cut >= len(whole) - window
        assert ids[first : len(ids) - len(end)] == tokenizer(f" {TARGET}").ids


def test_strings_without_targets_end_with_the_prompt(tokenizer):
    found = list(as_one_string([NextTokenRequest(("Yes or no:",), ("yes",))] * 2, tokenizer, None))
    assert found == [([0, *tokenizer("Yes or no:").ids], 1 + len(tokenizer("Yes or no:").ids), 0, [])] * 2


@pytest.mark.parametrize("limit", [None, 30])
def test_a_conversation_is_worded_by_the_template_and_control_tokens_stay_what_they_are(tokenizer, limit):
    """`<s>` controls in the template and is text in the document, in a prompt that is cut, too."""
    requests = [asked(f"<s> {DOCUMENT}", chat=True, max_tokens=limit), asked("Basel", max_tokens=limit)]
    worded, plain = fit_to_budgets(requests, tokenizer, None, with_targets=True)
    before, after = "<s>user: Read: <s>", " Ask.\n<s>assistant: "
    assert worded.text.startswith(before)
    assert worded.text.endswith(after)
    assert (worded.cut_tokens > 0) is (worded.text != f"{before} {DOCUMENT}{after}") is (limit is not None)
    assert worded.tokens.ids.count(0) == 2
    assert worded.in_prompt == int((worded.tokens.ends <= len(worded.text)).sum())
    assert worded.in_prompt <= (limit or 100)
    assert worded.tokens.ids[worded.in_prompt :] == tokenizer(TARGET).ids
    assert plain.text == "Read: Basel Ask."
    assert plain.in_prompt == len(tokenizer(plain.text).ids)


@pytest.mark.parametrize(("own", "together"), [(12, None), (None, 12)])
def test_where_beginnings_have_fewer_tokens_than_their_length_tells_more_is_kept(own, together):
    """A text that ends with a mark has a token for each character, others have one."""
    marked = Simple(r".(?=.*!$)|!$|.+")
    request = Request((TruncatableText("a" * 12 + "!" + "a" * 6 + "!", own),), "who?", together)
    [fitted] = fit_to_budgets([request], marked, None, with_targets=False)
    assert fitted.text == "a" * 12 + "!" + "a" * 6
    assert (fitted.in_prompt, fitted.cut_tokens) == (1, 1)
