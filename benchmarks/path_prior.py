"""The path prior: what each of its terms adds, on training questions and on the development questions.

HotpotQA: the demonstrations' questions, their passages added to the development pool. MuSiQue: the tuning questions and
the demonstrations'. 2Wiki has no training questions here. The registers (`tests.registers`) are of another domain.
"""

from __future__ import annotations

from copy import copy
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank import Passage, PathSearch, PromptRank
from drillrank.evaluation.metrics import recall_all
from drillrank.multihop.links import passage_links
from drillrank.multihop.mentions import NameMentions, TitleMentions
from drillrank.multihop.path_settings import PathSettings
from drillrank.multihop.prior import PathPrior
from drillrank.vectors import Floats
from tests.registers import pages
from tests.registers import questions as questions_on_registers

from .data import multihop_pool, read

NONE = 1e-12

WITHOUT: dict[str, dict[str, Any]] = {
    "the default": {},
    "no prior": {"link_prior": None},
    "no namesakes (β = 0)": {"namesake": 0},
    "words alike in each passage of a path (α = 0)": {"aligned": 0},
    "prior as probable as it says (λ = 1)": {"weight": 1},
    "one passage answers few (σ = 0.01)": {"single": 0.01},
    "no price of longer paths (ρ = 0.5)": {"longer": 0.5},
    "half of the steps jump (γ = 0.5)": {"jump": 0.5},
    "the question names nothing (ν = 0)": {"named": NONE},
    "no words around links (a = 0)": {"links": [passage_links, TitleMentions(context=0), NameMentions(context=0)]},
    "names in titles are as others (1)": {"links": [passage_links, TitleMentions(), NameMentions(titled=1)]},
    "titles alone": {"links": [passage_links, TitleMentions()]},
}


def main(questions: int | None = None, data: str = "") -> None:
    """Print R@2, recall@5 and R@10 of the default, and without each term, with intervals of the difference.

    `data` is a part of the names of the data sets.
    """
    for name, (pool, asked) in pools().items():
        if data not in name:
            continue
        table = Table("path search", "R@2", "recall@5", "R@10", title=f"{name}, {len(asked[:questions])} questions")
        default: Floats | None = None
        default_search = PathSearch(PromptRank(), pool)
        for what, change in WITHOUT.items():
            shares = {key: value for key, value in change.items() if key not in ("links", "link_prior")}
            settings = PathSettings(link_prior=change.get("link_prior", PathPrior(**shares)))
            if "links" in change:
                search = PathSearch(PromptRank(), pool, links=change["links"], settings=settings)
            else:
                search = copy(default_search)  # with the same index
                search.settings = settings
            each = recalls(search, asked[:questions])
            default = each if default is None else default
            table.add_row(what, *compared(each, default))
        Console(width=120).print(table)


def pools() -> dict[str, tuple[list[Passage], list[dict[str, Any]]]]:
    """Pools and questions: first those that parameters are chosen on."""
    musique, asked = with_demonstrations("musique")
    found = {
        "training, HotpotQA": with_demonstrations("hotpotqa"),
        "training, MuSiQue": (musique, [*asked, *read("multihop/musique_tune")]),
    }
    found |= {name: (multihop_pool(name), read(f"multihop/{name}")) for name in ("hotpotqa", "2wiki", "musique")}
    return found | {"registers": (pages(), [asdict(one) for one in questions_on_registers()])}


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
    mentions = TitleMentions().bind(passages)
    return [Passage(p.text, id=p.id, title=p.title, links=tuple(mentions(p))) for p in passages], asked
