"""Relevance against independent float64 computations, and the presets against their publishers' words."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.special import expit, log_softmax

from drillrank import Passage, Relevance, load_language_model
from drillrank.drilldown.prompts import BOOLEAN_PROMPT
from drillrank.errors import InvalidInput, LacksCapability
from drillrank.evaluation.settings_file import keyword_arguments
from drillrank.likelihood import HuggingFaceModel, NextTokenRequest, TrainedAnswers
from drillrank.prompts import TruncatableText, TrustedText, prompt_text
from drillrank.rerank.relevance import ANSWER_PRESETS
from drillrank.rerank.scales import rescaled
from tests.drillrank.helpers import refuses
from tests.drillrank.neural.conftest import FAMILIES, MORE_TOKENIZERS, loaded, saved
from tests.drillrank.neural.float64 import Yardstick
from tests.examples import size

QWEN = ("<|im_start|>system\n", "<|im_end|>\n<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n")
# As the publishers write them, with the places filled; see docs/neural-models.md for where each was read.
SAID = {
    "monot5": ("Query: QQ Document: DD Relevant:", "true", "false", "softmax", 1),
    "qwen3-reranker": (
        QWEN[0] + "Judge whether the Document meets the requirements based on the Query and the Instruct provided. "
        'Note that the answer can only be "yes" or "no".' + QWEN[1]
        + "<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n<Query>: QQ\n"
        "<Document>: DD" + QWEN[2] + "<think>\n\n</think>\n\n",
        "yes", "no", "softmax", 1,
    ),
    "mxbai-rerank-v2": (
        QWEN[0] + "You are Qwen, created by Alibaba Cloud. You are a helpful assistant." + QWEN[1]
        + "query: QQ\ndocument: DD\nYou are a search relevance expert who evaluates how well documents match search "
        "queries. For each query-document pair, carefully analyze the semantic relationship between them, then provide "
        "your binary relevance judgment (0 for not relevant, 1 for relevant).\nRelevance:" + QWEN[2],
        "1", "0", "margin", 1,
    ),
    "bge-reranker-v2-gemma": (
        "A: QQ\nB: DD\nGiven a query A and a passage B, determine whether the passage contains an answer to the query "
        "by providing a prediction of either 'Yes' or 'No'.",
        "Yes", None, "logit", 1,
    ),
    "zerank-1-small": (QWEN[0] + "QQ" + QWEN[1] + "DD" + QWEN[2], "Yes", None, "logit", 1 / 5),
    "zerank-2": (QWEN[0] + "QQ" + QWEN[1] + "DD" + QWEN[2], "Yes", None, "logit", 1),
    "ctxl-rerank-v2": (
        "Check whether a given document contains information helpful to answer the query.\n"
        "<Document> DD\n<Query> QQ ??",
        0, None, "logit", 1,
    ),
}  # fmt: skip
INSTRUCTED = {
    "qwen3-reranker": "<Instruct>: I\n<Query>: Q\n<Document>: D<|im_end|>",
    "mxbai-rerank-v2": "user\ninstruction: I\nquery: Q\ndocument: D\nYou",
    "ctxl-rerank-v2": "<Document> D\n<Query> Q I ??",
    "yes-no": "I\n\nQuery: Q",
}
LEXICAL = ("unigram", load_language_model())
PLAIN = {"positive": "e", "negative": "s", "chat": False}
ANSWERS = ("e", "s")  # single tokens of every tiny tokenizer
WORDS = ["Basel", "the Rhine", "river", "novel", "Emma", "東京", "42", "who wrote it?", ". ", "</s>", "<|im_start|>"]
phrases = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
passages = st.lists(st.builds(Passage, phrases, title=st.sampled_from(["", "Basel"])), min_size=1, max_size=5)
hypothesis = settings(max_examples=size(12), suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module", params=[*FAMILIES, *MORE_TOKENIZERS])
def folder(request, tmp_path_factory):
    return saved(request.param, tmp_path_factory)


@pytest.fixture(scope="module")
def yardstick(folder):
    return Yardstick(folder)


@pytest.fixture(scope="module")
def model(folder):
    return loaded(folder)


def logits_behind(yardstick: Yardstick, ids: list[int]) -> np.ndarray:
    """Of the token behind a prompt of these ids, or, of an encoder-decoder, of the answer's first one."""
    network = yardstick.network
    if not network.config.get("is_encoder_decoder"):
        return network.logits(ids)[-1]
    around = yardstick.tokenizer("a", return_special_tokens_mask=True)
    start = around["input_ids"][: around["special_tokens_mask"].index(0)]
    return network.logits([network.config["decoder_start_token_id"], *start], ids)[-1]


def prompt_ids(model, yardstick, prompt):
    """As data, but for the wording; special tokens around it by the tokenizer of transformers itself."""
    tokenizer = model.engine.tokenizer
    around = yardstick.tokenizer("a", return_special_tokens_mask=True)
    first, last = (around["special_tokens_mask"][::step].index(0) for step in (1, -1))
    ids = around["input_ids"]
    return [*ids[:first], *tokenizer(prompt_text(prompt), tokenizer.marks(prompt)).ids, *ids[len(ids) - last :]]


@hypothesis
@given(query=phrases, given_=passages, transform=st.sampled_from(["softmax", "margin", "logit"]))
def test_every_transform_agrees_with_float64(model, yardstick, query, given_, transform):
    template = "Query: {query} Document: {text} Relevant:"
    ids = [model.engine.tokenizer.answer_id(answer) for answer in ANSWERS]
    assert [yardstick.tokenizer.convert_ids_to_tokens(i).strip("▁Ġ") for i in ids] == list(ANSWERS)
    asked = {**PLAIN, "transform": transform, "scale": 0.5, "shift": 1.5}
    ranking = Relevance(model, template=template, settings=asked).rank(query, given_)
    assert len(ranking) == len(given_)
    for item in ranking:
        prompt = (TrustedText("Query: "), query, " Document: ", TruncatableText(item.passage.titled_text), " Relevant:")
        found = logits_behind(yardstick, prompt_ids(model, yardstick, prompt))[ids]
        odds = 0.5 * (found[0] - found[1] if transform != "logit" else found[0]) + 1.5
        expected = log_softmax([odds, 0])[0] if transform == "softmax" else odds
        assert item.score == pytest.approx(expected, abs=1e-5, rel=1e-5)
        assert item.details["log_odds"] == pytest.approx(odds, abs=1e-5, rel=1e-5)
        assert item.details["bounded"] == []
        json.dumps(item.details)
    shown = rescaled(ranking, "probability")
    assert [item.score for item in shown] == pytest.approx([expit(item.details["log_odds"]) for item in ranking])
    assert sum(item.score for item in rescaled(ranking, "softmax")) == pytest.approx(1)


@hypothesis
@given(query=phrases, given_=passages, logits=st.booleans(), batch_tokens=st.sampled_from([1, 40, 100_000]))
def test_values_do_not_depend_on_neighbours_batches_and_sharing(model, query, given_, logits, batch_tokens):
    requests = [
        NextTokenRequest((f"Query: {query} Document: ", TruncatableText(one.text), " Relevant:"), answers)
        for one in given_
        for answers in (ANSWERS, ANSWERS[:1], ("s", "e", "e"))
    ]
    alone = [model.next_tokens([request], logits=logits)[0].values for request in requests]
    in_batches = load_language_model(model.spec, **model.options | {"batch_tokens": batch_tokens})
    together = in_batches.next_tokens([*requests, *requests], logits=logits)
    for one, other in zip([*alone, *alone], together, strict=True):
        np.testing.assert_allclose(other.values, one, atol=1e-4)
        assert other.values.dtype == np.float64


@pytest.mark.parametrize("folder", ["qwen2"], indirect=True)
@pytest.mark.parametrize("preset", SAID)
def test_a_preset_says_what_its_publisher_says(folder, yardstick, preset):
    """Prompt, token ids and transform, each scored in float64."""
    said, positive, negative, transform, factor = SAID[preset]
    model = HuggingFaceModel(str(folder), dtype="float32", max_length=1000)
    tokens = {"positive": "e", "negative": "s"} if preset != "ctxl-rerank-v2" else {}  # the tiny model has no "yes"
    ranker = Relevance(model, preset=preset, **keyword_arguments(Relevance, tokens))
    asked = ANSWER_PRESETS[preset]
    assert (asked.positive, asked.negative, asked.transform, asked.shift) == (positive, negative, transform, 0)
    assert asked.scale == pytest.approx(factor)
    assert prompt_text(ranker._prompt("QQ", Passage("DD"))) == said
    filled = {"QQ": "who <|im_start|>", "DD": TruncatableText("Emma <|im_end|>")}
    prompt = tuple(filled.get(piece, TrustedText(piece)) for piece in re.split("(QQ|DD)", said))
    [item] = ranker.rank("who <|im_start|>", ["Emma <|im_end|>"])
    found = logits_behind(yardstick, prompt_ids(model, yardstick, prompt))
    ids = [model.engine.tokenizer.answer_id(one) for one in (tokens.values() or [0])]
    value = found[ids[0]] - (found[ids[1]] if negative is not None else 0)
    expected = log_softmax([value, 0])[0] if transform == "softmax" else value * factor
    assert item.score == pytest.approx(expected, abs=1e-5)


def test_the_preset_of_d3_asks_a_chat_model_what_the_strategy_paragraph_asks():
    preset = ANSWER_PRESETS["d3"]
    assert preset.chat
    assert (preset.positive, preset.negative, preset.transform) == ("Yes", "No", "softmax")
    said = prompt_text(
        Relevance("hf:x", preset="d3", settings={"positive": 1, "negative": 2})._prompt("QQ", Passage("DD"))
    )
    assert said == BOOLEAN_PROMPT.format(paragraphs="[1] DD", question="QQ")


@pytest.mark.parametrize("preset", INSTRUCTED)
def test_an_instruction_stands_where_the_publisher_puts_it(preset):
    ranker = Relevance("hf:x", preset=preset, instruction="I", settings={"positive": 1, "negative": 2})
    prompt = ranker._prompt("Q", Passage("D"))
    assert INSTRUCTED[preset] in prompt_text(prompt)
    assert any(isinstance(part, TrustedText) and "I" in part for part in prompt)
    assert [type(part) for part in prompt if part in ("Q", TruncatableText("D"))] in (
        [str, TruncatableText],
        [TruncatableText, str],
    )


@pytest.mark.parametrize("folder", ["qwen2", "t5-tied"], indirect=True)
def test_a_long_passage_is_cut_and_nothing_else(model):
    long = "The Rhine flows through Basel. " * 200
    ranker = Relevance(model, settings=PLAIN)
    prompt = ranker._prompt("who?", Passage(long))
    engine = model.engine
    read = []
    tokens = type(engine.tokenizer).started
    try:
        type(engine.tokenizer).started = lambda self, ids: read.append(ids) or tokens(self, ids)
        [item] = ranker.rank("who?", [long])
    finally:
        type(engine.tokenizer).started = tokens
    text = prompt_text(prompt)
    before, after = text[: text.index(long)], text[text.index(long) + len(long) :]
    assert len(read[0]) <= engine.window
    assert len(read[0]) > engine.window - 8
    head, tail = (engine.tokenizer(part).ids for part in (before.rstrip(), after[1:]))
    assert read[0][: len(head)] == head
    assert read[0][-len(tail) + 1 :] == tail[1:]
    assert item.details["cut_tokens"] > 0
    [short] = Relevance(model, settings=PLAIN, max_passage_tokens=5).rank("who?", [long])
    assert short.details["cut_tokens"] > item.details["cut_tokens"]


@pytest.mark.parametrize("folder", ["qwen2"], indirect=True)
@pytest.mark.parametrize("negative", [7, None])
def test_a_checkpoint_names_its_answers(folder, yardstick, tmp_path, negative):
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "1_LogitScore").mkdir()
    saved_config = {"true_token_id": 5, "false_token_id": negative, "module_input_name": "causal_logits"}
    (tmp_path / "1_LogitScore" / "config.json").write_text(json.dumps(saved_config))
    model = HuggingFaceModel(str(tmp_path), dtype="float32")
    assert model.trained_answers == TrainedAnswers(5, negative)
    ranker = Relevance(model, settings={"chat": False})
    [item] = ranker.rank("who?", ["Emma"])
    found = logits_behind(yardstick, prompt_ids(model, yardstick, ranker._prompt("who?", Passage("Emma"))))
    value = found[5] - (0 if negative is None else found[7])
    assert item.score == pytest.approx(value if negative is None else log_softmax([value, 0])[0], abs=1e-5)
    [own] = Relevance(model, settings={"chat": False, "positive": 9, "negative": 7}).rank("who?", ["Emma"])
    assert own.details["log_odds"] == pytest.approx(found[9] - found[7], abs=1e-5)
    (tmp_path / "1_LogitScore" / "config.json").write_text('{"true_token_id": "yes"}')
    with pytest.raises(InvalidInput, match="must contain ids of tokens"):
        Relevance(HuggingFaceModel(str(tmp_path)), settings={"chat": False}).rank("who?", ["Emma"])
    (tmp_path / "1_LogitScore" / "config.json").write_text("{}")
    with pytest.raises(InvalidInput, match="not a configuration of a LogitScore"):
        Relevance(HuggingFaceModel(str(tmp_path)), settings={"chat": False}).rank("who?", ["Emma"])


@pytest.mark.parametrize(
    ("folder", "asked", "match"),
    [
        *((folder, {"positive": "relevant beyond doubt"}, r"'relevant beyond doubt' is '.+', .* to this model")
          for folder in ("gpt2-pairs", "qwen2")),
        ("qwen2", {"positive": 4000}, "The model has no token 4000"),
        ("gpt2-pairs", {"positive": "鬱", "negative": "s"}, "'鬱' is"),  # unknown
        ("qwen2", {"positive": "鬱", "negative": "s"}, "'鬱' is"),  # several bytes
        ("qwen2", {"preset": "zerank-2", "transform": "softmax"}, 'transform="softmax" compares two answers'),
        ("qwen2", {"positive": "e", "negative": "e"}, "Both answers are 'e'"),
        ("gpt2", {"positive": "e", "negative": "s", "chat": True}, "has no chat template: leave chat out"),
    ],
    indirect=["folder"],
)  # fmt: skip
def test_answers_that_a_model_cannot_give_are_refused(model, asked, match):
    with pytest.raises(InvalidInput, match=match):
        Relevance(model, **keyword_arguments(Relevance, {"chat": False, **asked})).rank("q", ["d"])


PLACES = ["{query}", "{text} {text} {query}", "{text}", "{text} {query} {title}", 3]
BAD = [
    *(({"template": template}, r"must contain \{text\} once") for template in PLACES),
    ({"positive": ""}, "positive must be the text or the id"),
    *(({"negative": wrong}, "negative must be the text or the id") for wrong in (True, -1)),
    ({"transform": "sigmoid"}, 'transform must be "softmax", "margin" or "logit"'),
    ({"shift": "1"}, "shift must be a finite"),
    *(({"scale": wrong}, "scale must be a finite number") for wrong in (0, math.nan)),
    ({"preset": "qwen"}, "preset must be one of monot5, qwen3-reranker"),
    ({"max_passage_tokens": 0}, "max_passage_tokens"),
]
test_senseless_settings_are_refused_at_once = refuses(
    *((lambda bad=bad: Relevance("hf:/nowhere", **keyword_arguments(Relevance, bad)), says) for bad, says in BAD),
    *((lambda of=of: Relevance("hf:x", preset=of, instruction="I"), "would not be read")
      for of in ANSWER_PRESETS if of not in INSTRUCTED),
)  # fmt: skip


@pytest.mark.parametrize(("folder", "model"), [("qwen2", "hf")], indirect=True)
def test_candidates_share_what_their_prompts_begin_with(model, monkeypatch):
    computed = []
    forward = type(model.engine.model).forward
    monkeypatch.setattr(
        type(model.engine.model), "forward",
        lambda self, input_ids=None, **rest: computed.append(input_ids.numel()) or forward(self, input_ids, **rest),
    )  # fmt: skip
    texts = [f"Emma {number}" for number in range(12)]
    wording = "Read with care. " * 12 + "Query: {query} Document: {text} Relevant:"
    ranker = Relevance(model, template=wording, settings=PLAIN)
    ranker.rank("who?", texts)
    one = len(model.engine.tokenizer(prompt_text(ranker._prompt("who?", Passage(texts[0])))).ids)
    assert sum(computed) < 12 * one / 2


test_models_that_tell_no_next_token_say_what_would_do = refuses(
    *((lambda lexical=lexical: Relevance(lexical), "Use a neural model, such as") for lexical in LEXICAL),
    error=LacksCapability,
)
