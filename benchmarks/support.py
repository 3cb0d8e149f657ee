"""Does a text support a sentence? `check_support` and its baselines on pairs with one changed fact and on public sets.

Pairs: see `support_pairs`. `--data` is a folder with those of these public sets that it has, under the names of
`_PUBLIC`. Of FactCC, FRANK and XSumFaith, it is the validation part of SummaC; of HaluEval, the example answers.

    factcc.json, xsumfaith.json, frank.json  leadawon/FIZZ_dawon, data/ (BSD-3, CC BY 4.0, MIT)
    qags_cnndm.jsonl, qags_xsum.jsonl        W4ngatang/qags, data/mturk_*.jsonl (no licence stated)
    wice_test.jsonl, wice_dev.jsonl          ryokamoi/wice, data/entailment_retrieval/claim/ (ODC-BY, texts CC BY-SA)
    halueval_qa.jsonl                        RUCAIBox/HaluEval, generation/qa/qa_one-turn_data.json (MIT)

The weights and thresholds, also those of the baselines, were chosen on two thirds of the pairs, on FRANK and on WiCE's
development set. Everything else is unseen. An answer of several sentences is supported if each of them is.

The first table has all cases and systems without a neural model. The second table has a sample of each set, with MiniLM
and a language model (`kept/support_models.json`, made by `--model DIR,DIR`: a model for likelihoods, and one that is
asked). The third one has the share of sentences called supported, by what was changed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from drillrank import Passage
from drillrank.generation.support import SUPPORTED, SupportEvidence, SupportFeatures, combine_features
from drillrank.likelihood.encoders import load_encoder
from drillrank.structure.cutting import sentences
from drillrank.text import terms

from .kept import KEPT, key_of
from .minilm import INSTALLED, minilm_folder
from .support_pairs import make_pairs, pack_text

_PUBLIC = ("qags_cnndm", "qags_xsum", "factcc", "xsumfaith", "wice_test", "halueval_qa", "frank", "wice_dev")
_TUNING = ("pairs, tuning", "frank", "wice_dev")
_SAMPLE, _FIRST = 100, 20
_READ, _ASKED_CASES = 40, 10
_KEPT = KEPT / "support_models.json"
_ASKED = (
    "Text:\n{text}\n\nStatement: {sentence}\n\nDoes the text support the whole statement, with all its numbers and "
    "names? Answer with Yes or No."
)

Scores = npt.NDArray[np.float64]


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


def main(data: str | None = None, model: str | None = None) -> None:
    """Print the tables."""
    sets = _pair_sets() | (read_public_sets(Path(data)) if data else {})
    kept = _KeptValues(model)
    console = Console(width=150)
    systems: dict[str, Callable[[Case], float]] = {"words": _by_words, "share of words": _share_of_words}
    scores = {name: {system: _score(cases, rate) for system, rate in systems.items()} for name, cases in sets.items()}
    console.print(_table("all cases: AUC, and accuracy at the threshold", sets, scores))
    samples = {name: _draw(cases) for name, cases in sets.items()}
    slow = {**systems, **kept.systems()}
    sampled = {name: {system: _score(cases, rate) for system, rate in slow.items()} for name, cases in samples.items()}
    console.print(_table(f"at most {_SAMPLE} cases of each set, all systems", samples, sampled))
    console.print(_table_by_kind(sets, scores))
    kept.save()


def _table(title: str, sets: Mapping[str, Sequence[Case]], scores: Mapping[str, Mapping[str, Scores]]) -> Table:
    systems = list(next(iter(scores.values())))
    table = Table("set", "cases", "supported", *systems, title=title)
    thresholds = {system: _choose_threshold(system, sets, scores) for system in systems}
    for name, cases in sets.items():
        truth = np.array([case.is_supported for case in cases])
        row = []
        for system in systems:
            of_system = scores[name][system]
            scored = ~np.isnan(of_system)
            right = (of_system[scored] >= thresholds[system]) == truth[scored]
            more = "" if scored.all() else f" ({scored.sum()})"
            row.append(f"{auc(of_system[scored], truth[scored]):.3f} {right.mean():.2f}{more}" if scored.any() else "-")
        table.add_row(name + (" *" if name in _TUNING else ""), str(len(cases)), f"{truth.mean():.2f}", *row)
    table.caption = "* not unseen"
    return table


def _choose_threshold(
    system: str, sets: Mapping[str, Sequence[Case]], scores: Mapping[str, Mapping[str, Scores]]
) -> float:
    """Return our default threshold, and for a baseline the one with the best mean accuracy on the tuning sets."""
    if not system.startswith(("share", "cosine")):
        return SUPPORTED
    scored_by_name = {name: ~np.isnan(scores[name][system]) for name in _TUNING if name in sets}

    def mean_accuracy(threshold: float) -> float:
        accuracies = [
            ((scores[name][system] >= threshold) == [case.is_supported for case in sets[name]])[scored].mean()
            for name, scored in scored_by_name.items()
            if scored.any()
        ]
        return float(np.mean(accuracies)) if accuracies else 0.0

    return max(np.linspace(0, 1, 101).tolist(), key=mean_accuracy)


def _table_by_kind(sets: Mapping[str, Sequence[Case]], scores: Mapping[str, Mapping[str, Scores]]) -> Table:
    kinds = ("same", "paraphrase", "number", "name", "negation")
    table = Table("pairs", *kinds, "number or name refused", title="words: share called supported, of the cases")
    for name in ("pairs, unseen", "pairs, tuning"):
        called = scores[name]["words"] >= SUPPORTED
        of_kind = {kind: called[[case.kind == kind for case in sets[name]]] for kind in kinds}
        refused = 1 - np.concatenate([of_kind["number"], of_kind["name"]])
        table.add_row(name, *(f"{one.mean():.2f} of {len(one)}" for one in of_kind.values()), f"{refused.mean():.2f}")
    return table


def auc(scores: Scores, truth: npt.NDArray[np.bool_]) -> float:
    """Return the probability that a supported case has a higher score than another one; ties count half."""
    true, false = scores[truth][:, None], scores[~truth][None]
    return float(((true > false) + (true == false) / 2).mean())


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


def _draw(cases: Sequence[Case]) -> list[Case]:
    """Return a sample with as many supported cases as others, if there are enough, alternating.

    The first cases of the sample are a sample, too.
    """
    rng = random.Random(63)
    groups = [[case for case in cases if case.is_supported is truth] for truth in (True, False)]
    firsts = [rng.sample(group, min(_FIRST, len(group))) for group in groups]
    samples = []
    for group, first in zip(groups, firsts, strict=True):
        rest = [case for case in group if case not in first]
        rng.shuffle(rest)
        samples.append((first + rest)[: _SAMPLE // 2])
    return [case for pair in zip_longest(*samples) for case in pair if case is not None]


# --- Systems


def _score(cases: Iterable[Case], rate: Callable[[Case], float]) -> Scores:
    return np.array([rate(case) for case in cases])


@lru_cache(maxsize=4)
def _evidence(passages: tuple[str, ...]) -> SupportEvidence:
    return SupportEvidence([Passage(text) for text in passages])


def split_answer(answer: str) -> list[str]:
    """Return the sentences of an answer."""
    return [answer[start:end] for start, end in sentences(answer)] or [answer]


@lru_cache(maxsize=20_000)
def _features(case: Case) -> tuple[SupportFeatures, ...]:
    return tuple(map(_evidence(case.passages).compute_features, split_answer(case.answer)))


def _by_words(case: Case) -> float:
    return min(map(combine_features, _features(case)))


def _share_of_words(case: Case) -> float:
    words = set(terms(" ".join(case.passages)))
    return min(
        float(np.mean([word in words for word in terms(sentence)] or [1.0])) for sentence in split_answer(case.answer)
    )


class _KeptValues:
    """Values of models for sentences: cosines of MiniLM, shares of likelihood, and probabilities of Yes.

    Args:
        models: Directories of a model whose likelihoods are taken, and of one that is asked, separated by a comma. None
            takes what is kept.
    """

    def __init__(self, models: str | None) -> None:
        self._kept: dict[str, dict[str, float]] = json.loads(_KEPT.read_text()) if _KEPT.exists() else {}
        self._models = models.split(",") if models else []
        self._loaded: dict[str, Any] = {}
        self._n_new = 0

    def systems(self) -> dict[str, Callable[[Case], float]]:
        """Return the systems with a model, by name. A value that is not kept is NaN."""
        return {
            "with MiniLM": lambda case: self._combine(case, ["minilm"]),
            "with a model": lambda case: self._combine(case, ["likelihood"]),
            "with both": lambda case: self._combine(case, ["minilm", "likelihood"]),
            "cosine of MiniLM": lambda case: min(self._values("minilm", case)),
            "likelihood alone": lambda case: min(self._values("likelihood", case)),
            "LLM asked": lambda case: min(self._values("asked", case)),
        }

    def save(self) -> None:
        """Write what is new."""
        if self._n_new:
            _KEPT.write_text(json.dumps(self._kept, indent=0, sort_keys=True))

    def _combine(self, case: Case, kinds: Sequence[str]) -> float:
        values = {kind: self._values(kind, case) for kind in kinds}
        supports = []
        for index, features in enumerate(_features(case)):
            similarity = values["minilm"][index] if "minilm" in values else None
            likelihood = values["likelihood"][index] if "likelihood" in values else None
            full = SupportFeatures(
                features.explained,
                features.order,
                similarity,
                likelihood,
                features.passage_indices,
                features.doubts,
            )
            supports.append(combine_features(full))
        return min(supports)

    def _values(self, kind: str, case: Case) -> list[float]:
        keys = [str(key_of(sentence, case.passages)) for sentence in split_answer(case.answer)]
        kept = self._kept.setdefault(kind, {})
        if any(key not in kept for key in keys):
            compute = {"minilm": self._cosines, "likelihood": self._likelihoods, "asked": self._asked}[kind]
            new = compute(case)
            if new is None:
                return [np.nan] * len(keys)
            kept |= dict(zip(keys, (round(value, 4) for value in new), strict=True))
            self._n_new += 1
            if self._n_new % 20 == 0:
                self.save()
        return [kept[key] for key in keys]

    def _cosines(self, case: Case) -> list[float] | None:
        if not self._models or not INSTALLED:
            return None
        if "minilm" not in self._loaded:
            self._loaded["minilm"] = load_encoder(f"st:{minilm_folder()}")
        evidence = SupportEvidence([Passage(text) for text in case.passages], encoder=self._loaded["minilm"])
        return [evidence.compute_features(sentence).similarity or 0.0 for sentence in split_answer(case.answer)]

    def _likelihoods(self, case: Case) -> list[float] | None:
        if not self._models:
            return None
        if "likelihood" not in self._loaded:
            from drillrank import load_language_model

            self._loaded["likelihood"] = load_language_model(f"hf:{self._models[0]}", dtype="bfloat16")
        evidence = SupportEvidence([Passage(text) for text in case.passages], model=self._loaded["likelihood"])
        return [evidence.compute_features(sentence).likelihood or 0.0 for sentence in split_answer(case.answer)]

    def _asked(self, case: Case) -> list[float] | None:
        if len(self._models) < 2:
            return None
        if "asked" not in self._loaded:
            self._loaded["asked"] = _load_asked(self._models[1])
        ask = self._loaded["asked"]
        evidence = _evidence(case.passages)
        answers = []
        for sentence in split_answer(case.answer):
            indices = evidence.compute_features(sentence).passage_indices or (0,)
            text = "\n".join(case.passages[index] for index in sorted(indices))
            answers.append(ask(_ASKED.format(text=text, sentence=sentence)))
        return answers


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
