"""Generate background passages for a question with an LLM: "Generate rather than Retrieve" (Yu et al. 2023).

Different prompts make an LLM write different passages. The prompts are written by hand, or made from examples (section
3.2): example questions with a document each are embedded and clustered by K-means, and each cluster gives one prompt
with some of its examples as demonstrations.
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
    check_on_failure,
    check_positive,
    raise_or_fall_back,
    require,
    warn,
)
from drillrank.likelihood.encoders import as_encoder
from drillrank.llm import LLMRequest, Reply, Requests, strip_reasoning, unusable_answer
from drillrank.passages import Passage, check_query, stable_uuid
from drillrank.prompts import check_question_templates, fill_question
from drillrank.text import WORD, first_words, terms
from drillrank.vectors import Embed, Tfidf, embedded

# The first two prompts are those of the paper's code. Different prompts give different passages even from an LLM that
# always answers alike, so eight more follow, which are ours. BRMGR uses ten.
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
MAX_WORDS = 300  # in a passage
SAMPLING_TEMPERATURE = 0.95  # of the paper's code, which samples several passages with one prompt
_SEPARATOR = "\n\n\n\n"  # between demonstrations, as in the paper's code
_STEP = "write a passage for a question"


def generated_passages(
    question: str,
    n: int = 3,
    prompts: Sequence[str] = GENREAD_PROMPTS,
    on_failure: OnFailure | None = None,
) -> Requests[list[Passage]]:
    """Ask an LLM for `n` passages at once, with one prompt each. Prompts are repeated if there are fewer than `n`.

    An LLM that samples, as one at `SAMPLING_TEMPERATURE`, gives different passages with one prompt:
    `prompts=GENREAD_PROMPTS[:1]`.

    Equal answers give one passage. Answers of more than 300 words are truncated. At most one `DrillrankWarning` reports
    failed calls, answers without a word and truncated answers.

    Args:
        question: The question.
        n: Number of passages to ask for.
        prompts: Templates with `{question}`: `GENREAD_PROMPTS`, or the result of `cluster_prompts`.
        on_failure: `"raise"` raises an error if a call fails or an answer has no word, and `"fallback"` continues
            without that passage. None raises for calls and continues for answers.

    Returns:
        A generator for `drillrank.llm.run` or `arun`. Its result is at most `n` passages in the order of the prompts,
        each with `metadata["origin"] == "generated"`.

    Raises:
        InvalidInput: At the first step, the question is blank, `n` is below 1, a prompt lacks `{question}`, or
            `on_failure` is unknown.
        LLMFailure: A call failed, or an answer is unusable, and `on_failure` says to raise.

    >>> from drillrank.llm import Usage, run
    >>> usage = Usage()
    >>> [passage] = run(generated_passages("Who wrote Emma?"), lambda prompt: "Jane Austen wrote Emma.", usage=usage)
    >>> passage.text, passage.metadata["origin"], usage.calls
    ('Jane Austen wrote Emma.', 'generated', 3)
    """
    check_query(question)
    check_positive(n=n)
    check_on_failure(on_failure)
    templates = check_question_templates(prompts)
    filled_prompts = [fill_question(templates[index % len(templates)], question) for index in range(n)]
    replies = yield [LLMRequest(prompt, step=_STEP, on_failure=on_failure) for prompt in filled_prompts]
    texts = _read_texts(replies, on_failure)
    text_by_words: dict[str, str] = {}
    for text in texts:
        text_by_words.setdefault(" ".join(text.casefold().split()), text)
    return [
        Passage(text, id=stable_uuid("generated", question, text), metadata={"origin": "generated"})
        for text in text_by_words.values()
    ]


def _read_texts(replies: Sequence[Reply], on_failure: OnFailure | None) -> list[str]:
    """Return the texts of usable replies, truncated, and warn about the other replies.

    Raises:
        UnusableAnswer: An answer has no word, and `on_failure` is `"raise"`.
    """
    failures = [reply.failure for reply in replies if reply.failure]
    answers = [text for reply in replies if WORD.search(text := (strip_reasoning(reply.text) or "").strip())]
    n_blank = len(replies) - len(answers) - len(failures)
    if n_blank:
        raise_or_fall_back(unusable_answer(_STEP, "it has no word"), on_failure)
    texts = [first_words(answer, MAX_WORDS) for answer in answers]
    count_by_problem = {
        f"failed ({', '.join(sorted({failure.kind for failure in failures}))})": len(failures),
        "had no word": n_blank,
        f"had more than {MAX_WORDS} words and were truncated": sum(map(ne, texts, answers)),
    }
    problems = ", ".join(f"{count} {problem}" for problem, count in count_by_problem.items() if count)
    if problems:
        warn(f"Of {len(replies)} passages that the LLM was asked for, {problems}. Retrieved passages are unaffected.")
    return texts


def cluster_prompts(
    examples: Sequence[tuple[str, str]],
    n: int = 10,
    demonstrations: int = 5,
    *,
    instruction: str = GENREAD_PROMPTS[0],
    embed: str | Embed | None = None,
    seed: int = 0,
) -> tuple[str, ...]:
    """Make one prompt from each cluster of examples, largest cluster first.

    Args:
        examples: Questions, each with a passage that answers it (retrieved, or written by an LLM and checked).
        n: Number of clusters. There are at most as many as different examples.
        demonstrations: Number of examples in a prompt, drawn at random from the cluster. A smaller cluster gives all of
            its examples.
        instruction: Template with `{question}`, in front of every demonstration and of the question itself.
        embed: An encoder's specification, or a function from texts to an array of shape (texts, dimensions). None takes
            TF-IDF vectors.
        seed: Seed of the clustering and the draw. The same seed gives the same prompts.

    Returns:
        Templates with `{question}`, for `generated_passages`.

    Raises:
        InvalidInput: `examples` is empty, an example is not a pair of strings that are not blank, a number is below 1,
            the instruction lacks `{question}`, or `embed` does not return one vector per text.
        MissingExtra: scikit-learn is not installed.

    >>> examples = [("Who wrote Emma?", "Jane Austen did."), ("Where is Basel?", "It lies on the Rhine.")]
    >>> [prompt] = cluster_prompts(examples, n=1, instruction="Explain. {question} ")
    >>> print(*(line.strip() for line in prompt.splitlines() if line), sep=" / ")
    Explain. Who wrote Emma? Jane Austen did. / Explain. Where is Basel? It lies on the Rhine. / Explain. {question}
    """
    check_positive(n=n, demonstrations=demonstrations)
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 1 << 32:
        raise InvalidInput(f"seed must be a whole number from 0 to 2**32 - 1, got {seed!r:.200}.")
    for pair in examples:
        is_pair = isinstance(pair, tuple | list) and len(pair) == 2
        if not is_pair or not all(isinstance(text, str) and text.strip() for text in pair):
            raise InvalidInput(
                f"examples must be pairs of a question and a passage that are not blank, got {pair!r:.200}. Remove it."
            )
    pairs = list(dict.fromkeys(map(tuple, examples)))
    if not pairs:
        raise InvalidInput("examples is empty. Pass at least one pair of a question and a passage.")
    sklearn_cluster, sparse = require("sklearn.cluster", "clusters"), require("scipy.sparse", "clusters")
    texts = [" ".join(pair) for pair in pairs]
    encoder = as_encoder(embed)
    vectors: Any = np.zeros((len(pairs), 1)) if encoder is None else embedded(encoder, texts)
    if encoder is None and (weighted := Tfidf(map(terms, texts)).vectors).width:
        vectors = sparse.csr_matrix((weighted.data, weighted.columns, weighted.bounds), shape=weighted.shape)
    with warnings.catch_warnings():  # clusters may be fewer than n if examples have equal vectors
        warnings.simplefilter("ignore", require("sklearn.exceptions", "clusters").ConvergenceWarning)
        labels = sklearn_cluster.KMeans(min(n, len(pairs)), n_init=10, random_state=seed).fit_predict(vectors)
    random, templates = np.random.default_rng(seed), []
    clusters = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    for indices in sorted(clusters, key=len, reverse=True):
        drawn_indices = sorted(random.choice(indices, min(demonstrations, len(indices)), replace=False).tolist())
        texts = [fill_question(instruction, pairs[index][0]) + pairs[index][1] for index in drawn_indices]
        templates.append(_SEPARATOR.join([*texts, instruction]))
    return check_question_templates(templates)
