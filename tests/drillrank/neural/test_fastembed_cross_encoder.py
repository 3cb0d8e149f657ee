"""Cross-encoders of fastembed as models: a tiny one, exported to ONNX here, against ONNX Runtime and torch."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from langchain_core.documents import Document
from llama_index.core.schema import NodeWithScore, TextNode

import langchain_ext
import llama_index_ext
from drillrank import UPR, Relevance, load_language_model
from drillrank.errors import InvalidInput
from drillrank.likelihood import UnigramModel
from drillrank.likelihood.relevance import log_sigmoid
from tests.drillrank.helpers import refuses
from tests.drillrank.neural.tiny_cross_encoder import LONGEST, save_cross_encoder
from tests.onnx_export import export_cross_encoder

TextCrossEncoder = pytest.importorskip("fastembed.rerank.cross_encoder").TextCrossEncoder
pytest.importorskip("onnx")

from fastembed.common.model_description import ModelSource  # noqa: E402

NAME = "tests/tiny-cross-encoder"
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


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> str:
    return save_cross_encoder(tmp_path_factory.mktemp("cross-encoder"), [QUERY, *TEXTS[:6]])


@pytest.fixture(scope="module")
def options(saved, tmp_path_factory) -> dict[str, str]:
    """Options for a model that fastembed does not know by itself."""
    exported = export_cross_encoder(Path(saved), tmp_path_factory.mktemp("onnx"))
    TextCrossEncoder.add_custom_model(NAME, sources=ModelSource(url="https://localhost/none"))
    return {"specific_model_path": str(exported)}


@pytest.fixture(scope="module")
def model(options):
    return load_language_model(f"ce:fastembed:{NAME}", **options)


@pytest.fixture(scope="module")
def logits(saved):
    """Return a function from a text to its logit, one pair at a time in torch."""
    network = transformers.AutoModelForSequenceClassification.from_pretrained(saved).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(saved)

    def compute(text: str) -> float:
        pairs = [(QUERY, text.replace("\ud83e", "\ufffd"))]  # in a list, an empty text counts as one, too
        inputs = tokenizer(pairs, truncation=True, return_tensors="pt")
        with torch.inference_mode():
            return float(network(**inputs).logits[0, 0])

    return compute


def by_position(ranking):
    return sorted(ranking, key=lambda item: item.details["position"])


def test_scores_are_those_of_the_network(model, logits):
    ranking = by_position(Relevance(model).rank(QUERY, TEXTS))
    expected = list(map(logits, TEXTS))
    assert np.ptp(expected) > 0.1  # random weights that make a difference
    assert [item.details["log_odds"] for item in ranking] == pytest.approx(expected, abs=1e-4)
    assert [item.score for item in ranking] == pytest.approx(list(map(log_sigmoid, expected)), abs=1e-4)
    assert [item.details["cut_tokens"] for item in ranking] == [0] * len(TEXTS)


def test_a_score_does_not_depend_on_the_other_pairs(model):
    together = [item.score for item in by_position(Relevance(model).rank(QUERY, TEXTS))]
    assert together == [Relevance(model).rank(QUERY, [text])[0].score for text in TEXTS]
    with ThreadPoolExecutor(8) as threads:
        rankings = list(threads.map(lambda _: by_position(Relevance(model).rank(QUERY, TEXTS)), range(8)))
    assert [[item.score for item in ranking] for ranking in rankings] == [together] * 8
    assert [item.score for item in by_position(asyncio.run(Relevance(model).arank(QUERY, TEXTS)))] == together


def test_truncated_tokens_are_counted(model, saved, logits):
    tokenizer = transformers.AutoTokenizer.from_pretrained(saved)
    long = " ".join(TEXTS[:5] * 3)
    [item] = Relevance(model).rank(QUERY, [long])
    assert item.details["cut_tokens"] == len(tokenizer(QUERY, long, verbose=False)["input_ids"]) - LONGEST > 0
    assert item.details["log_odds"] == pytest.approx(logits(long), abs=1e-4)
    tokens = tokenizer.tokenize(TEXTS[1])
    kept = model.first_tokens(TEXTS[1], 4)
    assert tokenizer.tokenize(kept) == tokens[:4]
    assert (model.first_tokens(TEXTS[1], 0), model.first_tokens(TEXTS[1], 1000)) == ("", TEXTS[1])
    [short] = Relevance(model, max_passage_tokens=4).rank(QUERY, [TEXTS[1]])
    assert short.details["cut_tokens"] == len(tokens) - 4
    assert short.details["log_odds"] == pytest.approx(logits(kept), abs=1e-4)


def test_sums_frameworks_and_copies(model, options, logits):
    both = load_language_model(f"unigram+ce:fastembed:{NAME}", experts=[{}, options])
    assert both.spec == f"unigram+ce:fastembed:{NAME}"
    ranking = UPR(both).rank(QUERY, TEXTS[:4])
    words = UnigramModel().fitted(TEXTS[:4])
    means = [one.mean for one in words.log_likelihood([(text, QUERY) for text in TEXTS[:4]])]
    for item in ranking:
        position = item.details["position"]
        assert item.score == pytest.approx(means[position] + log_sigmoid(logits(TEXTS[position])), abs=1e-4)
    expected = [item.passage.text for item in Relevance(model).rank(QUERY, TEXTS[:4])]
    fields = {"model": model.spec, "model_options": options, "top_n": None}
    nodes = [NodeWithScore(node=TextNode(text=text)) for text in TEXTS[:4]]
    by_llama_index = llama_index_ext.RelevanceRerank(**fields).postprocess_nodes(nodes, query_str=QUERY)
    assert [hit.node.text for hit in by_llama_index] == expected
    documents = [Document(page_content=text) for text in TEXTS[:4]]
    by_langchain = langchain_ext.RelevanceRerank(**fields).compress_documents(documents, QUERY)
    assert [document.page_content for document in by_langchain] == expected
    for again in (pickle.loads(pickle.dumps(model)), load_language_model(model.spec, **model.options)):
        assert (again.spec, again.options) == (model.spec, model.options)
        assert [item.passage.text for item in Relevance(again).rank(QUERY, TEXTS[:4])] == expected


def test_torch_is_not_imported(options):
    code = (
        "import sys\n"
        "from fastembed.common.model_description import ModelSource\n"
        "from fastembed.rerank.cross_encoder import TextCrossEncoder\n"
        f"TextCrossEncoder.add_custom_model({NAME!r}, sources=ModelSource(url='https://localhost/none'))\n"
        "from drillrank import Relevance, load_language_model\n"
        f"model = load_language_model('ce:fastembed:{NAME}', **{options!r})\n"
        "assert len(Relevance(model).rank('Which novel?', ['Emma', 'Basel'])) == 2\n"
        "assert not {'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_a_model_that_cannot_be_loaded_is_named(options, tmp_path):
    for spec, places in {
        "ce:fastembed:no/model": {},
        f"ce:fastembed:{NAME}": {"specific_model_path": str(tmp_path)},
    }.items():
        with pytest.raises(InvalidInput, match=f"The cross-encoder '{spec}' cannot be loaded"):
            Relevance(load_language_model(spec, **places)).rank(QUERY, TEXTS)


test_what_cannot_be_asked = refuses(
    (lambda: load_language_model("ce:fastembed:"), "needs the name of a model"),
    (lambda: load_language_model("ce:fastembed:x", threads=0), "threads must be"),
    (lambda: load_language_model("ce:fastembed:x", backend="onnx"), "options of 'ce:fastembed:x' are: .*cache_dir"),
)
