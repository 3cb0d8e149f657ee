"""A real vLLM on this machine: `make test-vllm`, which installs it into an environment of its own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import sentence_transformers
import torch
import transformers
from langchain_core.documents import Document
from llama_index.core.schema import NodeWithScore, TextNode

import langchain_ext
import llama_index_ext
from drillrank import UPR, Passage, PromptRank, Relevance, load_language_model
from drillrank import Path as DocumentPath
from drillrank.evaluation.settings_file import keyword_arguments
from drillrank.likelihood import HuggingFaceModel
from tests.drillrank.neural.conftest import wrapped
from tests.drillrank.neural.tiny_cross_encoder import LONGEST, save_cross_encoder
from tests.drillrank.neural.tokenizers_of_all_kinds import CHAT, byte_level
from tests.integration.vllm import PYTHON, VLLM

pytestmark = [
    pytest.mark.skipif(not PYTHON, reason="DRILLRANK_VLLM_PYTHON names no environment with vLLM: make test-vllm"),
    pytest.mark.timeout(3600),  # a server starts in half a minute, or in ten on a busy machine
]
TEXTS = ["The Rhine is a river.", "Emma is a novel <|im_end|>.", "Basel " * 60, "東京 is a town."]
QUESTION = "who wrote <|im_start|> it?"
ASKED = {"positive": "e", "negative": "s"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A tiny Llama; vLLM's attention on a CPU wants heads of 32."""
    torch.manual_seed(7)
    config = transformers.LlamaConfig(
        vocab_size=400, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, head_dim=32, max_position_embeddings=512, bos_token_id=0, eos_token_id=2,
    )  # fmt: skip
    network = transformers.LlamaForCausalLM(config)
    for weight in network.parameters():
        weight.data *= 3
    place = tmp_path_factory.mktemp("llama")
    network.save_pretrained(place)
    tokenizer = wrapped(byte_level(["<|endoftext|>", "<|im_start|>", "<|im_end|>"]), eos_token="<|im_end|>")
    tokenizer.chat_template = CHAT
    tokenizer.save_pretrained(place)
    return place


@pytest.fixture(scope="module")
def vllm(folder):
    with closing(VLLM(folder, max_length=512)) as server:
        server.wait()
        yield server


@pytest.mark.parametrize("chat", [False, True])
def test_likelihoods_are_those_of_the_model_here(vllm, chat):
    there = load_language_model(vllm.address, chat=chat)
    here = HuggingFaceModel(str(vllm.folder), dtype="float32", chat=chat)
    paths = [DocumentPath((Passage("The Rhine."), Passage("Emma."))), DocumentPath((Passage("Basel " * 50),))]
    found, expected = ([item.score for item in UPR(model).rank(QUESTION, TEXTS)] for model in (there, here))
    assert found == pytest.approx(expected, abs=1e-3)
    found, expected = ([score for score, _ in PromptRank(one).score_paths(QUESTION, paths)] for one in (there, here))
    assert found == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("preset", ["monot5", "qwen3-reranker", "yes-no"])
def test_relevance_is_that_of_the_model_here(vllm, preset):
    there, here = load_language_model(vllm.address), HuggingFaceModel(str(vllm.folder), dtype="float32")
    found, expected = (
        Relevance(model, preset=preset, **keyword_arguments(Relevance, ASKED)).rank(QUESTION, TEXTS)
        for model in (there, here)
    )
    assert [item.score for item in found] == pytest.approx([item.score for item in expected], abs=1e-3)
    assert [item.details["position"] for item in found] == [item.details["position"] for item in expected]


def test_two_hundred_calls_at_once(vllm):
    there, here = load_language_model(vllm.address), HuggingFaceModel(str(vllm.folder), dtype="float32")
    texts = [[f"Basel {number}", "The Rhine."] for number in range(200)]
    with ThreadPoolExecutor(200) as pool:
        found = list(pool.map(lambda some: [item.score for item in UPR(there).rank("who?", some)], texts))
    expected = [[item.score for item in ranking] for ranking in UPR(here).rank_many(["who?"] * 200, texts)]
    assert [score for scores in found for score in scores] == pytest.approx(
        [score for scores in expected for score in scores], abs=1e-3
    )


def test_killed_and_started_again_in_mid_run_it_loses_nothing(vllm):
    there = load_language_model(vllm.address, prompts_per_request=1, concurrency=2, retries=40, timeout=900.0)
    here = HuggingFaceModel(str(vllm.folder), dtype="float32")
    texts = [f"Basel {number} " * 20 for number in range(400)]
    assert UPR(there).rank("who?", ["Basel"])
    killing = threading.Timer(0.5, lambda: (vllm.close(), vllm.start()))
    killing.start()
    found = [item.score for item in UPR(there).rank("who?", texts)]
    killing.join()
    assert found == pytest.approx([item.score for item in UPR(here).rank("who?", texts)], abs=1e-3)


DOCUMENTS = ["Basel lies on the Rhine.", "Emma is a novel.", "Foxes hunt at night.", "A novel is a long text.", "Emma"]


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory) -> str:
    """A tiny BERT with one label; vLLM's attention on a CPU wants heads of 32."""
    folder = tmp_path_factory.mktemp("cross-encoder")
    return save_cross_encoder(folder, [QUESTION, *DOCUMENTS], width=64, n_heads=2)


@pytest.fixture(scope="module")
def rerank_server(cross_encoder):
    with closing(VLLM(Path(cross_encoder), max_length=LONGEST)) as server:
        server.wait()
        yield server


@pytest.mark.parametrize("scores", ["probability", "logit"])
@pytest.mark.parametrize("path", ["/rerank", "/v1/rerank", "/v2/rerank"])
def test_reranking_is_that_of_sentence_transformers(rerank_server, cross_encoder, path, scores):
    address = f"http://127.0.0.1:{rerank_server.port}{path}#tiny"
    model = load_language_model(address, api="vllm", scores=scores, documents_per_request=2)
    encoder = sentence_transformers.CrossEncoder(cross_encoder, device="cpu")
    pairs = [(QUESTION, text) for text in DOCUMENTS]
    expected = encoder.predict(pairs, activation_fn=torch.nn.Identity(), show_progress_bar=False)
    assert np.ptp(expected) > 0.1  # random weights that make a difference
    ranking = Relevance(model).rank(QUESTION, DOCUMENTS)
    assert [item.details["position"] for item in ranking] == list(np.argsort(-expected, kind="stable"))
    log_odds = {item.details["position"]: item.details["log_odds"] for item in ranking}
    assert [log_odds[position] for position in range(len(DOCUMENTS))] == pytest.approx(expected.tolist(), abs=1e-3)


def test_both_frameworks_rerank_with_it(rerank_server):
    fields = {"model": f"http://127.0.0.1:{rerank_server.port}/rerank#tiny", "top_n": 3, "score": "probability"}
    expected = Relevance(fields["model"]).rank(QUESTION, DOCUMENTS, 3)
    nodes = [NodeWithScore(node=TextNode(text=text)) for text in DOCUMENTS]
    hits = llama_index_ext.RelevanceRerank(**fields).postprocess_nodes(nodes, query_str=QUESTION)
    documents = [Document(text) for text in DOCUMENTS]
    results = langchain_ext.RelevanceRerank(**fields).compress_documents(documents, QUESTION)
    texts, probabilities = [item.passage.text for item in expected], np.exp([item.score for item in expected])
    assert [hit.node.get_content() for hit in hits] == [one.page_content for one in results] == texts
    assert [hit.score for hit in hits] == pytest.approx(probabilities.tolist(), abs=1e-3)
    assert [one.metadata["relevance_score"] for one in results] == pytest.approx(probabilities.tolist(), abs=1e-3)


def test_the_model_of_a_rerank_server_need_not_be_named(rerank_server):
    named, unnamed = (f"http://127.0.0.1:{rerank_server.port}/rerank{name}" for name in ("#tiny", ""))
    first, second = (Relevance(address).rank(QUESTION, DOCUMENTS) for address in (named, unnamed))
    assert [item.score for item in first] == pytest.approx([item.score for item in second], abs=1e-3)
