"""Self-ask as a LlamaIndex query engine."""

from __future__ import annotations

from dataclasses import KW_ONLY, InitVar, dataclass
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import Response
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.indices.vector_store import VectorStoreIndex
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.utils import print_text

from drillrank import Passage, SelfAsk
from drillrank.drilldown.answering import ANSWER_PROMPT
from drillrank.drilldown.self_ask import SELF_ASK_PROMPT, FollowUp, SelfAskAnswer
from drillrank.errors import OnFailure
from drillrank.frameworks.constructors import component
from drillrank.frameworks.inputs import clean_question
from drillrank.frameworks.source_passages import RetrievedPassages
from drillrank.structure.record_store import RecordStore
from drillrank.structure.stored_chunks import StoredChunk
from drillrank.text import Tokens
from llama_index_ext._filters import Filters, NodeFilter
from llama_index_ext._llm import FrameworkLLM, StepPrompts
from llama_index_ext._records import check_source, read_content
from llama_index_ext._store import LlamaIndexStore
from llama_index_ext.events import SelfAskStepEvent

dispatcher = get_dispatcher(__name__)


@component
@dataclass(eq=False, repr=False)
class SelfAskQueryEngine(StepPrompts, BaseQueryEngine):
    r"""Answers multi-hop questions by follow-up questions, each answered from the nodes of a retriever.

    Args:
        source: Any LlamaIndex retriever, an index or a record store. The latter two are searched for 5 nodes.
        llm: LLM that asks and answers. None takes `Settings.llm` at each query.
        filters: `MetadataFilters` of LlamaIndex, or a function from a node to True or False. The LLM reads only nodes
            that pass.
        max_steps: Maximum number of follow-up questions. After them, the LLM is asked for the final answer.
        max_prompt_tokens: Token limit of each prompt.
        tokens: Token counter; see `drillrank.text.token_counter`.
        prompt: Prompt for the next step, with `{question}` and, at its end, `{transcript}`.
        answer_prompt: Prompt for an answer from nodes, with `{contents}` and `{question}`.
        on_failure: `"raise"` raises an `LLMFailure` if a call of the LLM fails or its answer is unusable. `"fallback"`
            continues without the answer. None raises if a call fails, and falls back if an answer is unusable. The
            source has its own policy if it asks an LLM.
        callback_manager: Callback manager, as for every query engine of LlamaIndex.
        verbose: True to print each step.

    `update_prompts` changes the prompts, too.

    The response has the final answer, and as source nodes the nodes of all steps, each once. Its metadata are `steps`
    (each with `question`, `answer` and `node_ids`), `problems`, `prompt_tokens`, `completion_tokens` and `llm_calls`.
    The last three include the calls of a `D3Retriever`. Each step sends a `SelfAskStepEvent`. The LLM reads nodes with
    the metadata that LlamaIndex shows to LLMs. If answers of the LLM are unusable, there is still a response ("Empty
    Response" at worst) and one `DrillrankWarning`.

    Raises:
        InvalidInput: A setting cannot be used, or the query is blank.
        LLMFailure: A call failed or its answer is unusable, and `on_failure` says to raise.

    >>> from llama_index.core import Document
    >>> from llama_index.core.llms import MockLLM
    >>> from llama_index_ext import D3Retriever
    >>> retriever = D3Retriever([Document(text="Basel lies on the Rhine.")])
    >>> response = SelfAskQueryEngine(retriever, MockLLM(max_tokens=1)).query("Where is Basel?")  # answers "text"
    >>> str(response), response.metadata["steps"], response.metadata["llm_calls"]
    ('text', [], 2)
    """

    source: BaseRetriever | VectorStoreIndex | RecordStore
    llm: LLM | None = None
    _: KW_ONLY
    filters: Filters | None = None
    max_steps: int = 5
    max_prompt_tokens: int = 3000
    tokens: Tokens = None
    prompt: BasePromptTemplate | str = SELF_ASK_PROMPT
    answer_prompt: BasePromptTemplate | str = ANSWER_PROMPT
    on_failure: OnFailure | None = None
    callback_manager: InitVar[CallbackManager | None] = None
    verbose: InitVar[bool] = False

    def __post_init__(self, callback_manager: CallbackManager | None, verbose: bool) -> None:
        BaseQueryEngine.__init__(self, callback_manager)
        check_source(self, self.source)
        self._verbose = verbose
        NodeFilter(self.filters)  # raises an error for unusable filters now, not at the first query
        self._self_ask = SelfAsk(
            FrameworkLLM(self.llm, "ask"),
            RetrievedPassages(self._store, _convert_chunk),
            prompt=self._step_prompt("prompt", self.prompt),
            answer_prompt=self._step_prompt("answer_prompt", self.answer_prompt),
            max_steps=self.max_steps,
            max_prompt_tokens=self.max_prompt_tokens,
            tokens=self.tokens,
            on_failure=self.on_failure,
        )

    def _store(self) -> LlamaIndexStore:
        access_filter = NodeFilter(self.filters, self.source)
        return LlamaIndexStore(QueryBundle(""), self.source, access_filter, component="SelfAskQueryEngine")

    def _get_prompt_modules(self) -> PromptMixinType:
        return {"retriever": self.source} if isinstance(self.source, BaseRetriever) else {}

    def _query(self, query_bundle: QueryBundle) -> Response:
        question = clean_question(query_bundle.query_str)
        with self.callback_manager.event(CBEventType.QUERY, payload={EventPayload.QUERY_STR: question}) as event:
            *_, response = map(self._report, self._self_ask.stream(question))
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    async def _aquery(self, query_bundle: QueryBundle) -> Response:
        question = clean_question(query_bundle.query_str)
        with self.callback_manager.event(CBEventType.QUERY, payload={EventPayload.QUERY_STR: question}) as event:
            response = [self._report(item) async for item in self._self_ask.astream(question)][-1]
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    def _report(self, item: FollowUp | SelfAskAnswer) -> Response:
        """Send the event of a follow-up question, or convert the final answer to the response."""
        if isinstance(item, FollowUp):
            dispatcher.event(SelfAskStepEvent(**_describe_step(item)))
            if self._verbose:
                print_text(f"Follow up: {item.question}\nAnswer: {item.answer}", color="llama_turquoise", end="\n")
            return Response(None)
        nodes = {passage.id: passage.metadata["node"] for step in item.steps for passage in step.passages}
        metadata = {
            "steps": list(map(_describe_step, item.steps)),
            "problems": list(item.problems),
            **item.usage.as_metadata(),
        }
        return Response(item.answer or "Empty Response", source_nodes=list(nodes.values()), metadata=metadata)


def _convert_chunk(chunk: StoredChunk[BaseNode]) -> Passage:
    """Return a passage with the text that an LLM reads and, in its metadata, the node."""
    node = chunk.record
    text = read_content(node, MetadataMode.LLM)
    return Passage(text, id=node.node_id, metadata={"node": NodeWithScore(node=node, score=chunk.score)})


def _describe_step(step: FollowUp) -> dict[str, Any]:
    return {"question": step.question, "answer": step.answer, "node_ids": [passage.id for passage in step.passages]}
