"""Drilling down as a LlamaIndex retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.callbacks import CallbackManager
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, NodeRelationship, NodeWithScore, QueryBundle, TextNode

from drillrank import D3, LanguageModel, Passage, Ranked
from drillrank.drilldown.evidence import load_evidence_model
from drillrank.passages import check_top_n, stable_uuid

_BOOKKEEPING = ["section_path", "section_score"]


class D3Retriever(BaseRetriever):
    r"""Retrieves evidence paragraphs from long documents by opening their most likely sections.

    Args:
        documents: LlamaIndex documents (Markdown or plain text); parsed and indexed once.
        model: A `load_language_model` specification, or a ready language model.
        model_options: Options of the language model.
        top_n: Paragraphs to return; None returns as many as make the expected F1 largest.
        sections: How many sections are opened.
        callback_manager: As for every LlamaIndex retriever.

    Each node is a paragraph, text as in the source, with `start_char_idx` and `end_char_idx`, the document as SOURCE,
    and the document's metadata together with `section_path` and `section_score`. Scores are mean log-likelihoods of
    the question, at most 0.

    Raises:
        InvalidInput: `top_n` or `sections` is below 1, or the question is blank.

    >>> from llama_index.core import Document
    >>> manual = Document(text="# Battery\n\nIt lasts nine hours.\n\n# Screen\n\nClean it with a dry cloth.")
    >>> node = D3Retriever([manual], top_n=1).retrieve("How long does the battery last?")[0]
    >>> node.text, node.metadata["section_path"]
    ('It lasts nine hours.', 'Battery')
    """

    def __init__(
        self,
        documents: Sequence[BaseNode],
        *,
        model: str | LanguageModel = "unigram",
        model_options: dict[str, Any] | None = None,
        top_n: int | None = 5,
        sections: int = 8,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        check_top_n(top_n)
        self._documents = list(documents)
        self._sources = [document.as_related_node_info() for document in self._documents]
        self._top_n = top_n
        self._d3 = D3(lm=load_evidence_model(model, **(model_options or {})), sections=sections)
        self._prepared = self._d3.prepare([document.get_content() for document in self._documents])

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [self._node(item) for item in self._d3.retrieve(query_bundle.query_str, self._prepared, self._top_n)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)

    def _node(self, item: Ranked[Passage]) -> NodeWithScore:
        place = item.passage.metadata
        document = self._documents[place["document"]]
        node = TextNode(
            id_=stable_uuid(document.node_id, place["start"], place["end"]),
            text=item.passage.text,
            start_char_idx=place["start"],
            end_char_idx=place["end"],
            metadata={
                **document.metadata,
                "section_path": item.passage.title,
                "section_score": item.details["section_score"],
            },
            excluded_embed_metadata_keys=[*document.excluded_embed_metadata_keys, *_BOOKKEEPING],
            excluded_llm_metadata_keys=[*document.excluded_llm_metadata_keys, "section_score"],
            relationships={NodeRelationship.SOURCE: self._sources[place["document"]]},
        )
        return NodeWithScore(node=node, score=item.score)
