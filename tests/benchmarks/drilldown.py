"""Drilling down QASPER papers: with an oracle LLM against the paper's baselines, without an LLM, and in a huge book."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean

from rich.console import Console
from rich.table import Table

from drillrank import D3, MonoT5
from drillrank.dialogue import Dialogue, Usage, run
from drillrank.drilldown.asking import Asking, Item
from drillrank.drilldown.drill import Drillable
from drillrank.evaluation.metrics import evidence_f1
from drillrank.prompts import PARAGRAPH_PROMPT, filled
from drillrank.retrieval import BM25Index, top
from drillrank.tokens import count_tokens
from drillrank.views.summaries import summaries

from .long_documents import Paper, papers
from .minilm import minilm
from .oracle import Oracle, SummaryReader

CHUNK_TOKENS = 3500
SUMMARY_WORDS = (45, 36, 30, 15)  # at most; 36 is the default
# PARAGRAPH and MAP-REDUCE ask about one paragraph at a time; the paper gives no wording, this one is ours.
BOOLEAN_PROMPT = (
    "{paragraph}\n\nQuestion: {question}\n\nDoes the paragraph contain relevant information for answering the "
    "question? Respond with yes or no."
)
Method = Callable[[str, Drillable, Oracle, Usage], set[str]]


def main(model: str | None = None, questions: int | None = None) -> None:
    console = Console(width=120)
    console.print(_with_oracle(questions))
    console.print(_guard(questions))
    console.print(_without_llm(questions, model))
    console.print(_book())


# The paper's baselines, through the same interface and the same accounting


class _Unlikely:
    """A baseline has no likelihood to fall back on, and the oracle needs none."""

    def order(self, positions: Sequence[int]) -> list[int]:
        raise AssertionError("the oracle left a gap")

    choose = order


def chunk(question: str, texts: Sequence[str]) -> Dialogue[list[int]]:
    """CHUNK: BASE on fragments of 3,500 tokens."""
    asking = Asking(question, CHUNK_TOKENS, calls_left=10**6)
    found, _ = yield from asking.choose(PARAGRAPH_PROMPT, [Item(text) for text in texts], _Unlikely())
    return found


def map_reduce_optimized(question: str, texts: Sequence[str]) -> Dialogue[list[int]]:
    """MAP-REDUCE OPTIMIZED: CHUNK, then BASE over the survivors."""
    survivors = yield from chunk(question, texts)
    found = yield from chunk(question, [texts[at] for at in survivors])
    return [survivors[at] for at in found]


def paragraph(question: str, texts: Sequence[str]) -> Dialogue[list[int]]:
    """PARAGRAPH: a boolean prompt each."""
    replies = yield [filled(BOOLEAN_PROMPT, paragraph=text, question=question) for text in texts]
    return [at for at, reply in enumerate(replies) if reply.text.startswith("yes")]


def map_reduce(question: str, texts: Sequence[str]) -> Dialogue[list[int]]:
    """MAP-REDUCE: PARAGRAPH, then the survivors together."""
    survivors = yield from paragraph(question, texts)
    found = yield from chunk(question, [texts[at] for at in survivors])
    return [survivors[at] for at in found]


BASELINES = {
    "PARAGRAPH": paragraph,
    "CHUNK": chunk,
    "MAP-REDUCE": map_reduce,
    "MAP-REDUCE OPTIMIZED": map_reduce_optimized,
}


def _baseline(dialogue: Callable[[str, Sequence[str]], Dialogue[list[int]]]) -> Method:
    def method(question: str, ready: Drillable, oracle: Oracle, usage: Usage) -> set[str]:
        texts = [passage.text for passage in ready.readable]
        return {ready.paragraphs[at].id for at in run(dialogue(question, texts), oracle, usage)}

    return method


def _d3(**settings: object) -> Method:
    oracle_of_question: list[Oracle] = []
    d3 = D3(lambda prompt: oracle_of_question[0].complete(prompt), **settings)  # one object remembers the summaries

    def method(question: str, ready: Drillable, oracle: Oracle, usage: Usage) -> set[str]:
        oracle_of_question[:] = [oracle]
        found = d3.retrieve(question, ready)
        for name in ("prompt_tokens", "completion_tokens", "calls", "failures"):
            setattr(usage, name, getattr(found.usage, name))
        return {item.passage.id for item in found}

    return method


def _with_oracle(questions: int | None) -> Table:
    methods: dict[str, Method] = {name: _baseline(dialogue) for name, dialogue in BASELINES.items()}
    methods |= {
        **{f"D3-BASE, summaries of {n} words": _d3(summary_words=n) for n in SUMMARY_WORDS},
        "D3-BASE, guard of 300 tokens": _d3(guard_tokens=300),
        "D3-HIERBASE": _d3(paragraphs="hierbase"),
    }
    read = papers("qasper", D3(), questions)
    lengths = [count_tokens("\n".join(p.text for p in paper.ready.readable)) for paper in read]
    bounds = [sorted(lengths)[len(lengths) * third // 3] for third in (1, 2)] if len(lengths) > 2 else []
    table = Table(
        "method", "F1", "prompt tokens", "of M-R OPT.", "calls", title=f"Oracle LLM, {len(read)} papers of QASPER dev"
    )
    for heading in ("short", "middle", "long"):
        table.add_column(f"{heading} papers")
    spent: dict[str, list[tuple[float, Usage, int]]] = {name: [] for name in methods}
    for paper, length in zip(read, lengths, strict=True):
        third = sum(length >= bound for bound in bounds)
        for question in paper.questions:
            oracle = Oracle(paper.ready, question.gold)
            for name, method in methods.items():
                usage = Usage()
                found = method(question.text, paper.ready, oracle, usage)
                # The oracle knows the evidence of all annotators together. QASPER compares texts, not places.
                f1 = evidence_f1(_texts(paper, found), [_texts(paper, question.gold)])
                spent[name].append((f1, usage, third))
    reference = mean(usage.prompt_tokens for _, usage, _ in spent["MAP-REDUCE OPTIMIZED"])
    for name, all_ in spent.items():
        tokens = mean(usage.prompt_tokens for _, usage, _ in all_)
        table.add_row(
            name,
            f"{mean(f1 for f1, _, _ in all_):.3f}",
            f"{tokens:,.0f}",
            f"{tokens / reference:.1%}",
            f"{mean(usage.calls for _, usage, _ in all_):.2f}",
            *(
                f"{mean([usage.prompt_tokens for _, usage, third in all_ if third == wanted] or [0]):,.0f}"
                for wanted in range(3)
            ),
        )
    lengths_of_summaries = ", ".join(f"{words} words {_summary_tokens(read, words):.0f}" for words in SUMMARY_WORDS)
    table.caption = (
        f"Prompt tokens of short, middle and long papers: up to {bounds} tokens, and longer. "
        f"Mean tokens of a summary: {lengths_of_summaries}."
    )
    return table


def _texts(paper: Paper, ids: set[str]) -> set[str]:
    return {paragraph.text for paragraph in paper.ready.paragraphs if paragraph.id in ids}


def _summary_tokens(read: Sequence[Paper], words: int) -> float:
    texts = [[section.passage.text for section in paper.ready.outline.sections] for paper in read]
    return mean(count_tokens(summary) for sections in texts for summary in summaries(sections, words, words))


def _guard(questions: int | None) -> Table:
    table = Table(
        "guard tokens", "evidence found", "prompt tokens", title="Sections chosen by what their summaries show"
    )
    for allowance in (0, 200, 400, 800):
        method = _d3(guard_tokens=allowance)
        recalls, tokens = [], []
        for paper in papers("qasper", D3(), questions):
            for question in paper.questions:
                usage = Usage()
                reader = SummaryReader(paper.ready, question.gold, question.text)
                found = method(question.text, paper.ready, reader, usage)
                recalls.append(len(found & question.gold) / len(question.gold))
                tokens.append(usage.prompt_tokens)
        table.add_row(str(allowance), f"{mean(recalls):.3f}", f"{mean(tokens):,.0f}")
    return table


Ranking = Callable[[str, Drillable], list[str]]


def _without_llm(questions: int | None, model: str | None) -> Table:
    table = Table("method", "evidence F1", "paragraphs", "recall@10", title="QASPER dev without an LLM")
    lexical, embed = D3(), minilm()
    read = papers("qasper", lexical, questions)
    table.add_row("BM25, top 3", *_measured(read, _bm25, lambda *asked: _bm25(*asked)[:3]))
    if model is not None:
        ranker = MonoT5(model)

        def monot5(question: str, ready: Drillable) -> list[str]:
            return [item.passage.id for item in ranker.rank(question, ready.readable)]

        table.add_row(f"MonoT5 {model}, top 3", *_measured(read, monot5, lambda *asked: monot5(*asked)[:3]))
    table.add_row("D3, lexical", *_measured(read, *_drilling(lexical)))
    if embed is not None:
        fused = D3(embed=embed)
        read = papers("qasper", fused, questions)
        table.add_row("MiniLM, top 3", *_measured(read, _dense, lambda *asked: _dense(*asked)[:3]))
        table.add_row("D3 with MiniLM", *_measured(read, *_drilling(fused)))
    return table


def _measured(read: Sequence[Paper], ten: Ranking, chosen: Ranking) -> tuple[str, str, str]:
    f1s, sizes, recalls = [], [], []
    for paper in read:
        for question in paper.questions:
            ids = chosen(question.text, paper.ready)
            f1s.append(evidence_f1(ids, question.annotations))
            sizes.append(len(ids))
            recalls.append(len(question.gold & set(ten(question.text, paper.ready)[:10])) / len(question.gold))
    return f"{mean(f1s):.3f}", f"{mean(sizes):.1f}", f"{mean(recalls):.3f}"


def _drilling(d3: D3) -> tuple[Ranking, Ranking]:
    def ten(question: str, ready: Drillable) -> list[str]:
        return [item.passage.id for item in d3.retrieve(question, ready, 10)]

    def calibrated(question: str, ready: Drillable) -> list[str]:
        return [item.passage.id for item in d3.retrieve(question, ready)]

    return ten, calibrated


def _bm25(question: str, ready: Drillable) -> list[str]:
    scores = BM25Index([passage.text for passage in ready.readable]).scores(question)
    return [ready.paragraphs[at].id for at in top(scores, 10)]


def _dense(question: str, ready: Drillable) -> list[str]:
    scored = ready.evidence.scored(question, range(len(ready.paragraphs)))
    order = sorted(range(len(scored)), key=lambda at: scored[at][1]["cosine"], reverse=True)
    return [ready.paragraphs[at].id for at in order]


# A book of 10,000 sections


def book(parts: int, chapters: int, sections: int) -> str:
    """Markdown with three levels of headings, two paragraphs a section."""
    lines = ["# The book of numbers"]
    for part in range(parts):
        lines.append(f"## Part {part + 1}")
        for chapter in range(chapters):
            lines.append(f"### Chapter {part + 1}.{chapter + 1}")
            for section in range(sections):
                number = f"{part + 1}.{chapter + 1}.{section + 1}"
                lines.append(f"#### Of number {number}")
                lines.append(
                    f"This section tells about the number {number}, who counted it and what it was counted for. " * 3
                )
                lines.append(f"The weight of number {number} is {part * 7 + chapter * 3 + section} grams. " * 2)
    return "\n\n".join(lines)


def _book() -> Table:
    table = Table("sections", "tokens", "calls", "prompt tokens", "longest prompt", "F1", title="4,000 tokens a call")
    for shape in ((1, 1, 10), (1, 10, 10), (10, 10, 10), (10, 25, 20), (10, 25, 40)):
        longest: list[int] = []
        oracles: list[Oracle] = []

        def llm(prompt: str, longest: list[int] = longest, oracles: list[Oracle] = oracles) -> str:
            longest.append(count_tokens(prompt))
            return oracles[0].complete(prompt)

        d3 = D3(llm)
        ready = d3.prepare([book(*shape)])
        gold = {ready.paragraphs[len(ready.paragraphs) // 2 + 1].id}
        oracles.append(Oracle(ready, gold))
        found = d3.retrieve("What does the number in the middle weigh?", ready)
        table.add_row(
            f"{len(ready.outline.sections):,}",
            f"{sum(count_tokens(p.text) for p in ready.readable):,}",
            str(found.usage.calls),
            f"{found.usage.prompt_tokens:,}",
            f"{max(longest):,}",
            f"{evidence_f1({item.passage.id for item in found}, [gold]):.1f}",
        )
    return table
