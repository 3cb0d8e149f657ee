"""Trees of LangChain's runs."""

from __future__ import annotations

from langchain_core.tracers import BaseTracer


class Runs(BaseTracer):
    """Keeps the trees of runs."""

    run_inline = True

    def __init__(self):
        super().__init__()
        self.roots, self.told = [], []

    def on_custom_event(self, name, data, *, run_id, **kwargs):
        self.told.append((name, data, run_id))

    def _persist_run(self, run):
        self.roots.append(run)


def below(run, name):
    return [found for child in run.child_runs for found in [child, *below(child, name)] if found.name == name]
