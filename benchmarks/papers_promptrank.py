"""PromptRank's tables 1 to 4, A2 and A4 and figure 4, the paper's figures next to ours: open pools, a small model.

In most tables the unigram model steers the paper's search (K1 = 5, L = 3), and the language model scores the five best
paths of one passage and at most fifteen of two. All other passages follow in the order of the unigram model. These
tables have the first rows of the data sets, which for HotpotQA are bridge questions only; a table by type of question
has all rows with the unigram model. In the table of the beam, the language model steers the search itself, on questions
drawn with each type as often as in the data. Instructions and the temperature are chosen on training questions. What
models said is kept (`kept.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank import Passage, Path, PathSearch, PromptRank
from drillrank.errors import InvalidInput
from drillrank.evaluation.metrics import exact_match, recall_all
from drillrank.multihop.links import passage_links
from drillrank.rerank.demonstrations import Demonstration, sample_demonstrations
from drillrank.rerank.promptrank import PROMPTRANK_INSTRUCTIONS
from drillrank.vectors import BM25Index, Floats, TfidfIndex, top

from .data import multihop_pool, read, stratified
from .kept import KeptModel, named
from .measure import gain
from .path_prior import with_demonstrations

MODEL = "smollm2"
K1, PAIRS = 5, 15
QUESTIONS, TRAINING, SEEDS, BEAM_QUESTIONS = 100, 50, 5, 20
PLAIN = "{path} Question:"
MANUAL = ("{path} Please write a question based on these passages. Question:",)
VERBS = ("Read", "Review", "Study", "Compare", "Use", "Consider", "Search", "Summarize")
ENDS = ("ask a question", "write a question", "answer the question", "pose an exam question", "ask what they answer")
# No T5 that writes them can be had: forty are put together here, beside the ten of table A1.
MADE = tuple(f"{{path}} {verb} the previous documents and {end}. Question:" for verb, end in product(VERBS, ENDS))
FIFTY = (*PROMPTRANK_INSTRUCTIONS, *MADE)
TEMPERATURE, TEMPERATURES = 1.4, (0.7, 1.0, 1.4, 2.0)

Scores = Sequence[float]


class Asked(NamedTuple):
    """A question with what is to be ranked.

    Attributes:
        paths: At most twenty.
        order: All passages of the search, as the unigram model has them.
    """

    question: str
    gold: list[str]
    answers: list[str]
    spans: bool
    paths: list[Path]
    order: list[Passage]


Rankings = list[list[Passage]]


def main(model: str = MODEL, questions: int | None = None, steps: str = "paths,types") -> None:
    """Print the tables for the first of the models.

    Args:
        model: Directory of a model.
        questions: Number of questions of each data set, in the order of the file; for the beam, drawn ones.
        steps: Tables, separated by commas: `"paths"`, `"types"` (without the model) or `"beam"`.
    """
    if "types" in steps:
        Console(width=150).print(by_type())
    if "beam" in steps:
        Console(width=150).print(beam(named(model)[0], questions or BEAM_QUESTIONS))
    if "paths" in steps:
        print_paths(named(model)[0], questions or QUESTIONS)


def by_type() -> Table:
    """Return R@2 of the search by the unigram model over all rows, by type of question and number of gold passages."""
    table = Table("data", "type", "gold passages", "questions", "R@2", "R@10", title="The unigram model, all questions")
    for name in ("hotpotqa", "2wiki"):
        rows = read(f"multihop/{name}")
        asked = proposed(multihop_pool(name), rows)
        kinds = [(row["type"], len(row["gold"])) for row in rows]
        for kind in [("all", 0), *sorted(set(kinds))]:
            chosen = [one for one, of in zip(asked, kinds, strict=True) if kind in (of, ("all", 0))]
            orders = [one.order for one in chosen]
            figures = (f"{100 * recall(chosen, orders, k):.1f}" for k in (2, 10))
            table.add_row(name, kind[0], str(kind[1] or ""), str(len(chosen)), *figures)
    return table


def beam(model: str, questions: int) -> Table:
    """Return the recall of a search that the language model steers, and of the unigram model's.

    The model reads TF-IDF's first 100 passages of each question. It is asked for what is not kept. A data set that is
    not kept completely is left out if the model is not on this machine.
    """
    table = Table(
        "data", "search by", "R@2", "minus unigram, 95 %", "R@10", title=f"Beam, {questions} questions of each"
    )
    for name in ("hotpotqa", "2wiki"):
        rows, pool = stratified(read(f"multihop/{name}"), questions), multihop_pool(name)
        neural = PromptRank(
            KeptModel(model, dtype="bfloat16"), instructions=PROMPTRANK_INSTRUCTIONS[:1], preset="paper"
        )
        try:
            recalls = {
                label: _search(ranker, pool, rows) for label, ranker in (("unigram", PromptRank()), (model, neural))
            }
        except InvalidInput as problem:  # the model is not on this machine
            print(f"{name}: left out. {problem}")
            continue
        for label, (at_2, at_10) in recalls.items():
            difference = "" if label == "unigram" else gain(at_2 - recalls["unigram"][0])
            table.add_row(name, label, f"{100 * at_2.mean():.1f}", difference, f"{100 * at_10.mean():.1f}")
    return table


def _search(ranker: PromptRank, pool: Sequence[Passage], rows: Sequence[dict[str, Any]]) -> tuple[Floats, Floats]:
    """Return R@2 and R@10 of each question by the paper's search."""
    search = PathSearch(ranker, pool, links=passage_links, preset="paper")
    rankings = [[item.passage.id for item in search.search(row["question"], 10)] for row in rows]
    at_2, at_10 = (
        np.array([recall_all(ids, row["gold"], k) for ids, row in zip(rankings, rows, strict=True)]) for k in (2, 10)
    )
    return at_2, at_10


def print_paths(name: str, questions: int) -> None:
    """Print the tables of the paths that the unigram model finds, scored by a model."""
    lm = KeptModel(name)
    pools = {name: multihop_pool(name) for name in ("hotpotqa", "2wiki")}
    training_pool, labelled = with_demonstrations("hotpotqa")
    training = proposed(training_pool, labelled[: min(TRAINING, questions)])
    asked = {name: proposed(pool, read(f"multihop/{name}")[:questions]) for name, pool in pools.items()}
    console = Console(width=150)
    best, tuning = tuned(lm, training)
    tables = [tuning]
    for name, paper in (("hotpotqa", HOTPOTQA), ("2wiki", TWO_WIKI)):
        rows = baselines(pools[name], asked[name]) | ranked(lm, asked[name], best, wide=name == "hotpotqa")
        selection = ", ".join(
            f"{n} {kind}" for kind, n in Counter(row["type"] for row in read(f"multihop/{name}")[:questions]).items()
        )
        spans, four = sum(one.spans for one in asked[name]), sum(len(one.gold) > 2 for one in asked[name])
        title = f"{name}, first {len(asked[name])} rows ({selection}); AR of {spans}; {four} have four gold passages"
        tables.append(shown(title, asked[name], rows, paper))
    tables.append(instructions(lm, asked["hotpotqa"]))
    lm.save()
    for table in tables:
        console.print(table)
    console.print("Tables 2 and 3 (answers): the reader, ELECTRA of Xiong et al. (2021), cannot be had.")


# R@2, R@10, AR@2, AR@10 of tables 1, 4 and A4, and of A2.
HOTPOTQA = {
    "TF-IDF": "9.9 / 27.6 / 37.6 / 53.8",
    "TF-IDF, links, BM25": "19.1 / 54.7 / 49.5 / 74.7",
    "no instruction": "42.8 / 68.9 / 69.3 / 86.8",
    "best instruction of table A1": "47.8 / 71.4 / 74.0 / 87.9",
    "… T = 1.4": "49.7 / 71.9 / 76.2 / 88.4",
    "… five instructions, max": "51.3 / 72.0 / 77.6 / 88.5",
    "… 2 demonstrations, 5 seeds": "52.3 / 73.1 / 78.6 / 88.7",
    "each document alone (table 4)": "22.8 / 52.0 / 54.9 / 73.8",
    "paths inverted (table A4)": "45.7 / 69.0 / 74.4 / 88.3 (not inverted there: 44.6 / 67.9 / 74.1)",
}
TWO_WIKI = {
    "TF-IDF": "5.8 / 8.9 / 22.2 / 37.8",
    "TF-IDF, links, BM25": "7.6 / 34.1 / 20.7 / 44.9",
    "… T = 1.4": "19.3 / 58.6 / 33.9 / 60.0",
}


def proposed(pool: Sequence[Passage], asked: Sequence[Mapping[str, Any]]) -> list[Asked]:
    """The paths of the paper's search, steered by the unigram model."""
    search = PathSearch(PromptRank(), pool, links=passage_links, preset="paper")
    found = []
    for one in asked:
        paths = [item.passage for item in search.search_paths(one["question"])]
        alone, longer = ([path for path in paths if len(path.passages) == length] for length in (1, 2))
        answers = [one.get("answer", ""), *one.get("answer_aliases", ())]
        spans = "comparison" not in one.get("type", "") and answers[0].lower() not in ("yes", "no", "")
        order = list({passage.id: passage for path in paths for passage in path.passages}.values())
        found.append(Asked(one["question"], one["gold"], answers, spans, [*alone[:K1], *longer[:PAIRS]], order))
    return found


def tuned(lm: KeptModel, training: Sequence[Asked]) -> tuple[int, Table]:
    """The best of fifty instructions on training questions, and R@2 there by instruction and temperature."""
    by_instruction = prompt_scores(lm, training, (PLAIN, *FIFTY))
    recalls = [recall_at_2(training, by_paths(training, [of[:, at] for of in by_instruction])) for at in range(51)]
    best = int(np.argmax(np.nan_to_num(recalls[1:])))
    table = Table("choice", "R@2", title=f"HotpotQA, {len(training)} training questions")
    table.add_row("no instruction", f"{100 * recalls[0]:.1f}")
    table.add_row("best instruction of table A1", f"{100 * recalls[1]:.1f}")
    table.add_row(f"best of fifty: {FIFTY[best]}", f"{100 * recalls[1 + best]:.1f}")
    for temperature in TEMPERATURES:
        scores = prompt_scores(lm, training, FIFTY[:1], temperature=temperature)
        rankings = by_paths(training, [of[:, 0] for of in scores])
        table.add_row(f"best of table A1, T = {temperature:g}", f"{100 * recall_at_2(training, rankings):.1f}")
    return best, table


def baselines(pool: Sequence[Passage], asked: Sequence[Asked]) -> dict[str, list[Rankings]]:
    """TF-IDF, what it and its links bring by BM25, and the search that proposes."""
    texts, place = [passage.titled_text for passage in pool], {passage.id: at for at, passage in enumerate(pool)}
    tfidf, bm25 = TfidfIndex(texts), BM25Index(texts)
    by_tfidf, by_bm25 = [], []
    for one in asked:
        first = [int(at) for at in top(tfidf.scores(one.question), 100)]
        linked = list(dict.fromkeys([*first, *(place[link] for at in first for link in pool[at].links)]))
        scores = bm25.scores(one.question)
        by_tfidf.append([pool[at] for at in first])
        by_bm25.append([pool[at] for at in sorted(linked, key=lambda at: -scores[at])])
    either = [sorted(one.paths, key=lambda path: -len({*path.ids} & {*one.gold})) for one in asked]
    return {
        "TF-IDF": [by_tfidf],
        "TF-IDF, links, BM25": [by_bm25],
        "the search by the unigram model": [[one.order for one in asked]],
        "the best order of its paths": [
            by_paths(
                asked,
                [[-float(paths.index(path)) for path in one.paths] for one, paths in zip(asked, either, strict=True)],
            )
        ],
    }


def ranked(lm: KeptModel, asked: Sequence[Asked], best: int, *, wide: bool) -> dict[str, list[Rankings]]:
    """What the model makes of the paths; where not `wide`, without what takes most prompts."""
    many = prompt_scores(lm, asked, (PLAIN, *(FIFTY if wide else PROMPTRANK_INSTRUCTIONS)))
    hot = prompt_scores(lm, asked, PROMPTRANK_INSTRUCTIONS[:5], temperature=TEMPERATURE)
    authors = prompt_scores(
        lm, asked, PROMPTRANK_INSTRUCTIONS[:5], temperature=TEMPERATURE, settings={"preset": "paper"}
    )

    def under(scores: Sequence[Any], join: Callable[[Any], Scores]) -> list[Rankings]:
        return [by_paths(asked, list(map(join, scores)))]

    rows = {
        "no instruction": under(many, lambda of: of[:, 0]),
        "best instruction of table A1": under(many, lambda of: of[:, 1]),
        **({"best of fifty on training": under(many, lambda of: of[:, 1 + best])} if wide else {}),
        "… T = 1.4": under(hot, lambda of: of[:, 0]),
        "… five instructions, max": under(hot, lambda of: of.max(axis=1)),
        "… five instructions, mean": under(hot, lambda of: of.mean(axis=1)),
        "preset paper: five, max, T = 1.4": under(authors, lambda of: of.max(axis=1)),
        "default: five, max, T = 1": under(many, lambda of: of[:, 1:6].max(axis=1)),
    }
    if wide:
        labelled = [
            Demonstration(Path(tuple(Passage(**part) for part in one["path"])), one["question"], one["type"])
            for one in read("multihop/demos")
            if one["dataset"] == "hotpotqa"
        ]
        seeds = [
            prompt_scores(lm, asked, FIFTY[:1], temperature=TEMPERATURE, demonstrations=demonstrations)
            for demonstrations in (sample_demonstrations(labelled, 2, seed=seed) for seed in range(SEEDS))
        ]
        rows["… 2 demonstrations, 5 seeds"] = [ranking for of in seeds for ranking in under(of, lambda of: of[:, 0])]
        alone = [
            one._replace(paths=[Path((d,)) for d in {d.id: d for p in one.paths for d in p.passages}.values()])
            for one in asked
        ]
        single = prompt_scores(lm, alone, (PLAIN,))
        rows["each document alone (table 4)"] = [by_paths(alone, [of[:, 0] for of in single])]
        inverted = [one._replace(paths=[Path(path.passages[::-1]) for path in one.paths]) for one in asked]
        turned = prompt_scores(lm, inverted, (PLAIN,))
        rows["paths inverted (table A4)"] = [by_paths(asked, [of[:, 0] for of in turned])]
    return rows


def instructions(lm: KeptModel, asked: Sequence[Asked]) -> Table:
    """Figure 4: R@2 over the instructions, and what the place of the instruction does."""
    scores = prompt_scores(lm, asked, (PLAIN, *FIFTY, *MANUAL))
    recalls = [100 * recall_at_2(asked, by_paths(asked, [of[:, at] for of in scores])) for at in range(52)]
    fifty = recalls[1:51]
    before = [recall for recall, wording in zip(fifty, FIFTY, strict=True) if not wording.startswith("{path}")]
    after = [recall for recall, wording in zip(fifty, FIFTY, strict=True) if wording.startswith("{path}")]
    table = Table("instruction (figure 4)", "R@2", title=f"HotpotQA, {len(asked)} questions")
    table.add_row("none", f"{recalls[0]:.1f}")
    table.add_row("by hand", f"{recalls[51]:.1f}")
    table.add_row("fifty: least, median, most", f"{min(fifty):.1f}, {np.median(fifty):.1f}, {max(fifty):.1f}")
    table.add_row("mean before the path (3), after it (47)", f"{np.mean(before):.1f}, {np.mean(after):.1f}")
    return table


def prompt_scores(
    lm: KeptModel,
    asked: Sequence[Asked],
    wordings: Sequence[str],
    *,
    temperature: float = 1.0,
    demonstrations: Sequence[Demonstration] = (),
    **options: Any,
) -> list[Any]:
    """Scores of each question's paths under each wording, shape (paths, wordings)."""
    ranker = PromptRank(lm, instructions=wordings, temperature=temperature, demonstrations=demonstrations, **options)
    return [np.array(ranker.score_prompts(one.question, one.paths))[:, :, 0] for one in asked]


def by_paths(asked: Sequence[Asked], scores: Sequence[Scores]) -> Rankings:
    """The passages of each question by the best of their paths; empty where a score is unknown."""
    rankings = []
    for one, of_paths in zip(asked, scores, strict=True):
        places = sorted(range(len(one.paths)), key=lambda at: -of_paths[at])
        passages = [passage for at in places for passage in one.paths[at].passages]
        known = bool(np.isfinite(of_paths).all())
        rankings.append(list({passage.id: passage for passage in [*passages, *one.order]}.values()) if known else [])
    return rankings


def recall_at_2(asked: Sequence[Asked], rankings: Rankings) -> float:
    return recall(asked, rankings, 2) if all(rankings) else float("nan")


def recall(asked: Sequence[Asked], rankings: Rankings, k: int) -> float:
    pairs = zip(asked, rankings, strict=True)
    return float(np.mean([recall_all([one.id for one in ranking], of.gold, k) for of, ranking in pairs]))


def shown(title: str, asked: Sequence[Asked], rows: Mapping[str, list[Rankings]], paper: Mapping[str, str]) -> Table:
    """R@k and, over answers in words, AR@k; of several rankings mean and standard deviation."""
    columns = ("R@2", "R@10", "AR@2", "AR@10", "R@20", "AR@20")
    table = Table(
        "paths by",
        "paper",
        *columns,
        "R@2 minus no instruction, 95 %",
        title=f"{title}; the paper's R@2 / R@10 / AR@2 / AR@10",
    )
    for name, several in rows.items():
        if not all(all(rankings) for rankings in several):
            table.add_row(name, paper.get(name, ""), *["?"] * (len(columns) + 1))
            continue
        figures = np.array([[100 * figure for figure in measured(asked, rankings)] for rankings in several])
        cells = [f"{mean:.1f}" for mean in figures.mean(axis=0)]
        if len(several) > 1:
            cells = [f"{cell} ({spread:.1f})" for cell, spread in zip(cells, figures.std(axis=0), strict=True)]
        base = rows["no instruction"][0]
        differences = np.mean([at_2(asked, rankings) for rankings in several], axis=0) - at_2(asked, base)
        table.add_row(name, paper.get(name, ""), *cells, "" if name == "no instruction" else gain(differences))
    return table


def at_2(asked: Sequence[Asked], rankings: Rankings) -> Any:
    """Return for each question 1 if all gold passages are among the first two, else 0."""
    return np.array([recall_all([p.id for p in of], one.gold, 2) for one, of in zip(asked, rankings, strict=True)])


def measured(asked: Sequence[Asked], rankings: Rankings) -> list[float]:
    spans = [(one, ranking) for one, ranking in zip(asked, rankings, strict=True) if one.spans]

    def answered(k: int) -> float:
        return float(np.mean([exact_match([p.titled_text for p in found[:k]], one.answers, k) for one, found in spans]))

    return [
        *(recall(asked, rankings, k) for k in (2, 10)),
        *map(answered, (2, 10)),
        recall(asked, rankings, 20),
        answered(20),
    ]
