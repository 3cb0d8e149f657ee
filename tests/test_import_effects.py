"""Importing an adapter changes nothing that belongs to the application or to the framework."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.heavy_libraries import HEAVY

PROGRAM = """
import importlib, json, logging, os, signal, sys, threading, warnings

{frameworks}

def state():
    seen = dict(
        warning_filters=list(map(str, warnings.filters)), show_warning=str(warnings.showwarning),
        root_log=(str(logging.root.handlers), logging.root.level, str(logging.root.filters), logging.lastResort.level),
        loggers=dict((name, (str(logger.handlers), logger.level, logger.disabled, logger.propagate))
            for name, logger in logging.root.manager.loggerDict.items() if isinstance(logger, logging.Logger)),
        meta_path=list(map(str, sys.meta_path)), path_hooks=list(map(str, sys.path_hooks)), path=list(sys.path),
        environment=dict(os.environ), excepthook=str(sys.excepthook), folder=os.getcwd(),
        threads=threading.active_count(), recursion=sys.getrecursionlimit(),
        interrupt=str(signal.getsignal(signal.SIGINT)),
    )
    if "llama_index_instrumentation" in sys.modules:
        from llama_index.core import Settings
        from llama_index_instrumentation import root_manager
        seen["dispatchers"] = dict((name, (list(map(str, one.event_handlers)), list(map(str, one.span_handlers)),
            one.propagate)) for name, one in root_manager.dispatchers.items())
        seen["settings"] = str(vars(Settings))
    if "langchain_core" in sys.modules:
        import langchain_core.globals as settings
        from langchain_core.tracers import context
        seen["globals"] = str((settings.get_debug(), settings.get_verbose(), settings.get_llm_cache()))
        seen["hooks"] = list(map(str, context._configure_hooks))
    return json.loads(json.dumps(seen))

before = state()
import {adapter}
after = state()
changed = [
    (group, name, value, after[group].get(name))
    for group in ("loggers", "dispatchers") for name, value in before.pop(group, dict()).items()
    if value != after[group].get(name)
]
changed += [(name, value, after[name]) for name, value in before.items() if after[name] != value]
print(json.dumps([changed, sorted(set(name.partition(".")[0] for name in sys.modules))]))
"""
FRAMEWORKS = {
    "llama_index_ext": "import llama_index.core, llama_index.core.query_engine, llama_index.core.postprocessor, numpy",
    "langchain_ext": "import langchain_core.globals, langchain_core.vectorstores, langchain_core.retrievers, numpy",
}


OTHERS = {"llama_index_ext": "langchain_core", "langchain_ext": "llama_index"}


@pytest.mark.parametrize("adapter", FRAMEWORKS)
def test_an_import_changes_nothing_global_and_loads_no_heavy_library_nor_the_other_framework(adapter):
    program = PROGRAM.format(adapter=adapter, frameworks=FRAMEWORKS[adapter])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    changed, loaded = json.loads(done.stdout)
    assert changed == []
    assert adapter in loaded
    assert not {*loaded} & {*HEAVY, OTHERS[adapter], "rich"}
