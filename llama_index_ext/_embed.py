"""A LlamaIndex embedding model as the core's function from texts to vectors."""

from __future__ import annotations

from llama_index.core.base.embeddings.base import BaseEmbedding


class FrameworkEmbedding:
    """Embeds texts, and questions in the way that the model wants them."""

    def __init__(self, model: BaseEmbedding) -> None:
        self._model = model

    def __call__(self, texts: list[str]) -> list[list[float]]:
        """Vectors of paragraphs."""
        return self._model.get_text_embedding_batch(texts)

    def questions(self, texts: list[str]) -> list[list[float]]:
        """Vectors of questions."""
        return [self._model.get_query_embedding(text) for text in texts]
