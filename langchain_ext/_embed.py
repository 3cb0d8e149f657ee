"""A LangChain embedding model as the core's function from texts to vectors."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings


class FrameworkEmbedding:
    """Embeds texts, and questions in the way that the model wants them."""

    def __init__(self, model: Embeddings) -> None:
        self._model = model

    def __call__(self, texts: list[str]) -> list[list[float]]:
        """Vectors of paragraphs."""
        return self._model.embed_documents(texts)

    def questions(self, texts: list[str]) -> list[list[float]]:
        """Vectors of questions."""
        return [self._model.embed_query(text) for text in texts]
