"""UPR as a LlamaIndex node postprocessor."""

from __future__ import annotations

from drillrank import UPR
from drillrank.rerank.upr import UPRSettings
from llama_index_ext._rerank import LikelihoodRerank


class UPRRerank(LikelihoodRerank, UPRSettings):
    """Reranks nodes by the likelihood of the question, given the node.

    Args:
        model: A `load_language_model` specification, or a ready language model.
        top_n: Nodes to keep; None keeps all.
        prior: What the nodes' scores say before their texts are read (see `drillrank.UPR`): `"cosine"` takes them as
            the cosines of a sentence encoder, as most vector indexes give them; `"retrieval"` takes their ranks, on
            whatever scale they are. A node without a score counts as an average one; where none has one, their order
            counts, but for `"cosine"`. None leaves the scores alone.

    The other fields: `score` ("log_likelihood", at most 0; "probability"; "softmax"), `score_threshold` (inclusive),
    `explain`, `metadata_mode`, `keep_retrieval_score`, `template`, `max_passage_tokens`, `model_options`.

    Raises:
        InvalidInput: the query is missing or blank, the template is malformed, or there is a prior and a node's score
            is no finite number or no cosine.

    >>> from llama_index.core.schema import NodeWithScore, TextNode
    >>> nodes = [NodeWithScore(node=TextNode(text=text)) for text in ("Basel lies on the Rhine.", "Emma is a novel.")]
    >>> UPRRerank(top_n=1).postprocess_nodes(nodes, query_str="Which novel?")[0].node.text
    'Emma is a novel.'
    """

    _method = UPR
