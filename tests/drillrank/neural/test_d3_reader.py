"""D3 with a language model that reads the best passages: weights, mask, explanations and exact sums."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest

from drillrank import D3, Corpus, Passage, parse_document
from drillrank.cli import main as run_command
from drillrank.drilldown.passage_reader import READER_WEIGHT, PassageReader
from drillrank.drilldown.settings import MAX_READ, READ, D3Settings
from drillrank.errors import InvalidInput
from drillrank.explanation.terms import GAINS, NOTHING
from drillrank.likelihood import LanguageModel, Likelihood, SumOfExperts, UnigramModel
from drillrank.likelihood.huggingface import HuggingFaceModel
from drillrank.likelihood.torch_prefixes import TorchPrefixes
from drillrank.rerank.explaining import UNREAD
from drillrank.rerank.upr import UPR, UPR_PROMPT
from tests.drillrank.neural.conftest import smallest
from tests.drillrank.neural.float64 import Yardstick

QUESTION = "How long does the battery of the kettle last?"
NAMES = [f"house/kettle-{number}.md" for number in range(6)]
DOCUMENTS = [
    f"# Kettle {number}\n\n## Battery\n\nThe battery lasts {number} hours{' or days' * number}.\n\n"
    f"## Cord\n\nThe cord of kettle {number} is long.\n"
    for number in range(6)
]


class Requests(LanguageModel):
    """Reader that scores a prompt by its length and keeps what it was asked."""

    spec = "length"

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def log_likelihood_batch(self, requests, temperature, include_eos):
        likelihoods = []
        for request in requests:
            prompt = "".join(map(str, (getattr(part, "text", part) for part in request.prompt)))
            self.prompts.append(prompt)
            tokens = request.target.split()
            values = np.full(len(tokens), -1.0 - len(prompt) % 7)
            likelihoods.append(Likelihood(tokens, values, float(values.sum())))
        return likelihoods


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    return smallest(tmp_path_factory.mktemp("reader") / "model")


@pytest.fixture(scope="module")
def reader(model_folder):
    return HuggingFaceModel(str(model_folder), dtype="float32")


def embed(texts):
    return np.array([[len(text) % 7 - 3.0, 1.0, len(text) % 5] for text in texts])


@pytest.mark.parametrize("encoder", [None, embed])
@pytest.mark.parametrize("spec_weights", [(1.0, 1.0), (2.0, 3.0)])
def test_the_scores_are_lexical_cosine_and_half_the_total_of_the_reader(reader, encoder, spec_weights):
    model = SumOfExperts([UnigramModel(), reader], spec_weights)
    prepared = D3(embed=encoder).prepare(DOCUMENTS, NAMES)
    without = {item.passage.id: item for item in D3(embed=encoder).retrieve(QUESTION, prepared, 40)}
    d3 = D3(model=model, embed=encoder, settings={"follow": False, "hops": 1})
    ranking = d3.retrieve(QUESTION, d3.prepare(DOCUMENTS, NAMES), 40)
    weight = READER_WEIGHT * spec_weights[1] / spec_weights[0]
    for item in ranking:
        number = int(item.passage.metadata["document"])
        headed = Passage(item.passage.text, title=f"kettle {number} {item.passage.title}")
        [likelihood] = UPR(reader, prior=None).likelihoods(QUESTION, [headed])
        base = without[item.passage.id]
        own = base.details["total"] - base.details.get("complement", 0.0)
        expected = own + weight * likelihood.total
        assert item.details["total"] - item.details.get("complement", 0.0) == pytest.approx(expected, abs=1e-3)
        assert item.details["read"]
        assert item.details["matched"] == base.details["matched"]


def test_only_the_best_are_read_and_the_others_follow_in_their_order():
    lm = Requests()
    d3 = D3(model=SumOfExperts([UnigramModel(), lm]), settings={"read": 3, "hops": 1, "repeats": True})
    ranking = d3.retrieve(QUESTION, d3.prepare(DOCUMENTS, NAMES), 40)
    first = D3(settings={"hops": 1, "repeats": True, "follow": False})
    prepared = first.prepare(DOCUMENTS, NAMES)
    totals = prepared.scorer.question_scores(QUESTION).totals
    order = [prepared.outline.paragraphs[index].passage.id for index in np.argsort(-totals, kind="stable")]
    assert len(lm.prompts) == 3
    assert [item.details["read"] for item in ranking] == [True] * 3 + [False] * (len(ranking) - 3)
    assert {item.passage.id for item in ranking[:3]} == set(order[:3])
    assert [item.passage.id for item in ranking[3:]] == order[3:]
    assert all(item.score < ranking[2].score for item in ranking[3:])
    assert not any("log_likelihood" in item.details for item in ranking[3:])


@pytest.mark.parametrize("n_read", [1, 2, 4, 100])
@pytest.mark.parametrize("encoder", [None, embed])
def test_explanations_show_the_three_parts_and_add_up(reader, encoder, n_read):
    d3 = D3(model=SumOfExperts([UnigramModel(), reader]), embed=encoder, settings={"read": n_read, "hops": 1})
    result = d3.retrieve(QUESTION, d3.prepare(DOCUMENTS, NAMES), 40)
    for item, explanation in zip(result, result.explain(), strict=True):
        terms = {term.name: term for term in explanation.terms}
        assert {NOTHING, GAINS} <= terms.keys()
        assert ("cosine" in terms) == (encoder is not None)
        assert (reader.spec in terms) == item.details["read"]
        assert (UNREAD in terms) <= (not item.details["read"])
        assert explanation.total == pytest.approx(item.score, abs=1e-9)
        assert math.fsum(term.value for term in explanation.terms) == pytest.approx(item.details["total"], abs=1e-6)
        if item.details["read"]:
            part = terms[reader.spec]
            assert part.value == pytest.approx(READER_WEIGHT * item.details["log_likelihood"], abs=1e-3)
            assert [term.name for term in part.terms] == [NOTHING, GAINS]


def test_the_total_of_the_reader_equals_that_of_float64(model_folder, reader):
    exact = Yardstick(model_folder)
    d3 = D3(model=SumOfExperts([UnigramModel(), reader]), embed=embed, settings={"hops": 1})
    ranking = d3.retrieve(QUESTION, d3.prepare(DOCUMENTS, NAMES), 40)
    without = D3(embed=embed, settings={"hops": 1})
    totals = without.prepare(DOCUMENTS, NAMES).scorer.question_scores(QUESTION).totals
    for item in ranking:
        number = int(item.passage.metadata["document"])
        prompt = UPR_PROMPT.format(title=f"kettle {number} {item.passage.title}", text=item.passage.text)
        expected = totals[number] + READER_WEIGHT * exact(prompt, QUESTION, include_eos=False).sum()
        assert item.details["total"] - item.details.get("complement", 0.0) == pytest.approx(expected, abs=1e-4)


def test_a_corpus_gives_the_evidence_and_the_scores_of_the_documents_in_memory():
    d3 = D3(model=SumOfExperts([UnigramModel(), Requests()]), embed=embed, settings={"read": 4, "hops": 1})
    corpus = Corpus(unit="passage")
    corpus.add((name, parse_document(text)) for name, text in zip(NAMES, DOCUMENTS, strict=True))
    by_corpus = d3.retrieve(QUESTION, d3.prepare_corpus(corpus), 4)
    in_memory = d3.retrieve(QUESTION, d3.prepare(DOCUMENTS, NAMES), 4)
    assert [item.passage.text for item in by_corpus] == [item.passage.text for item in in_memory]
    assert [item.score for item in by_corpus] == pytest.approx([item.score for item in in_memory])
    assert [entry.total for entry in by_corpus.explain()] == pytest.approx([item.score for item in by_corpus])


def test_two_readers_add_up():
    first, second = Requests(), Requests()
    second.spec = "length 2"
    sum_of_both = SumOfExperts([UnigramModel(), first, second], [1, 2, 4])
    by_both = PassageReader.from_model(sum_of_both)
    assert by_both is not None
    passages = [Passage("One."), Passage("Two and three.")]
    for (gain, details), likelihood in zip(
        by_both.read(QUESTION, passages), UPR(Requests(), prior=None).likelihoods(QUESTION, passages), strict=True
    ):
        assert details["log_likelihood"] == pytest.approx(6 * likelihood.total)
        assert gain == pytest.approx(READER_WEIGHT * 6 * likelihood.total)


def test_other_models_are_not_readers_next_to_term_statistics():
    assert PassageReader.from_model(UnigramModel()) is None
    assert PassageReader.from_model(Requests()) is None
    assert PassageReader.from_model(SumOfExperts([UnigramModel()])) is None
    assert PassageReader.from_model(SumOfExperts([UnigramModel(), UnigramModel(mu=9)])) is None
    assert PassageReader.from_model(SumOfExperts([Requests(), UnigramModel()])) is None


@pytest.mark.parametrize("read", [0, -1, MAX_READ + 1, 1.5, True, "20"])
def test_the_number_of_passages_to_read_is_bounded(read):
    with pytest.raises(InvalidInput, match="read must be"):
        D3Settings(read=read)


def test_by_default_the_documented_number_of_passages_is_read():
    lm = Requests()
    d3 = D3(model=SumOfExperts([UnigramModel(), lm]), settings={"hops": 1, "unit": "paragraph"})
    text = "\n\n".join(f"Battery {number} lasts." for number in range(READ + 9))
    d3.retrieve("Which battery lasts?", [text], 3)
    assert len(lm.prompts) == READ


def test_ask_lets_the_language_model_read(model_folder, tmp_path, capsys):
    for name, text in zip(NAMES, DOCUMENTS, strict=True):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    arguments = ["--model", f"unigram+hf:{model_folder}", "--embed", "none", "--no-cache", "--json", "--explain"]
    assert run_command(["ask", str(tmp_path / "house"), QUESTION, *arguments]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["evidence"]
    assert f"hf:{model_folder}" in json.dumps(answer)


@pytest.fixture
def folder_of_files(tmp_path, own_cache):
    folder = tmp_path / "files"
    for name, text in zip(NAMES, DOCUMENTS, strict=True):
        file = folder / name
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(text, encoding="utf-8")
    return folder


def list_prefix_files(cache):
    return sorted(path for path in cache.rglob("prefixes-*/*"))


def ask(folder, model_folder, capsys, *words, question=QUESTION):
    """Return the evidence and the messages of the command."""
    arguments = ["--model", f"unigram+hf:{model_folder}", "--embed", "none", "--json", "--hops", "1", *words]
    assert run_command(["ask", str(folder), *arguments, question]) == 0
    captured = capsys.readouterr()
    return json.loads(captured.out)["evidence"], captured.err


def test_ask_precomputes_what_the_next_question_of_another_process_reads(
    folder_of_files, model_folder, own_cache, capsys, monkeypatch
):
    expected, _ = ask(folder_of_files, model_folder, capsys, "--no-cache")
    assert not list_prefix_files(own_cache)
    evidence, messages = ask(folder_of_files, model_folder, capsys, "--precompute", question="How long is the cord?")
    assert re.search(r"Computing \d+ passages of [\d.]+ [kM]B, in about \d+ s\.", messages)
    [prefix_folder] = own_cache.rglob("prefixes-*")
    assert prefix_folder.stat().st_mode & 0o777 == 0o700
    files = list_prefix_files(own_cache)
    monkeypatch.setattr(TorchPrefixes, "_compute", None)  # nothing is computed any more, except the probe's rest
    evidence, messages = ask(folder_of_files, model_folder, capsys)
    assert "Computing" not in messages
    assert list_prefix_files(own_cache) == files
    for one, other in zip(evidence, expected, strict=True):
        assert one["text"] == other["text"]
        assert abs(one["score"] - other["score"]) < 1e-4


def test_what_a_question_says_is_not_in_the_cache(folder_of_files, model_folder, own_cache, capsys):
    ask(folder_of_files, model_folder, capsys)
    files = list_prefix_files(own_cache)
    ask(folder_of_files, model_folder, capsys, question="What does the cord of the battery of a kettle do?")
    assert list_prefix_files(own_cache) == files  # each file is named by a hash of the tokens in it


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--no-cache"], "--precompute needs a Hugging Face model and the cache"),
        (["--model", "unigram"], "--precompute needs a Hugging Face model and the cache"),
        (["--prefix-cache", "20 kB"], "kB. Raise --prefix-cache, or ask fewer"),
        (["--prefix-cache", "much"], "--prefix-cache must be a positive number of bytes"),
    ],
)
def test_ask_refuses_to_precompute(folder_of_files, model_folder, capsys, words, message):
    arguments = ["--model", f"unigram+hf:{model_folder}", "--embed", "none", "--precompute", *words]
    assert run_command(["ask", str(folder_of_files), QUESTION, *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert not captured.out
