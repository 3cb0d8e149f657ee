"""BRMGR as a LangChain document compressor."""

from __future__ import annotations

from dataclasses import replace

from langchain_core.documents import Document

from drillrank import Passage
from drillrank.hosts.generated import GeneratedRecordSettings
from drillrank.hosts.reranking import OfTwoKinds
from langchain_ext._rerank import LikelihoodCompressor


class BRMGRRerank(LikelihoodCompressor, OfTwoKinds, GeneratedRecordSettings):
    """Merges retrieved documents with documents that an LLM wrote: each kind ranked its own way, then paired by rank.

    A document whose metadata says `"generated"` under `origin_key` was written by an LLM; all others were retrieved.

    Args:
        model: A `load_language_model` specification, or a ready language model.
        top_n: Documents to keep, 3 by default as in LangChain's own rerankers; None keeps all.

    The other fields: those of `UPRRerank`, and `origin_key`, `generated_template`, `first`, `guard`,
    `generated_share`. `prior` counts for retrieved documents alone. The score of both documents of a pair is the sum of
    their mean log-likelihoods, or with "probability" its exponential.

    Raises:
        InvalidInput: the query is blank, or a template is malformed.

    >>> found = ["Emma is a novel that Jane Austen wrote.", "Basel lies on the Rhine."]
    >>> wrote = ["Emma was written by Charles Dickens.", "Jane Austen wrote the novel Emma."]
    >>> documents = [Document(page_content=text) for text in found]
    >>> documents += [Document(page_content=text, metadata={"drillrank_origin": "generated"}) for text in wrote]
    >>> merged = BRMGRRerank(guard=True, top_n=2).compress_documents(documents, "Who wrote Emma?")
    >>> [document.page_content for document in merged]
    ['Jane Austen wrote the novel Emma.', 'Emma is a novel that Jane Austen wrote.']
    """

    def _passage(self, document: Document, position: int) -> Passage:
        generated = document.metadata.get(self.origin_key) == "generated"
        passage = super()._passage(document, position)
        text = document.page_content if generated else passage.text  # the LLM did not write the metadata
        return replace(passage, text=text, metadata={"generated": generated})
