"""Self-ask as a LlamaIndex query engine."""

from __future__ import annotations

from dataclasses import KW_ONLY, InitVar, dataclass
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import Response
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
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
from drillrank.frameworks.store import RetrievedPassages
from drillrank.passages import check_query
from drillrank.structure.stored_chunks import StoredChunk
from drillrank.text import Tokens
from llama_index_ext._filters import Filters, NodeFilter
from llama_index_ext._llm import FrameworkLLM, StepPrompts
from llama_index_ext._records import check_source
from llama_index_ext._store import LlamaIndexStore
from llama_index_ext.events import SelfAskStepEvent

dispatcher = get_dispatcher(__name__)


@dataclass(eq=False, repr=False)
class SelfAskQueryEngine(StepPrompts, BaseQueryEngine):
    r"""Answers multi-hop questions by follow-up questions, each answered from what a retriever finds.

    Args:
        source: Any LlamaIndex retriever.
        llm: Asks and answers; None takes `Settings.llm` at each query.
        filters: The host's `MetadataFilters`, or a function from a node to True or False: no LLM reads another node of
            the retriever's.
        max_steps: Most follow-up questions; then the final answer is asked for.
        max_prompt_tokens: Budget of a prompt, as for `drillrank.SelfAsk`.
        tokens: What counts the tokens of a text: see `drillrank.text.token_counter`.
        prompt: Asks for the next step: with `{question}` and `{transcript}`, which ends the prompt.
        answer_prompt: Asks for an answer from nodes: with `{contents}` and `{question}`.
        on_failure: Where a call fails: `"continue"` with what there is without it, or `"raise"`.
        callback_manager: As for every LlamaIndex query engine.
        verbose: Print each step.

    `update_prompts` changes the prompts, too.

    The response has the final answer, the nodes of all steps, each once, as source nodes, and as metadata `steps` (each
    with `question`, `answer` and `node_ids`), `problems`, `prompt_tokens`, `completion_tokens` and `llm_calls`, which
    include the calls of a `D3Retriever`. Each step is a `SelfAskStepEvent`. Nodes are read as an LLM should
    see them, with the metadata meant for it. Whatever the LLM says, there is a response ("Empty Response" at worst);
    what went wrong is also told in one `DrillrankWarning`.

    Raises:
        InvalidInput: a setting cannot be used, or the query is blank.
        LLMFailure: a call failed, and `on_failure` is `"raise"`.

    >>> from llama_index.core import Document
    >>> from llama_index.core.llms import MockLLM
    >>> from llama_index_ext import D3Retriever
    >>> retriever = D3Retriever([Document(text="Basel lies on the Rhine.")])
    >>> response = SelfAskQueryEngine(retriever, MockLLM(max_tokens=1)).query("Where is Basel?")  # answers "text"
    >>> str(response), response.metadata["steps"], response.metadata["llm_calls"]
    ('text', [], 2)
    """

    source: BaseRetriever
    llm: LLM | None = None
    _: KW_ONLY
    filters: Filters | None = None
    max_steps: int = 5
    max_prompt_tokens: int = 3000
    tokens: Tokens = None
    prompt: BasePromptTemplate | str = SELF_ASK_PROMPT
    answer_prompt: BasePromptTemplate | str = ANSWER_PROMPT
    on_failure: OnFailure = "continue"
    callback_manager: InitVar[CallbackManager | None] = None
    verbose: InitVar[bool] = False

    def __post_init__(self, callback_manager: CallbackManager | None, verbose: bool) -> None:
        BaseQueryEngine.__init__(self, callback_manager)
        check_source(self, self.source)
        self._verbose = verbose
        NodeFilter(self.filters)  # says now what is wrong with them
        self._self_ask = SelfAsk(
            FrameworkLLM(self.llm, "ask"),
            RetrievedPassages(self._store, _passage),
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
        return {"retriever": self.source}

    def _query(self, query_bundle: QueryBundle) -> Response:
        question = check_query(query_bundle.query_str)
        with self.callback_manager.event(CBEventType.QUERY, payload={EventPayload.QUERY_STR: question}) as event:
            *_, response = map(self._warned, self._self_ask.stream(question))
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    async def _aquery(self, query_bundle: QueryBundle) -> Response:
        question = check_query(query_bundle.query_str)
        with self.callback_manager.event(CBEventType.QUERY, payload={EventPayload.QUERY_STR: question}) as event:
            response = [self._warned(item) async for item in self._self_ask.astream(question)][-1]
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    def _warned(self, item: FollowUp | SelfAskAnswer) -> Response:
        """A step is told at once; the answer becomes the response."""
        if isinstance(item, FollowUp):
            dispatcher.event(SelfAskStepEvent(**_shown(item)))
            if self._verbose:
                print_text(f"Follow up: {item.question}\nAnswer: {item.answer}", color="llama_turquoise", end="\n")
            return Response(None)
        nodes = {passage.id: passage.metadata["node"] for step in item.steps for passage in step.passages}
        metadata = {
            "steps": list(map(_shown, item.steps)),
            "problems": list(item.problems),
            **item.usage.as_metadata(),
        }
        return Response(item.answer or "Empty Response", source_nodes=list(nodes.values()), metadata=metadata)


def _passage(chunk: StoredChunk[BaseNode]) -> Passage:
    node = chunk.record
    text = node.get_content(metadata_mode=MetadataMode.LLM)
    return Passage(text, id=node.node_id, metadata={"node": NodeWithScore(node=node, score=chunk.score)})


def _shown(step: FollowUp) -> dict[str, Any]:
    return {"question": step.question, "answer": step.answer, "node_ids": [passage.id for passage in step.passages]}
