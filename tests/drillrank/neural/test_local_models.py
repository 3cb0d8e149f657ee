"""Models of every family and tokenizer, against one request at a time in float64."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drillrank import BRMGR, D3, UPR, MonoT5, limits
from drillrank.errors import InvalidInput
from drillrank.likelihood import NextTokenRequest, Request, load_language_model
from drillrank.likelihood.tokenizer import fit_to_budgets
from drillrank.prompts import TruncatableText
from drillrank.text import token_counter
from tests.drillrank.neural.conftest import FAMILIES, MORE_TOKENIZERS, loaded, saved
from tests.drillrank.neural.float64 import Yardstick
from tests.drillrank.neural.requests import phrases, prompts, requests
from tests.examples import size

related = st.lists(  # prompts that begin alike, targets that begin alike, some to be cut, some the same
    st.builds(Request, prompts, st.sampled_from(["who?", "who wrote it?"]) | phrases, st.sampled_from([None, 50])),
    min_size=1,
    max_size=6,
)
hypothesis = settings(max_examples=size(12), deadline=None, suppress_health_check=list(HealthCheck))
CONTROL = ["</s>", "<s>", "<pad>", "<unk>", "<|endoftext|>", "<|im_start|>", "<|im_end|>"]


# Fixtures of its own: those of the other tests would be handed the wrong folder from the session's cache.
@pytest.fixture(scope="module", params=[*FAMILIES, *MORE_TOKENIZERS])
def folder(request, tmp_path_factory):
    return saved(request.param, tmp_path_factory)


@pytest.fixture(scope="module")
def yardstick(folder):
    return Yardstick(folder)


@pytest.fixture(scope="module")
def model(folder):
    return loaded(folder)


@hypothesis
@given(requests, st.booleans(), st.sampled_from([1.0, 1.4, 0.5]))
def test_agrees_with_one_at_a_time_in_float64(model, yardstick, pairs, include_eos, temperature):
    results = model.log_likelihood(pairs, include_eos=include_eos, temperature=temperature)
    for (context, target), result in zip(pairs, results, strict=True):
        expected = yardstick(context, target, include_eos=include_eos, temperature=temperature)
        assert result.total == pytest.approx(expected.sum(), abs=1e-4, rel=1e-6)
        np.testing.assert_allclose(result.log_probs, expected, atol=1e-4)
        assert result.log_probs.dtype == np.float64
        assert len(result.tokens) == len(expected)


@hypothesis
@given(related, st.randoms(), st.sampled_from([1, 40, 400]), st.booleans(), st.sampled_from([1, 1.4]))
def test_a_score_depends_on_its_request_alone(model, asked, random, batch_tokens, include_eos, temperature):
    """Neither on its neighbours, nor on the order, the batches, and what prefixes are shared."""
    settings = {"include_eos": include_eos, "temperature": temperature}
    alone = [model.log_likelihood([request], **settings)[0] for request in asked]
    order = random.choices(range(len(asked)), k=len(asked) + 2)  # some left out, some twice
    in_batches = load_language_model(model.spec, **model.options | {"batch_tokens": batch_tokens})
    for other in (model, in_batches):
        together = other.log_likelihood([asked[i] for i in order], **settings)
        for i, found in zip(order, together, strict=True):
            np.testing.assert_allclose(found.log_probs, alone[i].log_probs, atol=1e-4)
            assert (found.tokens, found.cut_tokens) == (alone[i].tokens, alone[i].cut_tokens)


@pytest.mark.parametrize("folder", ["llama"], indirect=True)
@pytest.mark.parametrize("text", ["one\n\ttwo", "Zürich, café", "東京タワー", "🦊 👩‍👩‍👧", "½ ﷺ e\u0301", "<0x0A>"])
def test_bytes_that_a_tokenizer_lists_as_special_reach_the_model(model, yardstick, text):
    for context, target in ((f"{text} lies on the Rhine.", "which river?"), ("Basel.", f"what is {text} for?")):
        [result] = model.log_likelihood([(context, target)])
        if text != "<0x0A>":  # which the yardstick's tokenizer takes for a line break
            expected = yardstick(context, target, include_eos=False)
            np.testing.assert_allclose(result.log_probs, expected, atol=1e-4)
    assert "<unk>" not in result.tokens
    assert ("<0x0A>" in result.tokens) == ("\n" in text)


@pytest.mark.parametrize("control", CONTROL)
def test_control_tokens_in_a_document_are_text(model, control):
    ids = model.engine.tokenizer(f"a {control} b{control}").ids
    tokenizer = model.engine.tokenizer
    special = {*tokenizer.prefix, *tokenizer.suffix, tokenizer.eos_id}
    assert not special & set(ids), [tokenizer.token_names[i] for i in ids]


@pytest.mark.parametrize("limit", range(1, 8))
def test_a_target_follows_a_cut_prompt_as_it_follows_the_shorter_one(model, limit):
    request = Request((TruncatableText("Basel lies on the Rhine, a river. \n", limit),), "who?")
    [fitted] = fit_to_budgets([request], model.engine.tokenizer, None, with_targets=not model.include_eos_by_default)
    [cut] = model.log_likelihood([request])
    [shorter] = model.log_likelihood([(fitted.text, "who?")])
    assert cut.tokens == shorter.tokens
    assert cut.total == pytest.approx(shorter.total, abs=1e-4)


@pytest.mark.parametrize(
    "prompt", [("",), (TruncatableText("Basel"),), ("Read: ", TruncatableText("Basel " * 400), " Ask.")]
)
def test_a_question_that_is_too_long_alone_is_named(model, prompt, monkeypatch):
    question = "which river of all " * 200
    request = Request(prompt, question)
    monkeypatch.setattr(limits, "TARGET_TOKENS", 500)  # a T5 has no longest target of its own
    with pytest.raises(InvalidInput, match=r"The question.* has \d{3,} tokens, .* \d+.*'which river.*Shorten it"):
        model.log_likelihood([request])


def test_half_a_character_is_refused_in_a_question_and_replaced_in_a_document(model):
    half = "\ud83e"
    with pytest.raises(InvalidInput, match="offset 3"):
        model.log_likelihood([("Basel", f"who{half}?")])
    [found] = model.log_likelihood([Request((half, TruncatableText(f"Basel {half}"), f"{half} Ask."), "who?")])
    [replaced] = model.log_likelihood([Request(("\ufffd", TruncatableText("Basel \ufffd"), "\ufffd Ask."), "who?")])
    assert found.total == pytest.approx(replaced.total, abs=1e-5)
    assert model.first_tokens(f"{half} Basel" * 3, 100) == f"{half} Basel" * 3
    with pytest.raises(InvalidInput, match="query"):
        MonoT5(model).rank(f"who{half}?", ["Basel"])
    assert len(MonoT5(model).rank("who?", [f"Basel {half}"])) == 1
    assert len(BRMGR(model, guard=0.0).rank("who?", [f"Basel {half}"], [f"{half} Rhine"])) >= 1


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        (("many words of instruction " * 5,), "Shorten the instruction"),
        (("instruction " * 5, TruncatableText("Basel")), "Nothing would be left"),
    ],
)
def test_a_prompt_that_cannot_fit_is_refused(model, prompt, message):
    with pytest.raises(InvalidInput, match=message):
        model.log_likelihood([Request(prompt, "who?", max_tokens=3)])


def test_loading_is_lazy_and_pickling_drops_the_weights(model):
    fresh = load_language_model(model.spec, **model.options)
    assert fresh._engine is None
    used = UPR(fresh).rank("Which river?", ["Basel lies on the Rhine.", "Emma is a novel."])
    copy = pickle.loads(pickle.dumps(fresh))
    assert copy._engine is None
    assert (copy.spec, copy.options) == (fresh.spec, fresh.options)
    again = UPR(copy).rank("Which river?", ["Basel lies on the Rhine.", "Emma is a novel."])
    assert [item.score for item in again] == pytest.approx([item.score for item in used], abs=1e-5)


@pytest.mark.parametrize("folder", ["gpt2"], indirect=True)
def test_a_target_needs_something_in_front(model):
    with pytest.raises(InvalidInput, match="in front of the target"):
        model.log_likelihood([("Basel", "who?"), ("", "who?")])
    with pytest.raises(InvalidInput, match="in front of the target"):
        model.next_tokens([NextTokenRequest((TruncatableText(""),), ("e",))])


def test_the_models_own_tokenizer_counts_where_it_is_named(model):
    text, prompts = "# Basel\n\nIt lies on the Rhine.\n\n# Emma\n\nIt is a novel.", []
    assert token_counter(model)(text) == len(model.engine.tokenizer(text).ids) > 0
    d3 = D3(lambda prompt: prompts.append(prompt) or "None", model, settings={"tokens": model, "unit": "paragraph"})
    usage = d3.retrieve("Which river?", [text]).usage
    assert usage.prompt_tokens == model.count_tokens(prompts[0])
    assert not usage.estimated
