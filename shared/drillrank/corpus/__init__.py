"""Documents, passages and their statistics on disk."""

from drillrank.corpus.corpus import Corpus, CorpusError
from drillrank.corpus.index import Counts, Scorer, bm25

__all__ = ["Corpus", "CorpusError", "Counts", "Scorer", "bm25"]
