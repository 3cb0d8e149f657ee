"""Documents prepared for drilling down: their outline, their paragraphs and the scores of these.

In a corpus on disk, stored statistics score all paragraphs. Only the documents with the best ones are read. Evidence is
that of the same documents in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any

import numpy as np

from drillrank.corpus import Corpus, CorpusError
from drillrank.corpus.names import StoredNames
from drillrank.corpus.vectors import embedding_text
from drillrank.drilldown.document_links import DocumentLinks, list_heading_names
from drillrank.drilldown.evidence_paths import EvidencePath, PathFinder
from drillrank.drilldown.hierarchical_scores import HierarchicalScores, log_posteriors
from drillrank.drilldown.outline import ListedSection, Outline, OutlineSection, stored_sections
from drillrank.drilldown.paragraph_scores import (
    TEMPERATURE,
    ParagraphScorer,
    group_near_duplicates,
    maximize_expected_f1,
)
from drillrank.drilldown.question_scores import EmbeddingWeights, ParagraphVectors, QuestionScorer
from drillrank.drilldown.question_terms import count_stored_terms, find_stored_texts
from drillrank.drilldown.selection import QuestionContext
from drillrank.drilldown.trace import StepReport
from drillrank.drilldown.versions import Date, Versions
from drillrank.likelihood.unigram import CollectionModel
from drillrank.passages import Passage
from drillrank.vectors import Embed, Floats, Integers, embedded, top

HEADINGS_VERSION = 1  # of the rule by which the corpus stores headings


@dataclass(frozen=True)
class PreparedDocuments:
    """Documents prepared for many questions.

    Attributes:
        outline: Sections of all documents.
        scorer: Scores their paragraphs.
        documents: All scored documents, by their index in the input or their id, in the order of the question scores.
        names: Names of documents, by their index in the input or their id, if they are known.
        versions: Knows which documents are versions of one.
        n_best: Number of paragraphs that maximize the expected F1 over more documents than these; None if these are
            all.
        path_finder: Finds paths between the documents, if all of them are in the outline.
        paths: Paths for the question, by paragraph indices of the outline, if there is no `path_finder`.
    """

    outline: Outline
    scorer: ParagraphScorer
    documents: Sequence[Any] = ()
    names: Mapping[Any, str] = field(default_factory=dict)
    versions: Versions = field(default_factory=lambda: Versions({}, lambda _: ()))
    n_best: int | None = None
    path_finder: PathFinder | None = None
    paths: Sequence[EvidencePath] = ()

    def with_cosines(self, cosines: Floats) -> PreparedDocuments:
        """Return the documents for one question whose cosines are known without an encoder.

        Args:
            cosines: Cosine of each paragraph with the question, shape (paragraphs,).
        """
        scores = self.scorer.question_scores
        assert isinstance(scores, QuestionScorer), "only documents of a corpus have other scores"
        scores = scores.with_cosines(cosines, self.outline.section_of)
        return replace(self, scorer=self.scorer.with_question_scores(scores))

    def find_outdated(self, question: str, as_of: Date | None) -> set[int | str]:
        """Return the documents not to read: older versions, and documents later than `as_of`."""
        return self.versions.find_outdated({section.path[0] for section in self.outline.sections}, question, as_of)

    def find_paths(self, question: str, outdated: AbstractSet[int | str]) -> Sequence[EvidencePath]:
        """Return paths of paragraphs from different documents that explain a question, best first.

        Args:
            question: The question.
            outdated: Documents to leave out.
        """
        if self.path_finder is None:
            return self.paths
        scores = self.scorer.question_scores(question)
        return self.path_finder.find(question, scores, lambda index: self.documents[index] not in outdated)

    def select_sections(
        self, context: QuestionContext, outdated: AbstractSet[int | str], max_documents: int | None
    ) -> list[ListedSection]:
        """Return the sections of the documents to drill into.

        Args:
            context: The question.
            outdated: Documents to leave out.
            max_documents: Number of likeliest documents to keep; None keeps all.
        """
        sections_by_document: dict[int | str, list[ListedSection]] = {}
        for section in self.outline.sections:
            sections_by_document.setdefault(section.path[0], []).append(section)
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
        encoder: Encoder of the `D3` that prepares; None for lexical scores alone.
        embedded_by: Name under which the corpus stores the vectors of `encoder`; None keeps them in memory.
    """

    def __init__(
        self,
        corpus: Corpus,
        names: Mapping[str, str],
        dates: Mapping[str, Date],
        whole_paths: bool,
        encoder: Embed | None,
        embedded_by: str | None,
    ) -> None:
        self._corpus = corpus
        self._prepared_with, self._embedded_by = encoder, embedded_by
        self._vectors: ParagraphVectors | None = None
        self._encoder: Embed | None = None
        self.names = names
        self._whole_paths = whole_paths
        self._layout = corpus.layout(names)
        self.versions = Versions({id_: names[id_] for id_ in self._layout.ids}, corpus.digests, dates)

    @property
    def ids(self) -> Sequence[str]:
        """Ids of the documents, in the order of the corpus."""
        return self._layout.ids

    def hierarchical_scores(self, question: str, mu: float, collection: CollectionModel | None) -> HierarchicalScores:
        """Return the lexical scores of the paragraphs of all documents."""
        counts = self._corpus.counts(question, self._layout)
        return HierarchicalScores(
            count_stored_terms(question, self._layout, counts, self.names, collection, whole_paths=self._whole_paths),
            mu,
            self._corpus.unit,
        )

    # --- Links between documents (`document_links.LinkedPassages`)

    @cached_property
    def document_links(self) -> DocumentLinks:
        """Links between the documents."""
        return DocumentLinks(self, self._corpus.language)

    @property
    def document_names(self) -> Sequence[str]:
        """Names of the documents, in the order of `ids`."""
        return [self.names[id_] for id_ in self._layout.ids]

    @cached_property
    def document_of(self) -> Integers:
        """Index of each paragraph's document, shape (paragraphs,)."""
        return self._layout.document_of[self._layout.section_of]

    def read(self, positions: Sequence[int], /) -> Sequence[Passage]:
        """Return paragraphs."""
        return self._corpus.passages_by_number(self._layout.numbers(np.array(positions, dtype=np.int64)))

    def find_headings(self, words: Sequence[str], /) -> Iterator[tuple[int, int, Mapping[int, float]]]:
        """Yield the headings among some terms. The corpus stores the headings of all its passages for this."""
        mentions = self._heading_names.find_mentions(words)
        number_by_id = self._corpus.numbers({id_ for _, _, weight_by_id in mentions for id_ in weight_by_id})
        end_of_last = 0
        for start, end, weight_by_id in mentions:
            if start < end_of_last:
                continue
            ids = [id_ for id_ in weight_by_id if id_ in number_by_id]
            positions, is_inside = self._layout.places(np.array([number_by_id[id_] for id_ in ids], dtype=np.int64))
            weights = [weight_by_id[id_] for id_, inside in zip(ids, is_inside, strict=True) if inside]
            if weights:
                end_of_last = end
                yield start, end, dict(zip(positions.tolist(), weights, strict=True))

    def find_terms(self, words: Sequence[str], /) -> Sequence[Integers]:
        """Return the positions of the paragraphs that contain each term."""
        return find_stored_texts(self._layout, self._corpus.term_counts(words, self._layout))

    @cached_property
    def _heading_names(self) -> StoredNames:
        language = self._corpus.language
        return self._corpus.names(
            f"headings {HEADINGS_VERSION} {language}", partial(list_heading_names, language=language)
        )

    def likeliest_documents(self, totals: Floats, n: int, may_read: Callable[[int], bool]) -> list[int]:
        """Return the indices of the `n` likeliest documents that may be read, in the order of the corpus."""
        order = top(log_posteriors(totals, self.document_of, TEMPERATURE), len(self._layout.ids))
        return sorted(islice(filter(may_read, order), n))

    def documents_with_best_paragraphs(
        self,
        totals: Floats,
        may_read: Callable[[int], bool],
        min_paragraphs: int,
        top_n: int | None,
        temperature: float,
        repeats: bool,
    ) -> tuple[list[int], int, float]:
        """Return the indices of the documents with the best paragraphs, in the order of the corpus.

        Args:
            totals: Scores of the paragraphs of all documents, shape (paragraphs,).
            may_read: Function from the index of a document to False if it must not be read.
            min_paragraphs: Minimum number of best paragraphs that are needed.
            top_n: Number of paragraphs of the result; None for as many as maximize the expected F1.
            temperature: T of the posterior.
            repeats: True if paragraphs that say the same count each.

        Returns:
            The indices, the number of paragraphs of the result, and a score below which no paragraph is in the result.
        """
        layout, document_of, outdated = self._layout, self.document_of, set[int]()
        n_needed = min_paragraphs
        while True:
            current = ~np.isin(document_of, list(outdated))
            of_current = np.where(current, totals, -np.inf)
            n_result = top_n or maximize_expected_f1(totals[current], temperature=temperature)
            best = [index for index in top(of_current, max(n_needed, n_result + 1)) if current[index]]
            documents = set(document_of[best].tolist())
            if late := {document for document in documents if not may_read(document)}:
                outdated |= late
                continue
            texts = (
                passage.text
                for passage in self._corpus.passages_by_number(layout.numbers(np.array(best, dtype=np.int64)))
            )
            has_all = repeats or len(best) == current.sum()
            if has_all or len(group_near_duplicates(texts, n_result + 1)) > n_result:
                return sorted(documents), n_result, float(totals[best[-1]]) if len(best) > n_result else -np.inf
            n_needed = 4 * len(best)  # texts repeat each other: look further

    def may_read(self, document: int, question: str, as_of: Date | None) -> bool:
        """Return False for the index of an older version, and of a document later than `as_of`."""
        return not self.versions.find_outdated([self._layout.ids[document]], question, as_of)

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

    def read_vectors(self, encoder: Embed, encoder_name: str | None, weights: EmbeddingWeights) -> ParagraphVectors:
        """Return the vectors of all paragraphs. The corpus computes and stores those that it does not have yet.

        The vectors of an encoder without a name are computed once and kept in memory.

        Args:
            encoder: Function from texts to vectors.
            encoder_name: Name under which the corpus stores the vectors of an encoder other than that of the
                preparation; None keeps them in memory.
            weights: Weights of the embedding terms.
        """
        if encoder is self._prepared_with:
            encoder_name = self._embedded_by
        if self._vectors is None or self._encoder is not encoder:
            corpus, layout = self._corpus, self._layout
            names = {id_: self.names[id_] for id_ in layout.ids}
            if encoder_name is None:
                texts = [
                    embedding_text(passage, corpus.unit, names[id_])
                    for id_ in layout.ids
                    for passage in corpus.passages(id_)
                ]
                vectors = embedded(encoder, texts).astype(np.float32) if texts else np.zeros((0, 1), np.float32)
            else:
                vectors = corpus.vectors(encoder_name, layout)
                if not vectors.size or np.isnan(vectors).any():
                    corpus.embed(encoder_name, encoder, names=names)
                    vectors = corpus.vectors(encoder_name, layout)
            section_of = layout.first_of if weights.section_cosine else None
            self._vectors, self._encoder = ParagraphVectors(encoder, vectors, section_of), encoder
        return self._vectors
