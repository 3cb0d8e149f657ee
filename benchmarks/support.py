"""Does a text support a sentence? `check_support` and its baselines on pairs with one changed fact and on public sets.

Pairs: see `support_pairs`. `--data` is a folder with those of these public sets that it has, under the names of
`_PUBLIC`. Of FactCC, FRANK and XSumFaith, it is the validation part of SummaC; of HaluEval, the example answers.

    factcc.json, xsumfaith.json, frank.json  leadawon/FIZZ_dawon, data/ (BSD-3, CC BY 4.0, MIT)
    qags_cnndm.jsonl, qags_xsum.jsonl        W4ngatang/qags, data/mturk_*.jsonl (no licence stated)
    wice_test.jsonl, wice_dev.jsonl          ryokamoi/wice, data/entailment_retrieval/claim/ (ODC-BY, texts CC BY-SA)
    halueval_qa.jsonl                        RUCAIBox/HaluEval, generation/qa/qa_one-turn_data.json (MIT)

Tuning sets: two thirds of the pairs, FRANK and WiCE's development set. Everything else is unseen. An answer of several
sentences is supported if each of them is. Accuracy depends on how many cases are supported; balanced accuracy, the mean
of the share of supported cases called so and the share of the others refused, does not.

`--steps` takes some of these:

    fit       weights of `check_support`, fitted on the tuning sets, next to those in the code
    tables    all cases, with the share of words as baseline; and the pairs by what was changed
    variants  a sample of each set: words alone, and words with MiniLM's cosine or with the likelihood of SmolLM2, each
              fitted on the tuning sets, next to the cosine, the likelihood and an LLM asked. The values of models are
              kept in `kept/support_models.json`. `--model DIR,DIR` computes those that are missing: a model for
              likelihoods, and one that is asked.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from drillrank import Passage
from drillrank.generation.claims import split_claims
from drillrank.generation.support import (
    SUPPORTED,
    WEIGHTS,
    SupportEvidence,
    SupportFeatures,
    combine_features,
)
from drillrank.rerank.brmgr import support as share_of_likelihood
from drillrank.structure.cutting import sentences
from drillrank.text import terms

from .kept import KEPT, key_of
from .minilm import minilm
from .support_pairs import make_pairs, pack_text

_PUBLIC = ("qags_cnndm", "qags_xsum", "factcc", "xsumfaith", "wice_test", "halueval_qa", "frank", "wice_dev")
_TUNING = ("pairs, tuning", "frank", "wice_dev")
_RATIOS = np.round(np.arange(0, 1.6, 0.1), 1)  # weight of the order, as a multiple of that of the explained share
_SAMPLED = {"minilm": 40, "likelihood": 40, "asked": 10}  # cases of a set for each kind of value
_KEPT_VALUES = KEPT / "support_models.json"
_QUERY = "What do the passages say?"
_ASKED = (
    "Text:\n{text}\n\nStatement: {sentence}\n\nDoes the text support the whole statement, with all its numbers and "
    "names? Answer with Yes or No."
)

Scores = npt.NDArray[np.float64]
Rate = Callable[["Case"], float]


class Case(NamedTuple):
    """An answer, the text that may support it, and the truth.

    Attributes:
        passages: Text, in passages.
        answer: One or several sentences.
        is_supported: True if people, or the script that made it, say so.
        kind: `"same"`, `"paraphrase"`, `"number"`, `"name"` or `"negation"` of the pairs; else empty.
    """

    passages: tuple[str, ...]
    answer: str
    is_supported: bool
    kind: str = ""


class FeatureTable(NamedTuple):
    """Features of the sentences of cases.

    Attributes:
        columns: The intercept, and a feature each, shape (sentences, 1 + features).
        is_doubtful: True for a sentence with a doubt, shape (sentences,).
        starts: Index of the first sentence of each case, shape (cases,).
        truth: True for a supported case, shape (cases,).
    """

    columns: Scores
    is_doubtful: npt.NDArray[np.bool_]
    starts: npt.NDArray[np.int64]
    truth: npt.NDArray[np.bool_]

    def rate(self, weights: Sequence[float] | Scores) -> Scores:
        """Return the support of each case, as `combine_features` computes it."""
        supports = 1 / (1 + np.exp(-self.columns @ np.asarray(weights)))
        rated: Scores = np.minimum.reduceat(np.where(self.is_doubtful, supports / 2, supports), self.starts)
        return rated


def main(data: str | None = None, model: str | None = None, steps: str = "fit,tables,variants") -> None:
    """Print the tables."""
    sets = _pair_sets() | (read_public_sets(Path(data)) if data else {})
    console = Console(width=130)
    if "fit" in steps:
        tables = {name: _tabulate(sets[name]) for name in _TUNING if name in sets}
        fitted, ratio = fit_weights(tables)
        console.print(f"weights fitted on {', '.join(tables)}: {np.round(fitted, 1)}, in the code: {WEIGHTS}")
        console.print(f"(weight of the order / weight of the explained share: {ratio})")
    if "tables" in steps:
        systems: dict[str, Rate] = {"words": _rate_by_words, "share of words": _share_of_words}
        scores = {
            name: {system: _score(cases, rate) for system, rate in systems.items()} for name, cases in sets.items()
        }
        console.print(_table("all cases: AUC, accuracy, balanced accuracy", sets, scores))
        console.print(_table_by_kind(sets, scores))
    if "variants" in steps:
        values = ModelValues(model)
        for kind in _SAMPLED:
            _print_variant(console, kind, sets, values)
        values.save()


# --- Figures


def auc(scores: Scores, truth: npt.NDArray[np.bool_]) -> float:
    """Return the probability that a supported case has a higher score than another one; ties count half."""
    true, false = scores[truth][:, None], scores[~truth][None]
    return float(((true > false) + (true == false) / 2).mean())


def balanced_accuracy(scores: Scores, truth: npt.NDArray[np.bool_], threshold: float) -> float:
    """Return the mean of the shares of supported and of other cases that a threshold classifies correctly."""
    right = (scores >= threshold) == truth
    return float((right[truth].mean() + right[~truth].mean()) / 2)


def _describe(scores: Scores, truth: npt.NDArray[np.bool_], threshold: float) -> str:
    accuracy = ((scores >= threshold) == truth).mean()
    return f"{auc(scores, truth):.3f} {accuracy:.2f} {balanced_accuracy(scores, truth, threshold):.2f}"


def _choose_threshold(scores: Mapping[str, tuple[Scores, npt.NDArray[np.bool_]]]) -> float:
    """Return the threshold of a baseline with the best mean balanced accuracy on the tuning sets."""
    tuning = [scores[name] for name in _TUNING if name in scores]
    if not tuning:
        return SUPPORTED
    thresholds: list[float] = np.linspace(0, 1, 101).tolist()
    return max(thresholds, key=lambda threshold: sum(balanced_accuracy(*one, threshold) for one in tuning))


def _table(title: str, sets: Mapping[str, Sequence[Case]], scores: Mapping[str, Mapping[str, Scores]]) -> Table:
    systems = list(next(iter(scores.values())))
    table = Table("set", "cases", "supported", *systems, title=title, caption="* not unseen")
    truths = {name: np.array([case.is_supported for case in cases]) for name, cases in sets.items()}
    thresholds = {
        system: SUPPORTED
        if system.startswith("words")
        else _choose_threshold({name: (scores[name][system], truth) for name, truth in truths.items()})
        for system in systems
    }
    for name, truth in truths.items():
        cells = [_describe(scores[name][system], truth, thresholds[system]) for system in systems]
        table.add_row(_mark(name), str(len(truth)), f"{truth.mean():.2f}", *cells)
    return table


def _mark(name: str) -> str:
    return f"{name} *" if name in _TUNING else name


def _table_by_kind(sets: Mapping[str, Sequence[Case]], scores: Mapping[str, Mapping[str, Scores]]) -> Table:
    kinds = ("same", "paraphrase", "number", "name", "negation")
    table = Table("pairs", *kinds, "number or name refused", title="words: share called supported, of the cases")
    for name in ("pairs, unseen", "pairs, tuning"):
        called = scores[name]["words"] >= SUPPORTED
        of_kind = {kind: called[[case.kind == kind for case in sets[name]]] for kind in kinds}
        refused = 1 - np.concatenate([of_kind["number"], of_kind["name"]])
        table.add_row(name, *(f"{one.mean():.2f} of {len(one)}" for one in of_kind.values()), f"{refused.mean():.2f}")
    return table


# --- Weights


def fit_weights(tables: Mapping[str, FeatureTable]) -> tuple[list[float], float]:
    """Fit the weights of words: the intercept, e and o.

    The ratio of the weights of o and e has the best mean AUC of the sets. Their size and the intercept have the least
    log loss, in which each set counts the same, and in it the supported cases as much as the others.

    Returns:
        The weights, and the ratio.
    """
    fits = {ratio: _fit_columns({name: _join(table, ratio) for name, table in tables.items()}) for ratio in _RATIOS}
    weights = {ratio: [intercept, slope, slope * ratio] for ratio, (intercept, slope) in fits.items()}
    aucs = {
        ratio: np.mean([auc(table.rate(weights[ratio]), table.truth) for table in tables.values()]).round(3)
        for ratio in _RATIOS
    }
    best = max(_RATIOS, key=lambda ratio: aucs[ratio])
    return weights[best], float(best)


def _join(table: FeatureTable, ratio: float) -> FeatureTable:
    """Return a table with e + ratio · o in place of e and o."""
    joined = table.columns[:, 1] + ratio * table.columns[:, 2]
    return table._replace(columns=np.column_stack([table.columns[:, 0], joined, table.columns[:, 3:]]))


def _fit_columns(tables: Mapping[str, FeatureTable]) -> list[float]:
    """Return the weights with the least log loss."""
    from scipy.optimize import minimize

    def log_loss(weights: Scores) -> float:
        losses = []
        for table in tables.values():
            supports = np.clip(table.rate(weights), 1e-6, 1 - 1e-6)
            losses += [-np.log(supports[table.truth]).mean(), -np.log(1 - supports[~table.truth]).mean()]
        return float(np.sum(losses))

    n_columns = next(iter(tables.values())).columns.shape[1]
    start = np.array([-2.0, 3.0, *[0.5] * (n_columns - 2)])
    fitted = minimize(log_loss, start, method="Nelder-Mead", options={"maxiter": 2000}).x
    return [float(weight) for weight in fitted]


def _tabulate(cases: Sequence[Case], values: Callable[[Case], Sequence[float]] | None = None) -> FeatureTable:
    """Return the features of cases, with e and o, and a value of a model if there is one."""
    rows: list[list[float]] = []
    doubts: list[bool] = []
    starts: list[int] = []
    for case in cases:
        starts.append(len(rows))
        of_model = [[value] for value in values(case)] if values else [list[float]()] * len(_features(case))
        for features, value in zip(_features(case), of_model, strict=True):
            rows.append([1.0, features.explained, features.order, *value])
            doubts.append(bool(features.doubts))
    truth = np.array([case.is_supported for case in cases])
    return FeatureTable(np.array(rows), np.array(doubts), np.array(starts), truth)


def _print_variant(console: Console, kind: str, sets: Mapping[str, Sequence[Case]], values: ModelValues) -> None:
    """Print a table of the cases that have a value of a model: words, words with the value, and the value alone."""
    samples = {
        name: [case for case in draw(cases, _SAMPLED[kind]) if values.has(kind, case)] for name, cases in sets.items()
    }
    tables = {name: _tabulate(cases, partial(values.of, kind)) for name, cases in samples.items() if cases}
    tuning = {name: _join(tables[name], WEIGHTS[2] / WEIGHTS[1]) for name in _TUNING if name in tables}
    weights: list[float] = []
    if kind != "asked" and tuning:
        intercept, slope, of_value = _fit_columns(tuning)
        weights = [intercept, slope, slope * WEIGHTS[2] / WEIGHTS[1], of_value]
    alone = {name: np.minimum.reduceat(table.columns[:, 3], table.starts) for name, table in tables.items()}
    threshold = (
        SUPPORTED
        if kind == "asked"
        else _choose_threshold({name: (alone[name], tables[name].truth) for name in tables})
    )
    title = f"{kind}: AUC, accuracy, balanced accuracy; weights {np.round(weights, 1)}"
    table = Table("set", "cases", "words", f"words and {kind}", f"{kind} alone", title=title, caption="* not unseen")
    differences = {}
    for name, features in tables.items():
        by_words = features.rate([*WEIGHTS, 0.0])
        cells = [_describe(by_words, features.truth, SUPPORTED)]
        if weights:
            together = features.rate(weights)
            cells.append(_describe(together, features.truth, SUPPORTED))
            differences[name] = by_words, together, features.truth
        else:
            cells.append("-")
        cells.append(_describe(alone[name], features.truth, threshold))
        table.add_row(_mark(name), str(len(features.truth)), *cells)
    console.print(table)
    unseen_tables = {name: features for name, features in tables.items() if name not in _TUNING}
    aucs = [auc(one.rate([*WEIGHTS, 0.0]), one.truth) for one in unseen_tables.values()]
    by_value = [auc(alone[name], one.truth) for name, one in unseen_tables.items()]
    console.print(f"mean AUC of the unseen sets: words {np.mean(aucs):.3f}, {kind} alone {np.mean(by_value):.3f}")
    unseen = [one for name, one in differences.items() if name not in _TUNING]
    if unseen:
        console.print(f"AUC of words and {kind} minus AUC of words, mean of the unseen sets: {_compare(unseen)}")


def _compare(pairs: Sequence[tuple[Scores, Scores, npt.NDArray[np.bool_]]]) -> str:
    """Return the mean difference of two AUCs over sets, with the interval of 1,000 bootstrap samples of the cases."""
    rng = np.random.default_rng(63)

    def difference(indices: Sequence[npt.NDArray[np.int64]]) -> float:
        gains = [auc(b[i], truth[i]) - auc(a[i], truth[i]) for (a, b, truth), i in zip(pairs, indices, strict=True)]
        return float(np.mean(gains))

    def resample(truth: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        return np.concatenate([rng.choice(group, len(group)) for group in map(np.flatnonzero, (truth, ~truth))])

    samples = [difference([resample(truth) for _, _, truth in pairs]) for _ in range(1000)]
    low, high = np.percentile(samples, [2.5, 97.5])
    return f"{difference([np.arange(len(truth)) for _, _, truth in pairs]):+.3f} [{low:+.3f}, {high:+.3f}]"


# --- Data


def _pair_sets() -> dict[str, list[Case]]:
    sets: dict[str, list[Case]] = {"pairs, unseen": [], "pairs, tuning": []}
    for pair in make_pairs():
        cases = sets["pairs, unseen" if pair.is_unseen else "pairs, tuning"]
        cases += [Case(pair.passages, pair.sentence, True, "same"), Case(pair.passages, pair.changed, False, pair.kind)]
        cases += [Case(pair.passages, pair.paraphrase, True, "paraphrase")] if pair.paraphrase else []
    return sets


def read_public_sets(folder: Path) -> dict[str, list[Case]]:
    """Return the public sets that a folder has, by name."""
    files = {name: next(folder.glob(f"{name}.json*"), None) for name in _PUBLIC}
    return {name: list(_read_set(name, file)) for name, file in files.items() if file is not None}


def _read_set(name: str, file: Path) -> Iterable[Case]:
    text = file.read_text(encoding="utf-8")
    rows = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines()]
    for row in rows:
        if name.startswith("qags"):
            passages = tuple(pack_text(row["article"]))
            for sentence in row["summary_sentences"]:
                votes = [response["response"] == "yes" for response in sentence["responses"]]
                yield Case(passages, sentence["sentence"], sum(votes) * 2 > len(votes))
        elif name.startswith("wice"):
            yield Case(tuple(pack_text("\n\n".join(row["evidence"]))), row["claim"], row["label"] == "supported")
        elif name.startswith("halueval"):
            for key in ("right_answer", "hallucinated_answer"):
                yield Case(tuple(pack_text(row["knowledge"])), row[key], key == "right_answer")
        else:
            yield Case(tuple(pack_text(row["document"])), row["claim"].replace("\\'", "'"), bool(row["label"]))


def draw(cases: Sequence[Case], n: int) -> list[Case]:
    """Return a sample with as many supported cases as others, if there are enough, alternating."""
    rng = random.Random(63)
    groups = [[case for case in cases if case.is_supported is truth] for truth in (True, False)]
    samples = [rng.sample(group, min(max(_SAMPLED.values()) // 2, len(group))) for group in groups]
    return [case for pair in zip_longest(*samples) for case in pair if case is not None][:n]


# --- Systems


def _score(cases: Iterable[Case], rate: Rate) -> Scores:
    return np.array([rate(case) for case in cases])


@lru_cache(maxsize=4)
def _evidence(passages: tuple[str, ...]) -> SupportEvidence:
    return SupportEvidence([Passage(text) for text in passages])


@lru_cache(maxsize=20_000)
def _features(case: Case) -> tuple[SupportFeatures, ...]:
    """Return the features of each claim of a case; those of the answer itself if it has no claim."""
    evidence = _evidence(case.passages)
    claims = split_claims(case.answer)
    return tuple(evidence.compute_claim_features(claim) for claim in claims) or (
        evidence.compute_features(case.answer),
    )


def _rate_by_words(case: Case) -> float:
    return min(map(combine_features, _features(case)))


def split_answer(case: Case) -> list[str]:
    """Return the sentences of an answer, as `check_support` reads them."""
    return [claim.text for claim in split_claims(case.answer)] or [case.answer]


def _share_of_words(case: Case) -> float:
    words = set(terms(" ".join(case.passages)))
    return min(float(np.mean([word in words for word in terms(sentence)] or [True])) for sentence in split_answer(case))


class ModelValues:
    """Values of models for sentences, kept in a file: cosines of MiniLM, shares of likelihood, probabilities of Yes.

    Args:
        models: Directories of a model whose likelihoods are taken, and of one that is asked, separated by a comma. None
            takes what is kept.
    """

    def __init__(self, models: str | None) -> None:
        self._kept: dict[str, dict[str, float]] = json.loads(_KEPT_VALUES.read_text()) if _KEPT_VALUES.exists() else {}
        self._models = models.split(",") if models else []
        self._computes = {"minilm": self._cosine, "likelihood": self._likelihood, "asked": self._ask}
        self._vectors: dict[str, npt.NDArray[np.float32]] = {}

    def has(self, kind: str, case: Case) -> bool:
        """Return True if the values of a case are kept, or a model computes them."""
        return bool(self._models) or all(key in self._kept.get(kind, {}) for key, _ in self._keys(case))

    def of(self, kind: str, case: Case) -> list[float]:
        """Return the value of each sentence of a case."""
        kept = self._kept.setdefault(kind, {})
        for key, sentence in self._keys(case):
            if key not in kept:
                kept[key] = round(float(self._computes[kind](sentence, case.passages)), 4)
        return [kept[key] for key, _ in self._keys(case)]

    def save(self) -> None:
        """Write the values."""
        if self._models:
            _KEPT_VALUES.write_text(json.dumps(self._kept, indent=0, sort_keys=True))

    def _keys(self, case: Case) -> list[tuple[str, str]]:
        return [(str(key_of(sentence, case.passages)), sentence) for sentence in split_answer(case)]

    def _cosine(self, sentence: str, passages: tuple[str, ...]) -> float:
        """Return the best cosine of a sentence and a sentence of a passage."""
        texts = [passage[start:end] for passage in passages for start, end in sentences(passage)]
        return float(np.max(self._embed(texts) @ self._embed([sentence])[0], initial=0.0))

    def _embed(self, texts: list[str]) -> npt.NDArray[np.float32]:
        if new := [text for text in dict.fromkeys(texts) if text not in self._vectors]:
            self._vectors |= zip(new, _load_minilm()(new), strict=True)
        return np.array([self._vectors[text] for text in texts])

    def _likelihood(self, sentence: str, passages: tuple[str, ...]) -> float:
        """Return the share of the sentence's information that its best passages explain in one prompt."""
        text = self._best_text(sentence, passages)
        model = _load_likelihoods(self._models[0])
        return share_of_likelihood(model, "{question}", _QUERY, [Passage(text)], [sentence])[0]

    def _ask(self, sentence: str, passages: tuple[str, ...]) -> float:
        return _load_asked(self._models[1])(_ASKED.format(text=self._best_text(sentence, passages), sentence=sentence))

    def _best_text(self, sentence: str, passages: tuple[str, ...]) -> str:
        indices = _evidence(passages).compute_features(sentence).passage_indices or (0,)
        return "\n".join(passages[index] for index in sorted(indices))


@lru_cache(maxsize=1)
def _load_minilm() -> Callable[[Sequence[str]], npt.NDArray[np.float32]]:
    return minilm("bfloat16")


@lru_cache(maxsize=1)
def _load_likelihoods(folder: str) -> Any:
    from drillrank import load_language_model

    return load_language_model(f"hf:{folder}", dtype="bfloat16")


@lru_cache(maxsize=1)
def _load_asked(folder: str) -> Callable[[str], float]:
    """Return a function from a prompt to the probability of Yes rather than No, of an instruction-tuned model."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()
    yes, no = (tokenizer(word, add_special_tokens=False)["input_ids"][0] for word in ("Yes", "No"))

    def ask(prompt: str) -> float:
        turn = [{"role": "user", "content": prompt}]
        text = tokenizer.apply_chat_template(turn, add_generation_prompt=True, tokenize=False)
        batch = tokenizer(text, return_tensors="pt", add_special_tokens=False)
        with torch.inference_mode():
            logits = model(**batch, logits_to_keep=1).logits[0, -1].float()
        return float(torch.sigmoid(logits[yes] - logits[no]))

    return ask
