"""Drilling down as a LangChain retriever."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field, PrivateAttr

from drillrank import D3, LanguageModel, Passage, Ranked
from drillrank.drilldown.drill import Drillable
from drillrank.drilldown.evidence import load_evidence_model
from drillrank.passages import stable_uuid
from langchain_ext._documents import document_names


class D3Retriever(BaseRetriever):
    r"""Retrieves evidence paragraphs from long documents by opening their most likely sections.

    Args:
        documents: LangChain documents (Markdown or plain text); parsed and indexed once.
        model: A `load_language_model` specification, or a ready language model.
        top_n: Paragraphs to return; None returns as many as make the expected F1 largest. `invoke(query, top_n=...)`
            overrides it.

    The other fields: `model_options`, `sections` (how many are opened), `score_key`.

    Each result is a paragraph, text as in the source, with the document's metadata together with `section_path`,
    `section_score`, `start_index`, `source_id` and the score: the mean log-likelihood of the question, at most 0.

    Raises:
        InvalidInput: the question is blank.

    >>> manual = Document(page_content="# Battery\n\nIt lasts nine hours.\n\n# Screen\n\nClean it with a cloth.")
    >>> found = D3Retriever(documents=[manual], top_n=1).invoke("How long does the battery last?")[0]
    >>> found.page_content, found.metadata["section_path"]
    ('It lasts nine hours.', 'Battery')
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", protected_namespaces=())

    documents: list[Document]
    model: str = Field(default="unigram", description="Specification of the language model.")
    model_options: dict[str, Any] = Field(default_factory=dict, description="Options of the language model.")
    top_n: int | None = Field(default=5, gt=0, description="Paragraphs to return; None lets likelihood say how many.")
    sections: int = Field(default=8, gt=0, description="How many sections are opened.")
    score_key: str = Field(default="relevance_score", description="Metadata key of the score.")

    _d3: D3 = PrivateAttr()
    _prepared: Drillable = PrivateAttr()
    _names: list[str] = PrivateAttr()

    def __init__(self, *, model: str | LanguageModel = "unigram", **fields: Any) -> None:
        language_model = load_evidence_model(model, **fields.pop("model_options", {}))
        fields |= {"model": language_model.spec, "model_options": language_model.options}
        super().__init__(**fields)
        self._names = document_names(self.documents)
        self._d3 = D3(lm=language_model, sections=self.sections)
        self._prepared = self._d3.prepare([document.page_content for document in self.documents])

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, top_n: int | None = None
    ) -> list[Document]:
        return [
            self._document(item)
            for item in self._d3.retrieve(query, self._prepared, self.top_n if top_n is None else top_n)
        ]

    def _document(self, item: Ranked[Passage]) -> Document:
        place = item.passage.metadata
        source = self.documents[place["document"]]
        source_id = self._names[place["document"]]
        return Document(
            id=stable_uuid(source_id, place["start"], place["end"]),
            page_content=item.passage.text,
            metadata={
                **source.metadata,
                "section_path": item.passage.title,
                "section_score": item.details["section_score"],
                "start_index": place["start"],
                "source_id": source_id,
                self.score_key: item.score,
            },
        )
