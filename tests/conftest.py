"""How hypothesis searches, whichever folder of tests is run."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("drillrank", deadline=None, max_examples=50)
# For `make mutation`: what decides over a mutant must be the same in every run, and on a busy machine.
settings.register_profile(
    "mutation", deadline=None, max_examples=25, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("DRILLRANK_HYPOTHESIS", "drillrank"))
