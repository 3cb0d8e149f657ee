"""The answers that a checkpoint was trained to give, as sentence-transformers saves them beside its weights."""

from __future__ import annotations

import json
from pathlib import Path

from drillrank.errors import InvalidInput
from drillrank.likelihood.base import TrainedAnswers

LOGIT_SCORE = "1_LogitScore/config.json"


def read_trained_answers(name: str, revision: str | None = None) -> TrainedAnswers | None:
    """The ids in a checkpoint's `1_LogitScore/config.json`; None if there is no such file.

    Args:
        name: Directory, or model id on the hub.
        revision: Branch, tag or commit on the hub.

    Raises:
        InvalidInput: the file does not hold the ids of tokens.
    """
    place = Path(name, LOGIT_SCORE) if Path(name).is_dir() else _fetched(name, revision)
    if place is None or not place.is_file():
        return None
    try:
        saved = json.loads(place.read_text(encoding="utf-8"))
        positive, negative = saved["true_token_id"], saved.get("false_token_id")
    except (ValueError, LookupError, AttributeError) as error:
        raise InvalidInput(f"{place} is no configuration of a LogitScore: {error!r}.") from error
    if not isinstance(positive, int) or not isinstance(negative, int | None):
        raise InvalidInput(f"{place} names {positive!r} and {negative!r}, which are not the ids of tokens.")
    return TrainedAnswers(positive, negative)


def _fetched(name: str, revision: str | None) -> Path | None:
    """The file from the hub or its cache."""
    from transformers.utils import cached_file

    try:
        return Path(cached_file(name, LOGIT_SCORE, revision=revision))
    except OSError:  # not there, or not in the cache of a machine without a network
        return None
