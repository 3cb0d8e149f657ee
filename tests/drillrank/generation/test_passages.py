from __future__ import annotations

import asyncio
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank.errors import DrillrankWarning
from drillrank.generation import cluster_prompts, generated_passages
from drillrank.llm import Usage, arun, run, strip_reasoning
from drillrank.prompts import fill_question
from tests.drillrank.helpers import Says, quiet, refuses

QUESTION = "Who wrote {question} Emma?"


answers = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["Jane Austen.", " jane  AUSTEN.\n", "", "  ", "...", "long word " * 400, "字" * 10_000]),
    st.sampled_from([None, 7, ValueError("no"), TimeoutError()]),
)


@quiet
@given(st.lists(answers, min_size=1, max_size=6))
def test_whatever_the_llm_does_distinct_passages_with_words_come_back(script):
    prompts = [f"{i}: {{question}}" for i in range(len(script))]
    said = dict(zip((fill_question(prompt, QUESTION) for prompt in prompts), map(Says, script), strict=True))
    usage = Usage()
    requests = generated_passages(QUESTION, len(script), prompts, "fallback")
    found = run(requests, lambda prompt: said[prompt](prompt), usage=usage)
    texts = [passage.text for passage in found]
    folded = [" ".join(text.casefold().split()) for text in texts]
    assert len(set(folded)) == len(folded)
    assert all(any(character.isalnum() or character == "_" for character in text) for text in texts)
    spoken = [(strip_reasoning(answer) or "").strip() for answer in script if isinstance(answer, str)]
    assert all(any(answer.startswith(text) for answer in spoken) for text in texts)
    assert all(len(text.split()) <= 300 and len(text) <= 300 * 20 + 300 * 10 for text in texts)
    assert all(passage.metadata == {"origin": "generated"} for passage in found)
    assert len({passage.id for passage in found}) == len(found)
    assert usage.calls == len(script)
    assert usage.failures == sum(not isinstance(answer, str) for answer in script)
    requests = generated_passages(QUESTION, len(script), prompts, "fallback")
    assert asyncio.run(arun(requests, lambda prompt: said[prompt](prompt))) == found


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (ValueError("quota of q"), r"3 failed \(ValueError\)\. Retrieved"),
        ("", "3 had no word"),
        ("?!", "3 had no word"),
        ("many words " * 200, "3 had more than 300 words and were truncated"),
    ],
)
def test_trouble_is_one_warning(answer, said):
    with pytest.warns(DrillrankWarning, match=said) as caught:
        run(generated_passages("q", on_failure="fallback"), Says(answer))
    assert len(caught) == 1


def test_passages_of_other_calls_are_kept_if_a_call_fails():
    with pytest.warns(DrillrankWarning, match="1 failed"):
        found = run(generated_passages("q", on_failure="fallback"), Says("One.", ValueError("quota"), "Two."))
    assert [passage.text for passage in found] == ["One.", "Two."]


def test_each_prompt_is_asked_with_the_question_and_again_if_there_are_more_passages():
    llm = Says("an answer")
    run(generated_passages(QUESTION, 12), llm)
    asked, wording = llm.prompts, "a background document from Wikipedia to answer the given question.\n\n"
    assert asked[:2] == asked[10:] == [f"Provide {wording}{QUESTION}\n\n", f"Generate {wording}{QUESTION}\n\n"]
    assert len(set(asked)) == 10  # as many passages as BRMGR's paper asks for, of an LLM that answers each alike
    assert all(prompt.endswith(f".\n\n{QUESTION}\n\n") for prompt in asked)


BAD = [(" ",), ("q", 0), ("q", 3, []), ("q", 3, "one"), ("q", 3, ["no place"])]
test_bad_arguments = refuses(*((lambda bad=bad: run(generated_passages(*bad), str.upper), "") for bad in BAD))


NAMES = ["Ada", "Bob", "Cem", "Dan", "Eva", "Fay", "Gus", "Hal"]
PAIRS = [(f"Who sang that song of {name}?", f"A singer sang that song of {name}.") for name in NAMES] + [
    (f"Where flows the river of {name}?", f"It flows by the river of {name}.") for name in NAMES[:5]
]


@settings(max_examples=int(os.environ.get("DRILLRANK_FUZZ", "15")))
@given(st.lists(st.tuples(*[st.text(min_size=1).filter(str.strip)] * 2), min_size=1, max_size=6), st.integers(1, 8))
def test_any_examples_make_prompts_that_take_any_question(examples, n):
    prompts = cluster_prompts(examples, n=n, demonstrations=2)
    assert 1 <= len(prompts) <= min(n, len(set(examples)))
    for prompt in prompts:
        assert fill_question(prompt, "{question} {0} %s").count("{question} {0} %s") >= 1


test_bad_examples_are_a_clear_error = refuses(
    *((lambda bad=bad: cluster_prompts(bad), "") for bad in ([], [("q", " ")], [("q",)], ["qp"], [("q", None)])),
    (lambda: cluster_prompts(PAIRS, n=0), ""),
    (lambda: cluster_prompts(PAIRS, demonstrations=0), ""),
    (lambda: cluster_prompts(PAIRS, instruction="no place"), ""),
    (lambda: cluster_prompts(PAIRS, embed=lambda texts: np.zeros(len(texts))), ""),
    (lambda: cluster_prompts(PAIRS, embed=lambda texts: np.zeros((1, 3))), ""),
)
