"""Scoring 1,000 passages of 150 words for one question: the unigram model beside rank-bm25; indexing left out."""

from __future__ import annotations

from collections.abc import Callable

from rank_bm25 import BM25Okapi
from rich.console import Console
from rich.table import Table

from drillrank import UPR, Passage
from drillrank.likelihood import Request, UnigramModel
from drillrank.prompts import Evidence
from drillrank.rerank.upr import UPR_PROMPT, split_template
from drillrank.text import terms

from .data import read
from .measure import medians

PASSAGES, WORDS, QUESTIONS = 1000, 150, 20


def main() -> None:
    questions = [item["question"] for item in read("rerank/squad")[:QUESTIONS]]
    words = [word for item in read("rerank/squad_passages") for word in item["text"].split()]
    starts = [(i * 97) % (len(words) - WORDS) for i in range(PASSAGES)]
    passages = [Passage(" ".join(words[start : start + WORDS])) for start in starts]
    tokenised = [terms(passage.text) for passage in passages]
    bm25 = BM25Okapi(tokenised)
    model = UnigramModel().fit(passage.text for passage in passages)
    upr = UPR(model)
    before, _, after = split_template(UPR_PROMPT)
    prompts = [(before, Evidence(passage.text), after) for passage in passages]
    requests = {question: [Request(prompt, question) for prompt in prompts] for question in questions}
    asked = {question: terms(question) for question in questions}

    def each(ask: Callable[[str], object]) -> Callable[[], None]:
        def run() -> None:
            for question in questions:
                ask(question)

        return run

    seconds = medians(
        {
            "rank-bm25 get_scores": each(lambda question: bm25.get_scores(asked[question])),
            "UnigramModel.log_likelihood": each(lambda question: model.log_likelihood(requests[question])),
            "UPR.rank (prompts, scores, sorted results)": each(lambda question: upr.rank(question, passages)),
        }
    )
    table = Table(
        "variant", "ms a question", "ratio", title=f"{PASSAGES:,} passages of {WORDS} words, {QUESTIONS} questions"
    )
    for name, value in seconds.items():
        ratio = value / seconds["rank-bm25 get_scores"]
        table.add_row(name, f"{1000 * value / len(questions):.2f}", f"{ratio:.2f}")
    Console().print(table)
