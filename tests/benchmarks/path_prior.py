"""The path prior on training questions: how little its two shares matter, and what the first stage's order adds.

HotpotQA: the demonstrations' questions, their passages added to the development pool. MuSiQue: the tuning questions.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from drillrank import Passage, PathSearch, PromptRank
from drillrank.evaluation.metrics import recall_all
from drillrank.multihop.link_prior import PathPrior
from drillrank.multihop.title_mentions import TitleMentions

from .data import multihop_pool, read

SHARES = (0.1, 0.5, 0.9)


def main() -> None:
    """Print R@2 and R@10 for every pair of shares, and for the usual ones with the order of TF-IDF's candidates."""
    hotpotqa, asked = with_demonstrations("hotpotqa")
    data = [
        ("HotpotQA", hotpotqa, asked),
        ("MuSiQue", multihop_pool("musique"), read("multihop/musique_tune")),
    ]
    table = Table("data", "questions", "jump", "named", "R@2", "R@10", title="The prior on training questions")
    for name, pool, questions in data:
        shares = [PathPrior(jump, named) for jump in SHARES for named in SHARES]
        for prior, first_stage in [(None, None), *((one, None) for one in shares), (PathPrior(), "retrieval")]:
            search = PathSearch(PromptRank(prior=first_stage), pool, link_prior=prior)
            rankings = [[item.passage.id for item in search.search(one["question"])] for one in questions]
            recalls = [
                sum(recall_all(ranking, one["gold"], k) for ranking, one in zip(rankings, questions, strict=True))
                / len(questions)
                for k in (2, 10)
            ]
            jump, named = ("no prior", "") if prior is None else (str(prior.jump), str(prior.named))
            if first_stage is not None:
                jump = f"{jump}, {first_stage}"
            table.add_row(name, str(len(questions)), jump, named, *(f"{value:.3f}" for value in recalls))
    Console().print(table)


def with_demonstrations(dataset: str) -> tuple[list[Passage], list[dict[str, Any]]]:
    """The pool of a data set and the demonstrations' passages, linked by mentions; and their questions."""
    pool = {(passage.title, passage.text): passage for passage in multihop_pool(dataset)}
    asked = []
    for item in read("multihop/demos"):
        if item["dataset"] == dataset:
            keys = [(part["title"], part["text"]) for part in item["path"]]
            for title, text in keys:
                pool.setdefault((title, text), Passage(text, title=title))
            asked.append({"question": item["question"], "gold": [pool[key].id for key in keys]})
    passages = list(pool.values())
    mentions = TitleMentions().over(passages)
    return [Passage(p.text, id=p.id, title=p.title, links=tuple(mentions(p))) for p in passages], asked
