"""Documents made ready for drilling down: their outline, their paragraphs and the likelihoods of these.

Those of a corpus on disk are not read to the end: term statistics tell the levels of all paragraphs
(`drillrank.drilldown.levels`), and only the documents that hold the best are taken out of it. Evidence is that of the
same documents in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from drillrank.corpus import Corpus, CorpusError
from drillrank.drilldown.evidence import TEMPERATURE, Evidence, distinct, expected_best
from drillrank.drilldown.levels import Levels, log_posteriors, stored_counts
from drillrank.drilldown.outline import Outline, OutlineSection, stored_sections
from drillrank.drilldown.versions import Date, Versions
from drillrank.likelihood.unigram import Collection
from drillrank.passages import Passage
from drillrank.vectors import Embed, Floats, Integers, embedded, top

PAGES = 50  # whose paragraphs are embedded, likeliest by their words


@dataclass(frozen=True)
class PreparedDocuments:
    """Documents made ready for many questions.

    Attributes:
        outline: The sections of all documents.
        evidence: Likelihoods of their paragraphs.
        names: Of documents, by their place in the input, as far as they are known.
        versions: Which of them are versions of one.
        best: How many paragraphs make the expected F1 largest, where that is known of more documents than these.
    """

    outline: Outline
    evidence: Evidence
    names: Mapping[Any, str] = field(default_factory=dict)
    versions: Versions = field(default_factory=lambda: Versions({}, lambda _: ()))
    best: int | None = None

    @cached_property
    def paragraphs(self) -> tuple[Passage, ...]:
        """All paragraphs, text as in the source."""
        return tuple(paragraph for section in self.outline.sections for paragraph in section.paragraphs)

    @cached_property
    def readable(self) -> tuple[Passage, ...]:
        """All paragraphs, text as a reader sees it."""
        return tuple(paragraph for section in self.outline.sections for paragraph in section.readable)

    @cached_property
    def section_of(self) -> Integers:
        """Index of each paragraph's section."""
        sizes = [len(section.paragraphs) for section in self.outline.sections]
        return np.repeat(np.arange(len(sizes)), sizes)

    def inside(self, sections: Sequence[int]) -> list[int]:
        """Positions of the paragraphs of some sections."""
        firsts, ends = (np.searchsorted(self.section_of, sections, side).tolist() for side in ("left", "right"))
        return [at for first, end in zip(firsts, ends, strict=True) for at in range(first, end)]


class PreparedCorpus:
    """Documents of a corpus, made ready for many questions.

    Args:
        corpus: Which holds them.
        names: What documents are called, by their ids; documents without a name here are not read.
        dates: Of documents, by their ids, where names have none.
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

    def levels(self, question: str, mu: float, collection: Collection | None) -> Levels:
        """Of the paragraphs of all documents."""
        counts = self._corpus.counts(question, self._layout)
        names, whole = self.names, self._whole_paths
        return Levels(stored_counts(question, self._layout, counts, names, collection, whole_paths=whole), mu)

    def likeliest(self, question: str, levels: Levels, as_of: Date | None, limit: int) -> list[int]:
        """Places of so many documents, the likeliest, in the order of the corpus."""
        parts = self._layout.document_of[self._layout.section_of]
        order = top(log_posteriors(levels.totals, parts, TEMPERATURE), len(self._layout.ids))
        return sorted(islice((at for at in order if not self._outdated([at], question, as_of)), limit))

    def holding(
        self, question: str, levels: Levels, as_of: Date | None, paragraphs: int, most: int | None, repeats: bool
    ) -> tuple[list[int], int]:
        """Places of the documents that hold the best paragraphs, in the order of the corpus.

        Args:
            question: The question.
            levels: Of the paragraphs of all documents.
            as_of: Documents of later are left out.
            paragraphs: How many of the best paragraphs are needed at least.
            most: How many are wanted; None for as many as make the expected F1 largest.
            repeats: Whether paragraphs that say the same count each for itself.

        Returns:
            Them, and how many are wanted.
        """
        layout = self._layout
        document_of = layout.document_of[layout.section_of]
        outdated: set[int] = set()
        while True:
            current = ~np.isin(document_of, list(outdated))
            totals = np.where(current, levels.totals, -np.inf)
            wanted = most or expected_best(totals[current])
            best = [at for at in top(totals, max(paragraphs, wanted + 1)) if totals[at] > -np.inf]
            found = set(document_of[best].tolist())
            if late := self._outdated(found, question, as_of):
                outdated |= late
                continue
            texts = (passage.text for passage in self._corpus.at(layout.numbers(np.array(best, dtype=np.int64))))
            if repeats or len(best) == current.sum() or len(distinct(texts, wanted + 1)) > wanted:
                return sorted(found), wanted
            paragraphs = 4 * len(best)

    def pages(self, question: str, levels: Levels, as_of: Date | None) -> tuple[list[int], Integers]:
        """Places of the documents that hold the likeliest pages or sections, and places of the paragraphs on these."""
        layout = self._layout
        order = top(log_posteriors(levels.totals, layout.section_of, TEMPERATURE), len(layout.document_of))
        current = (at for at in order if not self._outdated([layout.document_of[at]], question, as_of))
        best = list(islice(current, PAGES))
        return sorted(set(layout.document_of[best].tolist())), np.flatnonzero(np.isin(layout.section_of, best))

    def _outdated(self, documents: Iterable[int], question: str, as_of: Date | None) -> set[int]:
        ids = self._layout.ids
        return {at for at in documents if self.versions.find_outdated([ids[at]], question, as_of)}

    def sections(self, places: Sequence[int]) -> tuple[list[OutlineSection], Integers]:
        """Sections of the documents at some places, which rise; and places of the paragraphs in these."""
        sections: list[OutlineSection] = []
        at = [np.zeros(0, np.int64)]
        for document in places:
            id_, (first, end) = self._layout.ids[document], self._layout.starts[document : document + 2].tolist()
            passages = self._corpus.passages(id_)
            if end - first != len(passages):
                raise CorpusError(f"The document {id_!r:.200} was changed while it was read: ask again.")
            sections += stored_sections(id_, passages, self._layout.first_of[first:end].tolist())
            at.append(np.arange(first, end))
        return sections, np.concatenate(at)

    def embedded(self, embed: Embed, places: Integers, texts: Sequence[str]) -> Floats:
        """Vectors of paragraphs, given their places; each is made once, and kept in the corpus if it is named there."""
        known, keys = self._vectors, self._layout.numbers(places).tolist()
        if self._embedded_by is not None:
            known |= self._corpus.vectors(set(keys) - known.keys(), self._embedded_by)
        new = [(number, text) for number, text in zip(keys, texts, strict=True) if number not in known]
        if new:
            made = embedded(embed, [text for _, text in new]).astype(np.float32)
            found = {number: vector for (number, _), vector in zip(new, made, strict=True)}
            known |= found
            if self._embedded_by is not None:
                self._corpus.keep_vectors(found, self._embedded_by)
        return np.array([known[number] for number in keys], dtype=np.float64)
