"""Path search as a LlamaIndex retriever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import LLM
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index.core.storage.docstore.types import BaseDocumentStore

from drillrank import LanguageModel, load_language_model
from drillrank.explanation.explanations import explains
from drillrank.hosts.metadata import with_notes
from drillrank.hosts.paths import FoundRecord, PathRetrieval
from drillrank.hosts.settings import check_switch
from drillrank.llm import Requests, Usage
from drillrank.multihop.path_rerank import LINKS_IN_TEXTS, LinkName
from drillrank.passages import check_top_n
from drillrank.settings import as_settings
from drillrank.vectors import Embed
from llama_index_ext._filters import Filters, NodeFilter
from llama_index_ext._llm import FrameworkLLM, Prompted, Prompts, embedding_of
from llama_index_ext._records import check_retriever, checked_nodes, unread
from llama_index_ext._retriever import AskedRetriever
from llama_index_ext.events import send_explanations
from llama_index_ext.promptrank_nodes import NodePaths
from llama_index_ext.settings import PromptRankRetrieverSettings


@dataclass(eq=False, repr=False)
class PromptRankRetriever(Prompted, AskedRetriever):
    """Finds nodes that answer a question together, by searching paths of linked nodes (multi-hop questions).

    Args:
        source: Any LlamaIndex retriever; all that it returns are the first nodes of paths. Let it return many, the
            paper takes 100.
        documents: Nodes that may be linked to though they were not retrieved; the titles and addresses of those that
            may be seen are indexed once, and a lexical model takes its statistics from them. Where there is a store,
            they lend no more than that: the text that is read and returned is fetched from it by id.
        store: The store that linked nodes are fetched from by id. Without it, those in `documents` are fetched from the
            index behind `source`, if it can be asked; if it cannot, they are taken as they were given.
        filters: The host's `MetadataFilters`, or a function from a node to True or False: no other node is read, named
            or linked to, wherever it comes from. Linked nodes must pass the filters of `source`, too.
        links: What links a node to others, as for `PromptRankRerank`; also `"retrieval"`: each path that is followed
            leads to three more nodes, those that `source` finds with the question and the path's last node as its
            query.
        llm: An LLM that names what the best path of each hop but the last still lacks: one short call, and one question
            to `source`. None asks nobody; the host's default is not taken.
        model: Language model that scores: a `load_language_model` specification, or a ready one.
        model_options: Options of that model.
        top_n: Nodes to return; None returns every node on a scored path.
        embed: An embedding model, best that of the index, or a function from texts to vectors. `documents` are embedded
            when the retriever is built, what it finds when it is first found.
        explain: Whether results say why they stand where they stand.
        settings: What is rarely touched: `llama_index_ext.settings.PromptRankRetrieverSettings`, or a mapping of its
            fields.
        callback_manager: As for every LlamaIndex retriever.

    Each node comes once, as a copy: `metadata["drillrank_path"]` holds the ids of its best path, joined by
    " > ", and `drillrank_path_score` that path's score, which is the node's score too (see `PathSearch.search`). Every
    hop sends a `PathHopEvent`. With an `llm`, `drillrank_missing` holds what it named, joined by " | ", and
    `drillrank_prompt_tokens`, `drillrank_completion_tokens` and `drillrank_llm_calls` its cost; with
    `drillrank_problems` if a call failed. `update_prompts` changes its prompt, too.

    The views of a section that `MultiViewNodeParser` made are one candidate, its raw node, fetched from the index
    behind `source` or else from `store`; where neither can be asked, the best hit stands for it.

    A node of `documents` that differs from the store's, or a store that knows none of them by their ids, leads to a
    `DrillrankWarning`.

    Raises:
        InvalidInput: a setting is unknown or cannot be used, two of the `documents` that may be seen share an id, the
            question is blank, or the retriever has a filter that cannot be checked on linked nodes.

    >>> from llama_index.core.schema import TextNode
    >>> turing = TextNode(text="Alan Turing was born in Maida Vale.", id_="turing", metadata={"title": "Alan Turing"})
    >>> vale = TextNode(text="It is a residential district.", id_="vale", metadata={"title": "Maida Vale"})
    >>> class OnlyTuring(BaseRetriever):
    ...     def _retrieve(self, query_bundle):
    ...         return [NodeWithScore(node=turing)]
    >>> retriever = PromptRankRetriever([turing, vale], source=OnlyTuring())
    >>> hits = retriever.retrieve("In which residential district was Turing born?")
    >>> [hit.metadata["drillrank_path"] for hit in hits]
    ['turing > vale', 'turing > vale']
    """

    documents: Sequence[BaseNode] = ()
    _: KW_ONLY
    source: BaseRetriever
    store: BaseDocumentStore | None = None
    filters: Filters | None = None
    links: Sequence[LinkName] = LINKS_IN_TEXTS
    llm: LLM | None = None
    embed: BaseEmbedding | Embed | None = None
    model: str | LanguageModel = "unigram"
    model_options: dict[str, Any] | None = None
    top_n: int | None = 5
    explain: bool = False
    settings: PromptRankRetrieverSettings | Mapping[str, Any] = PromptRankRetrieverSettings()
    callback_manager: InitVar[CallbackManager | None] = None

    def __post_init__(self, callback_manager: CallbackManager | None) -> None:
        BaseRetriever.__init__(self, callback_manager=callback_manager)
        self.settings = settings = as_settings(PromptRankRetrieverSettings, self.settings)
        self._read = settings.title_key, settings.metadata_mode
        check_switch(explain=self.explain)
        check_retriever(self, self.source)
        self.documents = checked_nodes(self, self.documents)
        check_top_n(self.top_n)
        self._prompts = Prompts()
        missing_prompt: Any = settings.missing_prompt  # the host's, or a text
        prompt = self._prompts.filler("missing_prompt", missing_prompt)
        self._asked = None if self.llm is None else FrameworkLLM(self.llm, "name what is missing")
        model = load_language_model(self.model, **(self.model_options or {}))
        self._paths = PathRetrieval(
            settings,
            settings.prompt_rank(model, settings.prior),
            self.documents,
            self._host(NodeFilter(self.filters, self.source)),
            links=self.links,
            embed=embedding_of(self.embed),
            explains=self.explain,
            missing_prompt=None if self.llm is None else prompt,
            component=type(self).__name__,
        )

    @property
    def _all_from(self) -> BaseRetriever | None:
        """Whose store all results are from; none, if some are from another one."""
        return self.source if self.store is None else None

    def _found(self, query: str, query_bundle: QueryBundle, usage: Usage) -> Requests[list[NodeWithScore]]:
        host = self._host(NodeFilter(self.filters, self.source))
        found = yield from self._paths.retrieve(query, host, self.top_n, usage, asked=query_bundle)
        nodes = list(map(_node, found))
        if explains(self.explain):
            send_explanations(query, nodes, [one.explanation for one in found])
        return nodes

    def _framework_llm(self) -> FrameworkLLM | None:
        return self._asked

    def _host(self, guard: NodeFilter) -> NodePaths:
        return NodePaths(guard, self.source, self.store, *self._read)


def _node(found: FoundRecord[BaseNode]) -> NodeWithScore:
    metadata = with_notes(found.record.metadata, found.details) | found.notes
    return NodeWithScore(node=unread(found.record, metadata, found.notes), score=found.score)
