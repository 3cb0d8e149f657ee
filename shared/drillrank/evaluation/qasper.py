"""QASPER's own files (Dasigi et al. 2021): papers as documents, their questions as `compare` takes them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from drillrank.errors import InvalidInput
from drillrank.files import opened
from drillrank.limits import read_json
from drillrank.structure import Document, breadcrumb
from drillrank.structure.imported import Part, document_of

_DEEPER = " ::: "  # between the headings of a section's name


@dataclass(frozen=True)
class QasperPaper:
    """One paper.

    Attributes:
        id: Its number on arXiv.
        document: Title, sections and paragraphs; the abstract, in which no evidence lies, is left out.
        questions: With evidence in the text: rows for `drillrank.evaluation.compare`, each with `id`, `question`,
            `answers` (of all annotators, "yes" and "no" among them), `gold` (ids of paragraphs, by annotator) and
            `candidates` (all paragraphs of the paper).
        unanswered: The others, without `gold`: every annotator found no evidence, or figures and tables alone.
    """

    id: str
    document: Document
    questions: list[dict[str, Any]]
    unanswered: list[dict[str, Any]]


def read_qasper(path: str | os.PathLike[str]) -> list[QasperPaper]:
    """The papers of a file such as `qasper-dev-v0.3.json`.

    Raises:
        InvalidInput: it cannot be read, or is something else.
    """
    with opened(path) as file:
        written = file.read()
    content = read_json(written.decode("utf-8", "replace"), str(path))
    try:
        return [_paper(id_, paper) for id_, paper in content.items()]
    except (LookupError, TypeError, AttributeError) as problem:
        raise InvalidInput(f"{path} is no file of QASPER's: {type(problem).__name__}: {problem}.") from problem


def _paper(id_: str, paper: Mapping[str, Any]) -> QasperPaper:
    parts = [Part("heading", str(paper["title"])), *_parts(paper["full_text"])]
    candidates: list[dict[str, str]] = []
    for section in paper["full_text"]:
        title = breadcrumb((section["section_name"] or "").split(_DEEPER))
        texts = filter(str.strip, section["paragraphs"])
        candidates += [
            {"id": f"{id_}:{number}", "text": text, "title": title}
            for number, text in enumerate(texts, len(candidates))
        ]
    by_text = {" ".join(candidate["text"].split()): candidate["id"] for candidate in reversed(candidates)}
    questions: list[dict[str, Any]] = []
    unanswered: list[dict[str, Any]] = []
    for entry in paper["qas"]:
        found = [item["answer"] for item in entry["answers"]]
        row = {"id": entry["question_id"], "question": entry["question"], "answers": list(map(answer_text, found))}
        marked = [[" ".join(text.split()) for text in answer["evidence"]] for answer in found]
        gold = [[by_text[text] for text in texts if text in by_text] for texts in marked]
        if any(gold):
            questions.append({**row, "gold": gold, "candidates": candidates})
        else:
            unanswered.append(row)
    return QasperPaper(id_, document_of(parts), questions, unanswered)


def _parts(sections: list[Mapping[str, Any]]) -> Iterator[Part]:
    above: list[str] = []
    for section in sections:
        path = (section["section_name"] or "").split(_DEEPER)
        for depth, heading in enumerate(path):
            if heading and path[: depth + 1] != above[: depth + 1]:
                yield Part("heading", heading, level=depth + 2)
        above = path
        for paragraph in filter(str.strip, section["paragraphs"]):
            yield Part("paragraph", paragraph)


def answer_text(answer: Mapping[str, Any]) -> str:
    """An annotator's answer as QASPER's evaluator has it.

    >>> given = {"unanswerable": False, "extractive_spans": ["BERT", "ELMo"], "yes_no": None, "free_form_answer": ""}
    >>> answer_text(given)
    'BERT, ELMo'
    """
    if answer["unanswerable"]:
        return "Unanswerable"
    if answer["extractive_spans"]:
        return ", ".join(answer["extractive_spans"])
    return str(answer["free_form_answer"] or ("Yes" if answer["yes_no"] else "No"))
