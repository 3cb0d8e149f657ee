"""LangChain documents as the chunks of a record store, for stores of third parties."""

from langchain_ext._records import read_documents

__all__ = ["read_documents"]
