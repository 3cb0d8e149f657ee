"""What an earlier search noted of its cost and its problems is not taken for what a later one says."""

from __future__ import annotations

from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

import langchain_ext
import llama_index_ext

QUERY, TEXT = "Which town lies on the Rhine?", "Basel is a town on the Rhine."
STALE = {
    "drillrank_problems": "sections: no answer",
    "drillrank_prompt_tokens": 90,
    "drillrank_completion_tokens": 9,
    "drillrank_llm_calls": 2,
    "drillrank_tokens_estimated": True,
}
KEPT = {"drillrank_matched_views": "raw:1", "problems": "the user's own", "page": 3}


class Earlier(BaseRetriever):
    def _retrieve(self, query_bundle):
        return [NodeWithScore(node=TextNode(text=TEXT, id_="basel", metadata={**STALE, **KEPT}), score=0.5)]


def of_a_search_before(metadata):
    assert not STALE.keys() & metadata.keys()
    assert KEPT.items() <= metadata.items()


def test_nodes():
    for found in (
        llama_index_ext.UPRRerank().postprocess_nodes(Earlier().retrieve(QUERY), query_str=QUERY),
        llama_index_ext.PromptRankRetriever(source=Earlier()).retrieve(QUERY),
    ):
        of_a_search_before(found[0].metadata)


def test_documents():
    earlier = RunnableLambda(lambda _: [Document(TEXT, id="basel", metadata={**STALE, **KEPT})])
    for found in (
        langchain_ext.UPRRerank().compress_documents(earlier.invoke(QUERY), QUERY),
        langchain_ext.PromptRankRetriever(source=earlier).invoke(QUERY),
    ):
        of_a_search_before(found[0].metadata)
