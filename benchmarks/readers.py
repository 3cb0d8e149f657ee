"""UPR with real language models on SQuAD and NQ: alone, in sums, as the papers' prompts and chat templates ask them.

Candidates are BM25's first 20 and those of an encoder, MiniLM or mpnet. Choices (weights, prompts) are made on the
first half of each data set; the figures are those of the second half. What the models said is kept (`kept.py`), and so
are candidates and cosines (`KEPT_CANDIDATES`), so that all tables take a minute without a model or an encoder.

SmolLM2 and Gemma have read all candidates in float32. In the table of readers, models read the best ten only, in two
stages, as `UPR` does by default. There, Qwen2.5-Coder-Instruct with 0.5 and 1.5 billion parameters reads in bfloat16.
`--model A,B` names the models of that table, and `--questions` limits the questions of each data set in the others.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from drillrank import UPR, Passage, Relevance, load_language_model
from drillrank.errors import InvalidInput
from drillrank.likelihood import LanguageModel, UnigramModel
from drillrank.likelihood.encoder import KAPPA
from drillrank.passages import Ranking
from drillrank.rerank.upr import UPR_PROMPT
from drillrank.vectors import Floats, top

from .data import read, rerank_pool
from .kept import INSTRUCTED, KEPT, MODELS, KeptModel, folder_of, key_of, named
from .measure import bootstrap_interval, gain, resident
from .minilm import minilm

Mask = npt.NDArray[np.bool_]

DATASETS = ("nq", "squad")
ENCODERS = ("MiniLM", "mpnet")
DEPTH, SAMPLE, SEED = 20, 300, 40
WEIGHTS = (1.0, 2.0, 0.5, 4.0, 0.25, 8.0)  # of weights that are as good, the first is taken
TOTAL_WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)  # ρ
READ = (5, 10, 20, None)  # passages that a sum reads; None for all
PROMPTS = {
    "UPR's": UPR_PROMPT,
    "UPR's, published code": "Passage: {title} {text}. Please write a question based on this passage. Question:",
    "text, then Question:": "{title}\n{text}\n\nQuestion:",
    "asked for": "{title}\n{text}\n\nA question that this text answers:",
}
SHORT = 38  # questions of each half of each data set by which prompts are chosen, and of which they are reported
N_COST_PASSAGES = 20
N_READERS, N_READ = 75, 10  # questions of each data set in the table of readers, and passages that a model reads
READERS = {"smollm2": N_READERS, "gemma3-270m": N_READERS, "qwen-0.5b": 30, "qwen-1.5b": 12}
KEPT_CANDIDATES = KEPT / "readers_candidates.npz"


class Question(NamedTuple):
    """A question with its candidates, BM25's first, and the half of the data set from which it comes: 0 or 1.

    Attributes:
        gold: 1 for each candidate that is a gold passage, else 0.
        cosines: Cosine of each candidate, by encoder.
        first_of: 1 for each candidate among the first 20 of "BM25" or an encoder, else 0.
    """

    data: str
    text: str
    half: int
    candidates: list[Passage]
    gold: Floats
    cosines: dict[str, Floats]
    first_of: dict[str, Floats]


def main(model: str = ",".join(READERS), questions: int = SAMPLE) -> None:
    asked, texts = _questions(questions, ENCODERS[:1])
    neural = {name: KeptModel(name) for name in MODELS}
    unigram = load_language_model("unigram")
    means = {"unigram": _means(unigram, asked, texts)}
    scores = {f"{name}'s cosine": [question.cosines[name] for question in asked] for name in ENCODERS}
    scores |= means | {f"st: {name}": _with_meaning(asked, means["unigram"], name) for name in ENCODERS}
    scores |= {name: _means(lm, asked, texts) for name, lm in neural.items()}
    prior = {
        f"{name}, cosine of {encoder} as prior": (name, _means(lm, asked, texts, encoder))
        for name, lm in {"unigram": unigram, **neural}.items()
        for encoder in ENCODERS
    }
    firsts = ("unigram", *(f"st: {encoder}" for encoder in ENCODERS))
    sums: list[tuple[str, ...]] = [(first, name) for first in firsts for name in neural]
    sums += [(first, *neural) for first in firsts]
    console = Console(width=200)
    console.print(_readers(named(model)))
    console.print(_costs(named(model)))
    for where, shown in {"BM25": "BM25's first 20", "MiniLM": "MiniLM's first 20", "both": "both"}.items():
        table = _table("ranked by", "weights", title=f"Candidates: {shown}")
        masks = [_mask(question, where) for question in asked]
        if where != "MiniLM":
            table.add_row(
                "BM25's order",
                "",
                *_figures(asked, [-np.arange(len(q.gold), dtype=np.float64) for q in asked], masks),
                "",
            )
        for name, values in scores.items():
            table.add_row(name, "", *_figures(asked, values, masks), "")
        for label, (name, values) in prior.items():
            gains = _hits(asked, values, masks) - _hits(asked, scores[name], masks)
            table.add_row(label, "", *_figures(asked, values, masks), gain(gains))
        for names in sums:
            chosen = _best(asked, [scores[name] for name in names], masks)
            for weights in dict.fromkeys([(1.0,) * len(names), chosen]):
                added = _added([scores[name] for name in names], weights)
                gains = _hits(asked, added, masks) - _hits(asked, scores[names[0]], masks)
                label = ", ".join(f"{weight:g}" for weight in weights) + " (chosen)" * (weights == chosen)
                table.add_row(" + ".join(names), label, *_figures(asked, added, masks), gain(gains))
        console.print(f"{len(asked)} questions, {np.mean([mask.sum() for mask in masks]):.1f} candidates each", table)
    _, with_prior = prior[f"unigram, cosine of {ENCODERS[0]} as prior"]
    console.print(_two_stages(asked, scores, with_prior, sums, neural))
    console.print(_total_weights(asked, texts, neural))
    console.print(_prompts(asked, texts, neural))
    console.print(_relevance(asked, neural))


def _readers(models: Sequence[str]) -> Table:
    """Return what models add as readers of the best ten, behind words alone and behind words with an encoder.

    Candidates are the first 20 of BM25 and of both encoders together. All weights are 1. A model is left out if its
    scores are not kept and it is not on this machine. Models that follow instructions also judge by yes or no, behind
    words and MiniLM.
    """
    columns = ("NQ, top-1", "SQuAD, top-1", "both, top-1", "top-3", "top-1, less no reader")
    table = Table("first stage", "reader", "questions", *columns, title=f"Models read the best {N_READ}")
    everything, texts = _questions(SAMPLE, ENCODERS)
    second_halves = [question for question in everything if question.half == 1]
    asked = [one for data in DATASETS for one in [q for q in second_halves if q.data == data][: max(READERS.values())]]
    unigram = load_language_model("unigram")
    for encoder in (None, *ENCODERS):
        first = _means(unigram, asked, texts, encoder)
        label = "words" if encoder is None else f"words, cosine of {encoder}"
        table.add_row(label, "", str(len(asked)), *_top_figures(asked, first), "")
        read_by = {}
        for name in models:
            with suppress(InvalidInput):  # its scores are not kept, and it is not on this machine
                read_by[name] = _read_best(name, asked, first)
        sums: list[tuple[str, ...]] = [(name,) for name in read_by]
        sums += [tuple(read_by)[:count] for count in range(2, len(read_by) + 1)]
        for names in sums:
            rows = [row for row in range(len(asked)) if all(row in read_by[name] for name in names)]
            if not rows:
                continue
            some, firsts = [asked[row] for row in rows], [first[row] for row in rows]
            added = _added(
                [firsts, *([read_by[name][row] for row in rows] for name in names)], (1.0,) * (len(names) + 1)
            )
            values = [_in_two_stages(*pair, N_READ) for pair in zip(firsts, added, strict=True)]
            gains = _is_first(some, values, 1) - _is_first(some, firsts, 1)
            table.add_row(label, " + ".join(names), str(len(rows)), *_top_figures(some, values), gain(gains))
        judges = [name for name in read_by if Path(name).name in INSTRUCTED and encoder == "MiniLM"]
        for name in judges:
            with suppress(InvalidInput):
                judged = _read_best(name, asked, first, yes_no=True)
                some, firsts = [asked[row] for row in judged], [first[row] for row in judged]
                values = [_in_two_stages(*pair, N_READ) for pair in zip(firsts, judged.values(), strict=True)]
                gains = _is_first(some, values, 1) - _is_first(some, firsts, 1)
                table.add_row(label, f"{name}, yes or no", str(len(some)), *_top_figures(some, values), gain(gains))
        table.add_section()
    return table


def _read_best(
    name: str, asked: Sequence[Question], first: Sequence[Floats], *, yes_no: bool = False
) -> dict[int, Floats]:
    """Return scores of the best candidates, 0 for the others, by question that the model reads.

    Args:
        name: Directory of a model.
        asked: Questions.
        first: Scores of the first stage.
        yes_no: True for log P(yes) of a judgment, False for the mean log-likelihood of the question.
    """
    lm = KeptModel(name, dtype="float32" if name in MODELS else "bfloat16")
    ranker = Relevance(lm, preset="yes-no", settings={"chat": True}) if yes_no else UPR(lm, prior=None)
    n_seen: Counter[str] = Counter()
    best = {}
    for row, (question, scores) in enumerate(zip(asked, first, strict=True)):
        n_seen[question.data] += 1
        if n_seen[question.data] <= READERS.get(Path(name).name, N_READERS):
            best[row] = np.argsort(-scores, kind="stable")[:N_READ]
    candidates = [[asked[row].candidates[index] for index in indices] for row, indices in best.items()]
    rankings = ranker.rank_many([asked[row].text for row in best], candidates)
    values = {row: np.zeros(len(first[row])) for row in best}
    for (row, indices), ranking in zip(best.items(), rankings, strict=True):
        values[row][indices] = _by_place(ranking)
    return values


def _top_figures(asked: Sequence[Question], scores: Sequence[Floats]) -> list[str]:
    """Return the share of questions with a gold passage first, by data set and for both, and among the first three."""
    hits, data = _is_first(asked, scores, 1), np.array([question.data for question in asked])
    low, high = bootstrap_interval(hits)
    by_data = [f"{hits[data == name].mean():.3f}" for name in DATASETS]
    return [*by_data, f"{hits.mean():.3f} [{low:.3f}, {high:.3f}]", f"{_is_first(asked, scores, 3).mean():.3f}"]


def _is_first(asked: Sequence[Question], scores: Sequence[Floats], k: int) -> Floats:
    """Return 1 for each question with a gold passage among the first k, else 0."""
    rows = zip(asked, scores, strict=True)
    return np.array([question.gold[np.argsort(-values, kind="stable")[:k]].max() for question, values in rows])


def _costs(models: Sequence[str]) -> Table:
    """Return memory and time of each model in a process of its own: 20 passages of NQ, with a cache of prefixes.

    Models that are not on this machine are left out.
    """
    title = f"{N_COST_PASSAGES} passages of NQ, bfloat16: the first question, and the second one to the same passages"
    table = Table("model", "GB peak", "s to load", "s, first question", "s, second question", title=title)
    for name in models:
        with suppress(InvalidInput):
            process = subprocess.run(
                [sys.executable, "-c", f"from benchmarks.readers import cost; cost({str(folder_of(name))!r})"],
                capture_output=True,
                check=True,
                text=True,
            )
            table.add_row(Path(name).name, *process.stdout.split())
    return table


def cost(folder: str) -> None:
    """Print the peak of resident memory in GB, and the seconds to load a model and to answer two questions."""
    passages = rerank_pool("nq")[:N_COST_PASSAGES]
    ranker = UPR(load_language_model(f"hf:{folder}", dtype="bfloat16", prefix_cache="1 GB"), prior=None)
    seconds = []
    for question, candidates in (
        ("Who?", passages[:1]),
        *((row["question"], passages) for row in read("rerank/nq")[:2]),
    ):
        started = perf_counter()
        ranker.rank(question, candidates)
        seconds.append(perf_counter() - started)
    print(f"{resident('VmHWM') / 1e6:.1f}", *(f"{value:.1f}" for value in seconds))


def _total_weights(
    asked: Sequence[Question], texts: Mapping[str, Sequence[str]], neural: Mapping[str, LanguageModel]
) -> Table:
    """Return top-1 of all questions by the weight of a reader's total log-likelihood, as D3 adds it to that of words.

    Candidates are BM25's.
    """
    title = f"log p(question | passage) of words + ρ times that of a reader, {len(asked)} questions: top-1"
    table = Table("reader", *(f"ρ {weight:g}" for weight in TOTAL_WEIGHTS), title=title)
    words = _totals(asked, _means(load_language_model("unigram"), asked, texts), UnigramModel())
    for name, lm in neural.items():
        totals = _totals(asked, _means(lm, asked, texts), lm)
        masks = [np.where(_mask(question, "BM25"), 0.0, -np.inf) for question in asked]
        sums = [_added([words, totals, masks], (1.0, weight, 1.0)) for weight in TOTAL_WEIGHTS]
        shares = [_is_first(asked, scores, 1).mean() for scores in sums]
        table.add_row(name, *(f"{share:.3f}" for share in shares))
    return table


def _totals(asked: Sequence[Question], means: Sequence[Floats], lm: LanguageModel) -> list[Floats]:
    """Return total log-likelihoods: means times the number of tokens in the question."""
    rankings = UPR(lm, prior=None).rank_many([q.text for q in asked], [q.candidates[:1] for q in asked])
    return [ranking[0].details["tokens"] * values for ranking, values in zip(rankings, means, strict=True)]


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
    encoder: str | None = None,
    template: str = UPR_PROMPT,
) -> list[Floats]:
    """The score of every candidate of each question, in order, with cosines of an encoder as the prior."""
    values: dict[int, Floats] = {}
    for data in DATASETS:
        places = [place for place, question in enumerate(asked) if question.data == data]
        of_data = [asked[place] for place in places]
        fitted = lm.fitted(texts[data]) if texts.get(data) else lm
        ranker = UPR(fitted, prior=None if encoder is None else "cosine", template=template)
        scores = None if encoder is None else [question.cosines[encoder].tolist() for question in of_data]
        rankings = ranker.rank_many([q.text for q in of_data], [q.candidates for q in of_data], scores=scores)
        values |= zip(places, map(_by_place, rankings), strict=True)
    return [values[place] for place in range(len(asked))]


def _with_meaning(asked: Sequence[Question], unigram: Sequence[Floats], encoder: str) -> list[Floats]:
    """Return the scores of an `st:` model: its cosine is one more token of each question (`EmbeddingModel`)."""
    scores = []
    for question, means in zip(asked, unigram, strict=True):
        [words] = UnigramModel().log_likelihood([(question.text, question.text)])
        n_tokens = len(words.tokens)
        scores.append((n_tokens * means + KAPPA * (question.cosines[encoder] - 1)) / (n_tokens + 1))
    return scores


def _by_place(ranking: Ranking[Passage]) -> Floats:
    """The scores in the order of the candidates."""
    return np.array([item.score for item in sorted(ranking, key=lambda item: item.details["position"])])


def _mask(question: Question, where: str) -> Mask:
    if where == "both":
        return np.ones(len(question.candidates), np.bool_)
    return question.first_of[where] > 0


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
    asked: Sequence[Question], scores: Sequence[Floats], masks: Sequence[Mask], data: Sequence[str], half: int
) -> Floats:
    """Of the best gold passage, for each question of a half: 1 for the first, infinite where it is no candidate."""
    ranks = []
    for question, values, mask in zip(asked, scores, masks, strict=True):
        if question.data in data and question.half == half:
            order = np.argsort(-values[mask], kind="stable")
            found = np.flatnonzero(question.gold[mask][order])
            ranks.append(found[0] + 1.0 if len(found) else np.inf)
    return np.array(ranks)


def _best(asked: Sequence[Question], scores: Sequence[Sequence[Floats]], masks: Sequence[Mask]) -> tuple[float, ...]:
    """Weights with the largest mean reciprocal rank on the first halves, that of the first expert being 1."""
    grid = [(1.0, *others) for others in product(WEIGHTS, repeat=len(scores) - 1)]
    return max(grid, key=lambda weights: np.mean(1 / _ranks(asked, _added(scores, weights), masks, DATASETS, 0)))


def _hits(asked: Sequence[Question], scores: Sequence[Floats], masks: Sequence[Mask]) -> Floats:
    """Whether the first one is a gold passage, for each question of the second halves."""
    return (_ranks(asked, scores, masks, DATASETS, 1) <= 1).astype(float)


def _table(*first: str, title: str) -> Table:
    columns = [f"{data} {column}" for data in ("NQ", "SQuAD") for column in ("top-1", "3", "5")]
    return Table(*first, *columns, "both, top-1", "more than its first", title=title)


def _figures(asked: Sequence[Question], scores: Sequence[Floats], masks: Sequence[Mask]) -> list[str]:
    figures = []
    for data in DATASETS:
        ranks = _ranks(asked, scores, masks, [data], 1)
        figures += [f"{np.mean(ranks <= k):.3f}" for k in (1, 3, 5)]
    hits = _hits(asked, scores, masks)
    low, high = bootstrap_interval(hits)
    return [*figures, f"{np.mean(hits):.3f} [{low:.3f}, {high:.3f}]"]


def _questions(number: int, encoders: Sequence[str]) -> tuple[list[Question], dict[str, list[str]]]:
    """Return questions of both halves of each data set by turns, so that the first ones are a sample of everything.

    Args:
        number: Number of questions of each data set.
        encoders: Encoders whose first 20 passages are candidates, next to BM25's.

    Returns:
        The questions, and the texts of each data set's pool.
    """
    asked, texts = [], {}
    for data in DATASETS:
        pool = rerank_pool(data)
        index_by_id = {passage.id: index for index, passage in enumerate(pool)}
        texts[data] = [passage.titled_text for passage in pool]
        rows = read(f"rerank/{data}")
        halves = [rows[: len(rows) // 2], rows[len(rows) // 2 :]]
        drawn = [random.Random(SEED).sample(half, SAMPLE // 2) for half in halves]
        sample = [(row, half) for pair in zip(*drawn, strict=True) for half, row in enumerate(pair)]
        lexical = [[index_by_id[id_] for id_ in row["bm25_top"][:DEPTH]] for row, _ in sample]
        dense = _dense_candidates(data, texts[data], [row["question"] for row, _ in sample], lexical)
        for (row, half), by_words, (firsts, cosines) in list(zip(sample, lexical, dense, strict=True))[:number]:
            found = {"BM25": by_words} | {name: firsts[name] for name in encoders}
            indices = list(dict.fromkeys(index for some in found.values() for index in some))
            candidates = [pool[index] for index in indices]
            first_of = {name: np.array([index in some for index in indices], float) for name, some in found.items()}
            of_candidates = {name: np.array([values[index] for index in indices]) for name, values in cosines.items()}
            gold = np.array([passage.id in row["gold"] for passage in candidates], dtype=np.float64)
            asked.append(Question(data, row["question"], half, candidates, gold, of_candidates, first_of))
    return asked, texts


Dense = tuple[dict[str, list[int]], dict[str, dict[int, float]]]
"""Indices of the first 20 passages, and the cosine by index, for each encoder."""


def _dense_candidates(
    data: str, pool: list[str], questions: list[str], lexical: Sequence[Sequence[int]]
) -> Iterator[Dense]:
    """Yield the candidates of each question, and the cosines of all that BM25 or an encoder found."""
    kept = dict(np.load(KEPT_CANDIDATES)) if KEPT_CANDIDATES.exists() else {}
    key = key_of(pool, questions)
    if int(kept.get(f"{data}-key", 0)) != key:
        kept |= {f"{data}-{name}": values for name, values in _find_candidates(pool, questions, lexical).items()}
        kept[f"{data}-key"] = np.array(key, dtype=np.uint64)
        np.savez_compressed(KEPT_CANDIDATES, **kept)
    for row, indices in enumerate(kept[f"{data}-indices"].tolist()):
        firsts = {name: kept[f"{data}-{name}-first"][row].tolist() for name in ENCODERS}
        cosines = {name: kept[f"{data}-{name}-cosines"][row].tolist() for name in ENCODERS}
        yield firsts, {name: dict(zip(indices, values, strict=True)) for name, values in cosines.items()}


def _find_candidates(
    pool: list[str], questions: list[str], lexical: Sequence[Sequence[int]]
) -> dict[str, npt.NDArray[Any]]:
    """Return arrays: the first 20 of each encoder; all candidates, padded with the first one; and their cosines.

    mpnet's vectors are computed in bfloat16.
    """
    encoders = {"MiniLM": minilm(), "mpnet": minilm("bfloat16", folder_of("mpnet"), 384)}
    cosines = {name: embed(questions) @ embed(pool).T for name, embed in encoders.items()}
    firsts = {name: np.array([top(row, DEPTH) for row in values]) for name, values in cosines.items()}
    width = DEPTH * (1 + len(ENCODERS))
    rows = np.concatenate([np.array(lexical), *firsts.values()], axis=1)
    indices = np.array([np.resize([*dict.fromkeys(row)], width)[:width] for row in rows.tolist()])
    arrays = {f"{name}-first": values.astype(np.uint16) for name, values in firsts.items()}
    arrays |= {f"{name}-cosines": np.take_along_axis(values, indices, 1) for name, values in cosines.items()}
    return {"indices": indices.astype(np.uint16), **arrays}
