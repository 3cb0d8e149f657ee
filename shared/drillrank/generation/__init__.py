"""Passages that an LLM writes to answer a question, with handwritten prompts or prompts from clusters of examples."""

from drillrank.generation.passages import cluster_prompts, generated_passages

__all__ = ["cluster_prompts", "generated_passages"]
