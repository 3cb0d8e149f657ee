"""`drillrank check`: say for each sentence of an answer if files support it, and where."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from drillrank.cli import terminal
from drillrank.cli.ask import ask_files, match_evidence, read_corpus
from drillrank.cli.corpus import FileCorpus
from drillrank.cli.options import EvidenceSize, FinderOptions
from drillrank.cli.printing import print_sentence
from drillrank.cli.results import CheckedSentence, FileEvidence
from drillrank.cli.sources import STANDARD_INPUT, list_input_files, read_named_document
from drillrank.drilldown.d3 import D3
from drillrank.errors import InvalidInput
from drillrank.files import cache_folder
from drillrank.generation.claims import split_claims

_MAX_SENTENCES = 200  # of an answer


def run_check(
    answer: str,
    files: Sequence[str],
    *,
    as_json: bool,
    include: Sequence[str],
    exclude: Sequence[str],
    follow_links: bool,
    no_cache: bool,
    **options: Any,
) -> bool:
    """Print each sentence of an answer with its support. `drillrank check --help` explains the options.

    Returns:
        True if files support every sentence.

    Raises:
        InvalidInput: The answer has no sentence, or no file can be read.
    """
    is_file = answer == STANDARD_INPUT or os.path.lexists(answer)
    text = read_named_document(answer, " with an answer").text if is_file else answer
    cache = None if no_cache else cache_folder()
    d3 = FinderOptions(**options).build(cache)
    listed = list_input_files(files, follow_links=follow_links, include=include, exclude=exclude)
    corpus = read_corpus(*listed, d3, cache)
    checked = check_answer(d3, corpus, text)
    for item in checked:
        if as_json:
            terminal.print_json(item.to_json())
        else:
            print_sentence(item)
    return all(item.judgment.supported for item in checked)


def check_answer(d3: D3, corpus: FileCorpus, answer: str) -> list[CheckedSentence]:
    """Find passages for each sentence of an answer, and check which sentences they support.

    Raises:
        InvalidInput: The answer has no sentence, or too many.
    """
    claims = split_claims(answer)
    if not claims:
        raise InvalidInput(f"An answer must have a sentence to check, got {answer!r:.200}. Headings do not count.")
    if len(claims) > _MAX_SENTENCES:
        raise InvalidInput(
            f"An answer must have at most {_MAX_SENTENCES} sentences, got {len(claims)}. Check it in parts."
        )
    evidence_of_claims = [
        {_passage_key(item): item for item in ask_files(d3, corpus, claim.text, EvidenceSize()).evidence}
        for claim in claims
    ]
    evidence: dict[Any, FileEvidence] = {}
    for items in evidence_of_claims:
        for key, item in items.items():
            evidence.setdefault(key, item)
    checked = match_evidence(d3, answer, list(evidence.values()))
    return [_with_own_evidence(item, items) for item, items in zip(checked, evidence_of_claims, strict=True)]


def _with_own_evidence(item: CheckedSentence, evidence_of_claim: Mapping[Any, FileEvidence]) -> CheckedSentence:
    """Return a sentence whose passages have the section and the paragraph that fit this sentence.

    The search for each sentence finds the best section and paragraph of a passage for this sentence. A passage that
    only the searches for other sentences found remains as it is.
    """
    return replace(item, evidence=tuple(evidence_of_claim.get(_passage_key(one), one) for one in item.evidence))


def _passage_key(item: FileEvidence) -> tuple[Any, ...]:
    """Return a key that evidence for several sentences has in common if it is the same passage."""
    return item.file, item.span, item.text
