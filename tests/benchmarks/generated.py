"""Merging retrieved and generated passages: NQ dev with one generated sentence a question, and how its parts were set.

The second table is made of train questions: the sentence of a gold passage that holds the answer, the same sentence
with the answer of another question in its place, and that of another question. It chose the evidence that the unigram
model reads for p(generated | q), and the guard's limit.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from drillrank import BRMGR, UPR, LanguageModel, Passage, load_language_model
from drillrank.evaluation.metrics import exact_match
from drillrank.likelihood import Request
from drillrank.rerank.brmgr import GENERATED_PROMPT, generated_prompt, support
from drillrank.structure.sentences import sentences
from drillrank.vectors import BM25Index, top

from .data import multihop_pool, read

KS = (1, 3, 5, 10)
LIMITS = (0.5, 0.75, 0.9, 0.95)


def main(model: str = "unigram", questions: int | None = None) -> None:
    lm = load_language_model(model)
    natural_questions(lm, questions)
    made_up_passages(lm, questions)


def natural_questions(lm: LanguageModel, limit: int | None) -> None:
    asked = read("rerank/nq")[:limit]
    passages = {
        item["id"]: Passage(item["text"], id=item["id"], title=item["title"]) for item in read("rerank/nq_passages")
    }
    models = {lm.spec: lm}
    if lm.wants_fit:
        models = {"as it comes": lm, "fitted": lm.fitted(passage.titled_text for passage in passages.values())}
    bm25 = [[passages[id_] for id_ in item["bm25_top"]] for item in asked]
    written = [[Passage(text) for text in item["generated"]] for item in asked]
    methods = {
        "retrieved: BM25": bm25,
        "generated alone": written,
        "plain merge: generated first, BM25": [own + found for own, found in zip(written, bm25, strict=True)],
    }
    for state, scorer in models.items():
        for depth in (10, 50) if lm.wants_fit else (10,):
            variants = {
                "BRMGR": BRMGR(scorer),
                "BRMGR, retrieved first": BRMGR(scorer, settings={"first": "retrieved"}),
                "BRMGR, guard": BRMGR(scorer, guard=True),
            }
            rows: dict[str, list[list[Passage]]] = {}
            upr = UPR(scorer)
            for item, found, own in zip(asked, bm25, written, strict=True):
                question, found = item["question"], found[:depth]
                rankings = {
                    "retrieved: UPR": upr.rank(question, found),
                    "plain merge by UPR's score": upr.rank(question, [*found, *own]),
                    **{name: brmgr.rank(question, found, own) for name, brmgr in variants.items()},
                }
                for name, ranking in rankings.items():
                    rows.setdefault(name, []).append([entry.passage for entry in ranking])
            methods |= {f"{name}, {depth} retrieved, {state}": lists for name, lists in rows.items()}
    table = Table("method", *(f"k = {k}" for k in KS), title=f"NQ dev, retrieval exact match, {len(asked)} questions")
    for name, lists in methods.items():
        matches = [
            sum(
                exact_match([passage.text for passage in found], item["answers"], k)
                for found, item in zip(lists, asked, strict=True)
            )
            / len(asked)
            for k in KS
        ]
        table.add_row(name, *(f"{value:.3f}" for value in matches))
    Console().print(table)


@dataclass
class Case:
    """A train question, its first passages by BM25, and passages as an LLM might have written them."""

    question: str
    answer: str
    retrieved: list[Passage]
    true: str
    swapped: list[str]
    elsewhere: list[str]

    @property
    def held(self) -> bool:
        return any(self.true in passage.text for passage in self.retrieved)


def made_up_passages(lm: LanguageModel, limit: int | None) -> None:
    cases = list(train_cases())[:limit]
    supports: dict[str, list[float]] = {}
    wins: dict[tuple[str, str], list[float]] = {}
    for case in cases:
        scorer = lm.fitted(passage.titled_text for passage in case.retrieved)
        texts = [case.true, *case.swapped, *case.elsewhere]
        kinds = ["true", *["answer swapped"] * len(case.swapped), *["about something else"] * len(case.elsewhere)]
        evidence = {
            "the question": (lm, ()),
            "the question, smoothed by the retrieved passages": (scorer, ()),
            "the question and the retrieved passages": (scorer, case.retrieved),
        }
        if case.held:
            for name, (judge, passages) in evidence.items():
                prompt = generated_prompt(GENERATED_PROMPT, case.question, passages)
                true, *false = (found.mean for found in judge.log_likelihood([Request(prompt, text) for text in texts]))
                for kind, mean in zip(kinds[1:], false, strict=True):
                    wins.setdefault((name, kind), []).append((true > mean) + (true == mean) / 2)
        found = support(scorer, GENERATED_PROMPT, case.question, case.retrieved, texts)
        for kind, value in zip(kinds, found, strict=True):
            supports.setdefault(f"{kind}, {'' if case.held else 'not '}retrieved", []).append(value)
    table = Table("evidence for p(generated | q)", "false one", "pairs", "true one first", title="Train questions")
    for (name, kind), values in wins.items():
        table.add_row(name, kind, str(len(values)), f"{sum(values) / len(values):.3f}")
    Console().print(table)
    table = Table("passage", "number", *(f"kept at {limit}" for limit in LIMITS), title="Train questions: the guard")
    for name, values in sorted(supports.items(), reverse=True):
        kept = [sum(value >= limit for value in values) / len(values) for limit in LIMITS]
        table.add_row(name, str(len(values)), *(f"{share:.3f}" for share in kept))
    Console().print(table)


def train_cases() -> Iterator[Case]:
    """Questions whose answer, not yes or no, stands in a sentence of a gold passage; 10 passages of their pool."""
    draw = random.Random(7)
    cases = [
        *_cases("hotpotqa", [item for item in read("multihop/demos") if item["dataset"] == "hotpotqa"]),
        *_cases("musique", [item for item in read("multihop/demos") if item["dataset"] == "musique"]),
        *_cases("musique", read("multihop/musique_tune")),
    ]
    for case in cases:
        others = [other for other in cases if other is not case]
        alike = [
            other.answer
            for other in others
            if _kind(other.answer) == _kind(case.answer) and other.answer.lower() not in case.true.lower()
        ]
        case.swapped = [case.true.replace(case.answer, answer) for answer in draw.sample(alike, 3)]
        case.elsewhere = [other.true for other in draw.sample(others, 3)]
        yield case


def _cases(dataset: str, questions: Sequence[dict]) -> Iterator[Case]:
    pool = {passage.id: passage for passage in multihop_pool(dataset)}
    gold = [
        [pool[id_] for id_ in item["gold"]]
        if "gold" in item
        else [Passage(part["text"], title=part["title"]) for part in item["path"]]
        for item in questions
    ]
    known = {passage.text for passage in pool.values()}
    searched = [*pool.values(), *(passage for path in gold for passage in path if passage.text not in known)]
    index = BM25Index([passage.titled_text for passage in searched])
    for item, path in zip(questions, gold, strict=True):
        answer = re.compile(rf"(?<!\w){re.escape(item['answer'])}(?!\w)")
        told = [passage.text[start:end].strip() for passage in path for start, end in sentences(passage.text)]
        true = next(filter(answer.search, told), None)
        if true and item["answer"].lower() not in ("yes", "no"):
            retrieved = [searched[i] for i in top(index.scores(item["question"]), 10)]
            yield Case(item["question"], item["answer"], retrieved, true, [], [])


def _kind(answer: str) -> str:
    return "number" if re.search(r"\d", answer) else "name" if answer[:1].isupper() else "word"
