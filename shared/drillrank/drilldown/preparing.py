"""Preparation of documents: parsing, counting words, and embedding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from drillrank.corpus import Corpus
from drillrank.corpus.documents import DEFAULT_UNIT, Unit
from drillrank.corpus.vectors import embedding_text, headline
from drillrank.drilldown.document_links import DocumentLinks, OutlinePassages
from drillrank.drilldown.evidence_paths import EvidencePath, PathFinder
from drillrank.drilldown.hierarchical_scores import MU, score_index
from drillrank.drilldown.last_used import LastUsed
from drillrank.drilldown.outline import BEGINNING, Outline, OutlineSection, number_section, outline
from drillrank.drilldown.paragraph_scores import FUSED_TEMPERATURE, N_COMPLEMENTS, TEMPERATURE, ParagraphScorer
from drillrank.drilldown.passage_reader import PassageJudge, PassageReader
from drillrank.drilldown.prepared import PreparedCorpus, PreparedDocuments
from drillrank.drilldown.question_scores import (
    EMBEDDING_WEIGHTS,
    EmbeddingWeights,
    ParagraphVectors,
    QuestionScorer,
    QuestionScores,
    combine_scores,
)
from drillrank.drilldown.question_terms import JoinedIndex, LevelIndex
from drillrank.drilldown.settings import READ, READ_ALONE, READ_JUDGED, D3Settings
from drillrank.drilldown.versions import Date, Versions
from drillrank.errors import InvalidInput
from drillrank.likelihood import LanguageModel
from drillrank.likelihood.encoders import Encoder
from drillrank.likelihood.unigram import CollectionModel, UnigramModel
from drillrank.prompts import MIN_PROMPT_ROOM, fill_template
from drillrank.structure import Document
from drillrank.structure.cutting import split_long_paragraph
from drillrank.text import TokenCount
from drillrank.text_digests import text_digests
from drillrank.vectors import CollectionStatistics, Embed, Floats, Integers, embedded


@dataclass(frozen=True, eq=False)
class IndexedSections:
    """Sections of documents with their index.

    Attributes:
        sections: The sections. Long paragraphs are split.
        index: Index of their words.
        vectors: Vectors of their paragraphs, shape (paragraphs, dimensions). None without an encoder.
    """

    sections: Sequence[OutlineSection]
    index: LevelIndex
    vectors: Floats | None

    _digests_by_document: dict[int | str, list[int]] = field(default_factory=dict)
    _sections_by_document: LastUsed[int, Sequence[OutlineSection]] = field(default_factory=lambda: LastUsed(8))

    def number(self, document: int) -> Sequence[OutlineSection]:
        """Return the sections of document 0 as those of another document."""
        if document == 0:
            return self.sections
        return self._sections_by_document.make(
            document, lambda: [number_section(section, document) for section in self.sections]
        )

    def list_digests(self) -> Callable[[int | str], list[int]]:
        """Return a function from a document to digests of its text, by which versions are recognized.

        The function can be pickled. It computes the digests of a document once for all prepared documents.
        """
        return partial(_list_digests, self.sections, self._digests_by_document)


class DocumentPreparer:
    """Prepares documents for questions.

    Args:
        settings: Settings of `D3`.
        language_model: Scores paragraphs.
        embed: Function from texts to vectors; None for lexical scores alone.
        count_tokens: Counts the tokens of a text.
    """

    def __init__(
        self, settings: D3Settings, language_model: LanguageModel, embed: Embed | None, count_tokens: TokenCount
    ) -> None:
        self._settings, self._language_model, self._embed = settings, language_model, embed
        self._count_tokens = count_tokens

    def prepare(
        self,
        documents: Sequence[Document | str] | Sequence[OutlineSection],
        names: Sequence[str | None],
        dates: Sequence[Date | None],
    ) -> PreparedDocuments:
        """Prepare documents in memory; see `D3.prepare`."""
        sections = [item for item in documents if isinstance(item, OutlineSection)]
        if not sections or len(sections) < len(documents):
            sections = outline(documents, self._unit)  # type: ignore[arg-type]  # rejects other items
        name_by_document: dict[int | str, str] = {index: name for index, name in enumerate(names) if name}
        return self.join([self.index(sections, name_by_document)], name_by_document, dates)

    def index(self, sections: Sequence[OutlineSection], names: Mapping[int | str, str]) -> IndexedSections:
        """Count the words of documents, and embed their paragraphs. This takes most of the time of `prepare`.

        Args:
            sections: Sections of the documents.
            names: Names of documents, by their index in the input.
        """
        max_tokens = self._max_paragraph_tokens()
        sections = [_split_long_paragraphs(section, max_tokens, self._count_tokens) for section in sections]
        tree = Outline(sections, whole_paths=bool(self._settings.whole_paths))
        _, collection = self._smoothing_parameters
        index = tree.index(names, self._language_model.language, collection)
        return IndexedSections(sections, index, self._embed_paragraphs(tree, names))

    def join(
        self,
        parts: Sequence[IndexedSections],
        names: Mapping[int | str, str],
        dates: Sequence[Date | None],
        paths: Mapping[int | str, str] | None = None,
    ) -> PreparedDocuments:
        """Join indexed documents. The result equals that of `prepare` for all of them.

        Args:
            parts: All documents in one part, or one document, with the index 0, in each.
            names: Names of all documents, by their index in the input.
            dates: Dates of all documents.
            paths: Paths or addresses of documents, to which links lead, by their index; None if `names` are these.
        """
        parts = parts or [self.index([], {})]
        sections = [section for index, part in enumerate(parts) for section in part.number(index)]
        tree = Outline(sections, whole_paths=bool(self._settings.whole_paths))
        mu, collection = self._smoothing_parameters
        joined_index = JoinedIndex([part.index for part in parts], collection)
        # Prepared documents can be pickled, so there is no lambda.
        versions = Versions(
            names,
            partial(_list_digests_of_parts, [part.list_digests() for part in parts]),
            {i: date for i, date in enumerate(dates) if date},
        )
        score_lexically = partial(score_index, joined_index, mu=mu, unit=self._unit)
        vectors = self._join_vectors(parts, tree.section_of if self._weights.section_cosine else None)
        scores = QuestionScorer(score_lexically, vectors, self._weights)
        scorer = self._make_scorer(tree, scores, names, joined_index.frequencies, has_vectors=vectors is not None)
        ids = list(dict.fromkeys(section.path[0] for section in tree.sections))
        return PreparedDocuments(
            tree,
            scorer,
            ids,
            names,
            versions,
            path_finder=self._make_outline_path_finder(tree, ids, names if paths is None else paths, joined_index),
        )

    def _make_outline_path_finder(
        self, tree: Outline, ids: Sequence[int | str], names: Mapping[int | str, str], index: JoinedIndex
    ) -> PathFinder | None:
        """Return the finder of paths in an outline; None if other settings exclude paths."""
        if not self._settings.follows_links:
            return None
        index_by_id = {id_: document for document, id_ in enumerate(ids)}
        passages = OutlinePassages(
            [paragraph.passage for paragraph in tree.paragraphs],
            [names.get(id_, "") for id_ in ids],
            np.array([index_by_id[tree.section(paragraph).path[0]] for paragraph in tree.paragraphs], dtype=np.intp),
            index.find_texts,
            self._language_model.language,
        )
        return self._make_path_finder(DocumentLinks(passages, self._language_model.language))

    def _make_path_finder(self, links: DocumentLinks) -> PathFinder:
        return PathFinder(links, self._language_model.language, self._settings.hops)

    def prepare_corpus(
        self,
        corpus: Corpus,
        names: Mapping[str, str] | None,
        dates: Mapping[str, Date] | None,
        embedded_by: str | None,
    ) -> PreparedCorpus:
        """Prepare documents of a corpus; see `D3.prepare_corpus`."""
        if (language := self._language_model.language) != corpus.language:
            raise InvalidInput(
                f"The model is in {language!r:.50}, the corpus in {corpus.language!r:.50}. Make the corpus with "
                f"language={language!r:.50}."
            )
        if (unit := self._unit) != corpus.unit:
            raise InvalidInput(
                f"unit={unit!r:.50} requires a corpus with the same unit, got {corpus.unit!r:.50}. "
                f"Use Corpus(unit={unit!r:.50})."
            )
        names = {id_: id_ for id_ in corpus.ids()} if names is None else names
        return PreparedCorpus(
            corpus, names, dates or {}, bool(self._settings.whole_paths), self._embed, embedded_by or self._encoder_name
        )

    def read_candidates(
        self, question: str, corpus: PreparedCorpus, top_n: int | None, as_of: Date | None
    ) -> PreparedDocuments:
        """Read those documents of a corpus that have the best paragraphs, and those that links of these lead to."""
        lexical = corpus.hierarchical_scores(question, *self._smoothing_parameters)
        vectors = None if self._embed is None else corpus.read_vectors(self._embed, self._encoder_name, self._weights)
        scores = combine_scores(lexical, question, vectors, self._weights)
        may_read = partial(corpus.may_read, question=question, as_of=as_of)
        documents, n_best, least = self._select_documents(corpus, scores, top_n, may_read)
        corpus_paths = self._find_paths(question, corpus, scores, top_n, may_read, least)
        positions = [position for path in corpus_paths for position in (path.start, path.end)]
        documents = sorted({*documents, *corpus.document_of[positions].tolist()})
        sections, corpus_indices = corpus.read_sections(documents)
        tree = Outline(sections, whole_paths=bool(self._settings.whole_paths))
        scorer = self._make_scorer(
            tree,
            lambda _: scores,
            corpus.names,
            lexical.counts.frequencies,
            corpus_indices,
            has_vectors=vectors is not None,
        )
        start_and_end = np.searchsorted(corpus_indices, [(path.start, path.end) for path in corpus_paths]).tolist()
        paths = [
            replace(path, start=start, end=end) for path, (start, end) in zip(corpus_paths, start_and_end, strict=True)
        ]
        return PreparedDocuments(tree, scorer, corpus.ids, corpus.names, corpus.versions, n_best, paths=paths)

    def _select_documents(
        self, corpus: PreparedCorpus, scores: QuestionScores, top_n: int | None, may_read: Callable[[int], bool]
    ) -> tuple[list[int], int | None, float]:
        """Return the documents to read, by index in the corpus, and bounds of the result.

        Returns:
            The indices; the number of paragraphs of the result, None if only the scores of a model or an LLM decide it;
            and a score below which no paragraph is in the result.
        """
        settings, totals = self._settings, scores.totals
        if settings.max_documents is not None:
            return corpus.likeliest_documents(totals, settings.max_documents, may_read), None, -np.inf
        is_neural = not isinstance(self._language_model, UnigramModel) or settings.judge is not None
        n_first = 1 + N_COMPLEMENTS if self._unit == "passage" else 1
        documents, n_best, least = corpus.documents_with_best_paragraphs(
            totals,
            may_read,
            self._n_read if is_neural else n_first,
            top_n,
            TEMPERATURE if scores.cosines is None else FUSED_TEMPERATURE,
            settings.repeats,
        )
        return (documents, None, -np.inf) if is_neural else (documents, n_best, least)

    def _find_paths(
        self,
        question: str,
        corpus: PreparedCorpus,
        scores: QuestionScores,
        top_n: int | None,
        may_read: Callable[[int], bool],
        least: float,
    ) -> list[EvidencePath]:
        """Return paths between documents of a corpus that may enter the result, by paragraph indices of the corpus."""
        if not self._settings.follows_links:
            return []
        paths = self._make_path_finder(corpus.document_links).find(question, scores, may_read)
        # The first passage may yet rise to just behind the best one. Joined paths make room for more passages.
        if top_n or not any(path.is_joined for path in paths):
            return [path for path in paths if scores.totals.max() + path.gain >= least]
        return list(paths)

    @property
    def _n_read(self) -> int:
        default = READ_ALONE if PassageReader.from_model(self._language_model) is None else READ
        if self._settings.judge is not None:
            default = READ_JUDGED
        return self._settings.read or default

    @property
    def _unit(self) -> Unit:
        return self._settings.unit or DEFAULT_UNIT

    @property
    def _smoothing_parameters(self) -> tuple[float, CollectionModel | None]:
        """μ, and p(w|C) of a lexical model that was fitted."""
        model = self._language_model
        return (model.mu, model.collection) if isinstance(model, UnigramModel) else (MU, None)

    @cached_property
    def _encoder_name(self) -> str | None:
        return self._embed.fingerprint() if isinstance(self._embed, Encoder) else None

    @property
    def _weights(self) -> EmbeddingWeights:
        return EMBEDDING_WEIGHTS[self._unit]

    def _embed_paragraphs(self, tree: Outline, names: Mapping[int | str, str]) -> Floats | None:
        """Return the vectors of an outline's paragraphs, shape (paragraphs, dimensions). None without an encoder."""
        if self._embed is None:
            return None
        texts = [
            embedding_text(paragraph.passage, self._unit, names.get(tree.section(paragraph).path[0], ""))
            for paragraph in tree.paragraphs
        ]
        return embedded(self._embed, texts) if texts else np.zeros((0, 1))

    def _join_vectors(self, parts: Sequence[IndexedSections], section_of: Integers | None) -> ParagraphVectors | None:
        """Return the vectors of all paragraphs. None without an encoder."""
        if self._embed is None:
            return None
        vectors = [part.vectors for part in parts if part.vectors is not None and len(part.vectors)]
        return ParagraphVectors(self._embed, np.concatenate(vectors) if vectors else np.zeros((0, 1)), section_of)

    def _make_scorer(
        self,
        tree: Outline,
        question_scores: Callable[[str], QuestionScores],
        document_names: Mapping[Any, str],
        frequencies: Callable[[], Mapping[str, int]],
        corpus_indices: Integers | None = None,
        *,
        has_vectors: bool,
    ) -> ParagraphScorer:
        """Return the scorer of an outline's paragraphs.

        Args:
            tree: The outline.
            question_scores: Returns the scores of all paragraphs for a question.
            document_names: Names of documents.
            frequencies: Returns the number of occurrences of each word.
            corpus_indices: Index of each paragraph among those of the question scores; None if they are the same.
            has_vectors: True if embeddings are part of the question scores.
        """
        passages = [paragraph.passage for paragraph in tree.paragraphs]
        model = self._language_model
        if self._unit == "passage" and PassageReader.from_model(model) is not None:
            titles = [
                headline(paragraph.passage, document_names.get(tree.section(paragraph).path[0], ""))
                for paragraph in tree.paragraphs
            ]
        else:
            names = ["" if entry.name == BEGINNING else entry.name for entry in tree.leaves(tree.sections)]
            titles = [names[section_index] for section_index in tree.section_of]
        if model.wants_fit and not isinstance(model, UnigramModel):
            try:
                model = model.fitted(CollectionStatistics(len(passages), {}, frequencies(), model.language))
            except InvalidInput:  # κ of an encoder needs texts
                titled = (replace(passage, title=title) for passage, title in zip(passages, titles, strict=True))
                model = model.fitted([passage.titled_text for passage in titled])
        if corpus_indices is None:
            corpus_indices = np.arange(len(passages))
        return ParagraphScorer(
            passages,
            titles,
            model,
            question_scores,
            corpus_indices,
            self._unit,
            has_vectors=has_vectors,
            n_read=self._n_read,
            judge=None if self._settings.judge is None else PassageJudge(self._settings.judge),
        )

    def _max_paragraph_tokens(self) -> int:
        """Return the length above which a paragraph is cut: half of what the instruction leaves in a prompt.

        The other half is for the question. The paper cuts no paragraph that fits, so its preset leaves less.
        """
        instruction = fill_template(self._settings.prompts[1], paragraphs="", question="")
        room = self._settings.max_prompt_tokens - self._count_tokens(instruction)
        return max(room - MIN_PROMPT_ROOM if self._settings.preset == "paper" else room // 2, MIN_PROMPT_ROOM)


def _list_digests(
    sections: Sequence[OutlineSection], digests_by_document: dict[int | str, list[int]], document: int | str
) -> list[int]:
    if document not in digests_by_document:
        digests_by_document[document] = text_digests(
            paragraph.text for section in sections if section.path[0] == document for paragraph in section.readable
        )
    return digests_by_document[document]


def _list_digests_of_parts(parts: Sequence[Callable[[int | str], list[int]]], document: int) -> list[int]:
    """Return digests of a document: one in the only part, or the only one, 0, in one of the parts."""
    return parts[0](document) if len(parts) == 1 else parts[document](0)


def _split_long_paragraphs(section: OutlineSection, max_tokens: int, count_tokens: TokenCount) -> OutlineSection:
    """Return the section with paragraphs of at most `max_tokens` tokens."""
    pairs = zip(section.paragraphs, section.readable, strict=True)
    parts = [part for source, text in pairs for part in split_long_paragraph(source, text, max_tokens, count_tokens)]
    if len(parts) == len(section.paragraphs):
        return section
    return replace(
        section, paragraphs=tuple(source for source, _ in parts), readable=tuple(readable for _, readable in parts)
    )
