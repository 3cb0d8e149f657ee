"""What imports what: the order of the packages, no circles, no private modules of others, no framework in the core.

The imports are read, not run, so that those inside functions count, too.
"""

from __future__ import annotations

import ast
import re
import runpy
import sys
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # which pytest brings there

ROOT = Path(__file__).resolve().parents[1]
SHAPE = runpy.run_path(str(ROOT / "tools" / "shape.py"))
MODULES = SHAPE["modules"](ROOT)
GRAPH = SHAPE["graph"](ROOT)
OWN = ("drillrank", "llama_index_ext", "langchain_ext")

# What an adapter may import beside the standard library and the core: its framework's base package and what that is
# made of. The core may import what pyproject.toml names.
HOSTS = {
    "llama_index_ext": ("llama_index.core", "pydantic", "typing_extensions"),
    # The filters of a Qdrant store, which is there if the store is, are built with its own classes.
    "langchain_ext": ("langchain_core", "langchain_text_splitters", "pydantic", "typing_extensions", "qdrant_client"),
}
DISTRIBUTIONS = {
    "Stemmer": "PyStemmer",
    "charset_normalizer": "charset-normalizer",
    "sentence_transformers": "sentence-transformers",
    "sklearn": "scikit-learn",
}


FROM_EITHER_HOST = {(f"drillrank.frameworks.{module}", "pydantic") for module in ("components",)}


# A package imports only from those in front of it; the modules of the core in no package are the ground.
IN_ORDER = (
    "ground explanation structure corpus likelihood rerank multihop views drilldown generation evaluation frameworks "
    "testing drillrank cli llama_index_ext langchain_ext"
)
ORDER = IN_ORDER.split()


def unit(module: str) -> str:
    """The place of a module in the order: its package, or the ground."""
    root, *parts = module.split(".")
    if root != "drillrank":
        return root
    if parts == ["__main__"]:
        return "cli"
    if not parts:
        return "drillrank"
    return parts[0] if parts[0] in ORDER else "ground"


def uphill(importer: str, target: str) -> bool:
    """Whether an import leads to a package that is not in front of its own."""
    own, other = unit(importer), unit(target)
    if (importer, other) == ("drillrank.passages", "explanation"):  # a ranking explains itself
        return False
    return own != other and ORDER.index(other) > ORDER.index(own)


def foreign_private(importer: str, target: str, name: str) -> bool:
    """Whether an import looks into what is private to another package, or takes another module's private name."""
    parts = [*target.split("."), *([name] if name else [])]
    for place, part in enumerate(parts):
        if part.startswith("_") and not part.endswith("__"):
            is_name = bool(name) and place == len(parts) - 1
            holder = ".".join(parts[:place])
            inside = importer == holder or (not is_name and importer.startswith(f"{holder}."))
            if not inside:
                return True
    return False


def outsider(importer: str, target: str) -> bool:
    """Whether a package imports what is neither its own nor among what it is installed with."""
    top, package = target.split(".")[0], importer.split(".")[0]
    if top in sys.stdlib_module_names or top in (package, "drillrank"):
        return False
    if package in HOSTS:
        return not any(target == allowed or target.startswith(f"{allowed}.") for allowed in HOSTS[package])
    return DISTRIBUTIONS.get(top, top).lower() not in declared() and (importer, top) not in FROM_EITHER_HOST


def place(importer: str, one) -> str:
    """Where an import stands, for the message."""
    return f"{MODULES[importer].relative_to(ROOT)}:{one.line} imports {one.module} {one.name}".rstrip()


def declared() -> set[str]:
    """The distributions that the core is installed with, and those of the extras that are no framework's."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    ours = [
        extra
        for extra in extras["all"][0].split("[")[1].rstrip("]").split(",")
        if extra not in ("llama-index", "langchain")
    ]
    named = [*project["dependencies"], *(name for extra in (*ours, "testing") for name in extras[extra])]
    return {re.match(r"[\w-]+", name).group().lower() for name in named}


def test_a_package_imports_only_from_those_in_front_of_it():
    ours = [(module, one) for module in MODULES for one in GRAPH[module] if one.module.split(".")[0] in OWN]
    assert [place(*found) for found in ours if uphill(found[0], found[1].module)] == []


def test_every_package_has_its_place_in_the_order():
    packages = {module.split(".")[1] for module in MODULES if module.count(".") > 1}
    assert packages - {"data"} <= set(ORDER)


def test_a_module_keeps_out_of_what_is_private_elsewhere():
    found = [(module, one) for module in MODULES for one in GRAPH[module] if one.module != "__future__"]
    assert [place(*pair) for pair in found if foreign_private(pair[0], pair[1].module, pair[1].name)] == []


def test_a_module_imports_nothing_that_its_package_is_not_installed_with():
    found = [(module, one) for module in MODULES for one in GRAPH[module]]
    found = [(module, one) for module, one in found if not (one.for_types and one.module == "typing_extensions")]
    assert [place(*pair) for pair in found if outsider(pair[0], pair[1].module)] == []


def test_no_module_imports_the_kit_for_tests():
    importers = {module for module in MODULES for one in GRAPH[module] if one.module.startswith("drillrank.testing")}
    assert {module for module in importers if not module.startswith("drillrank.testing")} == set()


def test_no_modules_import_each_other():
    assert SHAPE["circles"](GRAPH) == []


def test_the_mutation_areas_name_modules_and_tests_that_are_there():
    tool = runpy.run_path(str(ROOT / "tools" / "mutation.py"))
    modules = [f"shared/{module}" for area in tool["AREAS"] for module in tool["modules"](area)]
    files = [file for area in tool["AREAS"] for file in tool["test_files"](area)]
    assert [file for file in (*modules, *files) if not (ROOT / file).exists()] == []


# Words of the first editions; the field has others, such as system, trace, chunk span and user's metadata.
LEFT_WORDS = (
    "contender strangers reach told anew told_by claimed Calls Lookups Steps Dialogue GaveUp Holding "
    "ById index_behind Rebuilt Fixed theirs Proposed beginnings cutter atoms in_sight "
    "each_section_once Filler fate deputy Library quiet thinking whole_files stale lost foreign later waiting "
    "way now condenser Condenser Given Material Reading noted lent Search"
)
LEFT = {*LEFT_WORDS.split()}
WHOLE_NAMES = {"own", "asked", "said", "held", "notes", "once", "place", "allowed", "reported"}


def test_identifiers_are_words_of_the_field():
    kinds = {ast.Name: "id", ast.arg: "arg", ast.keyword: "arg", ast.Attribute: "attr"}
    kinds |= dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef), "name")
    left = set()
    for file in MODULES.values():
        nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        names = {str(getattr(node, kinds.get(type(node), ""), "")).strip("_") for node in nodes}
        left |= {(name, file.name) for name in names if {name, *name.split("_")} & LEFT or name in WHOLE_NAMES}
    assert not left
