"""LlamaIndex nodes as the chunks of a record store, for stores of third parties."""

from llama_index_ext._records import read_nodes

__all__ = ["read_nodes"]
