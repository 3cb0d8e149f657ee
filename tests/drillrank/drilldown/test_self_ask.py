from __future__ import annotations

import asyncio
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drillrank import Passage, SelfAsk
from drillrank.drilldown.self_ask import parse_next_move
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.text import count_tokens
from drillrank.vectors import BM25Index, top
from tests.drillrank.helpers import Says, paragraph_d3, quiet, refuses
from tests.examples import examples

FACTS = [
    Passage("The Rhine is 1,230 km long.", title="Rhine"),
    Passage("The Thames is 346 km long.", title="Thames"),
    Passage("Basel lies on the Rhine.", title="Basel"),
]
INDEX = BM25Index([fact.titled_text for fact in FACTS])
QUESTION = "How long is the river on which Basel lies?"


def retrieve(question):
    return [FACTS[at] for at in top(INDEX.scores(question), 2)]


class Reasoner:
    """Solves the one question in two steps."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def complete(self, prompt: str) -> str:
        self.prompts.append(prompt)
        if prompt.startswith("You are a helpful question answering"):
            return "The Rhine" if "Which river" in prompt else "1,230 km"
        asked = prompt.rpartition(QUESTION)[2]
        if "1,230" in asked:
            return "So the final answer is: 1,230 km\n\nQuestion: something else?"
        if "The Rhine" in asked:
            return "\nFollow up: How long is the Rhine?\nIntermediate answer: 5 km\nSo the final answer is: 5 km"
        return " Yes.\nFollow up: Which river does Basel lie on?"


def test_a_question_of_two_hops_step_by_step():
    llm = Reasoner()
    *told, found = SelfAsk(llm, retrieve).stream(QUESTION)
    assert found.answer == "1,230 km"
    assert [(step.question, step.answer) for step in found.steps] == [
        ("Which river does Basel lie on?", "The Rhine"),
        ("How long is the Rhine?", "1,230 km"),
    ]
    assert found.steps[1].passages == tuple(retrieve("How long is the Rhine?"))
    assert tuple(told) == found.steps
    assert found.problems == ()
    assert found.usage.calls == len(llm.prompts) == 5
    assert found.usage.prompt_tokens == sum(map(count_tokens, llm.prompts))
    assert llm.prompts[-1].endswith(
        f"Question: {QUESTION}\nAre follow up questions needed here: Yes.\nFollow up: Which river does Basel lie on?\n"
        "Intermediate answer: The Rhine\nFollow up: How long is the Rhine?\nIntermediate answer: 1,230 km"
    )


class Library:
    """A retriever of both kinds."""

    def retrieve(self, question):
        return retrieve(question)

    async def aretrieve(self, question):
        await asyncio.sleep(0)
        return retrieve(question)


async def aretrieve(question):
    return await Library().aretrieve(question)


@pytest.mark.parametrize("source", [retrieve, aretrieve, Library()], ids=["function", "async function", "object"])
async def test_async_gives_the_same_and_counts_the_same(source):
    expected = list(SelfAsk(Reasoner(), retrieve).stream(QUESTION))
    asked = SelfAsk(Reasoner(), source)
    assert [item async for item in asked.astream(QUESTION)] == expected
    assert await SelfAsk(Reasoner(), source).aanswer(QUESTION) == expected[-1]


test_what_is_no_passage_no_question_and_no_source_is_named = refuses(
    (lambda: SelfAsk(Reasoner(), aretrieve).answer(QUESTION), "asynchronous"),
    *((lambda no=no: SelfAsk(Reasoner(), lambda _: no).answer(QUESTION), "passages") for no in ([5], "one", None)),
    (lambda: SelfAsk(Reasoner(), retrieve).answer(" "), ""),
    (lambda: SelfAsk(Reasoner(), 5).answer(QUESTION), ""),
)


@pytest.mark.parametrize(("limit", "calls"), [(1, 3), (3, 7)])
def test_the_limit_of_steps_or_the_same_follow_up_again_ends_in_a_final_answer(limit, calls):
    numbers = iter(range(100))

    def llm(prompt):
        return " seven" if prompt.endswith("So the final answer is:") else f"Follow up: And number {next(numbers)}?"

    found = SelfAsk(llm, retrieve, max_steps=limit).answer(QUESTION)
    assert (found.answer, len(found.steps), found.usage.calls) == ("seven", limit, calls)
    with pytest.warns(DrillrankWarning, match="repeat a follow-up question"):
        found = SelfAsk(lambda prompt: "Ulm" if prompt.endswith("is:") else "Follow up: Which?", retrieve).answer(
            "Who?"
        )
    assert (found.answer, len(found.steps)) == ("Ulm", 1)
    assert "again" in found.problems[0]


said = st.text(max_size=50) | st.sampled_from([
    "Follow up: a?", "Follow up:", "final answer:", "So the final answer is: b", "{question}", "Yes", "No",
    "**Follow-up 2:** c?",
])  # fmt: skip
answers = said | st.lists(said, max_size=4).map("\n".join) | st.sampled_from([ValueError("x"), TimeoutError("t"), None])


@settings(max_examples=examples(150))
@given(st.lists(answers, min_size=1, max_size=5), st.integers(1, 4))
def test_an_adversarial_llm(script, max_steps):
    calls = []

    def llm(prompt):
        calls.append(prompt)
        answer = script[(len(calls) - 1) % len(script)]
        if isinstance(answer, Exception):
            raise answer
        return answer

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = SelfAsk(llm, retrieve, max_steps=max_steps, on_failure="fallback").answer(QUESTION)
    assert isinstance(found.answer, str)
    assert len(found.steps) <= max_steps
    assert len(calls) == found.usage.calls <= 2 * max_steps + 3
    assert len({step.question.casefold() for step in found.steps}) == len(found.steps)
    assert bool(found.problems) == bool(caught)
    assert found.problems or found.answer


def test_passages_are_shown_whole_as_many_as_fit():
    long = [Passage(f"Fact {n} is long. " * 20) for n in range(9)]
    llm = Says("Follow up: c?", "a", "So the final answer is: b")
    SelfAsk(llm, lambda question: long, max_prompt_tokens=500).answer(QUESTION)
    shown = [fact.text for fact in long if fact.text in llm.prompts[1]]
    assert shown == [fact.text for fact in long[: len(shown)]]
    assert 1 < len(shown) < 9
    assert 500 - count_tokens(long[0].text) - 2 <= count_tokens(llm.prompts[1]) <= 500


@quiet
@settings(max_examples=examples(30))
@given(
    st.lists(st.text(max_size=300) | st.builds(lambda n: "word 尺寸 🦊. " * n, st.integers(1, 400)), max_size=4),
    st.integers(200, 900),
    st.sampled_from(["Follow up: why {}?", "{}", "Follow up: " + "so long " * 900 + "{}?"]),
    st.sampled_from([QUESTION, "y" * 900]),
)
def test_no_prompt_is_above_its_budget(passages, budget, says, question):
    llm = Says(lambda _: says.format(len(llm.prompts)) if len(llm.prompts) % 2 else "an answer " * 400)
    try:
        SelfAsk(llm, lambda question: passages, max_prompt_tokens=budget).answer(question)
        refused = ""
    except InvalidInput as error:
        refused = str(error)
    assert all(count_tokens(prompt) <= budget for prompt in llm.prompts)
    assert not refused or ("max_prompt_tokens" in refused and not llm.prompts and budget < 450)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Follow up: Who?", ("Who?", "")),
        ("**Follow-up question:** Who?", ("Who?", "")),
        ("FOLLOW UP 2: Who?", ("Who?", "")),
        ("Are follow up questions needed here: No", ("", "")),
        ("The final answer is Basel", ("", "Basel")),
        ("Final answer: Basel\nFollow up: Who?", ("", "Basel")),
        ("", ("", "")),
    ],
)
def test_the_parse_next_move(text, expected):
    assert parse_next_move(text) == expected


def test_drilling_down_for_each_follow_up_counts_as_one():
    book = "# Rivers\n\n## Rhine\n\nThe Rhine is 1,230 km long.\n\n# Towns\n\n## Basel\n\nBasel lies on the Rhine."

    class Both(Reasoner):
        def complete(self, prompt: str) -> str:
            answer = super().complete(prompt)
            chosen = {"section names": "Rivers > Rhine, Towns > Basel", "paragraph ids": "1, 2"}
            return next((choice for words, choice in chosen.items() if words in prompt), answer)

    llm = Both()
    d3 = paragraph_d3(llm)
    both = SelfAsk(llm, lambda question: d3.retrieve(question, [book]))
    found = both.answer(QUESTION)
    assert found.answer == "1,230 km"
    assert found.usage.calls == len(llm.prompts) == 9
    for retrieve in (both.retrieve, lambda question: d3.aretrieve(question, [book])):
        llm.prompts.clear()
        assert asyncio.run(SelfAsk(llm, retrieve).aanswer(QUESTION)) == found
        assert len(llm.prompts) == 9
