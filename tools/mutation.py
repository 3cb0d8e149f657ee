"""Mutation testing: every module of an area is broken in thousands of small ways, and its tests must notice each.

    python tools/mutation.py                      # all areas; `make mutation` does this
    python tools/mutation.py paths --sample 100   # of one area, 100 mutants drawn with --seed

The mutants are mutmut's, of functions and methods without decorators; the wording of errors and warnings is left alone.
A survivor is a fault that no test sees: it needs a test, or a line in `tools/mutation_survivors.md` that says why
nobody could see it, unless it is only a `zip` that is no longer `strict`. Ends with 1 if there are others.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "mutation"
LISTED = ROOT / "tools" / "mutation_survivors.md"


class Area(NamedTuple):
    """Modules that belong together, and the tests that must notice when one of them breaks."""

    modules: str
    tests: str


AREAS = {
    "scoring": Area(
        "likelihood/unigram likelihood/encoder rerank/base rerank/two_stages rerank/prior",
        "likelihood/unigram likelihood/saved_unigram likelihood/sentence_vectors likelihood/mixture rerank/scales"
        " rerank/prior rerank/rankers rerank/upr rerank/two_stages rerank/brmgr rerank/formula rerank/twins"
        " rerank/promptrank explanation/explanations multihop/corpus_sources multihop/first_hop golden_scores"
        " neural/encoders",
    ),
    "budgets": Area(
        "likelihood/tokenizer prompts",
        "likelihood/tokenizer prompts drilldown/d3_budget drilldown/self_ask neural/budgets neural/prompt_tokens"
        " neural/trusted_wording",
    ),
    "paths": Area(
        "multihop/search multihop/beam multihop/path_scorer multihop/sources multihop/result multihop/explaining"
        " multihop/prior multihop/hyperlinks multihop/mentions multihop/aliases multihop/missing rerank/prior",
        "rerank/scales rerank/twins rerank/prior explanation/explanations multihop/search multihop/pairs"
        " multihop/scope multihop/first_hop multihop/growing multihop/corpus_sources multihop/tfidf_links"
        " multihop/result multihop/explaining multihop/prior multihop/registers multihop/missing multihop/links"
        " multihop/hyperlinks multihop/mentions multihop/aliases",
    ),
    "filters": Area(
        "frameworks/filters",
        "frameworks/filters conformance/filters_bad_input conformance/equal_ids langchain_ext/filters"
        " langchain_ext/filters_inside llama_index_ext/filters llama_index_ext/filters_inside",
    ),
    "merging": Area("views/index views/merging views/chunks", "views/index views/chunks views/views"),
    "pages": Area(
        "structure/plain structure/pages frameworks/pages",
        "structure/plain structure/any_file frameworks/pages_of_files",
    ),
    "answers": Area("drilldown/answers drilldown/answer_vocabularies", "drilldown/answers"),
}
OUTSIDE = {"conformance", "langchain_ext", "llama_index_ext"}
OUTCOMES = {1: "killed", 3: "killed", 0: "survived", 5: "survived", 33: "survived", 24: "timed out", -24: "timed out"}
OUTCOMES |= {36: "timed out", 152: "timed out", 255: "timed out"}


def modules(area: str) -> list[str]:
    """The area's files, as they lie in its tree."""
    return [f"drillrank/{module}.py" for module in AREAS[area].modules.split()]


def test_files(area: str) -> list[str]:
    """Return its test files. Names are below `tests/drillrank`, or below `tests` if an adapter or a suite is named."""
    names = AREAS[area].tests.split()
    paths = (Path("tests", name if name.partition("/")[0] in OUTSIDE else f"drillrank/{name}") for name in names)
    return [str(path.with_name(f"test_{path.name}.py")) for path in paths]


def lay_out(area: str) -> Path:
    """A tree as mutmut wants it, the package at its top; nothing is left of an earlier one."""
    tree = BUILD / area
    shutil.rmtree(tree, ignore_errors=True)
    unwanted = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "shared" / "drillrank", tree / "drillrank", ignore=unwanted)
    shutil.copytree(ROOT / "tests", tree / "tests", ignore=unwanted)
    shutil.copytree(ROOT / "benchmarks", tree / "benchmarks", ignore=unwanted)
    settings = {
        "source_paths": ["drillrank"],
        "only_mutate": modules(area),
        "do_not_mutate_patterns": [r"InvalidInput\(", r"\bwarn\(", r"\bcast\("],
        "pytest_add_cli_args": ["-p", "no:cacheprovider"],
        "pytest_add_cli_args_test_selection": test_files(area),
        "timeout_multiplier": 8.0,  # times all tests of a function
        "timeout_constant": 5.0,
        "track_dependencies": False,
        "use_git_change_detection": False,
    }
    table = "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items())
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (tree / "pyproject.toml").write_text(f"{pyproject}\n[tool.mutmut]\n{table}", encoding="utf-8")
    return tree


def mutants(area: str, tree: Path) -> Iterator[str]:
    """The names that mutmut will give to the area's mutants."""
    from mutmut.configuration import reset_config
    from mutmut.mutation.file_mutation import mutate_file_contents
    from mutmut.utils.format_utils import get_mutant_name

    os.chdir(tree)
    reset_config()
    for file in map(Path, modules(area)):
        for name in mutate_file_contents(str(file), file.read_text(encoding="utf-8")).mutant_names:
            yield get_mutant_name(file, name)


def mutmut(tree: Path, *arguments: str) -> str:
    """What mutmut prints in a tree."""
    environment = os.environ | {
        "DRILLRANK_HYPOTHESIS": "mutation",
        "DRILLRANK_FUZZ": "25",
        "PYTHONHASHSEED": "0",  # the order of the tests, too
        "OMP_NUM_THREADS": "1",  # the mutants are forks, which threads do not outlive
        "TOKENIZERS_PARALLELISM": "false",
    }
    command = [str(Path(sys.executable).with_name("mutmut")), *arguments]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        sys.exit(f"{done.stdout[-5000:]}\n{done.stderr[-5000:]}\nmutmut failed in {tree}")
    return done.stdout


def outcomes(area: str, tree: Path, tried: set[str]) -> dict[str, str]:
    """What became of each mutant."""
    found: dict[str, str] = {}
    for file in modules(area):
        codes = json.loads((tree / "mutants" / f"{file}.meta").read_text(encoding="utf-8"))["exit_code_by_key"]
        found |= {name: OUTCOMES.get(code, f"exit code {code}") for name, code in codes.items() if name in tried}
    return found


def change(tree: Path, name: str) -> str | None:
    """A survivor in one line: its function, and what stands in the place of what; None if only a `strict` is gone."""
    lines = mutmut(tree, "show", name).splitlines()
    removed, added = (
        " ".join(line[1:].strip() for line in lines if line.startswith(sign) and not line.startswith(sign * 3))
        for sign in "-+"
    )
    if len({re.sub(r", (strict=\w+)?\)", ")", line) for line in (removed, added)}) == 1:
        return None
    function = name.rpartition("__mutmut_")[0].removeprefix("drillrank.").replace("ǁ", ".").replace(".x_", ".")
    return f"`{function.replace('.x.', '.')}`: `{removed}` → `{added}`"


def report(area: str, tree: Path, tried: set[str]) -> Iterable[str]:
    """Print a line for each module; the survivors that are not listed."""
    listed = LISTED.read_text(encoding="utf-8")
    counts: dict[str, Counter[str]] = {}
    unlisted = []
    for name, outcome in outcomes(area, tree, tried).items():
        if outcome not in ("killed", "timed out"):
            line = change(tree, name)
            if outcome == "survived" and (line is None or line in listed):
                outcome = "equivalent"
            else:
                unlisted.append(f"{outcome}: {line} ({name})")
        counts.setdefault(name.rpartition(".")[0], Counter())[outcome] += 1
    for module, count in counts.items():
        killed, equivalent, number = count["killed"] + count["timed out"], count["equivalent"], count.total()
        alive = number - killed - equivalent
        score = killed / max(number - equivalent, 1)
        print(f"{area:8} {module:40} {number:6} {killed:6} {alive:8} {equivalent:10} {score:7.1%}", flush=True)
    return unlisted


def main() -> None:
    """Run the areas one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("areas", nargs="*", metavar="AREA", help=", ".join(AREAS))
    parser.add_argument("--sample", type=int, help="how many mutants of all these areas to try; all, if left out")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="how many mutants are tried at a time")
    chosen = parser.parse_args()
    areas = chosen.areas or list(AREAS)
    if unknown := set(areas) - set(AREAS):
        parser.error(f"no such area: {', '.join(sorted(unknown))}")
    trees = {area: lay_out(area) for area in areas}
    tried = sorted((area, name) for area, tree in trees.items() for name in mutants(area, tree))
    everything = len(tried)
    if chosen.sample is not None:
        tried = random.Random(chosen.seed).sample(tried, min(chosen.sample, everything))
    print(f"{len(tried)} of {everything} mutants")
    print(f"{'area':8} {'module':40} {'tried':>6} {'killed':>6} {'survived':>8} {'equivalent':>10} {'score':>7}")
    survivors: list[str] = []
    for area, tree in trees.items():
        names = sorted(name for of, name in tried if of == area)
        if names:
            mutmut(tree, "run", "--max-children", str(chosen.processes), *(names if chosen.sample is not None else ()))
            survivors += report(area, tree, set(names))
    print("", *survivors, sep="\n")
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
