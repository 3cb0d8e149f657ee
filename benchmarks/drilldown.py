"""Drilling down QASPER papers: with an oracle LLM against the paper's baselines, and without an LLM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean

from rich.console import Console
from rich.table import Table

from drillrank import D3, MonoT5
from drillrank.drilldown.prepared import PreparedDocuments
from drillrank.evaluation.metrics import evidence_f1, recall
from drillrank.llm import Usage

from .long_documents import Paper, bm25, dense, papers
from .minilm import INSTALLED, minilm
from .oracle import Oracle

BASELINES = {
    "PARAGRAPH": "paragraph",
    "CHUNK": "chunk",
    "MAP-REDUCE": "map-reduce",
    "MAP-REDUCE OPTIMIZED": "map-reduce-optimised",
}
CHUNK_TOKENS = 3500
Method = Callable[[str, PreparedDocuments, Oracle, Usage], set[str]]
Found = list[tuple[float, Usage]]  # evidence F1 and cost, question by question


def main(model: str | None = None, questions: int | None = None) -> None:
    console = Console(width=120)
    ranker = None if model is None else MonoT5(model)
    console.print(_with_oracle(questions, ranker))
    console.print(_without_llm(questions, ranker))


# With an LLM


def _d3(**settings: object) -> Method:
    oracle_of_question: list[Oracle] = []

    class CurrentOracle:
        def complete(self, prompt: str) -> str:
            return oracle_of_question[0].complete(prompt)

        def complete_json(self, prompt: str, schema: dict[str, object]) -> object:
            return oracle_of_question[0].complete_json(prompt, schema)

    d3 = D3(CurrentOracle(), settings={"unit": "paragraph", **settings})  # one object remembers the summaries

    def method(question: str, ready: PreparedDocuments, oracle: Oracle, usage: Usage) -> set[str]:
        oracle_of_question[:] = [oracle]
        found = d3.retrieve(question, ready)
        for name in ("prompt_tokens", "completion_tokens", "calls", "failures"):
            setattr(usage, name, getattr(found.usage, name))
        return {item.passage.id for item in found}

    return method


def _with_oracle(questions: int | None, ranker: MonoT5 | None) -> Table:
    methods = {
        name: _d3(paragraphs=strategy, max_prompt_tokens=CHUNK_TOKENS, max_calls=10**6)
        for name, strategy in BASELINES.items()
    }
    methods |= {
        "D3-BASE": _d3(),
        "D3-BASE, answers as JSON": _d3(sections_by="json"),
        "D3-BASE, guard of 300 tokens": _d3(guard_tokens=300),
        "D3-HIERBASE": _d3(paragraphs="hierbase"),
    }
    if ranker is not None:
        strategies = ("monot5", "base+monot5", "monot5+base")
        methods |= {f"D3-{strategy.upper()}": _d3(paragraphs=strategy, monot5=ranker) for strategy in strategies}
    read = papers("qasper", D3(settings={"unit": "paragraph"}), questions)
    found: dict[str, Found] = {name: [] for name in methods}
    for paper in read:
        for question in paper.questions:
            oracle = Oracle(paper.ready, question.gold)
            for name, method in methods.items():
                usage = Usage()
                ids = method(question.text, paper.ready, oracle, usage)
                # The oracle knows the evidence of all annotators together. QASPER compares texts, not places.
                found[name].append((evidence_f1(_texts(paper, ids), [_texts(paper, question.gold)]), usage))
    return _costs(found, len(read))


def _costs(found: dict[str, Found], count: int) -> Table:
    table = Table(
        "method", "F1", "prompt tokens", "of M-R", "of M-R OPT.", "calls", title=f"Oracle LLM, {count} papers (dev)"
    )
    references = [_tokens(found[name]) for name in ("MAP-REDUCE", "MAP-REDUCE OPTIMIZED")]
    for name, all_ in found.items():
        table.add_row(
            name,
            f"{mean(f1 for f1, _ in all_):.3f}",
            f"{_tokens(all_):,.0f}",
            *(f"{_tokens(all_) / reference:.1%}" for reference in references),
            f"{_calls(all_):.2f}",
        )
    return table


def _tokens(found: Found) -> float:
    return mean(usage.prompt_tokens for _, usage in found)


def _calls(found: Found) -> float:
    return mean(usage.calls for _, usage in found)


def _texts(paper: Paper, ids: set[str]) -> set[str]:
    return {paragraph.source.text for paragraph in paper.ready.outline.paragraphs if paragraph.source.id in ids}


# Without an LLM

Ranking = Callable[[str, PreparedDocuments], list[str]]


def _without_llm(questions: int | None, ranker: MonoT5 | None) -> Table:
    table = Table("method", "evidence F1", "paragraphs", "recall@10", title="QASPER dev without an LLM")
    lexical = D3(settings={"unit": "paragraph"})
    read = papers("qasper", lexical, questions)
    table.add_row("BM25, top 3", *_measured(read, bm25, lambda *asked: bm25(*asked)[:3]))
    if ranker is not None:

        def monot5(question: str, ready: PreparedDocuments) -> list[str]:
            passages = [paragraph.passage for paragraph in ready.outline.paragraphs]
            return [item.passage.id for item in ranker.rank(question, passages)]

        table.add_row(
            f"MonoT5 ({ranker.language_model.spec}), top 3", *_measured(read, monot5, lambda *asked: monot5(*asked)[:3])
        )
    table.add_row("D3, lexical", *_measured(read, *_drilling(lexical)))
    if INSTALLED:
        fused = D3(embed=minilm(), settings={"unit": "paragraph"})
        read = papers("qasper", fused, questions)
        table.add_row("MiniLM, top 3", *_measured(read, dense, lambda *asked: dense(*asked)[:3]))
        table.add_row("D3 with MiniLM", *_measured(read, *_drilling(fused)))
    return table


def _measured(read: Sequence[Paper], ten: Ranking, chosen: Ranking) -> tuple[str, str, str]:
    f1s, sizes, recalls = [], [], []
    for paper in read:
        for question in paper.questions:
            ids = chosen(question.text, paper.ready)
            f1s.append(evidence_f1(ids, question.annotations))
            sizes.append(len(ids))
            recalls.append(recall(ten(question.text, paper.ready), question.gold, 10))
    return f"{mean(f1s):.3f}", f"{mean(sizes):.1f}", f"{mean(recalls):.3f}"


def _drilling(d3: D3) -> tuple[Ranking, Ranking]:
    def ten(question: str, ready: PreparedDocuments) -> list[str]:
        return [item.passage.id for item in d3.retrieve(question, ready, 10)]

    def calibrated(question: str, ready: PreparedDocuments) -> list[str]:
        return [item.passage.id for item in d3.retrieve(question, ready)]

    return ten, calibrated
