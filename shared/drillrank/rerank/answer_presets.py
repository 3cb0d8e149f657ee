"""How published models are asked whether a document is relevant, and how their answer becomes a score.

Each was read in the publisher's code or model card; `docs/neural-models.md` has the table with the sources. Where a
publisher tokenises the pieces of a prompt one by one, the whole string is tokenised at once here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from drillrank.errors import InvalidInput
from drillrank.prompts import MONOT5_PROMPT

Transform = Literal["softmax", "margin", "logit"]


@dataclass(frozen=True)
class AnswerPreset:
    """A prompt, the tokens that answer it, and what is made of them.

    Attributes:
        template: Wording with `{query}`, `{text}` and, if there may be one, `{instruction}`.
        positive: The token that calls a document relevant: its text, its name in the vocabulary, or its id.
        negative: The token that does not; None where the logit of `positive` is all.
        transform: See `RelevanceSettings`.
        instruction: What the publisher asks where the user says nothing.
        instruction_form: How an instruction is written into its place.
        scale: Factor of the score.
        shift: Added to the score behind that.
        chat: Whether the wording is the user's turn in the model's own chat template.
    """

    template: str
    positive: str | int
    negative: str | int | None
    transform: Transform
    instruction: str | None = None
    instruction_form: str = "{instruction}"
    scale: float = 1.0
    shift: float = 0.0
    chat: bool = False


_SYSTEM, _USER, _ASSISTANT = (
    "<|im_start|>system\n",
    "<|im_end|>\n<|im_start|>user\n",
    "<|im_end|>\n<|im_start|>assistant\n",
)
_ZERANK = f"{_SYSTEM}{{query}}{_USER}{{text}}{_ASSISTANT}"

ANSWER_PRESETS: dict[str, AnswerPreset] = {
    "monot5": AnswerPreset(MONOT5_PROMPT, "true", "false", "softmax"),
    "qwen3-reranker": AnswerPreset(
        f"{_SYSTEM}Judge whether the Document meets the requirements based on the Query and the Instruct provided. "
        f'Note that the answer can only be "yes" or "no".{_USER}<Instruct>: {{instruction}}\n<Query>: {{query}}\n'
        f"<Document>: {{text}}{_ASSISTANT}<think>\n\n</think>\n\n",
        "yes",
        "no",
        "softmax",
        instruction="Given a web search query, retrieve relevant passages that answer the query",
    ),
    "mxbai-rerank-v2": AnswerPreset(
        f"{_SYSTEM}You are Qwen, created by Alibaba Cloud. You are a helpful assistant.{_USER}{{instruction}}"
        "query: {query}\ndocument: {text}\nYou are a search relevance expert who evaluates how well documents match "
        "search queries. For each query-document pair, carefully analyze the semantic relationship between them, then "
        "provide your binary relevance judgment (0 for not relevant, 1 for relevant).\n"
        f"Relevance:{_ASSISTANT}",
        "1",
        "0",
        "margin",
        instruction_form="instruction: {instruction}\n",
    ),
    "bge-reranker-v2-gemma": AnswerPreset(  # the tokenizer puts <bos> in front
        "A: {query}\nB: {text}\nGiven a query A and a passage B, determine whether the passage contains an answer to "
        "the query by providing a prediction of either 'Yes' or 'No'.",
        "Yes",
        None,
        "logit",
    ),
    "zerank-1-small": AnswerPreset(_ZERANK, "Yes", None, "logit", scale=0.2),
    "zerank-2": AnswerPreset(_ZERANK, "Yes", None, "logit"),
    "ctxl-rerank-v2": AnswerPreset(
        "Check whether a given document contains information helpful to answer the query.\n"
        "<Document> {text}\n<Query> {query}{instruction} ??",
        0,
        None,
        "logit",
        instruction_form=" {instruction}",
    ),
    "yes-no": AnswerPreset(  # ours, for any model that was tuned to follow instructions
        "{instruction}Query: {query}\n\nDocument: {text}\n\nDoes the document help to answer the query? Answer with "
        "one word, Yes or No.",
        "Yes",
        "No",
        "softmax",
        instruction_form="{instruction}\n\n",
        chat=True,
    ),
}


def answer_preset(name: str) -> AnswerPreset:
    """The preset of that name.

    Raises:
        InvalidInput: there is none.

    >>> answer_preset("qwen3-reranker").positive
    'yes'
    """
    if not isinstance(name, str) or name not in ANSWER_PRESETS:
        raise InvalidInput(f"preset is one of {', '.join(ANSWER_PRESETS)}; not {name!r}.")
    return ANSWER_PRESETS[name]
