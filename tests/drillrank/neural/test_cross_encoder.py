"""Cross-encoders as models: the scores of sentence-transformers, in rankers, sums, frameworks and comparisons."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
import threading
from importlib.util import find_spec

import numpy as np
import pytest
import sentence_transformers
import torch
from langchain_core.documents import Document
from llama_index.core.schema import NodeWithScore, TextNode

import langchain_ext
import llama_index_ext
from drillrank import BRMGR, UPR, Passage, PromptRank, Relevance, load_language_model
from drillrank.errors import InvalidInput, LacksCapability
from drillrank.evaluation import compare
from drillrank.likelihood import SumOfExperts, UnigramModel
from drillrank.likelihood.relevance import log_sigmoid
from drillrank.passages import Path
from tests.drillrank.helpers import refuses
from tests.drillrank.neural.tiny_cross_encoder import LONGEST, save_cross_encoder

QUERY = "Which novel did Jane Austen write?"
TEXTS = [
    "Basel lies on the Rhine.",
    "Emma is a novel that Jane Austen wrote.",
    "Foxes hunt at night.",
    "A novel is a long text that tells of people who never lived.",
    "Emma is a novel that Jane Austen wrote.",
    "",
    "Half a character: \ud83e.",
]
LONG = " ".join(TEXTS[:5] * 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_cross_encoder(tmp_path_factory.mktemp("cross-encoder"), [QUERY, *TEXTS[:6]])


@pytest.fixture(scope="module")
def reference(folder):
    """Return a function to the logits of `CrossEncoder.predict`."""
    encoder = sentence_transformers.CrossEncoder(folder, device="cpu")

    def logits(query, texts):
        pairs = [(query, text.replace("\ud83e", "\ufffd")) for text in texts]
        return encoder.predict(pairs, activation_fn=torch.nn.Identity(), show_progress_bar=False).astype(float)

    logits.encoder = encoder
    return logits


@pytest.fixture(scope="module")
def model(folder):
    return load_language_model(f"ce:{folder}", device="cpu")


def test_scores_are_those_of_sentence_transformers(model, reference):
    logits = reference(QUERY, TEXTS)
    assert np.ptp(logits) > 0.1  # random weights that make a difference
    ranking = Relevance(model).rank(QUERY, TEXTS)
    assert {item.details["position"] for item in ranking} == set(range(len(TEXTS)))
    for item in ranking:
        logit = logits[item.details["position"]]
        assert item.details["log_odds"] == pytest.approx(logit, abs=1e-5)
        assert item.score == pytest.approx(log_sigmoid(logit), abs=1e-5)
    probabilities = reference.encoder.predict([(QUERY, text) for text in TEXTS[:5]], show_progress_bar=False)
    by_position = {item.details["position"]: item for item in ranking}
    for position, probability in enumerate(probabilities):
        assert np.exp(by_position[position].score) == pytest.approx(float(probability), abs=1e-5)
    assert by_position[1].score == by_position[4].score  # equal texts
    assert by_position[1].rank < by_position[4].rank


def test_the_transform_scales_and_shifts_the_logit(model, reference):
    settings = {"transform": "logit", "scale": 0.5, "shift": 2.0}
    ranking = Relevance(model, settings=settings).rank(QUERY, TEXTS)
    logits = reference(QUERY, TEXTS)
    for item, explanation in zip(ranking, ranking.explain(), strict=True):
        assert item.score == pytest.approx(0.5 * logits[item.details["position"]] + 2, abs=1e-5)
        assert explanation.total == pytest.approx(item.score, abs=1e-9)


def test_many_questions_are_ranked_as_one_by_one(model):
    ranker = Relevance(model)
    queries = [QUERY, "Where is Basel?", QUERY]
    lists = [TEXTS, TEXTS[:2], []]
    many = ranker.rank_many(queries, lists)
    for query, texts, ranking in zip(queries, lists, many, strict=True):
        alone = ranker.rank(query, texts)
        assert [item.passage for item in ranking] == [item.passage for item in alone]
        assert [item.score for item in ranking] == pytest.approx([item.score for item in alone], abs=1e-5)
    assert [item.score for item in asyncio.run(ranker.arank(QUERY, TEXTS))] == [
        item.score for item in ranker.rank(QUERY, TEXTS)
    ]


def test_threads_share_one_model(model):
    expected = [item.score for item in Relevance(model).rank(QUERY, TEXTS)]
    results = []
    threads = [
        threading.Thread(target=lambda: results.append([i.score for i in Relevance(model).rank(QUERY, TEXTS)]))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 8


def test_truncated_tokens_are_counted(model, reference):
    [item] = Relevance(model).rank(QUERY, [LONG])
    n_tokens = len(reference.encoder.tokenizer(QUERY, LONG, truncation=False, verbose=False)["input_ids"])
    assert item.details["cut_tokens"] == n_tokens - LONGEST > 0
    assert item.details["log_odds"] == pytest.approx(reference(QUERY, [LONG])[0], abs=1e-5)
    [short] = Relevance(model, max_passage_tokens=4).rank(QUERY, [TEXTS[1]])
    tokens = reference.encoder.tokenizer.tokenize(TEXTS[1])
    assert short.details["cut_tokens"] == len(tokens) - 4
    kept = model.first_tokens(TEXTS[1], 4)
    assert reference.encoder.tokenizer.tokenize(kept) == tokens[:4]
    assert short.details["log_odds"] == pytest.approx(reference(QUERY, [kept])[0], abs=1e-5)


# Sums


def test_a_sum_adds_the_log_probability_of_relevance(folder, model, reference):
    both = load_language_model(f"unigram+2*ce:{folder}", experts=[{}, {"device": "cpu"}])
    assert [type(expert) for expert in both.experts] == [UnigramModel, type(model)]
    passages = [Passage(f"{text} {number}", id=f"{number}-{index}") for number in range(3)
                for index, text in enumerate(TEXTS[:5])]  # fmt: skip
    ranking = UPR(both).rank(QUERY, passages)
    logits = reference(QUERY, [passage.text for passage in passages])
    words = UnigramModel().fitted([passage.text for passage in passages])
    means = [one.mean for one in words.log_likelihood([(passage.text, QUERY) for passage in passages])]
    assert sum(item.details["read"] for item in ranking) == 10  # the rest is ranked by its words
    for item, explanation in zip(ranking, ranking.explain(), strict=True):
        position = item.details["position"]
        if item.details["read"]:
            assert item.score == pytest.approx(means[position] + 2 * log_sigmoid(logits[position]), abs=1e-5)
        assert explanation.total == pytest.approx(item.score, abs=1e-6)
    best = max(range(len(means)), key=means.__getitem__)
    assert {item.details["position"]: item for item in ranking}[best].details["read"]


def test_a_sum_of_cross_encoders_adds_their_log_odds(model, tmp_path, reference):
    other = load_language_model(
        "ce:" + save_cross_encoder(tmp_path / "other", [QUERY, *TEXTS[:6]], seed=8), device="cpu"
    )
    ranking = Relevance(SumOfExperts([model, other], [1, 3])).rank(QUERY, TEXTS[:3])
    first, second = reference(QUERY, TEXTS[:3]), [one.details["log_odds"] for one in sorted(
        Relevance(other).rank(QUERY, TEXTS[:3]), key=lambda item: item.details["position"])]  # fmt: skip
    for item in ranking:
        position = item.details["position"]
        assert item.details["log_odds"] == pytest.approx(first[position] + 3 * second[position], abs=1e-4)
    with pytest.raises(LacksCapability):
        Relevance(SumOfExperts([UnigramModel(), model]))


def test_a_temperature_divides_the_log_odds(model, reference):
    [likelihood] = model.log_likelihood([(TEXTS[1], QUERY)], temperature=2.0)
    assert likelihood.mean == pytest.approx(log_sigmoid(reference(QUERY, TEXTS[1:2])[0] / 2), abs=1e-5)
    with pytest.raises(InvalidInput, match="no end-of-sequence token"):
        model.log_likelihood([(TEXTS[1], QUERY)], include_eos=True)


def test_paths_are_read_as_one_text(model, reference):
    path = Path((Passage(TEXTS[0]), Passage(TEXTS[1])))
    [item] = PromptRank(model).rank(QUERY, [path])
    assert item.score == pytest.approx(log_sigmoid(reference(QUERY, ["\n".join(TEXTS[:2])])[0]), abs=1e-5)


def test_generated_passages_are_scored_by_the_question(model, reference):
    with pytest.raises(LacksCapability, match="generated passage"):
        BRMGR(model)
    merged = BRMGR(model, prior=None, settings={"generated_score": "question"}).rank(QUERY, TEXTS[:1], TEXTS[1:2])
    expected = sum(log_sigmoid(logit) for logit in reference(QUERY, TEXTS[:2]))
    assert [item.score for item in merged] == pytest.approx([expected] * 2, abs=1e-5)


# Frameworks and comparisons


@pytest.mark.parametrize("score", ["log_likelihood", "probability", "softmax"])
def test_both_frameworks_rerank_with_it(folder, model, score):
    texts = TEXTS[:4]
    expected = [item.passage.text for item in Relevance(model).rank(QUERY, texts)]
    fields = {"model": f"ce:{folder}", "top_n": None, "score": score, "model_options": {"device": "cpu"}}
    nodes = [NodeWithScore(node=TextNode(text=text)) for text in texts]
    by_llama_index = llama_index_ext.RelevanceRerank(**fields).postprocess_nodes(nodes, query_str=QUERY)
    documents = [Document(page_content=text) for text in texts]
    by_langchain = langchain_ext.RelevanceRerank(**fields).compress_documents(documents, QUERY)
    assert [hit.node.text for hit in by_llama_index] == expected
    assert [document.page_content for document in by_langchain] == expected
    scores = [hit.score for hit in by_llama_index]
    assert scores == sorted(scores, reverse=True)
    if score != "log_likelihood":
        assert all(0 <= value <= 1 for value in scores)


def test_rerankers_are_compared_by_their_names(folder):
    corpus = [{"id": str(index), "text": text} for index, text in enumerate(TEXTS[:4])]
    questions = [{"question": QUERY, "gold": ["1"]}, {"question": "Where is Basel?", "gold": ["0"]}]
    by_cross_encoder = {"component": "Relevance", "model": f"ce:{folder}", "model_options": {"device": "cpu"}}
    both = {"component": "UPR", "model": f"unigram+ce:{folder}"}
    systems = {"cross": by_cross_encoder, "both": both, "words": "UPR"}
    comparison = compare(questions, systems, corpus, measures=["AllR@1"])
    assert not comparison.problems
    for name in systems:
        assert len(comparison.results[name]) == len(questions)


# Loading


def test_it_survives_pickling_and_its_specification(model):
    expected = [item.score for item in Relevance(model).rank(QUERY, TEXTS)]
    for again in (pickle.loads(pickle.dumps(model)), load_language_model(model.spec, **model.options)):
        assert (again.spec, again.options) == (model.spec, model.options)
        assert [item.score for item in Relevance(again).rank(QUERY, TEXTS)] == expected


def test_nothing_is_imported_before_the_first_question(folder):
    code = (
        "import sys\n"
        "from drillrank import Relevance, UPR\n"
        f"Relevance('ce:{folder}').rank('Which novel?', [])\n"
        f"UPR('unigram+ce:{folder}')\n"
        "assert not {'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_code_of_a_model_does_not_run(model):
    assert model.options["trust_remote_code"] is False


def test_a_missing_folder_is_an_error(folder):
    with pytest.raises(InvalidInput, match=r"missing' does not exist\. Name a directory"):
        Relevance(f"ce:{folder}/missing").rank(QUERY, TEXTS)


def test_a_backend_that_is_not_installed_is_an_error(folder):
    if find_spec("optimum") is None:
        lm = load_language_model(f"ce:{folder}", backend="onnx")
        with pytest.raises(InvalidInput, match="onnx"):
            Relevance(lm).rank(QUERY, TEXTS)


@pytest.mark.filterwarnings("ignore")  # of the exporters
@pytest.mark.parametrize(
    ("backend", "library", "model_kwargs"),
    [
        ("onnx", "onnxruntime", None),
        ("openvino", "intel", {"ov_config": {"INFERENCE_PRECISION_HINT": "f32"}}),  # or it may compute in bfloat16
    ],
)
def test_other_backends_compute_the_same_scores(folder, reference, backend, library, model_kwargs):
    pytest.importorskip(f"optimum.{library}", reason="make test-backends installs it")
    model = load_language_model(f"ce:{folder}", backend=backend, device="cpu", model_kwargs=model_kwargs)
    ranking = sorted(Relevance(model).rank(QUERY, [*TEXTS, LONG]), key=lambda item: item.details["position"])
    expected = reference(QUERY, [*TEXTS, LONG])
    assert [item.details["log_odds"] for item in ranking] == pytest.approx(expected.tolist(), abs=1e-4)
    assert ranking[-1].details["cut_tokens"] > 0


def test_a_model_with_several_labels_is_refused(tmp_path):
    folder = save_cross_encoder(tmp_path / "classes", TEXTS[:6], n_labels=3)
    with pytest.raises(InvalidInput, match="3 labels"):
        Relevance(f"ce:{folder}").rank(QUERY, TEXTS)


def test_broken_weights_are_an_error(tmp_path):
    folder = save_cross_encoder(tmp_path / "broken", TEXTS[:6])
    network = sentence_transformers.CrossEncoder(folder, device="cpu")
    network.model.classifier.bias.data.fill_(float("nan"))
    network.save_pretrained(str(tmp_path / "nan"))
    with pytest.raises(InvalidInput, match="one finite number per pair"):
        Relevance(f"ce:{tmp_path / 'nan'}").rank(QUERY, TEXTS)


test_what_cannot_be_asked = refuses(
    (lambda: load_language_model("ce:"), "needs the name of a model or a directory"),
    (lambda: load_language_model("ce:x", backend="tensorflow"), 'backend must be "torch", "onnx" or "openvino"'),
    (lambda: load_language_model("ce:x", batch_size=0), "batch_size"),
    (lambda: load_language_model("ce:x", max_length=0), "max_length"),
    (lambda: load_language_model("ce:x", dtype="float32"), "options of 'ce:x' are: .*model_kwargs"),
    (lambda: Relevance("ce:x", instruction="Find.", template="{instruction} {query} {text}"), "got template="),
)
