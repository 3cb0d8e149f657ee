"""Documents, passages and their statistics on disk."""

from drillrank.corpus.corpus import Corpus
from drillrank.corpus.index import BlockTermCounts, Scorer, bm25
from drillrank.corpus.schema import CorpusError

__all__ = ["BlockTermCounts", "Corpus", "CorpusError", "Scorer", "bm25"]
