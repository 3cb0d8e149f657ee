"""Clustering-based prompts: demonstrations that differ make an LLM write passages that differ.

"Generate rather than Retrieve" (Yu et al. 2023), section 3.2: example questions with a document each are embedded and
clustered by K-means; each cluster gives one prompt, with examples of that cluster as demonstrations.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from drillrank.errors import InvalidInput, check_positive, require
from drillrank.generation.passages import GENREAD_PROMPTS
from drillrank.prompts import check_question_templates, fill_question
from drillrank.text import terms
from drillrank.vectors import Embed, Tfidf, embedded

_BETWEEN = "\n\n\n\n"  # demonstrations, as in the paper's code


def cluster_prompts(
    examples: Sequence[tuple[str, str]],
    n: int = 10,
    demonstrations: int = 5,
    *,
    instruction: str = GENREAD_PROMPTS[0],
    embed: Embed | None = None,
    seed: int = 0,
) -> tuple[str, ...]:
    """One prompt for each cluster of examples, largest cluster first.

    Args:
        examples: Questions, each with a passage that answers it (retrieved, or written by an LLM and checked).
        n: Clusters wanted; no more than there are different examples.
        demonstrations: Examples in one prompt, drawn at random from the cluster; a small cluster gives all it has.
        instruction: Template with `{question}`, in front of every demonstration and of the question itself.
        embed: Turns texts into an array of shape (texts, dimensions); TF-IDF vectors by default.
        seed: Of the clustering and the draw; the same seed gives the same prompts.

    Returns:
        Templates with `{question}`, for `generated_passages`.

    Raises:
        InvalidInput: there is no example, one is not a pair of strings that are not blank, a number is below 1, the
            instruction has no place for the question, or the embeddings are not one vector a text.
        MissingExtra: scikit-learn is not installed.

    >>> examples = [("Who wrote Emma?", "Jane Austen did."), ("Where is Basel?", "It lies on the Rhine.")]
    >>> [prompt] = cluster_prompts(examples, n=1, instruction="Explain. {question} ")
    >>> print(*(line.strip() for line in prompt.splitlines() if line), sep=" / ")
    Explain. Who wrote Emma? Jane Austen did. / Explain. Where is Basel? It lies on the Rhine. / Explain. {question}
    """
    check_positive(n=n, demonstrations=demonstrations)
    pairs = list(dict.fromkeys(map(_checked, examples)))
    if not pairs:
        raise InvalidInput("Prompts from clusters need at least one example: a question with a passage.")
    cluster = require("sklearn.cluster", "clusters")
    vectors = _vectors([" ".join(pair) for pair in pairs], embed)
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # there may be fewer different vectors than examples
        labels = cluster.KMeans(min(n, len(pairs)), n_init=10, random_state=seed).fit_predict(vectors)
    members = sorted((np.flatnonzero(labels == label) for label in np.unique(labels)), key=len, reverse=True)
    random = np.random.default_rng(seed)
    prompts = []
    for inside in members:
        drawn = sorted(random.choice(inside, min(demonstrations, len(inside)), replace=False).tolist())
        shown = [fill_question(instruction, pairs[i][0]) + pairs[i][1] for i in drawn]
        prompts.append(_BETWEEN.join([*shown, instruction]))
    return check_question_templates(prompts)


def _checked(example: Any) -> tuple[str, str]:
    pair = isinstance(example, tuple | list) and len(example) == 2
    if not pair or not all(isinstance(text, str) and text.strip() for text in example):
        raise InvalidInput(f"An example is a question and a passage, neither of them blank; not {example!r:.200}.")
    return example[0], example[1]


def _vectors(texts: list[str], embed: Embed | None) -> Any:
    """Vectors as K-means takes them, dense or sparse."""
    if embed is not None:
        return embedded(embed, texts)
    weighted = Tfidf(map(terms, texts)).vectors
    if not weighted.width:
        return np.zeros((len(texts), 1))
    from scipy.sparse import csr_matrix  # which scikit-learn brings

    return csr_matrix((weighted.data, weighted.columns, weighted.bounds), shape=weighted.shape)
