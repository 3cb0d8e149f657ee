"""PromptRank as a LlamaIndex node postprocessor."""

from __future__ import annotations

from llama_index.core.bridge.pydantic import Field
from llama_index.core.schema import BaseNode, MetadataMode

from drillrank import Passage, PromptRank, Ranked
from drillrank.multihop.links import links_from_metadata
from drillrank.multihop.rerank import PathRerank
from drillrank.prompts import PROMPTRANK_INSTRUCTIONS
from drillrank.rerank.demonstrations import Demonstration
from drillrank.rerank.settings import Ensemble
from llama_index_ext._rerank import LikelihoodRerank


class PromptRankRerank(LikelihoodRerank):
    """Reranks nodes by the best path of linked nodes among them (multi-hop questions).

    A node links to the node ids that its metadata lists under `links_key`, and to nodes whose title (metadata
    `title_key`) its text mentions.

    Args:
        model: A `load_language_model` specification, or a ready language model.
        top_n: Nodes to keep; None keeps all.

    The other fields: those of `UPRRerank` but for its template, and `links_key`, `title_key`,
    `instructions`, `ensemble`, `temperature` (those of `tune`), `demonstrations`, `hops`, `beam`, `branch`.

    >>> from llama_index.core.schema import NodeWithScore, TextNode
    >>> turing = TextNode(text="Alan Turing was born in Maida Vale.", metadata={"title": "Alan Turing"})
    >>> vale = TextNode(text="It is a district of London.", metadata={"title": "Maida Vale"})
    >>> london = TextNode(text="London is the capital of England.", metadata={"title": "London"})
    >>> nodes = [NodeWithScore(node=node) for node in (london, vale, turing)]
    >>> question = "Which London district was Turing born in?"
    >>> [node.node.metadata["title"] for node in PromptRankRerank().postprocess_nodes(nodes, query_str=question)]
    ['Maida Vale', 'Alan Turing', 'London']
    """

    metadata_mode: MetadataMode = Field(
        default=MetadataMode.NONE, description="Metadata that the model reads beside the title."
    )
    links_key: str = Field(default="links", description="Metadata key with linked node ids, a list or comma-separated.")
    title_key: str = Field(default="title", description="Metadata key with the node's title.")
    instructions: tuple[str, ...] = Field(default=PROMPTRANK_INSTRUCTIONS[:5], description="Prompts that hold {path}.")
    ensemble: Ensemble = Field(default="max", description="How scores under several instructions combine.")
    temperature: float = Field(default=1.0, gt=0, description="Divides the logits before the softmax.")
    demonstrations: tuple[Demonstration, ...] = Field(
        default=(), description="Questions with their gold paths, shown to a neural model before each candidate."
    )
    hops: int = Field(default=2, gt=0, description="Longest path.")
    beam: int = Field(default=5, gt=0, description="Paths extended after each hop.")
    branch: int = Field(default=3, gt=0, description="Links followed from each of them.")

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialisation."""
        return "PromptRankRerank"

    def _passage(self, node: BaseNode) -> Passage:
        links = links_from_metadata(node.metadata.get(self.links_key))
        title = node.metadata.get(self.title_key)
        text = node.get_content(metadata_mode=self.metadata_mode)
        return Passage(text, id=node.node_id, title=str(title or ""), links=links)

    def _rank(self, query: str, passages: list[Passage]) -> list[Ranked[Passage]]:
        prompt_rank = PromptRank(
            self._language_model,
            instructions=self.instructions,
            ensemble=self.ensemble,
            temperature=self.temperature,
            demonstrations=self.demonstrations,
        )
        return PathRerank(prompt_rank, hops=self.hops, beam=self.beam, branch=self.branch).rank(query, passages)
