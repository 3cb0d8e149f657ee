"""Who else reads the paths that the default search proposes: MiniLM, and SmolLM2 as a mixture over their documents.

Of each question the first 20 paths are scored anew, by the same formula: each expert reads each document once, and a
word of the question is as likely after a path as after its documents on average, or as after the best, α of it; the
prior of the path counts with each expert. Weights and α are chosen on training questions. What
SmolLM2 said is kept (`kept.py`). `--vectors DIR` keeps MiniLM's vectors, which take minutes; without it, MiniLM is left
out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from drillrank import UPR, Passage, PathSearch, PromptRank, Ranked, load_language_model
from drillrank.evaluation.metrics import recall_all
from drillrank.likelihood import EmbeddingModel, LanguageModel
from drillrank.multihop.state import DocumentModel, SearchState

from .kept import KeptModel
from .minilm import minilm
from .path_prior import compared, pools

Floats = npt.NDArray[np.float64]
MODEL = "smollm2"
PATHS = 20
TRAINING = ("training, HotpotQA", "training, MuSiQue")
DATASETS = ("hotpotqa", "2wiki", "musique")
WEIGHTS, ALIGNED = (0.25, 0.5, 1.0, 2.0, 4.0), (0.0, 0.75)
UNIGRAM, MINILM, SMOLLM2 = "unigram", "st:MiniLM", "hf:SmolLM2"


class Proposed(NamedTuple):
    """What the default search found for a question.

    Attributes:
        gold: Ids.
        paths: All of them, best first.
        priors: Of the first ones, what the prior adds, alignment left out.
        read: By expert, log p(q_t | d) of each document.
        state: The search, which orders the passages of paths.
    """

    gold: list[str]
    paths: list[Ranked[Any]]
    priors: list[float]
    read: dict[str, dict[str, Floats]]
    state: SearchState


def main(questions: int = 100, vectors: str | None = None) -> None:
    """Print R@2, recall@5 and R@10 of the first `questions`, with intervals of the difference to the default."""
    embed = minilm() if vectors else None
    kept = KeptModel(MODEL, tokens=True)
    proposed: dict[str, list[Proposed]] = {}
    whole: dict[str, Floats] = {}
    for name, (pool, asked) in pools().items():
        if name not in (*TRAINING, *DATASETS):
            continue
        texts = [passage.titled_text for passage in pool]
        experts = {UNIGRAM: cast("DocumentModel", load_language_model("unigram").fit(texts))}
        if embed is not None:
            directory = Path(str(vectors)) / name.rpartition(" ")[2].lower()
            meaning = EmbeddingModel(embed, directory=directory).fit(texts)
            experts[MINILM] = cast("DocumentModel", meaning)
            if name in DATASETS:
                by_meaning = PathSearch(PromptRank(meaning), pool)
                whole[name] = np.array([figures(found(by_meaning, one), one["gold"]) for one in asked[:questions]])
        search = PathSearch(PromptRank(), pool)
        proposed[name] = [propose(search, one, experts, kept) for one in asked[:questions]]
    sums = ([MINILM], [SMOLLM2], [UNIGRAM, SMOLLM2], [MINILM, SMOLLM2])
    rows = [(names, chosen(proposed, names)) for names in sums if all(name in everyone(proposed) for name in names)]
    for name in DATASETS:
        table = Table("paths scored by", "weights", "α", "R@2", "recall@5", "R@10", title=f"{name}, dev")
        default = evaluated(proposed[name], {}, 0.0)
        table.add_row("the default: unigram", "", "0.75", *compared(default, default))
        if name in whole:
            table.add_row("st:MiniLM in the search, too", "", "0.75", *compared(whole[name], default))
        for names, (weights, aligned) in rows:
            for shown in dict.fromkeys([((1.0,) * len(names), 0.75), ((1.0,) * len(names), 0.0), (weights, aligned)]):
                by_expert = dict(zip(names, shown[0], strict=True))
                cells = " + ".join(names), ", ".join(f"{weight:g}" for weight in shown[0]), f"{shown[1]:g}"
                table.add_row(*cells, *compared(evaluated(proposed[name], by_expert, shown[1]), default))
        Console(width=140).print(table)


def propose(
    search: PathSearch, asked: Mapping[str, Any], experts: Mapping[str, DocumentModel], kept: LanguageModel
) -> Proposed:
    """The paths of one question, and what each expert says of the documents of the first ones."""
    query = asked["question"]
    ranking = search.search_paths(query)
    state = cast("SearchState", ranking.why)  # what explains a ranking is the search itself
    first = ranking[:PATHS]
    priors = [item.details["log_prior"] - state.residual.alignment(item.passage) for item in first]
    documents = list({one.id: one for item in first for one in item.passage.passages}.values())
    by_expert = {
        name: list(model.document_log_probs(query, [one.titled_text for one in documents]))
        for name, model in experts.items()
    }
    by_expert[SMOLLM2] = [found.log_probs for found in UPR(kept, prior=None).likelihoods(query, documents)]
    read = {
        name: dict(zip((one.id for one in documents), values, strict=True))
        for name, values in by_expert.items()
        if np.isfinite(np.concatenate(values)).all()  # all are known
    }
    return Proposed(asked["gold"], list(ranking), priors, read, state)


def rescored(one: Proposed, weights: Mapping[str, float], aligned: float) -> list[Passage]:
    """The passages, best first, after the first paths are scored by a weighted sum; without experts as they were."""
    paths = list(one.paths)
    if weights:
        first = paths[: len(one.priors)]
        for at, (item, prior) in enumerate(zip(first, one.priors, strict=True)):
            score = 0.0
            for place, (name, weight) in enumerate(weights.items()):
                known = np.array([one.read[name][id_] for id_ in item.passage.ids])
                means = np.logaddexp.reduce(known) - np.log(len(known))
                score += weight * float((means + aligned * (known.max(axis=0) - means)).mean())
                score += sum(weights.values()) * prior / known.shape[1] if place == 0 else 0.0
            first[at] = Ranked(item.passage, score, 0, item.details)
        paths[: len(first)] = sorted(first, key=lambda item: -item.score)
    return [item.passage for item in one.state.ranked_passages(paths)]


def evaluated(proposed: Sequence[Proposed], weights: Mapping[str, float], aligned: float) -> Floats:
    return np.array(
        [figures([passage.id for passage in rescored(one, weights, aligned)], one.gold) for one in proposed]
    )


def chosen(proposed: Mapping[str, list[Proposed]], names: Sequence[str]) -> tuple[tuple[float, ...], float]:
    """Weights, the first of them 1, and α with the best R@2 and recall@5 of training questions."""
    grid = product([(1.0, *others) for others in product(WEIGHTS, repeat=len(names) - 1)], ALIGNED)

    def worth(setting: tuple[tuple[float, ...], float]) -> float:
        weights, aligned = setting
        by_expert = dict(zip(names, weights, strict=True))
        return sum(float(evaluated(proposed[name], by_expert, aligned)[:, :2].mean()) for name in TRAINING)

    return max(grid, key=worth)


def everyone(proposed: Mapping[str, list[Proposed]]) -> set[str]:
    """The experts of whom every question knows."""
    return set.intersection(*(set(one.read) for of_set in proposed.values() for one in of_set))


def found(search: PathSearch, asked: Mapping[str, Any]) -> list[str]:
    return [item.passage.id for item in search.search(asked["question"])]


def figures(ids: Sequence[str], gold: Sequence[str]) -> tuple[float, float, float]:
    return recall_all(ids, gold, 2), len({*ids[:5]} & {*gold}) / len(gold), recall_all(ids, gold, 10)
