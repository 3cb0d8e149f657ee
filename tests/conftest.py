"""Settings of all tests: how hypothesis searches, and no encoder by default."""

from __future__ import annotations

import functools
import gc
import os

from hypothesis import HealthCheck, settings

os.environ["DRILLRANK_EMBED"] = "none"  # results must not depend on the encoders that a machine has

settings.register_profile("drillrank", deadline=None, max_examples=20, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=50)
# For `make mutation`: what decides over a mutant must be the same in every run, and on a busy machine.
settings.register_profile(
    "mutation", deadline=None, max_examples=25, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("DRILLRANK_HYPOTHESIS", "drillrank"))


def pytest_sessionstart() -> None:
    """Mutants are forks of a process that has run the tests: what it remembers is not what they compute."""
    if os.environ.get("DRILLRANK_HYPOTHESIS") == "mutation":
        for one in gc.get_objects():
            if type(one) is functools._lru_cache_wrapper and one.__module__.startswith("drillrank"):
                one.cache_clear()


# What is collected stays: no collection of garbage needs to go through a million objects again and again.
gc.disable()


def pytest_collection_finish() -> None:
    """Collect garbage again, but never look at what exists now."""
    gc.freeze()
    gc.enable()
