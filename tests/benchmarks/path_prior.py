"""The path prior on training questions: how much its shares matter, and what the first stage's order adds.

HotpotQA: the demonstrations' questions, their passages added to the development pool. MuSiQue: the tuning questions;
for the length of paths the demonstrations', too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from drillrank import Passage, PathSearch, PromptRank
from drillrank.evaluation.metrics import recall_all
from drillrank.multihop.link_prior import PathPrior
from drillrank.multihop.links import given_links
from drillrank.multihop.name_mentions import NameMentions
from drillrank.multihop.title_mentions import TitleMentions

from .data import multihop_pool, read

Floats = npt.NDArray[np.float64]

SHARES = (0.1, 0.5, 0.9)
SINGLES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.001)  # shares of questions that one passage answers
LINKS: dict[str, Any] = {"titles": None, "titles and names": [given_links, NameMentions()]}


def main() -> None:
    """Print R@2 and R@10 for pairs of shares, with the order of TF-IDF's candidates, and for the length of paths."""
    hotpotqa, asked = with_demonstrations("hotpotqa")
    tuning = read("multihop/musique_tune")
    table = Table("data", "questions", "jump", "named", "R@2", "R@10", title="The prior on training questions")
    for name, pool, questions in (("HotpotQA", hotpotqa, asked), ("MuSiQue", multihop_pool("musique"), tuning)):
        shares = [PathPrior(jump, named) for jump in SHARES for named in SHARES]
        for prior, first_stage in [(None, None), *((one, None) for one in shares), (PathPrior(), "retrieval")]:
            search = PathSearch(PromptRank(prior=first_stage), pool, settings={"link_prior": prior})
            found = recalls(search, questions).mean(axis=0)[[0, 2]]
            jump, named = ("no prior", "") if prior is None else (str(prior.jump), str(prior.named))
            if first_stage is not None:
                jump = f"{jump}, {first_stage}"
            table.add_row(name, str(len(questions)), jump, named, *(f"{value:.3f}" for value in found))
    Console().print(table)
    musique, of_musique = with_demonstrations("musique")
    lengths = Table(
        "data", "links", "single", "R@2", "recall@5", "R@10", title="How many questions one passage answers"
    )
    for name, pool, questions in (("HotpotQA", hotpotqa, asked), ("MuSiQue", musique, [*of_musique, *tuning])):
        for of, links in LINKS.items():
            as_it_was: Floats | None = None
            for single in SINGLES:
                search = PathSearch(PromptRank(), pool, links=links, settings={"link_prior": PathPrior(single=single)})
                each = recalls(search, questions)
                as_it_was = each if as_it_was is None else as_it_was
                lengths.add_row(f"{name}, {len(questions)}", of, f"{single}", *compared(each, as_it_was))
    Console().print(lengths)


def recalls(search: PathSearch, questions: list[dict[str, Any]]) -> Floats:
    """R@2, the share of gold among the first 5, and R@10 of each question, shape (questions, 3)."""
    rows = []
    for one in questions:
        ids = [item.passage.id for item in search.search(one["question"])]
        share = len({*ids[:5]} & {*one["gold"]}) / len(one["gold"])
        rows.append((recall_all(ids, one["gold"], 2), share, recall_all(ids, one["gold"], 10)))
    return np.asarray(rows, dtype=np.float64)


def compared(values: Floats, others: Floats) -> list[str]:
    """Means, with the 95 % interval of the difference to the others by the paired bootstrap."""
    differences = values - others
    draws = np.random.default_rng(15).integers(0, len(differences), (2000, len(differences)))
    low, high = np.percentile(differences[draws].mean(axis=1), (2.5, 97.5), axis=0)
    return [
        f"{mean:.3f} [{least:+.3f}, {most:+.3f}]"
        for mean, least, most in zip(values.mean(axis=0), low, high, strict=True)
    ]


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
