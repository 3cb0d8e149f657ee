"""Words and meaning: the unigram model and a sentence encoder, with a tiny encoder that is built here."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drillrank import UPR, Passage, PathSearch, PromptRank, load_language_model
from drillrank.errors import InvalidInput, MissingExtra
from drillrank.likelihood import Request, UnigramModel
from drillrank.likelihood.encoder import sentence_transformer
from drillrank.multihop.path_rerank import PathRerank
from drillrank.prompts import Evidence
from drillrank.rerank.base import rescaled
from tests.drillrank.neural.tiny_encoder import saved_encoder

sentence_transformers = pytest.importorskip("sentence_transformers")

TEXTS = [
    "The physician treats patients in the hospital. She works at night.",
    "The Rhine flows through Basel. It is a river of Europe.",
    "Emma is a novel by Jane Austen. It was printed in 1815.",
    "Zürich has a lake. The lake is cold.",
]
QUESTION = "Which river flows through the town?"


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    """A directory with a BERT of two layers, mean pooling, and a prompt for questions."""
    return saved_encoder(tmp_path_factory.mktemp("encoder"), TEXTS)


@pytest.fixture(scope="session")
def float64(encoder):
    return sentence_transformers.SentenceTransformer(encoder, device="cpu").double()


@pytest.fixture
def model(encoder):
    return sentence_transformer(encoder, device="cpu")


@pytest.fixture
def encoded(monkeypatch):
    """Every text that the library is asked to encode."""
    texts = []
    encode = sentence_transformers.SentenceTransformer.encode

    def counted(self, *args, **kwargs):
        texts.extend([*args, *kwargs.values()][0])
        return encode(self, *args, **kwargs)

    monkeypatch.setattr(sentence_transformers.SentenceTransformer, "encode", counted)
    return texts


def expected(library, requests, kappa, temperature=1.0):
    """The formula, request by request, with an encoder in float64."""
    words = UnigramModel().log_likelihood(requests, temperature=temperature)
    totals = []
    for request, word in zip(requests, words, strict=True):
        question = library.encode_query([request.target], normalize_embeddings=True)[0]
        chances = []
        for part in request.prompt:
            if isinstance(part, Evidence):
                document = library.encode_document([part.text], normalize_embeddings=True)[0]
                cosine = float(question @ document) if part.text.strip() else 0.0
                chances.append(np.exp(kappa / temperature * (cosine - 1)))
        totals.append(word.total + np.log(np.mean(chances)))
    return totals


def paths(texts, target=QUESTION):
    """Single documents, and all neighbouring pairs."""
    single = [Request(("Document: ", Evidence(text)), target) for text in texts]
    pairs = pairwise(texts)
    return [*single, *(Request((Evidence(first), " and ", Evidence(second)), target) for first, second in pairs)]


@pytest.mark.parametrize("temperature", [1.0, 2.5])
@pytest.mark.parametrize("kappa", [3.0, 20.0])
def test_the_formula(encoder, float64, kappa, temperature):
    requests = paths([*TEXTS, ""])
    found = sentence_transformer(encoder, kappa=kappa, device="cpu").log_likelihood(requests, temperature=temperature)
    np.testing.assert_allclose(
        [likelihood.total for likelihood in found], expected(float64, requests, kappa, temperature), atol=1e-4
    )
    for likelihood in found:
        assert likelihood.tokens[-1] == "<meaning>"
        assert len(likelihood.tokens) == len(likelihood.log_probs)
        assert likelihood.total == pytest.approx(likelihood.log_probs.sum(), abs=1e-9)
        assert (likelihood.log_probs <= 0).all()


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.sampled_from(TEXTS) | st.text(max_size=30), min_size=1, max_size=6), cut=st.integers(1, 6))
def test_a_text_has_the_same_score_alone_as_among_others(model, texts, cut):
    def requests(chosen):
        return [Request((Evidence(text, max_tokens=cut),), QUESTION) for text in chosen]

    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    model.fit(TEXTS)
    together = model.log_likelihood(requests(texts))
    for text, likelihood in zip(texts, together, strict=True):
        assert model.log_likelihood(requests([text]))[0].total == pytest.approx(likelihood.total, abs=1e-4)


def test_meaning_finds_what_shares_no_word(encoder):
    passages = [Passage(text) for text in TEXTS]
    ranking = UPR(sentence_transformer(encoder, device="cpu")).rank(TEXTS[2], passages)
    assert ranking[0].passage.text == TEXTS[2]
    assert all(type(item.score) is float for item in ranking)


def test_documents_alone_have_the_token_scores_of_single_prompts(model):
    fitted = model.fitted(TEXTS)
    texts = [*TEXTS, "a text that was not fitted", TEXTS[0]]
    expected = [fitted.log_likelihood([(text, QUESTION)])[0].log_probs for text in texts]
    found = fitted.document_log_probs(QUESTION, texts)
    assert found == pytest.approx(np.stack(expected), abs=1e-5)


def test_each_text_is_encoded_once(model, encoded):
    fitted = model.fitted(TEXTS)
    ranker = UPR(fitted)
    for _ in range(3):
        ranker.rank(QUESTION, [Passage(text) for text in TEXTS])
    assert sorted(encoded) == sorted([*TEXTS, QUESTION])


def test_eight_threads_encode_each_text_once_and_agree(model, encoded):
    fitted = model.fit(TEXTS[:1])

    def score(_):
        return [likelihood.total for likelihood in fitted.log_likelihood(paths(TEXTS))]

    with ThreadPoolExecutor(8) as pool:
        scores = list(pool.map(score, range(16)))
    assert all(own == scores[0] for own in scores)
    assert sorted(encoded) == sorted([*TEXTS, QUESTION])


def test_a_directory_keeps_the_vectors(encoder, tmp_path, encoded):
    folder = tmp_path / "vectors"
    first = sentence_transformer(encoder, device="cpu", directory=folder).fit(TEXTS)
    scores = [likelihood.total for likelihood in first.log_likelihood(paths(TEXTS))]
    encoded.clear()
    again = sentence_transformer(encoder, device="cpu", directory=folder).fit(TEXTS)
    assert [likelihood.total for likelihood in again.log_likelihood(paths(TEXTS))] == scores
    assert encoded == [QUESTION]


def test_pickle_keeps_fit_and_scores(encoder):
    model = sentence_transformer(encoder, device="cpu", kappa=7.0).fit(TEXTS)
    scores = [likelihood.total for likelihood in model.log_likelihood(paths(TEXTS))]
    again = pickle.loads(pickle.dumps(model))
    assert not again.wants_fit
    assert [likelihood.total for likelihood in again.log_likelihood(paths(TEXTS))] == scores


def test_a_specification_builds_it(encoder):
    model = load_language_model(f"st:{encoder}", kappa=5, device="cpu")
    again = load_language_model(model.spec, **model.options)
    assert again.options == model.options
    assert again.kappa == 5.0


def test_a_specification_never_loses_a_fit(encoder):
    model = sentence_transformer(encoder, device="cpu").fit(TEXTS)
    with pytest.raises(InvalidInput, match="pass the model itself"):
        load_language_model(model.spec, **model.options)


def test_paths_are_searched_with_it(model):
    passages = [
        Passage("The old town lies on the Rhine.", id="town", links=("rhine",)),
        Passage("It flows through Basel.", id="rhine", title="Rhine"),
        Passage("Emma is a novel.", id="emma"),
    ]
    ranking = PathSearch(PromptRank(model), passages).search(QUESTION)
    assert {item.passage.id for item in ranking[:2]} == {"town", "rhine"}


def test_a_search_without_passages_of_its_own_loads_the_encoder_once(encoder, encoded, monkeypatch):
    """Each question has a collection of its own, and a copy of the model that is fitted with it."""
    loaded = []
    load = sentence_transformers.SentenceTransformer
    monkeypatch.setattr(
        sentence_transformers,
        "SentenceTransformer",
        lambda *name, **chosen: loaded.append(name) or load(*name, **chosen),
    )
    reranker = PathRerank(PromptRank(f"st:{encoder}"))
    for question in (QUESTION, "Who printed a novel?", QUESTION):
        reranker.rank(question, TEXTS)
    assert len(loaded) == 1
    assert sorted(encoded) == sorted([*TEXTS, QUESTION, "Who printed a novel?"])


def test_kappa_is_fitted_to_texts(encoder):
    texts = [f"The {word} is old. The {word} was printed, as all know." for word in _words(40)]
    model = sentence_transformer(encoder, kappa="fit", device="cpu")
    assert model.kappa == 20.0
    assert model.fit(texts).kappa != 20.0
    assert model.options["kappa"] == "fit"


def _words(count):
    letters = "bcdfghjklm"
    return [f"{letters[i % 10]}a{letters[i // 10]}o{letters[(3 * i) % 10]}e" for i in range(count)]


@pytest.mark.parametrize(
    "options", [{"kappa": 0}, {"kappa": -1.0}, {"kappa": "auto"}, {"kappa": float("nan")}, {"mu": 0}, {"nope": 1}]
)
def test_bad_options(encoder, options):
    with pytest.raises(InvalidInput, match=next(iter(options))):
        load_language_model(f"st:{encoder}", **options)


def test_no_such_encoder(tmp_path):
    with pytest.raises(InvalidInput, match="no encoder that can be loaded"):
        load_language_model(f"st:{tmp_path}/nothing").log_likelihood([("a", "b")])
    with pytest.raises(InvalidInput, match="after the colon"):
        load_language_model("st:")


def test_an_end_of_sequence_token_is_refused(model):
    with pytest.raises(InvalidInput, match="include_eos"):
        model.log_likelihood([("a", "b")], include_eos=True)


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtra, match=r"drillrank\[st\]"):
        load_language_model("st:any")


def test_both_hosts_rerank_with_it_and_keep_it_in_their_configuration(encoder):
    from langchain_core.documents import Document
    from llama_index.core.schema import NodeWithScore, TextNode

    import langchain_ext
    import llama_index_ext

    options = {"device": "cpu", "kappa": 15.0}
    node_rerank = llama_index_ext.UPRRerank(model=f"st:{encoder}", model_options=options, top_n=2, prior=None)
    nodes = [NodeWithScore(node=TextNode(text=text)) for text in TEXTS]
    found = [(hit.text, hit.score) for hit in node_rerank.postprocess_nodes(nodes, query_str=TEXTS[1])]
    again = llama_index_ext.UPRRerank.from_dict(node_rerank.to_dict())
    assert [(hit.text, hit.score) for hit in again.postprocess_nodes(nodes, query_str=TEXTS[1])] == found
    compressor = langchain_ext.UPRRerank(model=f"st:{encoder}", model_options=options, top_n=2, prior=None)
    kept = compressor.compress_documents([Document(page_content=text) for text in TEXTS], TEXTS[1])
    assert [document.page_content for document in kept] == [text for text, _ in found]
    assert [document.metadata["relevance_score"] for document in kept] == [score for _, score in found]


@given(st.permutations(TEXTS), st.sampled_from([QUESTION, "Which novel?", "A cold lake"]), st.booleans())
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_cosine_of_the_same_encoder_is_no_prior_beside_the_token_of_meaning(model, texts, question, fitted):
    """It is in the likelihood already; the words of the question behind another first stage are, too."""
    lm = model.fit(TEXTS) if fitted else model
    alone = UPR(lm).rank(question, texts)
    meaning = [item.log_probs[-1] for item in lm.log_likelihood([(text, question) for text in texts])]
    words = [item.total - item.log_probs[-1] for item in lm.log_likelihood([(text, question) for text in texts])]
    cosines = [1 + log / 20 for log in meaning]
    for scores, prior in ((meaning, "retrieval"), (words, "retrieval"), (cosines, "cosine")):
        found = UPR(lm, prior=prior).rank(question, texts, scores=scores)
        assert [item.passage for item in found] == [item.passage for item in alone]
        assert [item.details["log_prior"] for item in found] == pytest.approx([-np.log(len(texts))] * len(texts))


@given(st.permutations(TEXTS), st.sampled_from(["The river is cold?", "The work of the hospital in Europe"]))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_words_behind_a_dense_retriever_are_words_and_meaning(model, texts, question):
    """Cosines as prior, and the encoder as likelihood, are one formula: the same posterior."""
    lm = model.fit(TEXTS)
    meaning = [item.log_probs[-1] for item in lm.log_likelihood([(text, question) for text in texts])]
    one = rescaled(UPR(lm).rank(question, texts), "softmax")
    words = UPR(UnigramModel().fit(TEXTS), prior="cosine")
    other = rescaled(words.rank(question, texts, scores=[1 + log / 20 for log in meaning]), "softmax")
    posterior = {item.passage.text: item.score for item in one}
    for item in other:
        assert item.score == pytest.approx(posterior[item.passage.text], rel=1e-5)


def test_a_path_begins_where_the_model_says(encoder):
    """Without a word of the question, TF-IDF would take the first passages; meaning finds its own."""
    passages = [Passage(text, id=str(number)) for number, text in enumerate(TEXTS)]
    model = sentence_transformer(encoder, device="cpu").fit([passage.titled_text for passage in passages])
    question = "zzz qqq"
    likeliest = UPR(model).rank(question, passages)[0].passage.id
    first = []
    PathSearch(
        PromptRank(model),
        passages,
        settings={"pool": 1, "hops": 1},
    ).search(question, on_hop=first.append)
    assert [path.passage.ids for path in first[0].paths] == [(likeliest,)]


@pytest.mark.parametrize("fitted", [False, True])
def test_the_lists_of_several_questions_are_collections_of_their_own(encoder, fitted):
    model = load_language_model(f"st:{encoder}")
    ranker = UPR(model.fit(TEXTS) if fitted else model)
    queries, lists = [QUESTION, "Who wrote the novel?"], [TEXTS[:2], TEXTS[1:]]
    many = ranker.rank_many(queries, lists)
    for query, texts, ranking in zip(queries, lists, many, strict=True):
        alone = ranker.rank(query, texts)
        assert [item.passage.text for item in ranking] == [item.passage.text for item in alone]
        assert [item.score for item in ranking] == pytest.approx([item.score for item in alone], abs=1e-5)
