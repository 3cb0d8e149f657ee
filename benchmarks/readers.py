"""UPR with real language models on SQuAD and NQ: alone, in sums, as the papers' prompts and chat templates ask them.

Candidates are BM25's first 20, MiniLM's first 20, or both together. Choices (weights, prompts) are made on the first
half of each data set; the figures are those of the second half. What the models said is kept (`kept.py`), so that a
second run takes a minute; `--model A,B` are directories of models, `--questions` those of each data set.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from drillrank import UPR, Passage, Relevance, load_language_model
from drillrank.likelihood import EmbeddingModel, LanguageModel
from drillrank.passages import Ranking
from drillrank.rerank.prior import Prior
from drillrank.rerank.upr import UPR_PROMPT
from drillrank.vectors import Floats, top

from .data import read, rerank_pool
from .kept import MODELS, KeptModel
from .measure import bootstrap_interval, gain
from .minilm import minilm, minilm_folder
from .static_embeddings import distilled

DATASETS = ("nq", "squad")
DEPTH, SAMPLE, SEED = 20, 300, 40
WEIGHTS = (1.0, 2.0, 0.5, 4.0, 0.25, 8.0)  # of weights that are as good, the first is taken
READ = (5, 10, 20, None)  # passages that a sum reads; None for all
PROMPTS = {
    "UPR's": UPR_PROMPT,
    "UPR's, published code": "Passage: {title} {text}. Please write a question based on this passage. Question:",
    "text, then Question:": "{title}\n{text}\n\nQuestion:",
    "asked for": "{title}\n{text}\n\nA question that this text answers:",
}
SHORT = 38  # questions of each half of each data set by which prompts are chosen, and of which they are reported


class Question(NamedTuple):
    """A question with its candidates, BM25's first, and the half of the data set from which it comes: 0 or 1."""

    data: str
    text: str
    half: int
    candidates: list[Passage]
    gold: Floats  # whether each candidate is a gold passage
    cosines: Floats
    by_words: Floats  # whether BM25 found it
    by_meaning: Floats  # whether MiniLM did


def main(model: str = ",".join(MODELS), questions: int = SAMPLE, vectors: str | None = None) -> None:
    with TemporaryDirectory() as temporary:
        distilled(minilm_folder(), Path(temporary) / "static")
        meaning = EmbeddingModel(minilm(), directory=Path(vectors or temporary) / "minilm")
        asked, texts = _questions(questions, meaning)
        neural = {name.rpartition("/")[2]: KeptModel(name) for name in model.split(",")}
        experts: dict[str, LanguageModel] = {
            "unigram": load_language_model("unigram"),
            "m2v:": load_language_model(f"m2v:{temporary}/static"),
            "st:": meaning,
            **neural,
        }
        scores = {"MiniLM's cosine": [question.cosines for question in asked]}
        scores |= {name: _means(lm, asked, texts) for name, lm in experts.items()}
        prior = {name: _means(experts[name], asked, texts, "cosine") for name in ("unigram", *neural)}
    sums = [(first, name) for first in ("unigram", "m2v:", "st:") for name in neural]
    sums += [("unigram", "st:"), *(("unigram", "st:", name) for name in neural)]
    console = Console(width=200)
    for where, shown in {"BM25": "BM25's first 20", "MiniLM": "MiniLM's first 20", "both": "both"}.items():
        table = _table("ranked by", "weights", title=f"Candidates: {shown}")
        masks = [_mask(question, where) for question in asked]
        if where != "MiniLM":
            table.add_row("BM25's order", "", *_figures(asked, [-np.arange(len(q.gold)) for q in asked], masks), "")
        for name, values in scores.items():
            table.add_row(name, "", *_figures(asked, values, masks), "")
        for name, values in prior.items():
            gains = _hits(asked, values, masks) - _hits(asked, scores[name], masks)
            table.add_row(f"{name}, cosine as prior", "", *_figures(asked, values, masks), gain(gains))
        for names in sums:
            chosen = _best(asked, [scores[name] for name in names], masks)
            for weights in dict.fromkeys([(1.0,) * len(names), chosen]):
                added = _added([scores[name] for name in names], weights)
                gains = _hits(asked, added, masks) - _hits(asked, scores[names[0]], masks)
                label = ", ".join(f"{weight:g}" for weight in weights) + " (chosen)" * (weights == chosen)
                table.add_row(" + ".join(names), label, *_figures(asked, added, masks), gain(gains))
        console.print(f"{len(asked)} questions, {np.mean([mask.sum() for mask in masks]):.1f} candidates each", table)
    console.print(_two_stages(asked, scores, prior["unigram"], sums, neural))
    console.print(_prompts(asked, texts, neural))
    console.print(_relevance(asked, neural))


def _two_stages(
    asked: Sequence[Question],
    scores: Mapping[str, Sequence[Floats]],
    with_prior: Sequence[Floats],
    sums: Sequence[tuple[str, ...]],
    neural: Mapping[str, LanguageModel],
) -> Table:
    """A sum reads what its first expert finds best; with the cosine as prior, as behind a dense first stage, too."""
    title = "Two stages, both candidates, weights of 1: the last column is all, less this"
    table = _table("ranked by", "read", title=title)
    masks = [_mask(question, "both") for question in asked]
    priors = [one - other for one, other in zip(with_prior, scores["unigram"], strict=True)]
    nothing = [np.zeros(len(question.candidates)) for question in asked]
    kinds = [(names, "", nothing) for names in sums] + [
        (("unigram", name), ", cosine as prior", priors) for name in neural
    ]
    for names, label, prior in kinds:
        first = _added([scores[names[0]], prior], (1.0, 1.0))
        added = _added([*(scores[name] for name in names), prior], (1.0,) * (len(names) + 1))
        for most in READ if names[-1] in neural else ():
            values = [_in_two_stages(*pair, most) for pair in zip(first, added, strict=True)]
            worse = gain(_hits(asked, added, masks) - _hits(asked, values, masks))
            table.add_row(" + ".join(names) + label, str(most or "all"), *_figures(asked, values, masks), worse)
    return table


def _prompts(asked: Sequence[Question], texts: Mapping[str, Sequence[str]], neural: Mapping[str, KeptModel]) -> Table:
    """Four prompts, in the chat template where the model has one: first halves to choose by, second ones to report."""
    some = _some(asked)
    masks = [_mask(question, "both") for question in some]
    halves = ("1st half, top-1", "2nd half, top-1", "3", "with unigram, top-1")
    table = Table("model", "prompt", "chat", *halves, title=f"Prompts: {len(some)} questions")
    words = _means(load_language_model("unigram"), some, texts)
    for name, lm in neural.items():
        for (label, template), chat in product(PROMPTS.items(), (False, True) if "smollm2" in name else (False,)):
            reader = KeptModel(lm.name, chat=True) if chat else lm
            values = _means(reader, some, {}, template=template)
            first, second = (_ranks(some, values, masks, DATASETS, half) for half in (0, 1))
            added = _hits(some, _added([words, values], (1.0, 1.0)), masks)
            cells = [np.mean(first <= 1), np.mean(second <= 1), np.mean(second <= 3), np.mean(added)]
            table.add_row(name, label, "yes" if chat else "no", *(f"{value:.3f}" for value in cells))
    return table


def _relevance(asked: Sequence[Question], neural: Mapping[str, KeptModel]) -> Table:
    """Yes or no beside the likelihood of the question, on the same questions."""
    some = _some(asked)
    masks = [_mask(question, "both") for question in some]
    title = f"Relevance (preset yes-no) beside UPR, {len(some)} questions; the last column is less UPR"
    table = _table("ranked by", "", title=title)
    for name, lm in neural.items():
        upr = _means(lm, some, {})
        table.add_row(f"UPR, {name}", "", *_figures(some, upr, masks), "")
        chat = "smollm2" in name
        ranker = Relevance(lm, preset="yes-no", settings={"chat": chat})
        rankings = ranker.rank_many([q.text for q in some], [q.candidates for q in some])
        values = [_by_place(ranking) for ranking in rankings]
        gains = _hits(some, values, masks) - _hits(some, upr, masks)
        table.add_row(f"Relevance, {name}", "chat" if chat else "", *_figures(some, values, masks), gain(gains))
    return table


def _some(asked: Sequence[Question]) -> list[Question]:
    chosen = []
    for data, half in product(DATASETS, (0, 1)):
        chosen += [question for question in asked if (question.data, question.half) == (data, half)][:SHORT]
    return chosen


def _means(
    lm: LanguageModel,
    asked: Sequence[Question],
    texts: Mapping[str, Sequence[str]],
    prior: Prior | None = None,
    template: str = UPR_PROMPT,
) -> list[Floats]:
    """The score of every candidate of each question, in order."""
    values: dict[int, Floats] = {}
    for data in DATASETS:
        places = [place for place, question in enumerate(asked) if question.data == data]
        of_data = [asked[place] for place in places]
        fitted = lm.fitted(texts[data]) if texts.get(data) else lm
        ranker = UPR(fitted, prior=prior, template=template)
        scores = None if prior is None else [question.cosines.tolist() for question in of_data]
        rankings = ranker.rank_many([q.text for q in of_data], [q.candidates for q in of_data], scores=scores)
        values |= zip(places, map(_by_place, rankings), strict=True)
    return [values[place] for place in range(len(asked))]


def _by_place(ranking: Ranking[Passage]) -> Floats:
    """The scores in the order of the candidates."""
    return np.array([item.score for item in sorted(ranking, key=lambda item: item.details["position"])])


def _mask(question: Question, where: str) -> npt.NDArray[np.bool_]:
    found = {"BM25": question.by_words, "MiniLM": question.by_meaning, "both": question.by_words + question.by_meaning}
    return found[where] > 0


def _in_two_stages(first: Floats, added: Floats, most: int | None) -> Floats:
    """Scores in two stages: the sum's of what the first expert finds best, below them the order of the others."""
    best = np.argsort(-first, kind="stable")[:most]
    values: Floats = first - first.max() + added[best].min() - 1.0
    values[best] = added[best]
    return values


def _added(scores: Sequence[Sequence[Floats]], weights: Sequence[float]) -> list[Floats]:
    """A sum of experts for each question."""
    pairs = [zip(weights, of_question, strict=True) for of_question in zip(*scores, strict=True)]
    return [np.sum([weight * values for weight, values in pair], axis=0) for pair in pairs]


def _ranks(
    asked: Sequence[Question], scores: Sequence[Floats], masks: Sequence[Floats], data: Sequence[str], half: int
) -> Floats:
    """Of the best gold passage, for each question of a half: 1 for the first, infinite where it is no candidate."""
    ranks = []
    for question, values, mask in zip(asked, scores, masks, strict=True):
        if question.data in data and question.half == half:
            order = np.argsort(-values[mask], kind="stable")
            found = np.flatnonzero(question.gold[mask][order])
            ranks.append(found[0] + 1.0 if len(found) else np.inf)
    return np.array(ranks)


def _best(asked: Sequence[Question], scores: Sequence[Sequence[Floats]], masks: Sequence[Floats]) -> tuple[float, ...]:
    """Weights with the largest mean reciprocal rank on the first halves, that of the first expert being 1."""
    grid = [(1.0, *others) for others in product(WEIGHTS, repeat=len(scores) - 1)]
    return max(grid, key=lambda weights: np.mean(1 / _ranks(asked, _added(scores, weights), masks, DATASETS, 0)))


def _hits(asked: Sequence[Question], scores: Sequence[Floats], masks: Sequence[Floats]) -> Floats:
    """Whether the first one is a gold passage, for each question of the second halves."""
    return (_ranks(asked, scores, masks, DATASETS, 1) <= 1).astype(float)


def _table(*first: str, title: str) -> Table:
    columns = [f"{data} {column}" for data in ("NQ", "SQuAD") for column in ("top-1", "3", "5")]
    return Table(*first, *columns, "both, top-1", "more than its first", title=title)


def _figures(asked: Sequence[Question], scores: Sequence[Floats], masks: Sequence[Floats]) -> list[str]:
    figures = []
    for data in DATASETS:
        ranks = _ranks(asked, scores, masks, [data], 1)
        figures += [f"{np.mean(ranks <= k):.3f}" for k in (1, 3, 5)]
    hits = _hits(asked, scores, masks)
    low, high = bootstrap_interval(hits)
    return [*figures, f"{np.mean(hits):.3f} [{low:.3f}, {high:.3f}]"]


def _questions(number: int, meaning: LanguageModel) -> tuple[list[Question], dict[str, list[str]]]:
    """Questions of both halves of each data set by turns, so that the first ones are a sample of everything."""
    asked, texts = [], {}
    for data in DATASETS:
        pool = rerank_pool(data)
        places = {passage.id: place for place, passage in enumerate(pool)}
        texts[data] = [passage.titled_text for passage in pool]
        rows = read(f"rerank/{data}")
        halves = [rows[: len(rows) // 2], rows[len(rows) // 2 :]]
        drawn = [random.Random(SEED).sample(half, SAMPLE // 2) for half in halves]
        fitted = cast("EmbeddingModel", meaning.fitted(texts[data]))
        for row, half in [(row, half) for pair in zip(*drawn, strict=True) for half, row in enumerate(pair)][:number]:
            cosines = fitted.document_log_probs(row["question"], texts[data])[:, -1] / fitted.kappa + 1
            by_words = [places[id_] for id_ in row["bm25_top"][:DEPTH]]
            by_meaning = [*map(int, top(cosines, DEPTH))]
            found = list(dict.fromkeys([*by_words, *by_meaning]))
            candidates = [pool[place] for place in found]
            marks = [np.array([place in some for place in found], float) for some in (by_words, by_meaning)]
            gold = np.array([passage.id in row["gold"] for passage in candidates], dtype=np.float64)
            asked.append(Question(data, row["question"], half, candidates, gold, cosines[found], *marks))
    return asked, texts
