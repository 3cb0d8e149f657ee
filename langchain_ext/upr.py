"""UPR as a LangChain document compressor."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from drillrank import UPR
from drillrank.rerank.base import LikelihoodFormula
from drillrank.rerank.prior import Prior
from drillrank.rerank.upr import UPR_PROMPT
from langchain_ext._rerank import LikelihoodCompressor


class UPRRerank(LikelihoodCompressor):
    """Reranks documents by the likelihood of the question, given the document.

    Args:
        model: A `load_language_model` specification, or a ready language model.
        top_n: Documents to keep, 3 by default as in LangChain's own rerankers; None keeps all.
        prior: What the first stage says before the texts are read (see `drillrank.UPR`). LangChain's retrievers keep
            their scores to themselves: `"retrieval"` takes the ranks by the scores that documents bring in their
            metadata under `score_key`, and where none does, or the key is None, their order, so that documents in an
            arbitrary order are ranked with None. `"cosine"` takes such
            scores as the cosines of a sentence encoder, and has nothing to go by where there are none. None leaves
            all that alone.
        score: `"log_likelihood"`, at most 0; `"probability"`; or `"softmax"`.
        explain: Whether results say why they stand where they stand.
        template: Prompt with `{text}` and, if wanted, `{title}` before it.
        max_passage_tokens: Tokens that a passage may keep; None leaves it to the model's own limit.
        prior_weight: How much the prior counts.
        read: With a sum of experts, how many the whole sum reads, as for `drillrank.UPR`; all for `score="softmax"`.
        preset: Score as published code does, as for `drillrank.UPR`.
        model_options: Options of the language model.
        settings: What is rarely touched: `langchain_ext.settings.RerankSettings`.

    Raises:
        InvalidInput: the query is blank, the template is malformed, or there is a prior and a document's score is no
            finite number or no cosine.

    >>> from langchain_core.documents import Document
    >>> documents = [Document(page_content=text) for text in ("Basel lies on the Rhine.", "Emma is a novel.")]
    >>> UPRRerank(top_n=1).compress_documents(documents, "Which novel?")[0].page_content
    'Emma is a novel.'
    """

    prior: Prior | None = Field(
        default="retrieval", description="What documents' scores say before their texts are read."
    )
    template: str = Field(default=UPR_PROMPT, description="Prompt with `{text}` and, if wanted, `{title}` before it.")
    max_passage_tokens: int | None = Field(default=None, description="Tokens that a passage may keep.")
    prior_weight: float = Field(default=1.0, description="How much the prior counts.")
    read: int | Literal["all"] | None = Field(default=None, description="How many the whole of a sum reads.")
    preset: str | LikelihoodFormula | None = Field(default=None, description="Score as published code does.")

    def _prepare(self) -> None:
        self._ranker = UPR(
            self._language_model,
            template=self.template,
            max_passage_tokens=self.max_passage_tokens,
            prior=self.prior,
            prior_weight=self.prior_weight,
            read="all" if self.score == "softmax" else self.read,
            preset=self.preset,
        )
