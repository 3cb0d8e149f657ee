"""The table of components is complete, true of the classes that it names, and what tables and hosts go by."""

from __future__ import annotations

import inspect
import re
import runpy
from pathlib import Path

import pytest

import drillrank
import langchain_ext
import llama_index_ext
from drillrank.components import COMPONENTS, component

ROOT = Path(__file__).resolve().parents[2]
NO_COMPONENTS = {  # public names that are not a method
    *("Corpus", "LanguageModel", "Passage", "Path", "Ranked", "RecordStore", "StoredChunk"),
    *("load_language_model", "load_settings", "read_document", "parse_document"),
    *("Coverage", "SentenceSupport", "check_support"),
}
READERS = {"DrillrankLoader", "DrillrankReader", "SupportEvaluator"}  # of files and answers
# Under what name the core class takes what the table says that it needs or takes.
ARGUMENTS = {"neural model": "model", "passages": "passages", "chunks": "chunks", "PromptRank": "prompt_rank"}
RETRIEVERS = {"retrieve", "first_stage"}
each = pytest.mark.parametrize("one", COMPONENTS, ids=lambda one: one.name)


@pytest.mark.parametrize("host", [llama_index_ext, langchain_ext], ids=lambda host: host.__name__)
def test_a_host_has_the_components_of_the_table_and_no_other(host):
    listed = [name for one in COMPONENTS for name in getattr(one, host.__name__.removesuffix("_ext"))]
    assert sorted(listed) == sorted({*host.__all__} - READERS)
    assert len({*listed}) == len(listed)


def test_every_public_class_of_the_core_is_a_component_or_known_to_be_none():
    assert {one.name for one in COMPONENTS} >= {*drillrank.__all__} - NO_COMPONENTS
    assert {*drillrank.__all__} >= NO_COMPONENTS
    assert len({one.name for one in COMPONENTS}) == len(COMPONENTS)


@each
def test_a_component_is_the_class_that_it_names_and_takes_what_it_says(one):
    cls = one.core_class
    assert inspect.isclass(cls)
    assert cls.__name__ == one.name
    assert all(component(name) is one for name in (one.name, *one.llama_index, *one.langchain))
    parameters = inspect.signature(cls).parameters
    required = {name for name, given in parameters.items() if given.default is given.empty}

    def taken_by(things, names):
        return {name for thing in things for name in ({ARGUMENTS.get(thing, thing)} | RETRIEVERS) & names
                if thing == "retriever" or name not in RETRIEVERS}  # fmt: skip

    assert taken_by(one.needs, required) == required
    assert len(taken_by(one.takes, {*parameters} - required)) == len(one.takes)
    assert {"model", "llm", "embed"} & {*parameters} <= {
        ARGUMENTS.get(thing, thing) for thing in (*one.needs, *one.takes)
    }


@each
def test_its_extra_is_one_of_this_distribution(one):
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert one.extra is None or re.search(rf"^{one.extra} = \[", project, re.MULTILINE)
    assert one.paper is None or re.fullmatch(r"\d{4}\.\d{5}", one.paper.arxiv)


def test_the_tables_of_the_documentation_are_those_of_the_code():
    tool = runpy.run_path(str(ROOT / "tools" / "component_table.py"))
    for file, columns in tool["FILES"].items():
        text = file.read_text(encoding="utf-8")
        assert tool["written"](text, columns) == text, f"run python tools/component_table.py for {file.name}"
        assert all(f"`{name}`" in text for one in COMPONENTS for name in (*one.llama_index, *one.langchain))
