"""`SupportEvaluator` and `top_n=Coverage(...)` in both frameworks, with their real classes."""

from __future__ import annotations

import asyncio
import json
import pickle

import pytest
from langchain_core.documents import Document
from langchain_core.load import dumps, loads
from langchain_core.runnables import RunnableLambda
from llama_index.core.base.response.schema import Response
from llama_index.core.evaluation import BaseEvaluator
from llama_index.core.schema import NodeWithScore, TextNode

import langchain_ext
import llama_index_ext
from drillrank import Coverage
from drillrank.errors import InvalidInput

CONTEXTS = ["The Rhine is 1,233 km long. It flows through Basel.", "Basel has two airports."]
GOOD, BAD = "The Rhine flows through Basel.", "The Rhine is 1,320 km long."
TEXTS = ["The Rhine flows through Basel.", "Basel is a town.", "Cats sleep all day.", "Bonn is on the Rhine."]
QUESTION = "Which river flows through Basel?"


def test_the_evaluator_of_llama_index_passes_what_its_contexts_support():
    evaluator = llama_index_ext.SupportEvaluator()
    assert isinstance(evaluator, BaseEvaluator)
    good = evaluator.evaluate(query="What?", response=GOOD, contexts=CONTEXTS)
    assert good.passing
    assert good.score > 0.5
    bad = evaluator.evaluate(response=f"{GOOD} {BAD}", contexts=CONTEXTS)
    assert not bad.passing
    assert bad.score < 0.5
    assert bad.feedback == f"Not supported: {BAD} (1,320)"


def test_the_evaluator_reads_a_response_of_the_framework_and_runs_at_once():
    evaluator = llama_index_ext.SupportEvaluator()
    sources = [NodeWithScore(node=TextNode(text=text)) for text in CONTEXTS]
    responses = [Response(GOOD, source_nodes=sources), Response(BAD, source_nodes=sources)]
    assert [evaluator.evaluate_response(response=response).passing for response in responses] == [True, False]

    async def evaluate_at_once():
        return await asyncio.gather(*(evaluator.aevaluate_response(response=response) for response in responses))

    assert [result.passing for result in asyncio.run(evaluate_at_once())] == [True, False]


@pytest.mark.parametrize("response", ["", " \n", "# Heading", "?"])
def test_a_response_without_a_sentence_is_no_valid_result_and_is_no_error_in_a_chain(response):
    result = llama_index_ext.SupportEvaluator().evaluate(response=response, contexts=CONTEXTS)
    assert (result.invalid_result, result.passing) == (True, None)
    assert result.invalid_reason == "The response has no sentence to check."
    output = langchain_ext.SupportEvaluator().invoke({"answer": response, "documents": CONTEXTS})
    assert output == {"supported": True, "score": 1.0, "sentences": []}


@pytest.mark.parametrize("ext", [llama_index_ext, langchain_ext])
def test_the_language_is_read(ext):
    contexts, answer = ["Das Haus kostet 1.250,50 Euro."], "Das Haus kostet 1250,50 Euro."
    german = ext.SupportEvaluator(language="german")
    if ext is llama_index_ext:
        assert german.evaluate(response=answer, contexts=contexts).passing
    else:
        assert german.invoke({"answer": answer, "documents": contexts})["supported"]


def test_the_runnable_of_langchain_returns_the_documents_themselves():
    documents = [Document(page_content=text, metadata={"page": number}) for number, text in enumerate(CONTEXTS)]
    runnable = langchain_ext.SupportEvaluator()
    output = runnable.invoke({"answer": f"{GOOD} {BAD}", "documents": documents})
    assert [sentence["supported"] for sentence in output["sentences"]] == [True, False]
    assert output["sentences"][0]["documents"][0] is documents[0]
    assert output["sentences"][1]["doubts"] == ("1,320",)
    assert not output["supported"]
    assert output["score"] < 0.5
    again = asyncio.run(runnable.ainvoke({"answer": f"{GOOD} {BAD}", "documents": documents}))
    assert again["score"] == output["score"]


@pytest.mark.filterwarnings("ignore:The function `loads` is in beta")
def test_the_runnable_is_part_of_a_chain_and_can_be_written_and_copied():
    runnable = langchain_ext.SupportEvaluator()
    chain = RunnableLambda(lambda answer: {"answer": answer, "documents": CONTEXTS}) | runnable
    assert [output["supported"] for output in chain.batch([GOOD, BAD])] == [True, False]
    written = loads(dumps(runnable), valid_namespaces=["langchain_ext"], allowed_objects=[type(runnable)])
    for other in (written, pickle.loads(pickle.dumps(runnable)), type(runnable)(**runnable.model_dump())):
        assert other.invoke({"answer": GOOD, "documents": CONTEXTS})["supported"]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        *(
            (lambda given=given: llama_index_ext.SupportEvaluator().evaluate(**given), "is missing")
            for given in ({"response": GOOD}, {"contexts": CONTEXTS}, {})
        ),
        (
            lambda: llama_index_ext.SupportEvaluator().evaluate(response=GOOD, contexts="a text"),
            "contexts must be a list",
        ),
        *(
            (lambda given=given: langchain_ext.SupportEvaluator().invoke(given), "The input must be")
            for given in (GOOD, {"answer": GOOD}, {"documents": CONTEXTS})
        ),
        (lambda: langchain_ext.SupportEvaluator().invoke({"answer": 3, "documents": []}), "answer must be a string"),
        *(
            (lambda given=given: langchain_ext.SupportEvaluator().invoke({"answer": GOOD, "documents": given}), message)
            for message, values in (
                ("documents must be documents or strings, got int", [[3]]),
                ("documents must be a list, got", [None, "a text", 3]),
            )
            for given in values
        ),
    ],
)
def test_an_evaluator_refuses_inputs_that_it_cannot_check(ask, message):
    with pytest.raises(InvalidInput, match=message):
        ask()


def test_titles_are_read_and_other_documents_are_not():
    named = [Document(page_content="It was built in 1925.", metadata={"title": "Wettstein Bridge"})]
    claim = "The Wettstein Bridge was built in 1925."
    assert langchain_ext.SupportEvaluator().invoke({"answer": claim, "documents": named})["supported"]
    # Another call's documents are not evidence here.
    assert not langchain_ext.SupportEvaluator().invoke({"answer": claim, "documents": ["A town."]})["supported"]


def rerank_nodes(reranker) -> list[str]:
    nodes = [NodeWithScore(node=TextNode(text=text), score=1.0 - number / 10) for number, text in enumerate(TEXTS)]
    return [hit.node.text for hit in reranker.postprocess_nodes(nodes, query_str=QUESTION)]


def rerank_documents(reranker) -> list[str]:
    documents = [Document(page_content=text) for text in TEXTS]
    return [document.page_content for document in reranker.compress_documents(documents, QUESTION)]


EACH = pytest.mark.parametrize(
    ("ext", "rerank"), [(llama_index_ext, rerank_nodes), (langchain_ext, rerank_documents)], ids=["llama", "langchain"]
)


@EACH
@pytest.mark.parametrize("score", ["log_likelihood", "probability", "softmax"])
def test_a_reranker_returns_as_many_as_the_margin_keeps_on_every_scale(ext, rerank, score):
    everything = rerank(ext.UPRRerank(top_n=None))
    assert rerank(ext.UPRRerank(top_n=Coverage(0.9, 0.0), score=score)) == everything[:1]
    assert rerank(ext.UPRRerank(top_n=Coverage(0.9, 1000.0), score=score)) == everything
    counts = [len(rerank(ext.UPRRerank(top_n=Coverage(0.9, margin), score=score))) for margin in (0, 0.5, 1, 2, 4)]
    assert counts == sorted(counts)


@EACH
def test_a_reranker_with_coverage_can_be_written_and_copied(ext, rerank):
    reranker = ext.UPRRerank(top_n=Coverage(0.9, 0.5, 20, "UPR"))
    expected = rerank(reranker)
    copies = [type(reranker)(**reranker.model_dump()), pickle.loads(pickle.dumps(reranker))]
    copies.append(type(reranker).model_validate(json.loads(reranker.model_dump_json())))
    assert all(rerank(one) == expected for one in copies)
    assert all(one.top_n == reranker.top_n for one in copies)
