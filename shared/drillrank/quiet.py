"""Dependencies that tell too much of what they do."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet(name: str) -> Iterator[None]:
    """Around the import of a dependency: its debugging messages stay out of the application's log.

    A level that the application has set for it, before or afterwards, stands.

    >>> with quiet("a.dependency"):
    ...     logging.getLogger("a.dependency").setLevel(logging.DEBUG)
    >>> logging.getLogger("a.dependency").level == logging.INFO
    True
    """
    logger = logging.getLogger(name)
    before = logger.level
    yield
    logger.setLevel(before or logging.INFO)
