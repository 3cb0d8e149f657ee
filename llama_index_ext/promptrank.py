"""PromptRank as a LlamaIndex node postprocessor."""

from __future__ import annotations

from typing import Literal

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import Field
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index.core.storage.docstore.types import BaseDocumentStore
from pydantic import InstanceOf

from drillrank import Passage
from drillrank.hosts.reranking import OfPaths
from drillrank.multihop.path_rerank import LINKS_IN_TEXTS, TextLinkName
from drillrank.rerank.prior import Prior
from drillrank.vectors import Embed
from llama_index_ext._embedding import embedding_of
from llama_index_ext._filters import Filters, Guard
from llama_index_ext._rerank import LikelihoodRerank
from llama_index_ext.promptrank_nodes import NodePaths, passage_of
from llama_index_ext.settings import PromptRankRerankSettings


class PromptRankRerank(LikelihoodRerank, OfPaths):
    """Reranks nodes by the best path of linked nodes among them, and beyond them if told where (multi-hop questions).

    Args:
        model: A `load_language_model` specification, or a ready language model.
        top_n: Nodes to keep; None keeps all.
        links: What links a node to others: `"metadata"` (node ids that its metadata lists under `links_key`),
            `"hyperlinks"` (Markdown and HTML, to the addresses in the metadata), `"titles"` (its text mentions another
            node's title, metadata `title_key`), `"names"` (they mention the same name), `"relationships"` (next,
            previous, parent and child nodes).
        docstore: Linked nodes that were not retrieved are fetched from here by id, and may enter the result; such as
            `index.docstore`. There is no default, as a postprocessor is not told where its nodes come from.
        retriever: Each path that is followed leads to three more nodes, those that this retriever finds with the
            question and the path's last node as its query; for texts without links.
        filters: The host's `MetadataFilters`, or a function from a node to True or False: no other node is read,
            whether it is given, fetched over a link or retrieved. What is fetched over links obeys the filters of
            `retriever`, too.
        embed: An embedding model, or a function from texts to vectors: meaning then counts, too.
        prior: As for `UPRRerank`.
        score: As for `UPRRerank`.
        explain: Whether results say why they stand where they stand.
        model_options: Options of the language model.
        settings: What is rarely touched: `llama_index_ext.settings.PromptRankRerankSettings`. Its `instructions`,
            `ensemble` and `temperature` are what `tune` finds.

    `docstore`, `retriever`, `filters` and `embed` are no part of the serialised configuration.

    >>> from llama_index.core.schema import NodeWithScore, TextNode
    >>> turing = TextNode(text="Alan Turing was born in Maida Vale.", metadata={"title": "Alan Turing"})
    >>> vale = TextNode(text="It is a district of London.", metadata={"title": "Maida Vale"})
    >>> london = TextNode(text="London is the capital of England.", metadata={"title": "London"})
    >>> nodes = [NodeWithScore(node=node) for node in (london, vale, turing)]
    >>> question = "Which London district was Turing born in?"
    >>> [node.node.metadata["title"] for node in PromptRankRerank().postprocess_nodes(nodes, query_str=question)]
    ['Alan Turing', 'Maida Vale', 'London']
    """

    links: tuple[TextLinkName | Literal["relationships"], ...] = Field(
        default=LINKS_IN_TEXTS, description="What links a node to others."
    )
    prior: Prior | None = Field(default=None, description="What nodes' scores say, as for UPRRerank.")
    docstore: BaseDocumentStore | None = Field(default=None, exclude=True, description="Knows linked nodes by id.")
    retriever: BaseRetriever | None = Field(default=None, exclude=True, description="Finds more nodes for each path.")
    filters: Filters | None = Field(default=None, exclude=True, description="Which nodes may be seen.")
    embed: InstanceOf[BaseEmbedding] | Embed | None = Field(
        default=None, exclude=True, description="An embedding model, or a function from texts to vectors."
    )
    settings: InstanceOf[PromptRankRerankSettings] = Field(
        default=PromptRankRerankSettings(), description="What is rarely touched."
    )

    def _prepare(self) -> None:
        Guard(self.filters)  # says now what is wrong with them
        super()._prepare()

    def _passage(self, node: BaseNode) -> Passage:
        return passage_of(node, node.node_id, self.settings.title_key, self.settings.metadata_mode)

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return super()._postprocess_nodes(Guard(self.filters).hits(nodes), query_bundle)

    def _embedding(self) -> Embed | None:
        return embedding_of(self.embed)

    def _host(self) -> NodePaths:
        guard = Guard(self.filters, self.retriever)
        settings = self.settings
        return NodePaths(guard, self.retriever, self.docstore, settings.title_key, settings.metadata_mode)
