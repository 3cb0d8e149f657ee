"""UPR as a LangChain document compressor."""

from __future__ import annotations

from drillrank import UPR
from drillrank.rerank.upr import UPRSettings
from langchain_ext._rerank import LikelihoodCompressor


class UPRRerank(LikelihoodCompressor, UPRSettings):
    """Reranks documents by the likelihood of the question, given the document.

    Args:
        model: A `load_language_model` specification, or a ready language model.
        top_n: Documents to keep, 3 by default as in LangChain's own rerankers; None keeps all.
        prior: What the first stage says before the texts are read (see `drillrank.UPR`). LangChain's retrievers keep
            their scores to themselves: `"retrieval"` takes the ranks by the scores that documents bring in their
            metadata under `score_key`, and where none does, or the key is None, their order. `"cosine"` takes such
            scores as the cosines of a sentence encoder, and has nothing to go by where there are none. None leaves
            all that alone.

    The other fields: `score` ("log_likelihood", at most 0; "probability"; "softmax"), `score_threshold` (inclusive),
    `explain`, `score_key`, `title_key`, `metadata_fields`, `template`, `max_passage_tokens`, `model_options`.

    Raises:
        InvalidInput: the query is blank, the template is malformed, or there is a prior and a document's score is no
            finite number or no cosine.

    >>> from langchain_core.documents import Document
    >>> documents = [Document(page_content=text) for text in ("Basel lies on the Rhine.", "Emma is a novel.")]
    >>> UPRRerank(top_n=1).compress_documents(documents, "Which novel?")[0].page_content
    'Emma is a novel.'
    """

    _method = UPR
