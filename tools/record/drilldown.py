"""D3 and self-ask over QASPER papers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from .building import build, got, imported
from .data import papers
from .neural import loaded
from .taking import Recorder, ScriptedJSON, ScriptedLLM, embed

D3: dict[str, Any] = {
    "on_failure": "continue",
    "workers": 1,
    "paragraphs": None,
    "embed": None,
    "monot5": None,
    "sections": None,
    "max_documents": 8,
    "guard_tokens": 0,
    "summarizer": None,
    "summary_words": 36,
    "max_prompt_tokens": 4000,
    "tokens": None,
    "max_calls": 40,
    "sections_by": "names",
    "on_empty": "nothing",
    "section_prompt": None,
    "paragraph_prompt": None,
}
SELF_ASK: dict[str, Any] = {
    "on_failure": "continue",
    "workers": 1,
    "max_steps": 5,
    "max_prompt_tokens": 3000,
    "tokens": None,
}
BOOK = "\n\n".join(
    f"{'#' * (1 + (number % 10 > 0) + (number % 5 > 0))} Of number {number}\n\nThe number {number} was counted by "
    f"{name}, who weighed it: {number * 7 % 113} grams.\n\nNo other number weighs as much as number {number} does."
    for number, name in zip(
        range(300), ("Ada", "Blaise", "Carl", "Emmy", "Kurt", "Sofia", "Srinivasa") * 43, strict=False
    )
)
MANUAL = """Preface without a heading.

# Manual

Read me first.

## Battery

The battery lasts nine hours.

Charge it over night.

### Charger

| colour | meaning |
|--------|---------|
| red    | charging |
| green  | full |

## Screen

Clean the screen with a dry cloth.

- no water
- no soap

## Battery

A second section of that name tells how the battery is replaced.
"""


def d3(recorder: Recorder) -> None:
    """Without an LLM: budgets, several documents, meaning, a trained ranker."""
    variants: dict[str, dict[str, Any]] = {
        "default": {},
        "two sections": {"sections": 2},
        "small prompts": {"max_prompt_tokens": 400},
        "by words": {"max_prompt_tokens": 300, "tokens": lambda text: len(text.split())},
        "guard": {"guard_tokens": 200},
        "embed": {"embed": embed},
        "likelihood": {"paragraphs": "likelihood", "max_documents": 2},
    }
    read = recorder.some(papers(), 40)
    for name, settings in variants.items():
        finder = build(imported("drillrank:D3"), None, "unigram", **D3 | settings)
        for paper in read if name in ("default", "embed") else read[:12]:
            ready = finder.prepare([paper["markdown"]])
            for asked in paper["questions"][:4]:
                recorder.take(f"{name}/{asked['id']}", lambda: found(finder.retrieve(asked["question"], ready)))
                recorder.take(
                    f"{name}, ten/{asked['id']}", lambda: found(finder.retrieve(asked["question"], ready, 10))
                )
        many = [paper["markdown"] for paper in read[:12]]
        ready = finder.prepare(many)
        for paper in read[:12]:
            asked = paper["questions"][0]
            recorder.take(
                f"{name}, many papers/{asked['id']}", lambda: found(finder.retrieve(asked["question"], ready, 5))
            )
        recorder.take(f"{name}, awaited/manual", lambda: _awaited(finder, "How long does it last?", [MANUAL]))
        recorder.take(f"{name}, book/weight", lambda: found(finder.retrieve("What does number 217 weigh?", [BOOK], 5)))
        recorder.take(f"{name}, nothing/manual", lambda: found(finder.retrieve("Zzz qqq?", [MANUAL, "", "Flat."])))
    plain = build(imported("drillrank:D3"), None, "unigram", **D3)
    for paper in read[:12]:
        recorder.take(f"outline/{paper['id']}", lambda: outline(plain, paper["markdown"]))
    recorder.take("outline/manual", lambda: outline(plain, MANUAL))
    for kind in ("t5", "encoder"):
        model = loaded(kind)
        for strategy in ("likelihood", "monot5") if kind == "t5" else ("likelihood",):
            neural = build(imported("drillrank:D3"), None, model, **D3 | {"paragraphs": strategy})
            recorder.take(
                f"{kind}, {strategy}/manual",
                lambda: found(neural.retrieve("How long does the battery last?", [MANUAL])),
                neural=True,
            )


def outline(finder: Any, text: str) -> Any:
    """Sections of a document, as they are read and shown."""
    return [
        {"id": one.id, "title": one.title, "text": one.text}
        for section in [finder.prepare([text])]
        for one in section.readable
    ]


def oracle(paper: dict[str, Any], question: dict[str, Any], *, by: str) -> Callable[[str], str]:
    """Answers from gold evidence: names, numbers or JSON."""
    places = {tuple(place) for evidence in question["evidence"] for place in evidence}
    gold = {" ".join(paper["sections"][i]["paragraphs"][j].split()) for i, j in places}
    names = {" > ".join(paper["sections"][i]["path"]) for i, _ in places}

    def answer(prompt: str) -> str:
        offered = [(number, " ".join(text.split())) for number, text in re.findall(r"^\[(\d+)\] (.*)$", prompt, re.M)]
        if "yes or no" in prompt:
            return "yes" if any(text in " ".join(prompt.split()) for text in gold) else "no"
        sections = re.findall(r"^\* Section: (.*)$", prompt, re.M)
        if sections:
            return ", ".join(name for name in sections if name in names) or "None"
        chosen = [number for number, text in offered if text in names or any(text[:60] in one for one in gold)]
        return f'{{"ids": [{", ".join(chosen)}]}}' if by == "json" else ", ".join(chosen) or "None"

    return answer


ANSWERS: dict[str, Sequence[Any]] = {
    "numbers": ["1, 2", "[2] and [3]"],
    "sentence": ["The sections that help are Battery and Screen.", "Paragraphs 1 and 3 are relevant, 2 is not."],
    "none": ["None", "Battery", "None of these."],
    "prose": ["I am sorry, I cannot answer that."],
    "blank": ["", "  "],
    "thoughts": ["<think>Perhaps 3?</think>Battery", "<think>1</think>\nAnswer: 2"],
    "table": ["| id | verdict |\n|---|---|\n| 1 | yes |\n| 2 | no |"],
    "json": ['{"ids": [1, 2]}', '```json\n{"ids": [2]}\n```'],
    "bad json": ['{"ids": [1, "two", null', '{"ids": [1e999, true, "1"]}'],
    "ranges": ["1-3", "all but 2"],
    "german": ["Die relevanten Abschnitte sind 1 und 3.", "Antwort: 2"],
    "invented": ["Engine, Wheels", "99, 100"],
    "failure": [RuntimeError("down"), "1"],
    "failures": [RuntimeError("down")],
    "list": ["- Battery\n- Screen\n", "1. 2\n2. 3"],
    "verdicts": ["1: yes\n2: no\n3: yes", "1: 0\n2: 1"],
}


def d3_with_llm(recorder: Recorder) -> None:
    """With scripted LLMs: gold answers under several settings, and answers of many kinds."""
    variants: dict[str, dict[str, Any]] = {
        "default": {},
        "ids": {"sections_by": "ids"},
        "json": {"sections_by": "json"},
        "hierbase": {"paragraphs": "hierbase"},
        "small prompts": {"max_prompt_tokens": 900, "summary_words": 15},
        "few calls": {"max_calls": 2, "max_prompt_tokens": 700},
        "guard": {"guard_tokens": 300},
        "likelihood": {"paragraphs": "likelihood"},
        "written summaries": {"summarizer": "llm", "max_documents": 2},
        "made summaries": {"summarizer": lambda texts: [text[:80] for text in texts]},
        "on empty": {"on_empty": "likelihood"},
        "own prompts": {
            "section_prompt": "Which of\n{outline}\nanswer {question}? section names:",
            "paragraph_prompt": "Which of\n{paragraphs}\nanswer {question}?",
        },
    }
    component = imported("drillrank:D3")
    for name, settings in variants.items():
        for paper in recorder.some(papers(), 10):
            for asked in paper["questions"][:2]:
                by = settings.get("sections_by", "names")
                kind = ScriptedJSON if by == "json" else ScriptedLLM
                llm = kind(recorder, oracle(paper, asked, by=by))
                finder = build(component, llm, "unigram", **D3 | settings)
                call = f"gold, {name}/{asked['id']}"
                recorder.take(call, lambda: found(finder.retrieve(asked["question"], [paper["markdown"]])))
    questions = ("How many hours does the battery last?", "What must not touch the screen?")
    for name, answers in ANSWERS.items():
        for by in ("names", "ids", "json"):
            for more in ({}, {"on_empty": "likelihood"}, {"paragraphs": "hierbase"}, {"on_failure": "raise"}):
                for number, question in enumerate(questions):
                    llm = ScriptedLLM(recorder, answers)
                    finder = build(component, llm, "unigram", **D3 | {"sections_by": by} | more)
                    call = ", ".join(["answers", name, by, *map(str, more)])
                    recorder.take(f"{call}/{number}", lambda: found(finder.retrieve(question, [MANUAL], 3)))
        finder = build(component, ScriptedLLM(recorder, answers), "unigram", **D3)
        recorder.take(f"answers, {name}, awaited/0", lambda: _awaited(finder, questions[0], [MANUAL, BOOK]))
    model = loaded("t5")
    for strategy in ("base+monot5", "monot5+base"):
        finder = build(component, ScriptedLLM(recorder, ["Battery", "1, 2"]), model, **D3 | {"paragraphs": strategy})
        recorder.take(f"t5, {strategy}/0", lambda: found(finder.retrieve(questions[0], [MANUAL])), neural=True)


async def _awaited(finder: Any, question: str, documents: Sequence[str]) -> Any:
    return found(await finder.aretrieve(question, documents))


def found(ranking: Any) -> dict[str, Any]:
    """Evidence with its text and places, what it cost, and what happened on the way."""
    return {
        "entries": [
            {
                "id": item.passage.id,
                "score": item.score,
                "rank": item.rank,
                "details": item.details,
                "title": item.passage.title,
                "text": item.passage.text,
                "metadata": item.passage.metadata,
            }
            for item in ranking
        ],
        "usage": got(ranking, "usage").as_metadata() | {"failures": got(ranking, "usage").failures},
        "steps": [
            [got(step, name) for name in ("kind", "offered", "chosen", "problems")] for step in got(ranking, "steps")
        ],
        "problems": got(ranking, "problems"),
    }


SCRIPTS: dict[str, Sequence[Any]] = {
    "two steps": [
        "Yes.\nFollow up: How long does the battery last?",
        "Nine hours.",
        "Follow up: How is it replaced?",
        "By a second section.",
        "So the final answer is: nine hours.",
    ],
    "no step": ["No.\nSo the final answer is: **Basel**."],
    "again": ["Yes.\nFollow up: Who?", "Somebody.", "Follow up: who?", "So the final answer is: somebody."],
    "never ends": ["Follow up: What is number 1?", "One.", "Follow up: What is number 2?", "Two."] * 4,
    "says nothing": ["", "Hm.", "...", "It is the Rhine."],
    "fails": [RuntimeError("down"), "So the final answer is: 1"],
    "thinks": ["<think>Follow up: no</think>Yes.\nFollow up: What lasts?", "<think>x</think>Nine.", "Final answer: 9"],
}


def self_ask(recorder: Recorder) -> None:
    """Follow-up questions, answered from a drill-down and from a plain retriever."""
    component, passage = imported("drillrank:SelfAsk"), imported("drillrank:Passage")
    prompts = imported("drillrank.prompts:SELF_ASK_PROMPT"), imported("drillrank.prompts:ANSWER_PROMPT")
    pinned = SELF_ASK | {"prompt": prompts[0], "answer_prompt": prompts[1]}
    finder = build(imported("drillrank:D3"), None, "unigram", **D3)
    ready = finder.prepare([MANUAL])
    retrievers: dict[str, Callable[[str], Any]] = {
        "d3": lambda question: finder.retrieve(question, ready, 2),
        "strings": lambda question: [f"On {question}: the Rhine is long. " * 5, "Basel lies on it."],
        "passages": lambda _question: [passage("The Rhine is 1,230 km long.", title="Rhine", id="r")],
        "nothing": lambda _question: [],
    }
    for name, script in SCRIPTS.items():
        for source, retrieve in retrievers.items():
            for kind, more in (
                ("default", {}),
                ("short", {"max_steps": 2, "max_prompt_tokens": 420}),
                ("raise", {"on_failure": "raise"}),
            ):

                def asking() -> Any:
                    return build(component, ScriptedLLM(recorder, script), retrieve, **pinned | more)

                question = "How long does the battery of the manual last?"
                recorder.take(f"{name}, {source}/{kind}", lambda: _answer(asking().answer(question)))
                recorder.take(f"{name}, {source}, stream/{kind}", lambda: [
                    _answer(one) if hasattr(one, "usage") else one for one in asking().stream(question)
                ])  # fmt: skip

                async def awaited() -> Any:
                    return _answer(await asking().aanswer(question))

                recorder.take(f"{name}, {source}, awaited/{kind}", awaited)


def _answer(found: Any) -> dict[str, Any]:
    return {
        "answer": found.answer,
        "steps": [[step.question, step.answer, list(step.passages)] for step in found.steps],
        "usage": found.usage.as_metadata(),
        "problems": found.problems,
    }
