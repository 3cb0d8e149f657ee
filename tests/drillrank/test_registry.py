"""The list of components is complete, true of the classes that it names, and what tables and hosts go by."""

from __future__ import annotations

import inspect
import re
import runpy
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import drillrank
import langchain_ext
import llama_index_ext
from drillrank.cli import main
from drillrank.errors import InvalidInput
from drillrank.registry import adapters, component, components, optional_arguments

ROOT = Path(__file__).resolve().parents[2]
NO_COMPONENTS = {  # public names that are not a method
    "LanguageModel",
    "Passage",
    "Path",
    "Ranked",
    "components",
    "load_language_model",
    "read_document",
    "parse_document",
}
# Under what name the core class takes what the list says that it needs or takes.
ARGUMENTS = {
    "model": {"model", "lm"},
    "neural model": {"model", "lm"},
    "llm": {"llm"},
    "embed": {"embed"},
    "retriever": {"retrieve", "first_stage"},
    "passages": {"passages"},
    "chunks": {"chunks"},
    "PromptRank": {"prompt_rank"},
}
each = pytest.mark.parametrize("one", components(), ids=lambda one: one.name)


@pytest.mark.parametrize("host", [llama_index_ext, langchain_ext], ids=lambda host: host.__name__)
def test_a_host_has_the_components_of_the_list_and_no_other(host):
    listed = adapters(host.__name__)
    assert sorted(listed) == sorted(host.__all__)
    assert len({*listed}) == len(listed)


def test_every_public_class_of_the_core_is_a_component_or_known_to_be_none():
    assert {one.name for one in components()} >= {*drillrank.__all__} - NO_COMPONENTS
    assert {*drillrank.__all__} >= NO_COMPONENTS
    assert len({one.name for one in components()}) == len(components())


@each
def test_a_component_is_the_class_that_it_names(one):
    assert inspect.isclass(one.core_class)
    assert (one.core_class.__module__, one.core_class.__name__) == tuple(one.home.rsplit(".", 1))
    for name in (one.name, *one.llama_index, *one.langchain):
        assert component(name) is one


@each
def test_what_it_needs_and_takes_are_its_arguments(one):
    parameters = inspect.signature(one.core_class).parameters
    required = {name for name, given in parameters.items() if given.default is given.empty}
    assert len(required) == len(one.needs)
    for need in one.needs:
        assert ARGUMENTS[need] & required
    others = {*parameters} - required
    for thing in one.takes:
        assert ARGUMENTS[thing] & others
    told = {*one.needs, *one.takes}
    assert not {thing for thing in ("model", "llm", "embed") if ARGUMENTS[thing] & others} - told


@each
def test_every_setting_has_a_type_a_default_and_a_description(one):
    parameters = inspect.signature(one.core_class).parameters
    settings = one.settings()
    assert [setting.name for setting in settings] == [n for n, p in parameters.items() if p.default is not p.empty]
    for setting in settings:
        assert setting.description.strip(), setting
        assert setting.type
        assert setting.default == parameters[setting.name].default


@each
def test_its_extras_are_extras_of_this_distribution(one):
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert all(re.search(rf"^{extra} = \[", project, re.MULTILINE) for extra in one.extras)
    assert one.paper is None or re.fullmatch(r"\d{4}\.\d{5}", one.paper.arxiv)


def test_a_declared_field_describes_itself_and_the_docstring_the_others():
    @dataclass
    class Beam:
        """Searches.

        Args:
            start: Where.
            width: Not this.
            depth: How far,
                in hops.

        Raises:
            depth: Not this either.
        """

        start: str
        width: int | None = field(default=5, metadata={"description": "Paths kept."})
        depth: int = 2

    assert [tuple(setting) for setting in optional_arguments(Beam)] == [
        ("width", "int | None", 5, "Paths kept."),
        ("depth", "int", 2, "How far, in hops."),
    ]


def test_the_list_loads_no_component():
    code = "import sys, drillrank\ndrillrank.components()\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {name for name in loaded if name.startswith("drillrank.")} == {"drillrank.registry", "drillrank.errors"}
    assert "numpy" not in loaded


def test_a_name_that_is_nobodys_is_refused_with_those_there_are():
    with pytest.raises(InvalidInput, match="'UPRR'; there are: UPR, MonoT5"):
        component("UPRR")
    with pytest.raises(InvalidInput, match="not 'drillrank'"):
        adapters("drillrank")


def test_the_tables_of_the_documentation_are_those_of_the_list():
    tool = runpy.run_path(str(ROOT / "tools" / "component_table.py"))
    for file, columns in tool["FILES"].items():
        text = file.read_text(encoding="utf-8")
        assert tool["written"](text, columns) == text, f"run python tools/component_table.py for {file.name}"
        assert all(f"`{name}`" in text for one in components() for name in (*one.llama_index, *one.langchain))


def test_the_command_line_lists_all_and_shows_one(capsys):
    assert main(["components"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for one in components() for name in (one.name, *one.llama_index, *one.langchain))
    assert main(["components", "SelfAskChain"]) == 0
    printed = capsys.readouterr().out
    assert "2210.03350" in printed
    assert "needs: llm, retriever" in printed
    assert all(setting.name in printed for setting in component("SelfAsk").settings())
    assert main(["components", "SelfAskChains"]) == 2
    assert "there are: UPR" in " ".join(capsys.readouterr().err.split())
