"""What the core offers to hosts: prompts as functions, an LLM for one question, embeddings of questions."""

from __future__ import annotations

import pytest

from drillrank import D3

BOOK = "# Rhine\n\nIt is 1,230 km long.\n\n# Thames\n\nIt is 346 km long."
QUESTION = "How long is the Rhine?"


class Marked(str):
    """A prompt that is more than a string."""


class Recorder:
    def __init__(self) -> None:
        self.prompts: list[str] = []

    def complete(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return "1, 2"


def texts(found) -> list[str]:
    return [item.passage.text for item in found]


@pytest.mark.parametrize("sections_by", ["ids", "json"])
def test_what_a_template_returns_is_what_the_llm_is_asked(sections_by):
    llm = Recorder()
    d3 = D3(
        llm,
        settings={
            "sections_by": sections_by,
            "section_prompt": lambda outline, question, **_: Marked(f"{question}\n{outline}"),
            "paragraph_prompt": lambda paragraphs, question, **_: Marked(f"{paragraphs}\n{question}"),
        },
    )
    d3.retrieve(QUESTION, [BOOK])
    given = llm.prompts
    assert len(given) == 2
    assert {type(prompt) for prompt in given} == {Marked}
    assert given[0].startswith(f"{QUESTION}\n")


def test_a_question_may_bring_its_own_llm():
    usual, own = Recorder(), Recorder()
    d3 = D3(usual, settings={"sections_by": "ids"})
    assert texts(d3.retrieve(QUESTION, [BOOK], llm=own))[0] == "It is 1,230 km long."
    assert len(own.prompts) == 2
    assert not usual.prompts
