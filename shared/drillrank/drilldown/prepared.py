"""Documents prepared for drilling down: their outline, their paragraphs and the scores of these.

Of a corpus on disk, term statistics give the scores of all paragraphs, and only the documents with the best ones are
read. Evidence is that of the same documents in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from drillrank.corpus import Corpus, CorpusError
from drillrank.drilldown.hierarchical_scores import HierarchicalScores, log_posteriors
from drillrank.drilldown.outline import Outline, OutlineSection, Section, stored_sections
from drillrank.drilldown.paragraph_scores import (
    TEMPERATURE,
    ParagraphScorer,
    group_near_duplicates,
    maximize_expected_f1,
)
from drillrank.drilldown.question_terms import count_stored_terms
from drillrank.drilldown.selection import QuestionContext
from drillrank.drilldown.trace import StepReport
from drillrank.drilldown.versions import Date, Versions
from drillrank.likelihood.unigram import Collection
from drillrank.vectors import Embed, Floats, Integers, embedded, top

MAX_EMBEDDED_SECTIONS = 50  # pages or sections whose paragraphs are embedded, likeliest first


@dataclass(frozen=True)
class PreparedDocuments:
    """Documents prepared for many questions.

    Attributes:
        outline: Sections of all documents.
        scorer: Scores their paragraphs.
        names: Names of documents, by their index in the input or their id, if they are known.
        versions: Knows which documents are versions of one.
        n_best: Number of paragraphs that maximize the expected F1 over more documents than these; None if these are
            all.
    """

    outline: Outline
    scorer: ParagraphScorer
    names: Mapping[Any, str] = field(default_factory=dict)
    versions: Versions = field(default_factory=lambda: Versions({}, lambda _: ()))
    n_best: int | None = None

    def select_sections(self, context: QuestionContext, as_of: Date | None, max_documents: int | None) -> list[Section]:
        """Return the sections of the documents to drill into.

        Outdated versions are left out. If there are more documents than `max_documents`, the likeliest are kept.
        """
        sections_by_document: dict[int | str, list[Section]] = {}
        for section in self.outline.sections:
            sections_by_document.setdefault(section.path[0], []).append(section)
        outdated = self.versions.outdated(sections_by_document, context.question, as_of)
        current = [document for document in sections_by_document if document not in outdated]
        if max_documents is None or len(current) <= max_documents:
            return [section for document in current for section in sections_by_document[document]]
        documents = list(sections_by_document)
        index_by_document = {document: index for index, document in enumerate(documents)}
        document_of = np.array([index_by_document[section.path[0]] for section in self.outline.sections])
        posteriors = context.likelihoods.score_groups(document_of[self.outline.section_of])  # [n_documents]
        score_by_document = dict(zip(documents, posteriors.tolist(), strict=True))
        likeliest = set(sorted(current, key=score_by_document.__getitem__, reverse=True)[:max_documents])
        chosen = [document for document in documents if document in likeliest]
        context.report(StepReport("documents", len(current), tuple(map(str, chosen))))
        return [section for document in chosen for section in sections_by_document[document]]


class PreparedCorpus:
    """Documents of a corpus, prepared for many questions.

    Args:
        corpus: The corpus.
        names: Names of documents, by their ids. Documents without a name here are not read.
        dates: Dates of documents, by their ids, for names without a date.
        whole_paths: As in `D3Settings`.
        embedded_by: As for `D3.prepare_corpus`.
    """

    def __init__(
        self,
        corpus: Corpus,
        names: Mapping[str, str],
        dates: Mapping[str, Date],
        whole_paths: bool,
        embedded_by: str | None,
    ) -> None:
        self._corpus = corpus
        self._embedded_by = embedded_by
        self._vectors: dict[int, npt.NDArray[np.float32]] = {}
        self.names = names
        self._whole_paths = whole_paths
        self._layout = corpus.layout(names)
        self.versions = Versions({id_: names[id_] for id_ in self._layout.ids}, corpus.digests, dates)

    def hierarchical_scores(self, question: str, mu: float, collection: Collection | None) -> HierarchicalScores:
        """Return the lexical scores of the paragraphs of all documents."""
        counts = self._corpus.counts(question, self._layout)
        return HierarchicalScores(
            count_stored_terms(question, self._layout, counts, self.names, collection, whole_paths=self._whole_paths),
            mu,
            self._corpus.unit,
        )

    def likeliest_documents(self, question: str, scores: HierarchicalScores, as_of: Date | None, n: int) -> list[int]:
        """Return the indices of the `n` likeliest documents, in the order of the corpus."""
        document_of = self._layout.document_of[self._layout.section_of]
        order = top(log_posteriors(scores.totals, document_of, TEMPERATURE), len(self._layout.ids))
        return sorted(islice((index for index in order if not self._outdated([index], question, as_of)), n))

    def documents_with_best_paragraphs(
        self,
        question: str,
        scores: HierarchicalScores,
        as_of: Date | None,
        min_paragraphs: int,
        top_n: int | None,
        repeats: bool,
    ) -> tuple[list[int], int]:
        """Return the indices of the documents with the best paragraphs, in the order of the corpus.

        Args:
            question: The question.
            scores: Scores of the paragraphs of all documents.
            as_of: Date after which documents are left out.
            min_paragraphs: Minimum number of best paragraphs that are needed.
            top_n: Number of paragraphs of the result; None for as many as maximize the expected F1.
            repeats: True if paragraphs that say the same count each.

        Returns:
            The indices, and the number of paragraphs of the result.
        """
        layout, outdated = self._layout, set[int]()
        document_of = layout.document_of[layout.section_of]  # [n_paragraphs]
        n_needed = min_paragraphs
        while True:
            current = ~np.isin(document_of, list(outdated))
            totals = np.where(current, scores.totals, -np.inf)
            n_result = top_n or maximize_expected_f1(totals[current])
            best = [index for index in top(totals, max(n_needed, n_result + 1)) if totals[index] > -np.inf]
            documents = set(document_of[best].tolist())
            if late := self._outdated(documents, question, as_of):
                outdated |= late
                continue
            texts = (
                passage.text
                for passage in self._corpus.passages_by_number(layout.numbers(np.array(best, dtype=np.int64)))
            )
            has_all = repeats or len(best) == current.sum()
            if has_all or len(group_near_duplicates(texts, n_result + 1)) > n_result:
                return sorted(documents), n_result
            n_needed = 4 * len(best)  # texts repeat each other: look further

    def likeliest_sections(
        self, question: str, scores: HierarchicalScores, as_of: Date | None
    ) -> tuple[list[int], Integers]:
        """Return the indices of the documents with the likeliest sections, and of the paragraphs in these sections."""
        layout = self._layout
        order = top(log_posteriors(scores.totals, layout.section_of, TEMPERATURE), len(layout.document_of))
        current = (index for index in order if not self._outdated([layout.document_of[index]], question, as_of))
        best = list(islice(current, MAX_EMBEDDED_SECTIONS))
        return sorted(set(layout.document_of[best].tolist())), np.flatnonzero(np.isin(layout.section_of, best))

    def _outdated(self, documents: Iterable[int], question: str, as_of: Date | None) -> set[int]:
        ids = self._layout.ids
        return {index for index in documents if self.versions.outdated([ids[index]], question, as_of)}

    def read_sections(self, documents: Sequence[int]) -> tuple[list[OutlineSection], Integers]:
        """Return the sections of documents, given by ascending index, and the indices of their paragraphs."""
        sections: list[OutlineSection] = []
        paragraph_indices = [np.zeros(0, np.int64)]
        for document in documents:
            id_, (first, end) = self._layout.ids[document], self._layout.starts[document : document + 2].tolist()
            passages = self._corpus.passages(id_)
            if end - first != len(passages):
                raise CorpusError(f"The document {id_!r:.200} was changed while it was read. Ask again.")
            sections += stored_sections(id_, passages, self._layout.first_of[first:end].tolist())
            paragraph_indices.append(np.arange(first, end))
        return sections, np.concatenate(paragraph_indices)

    def embed(self, function: Embed, paragraph_indices: Integers, texts: Sequence[str]) -> Floats:
        """Return vectors of paragraphs, shape (paragraphs, dimensions). Each is computed once.

        The corpus keeps them if `embedded_by` names the function.
        """
        if self._embedded_by is not None:
            stored = self._corpus.vectors(self._embedded_by, self._layout)
            if not stored.size or np.isnan(stored).any():
                self._corpus.embed(self._embedded_by, function, names=dict.fromkeys(self.names, ""))
                stored = self._corpus.vectors(self._embedded_by, self._layout)
            return stored[paragraph_indices].astype(np.float64)
        vectors, numbers = self._vectors, self._layout.numbers(paragraph_indices).tolist()
        missing = [(number, text) for number, text in zip(numbers, texts, strict=True) if number not in vectors]
        if missing:
            new = embedded(function, [text for _, text in missing]).astype(np.float32)
            new_vectors = {number: vector for (number, _), vector in zip(missing, new, strict=True)}
            vectors |= new_vectors
        return np.array([vectors[number] for number in numbers], dtype=np.float64)
