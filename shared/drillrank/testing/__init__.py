"""Conformance kit: test classes for a new record store, or for the components of a new framework.

Subclass `RecordStoreTests`, `RerankerTests` or `RetrieverTests` in a module of tests, write the methods that have no
default, and run pytest. The kit needs pytest and nothing else: `pip install "drillrank[testing]"`.
"""

from drillrank.errors import require

require("pytest", "testing")

from drillrank.testing.event_loop import Heartbeat  # noqa: E402
from drillrank.testing.events import Event  # noqa: E402
from drillrank.testing.record_stores import RecordStoreTests  # noqa: E402
from drillrank.testing.rerankers import RerankerTests  # noqa: E402
from drillrank.testing.results import Result  # noqa: E402
from drillrank.testing.retrievers import RetrieverTests  # noqa: E402
from drillrank.testing.samples import SampleRecord, sample_embed  # noqa: E402

__all__ = [
    "Event",
    "Heartbeat",
    "RecordStoreTests",
    "RerankerTests",
    "Result",
    "RetrieverTests",
    "SampleRecord",
    "sample_embed",
]
