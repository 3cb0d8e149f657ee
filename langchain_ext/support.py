"""Runnable of LangChain that checks if documents support an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from pydantic import Field

from drillrank.errors import InvalidInput
from drillrank.frameworks.components import ComponentFields
from drillrank.generation.support import SentenceSupport, check_support
from drillrank.passages import Passage
from drillrank.text import check_language
from langchain_ext._records import passage_of
from langchain_ext._retriever import Loadable

Output = dict[str, Any]


class SupportEvaluator(ComponentFields, Loadable, RunnableSerializable[dict[str, Any], Output]):
    """Checks without an LLM if documents support every sentence of an answer.

    The input has `answer`, a string, and `documents`: documents, or strings. The output has `supported` (True if each
    sentence is), `score` (the lowest support of a sentence, from 0 to 1) and `sentences`: for each sentence its
    `sentence`, `support`, `supported`, `doubts` (numbers and names that do not fit) and `documents`, the one or two of
    the input that explain most of it. An answer without a sentence has an empty list, and is supported.

    Args:
        language: Language of the documents, as for `drillrank.check_support`.
        title_key: Metadata key of the title.

    Raises:
        InvalidInput: A setting cannot be used, or the input lacks the answer or the documents.

    >>> documents = [Document(page_content="The Rhine is 1,233 km long.")]
    >>> output = SupportEvaluator().invoke({"answer": "The Rhine is 1,320 km long.", "documents": documents})
    >>> output["supported"], output["sentences"][0]["doubts"]
    (False, ('1,320',))
    """

    model_config = ComponentFields.model_config  # otherwise that of the last base class would apply

    language: str = Field(default="english", description="Language of the documents.")
    title_key: str = Field(default="title", description="Metadata key of the title.")

    def _build_core(self) -> Callable[[str, list[Passage]], list[SentenceSupport]]:
        return partial(check_support, language=check_language(self.language))

    def invoke(self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any) -> Output:
        """Check the sentences of an answer."""
        return self._call_with_config(self._check, input, config, run_type="chain", **kwargs)

    def _check(self, inputs: dict[str, Any]) -> Output:
        if not isinstance(inputs, dict) or not {"answer", "documents"} <= inputs.keys():
            raise InvalidInput(
                'The input must be {"answer": ..., "documents": [...]}, '
                f"got {sorted(inputs) if isinstance(inputs, dict) else type(inputs).__name__!r:.200}."
            )
        if isinstance(inputs["documents"], str) or not isinstance(inputs["documents"], Iterable):
            raise InvalidInput(f"documents must be a list, got {inputs['documents']!r:.200}. Pass [documents].")
        documents = list(inputs["documents"])
        passages = [self._passage(document, index) for index, document in enumerate(documents)]
        judgments = self.core(inputs["answer"], passages)
        sentences = [
            {
                "sentence": item.sentence,
                "support": item.support,
                "supported": item.supported,
                "doubts": item.doubts,
                "documents": [documents[int(passage.id)] for passage in item.passages],
            }
            for item in judgments
        ]
        return {
            "supported": all(item.supported for item in judgments),
            "score": min((item.support for item in judgments), default=1.0),
            "sentences": sentences,
        }

    def _passage(self, document: Document | str, index: int) -> Passage:
        if isinstance(document, str):
            return Passage(document, id=str(index))
        if not isinstance(document, Document):
            raise InvalidInput(f"documents must be documents or strings, got {type(document).__name__}.")
        return passage_of(document, str(index), self.title_key)
