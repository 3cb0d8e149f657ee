"""BRMGR as a LangChain document compressor."""

from __future__ import annotations

from dataclasses import replace

from langchain_core.documents import Document
from pydantic import Field

from drillrank import BRMGR, Passage, Ranked
from drillrank.hosts.keys import prefixed
from drillrank.prompts import GENERATED_PROMPT, UPR_PROMPT
from drillrank.rerank.brmgr import Origin
from drillrank.rerank.first_stage import Prior, RetrievalScores
from langchain_ext._rerank import LikelihoodCompressor


class BRMGRRerank(LikelihoodCompressor):
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

    origin_key: str = Field(
        default=prefixed("origin"), description='Metadata key; "generated" marks what an LLM wrote.'
    )
    template: str = Field(default=UPR_PROMPT, description="Prompt for retrieved documents, with {text} and {title}.")
    generated_template: str = Field(default=GENERATED_PROMPT, description="Prompt for generated ones, with {question}.")
    first: Origin = Field(default="generated", description="Which document of a pair comes first.")
    guard: bool | float = Field(
        default=False,
        ge=0,
        le=1,
        description="Drop generated documents that no retrieved one supports: True, or the least support from 0 to 1.",
    )
    generated_share: float = Field(default=1.0, ge=0, le=1, description="Largest share of generated ones returned.")
    max_passage_tokens: int | None = Field(default=None, gt=0, description="Tokens that a retrieved one may keep.")
    prior: Prior | None = Field(default=None, description="What scores or order of the retrieved are to their ranking.")

    def _passage(self, document: Document, position: int) -> Passage:
        generated = document.metadata.get(self.origin_key) == "generated"
        passage = super()._passage(document, position)
        text = document.page_content if generated else passage.text  # the LLM did not write the metadata
        return replace(passage, text=text, metadata={"generated": generated})

    def _rank(self, query: str, passages: list[Passage], scores: RetrievalScores) -> list[Ranked[Passage]]:
        brmgr = BRMGR(
            self._language_model,
            template=self.template,
            generated_template=self.generated_template,
            first=self.first,
            guard=self.guard,
            generated_share=self.generated_share,
            max_passage_tokens=self.max_passage_tokens,
            prior=self.prior,
        )
        generated = [passage.metadata["generated"] for passage in passages]
        return brmgr.rank_mixed(query, passages, generated, self.top_n, scores=scores if self.prior else None)
