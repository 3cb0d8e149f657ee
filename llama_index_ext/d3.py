"""Drilling down as a LlamaIndex retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import KW_ONLY, InitVar
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.vector_store import VectorStoreIndex
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.utils import print_text

from drillrank import D3, LanguageModel, Passage, Ranked
from drillrank.drilldown.d3 import EvidenceRanking
from drillrank.drilldown.drill import Step
from drillrank.drilldown.evidence import load_evidence_model
from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.drilldown.rebuilding import PreparedCache
from drillrank.embedding import Embed, HostEmbedding
from drillrank.errors import InvalidInput
from drillrank.hosts.chunks import ChunkRecord
from drillrank.hosts.fields import Fixed
from drillrank.hosts.keys import PREFIX, with_own
from drillrank.hosts.lookups import Lookups, arun_lookups, run_lookups
from drillrank.hosts.notes import notes
from drillrank.hosts.page_records import paragraph_metadata, with_pages_joined
from drillrank.hosts.proposing import Proposed, Reading, grouped, proposed
from drillrank.hosts.settings import D3RetrieverSettings
from drillrank.once import Told
from drillrank.passages import check_query
from drillrank.settings import method, renamed
from llama_index_ext._chunks import chunks_of, holding
from llama_index_ext._filters import Filters, Guard
from llama_index_ext._llm import FrameworkLLM, Prompts
from llama_index_ext._lookups import StoreLookups
from llama_index_ext._nodes import unread
from llama_index_ext.events import D3EndEvent, D3StepEvent

_VIEWS = 3  # of a section in an index: to find so many documents, ask for more

dispatcher = get_dispatcher(__name__)


@renamed(summarise="summarizer")
@method
class D3Retriever(Fixed, BaseRetriever, D3RetrieverSettings):
    r"""Retrieves evidence paragraphs from long documents: an LLM, or likelihood, opens sections and picks in them.

    Args:
        documents: Documents, parsed as `parse_document` does with their metadata; or nodes of `MultiViewNodeParser`,
            from which the documents' section trees are rebuilt. Without a `source`, all are prepared once.
        llm: Chooses sections and paragraphs; None lets likelihood choose.
        source: Proposes documents, sections, or nodes of any parser; the documents of its best results are drilled
            into. A `VectorStoreIndex`, or any retriever. A node's document is put together from the index, that one or
            the one that the retriever searches; from `documents` only where no index can be asked and what was found
            agrees with them; else they lend nodes their structure and offsets.
        filters: What may be seen: the host's `MetadataFilters`, or a function from a node to True or False. They
            govern the search and whatever is looked up beside it.
        model: Language model that scores: a `load_language_model` specification, or a ready one.
        model_options: Options of that model.
        embed: An embedding model, or a function from texts to vectors, whose cosines join the likelihood.
        callback_manager: As for every LlamaIndex retriever.
        verbose: Print each step.

    The other arguments are the settings of `drillrank.D3`; `update_prompts` changes its prompts, too.

    Each node is a paragraph, text as stored, with `start_char_idx` and `end_char_idx` where they are known, the
    document as SOURCE, and the metadata of the node that it stands in together with, under names that begin with
    `drillrank_`, `section_path`; without an LLM `section_score`; with one `prompt_tokens`, `completion_tokens` and
    `llm_calls` of the question; `problems`, a string, if anything went wrong, and without an LLM `nothing_matched` if
    no paragraph holds a word of the question: then the documents' order stays. No model reads these. Each
    step is a `D3StepEvent`, usage and problems a `D3EndEvent`. What goes wrong is also told in one `DrillrankWarning`.

    Raises:
        InvalidInput: a setting cannot be used, or the question is blank.
        LLMFailure: a call failed, and `on_failure` is `"raise"`.

    >>> from llama_index.core import Document
    >>> manual = Document(text="# Battery\n\nIt lasts nine hours.\n\n# Screen\n\nClean it with a dry cloth.")
    >>> node = D3Retriever([manual], top_n=1).retrieve("How long does the battery last?")[0]
    >>> node.text, node.metadata["drillrank_section_path"]
    ('It lasts nine hours.', 'Battery')
    """

    documents: Sequence[BaseNode] = ()
    llm: LLM | None = None
    _: KW_ONLY
    source: VectorStoreIndex | BaseRetriever | None = None
    filters: Filters | None = None
    model: str | LanguageModel = "unigram"
    model_options: dict[str, Any] | None = None
    embed: BaseEmbedding | Embed | None  # type: ignore[assignment]  # the host's, too
    section_prompt: BasePromptTemplate | str | None  # type: ignore[assignment]  # the host's
    paragraph_prompt: BasePromptTemplate | str | None  # type: ignore[assignment]
    callback_manager: InitVar[CallbackManager | None] = None
    verbose: InitVar[bool] = False

    __repr__ = object.__repr__  # documents may be long

    def __post_init__(self, callback_manager: CallbackManager | None, verbose: bool) -> None:
        BaseRetriever.__init__(self, callback_manager=callback_manager, verbose=verbose)
        D3RetrieverSettings.__post_init__(self)
        source = self.source
        if source is not None and not isinstance(source, VectorStoreIndex | BaseRetriever):
            raise InvalidInput(f"source is a VectorStoreIndex or a retriever; not {source!r:.100}.")
        self._prompts = Prompts()
        prompts: Any = self.prompts  # the host's, or texts
        self._d3 = D3.configured(
            self,
            FrameworkLLM(self.llm, "summarise") if self.llm is not None else None,
            load_evidence_model(self.model, **(self.model_options or {})),
            embed=_embed(self.embed),
            section_prompt=self._prompts.filler("section_prompt", "choose sections", prompts[0], "outline", "question"),
            paragraph_prompt=self._prompts.filler(
                "paragraph_prompt", "choose paragraphs", prompts[1], "paragraphs", "question"
            ),
        )
        self._said = Told()
        self._given = chunks_of(self.documents)
        # A retriever follows a view to the copy of its section that earlier releases left there.
        in_order = isinstance(source, VectorStoreIndex) and not source.vector_store.stores_text
        self._reading = Reading(chunks_of, holding, copies=not isinstance(source, VectorStoreIndex), ordered=in_order)
        self._prepared = PreparedCache(self._d3.prepare, self.separator)
        self._proposed: Proposed[BaseNode] = Proposed()
        self._ready: PreparedDocuments | None = None
        guard = Guard(self.filters)
        if source is None:
            seen = self._seen(guard)
            self._proposed = grouped(seen, hidden=len(seen) < len(self._given))
            self._proposed.tell(self._said)
            self._ready = self._prepared.ready(self._proposed.material())

    def _get_prompts(self) -> PromptDictType:
        return dict(self._prompts.templates)

    def _update_prompts(self, prompts: PromptDictType) -> None:
        self._prompts.update(prompts)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        question, stored = check_query(query_bundle.query_str), self._proposed
        if self.source is not None:
            guard = Guard(self.filters, self.source)
            stored = run_lookups(self._lookups(guard), StoreLookups(query_bundle, self.source, guard).answer)
            stored.tell(self._said)
        found = self._d3.retrieve(question, self._drillable(stored), self.top_n, on_step=self._tell)
        return self._nodes(found, stored)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        question, stored = check_query(query_bundle.query_str), self._proposed
        if self.source is not None:
            guard = Guard(self.filters, self.source)
            store = StoreLookups(query_bundle, self.source, guard)
            stored = await arun_lookups(self._lookups(guard), store.aanswer)
            stored.tell(self._said)
        ready = await asyncio.to_thread(self._drillable, stored)
        found = await self._d3.aretrieve(question, ready, self.top_n, on_step=self._tell)
        return await asyncio.to_thread(self._nodes, found, stored)

    def _drillable(self, stored: Proposed[BaseNode]) -> PreparedDocuments:
        return self._ready or self._prepared.ready(stored.material())

    def _lookups(self, guard: Guard) -> Lookups[Proposed[BaseNode]]:
        limit = self.max_documents
        return proposed(self._reading, self._seen(guard), _VIEWS * limit, limit, guard.restriction)

    def _seen(self, guard: Guard) -> list[ChunkRecord[BaseNode]]:
        """What was given and may be seen."""
        if not self.documents:
            return []
        pairs = list(zip(self.documents, self._given, strict=True))  # the copy in a view may be open, and the view not
        seen = set(map(id, guard.allowed(node for given, chunk in pairs for node in (given, chunk.record))))
        chunks = [chunk for given, chunk in pairs if {id(given), id(chunk.record)} <= seen]
        return with_pages_joined(chunks) if self.join_pages else chunks

    def _tell(self, step: Step) -> None:
        problems = list(step.problems)
        dispatcher.event(D3StepEvent(kind=step.kind, offered=step.offered, chosen=list(step.chosen), problems=problems))
        if self._verbose:
            told = f"{step.kind}: {len(step.chosen)} of {step.offered}: {'; '.join(step.chosen)}"
            print_text(
                "\n".join([told, *(f"  ! {problem}" for problem in problems)]), color="llama_turquoise", end="\n"
            )

    def _nodes(self, found: EvidenceRanking, stored: Proposed[BaseNode]) -> list[NodeWithScore]:
        usage = found.usage.as_metadata()
        dispatcher.event(D3EndEvent(usage=usage, problems=[*map(str, stored.problems), *found.problems]))
        return [self._node(item, stored, usage if self.llm is not None else {}) for item in found]

    def _node(self, item: Ranked[Passage], stored: Proposed[BaseNode], usage: dict[str, int]) -> NodeWithScore:
        paragraph = stored.at(item.passage)
        origin = paragraph.chunk.record
        added = {key: item.details[key] for key in ("section_score",) if key in item.details} | usage
        if self.guard_tokens:
            added["guarded"] = item.details["guarded"]
        if "problems" in item.details:
            added["problems"] = "; ".join(item.details["problems"])
        namespace = paragraph.document.name[0] or None
        noted = {**paragraph_metadata(paragraph), **notes(item.details)}
        metadata = with_own(noted, section_path=item.passage.title, namespace=namespace, **added)
        node = TextNode(
            id_=paragraph.id,
            text=item.passage.text,
            start_char_idx=paragraph.start,
            end_char_idx=paragraph.end,
            excluded_embed_metadata_keys=origin.excluded_embed_metadata_keys,
            excluded_llm_metadata_keys=origin.excluded_llm_metadata_keys,
            relationships={NodeRelationship.SOURCE: self._source_of(paragraph.chunk)},
        )
        ours = [key for key in metadata if key.startswith(PREFIX)]
        return NodeWithScore(node=unread(node, metadata, ours), score=item.score)

    def _source_of(self, chunk: ChunkRecord[BaseNode]) -> RelatedNodeInfo:
        """The document that a node is or belongs to."""
        node = chunk.record
        if chunk.kind != "document" and node.source_node is not None:
            return node.source_node
        return node.as_related_node_info()


def _embed(given: BaseEmbedding | Embed | None) -> Embed | None:
    if isinstance(given, BaseEmbedding):
        return HostEmbedding(given.get_text_embedding_batch, given.get_query_embedding)
    return given
