"""Questions and document collections for the benchmark `not_here`: which question is asked of which documents."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console

from drillrank import parse_document
from drillrank.drilldown.confidence import EncoderScale, QuestionMatches
from drillrank.drilldown.question_terms import capitalized_mask, term_occurrences
from drillrank.structure import Document
from drillrank.structure.passages import cut_passages
from drillrank.text import terms
from drillrank.vectors import Floats

from .contracts import contracts
from .data import data_folder, read
from .financebench import is_for_tuning, reports
from .folders import _read_folder as read_folder
from .readme_folder import QUESTIONS, folder

KEPT = Path(__file__).parent / "kept"
N_PAPERS = 25
SHORT_README = 12  # passages
OPENING = 600  # characters

Kind = Literal["answerable", "same subject", "unclear subject", "other subject"]
SHARED_SUBJECTS = {("READMEs", "folder"), ("READMEs", "papers"), ("READMEs", "one paper"), ("contracts", "folder")}


@dataclass(frozen=True, eq=False)
class Collection:
    """Passages of some documents.

    Attributes:
        name: Name in the tables.
        documents: The documents by name.
    """

    name: str
    documents: dict[str, Document]

    @cached_property
    def passages(self) -> list[tuple[int, str, str]]:
        """Index of the document, title and text of each passage."""
        return [
            (index, f"{Path(name).stem.replace('-', ' ').replace('_', ' ')} {passage.title}", passage.text)
            for index, (name, document) in enumerate(self.documents.items())
            for passage in cut_passages(document)
        ]

    @cached_property
    def texts(self) -> list[str]:
        """Texts to embed."""
        return [f"{title}\n{text}" for _, title, text in self.passages]

    @cached_property
    def _postings(self) -> tuple[dict[str, list[int]], Floats]:
        """Indices of the passages by term, and the number of terms in each passage."""
        postings: defaultdict[str, list[int]] = defaultdict(list)
        lengths = []
        for index, text in enumerate(self.texts):
            words = terms(text)
            lengths.append(len(words))
            for word in {*words}:
                postings[word].append(index)
        return dict(postings), np.array(lengths, dtype=float)

    @cached_property
    def _openings(self) -> list[str]:
        first_texts = {index: text for index, _, text in reversed(self.passages)}
        return [f"{name} {first_texts.get(index, '')[:OPENING]}" for index, name in enumerate(self.documents)]

    def match(self, question: str, cosines: Floats | None = None, scale: EncoderScale | None = None) -> QuestionMatches:
        """Return the matches of a question."""
        words = terms(question)
        postings, lengths = self._postings
        return QuestionMatches(
            words,
            [np.array(postings.get(word, []), dtype=np.intp) for word in words],
            lengths,
            np.array([index for index, _, _ in self.passages], dtype=np.intp),
            term_occurrences(words, self._openings, "english"),
            capitalized_mask(question, words, "english"),
            cosines=cosines,
            scale=scale,
        )


@dataclass(frozen=True, eq=False)
class Case:
    """A question that is asked of a collection.

    Attributes:
        about: Set of questions.
        question: The question.
        collection: The collection.
        kind: Relation of the question to the collection.
        asked_of: Name of the collection, or of its group of small collections.
    """

    about: str
    question: str
    collection: Collection
    kind: Kind
    asked_of: str


def read_absent_questions() -> list[dict[str, Any]]:
    """Read the 60 kept questions that the documents of `folders` do not answer, with the reason."""
    absent: list[dict[str, Any]] = json.loads((KEPT / "absent_questions.json").read_text(encoding="utf-8"))
    return absent


def list_cases(checkout: str | None, console: Console) -> list[Case]:
    """List all cases.

    Args:
        checkout: A checkout of FinanceBench. None leaves its questions and reports out.
        console: Where the reading of the reports is shown.
    """
    return [
        *_list_own_cases(),
        *_list_crossed_cases(_read_finance_questions(checkout)),
        *_list_report_cases(checkout, console),
    ]


def folder_cases() -> list[Case]:
    """List the questions about `folders`: answerable ones, and absent ones about the same or another subject."""
    dev = _folder()
    questions = json.loads((data_folder() / "folders" / "questions.json").read_text(encoding="utf-8"))
    cases = []
    for entry in questions:
        kind: Kind = "same subject" if entry["kind"] == "absent" else "answerable"
        cases.append(Case("folder", entry["question"], dev, kind, "folder"))
    for entry in read_absent_questions():
        kind = "same subject" if entry["subject"] == "same" else "other subject"
        cases.append(
            Case("folder" if entry["subject"] == "same" else "general", entry["question"], dev, kind, "folder")
        )
    return cases


_COLLECTIONS: dict[str, Collection] = {}


def _get(name: str, read_documents: Any) -> Collection:
    if name not in _COLLECTIONS:
        _COLLECTIONS[name] = Collection(name, read_documents())
    return _COLLECTIONS[name]


def _folder() -> Collection:
    return _get("folder", lambda: read_folder(data_folder() / "folders"))


def _readmes() -> Collection:
    return _get("READMEs", folder)


def _contracts() -> Collection:
    texts, _ = contracts()
    return _get(
        "contracts",
        lambda: {f"contract_{n:02}.md": parse_document(text, "markdown") for n, text in enumerate(texts, 1)},
    )


def _papers() -> Collection:
    items = islice(read("longdoc/qasper_tune"), N_PAPERS)
    return _get(
        "papers", lambda: {f"paper{n}.md": parse_document(item["markdown"], "markdown") for n, item in enumerate(items)}
    )


def _part(collection: Collection, indices: Sequence[int]) -> Collection:
    """Return a collection of some of the documents."""
    names = [*collection.documents]
    chosen = sorted({index % len(names) for index in indices})
    key = f"{collection.name} {chosen}"
    return _get(key, lambda: {names[index]: collection.documents[names[index]] for index in chosen})


def _paper_questions() -> list[tuple[int, str]]:
    """List the questions with evidence, each with the index of its paper."""
    return [
        (index, asked["question"])
        for index, item in enumerate(islice(read("longdoc/qasper_tune"), N_PAPERS))
        for asked in item["questions"]
        if any(asked["evidence"])
    ]


def _list_own_cases() -> Iterator[Case]:
    """List questions that are asked of the documents they were written for, or of similar ones."""
    yield from folder_cases()
    for question, *_ in QUESTIONS:
        yield Case("READMEs", question, _readmes(), "answerable", "READMEs")
    for number, (question, contract, _) in enumerate(contracts()[1]):
        yield Case("contracts", question, _contracts(), "answerable", "contracts")
        few = _part(_contracts(), [contract, contract + 5, contract + 9][: 1 + number % 3])
        yield Case("contracts", question, few, "answerable", "1 to 3 contracts")
    for paper, question in _paper_questions():
        yield Case("papers", question, _papers(), "answerable", "papers")
        yield Case("papers", question, _part(_papers(), [paper]), "answerable", "its paper")
        yield Case("papers", question, _part(_papers(), [paper + 7]), "unclear subject", "another paper")


def _list_crossed_cases(finance_questions: Sequence[str]) -> Iterator[Case]:
    """List questions that are asked of documents about another subject."""
    questions = {
        "folder": [case.question for case in folder_cases() if case.kind == "answerable"],
        "READMEs": [question for question, *_ in QUESTIONS],
        "contracts": [question for question, *_ in contracts()[1]],
        "papers": [question for _, question in _paper_questions()],
        "finance": list(finance_questions),
        "general": [entry["question"] for entry in read_absent_questions() if entry["subject"] == "other"],
    }
    short = [n for n in range(len(_readmes().documents)) if len(_part(_readmes(), [n]).passages) <= SHORT_README]
    for about, asked in questions.items():
        for number, question in enumerate(asked):
            collections = [(each.name, each) for each in (_folder(), _readmes(), _contracts(), _papers())]
            if about != "papers":
                collections.append(("one paper", _part(_papers(), [number])))
            if about != "contracts":
                start = number % 12
                few = _part(_contracts(), [start, start + 1, start + 2][: 1 + start % 3])
                collections.append(("1 to 3 contracts", few))
            if about != "READMEs":
                collections.append(("one README", _part(_readmes(), [short[number % len(short)]])))
            for name, collection in collections:
                if name == about or (about, name) == ("general", "folder"):
                    continue  # listed among the own cases
                is_unclear = about == "papers" or (about, name) in SHARED_SUBJECTS
                kind: Kind = "unclear subject" if is_unclear else "other subject"
                yield Case(about, question, collection, kind, name)


def _read_finance_questions(checkout: str | None) -> list[str]:
    if checkout is None:
        return []
    lines = (Path(checkout) / "data" / "financebench_open_source.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["question"] for line in lines]


def _list_report_cases(checkout: str | None, console: Console) -> Iterator[Case]:
    """List questions asked of the reports A to J, and of those of other companies."""
    if checkout is None:
        return
    tuning = [report for report in reports(Path(checkout), console) if is_for_tuning(report.name)]
    library = _get("reports", lambda: {f"{report.name}.pdf": report.document for report in tuning})
    for report in tuning:
        company = report.name.partition("_")[0]
        others = [n for n, other in enumerate(tuning) if other.name.partition("_")[0] != company]
        for asked in report.questions:
            yield Case("finance", asked.text, library, "answerable", "reports")
            yield Case("finance", asked.text, _part(library, others), "unclear subject", "other companies")
    crossed = [*_list_crossed_cases([])]
    for about, question in dict.fromkeys((case.about, case.question) for case in crossed):
        kind: Kind = "unclear subject" if about == "papers" else "other subject"
        yield Case(about, question, library, kind, "reports")
