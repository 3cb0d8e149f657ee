"""Can the documents answer the question? How often `drillrank.drilldown.confidence` says no, and how well it knows.

Questions about a folder, READMEs, contracts, papers and annual reports are asked of these and of the documents of the
others, also of one to three small documents. With `--data`, a checkout of
https://github.com/patronus-ai/financebench, its questions and its reports A to J are included (reading them takes
minutes). Weights and thresholds are fitted in five folds by question: four fifths fit what judges the last one.

A question of another subject should be refused (`found` is False). Questions with an unclear subject are listed, but
fit nothing: questions about papers name no subject ("What are the baselines?"), and READMEs, papers and the folder
share some (software, contracts).

The other tables are about questions that sound as if their answer were here: 60 answerable ones about the folder, 15
absent ones of the data set and 40 of `kept/absent_questions.json`; questions about a paper, asked of this paper and of
another one; questions about a report, asked of all reports and of those of other companies.

`kept/absent_reading.json` has the answers of language models that read the best three passages of the folder: the
log-probabilities of Yes and No, and the mean log-likelihood of the question with the best passage and without one.
`--model qwen-0.5b` asks a model of `tools/real_models.sh` for what is missing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank import UPR, Passage
from drillrank.drilldown import confidence as model
from drillrank.drilldown.confidence import EncoderScale, FindingFeatures, compute_features
from drillrank.likelihood.base import NextTokenRequest
from drillrank.likelihood.huggingface import HuggingFaceModel
from drillrank.vectors import Floats, of_unit_length

from .kept import folder_of
from .minilm import INSTALLED, minilm
from .not_here_sets import KEPT, Case, Collection, folder_cases, list_cases

N_FOLDS = 5
# Share of the answerable questions in four fifths that is below the threshold, for at most .03 in the last one.
REFUSED, REFUSED_WITH_ENCODER = 0.025, 0.02
REPORTS = ("reports", "other companies")  # too many passages to embed them for a benchmark
READINGS = KEPT / "absent_reading.json"
N_READ = 3
LEAST_READINGS = 30  # of a model, for a row
YES_NO_PROMPT = (
    "{passages}\n\nQuestion: {question}\n\nDo these passages contain the answer to the question? "
    "Answer with one word, Yes or No."
)


def main(data: str | None = None, vectors: str | None = None, model: str | None = None) -> None:
    """Print the tables.

    Args:
        data: A checkout of FinanceBench.
        vectors: A folder that keeps the vectors of passages.
        model: A language model that reads the best passages of questions whose reading is not kept.
    """
    console = Console(width=130)
    encoder = Encoder(Path(vectors) if vectors else None) if INSTALLED else None
    if model is not None and encoder is not None:
        read_passages(model, encoder)
    cases = list_cases(data, console)
    judged = judge_cases(cases, None)
    _print_all(console, "terms", judged)
    if encoder is not None:
        judged = judge_cases([case for case in cases if case.asked_of not in REPORTS], encoder)
        _print_all(console, "terms and MiniLM", judged)
        _print_readings(console, judged)


def _print_all(console: Console, name: str, judged: Judged) -> None:
    console.print(_refusal_table(name, judged))
    console.print(f"Weights with {name}: {judged.describe()}")
    _print_reliability(console, name, judged)


# --- Vectors


class Encoder:
    """MiniLM with its scale, and the vectors of texts that were embedded before.

    Args:
        folder: Where vectors are kept. None keeps them in memory.
    """

    def __init__(self, folder: Path | None) -> None:
        self._embed = minilm("bfloat16")
        self._file = None if folder is None else folder / "not_here.npz"
        self._vectors: dict[str, Floats] = {}
        if self._file is not None and self._file.exists():
            with np.load(self._file) as kept:
                self._vectors = dict(zip(kept["keys"].tolist(), kept["vectors"], strict=True))
        self.scale: EncoderScale = model.measure_encoder(self._embed)

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors, shape (texts, dimensions)."""
        keys = [blake2b(text.encode(), digest_size=12).hexdigest() for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._vectors}
        if new:
            self._vectors |= zip(new, self._embed([*new.values()]), strict=True)
            if self._file is not None:
                self._file.parent.mkdir(parents=True, exist_ok=True)
                np.savez(self._file, keys=[*self._vectors], vectors=np.array([*self._vectors.values()], np.float32))
        return of_unit_length(np.array([self._vectors[key] for key in keys]))

    def cosines(self, question: str, collection: Collection) -> Floats:
        """Return the cosine of a question with each passage."""
        cosines: Floats = self.embed(collection.texts) @ self.embed([question])[0]
        return cosines


# --- Cross-validation


@dataclass(frozen=True, eq=False)
class Judged:
    """Cases with cross-validated judgments.

    Attributes:
        cases: The cases.
        features: Features of each case.
        confidence: Confidence of each case, shape (cases,).
        found: False, True or None for each case.
        subject_weights: Weights of P(subject) that are fitted on all cases, the intercept first.
        answer_weights: Weights of P(answer | subject), likewise.
        least_subject: Threshold of P(subject) that is fitted on all cases.
    """

    cases: Sequence[Case]
    features: Sequence[FindingFeatures]
    confidence: Floats
    found: Sequence[bool | None]
    subject_weights: Sequence[float]
    answer_weights: Sequence[float]
    least_subject: float

    def describe(self) -> str:
        """Return the fitted weights."""
        return (
            f"subject {self.subject_weights}, least P(subject) {self.least_subject:.2f}, answer {self.answer_weights}"
        )


def judge_cases(cases: Sequence[Case], encoder: Encoder | None) -> Judged:
    """Compute the features of cases and judge them in five folds."""
    return cross_validate(
        cases, [features_of(case, encoder) for case in cases], REFUSED_WITH_ENCODER if encoder else REFUSED
    )


def features_of(case: Case, encoder: Encoder | None) -> FindingFeatures:
    """Compute the features of a case."""
    if encoder is None:
        return compute_features(case.collection.match(case.question))
    cosines = encoder.cosines(case.question, case.collection)
    return compute_features(case.collection.match(case.question, cosines, encoder.scale))


def cross_validate(cases: Sequence[Case], features: Sequence[FindingFeatures], refused: float) -> Judged:
    """Fit both probabilities and the threshold on four folds, and judge the cases of the fifth."""
    subject_columns = _columns([(f.coverage, f.document_coverage, f.has_unknown_name, f.similarity) for f in features])
    answer_columns = _columns([(f.is_covered, f.similarity) for f in features])
    is_covered = np.array([each.is_covered for each in features], dtype=bool)
    is_answerable = np.array([case.kind == "answerable" for case in cases])
    is_about_subject = np.array([case.kind in ("answerable", "same subject") for case in cases])
    folds = np.array([fold_of(case.question) for case in cases])
    subject, answer, least = np.zeros(len(cases)), np.zeros(len(cases)), np.zeros(len(cases))
    for fold in (*range(N_FOLDS), -1):  # no case is in fold -1: the last turn fits the weights on all
        train, test = folds != fold, folds == fold
        predict_subject, subject_weights = fit(subject_columns, is_about_subject, _subject_weights(cases) * train)
        subject_of_all = predict_subject(subject_columns)
        least_subject = _threshold(subject_of_all, is_covered, is_answerable & train, refused)
        predict_answer, answer_weights = fit(
            answer_columns, is_answerable, _answer_weights(cases, subject_of_all) * train
        )
        subject[test], least[test] = subject_of_all[test], least_subject
        answer[test] = predict_answer(answer_columns[test])
    confidence = subject * answer
    found = [
        False if is_refused else True if is_probable else None
        for is_refused, is_probable in zip(
            (subject < least) & ~is_covered, confidence >= model.LEAST_ANSWER, strict=True
        )
    ]
    return Judged(cases, features, confidence, found, subject_weights, answer_weights, least_subject)


def _columns(rows: Iterable[Sequence[float | None]]) -> Floats:
    """Return rows without the similarity if it is None."""
    return np.array([[value for value in row if value is not None] for row in rows], dtype=float)


def fold_of(question: str) -> int:
    """Return the fold of a question, the same in every run."""
    return blake2b(question.encode(), digest_size=1).digest()[0] % N_FOLDS


def fit(columns: Floats, labels: Any, weights: Floats) -> tuple[Callable[[Floats], Floats], list[float]]:
    """Fit a logistic regression. Return its predictions as a function, and its weights, the intercept first."""
    from sklearn.linear_model import LogisticRegression

    used = weights > 0
    center, spread = columns[used].mean(axis=0), columns[used].std(axis=0) + 1e-9
    fitted = LogisticRegression(C=30).fit((columns[used] - center) / spread, labels[used], sample_weight=weights[used])
    slopes = fitted.coef_[0] / spread
    intercept = float(fitted.intercept_[0] - slopes @ center)

    def predict(rows: Floats) -> Floats:
        probabilities: Floats = 1 / (1 + np.exp(-(rows @ slopes + intercept)))
        return probabilities

    return predict, [round(float(weight), 2) for weight in (intercept, *slopes)]


def _subject_weights(cases: Sequence[Case]) -> Floats:
    """Weigh questions of this and of another subject alike, and each set of them by the root of its size."""
    sizes = Counter((case.about, case.asked_of, case.kind) for case in cases)
    weights: Floats = np.array([sizes[case.about, case.asked_of, case.kind] ** -0.5 for case in cases])
    is_other = np.array([case.kind == "other subject" for case in cases])
    is_this = np.array([case.kind in ("answerable", "same subject") for case in cases])
    for side in (is_other, is_this):
        weights[side] *= len(cases) / 2 / weights[side].sum()
    weights[~(is_other | is_this)] = 0
    return weights


def _answer_weights(cases: Sequence[Case], subject: Floats) -> Floats:
    """Weigh each group of answerable questions and absent ones that sound alike by P(subject), all groups alike."""
    groups = np.array([answer_group(case) for case in cases])
    weights = np.zeros(len(cases))
    for group in {*groups.tolist()} - {""}:
        weights[groups == group] = 100 * subject[groups == group] / subject[groups == group].sum()
    return weights


def answer_group(case: Case) -> str:
    """Return the group of a question that sounds as if its answer were here: folder, paper or report; else ""."""
    if case.asked_of == "folder" and case.about == "folder":
        return "folder"
    if case.about == "papers" and case.asked_of in ("its paper", "another paper"):
        return "one paper"
    return "reports" if case.about == "finance" and case.asked_of in REPORTS else ""


def _threshold(subject: Floats, is_covered: Any, answerable: Any, refused: float) -> float:
    """Return the P(subject) below which the least probable answerable questions are."""
    scores = np.sort(np.where(is_covered, 1.0, subject)[answerable])
    return float(scores[int(refused * len(scores))])


# --- Tables


def _refusal_table(name: str, judged: Judged) -> Table:
    title = f"found, with {name}"
    table = Table("questions about", "asked of", "the answer is", "questions", "False", "None", "True", title=title)
    groups: dict[tuple[str, str, str], list[int]] = {}
    for index, case in enumerate(judged.cases):
        groups.setdefault((case.about, case.asked_of, case.kind), []).append(index)
        groups.setdefault(("all", "", case.kind), []).append(index)
    for group in sorted(groups, key=lambda group: (group[2], group[0] == "all", group)):
        found = [judged.found[index] for index in groups[group]]
        counts = (f"{found.count(value)} ({found.count(value) / len(found):.1%})" for value in (False, None, True))
        table.add_row(*group, str(len(found)), *counts)
    return table


def reliability_table(name: str, confidence: Floats, is_answerable: Any) -> Table:
    """Compare the mean confidence with the share of answerable questions, in ten bins."""
    brier_score = np.mean((confidence - is_answerable) ** 2)
    title = f"{name}: AUC {area(confidence, is_answerable):.2f}, Brier score {brier_score:.3f}"
    table = Table("confidence", "questions", "mean confidence", "answerable", title=title)
    for low, high in pairwise(np.linspace(0, 1.0001, 11).tolist()):
        inside = (confidence >= low) & (confidence < high)
        if inside.any():
            row = f"{inside.sum()}", f"{confidence[inside].mean():.2f}", f"{is_answerable[inside].mean():.2f}"
            table.add_row(f"{low:.1f} to {high:.1f}", *row)
    return table


def area(scores: Floats, labels: Any) -> float:
    """Return the area under the ROC curve."""
    differences = scores[labels][:, None] - scores[~labels]
    return float(((differences > 0) + 0.5 * (differences == 0)).mean())


def _print_reliability(console: Console, name: str, judged: Judged) -> None:
    groups = np.array([answer_group(case) for case in judged.cases])
    is_answerable = np.array([case.kind == "answerable" for case in judged.cases])
    for group in sorted({*groups.tolist()} - {""}):
        inside = groups == group
        console.print(reliability_table(f"{name}, {group}", judged.confidence[inside], is_answerable[inside]))


def _print_readings(console: Console, judged: Judged) -> None:
    """Print what the readings of language models add to the confidence of questions about the folder."""
    readings = load_readings()
    summary = Table(
        "language model", "answerable", "absent", "AUC of P(yes)", "AUC of the gain", "AUC of the confidence"
    )
    for name, reading in readings.items():
        if len(reading) < LEAST_READINGS:
            continue
        used = [i for i, case in enumerate(judged.cases) if answer_group(case) == "folder" and case.question in reading]
        cases = [judged.cases[index] for index in used]
        is_answerable = np.array([case.kind == "answerable" for case in cases])
        entries = [reading[case.question] for case in cases]
        odds = np.log(judged.confidence[used] / (1 - judged.confidence[used]))
        p_yes = np.array([entry["yes"] - entry["no"] for entry in entries])
        gain = np.array([entry["with_best"] - entry["alone"] for entry in entries])
        columns, folds = np.column_stack([odds, p_yes, gain]), np.array([fold_of(case.question) for case in cases])
        combined = np.zeros(len(cases))
        for fold in range(N_FOLDS):
            predict, _ = fit(columns, is_answerable, (folds != fold).astype(float))
            combined[folds == fold] = predict(columns[folds == fold])
        areas = (f"{area(scores, is_answerable):.2f}" for scores in (p_yes, gain, judged.confidence[used]))
        summary.add_row(name, str(is_answerable.sum()), str((~is_answerable).sum()), *areas)
        console.print(reliability_table(f"P(yes) of {name}", 1 / (1 + np.exp(-p_yes)), is_answerable))
        console.print(reliability_table(f"terms, MiniLM and {name}", combined, is_answerable))
    console.print(summary)


# --- Readings of language models


def load_readings() -> dict[str, dict[str, dict[str, float]]]:
    """Load the kept readings by model and question."""
    if not READINGS.exists():
        return {}
    readings: dict[str, dict[str, dict[str, float]]] = json.loads(READINGS.read_text(encoding="utf-8"))
    return readings


def read_passages(name: str, encoder: Encoder) -> None:
    """Ask a language model about the best passages of every question of the folder, and keep its answers."""
    language_model = HuggingFaceModel(str(folder_of(name)), dtype="bfloat16")
    likelihood = UPR(language_model, prior=None)
    readings = load_readings()
    reading = readings.setdefault(Path(name).name, {})
    for case in folder_cases():
        if case.question in reading:
            continue
        passages = best_passages(case, encoder)
        text = "\n\n".join(f"Passage {n}: {each.title}\n{each.text}" for n, each in enumerate(passages, 1))
        prompt = YES_NO_PROMPT.format(passages=text, question=case.question)
        [answer] = language_model.next_tokens([NextTokenRequest((prompt,), ("Yes", "No"), chat=True)])
        with_best, alone = likelihood.likelihoods(case.question, [passages[0], Passage("")])
        yes, no = answer.values.tolist()
        reading[case.question] = {
            key: round(value, 4)
            for key, value in (("yes", yes), ("no", no), ("with_best", with_best.mean), ("alone", alone.mean))
        }
        READINGS.write_text(json.dumps(readings, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def best_passages(case: Case, encoder: Encoder) -> list[Passage]:
    """Return the best three passages by total log-likelihood of the question plus 40 times the cosine."""
    collection = case.collection
    passages = [Passage(text, id=str(n), title=title) for n, (_, title, text) in enumerate(collection.passages)]
    scores = 40 * encoder.cosines(case.question, collection)
    for item in UPR(prior=None).rank(case.question, passages):
        scores[int(item.passage.id)] += item.score * item.details["tokens"]
    return [passages[index] for index in np.argsort(-scores, kind="stable")[:N_READ].tolist()]
