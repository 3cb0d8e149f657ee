"""What each source of links is worth to path search."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from drillrank import PathSearch, PromptRank
from drillrank.evaluation.metrics import recall_all
from drillrank.multihop.links import LinkSource, RetrievedLinks, passage_links
from drillrank.multihop.mentions import NameMentions, TitleMentions

from .data import multihop_pool, read
from .measure import mean_of

SOURCES: dict[str, LinkSource | Sequence[LinkSource]] = {
    "none": [],
    "the data's own": passage_links,
    "mentions of titles alone": TitleMentions(aliases=False),
    "title mentions": TitleMentions(),
    "title mentions, inflected": TitleMentions(inflected=True),
    "second retrieval": RetrievedLinks(),
    "names": NameMentions(),
    "mentions and names": [TitleMentions(), NameMentions()],
    "mentions and retrieval": [TitleMentions(), RetrievedLinks()],
}


def main(questions: int | None = None) -> None:
    """Print the recall of path search with each source of links."""
    table = Table("data", "questions", "links", "R@2", "R@10", "R@20", title="Path search, unigram model")
    for dataset in ("hotpotqa", "2wiki", "musique"):
        pool, asked = multihop_pool(dataset), read(f"multihop/{dataset}")[:questions]
        for name, links in SOURCES.items():
            search = PathSearch(PromptRank(), pool, links=links)
            found = [[item.passage.id for item in search.search(one["question"])] for one in asked]
            recalls = (f"{mean_of(recall_all, found, asked, k):.3f}" for k in (2, 10, 20))
            table.add_row(dataset, str(len(asked)), name, *recalls)
    Console().print(table)
