"""Can the documents answer the question? How often `drillrank.drilldown.confidence` says no, and how well it knows.

Questions about a folder, READMEs, contracts, papers and annual reports are asked of these and of each other's
documents, also of collections of one to three small documents. With `--data`, a checkout of
https://github.com/patronus-ai/financebench, its questions and its reports A to J are included (reading them takes
minutes). Weights and thresholds are fitted in five folds by question: four fifths fit what judges the last one. The
threshold is the third percentile of the answerable questions.

The second part is about questions that sound as if their answer were in the folder: 60 answerable ones, 15 absent ones
of the data set and 40 of `kept/absent_questions.json`. `kept/absent_reading.json` has the answers of language models
that read the best three passages: the log-probabilities of Yes and No, and the mean log-likelihood of the question with
the best passage and without one. `--model qwen-0.5b` asks a model of `tools/real_models.sh` for what is missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank import UPR, Passage
from drillrank.drilldown import confidence as model
from drillrank.drilldown.confidence import EncoderScale, FindingFeatures, compute_features, judge_features
from drillrank.likelihood.base import NextTokenRequest
from drillrank.likelihood.huggingface import HuggingFaceModel
from drillrank.vectors import Floats, of_unit_length

from .kept import folder_of
from .minilm import INSTALLED, minilm
from .not_here_sets import KEPT, Case, Collection, folder_cases, list_cases

N_FOLDS = 5
REFUSED_ANSWERABLE = 0.03
READINGS = KEPT / "absent_reading.json"
N_READ = 3
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
    for name, used in (("terms", None), ("terms and MiniLM", encoder)):
        if name == "terms" or encoder is not None:
            judged = judge_cases([case for case in cases if used is None or case.asked_of not in REPORTS], used)
            console.print(_refusal_table(name, judged))
            console.print(f"weights of the subject, {name}: {judged.weights}, threshold {judged.threshold:.3f}")
    for table in _reliability_tables(encoder):
        console.print(table)


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
        return of_unit_length([self._vectors[key] for key in keys])

    def cosines(self, question: str, collection: Collection) -> Floats:
        """Return the cosine of a question with each passage."""
        cosines: Floats = self.embed(collection.texts) @ self.embed([question])[0]
        return cosines


# --- Refusals


REPORTS = ("reports", "other companies")  # too many passages to embed them for a benchmark


class JudgedCases:
    """Cases with features and cross-validated decisions.

    Attributes:
        cases: The cases.
        features: Their features.
        subject: P(subject) of each case.
        found: Decision on each case.
        weights: Weights that are fitted on all cases.
        threshold: Threshold that is fitted on all cases.
    """

    def __init__(self, cases: Sequence[Case], features: Sequence[FindingFeatures]) -> None:
        self.cases, self.features = cases, features
        columns = subject_columns(features)
        is_covered = np.array([each.is_covered for each in features], dtype=bool)
        kinds = np.array([case.kind for case in cases])
        answerable, other = kinds == "answerable", kinds == "other subject"
        labels = answerable | (kinds == "same subject")
        case_weights = _case_weights(cases, labels, other)
        self.subject = np.zeros(len(cases))
        refused = np.zeros(len(cases), dtype=bool)
        folds = np.array([fold_of(case.question) for case in cases])
        for fold in range(N_FOLDS):
            train, test = folds != fold, folds == fold
            predict, _ = fit(columns[train], labels[train], case_weights[train])
            self.subject[test] = predict(columns[test])
            threshold = _threshold(predict(columns), is_covered, answerable & train)
            refused[test] = (self.subject[test] < threshold) & ~is_covered[test]
        predict, self.weights = fit(columns, labels, case_weights)
        self.threshold = _threshold(predict(columns), is_covered, answerable)
        self.refused = refused


def judge_cases(cases: Sequence[Case], encoder: Encoder | None) -> JudgedCases:
    """Compute the features of cases and judge them in five folds."""
    return JudgedCases(cases, [features_of(case, encoder) for case in cases])


def features_of(case: Case, encoder: Encoder | None) -> FindingFeatures:
    """Compute the features of a case."""
    cosines = None if encoder is None else encoder.cosines(case.question, case.collection)
    return compute_features(case.collection.match(case.question, cosines, encoder and encoder.scale))


def subject_columns(features: Sequence[FindingFeatures]) -> Floats:
    """Return c, d, u and, with an encoder, s of each case."""
    rows = [(f.coverage, f.document_coverage, f.has_unknown_name, f.similarity) for f in features]
    return np.array([[value for value in row if value is not None] for row in rows], dtype=float)


def fold_of(question: str) -> int:
    """Return the fold of a question, the same in every run."""
    return blake2b(question.encode(), digest_size=1).digest()[0] % N_FOLDS


def fit(columns: Floats, labels: Any, weights: Any) -> tuple[Callable[[Floats], Floats], list[float]]:
    """Fit a logistic regression. Return its predictions as a function, and its weights, the intercept first."""
    from sklearn.linear_model import LogisticRegression

    used = weights > 0
    center, spread = columns[used].mean(axis=0), columns[used].std(axis=0) + 1e-9
    fitted = LogisticRegression(C=30).fit((columns[used] - center) / spread, labels[used], sample_weight=weights[used])
    slopes = fitted.coef_[0] / spread
    intercept = float(fitted.intercept_[0] - slopes @ center)
    return (
        lambda rows: 1 / (1 + np.exp(-(rows @ slopes + intercept))),
        [round(float(weight), 2) for weight in (intercept, *slopes)],
    )


def _case_weights(cases: Sequence[Case], positive: Any, negative: Any) -> Floats:
    """Weigh both classes alike, and a set of questions by the root of its size."""
    names = np.array([f"{case.about}|{case.asked_of}|{case.kind}" for case in cases])
    sizes = {name: int((names == name).sum()) for name in {*names.tolist()}}
    weights = np.array([sizes[name] ** -0.5 for name in names.tolist()]) * (positive | negative)
    for side in (positive, negative):
        weights[side] *= len(cases) / 2 / weights[side].sum()
    return weights


def _threshold(subject: Floats, is_covered: Any, answerable: Any) -> float:
    """Return the threshold below which 3 % of the answerable questions are."""
    scores = np.sort(np.where(is_covered, 1.0, subject)[answerable])
    return float(scores[int(REFUSED_ANSWERABLE * len(scores))])


def _refusal_table(name: str, judged: JudgedCases) -> Table:
    table = Table("questions about", "asked of", "the answer is", "questions", "refused", "None", "True", title=name)
    groups: dict[tuple[str, str, str], list[int]] = {}
    for index, case in enumerate(judged.cases):
        groups.setdefault((case.about, case.asked_of, case.kind), []).append(index)
        groups.setdefault(("all", "", case.kind), []).append(index)
    for group in sorted(groups, key=lambda group: (group[2], group[0] == "all", group)):
        indices = groups[group]
        refused = int(judged.refused[indices].sum())
        decided = [judge_features(judged.features[index]).found for index in indices]
        n_true = sum(each is True and not judged.refused[index] for index, each in zip(indices, decided, strict=True))
        row = (len(indices), f"{refused} ({refused / len(indices):.1%})", len(indices) - refused - n_true, n_true)
        table.add_row(*group, *map(str, row))
    return table


# --- Questions that sound as if their answer were here


def _reliability_tables(encoder: Encoder | None) -> Iterable[Table]:
    """Yield the AUC of every method, and a reliability table for each."""
    cases = [case for case in folder_cases() if case.kind != "other subject"]
    answerable = np.array([case.kind == "answerable" for case in cases])
    readings: dict[str, dict[str, Any]] = json.loads(READINGS.read_text(encoding="utf-8")) if READINGS.exists() else {}
    methods: dict[str, list[list[float] | None]] = {"terms": [_answer_row(features_of(case, None)) for case in cases]}
    if encoder is not None:
        methods["terms and MiniLM"] = [_answer_row(features_of(case, encoder)) for case in cases]
    for name, reading in readings.items():
        read = [reading.get(case.question) for case in cases]
        methods[f"{name}: P(yes)"] = [each and [each["yes"] - each["no"]] for each in read]
        methods[f"{name}: gain"] = [each and [each["with_best"] - each["alone"]] for each in read]
        if encoder is not None:
            rows = zip(methods["terms and MiniLM"], read, strict=True)
            methods[f"terms, MiniLM and {name}"] = [
                each and row and [*row, each["yes"] - each["no"], each["with_best"] - each["alone"]]
                for row, each in rows
            ]
    summary = Table("confidence from", "answerable", "absent", "AUC of its features", "AUC, five folds", "Brier score")
    tables = []
    for name, rows in methods.items():
        used = np.array([row is not None for row in rows])
        columns, labels = np.array([row for row in rows if row is not None]), answerable[used]
        questions = [case.question for case, is_used in zip(cases, used, strict=True) if is_used]
        predicted = _cross_validate(columns, labels, questions)
        single = ", ".join(f"{area(column, labels):.2f}" for column in columns.T)
        brier = f"{np.mean((predicted - labels) ** 2):.3f}"
        summary.add_row(name, str(labels.sum()), str((~labels).sum()), single, f"{area(predicted, labels):.2f}", brier)
        tables.append(_reliability_table(name, predicted, labels))
    return [summary, *tables]


def _answer_row(features: FindingFeatures) -> list[float]:
    """Return c, r and, with an encoder, s."""
    row = [features.coverage, features.is_covered]
    return row if features.similarity is None else [*row, features.similarity]


def _cross_validate(columns: Floats, labels: Any, questions: Sequence[str]) -> Floats:
    folds = np.array([fold_of(question) for question in questions])
    predicted = np.zeros(len(labels))
    for fold in range(N_FOLDS):
        test = folds == fold
        predict, _ = fit(columns, labels, (~test).astype(float))
        predicted[test] = predict(columns[test])
    return predicted


def area(scores: Floats, labels: Any) -> float:
    """Return the area under the ROC curve."""
    differences = scores[labels][:, None] - scores[~labels]
    return float(((differences > 0) + 0.5 * (differences == 0)).mean())


def _reliability_table(name: str, predicted: Floats, labels: Any) -> Table:
    table = Table("confidence", "questions", "mean confidence", "answerable", title=name)
    edges = np.linspace(0, 1, 11)
    for low, high in pairwise(edges):
        inside = (predicted >= low) & (predicted < high)
        if inside.any():
            row = f"{inside.sum()}", f"{predicted[inside].mean():.2f}", f"{labels[inside].mean():.2f}"
            table.add_row(f"{low:.1f} to {high:.1f}", *row)
    return table


# --- Readings of language models


def read_passages(name: str, encoder: Encoder) -> None:
    """Ask a language model about the best passages of every question of the folder, and keep its answers."""
    language_model = HuggingFaceModel(str(folder_of(name)), dtype="bfloat16")
    likelihood = UPR(language_model, prior=None)
    readings: dict[str, dict[str, Any]] = json.loads(READINGS.read_text(encoding="utf-8")) if READINGS.exists() else {}
    reading = readings.setdefault(Path(name).name, {})
    for case in folder_cases():
        if case.question in reading:
            continue
        passages = best_passages(case, encoder)
        text = "\n\n".join(f"Passage {n}: {each.title}\n{each.text}" for n, each in enumerate(passages, 1))
        prompt = YES_NO_PROMPT.format(passages=text, question=case.question)
        [answer] = language_model.next_tokens([NextTokenRequest(prompt, ("Yes", "No"), chat=True)])
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
