"""BRMGR as a LangChain document compressor."""

from __future__ import annotations

from dataclasses import replace

from langchain_core.documents import Document
from pydantic import Field, InstanceOf

from drillrank import Passage
from drillrank.hosts.reranking import OfTwoKinds
from drillrank.rerank.prior import Prior
from langchain_ext._rerank import LikelihoodCompressor
from langchain_ext.settings import BRMGRRerankSettings


class BRMGRRerank(LikelihoodCompressor, OfTwoKinds):
    """Merges retrieved documents with documents that an LLM wrote: each kind ranked its own way, then paired by rank.

    A document whose metadata says `"generated"` under `origin_key` was written by an LLM; all others were retrieved.

    Args:
        model: A `load_language_model` specification, or a ready language model.
        top_n: Documents to keep, 3 by default as in LangChain's own rerankers; None keeps all.
        prior: As for `UPRRerank`; it counts for retrieved documents alone.
        score: `"log_likelihood"`, for both documents of a pair the sum of their mean log-likelihoods; `"probability"`,
            its exponential; or `"softmax"`.
        explain: Whether results say why they stand where they stand.
        guard: Drop generated documents that no retrieved one supports: True for support below 0.9, or a limit of your
            own from 0 to 1.
        generated_share: The largest share of generated documents among those returned, from 0 to 1.
        model_options: Options of the language model.
        settings: What is rarely touched: `langchain_ext.settings.BRMGRRerankSettings`.

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

    prior: Prior | None = Field(default="retrieval", description="What documents' scores say, as for UPRRerank.")
    guard: bool | float = Field(default=False, description="Drop what an LLM wrote and nothing retrieved supports.")
    generated_share: float = Field(default=1.0, description="Largest share of what an LLM wrote among the results.")
    settings: InstanceOf[BRMGRRerankSettings] = Field(
        default=BRMGRRerankSettings(), description="What is rarely touched."
    )

    def _passage(self, document: Document, position: int) -> Passage:
        generated = document.metadata.get(self.settings.origin_key) == "generated"
        passage = super()._passage(document, position)
        text = document.page_content if generated else passage.text  # the LLM did not write the metadata
        return replace(passage, text=text, metadata={"generated": generated})
