from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
import transformers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drillrank import UPR
from drillrank.errors import InvalidInput
from drillrank.likelihood import HuggingFaceModel, Request, load_language_model
from drillrank.likelihood.causal import CausalEngine
from drillrank.likelihood.engine import NotFinite
from drillrank.likelihood.text_tokenizer import TextTokenizer
from drillrank.prompts import Evidence
from tests.drillrank.neural.conftest import byte_pairs, wrapped

WORDS = [
    "Basel",
    "the Rhine",
    "river",
    "novel",
    "Emma",
    "Zürich",
    "東京",
    "42",
    "who wrote it?",
    "Question:",
    ". ",
    "\n",
]
phrases = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join).filter(str.strip)
requests = st.lists(st.tuples(phrases, phrases), min_size=1, max_size=6)
hypothesis = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
CONTROL = ["</s>", "<s>", "<pad>", "<unk>", "<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def naive(model: HuggingFaceModel, context: str, target: str, *, include_eos: bool) -> np.ndarray:
    """One request alone, in float64: no padding, no mask, no sharing, log-softmax over every position."""
    engine = model.engine
    network = pickle.loads(pickle.dumps(engine.model)).double()
    tokenizer = engine.tokenizer
    end = [engine.eos_id] if include_eos else []
    with torch.no_grad():
        if network.config.is_encoder_decoder:
            encoded = [*tokenizer.prefix, *tokenizer(context).ids, *tokenizer.suffix]
            labels = tokenizer(target).ids + end
            start = [network.config.decoder_start_token_id, *tokenizer.prefix]
            decoder = torch.tensor([start + labels[:-1]])
            logits = network(input_ids=torch.tensor([encoded]), decoder_input_ids=decoder).logits[0, len(start) - 1 :]
        else:
            blank = "" if context[-1:].isspace() or target[:1].isspace() else " "
            tokens = tokenizer(context + blank + target)
            first = sum(end_ <= len(context + blank) for end_ in tokens.ends)
            labels = tokens.ids[first:] + end
            whole = [*tokenizer.prefix, *tokens.ids, *end]
            logits = network(input_ids=torch.tensor([whole])).logits[0, len(whole) - len(labels) - 1 : -1]
        log_probs = torch.log_softmax(logits, dim=-1)
        return np.array([log_probs[place, label].item() for place, label in enumerate(labels)])


@hypothesis
@given(requests, st.booleans())
def test_agrees_with_one_at_a_time_in_float64(model, pairs, include_eos):
    for (context, target), result in zip(pairs, model.log_likelihood(pairs, include_eos=include_eos), strict=True):
        expected = naive(model, context, target, include_eos=include_eos)
        assert result.total == pytest.approx(expected.sum(), abs=1e-4)
        np.testing.assert_allclose(result.log_probs, expected, atol=1e-4)
        assert result.log_probs.dtype == np.float64
        assert len(result.tokens) == len(expected)


@hypothesis
@given(requests, st.randoms(), st.sampled_from([1, 40, 100_000]))
def test_neighbours_order_and_batches_do_not_matter(model, pairs, random, batch_tokens):
    together = model.log_likelihood(pairs)
    order = random.sample(range(len(pairs)), len(pairs))
    engine = model.engine
    before = engine.batch_tokens, engine.batch_targets
    engine.batch_tokens, engine.batch_targets = batch_tokens, max(1, batch_tokens // 4)
    try:
        shuffled = model.log_likelihood([pairs[i] for i in order])
    finally:
        engine.batch_tokens, engine.batch_targets = before
    for place, i in enumerate(order):
        np.testing.assert_allclose(shuffled[place].log_probs, together[i].log_probs, atol=1e-4)


def test_temperature_divides_the_logits_once(model):
    pair = ("The old town of Basel", "lies on the Rhine")
    cold, plain, hot = (model.log_likelihood([pair], temperature=t)[0].log_probs for t in (0.5, 1.0, 1e6))
    assert (cold != plain).any()
    np.testing.assert_allclose(hot, -np.log(model.engine.model.config.vocab_size), atol=1e-3)


@pytest.mark.parametrize("control", CONTROL)
def test_control_tokens_in_a_document_are_text(model, control):
    ids = model.engine.tokenizer(f"a {control} b{control}").ids
    tokenizer = model.engine.tokenizer
    special = {*tokenizer.prefix, *tokenizer.suffix, model.engine.eos_id}
    assert not special & set(ids), [tokenizer.token_names[i] for i in ids]


def test_shared_prefixes_change_nothing_but_the_work(model):
    document = "The old town of Basel lies on the Rhine, a river of Europe. " * 3
    pairs = [(f"{document}{i}", question) for i in ("", "Read.", "Ask.") for question in ("who?", "which river?")]
    alone = [model.log_likelihood([pair])[0] for pair in pairs]
    for one, other in zip(model.log_likelihood(pairs), alone, strict=True):
        np.testing.assert_allclose(one.log_probs, other.log_probs, atol=1e-4)


def test_sharing_on_or_off_gives_the_same_scores(model):
    if model.engine.model.config.is_encoder_decoder:
        pytest.skip("encoder-decoder models share encoder states only")
    document = "The old town of Basel lies on the Rhine. "
    pairs = [(f"{document}{i}", question) for i in ("", "Read.", "Ask.") for question in ("who?", "which river?")]
    shared = model.log_likelihood(pairs)
    assert model.engine._shares
    model.engine._shares = False
    try:
        plain = model.log_likelihood(pairs)
    finally:
        model.engine._shares = True
    for one, other in zip(shared, plain, strict=True):
        np.testing.assert_allclose(one.log_probs, other.log_probs, atol=1e-4)


def test_a_model_that_cannot_share_is_found_out_and_scored_plainly():
    torch.manual_seed(3)
    size = {"vocab_size": 400, "hidden_size": 32, "n_layer": 2, "n_head": 4}
    network = transformers.BloomForCausalLM(transformers.BloomConfig(**size)).eval()  # positions from the mask (ALiBi)
    for parameter in network.parameters():
        parameter.data *= 3
    tokenizer = TextTokenizer(wrapped(byte_pairs(["<unk>", "</s>"], bos="</s>"), eos_token="</s>"))
    engine = CausalEngine(network, tokenizer, eos_id=1, window=None, batch_tokens=None)
    requests = [Request((Evidence("The Rhine is a river."), end), "which river?") for end in (" Ask.", " Question:")]
    together = engine.log_likelihood(requests, 1.0, False)
    assert engine._shares is False
    for request, result in zip(requests, together, strict=True):
        [alone] = engine.log_likelihood([request], 1.0, False)
        np.testing.assert_allclose(result.log_probs, alone.log_probs, atol=1e-4)


def test_a_sliding_window_is_respected():
    torch.manual_seed(4)
    size = {"vocab_size": 400, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    network = transformers.MistralForCausalLM(transformers.MistralConfig(**size, **heads, sliding_window=12)).eval()
    for parameter in network.parameters():
        parameter.data *= 3
    tokenizer = TextTokenizer(wrapped(byte_pairs(["<unk>", "<s>"], bos="<s>")))
    engine = CausalEngine(network, tokenizer, eos_id=None, window=None, batch_tokens=None)
    context, target = "The old town of Basel lies on the Rhine, a river of Europe.", "which river?"
    together = engine.log_likelihood([Request((Evidence(context), end), target) for end in ("", " Ask.")], 1.0, False)
    tokens = tokenizer(f"{context} {target}")
    whole = [*tokenizer.prefix, *tokens.ids]
    with torch.no_grad():
        log_probs = torch.log_softmax(network.double()(input_ids=torch.tensor([whole])).logits[0], dim=-1)
    count = len(together[0].log_probs)
    expected = [log_probs[i - 1, whole[i]].item() for i in range(len(whole) - count, len(whole))]
    np.testing.assert_allclose(together[0].log_probs, expected, atol=1e-4)


@hypothesis
@given(st.lists(phrases, min_size=1, max_size=3), st.integers(4, 40))
def test_budgets_cut_documents_and_nothing_else(model, documents, room):
    fixed = ["Document: ", " Please write a question."]
    prompt = (fixed[0], *(part for text in documents for part in (Evidence(text), " ")), fixed[1])
    tokenizer = model.engine.tokenizer
    budget = sum(len(tokenizer(part).ids) for part in fixed) + room
    request = Request(prompt, "who wrote it?", max_tokens=budget)
    try:
        [result] = model.log_likelihood([request])
    except InvalidInput:
        return  # too little room for every document
    whole = len(tokenizer("".join(p if isinstance(p, str) else p.text for p in prompt)).ids)
    assert (result.cut_tokens > 0) == (whole > budget)


def test_a_document_limit_equals_the_shorter_document(model):
    text = "The old town of Basel lies on the Rhine"
    tokens = model.engine.tokenizer(text)
    shorter = text[: tokens.ends[4]]
    [cut] = model.log_likelihood([Request((Evidence(text, 5), " Question:"), "who?")])
    [plain] = model.log_likelihood([Request((Evidence(shorter), " Question:"), "who?")])
    assert cut.total == pytest.approx(plain.total, abs=1e-5)
    assert cut.cut_tokens == len(tokens.ids) - 5


def test_a_prompt_that_cannot_fit_is_a_clear_error(model):
    with pytest.raises(InvalidInput, match="shorten the instruction"):
        model.log_likelihood([Request(("many words of instruction " * 5,), "who?", max_tokens=3)])
    with pytest.raises(InvalidInput, match="Nothing would be left"):
        model.log_likelihood([Request(("instruction " * 5, Evidence("Basel")), "who?", max_tokens=3)])


def test_eight_threads_give_serial_results(model):
    pairs = [[(f"Basel {i} " * (i + 1), "which river?"), ("Emma", "who wrote it? " * i + "who?")] for i in range(8)]
    expected = [[result.total for result in model.log_likelihood(pair)] for pair in pairs]
    barrier = threading.Barrier(8)

    def work(pair):
        barrier.wait(timeout=60)
        return [result.total for result in model.log_likelihood(pair)]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, pairs)) == expected


def test_loading_is_lazy_and_pickling_drops_the_weights(folder):
    fresh = load_language_model(f"hf:{folder}", dtype="float32")
    assert fresh._engine is None
    used = UPR(fresh).rank("Which river?", ["Basel lies on the Rhine.", "Emma is a novel."])
    copy = pickle.loads(pickle.dumps(fresh))
    assert copy._engine is None
    assert (copy.spec, copy.options) == (fresh.spec, fresh.options)
    again = UPR(copy).rank("Which river?", ["Basel lies on the Rhine.", "Emma is a novel."])
    assert [item.score for item in again] == pytest.approx([item.score for item in used], abs=1e-5)


def test_a_batch_that_does_not_fit_is_halved(model, monkeypatch):
    pairs = [(f"Basel {i}", "who?") for i in range(5)]
    expected = [result.total for result in model.log_likelihood(pairs)]
    engine = model.engine
    one_batch = engine._one_batch
    refused = []

    def small_memory(first, *rest):
        if len(first) > 1:
            refused.append(len(first))
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return one_batch(first, *rest)

    monkeypatch.setattr(engine, "_one_batch", small_memory)
    monkeypatch.setattr("drillrank.likelihood.causal._ROW", 1)
    assert [result.total for result in model.log_likelihood(pairs)] == pytest.approx(expected, abs=1e-4)
    assert refused


def test_weights_that_give_no_numbers_are_named(folder):
    broken = HuggingFaceModel(str(folder), dtype="float32")
    next(broken.engine.model.parameters()).data.fill_(float("nan"))
    with pytest.raises(NotFinite, match="Request 0"):
        broken.log_likelihood([("Basel", "who?")])


@pytest.mark.parametrize("options", [{"dtype": "int8"}, {"no_such": 1}])
def test_bad_options(folder, options):
    with pytest.raises(InvalidInput):
        load_language_model(f"hf:{folder}", **options)
