"""UPR as a LangChain document compressor."""

from __future__ import annotations

from pydantic import Field

from drillrank import UPR, Passage, Ranked
from drillrank.prompts import UPR_PROMPT
from langchain_ext._rerank import LikelihoodCompressor


class UPRRerank(LikelihoodCompressor):
    """Reranks documents by the likelihood of the question, given the document.

    Args:
        model: A `load_language_model` specification, or a ready language model.
        top_n: Documents to keep, 3 by default as in LangChain's own rerankers; None keeps all.

    The other fields: `score` ("log_likelihood", at most 0; "probability"; "softmax"), `score_threshold` (inclusive),
    `score_key`, `title_key`, `metadata_fields`, `template`, `max_passage_tokens`, `model_options`.

    Raises:
        InvalidInput: the query is blank, or the template is malformed.

    >>> from langchain_core.documents import Document
    >>> documents = [Document(page_content=text) for text in ("Basel lies on the Rhine.", "Emma is a novel.")]
    >>> UPRRerank(top_n=1).compress_documents(documents, "Which novel?")[0].page_content
    'Emma is a novel.'
    """

    template: str = Field(default=UPR_PROMPT, description="Prompt with {text} and, if wanted, {title} before it.")
    max_passage_tokens: int | None = Field(default=None, gt=0, description="Tokens that a passage may keep.")

    def _rank(self, query: str, passages: list[Passage]) -> list[Ranked[Passage]]:
        upr = UPR(self._language_model, template=self.template, max_passage_tokens=self.max_passage_tokens)
        return upr.rank(query, passages)
