"""`PromptRankRetriever(llm=...)` in both hosts: asked once a hop, told what it named and cost, the same in async."""

from __future__ import annotations

import pytest
from langchain_core.prompts import ChatPromptTemplate
from llama_index.core import PromptTemplate

from drillrank.errors import InvalidInput
from drillrank.vectors import TfidfIndex, top
from tests.conformance.frameworks import LangChain, LlamaIndex, both_frameworks
from tests.conformance.readers import Crowd

TEXTS = {
    "film": "The Silent Pier was directed by Ada Holm.",
    "holm": "Ada Holm, a child of Esbjerg: an article on her youth.",
    **{f"whale{i}": f"Whales of the north sing at night, number {i}." for i in range(9)},
}
INDEX = TfidfIndex(list(TEXTS.values()))
QUERY = "In which port did the director of The Silent Pier grow up?"


def made(host, crowd=None, says=lambda prompt: "nothing", **settings):
    records = [host.record(text, name) for name, text in TEXTS.items()]
    source = host.finds(lambda query: [records[i] for i in top(INDEX.scores(query), 2)])
    llm = None if crowd is None else host.reader(says, crowd)
    return host.ext.PromptRankRetriever(source=source, llm=llm, settings={"hops": 3, **settings})


@both_frameworks
def test_what_it_names_is_found_and_its_cost_is_told(host):
    crowd = Crowd()
    component = made(host, crowd, lambda prompt: "article on Ada Holm" if "child" not in prompt else "nothing")
    results = [one.metadata for one in host.retrieve(component, QUERY)]
    assert "film > holm" in [result["drillrank_path"] for result in results]
    assert {result["drillrank_missing"] for result in results} == {"article on Ada Holm"}
    assert {result["drillrank_llm_calls"] for result in results} == {len(crowd.prompts)} == {2}
    assert all(result["drillrank_prompt_tokens"] > 50 for result in results)
    assert TEXTS["film"] in crowd.prompts[0]
    assert QUERY in crowd.prompts[0]
    assert [one.metadata for one in host.ask(component, QUERY, asynchronous=True)] == results
    without = host.retrieve(made(host), QUERY)
    assert not [key for one in without for key in one.metadata if "missing" in key or "llm" in key]


def test_the_hosts_own_prompts():
    chat = ChatPromptTemplate.from_messages([("system", "Be brief."), ("human", "{documents} {question} Lacking?")])
    crowds = Crowd(), Crowd()
    made(LangChain, crowds[0], missing_prompt=chat).invoke(QUERY)
    retriever = made(LlamaIndex, crowds[1])
    retriever.update_prompts({"missing_prompt": PromptTemplate("{documents} {question} Lacking?")})
    retriever.retrieve(QUERY)
    assert list(retriever.get_prompts()) == ["missing_prompt"]
    for host, crowd in zip((LangChain, LlamaIndex), crowds, strict=True):
        assert crowd.prompts[0].endswith("Lacking?")
        with pytest.raises((InvalidInput, ValueError), match=r"documents|question"):
            made(host, crowd, missing_prompt="Lacking?")
