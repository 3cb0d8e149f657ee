"""Questions and corpora from the official files of QASPER, HotpotQA, 2WikiMultihopQA and DPR.

from drillrank.evaluation import compare
from drillrank.evaluation.datasets import read_qasper

qasper = read_qasper("qasper-dev-v0.3.json", n_questions=40)
print(compare(qasper.questions, {"words": {"component": "D3", "unit": "paragraph"}}, qasper.corpus))
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from drillrank.errors import InvalidInput, check_limits
from drillrank.evaluation.corpora import EvaluationCorpus
from drillrank.evaluation.measures import UNANSWERABLE
from drillrank.evaluation.questions import Question
from drillrank.limits import read_json
from drillrank.passages import Passage, check_query, stable_uuid
from drillrank.structure import breadcrumb
from drillrank.structure.imported import Part, build_document

MAX_BYTES = 2**30
_HEADING_SEPARATOR = " ::: "  # in QASPER's names of sections
_UNTITLED = "(untitled)"
_CAPTION = "FLOAT SELECTED"  # in QASPER's evidence that is a figure or a table

ValueT = TypeVar("ValueT")
PathLike = str | os.PathLike[str]


class Dataset(NamedTuple):
    """Questions with their corpus.

    Attributes:
        questions: First argument of `compare` and `tune`.
        corpus: Their `corpus`.
    """

    questions: list[Question]
    corpus: EvaluationCorpus


def read_qasper(path: PathLike, n_questions: int | None = None) -> Dataset:
    """Read a file of QASPER (Dasigi et al. 2021), such as `qasper-dev-v0.3.json`.

    Each paper is a document whose paragraphs are the passages, and each question searches its own paper. Its
    `annotations` are the paragraphs that each annotator marked, without figures and tables, as in the official
    evaluator's text-only mode. Its `answers` are those of all annotators, and `types` has the type of each one:
    "extractive", "abstractive", "yes/no" or "unanswerable". Title and abstract are not searched.

    Args:
        path: The file, which may be compressed (`.gz`).
        n_questions: Number of questions to read; None for all.

    Raises:
        InvalidInput: The file cannot be read, is larger than 1 GB, or is not a file of QASPER. The message names the
            paper and the question.
    """
    corpus = EvaluationCorpus()
    return Dataset(_take(_read_papers(_read_file(path, dict), Path(path).name, corpus), n_questions), corpus)


def read_hotpotqa(path: PathLike, n_questions: int | None = None, *, closed: bool = False) -> Dataset:
    """Read a file of HotpotQA (Yang et al. 2018) in the distractor setting, such as `hotpot_dev_distractor_v1.json`.

    The corpus is the union of the paragraphs of all questions that are read, and `gold` are those with supporting
    facts. `types` is "bridge" or "comparison".

    Args:
        path: The file, which may be compressed (`.gz`).
        n_questions: Number of questions to read; None for all.
        closed: True to search only the paragraphs of the question itself.

    Raises:
        InvalidInput: The file cannot be read, is larger than 1 GB, or is not such a file. The message names the
            question.
    """
    corpus = EvaluationCorpus()
    rows = _read_file(path, list)
    return Dataset(_take(_read_multi_hop(rows, Path(path).name, corpus, closed=closed), n_questions), corpus)


def read_2wikimultihop(path: PathLike, n_questions: int | None = None, *, closed: bool = False) -> Dataset:
    """Read a file of 2WikiMultihopQA (Ho et al. 2020), such as its `dev.json`, as `read_hotpotqa` does.

    `types` is "comparison", "inference", "compositional" or "bridge_comparison".
    """
    return read_hotpotqa(path, n_questions, closed=closed)


def read_dpr(path: PathLike, n_questions: int | None = None) -> Dataset:
    """Read a file of DPR (Karpukhin et al. 2020).

    Results of its retriever (`ctxs`) become candidates with their scores, which are judged by `answers`. In training
    files, such as `biencoder-nq-dev.json`, the corpus is the union of all passages, and `gold` are the positive ones.

    Args:
        path: The file, which may be compressed (`.gz`).
        n_questions: Number of questions to read; None for all.

    Raises:
        InvalidInput: The file cannot be read, is larger than 1 GB, or is not a file of DPR. The message names the
            question.
    """
    corpus = EvaluationCorpus()
    return Dataset(_take(_read_dpr_rows(_read_file(path, list), Path(path).name, corpus), n_questions), corpus)


# Files and values


def _read_file(path: PathLike, kind: type[ValueT]) -> ValueT:
    """Return the JSON value of a file."""
    file = Path(path)
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, EOFError) as error:
        raise InvalidInput(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    if len(data) > MAX_BYTES:
        raise InvalidInput(f"{file} must have at most {MAX_BYTES:,} bytes. Write its first questions to another file.")
    try:
        value = read_json(data.decode("utf-8-sig"), str(file))
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} must be UTF-8: {error}.") from error
    if not isinstance(value, kind) or not value:
        content = "an object with papers" if kind is dict else "a list of questions"
        raise InvalidInput(f"{file} must contain {content}, got {type(value).__name__} {value!r:.40}.")
    return value


def _take(questions: Iterator[Question], n_questions: int | None) -> list[Question]:
    """Return the first questions, with different ids."""
    check_limits(n_questions=n_questions)
    question_by_id: dict[str, Question] = {}
    for question in islice(questions, n_questions):
        if question.id in question_by_id:
            question = replace(question, id=f"{question.id} {len(question_by_id)}")
        question_by_id[question.id] = question
    return list(question_by_id.values())


def _get(item: Any, key: str, kind: type[ValueT], row_name: str) -> ValueT:
    """Return a value of a JSON object.

    Raises:
        InvalidInput: It is missing or has another type.
    """
    value = item.get(key) if isinstance(item, Mapping) else None
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise InvalidInput(f"{row_name} must have {key!r} ({kind.__name__}), got {value!r:.80}.")
    return value


def _get_strings(item: Any, key: str, row_name: str) -> list[str]:
    strings = _get(item, key, list, row_name)
    if not all(isinstance(one, str) for one in strings):
        raise InvalidInput(f"{row_name}: {key!r} must contain strings, got {strings!r:.80}.")
    return strings


def _get_query(item: Any, row_name: str) -> str:
    try:
        return check_query(_get(item, "question", str, row_name))
    except InvalidInput as error:
        raise InvalidInput(f"{row_name}: {error}") from error


# QASPER


def _read_papers(papers: Mapping[str, Any], file_name: str, corpus: EvaluationCorpus) -> Iterator[Question]:
    """Add each paper to the corpus and yield its questions."""
    for name, paper in papers.items():
        row_name = f"{file_name}, paper {name:.40}"
        id_by_text = _add_paper(corpus, name, _get(paper, "full_text", list, row_name), row_name)
        for number, item in enumerate(_get(paper, "qas", list, row_name), start=1):
            yield _read_qasper_question(item, name, id_by_text, f"{row_name}, question {number}")


def _add_paper(corpus: EvaluationCorpus, name: str, sections: Sequence[Any], row_name: str) -> dict[str, str]:
    """Add a paper with its paragraphs. Return the ids of the paragraphs by their words."""
    parts: list[Part] = []
    previous_path: list[str] = []
    for section in sections:
        heading = section.get("section_name") if isinstance(section, Mapping) else None
        path = (heading if isinstance(heading, str) and heading.strip() else _UNTITLED).split(_HEADING_SEPARATOR)
        shared_levels = takewhile(lambda pair: pair[0] == pair[1], zip(path[:-1], previous_path, strict=False))
        n_common = len(list(shared_levels))
        parts += [Part("heading", text, level) for level, text in enumerate(path, start=1) if level > n_common]
        parts += [Part("paragraph", text) for text in _get_strings(section, "paragraphs", row_name)]
        previous_path = path
    document = build_document(parts)
    corpus.documents[name] = document
    id_by_text: dict[str, str] = {}
    blocks = ((section, block) for section, block in document.paragraphs() if block.kind != "heading")
    for number, (document_section, block) in enumerate(blocks):
        text = document.readable(block)
        title = breadcrumb(document_section.path)
        corpus.add(Passage(text, id=f"{name}/{number}", title=title), row_name, name)
        id_by_text.setdefault(" ".join(text.split()), f"{name}/{number}")
    return id_by_text


def _read_qasper_question(item: Any, paper: str, id_by_text: Mapping[str, str], row_name: str) -> Question:
    labels = [_get(one, "answer", dict, row_name) for one in _get(item, "answers", list, row_name)]
    if not labels:
        raise InvalidInput(f"{row_name} must have answers, got none. Use a file with answers.")
    answers_and_types = [_read_qasper_answer(label, row_name) for label in labels]
    evidence_lists = [
        [text for text in _get_strings(label, "evidence", row_name) if _CAPTION not in text] for label in labels
    ]
    # Evidence that is not a paragraph, such as a heading, cannot be found and counts as in the official evaluator.
    annotations = [
        [id_by_text.get(" ".join(text.split()), f"missing: {text}") for text in texts] for texts in evidence_lists
    ]
    passage_ids = set(id_by_text.values())
    return Question(
        _get(item, "question_id", str, row_name),
        _get_query(item, row_name),
        gold=tuple(dict.fromkeys(id_ for ids in annotations for id_ in ids if id_ in passage_ids)),
        spans=tuple(dict.fromkeys(text for texts in evidence_lists for text in texts if text.strip())),
        answers=tuple(answer for answer, _ in answers_and_types),
        row_name=row_name,
        annotations=tuple(map(frozenset, annotations)),
        document=paper,
        types=tuple(kind for _, kind in answers_and_types),
    )


def _read_qasper_answer(label: Mapping[str, Any], row_name: str) -> tuple[str, str]:
    """Return the answer of an annotator and its type."""
    if _get(label, "unanswerable", bool, row_name):
        return UNANSWERABLE, "unanswerable"
    if label.get("extractive_spans"):
        return ", ".join(_get_strings(label, "extractive_spans", row_name)), "extractive"
    if label.get("free_form_answer"):
        return _get(label, "free_form_answer", str, row_name), "abstractive"
    return ("Yes" if _get(label, "yes_no", bool, row_name) else "No"), "yes/no"


# HotpotQA and 2WikiMultihopQA


def _read_multi_hop(
    rows: Sequence[Any], file_name: str, corpus: EvaluationCorpus, *, closed: bool
) -> Iterator[Question]:
    for number, row in enumerate(rows, start=1):
        row_name = f"{file_name}, question {number}"
        id_by_title = dict(_add_context(corpus, _get(row, "context", list, row_name), row_name))
        titles = [_first_string(fact, row_name) for fact in _get(row, "supporting_facts", list, row_name)]
        for title in titles:
            if title not in id_by_title:
                raise InvalidInput(
                    f"{row_name}: the supporting title {title!r:.80} is not in its context. Use a file of the "
                    "distractor setting."
                )
        yield Question(
            _get(row, "_id", str, row_name),
            _get_query(row, row_name),
            gold=tuple(dict.fromkeys(id_by_title[title] for title in titles)),
            answers=(_get(row, "answer", str, row_name),),
            candidates=tuple(dict.fromkeys(id_by_title.values())) if closed else None,
            row_name=row_name,
            types=(_get(row, "type", str, row_name),),
        )


def _first_string(pair: Any, row_name: str) -> str:
    if not isinstance(pair, list) or not pair or not isinstance(pair[0], str):
        raise InvalidInput(f"{row_name} must have pairs that begin with a title, got {pair!r:.80}.")
    return pair[0]


def _add_context(corpus: EvaluationCorpus, context: Sequence[Any], row_name: str) -> Iterator[tuple[str, str]]:
    """Add paragraphs to the corpus. Yield the title and the id of each."""
    for paragraph in context:
        title = _first_string(paragraph, row_name)
        sentences = paragraph[1] if len(paragraph) == 2 else None
        if not isinstance(sentences, list) or not all(isinstance(sentence, str) for sentence in sentences):
            raise InvalidInput(f"{row_name}: the paragraph {title!r:.80} must have a list of sentences.")
        text = " ".join(" ".join(sentences).split())
        if not text:
            continue
        passage = Passage(text, id=title or stable_uuid(title, text), title=title)
        if corpus.passages.get(passage.id, passage) != passage:  # another text with this title
            passage = replace(passage, id=stable_uuid(title, text))
        corpus.add(passage, row_name)
        yield title, passage.id


# DPR


def _read_dpr_rows(rows: Sequence[Any], file_name: str, corpus: EvaluationCorpus) -> Iterator[Question]:
    for number, row in enumerate(rows, start=1):
        row_name = f"{file_name}, question {number}"
        text, answers = _get_query(row, row_name), tuple(_get_strings(row, "answers", row_name))
        if "ctxs" in row:
            results = _get(row, "ctxs", list, row_name)
            ids = [_add_dpr_passage(corpus, one, row_name) for one in results]
            scores = tuple(_read_score(one, row_name) for one in results)
            yield Question(str(number), text, answers=answers, candidates=tuple(ids), scores=scores, row_name=row_name)
            continue
        positive_ids = [_add_dpr_passage(corpus, one, row_name) for one in _get(row, "positive_ctxs", list, row_name)]
        for key in ("negative_ctxs", "hard_negative_ctxs"):
            for one in _get(row, key, list, row_name):
                _add_dpr_passage(corpus, one, row_name)
        gold = tuple(dict.fromkeys(positive_ids))
        yield Question(str(number), text, gold=gold, answers=answers, row_name=row_name)


def _add_dpr_passage(corpus: EvaluationCorpus, item: Any, row_name: str) -> str:
    """Add a passage to the corpus and return its id."""
    text, title = _get(item, "text", str, row_name), _get(item, "title", str, row_name)
    id_: Any = next((str(item[key]) for key in ("id", "passage_id", "psg_id") if item.get(key)), None)
    passage = Passage(text, id=id_ or stable_uuid(title, text), title=title)
    corpus.add(passage, row_name)
    return passage.id


def _read_score(item: Any, row_name: str) -> float:
    try:
        return float(item["score"])
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"{row_name}: each of 'ctxs' must have a number 'score', got {item!r:.80}.") from error
