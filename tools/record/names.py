"""What has been renamed since the first reference: the one place, for arguments, imports and what results hold.

A call is written with the names of the first reference. The present names are tried where the old ones are gone, and
records are compared under the present names.
"""

from __future__ import annotations

# Arguments. "D3.summarizer" is that of one class or function, "summarizer" that of all.
RENAMED: dict[str, str] = {"Comparison.reach": "oracle_recall"}

# Values of arguments and of metadata: {"views": {"raw": "text"}}.
VALUES: dict[str, dict[str, str]] = {"verdict": {"helps": "better", "hurts": "worse"}}

# Arguments that are gone, whose old default is all there is.
GONE: set[str] = {"Comparison.gold"}

# Classes and functions that are no longer where they were: {"drillrank.retrieval:top": "drillrank.ranks:top"}.
MOVED: dict[str, str] = {
    "drillrank.prompts:GENREAD_PROMPTS": "drillrank.generation.passages:GENREAD_PROMPTS",
    "drillrank.prompts:SELF_ASK_PROMPT": "drillrank.drilldown.self_ask:SELF_ASK_PROMPT",
    "drillrank.prompts:ANSWER_PROMPT": "drillrank.drilldown.answering:ANSWER_PROMPT",
    "drillrank.retrieval:BM25Index": "drillrank.vectors:BM25Index",
    "drillrank.retrieval:TfidfIndex": "drillrank.vectors:TfidfIndex",
    "drillrank.retrieval:top": "drillrank.vectors:top",
    "drillrank.terms:terms": "drillrank.text:terms",
    "drillrank.tokens:count_tokens": "drillrank.text:count_tokens",
    **{
        f"drillrank.structure.parsed:document_from_{tool}": f"drillrank.structure.imported:document_from_{tool}"
        for tool in ("docling", "unstructured", "llamaparse", "pageindex")
    },
}

# Keys of details, metadata and whatever else is recorded as a mapping.
KEYS: dict[str, str] = {"fate": "outcome", "log_true": "positive", "log_false": "negative"}

# Keys that only one of two trees has, and nobody misses.
IGNORED: set[str] = {"partner"}
