"""Background passages for a question, written by an LLM: "Generate rather than Retrieve" (Yu et al. 2023)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from drillrank.errors import DrillrankWarning, LLMFailure, OnFailure, check_on_failure, check_positive
from drillrank.llm import Ask, Requests, strip_reasoning
from drillrank.passages import Passage, check_query, stable_uuid
from drillrank.prompts import check_question_templates, fill_question
from drillrank.text import WORD, first_words

# Human prompts: the first two are those of the paper's code. Different wordings bring different passages, so four more
# of the same kind, ours, follow.
GENREAD_PROMPTS = (
    "Provide a background document from Wikipedia to answer the given question.\n\n{question}\n\n",
    "Generate a background document from Wikipedia to answer the given question.\n\n{question}\n\n",
    "Write an encyclopedia paragraph that contains the answer to the given question.\n\n{question}\n\n",
    "Quote from memory a reference text that settles the given question.\n\n{question}\n\n",
    "Give the facts and the context that someone needs to answer the given question.\n\n{question}\n\n",
    "Describe the people, places, dates and events that the given question is about.\n\n{question}\n\n",
)
MAX_WORDS = 300  # of a passage

# "Generate rather than Retrieve" (Yu et al. 2023), human prompts: the first two are those of the paper's code.
# Different wordings bring different passages, so four more of the same kind, ours, follow.
GENREAD_PROMPTS = (
    "Provide a background document from Wikipedia to answer the given question.\n\n{question}\n\n",
    "Generate a background document from Wikipedia to answer the given question.\n\n{question}\n\n",
    "Write an encyclopedia paragraph that contains the answer to the given question.\n\n{question}\n\n",
    "Quote from memory a reference text that settles the given question.\n\n{question}\n\n",
    "Give the facts and the context that someone needs to answer the given question.\n\n{question}\n\n",
    "Describe the people, places, dates and events that the given question is about.\n\n{question}\n\n",
)


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
    check_on_failure(on_failure)
    templates = check_question_templates(prompts)
    replies = yield [Ask(fill_question(templates[i % len(templates)], question)) for i in range(n)]
    failures = [reply.failure for reply in replies if reply.failure]
    if failures and on_failure == "raise":
        raise failures[0]
    spoken = [(strip_reasoning(reply.text) or "").strip() for reply in replies]
    answers = [text for text in spoken if WORD.search(text)]
    texts: dict[str, str] = {}
    for answer in answers:
        text = first_words(answer, MAX_WORDS)
        texts.setdefault(" ".join(text.casefold().split()), text)
    _warn(
        len(replies),
        failures,
        silent=len(replies) - len(answers),
        cut=sum(first_words(answer, MAX_WORDS) != answer for answer in answers),
    )
    return [
        Passage(text, id=stable_uuid("generated", question, text), metadata={"origin": "generated"})
        for text in texts.values()
    ]


def _warn(asked: int, failures: Sequence[LLMFailure], *, silent: int, cut: int) -> None:
    said = [
        f"{len(failures)} failed (the first: {failures[0]})" if failures else "",
        f"{silent - len(failures)} came back without a word" if silent > len(failures) else "",
        f"{cut} had more than {MAX_WORDS} words and lost their end" if cut else "",
    ]
    if any(said):
        warnings.warn(
            f"Of {asked} passages asked of the LLM, {', '.join(filter(None, said))}. What was retrieved is unaffected.",
            DrillrankWarning,
            stacklevel=2,
        )
