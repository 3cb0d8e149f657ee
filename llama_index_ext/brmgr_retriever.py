"""Retrieval together with generation as a LlamaIndex retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

from llama_index.core import Settings
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import LLM
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from drillrank import LanguageModel, Passage
from drillrank.dialogue import Dialogue, arun, run
from drillrank.errors import check_on_failure, check_positive
from drillrank.generation import generated_passages
from drillrank.hosts.fields import Fixed
from drillrank.hosts.keys import prefixed
from drillrank.passages import check_query, check_top_n
from drillrank.prompts import GENREAD_PROMPTS, check_question_templates
from drillrank.rerank.brmgr import Origin
from drillrank.rerank.first_stage import Prior
from llama_index_ext._filters import Filters, Guard
from llama_index_ext._llm import FrameworkLLM
from llama_index_ext._waiting import aretrieved
from llama_index_ext.brmgr import BRMGRRerank


class BRMGRRetriever(Fixed, BaseRetriever):
    """Retrieves nodes, lets an LLM write some more, and merges the two (see `BRMGRRerank`).

    Args:
        retriever: Any LlamaIndex retriever.
        llm: Writes the passages; None takes `Settings.llm` at each query.
        n_generated: Passages to ask for, one call each.
        model: Language model that ranks: a `load_language_model` specification, or a ready one.
        model_options: Options of that model.
        top_n: Nodes to return; None returns all.
        prompts: Templates with `{question}`; `drillrank.generation.cluster_prompts` makes others.
        workers: LLM calls at the same time.
        on_failure: For a failed call: `"continue"` without its node, or `"raise"`.
        first: Which node of a pair comes first.
        guard: Drop generated nodes that no retrieved one supports.
        generated_share: Largest share of generated nodes among those returned.
        prior: What the scores of the retriever's nodes are to their ranking; as for `UPRRerank`.
        filters: The host's `MetadataFilters`, or a function from a node to True or False: what else the retriever
            brings is left out.
        origin_key: Metadata key that says `"generated"` in every node that the LLM wrote.
        callback_manager: As for every LlamaIndex retriever.

    Generated nodes are made for one query and stored nowhere. A call that fails or brings nothing costs no retrieved
    node: there is a `DrillrankWarning`, and the others are merged. Give the LLM a time limit: a call that runs into it
    is a call that failed.

    Raises:
        InvalidInput: a number is below 1, a prompt has no place for the question, or the question is blank.

    >>> from llama_index.core.llms import MockLLM
    >>> from llama_index.core import Document
    >>> from llama_index_ext import D3Retriever
    >>> inner = D3Retriever([Document(text="Emma is a novel that Jane Austen wrote.")])
    >>> found = BRMGRRetriever(inner, MockLLM(), n_generated=1).retrieve("Who wrote Emma?")  # answers with the prompt
    >>> [node.metadata.get("drillrank_origin", "retrieved") for node in found]
    ['generated', 'retrieved']
    """

    def __init__(
        self,
        retriever: BaseRetriever,
        llm: LLM | None = None,
        n_generated: int = 3,
        *,
        model: str | LanguageModel = "unigram",
        model_options: dict[str, Any] | None = None,
        top_n: int | None = None,
        prompts: Sequence[str] = GENREAD_PROMPTS,
        workers: int = 4,
        on_failure: Literal["continue", "raise"] = "continue",
        first: Origin = "generated",
        guard: bool | float = False,
        generated_share: float = 1.0,
        prior: Prior | None = None,
        filters: Filters | None = None,
        origin_key: str = prefixed("origin"),
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        check_positive(n_generated=n_generated, workers=workers)
        check_top_n(top_n)
        self._retriever = retriever
        self._guard = Guard(filters, retriever)
        self._llm = llm
        self._n_generated = n_generated
        self._prompts = check_question_templates(prompts)
        self._workers = workers
        check_on_failure(on_failure)
        self._on_failure: Literal["continue", "raise"] = on_failure
        self._origin_key = origin_key
        ranking: dict[str, Any] = {
            "model": model,
            "model_options": model_options or {},
            "top_n": top_n,
            "first": first,
            "guard": guard,
            "generated_share": generated_share,
            "prior": prior,
            "origin_key": origin_key,
            "callback_manager": callback_manager or CallbackManager([]),
        }
        self._rerank = BRMGRRerank(**ranking)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = check_query(query_bundle.query_str)
        retrieved = self._seen(self._retriever.retrieve(query_bundle))
        written = run(self._dialogue(query), self._asked(), workers=self._workers)
        return self._rerank.postprocess_nodes([*retrieved, *map(self._node, written)], query_bundle)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        dialogue = self._dialogue(check_query(query_bundle.query_str))
        writing = asyncio.ensure_future(arun(dialogue, self._asked(), workers=self._workers))
        try:
            [retrieved] = await aretrieved([self._retriever], query_bundle)
            written = await writing
        finally:
            writing.cancel()  # of use only if retrieval raised
        return await self._rerank.apostprocess_nodes([*self._seen(retrieved), *map(self._node, written)], query_bundle)

    def _seen(self, retrieved: Sequence[NodeWithScore]) -> list[NodeWithScore]:
        return self._guard.hits(retrieved, type(self).__name__)

    def _dialogue(self, query: str) -> Dialogue[list[Passage]]:
        return generated_passages(query, self._n_generated, self._prompts, self._on_failure)

    def _asked(self) -> FrameworkLLM:
        return FrameworkLLM(self._llm or Settings.llm, "write a passage")

    def _node(self, passage: Passage) -> NodeWithScore:
        node = TextNode(
            id_=passage.id,
            text=passage.text,
            metadata={self._origin_key: "generated"},
            excluded_embed_metadata_keys=[self._origin_key],
            excluded_llm_metadata_keys=[self._origin_key],
        )
        return NodeWithScore(node=node)
