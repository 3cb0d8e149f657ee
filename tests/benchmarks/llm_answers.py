"""What two small models answer to D3's prompts about QASPER papers, and how many of these answers are read right.

The answers are kept in `tests/drillrank/data/llm_answers.jsonl` and read as they are. With `--model FOLDER`, a folder
of `smollm2` and `gemma3-270m`, they are written anew, greedily, in eight bits; labels of equal answers stay.

A label is what a person takes an answer to choose: numbers from 1, or null where it is no choice, as where the model
answers the question, writes sentences about paragraphs, or repeats the document with its numbers. That is right to
leave to likelihood. Lists that go beyond what was offered choose what was offered of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.table import Table

from drillrank import D3
from drillrank.drilldown.answers import chosen_ids, chosen_names

from .long_documents import papers
from .oracle import Oracle

ANSWERS = Path(__file__).resolve().parents[1] / "drillrank" / "data" / "llm_answers.jsonl"
MODELS = ("smollm2", "gemma3-270m")
QUESTIONS, TOKENS = 19, 64
_KINDS = {"names": ("names", "ids"), "json": ("section ids as JSON", "ids as JSON")}


def main(model: str | None = None) -> None:
    if model is not None:
        _write(Path(model))
    kept = [json.loads(line) for line in ANSWERS.read_text(encoding="utf-8").splitlines()]
    table = Table(
        "model", "answers", "read right", "left to likelihood", "read wrong", title="Answers of LLMs on QASPER"
    )
    for name in (*MODELS, "together"):
        pairs = [(reading(item), item["label"]) for item in kept if name in (item["model"], "together")]
        right = sum(found == label for found, label in pairs)
        left = sum(found is None for found, _ in pairs)
        wrong = sum(found is not None and found != label for found, label in pairs)
        table.add_row(name, str(len(pairs)), f"{right} ({right / len(pairs):.1%})", str(left), str(wrong))
    console = Console(width=150)
    console.print(table)
    for item in kept:
        if (read := reading(item)) != item["label"]:
            console.print(f"{read} in place of {item['label']}: {item['answer']!r}", markup=False)


def reading(item: dict[str, Any]) -> list[int] | None:
    """What an answer is taken to choose, as a label has it."""
    offered = item["offered"]
    choice = chosen_ids(item["answer"], offered) if isinstance(offered, int) else chosen_names(item["answer"], offered)
    return [position + 1 for position in choice.positions] if choice.usable else None


def _write(folder: Path) -> None:
    """Have both models, in eight bits, answer all prompts."""
    import ctranslate2
    from transformers import AutoTokenizer

    known = [json.loads(line) for line in ANSWERS.read_text(encoding="utf-8").splitlines()] if ANSWERS.exists() else []
    labels = {(item["answer"], json.dumps(item["offered"])): item["label"] for item in known}
    prompts, lines = list(_prompts()), []
    for name in MODELS:
        tokenizer = AutoTokenizer.from_pretrained(folder / name)
        with TemporaryDirectory() as converted:
            target = f"{converted}/{name}"
            ctranslate2.converters.TransformersConverter(str(folder / name)).convert(target, quantization="int8")
            generator = ctranslate2.Generator(target, compute_type="int8", intra_threads=1)
        for question, kind, prompt, offered in prompts:
            turn = _turn(tokenizer, prompt)
            tokens = tokenizer.tokenize(turn, add_special_tokens=not tokenizer.chat_template)
            [written] = generator.generate_batch(
                [tokens], max_length=TOKENS, sampling_topk=1, include_prompt_in_result=False
            )
            answer = tokenizer.decode(written.sequences_ids[0], skip_special_tokens=True)
            label = labels.get((answer, json.dumps(offered)))
            item = {"model": name, "kind": kind, "question": question, "offered": offered, "answer": answer}
            lines.append(json.dumps(item | {"label": label}, ensure_ascii=False) + "\n")
            print(len(lines), name, kind, repr(answer), flush=True)
    ANSWERS.write_text("".join(lines), encoding="utf-8")


def _turn(tokenizer: Any, prompt: str) -> str:
    """The user's turn, where the model was trained for conversations."""
    if not tokenizer.chat_template:
        return prompt
    turn = [{"role": "user", "content": prompt}]
    return str(tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True))


def _prompts() -> Iterator[tuple[str, str, str, int | list[str]]]:
    """Question, kind, prompt and what it offers, of the first question of each paper with something to choose from.

    The sections of the second prompt are those that hold evidence.
    """
    left = QUESTIONS
    for paper in papers("qasper", D3()):
        if left == 0:
            return
        question, asked = paper.questions[0], []
        for by in ("names", "json"):
            prompts: list[str] = []
            oracle = Oracle(paper.ready, question.gold)
            D3(_Recording(oracle, prompts), settings={"sections_by": by}).retrieve(question.text, paper.ready)
            asked += list(zip(_KINDS[by], prompts, strict=False))
        if len(asked) == 4:
            left -= 1
            for kind, prompt in asked:
                names = re.findall(r"^\* Section: (.*)$", prompt, re.MULTILINE)
                numbers = map(int, re.findall(r"^\[(\d+)\] ", prompt, re.MULTILINE))
                yield question.text, kind, prompt, names if kind == "names" else max(numbers)


@dataclass(frozen=True)
class _Recording:
    """An oracle, and what it was asked."""

    oracle: Oracle
    prompts: list[str]

    def complete(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return self.oracle.complete(prompt)

    def complete_json(self, prompt: str, schema: dict[str, object]) -> object:
        self.prompts.append(prompt)
        return self.oracle.complete_json(prompt, schema)
