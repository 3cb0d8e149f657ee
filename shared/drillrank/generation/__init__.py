"""Passages that an LLM writes to answer a question: human prompts, and prompts made from clusters of examples."""

from drillrank.generation.clusters import cluster_prompts
from drillrank.generation.passages import generated_passages

__all__ = ["cluster_prompts", "generated_passages"]
