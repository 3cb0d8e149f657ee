"""Links: the time to find all title mentions, and what each source of links is worth to path search.

One process, the variants in turn.
"""

from __future__ import annotations

import cProfile
import random
import re
import time
from collections.abc import Sequence
from itertools import chain

from rich.console import Console
from rich.table import Table

from drillrank import Passage, PathSearch, PromptRank
from drillrank.evaluation.metrics import recall_all
from drillrank.multihop.links import LinkSource, NameTable, RetrievedLinks, given_links
from drillrank.multihop.text_links import NameMentions, TitleMentions
from drillrank.passages import PARENTHETICAL
from drillrank.text import name_tokens, unaccented

from .data import multihop_pool, read
from .measure import mean_of, medians

DATASETS = ("hotpotqa", "2wiki", "musique")
TITLES = 100_000
SAMPLE = 200  # passages for the slow ways
ASKED = 30
FORMS = (
    "the title, as written",
    "the title in other letters",
    "the title without its accents",
    "the title without its middle name",
    "a part of the title: without its kind, or its first word",
    "in its text, or else in its title",
    "its surname alone",
)
SOURCES: dict[str, LinkSource | Sequence[LinkSource]] = {
    "none": [],
    "the data's own": given_links,
    "mentions of titles alone": TitleMentions(aliases=False),
    "title mentions": TitleMentions(),
    "title mentions, inflected": TitleMentions(inflected=True),
    "second retrieval": RetrievedLinks(),
    "names": NameMentions(),
    "mentions and names": [TitleMentions(), NameMentions()],
    "mentions and retrieval": [TitleMentions(), RetrievedLinks()],
}


def main(questions: int | None = None) -> None:
    pools = {dataset: multihop_pool(dataset) for dataset in DATASETS}
    console = Console()
    console.print(speed(list(pools.values())))
    console.print(agreement(pools))
    console.print(worth(pools, questions))
    console.print(forms(pools))
    console.print(costs(pools["hotpotqa"], [asked["question"] for asked in read("multihop/hotpotqa")[:ASKED]]))


def speed(pools: Sequence[Sequence[Passage]]) -> Table:
    """Seconds to index the titles and to read every passage; beside it the plain ways, on a sample."""
    everything = list(chain.from_iterable(pools))
    many = [*everything, *made_titles(everything, TITLES - len(everything))]
    index, of_many = TitleMentions().over(everything), TitleMentions().over(many)
    sample = everything[:: len(everything) // SAMPLE][:SAMPLE]
    titles = {passage.title for passage in everything}
    pattern = re.compile("|".join(re.escape(title) for title in sorted(titles, key=len, reverse=True)))
    variants = {
        f"index and read, {len(pools)} pools": lambda: [
            [links(passage) for passage in pool] for pool in pools for links in [TitleMentions().over(pool)]
        ],
        "read, titles of all pools": lambda: [index(passage) for passage in everything],
        f"read, {TITLES:,} titles": lambda: [of_many(passage) for passage in everything],
        f"index {TITLES:,} titles": lambda: TitleMentions().over(many),
        f"one regular expression, {SAMPLE} passages": lambda: [pattern.findall(passage.text) for passage in sample],
        f"one search for each title, {SAMPLE} passages": lambda: [
            [title for title in titles if title in passage.text] for passage in sample
        ],
        f"read, {SAMPLE} passages": lambda: [index(passage) for passage in sample],
    }
    table = Table("what", "seconds", "passages", "µs a passage", title="Title mentions")
    for name, seconds in medians(variants, repeats=3).items():
        count = SAMPLE if "passages" in name else len(everything)
        table.add_row(name, f"{seconds:.3f}", f"{count:,}", f"{1e6 * seconds / count:.0f}")
    return table


def made_titles(passages: Sequence[Passage], count: int) -> list[Passage]:
    """More titles of the same words: the beginning of one with the rest of another."""
    chance = random.Random(0)
    words = [name_tokens(passage.title) for passage in passages]
    beginnings, ends = ([part for title in words if (part := title[piece])] for piece in (slice(1), slice(1, None)))
    made: dict[str, None] = {}
    while len(made) < count:
        made[" ".join([*chance.choice(beginnings), *chance.choice(ends)])] = None
    return [Passage("", id=f"made {i}", title=title) for i, title in enumerate(made)]


def agreement(pools: dict[str, list[Passage]]) -> Table:
    """The links found beside those of the data, which leave out titles that are ordinary words."""
    table = Table(
        "data", "passages", "links", "in the data", "of these found", title="Title mentions and the data's links"
    )
    for dataset, pool in pools.items():
        links = TitleMentions().over(pool)
        found = {(passage.id, target) for passage in pool for target in links(passage) if target != passage.id}
        known = {(passage.id, target) for passage in pool for target in passage.links}
        table.add_row(dataset, f"{len(pool):,}", f"{len(found):,}", f"{len(known):,}", f"{len(found & known):,}")
    return table


def worth(pools: dict[str, list[Passage]], most: int | None) -> Table:
    """Recall of path search with each source of links."""
    table = Table("data", "questions", "links", "R@2", "R@10", "R@20", title="Path search, unigram model")
    for dataset, pool in pools.items():
        questions = read(f"multihop/{dataset}")[:most]
        for name, links in SOURCES.items():
            search = PathSearch(PromptRank(), pool, links=links)
            found = [[item.passage.id for item in search.search(asked["question"])] for asked in questions]
            recalls = (f"{mean_of(recall_all, found, questions, k):.3f}" for k in (2, 10, 20))
            table.add_row(dataset, str(len(questions)), name, *recalls)
    return table


def forms(pools: dict[str, list[Passage]]) -> Table:
    """How often a name leads from a gold passage to another one of the question, by what it is to the target.

    Names of more than 100 passages and names that the question holds are not followed, as in a search; surnames alone
    are no links, and stand here to show why. A target counts under the first form that leads to it.
    """
    table = Table("data", "the name is", "links of a gold passage", "to gold", "precision", "gold pairs", title="Names")
    for dataset, pool in pools.items():
        by_id, asked = {passage.id: passage for passage in pool}, read(f"multihop/{dataset}")
        titles, names = TitleMentions(aliases=False).over(pool), NameMentions()
        table_of_names, surnames = NameTable(pool, names.rows), NameTable(pool, _surname)
        found: dict[str, list[bool]] = {form: [] for form in FORMS}
        pairs: dict[str, set[tuple[str, str]]] = {form: set() for form in FORMS}
        for one in asked:
            question = f" {' '.join(map(str.lower, name_tokens(unaccented(one['question']))))} "
            for passage in map(by_id.__getitem__, one["gold"]):
                forms_of: dict[str, str] = dict.fromkeys(titles(passage), FORMS[0])
                held = [name for name, _ in names.rows(passage) if f" {name} " not in question]
                for name, ids in [*table_of_names.of(held).items(), *surnames.of(held).items()]:
                    if len(ids) <= 100:
                        for id_ in ids:
                            form = _form(name, by_id[id_])
                            if FORMS.index(forms_of.get(id_, FORMS[-1])) >= FORMS.index(form):
                                forms_of[id_] = form
                forms_of.pop(passage.id, None)
                for id_, form in forms_of.items():
                    found[form].append(id_ in one["gold"])
                    if id_ in one["gold"]:
                        pairs[form].add((one["id"], " ".join(sorted((passage.id, id_)))))
        count = sum(len(one["gold"]) * (len(one["gold"]) - 1) // 2 for one in asked)
        for form, hits in found.items():
            share = f"{sum(hits) / max(len(hits), 1):.3f}"
            table.add_row(dataset, form, f"{len(hits):,}", f"{sum(hits):,}", share, f"{len(pairs[form]) / count:.3f}")
    return table


def costs(pool: Sequence[Passage], questions: Sequence[str]) -> Table:
    """What a question costs with the names that texts mention, and without: the best of three rounds, in turns."""
    ways: dict[str, list[LinkSource]] = {
        "the data's own": [given_links],
        "title mentions": [given_links, TitleMentions()],
        "title mentions and names": [given_links, TitleMentions(), NameMentions()],
    }
    searches = {name: PathSearch(PromptRank(), pool, links=links) for name, links in ways.items()}
    least = dict.fromkeys(searches, float("inf"))
    for _ in range(4):  # the first one warms up
        for name, search in searches.items():
            started = time.process_time()
            for question in questions:
                search.search(question)
            least[name] = min(least[name], time.process_time() - started)
    table = Table("links", "CPU ms a question", "calls of functions", title=f"{len(questions)} questions, HotpotQA")
    for name, search in searches.items():
        profile = cProfile.Profile()
        profile.runcall(list, map(search.search, questions))
        calls = sum(entry.callcount for entry in profile.getstats())
        table.add_row(name, f"{1000 * least[name] / len(questions):.1f}", f"{calls / len(questions):,.0f}")
    return table


def _surname(passage: Passage) -> list[tuple[str, float]]:
    words = _words(passage.title)
    return [(words[-1], 1.0)] if 1 < len(words) < 4 and words[-1].isalpha() else []


def _words(title: str) -> list[str]:
    return [unaccented(token.lower()) for token in name_tokens(PARENTHETICAL.sub("", title))]


def _form(name: str, target: Passage) -> str:
    """What a name is to the passage that it leads to."""
    words, asked = _words(target.title), name.split()
    if asked == words:
        return FORMS[2 if not target.title.isascii() else 1]
    if len(words) == 3 and asked == words[::2]:
        return FORMS[3]
    if len(words) > len(asked) > 1 and asked in (words[: len(asked)], words[-len(asked) :]):
        return FORMS[4]
    if len(words) > 1 and asked == words[-1:]:
        return FORMS[6]
    return FORMS[5]
