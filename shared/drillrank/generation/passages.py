"""Background passages for a question, written by an LLM: "Generate rather than Retrieve" (Yu et al. 2023).

Prompts that differ make an LLM write passages that differ: there are human ones, and (section 3.2) ones made from
examples. Example questions with a document each are embedded and clustered by K-means; each cluster gives one prompt,
with examples of that cluster as demonstrations.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from operator import ne
from typing import Any

import numpy as np

from drillrank.errors import (
    InvalidInput,
    OnFailure,
    check_positive,
    require,
    warn,
)
from drillrank.likelihood.encoders import as_encoder
from drillrank.llm import LLMRequest, Requests, strip_reasoning
from drillrank.passages import Passage, check_query, stable_uuid
from drillrank.prompts import check_question_templates, fill_question
from drillrank.settings import check_one_of
from drillrank.text import WORD, first_words, terms
from drillrank.vectors import Embed, Tfidf, embedded

# Human prompts: the first two are those of the paper's code. Different wordings bring different passages, of an LLM
# that always answers alike, so eight more of the same kind, ours, follow: ten as in BRMGR.
GENREAD_PROMPTS = (
    "Provide a background document from Wikipedia to answer the given question.\n\n{question}\n\n",
    "Generate a background document from Wikipedia to answer the given question.\n\n{question}\n\n",
    "Write an encyclopedia paragraph that contains the answer to the given question.\n\n{question}\n\n",
    "Quote from memory a reference text that settles the given question.\n\n{question}\n\n",
    "Give the facts and the context that someone needs to answer the given question.\n\n{question}\n\n",
    "Describe the people, places, dates and events that the given question is about.\n\n{question}\n\n",
    "Write what a textbook says about the subject of the given question.\n\n{question}\n\n",
    "Report as a newspaper would what answers the given question.\n\n{question}\n\n",
    "Explain in a few sentences, with names and numbers, what answers the given question.\n\n{question}\n\n",
    "Answer the given question as an expert would, and say how it is known.\n\n{question}\n\n",
)
MAX_WORDS = 300  # of a passage
_BETWEEN = "\n\n\n\n"  # demonstrations, as in the paper's code


def generated_passages(
    question: str,
    n: int = 3,
    prompts: Sequence[str] = GENREAD_PROMPTS,
    on_failure: OnFailure = "continue",
) -> Requests[list[Passage]]:
    """Ask for `n` passages at once, one prompt each; prompts are used again once all have been.

    Equal answers count once, blank ones not at all, and an answer of more than 300 words loses its end. Failed
    calls, blank answers and cut ones lead to one `DrillrankWarning`.

    Args:
        question: The question.
        n: How many passages to ask for.
        prompts: Templates with `{question}`: `GENREAD_PROMPTS`, or what `cluster_prompts` makes.
        on_failure: For a failed call: `"continue"` without its passage, or `"raise"`.

    Returns:
        A generator for `drillrank.llm.run` or `arun`; its result is at most `n` passages in the order of the
        prompts, each with `metadata["origin"] == "generated"`.

    Raises:
        InvalidInput: when run: the question is blank, `n` is below 1, a prompt has no place for the question, or
            `on_failure` is something else.
        LLMFailure: when run: a call failed, and `on_failure` is `"raise"`.

    >>> from drillrank.llm import Usage, run
    >>> usage = Usage()
    >>> [passage] = run(generated_passages("Who wrote Emma?"), lambda prompt: "Jane Austen wrote Emma.", usage=usage)
    >>> passage.text, passage.metadata["origin"], usage.calls
    ('Jane Austen wrote Emma.', 'generated', 3)
    """
    check_query(question)
    check_positive(n=n)
    check_one_of(OnFailure, on_failure=on_failure)
    templates = check_question_templates(prompts)
    replies = yield [LLMRequest(fill_question(templates[i % len(templates)], question)) for i in range(n)]
    failures = [reply.failure for reply in replies if reply.failure]
    if failures and on_failure == "raise":
        raise failures[0]
    answers = [text for reply in replies if WORD.search(text := (strip_reasoning(reply.text) or "").strip())]
    texts = [first_words(answer, MAX_WORDS) for answer in answers]
    problems = {
        f"failed (the first: {failures[0] if failures else None})": len(failures),
        "came back without a word": len(replies) - len(answers) - len(failures),
        f"had more than {MAX_WORDS} words and lost their end": sum(map(ne, texts, answers)),
    }
    if listed := ", ".join(f"{count} {what}" for what, count in problems.items() if count > 0):
        message = f"Of {n} passages asked of the LLM, {listed}. What was retrieved is unaffected."
        warn(message)
    different: dict[str, str] = {}
    for text in texts:
        different.setdefault(" ".join(text.casefold().split()), text)
    ids = {text: stable_uuid("generated", question, text) for text in different.values()}
    return [Passage(text, id=id_, metadata={"origin": "generated"}) for text, id_ in ids.items()]


def cluster_prompts(
    examples: Sequence[tuple[str, str]],
    n: int = 10,
    demonstrations: int = 5,
    *,
    instruction: str = GENREAD_PROMPTS[0],
    embed: str | Embed | None = None,
    seed: int = 0,
) -> tuple[str, ...]:
    """One prompt for each cluster of examples, largest cluster first.

    Args:
        examples: Questions, each with a passage that answers it (retrieved, or written by an LLM and checked).
        n: Clusters wanted; no more than there are different examples.
        demonstrations: Examples in one prompt, drawn at random from the cluster; a small cluster gives all it has.
        instruction: Template with `{question}`, in front of every demonstration and of the question itself.
        embed: An encoder's specification, or a function from texts to an array of shape (texts, dimensions). None takes
            TF-IDF vectors.
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
    for pair in examples:
        is_pair = isinstance(pair, tuple | list) and len(pair) == 2
        if not is_pair or not all(isinstance(text, str) and text.strip() for text in pair):
            raise InvalidInput(f"An example is a question and a passage, neither of them blank; not {pair!r:.200}.")
    pairs = list(dict.fromkeys(map(tuple, examples)))
    if not pairs:
        raise InvalidInput("Prompts from clusters need at least one example: a question with a passage.")
    cluster, sparse = require("sklearn.cluster", "clusters"), require("scipy.sparse", "clusters")
    texts = [" ".join(pair) for pair in pairs]
    encoder = as_encoder(embed)
    vectors: Any = np.zeros((len(pairs), 1)) if encoder is None else embedded(encoder, texts)
    if encoder is None and (weighted := Tfidf(map(terms, texts)).vectors).width:
        vectors = sparse.csr_matrix((weighted.data, weighted.columns, weighted.bounds), shape=weighted.shape)
    with warnings.catch_warnings():  # there may be fewer different vectors than examples
        warnings.simplefilter("ignore", require("sklearn.exceptions", "clusters").ConvergenceWarning)
        labels = cluster.KMeans(min(n, len(pairs)), n_init=10, random_state=seed).fit_predict(vectors)
    random, prompts = np.random.default_rng(seed), []
    for inside in sorted((np.flatnonzero(labels == label) for label in np.unique(labels)), key=len, reverse=True):
        drawn = sorted(random.choice(inside, min(demonstrations, len(inside)), replace=False).tolist())
        shown = (fill_question(instruction, pairs[i][0]) + pairs[i][1] for i in drawn)
        prompts.append(_BETWEEN.join([*shown, instruction]))
    return check_question_templates(prompts)
