"""Run the named benchmarks, or all; `--model` and `--questions` where a benchmark takes them."""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys

from .data import data_folder

_ALL = (
    "multihop path_prior linking readme reranking tuned first_stage never_worse hipporag generated papers "
    "papers_d3 papers_self_ask papers_promptrank papers_mc papers_brmgr llm_evidence "
    "readers drilldown views folders folder_german small_folders folder_readers "
    "two_places readme_folder flat_headings stores d3_stores financebench which_document all_reports not_here "
    "contracts loaded_pages pdf_folder filtered_views neural_speed neural_earlier prefix_cache prefix_cache_int8 "
    "prefix_service prefix_cache_vllm "
    "encoder_states quantised encoders corpus_scale growing_pool store_scale "
    "reader_memory static_embeddings path_seeds real_files wiki_hops agent_tokens support coverage gap"
)
BENCHMARKS = _ALL.split()
_FINANCEBENCH = ("financebench", "which_document", "all_reports", "loaded_pages", "pdf_folder")
OF_CHECKOUT = dict.fromkeys(_FINANCEBENCH, "github.com/patronus-ai/financebench") | {
    "neural_earlier": "an earlier commit of drillrank"
}
"""Repository of which `--data` is a checkout, by benchmark."""
_SELF_CONTAINED = (
    "encoder_states folder_german small_folders contracts store_scale readme_folder growing_pool real_files wiki_hops"
)
WITHOUT_DATA = [*OF_CHECKOUT, *_SELF_CONTAINED.split()]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(BENCHMARKS)}; all by default")
    parser.add_argument("--model", help="a language model's specification, such as hf:google/flan-t5-small")
    parser.add_argument("--data", help="a folder that a benchmark reads in place of the benchmark data")
    parser.add_argument("--questions", type=int, help="only so many questions")
    parser.add_argument("--steps", help="only these parts of a benchmark, separated by commas")
    parser.add_argument("--outcomes", help="a file in which a benchmark keeps the figures of every question")
    parser.add_argument("--vectors", help="a folder where a benchmark keeps sentence vectors for its next run")
    given = vars(parser.parse_args(arguments))
    names = given.pop("names") or [name for name in BENCHMARKS if "papers_" not in name]
    if names[0] == "papers" and len(names) > 1:
        names = [f"papers_{name}" for name in names[1:]]
    options = {name: value for name, value in given.items() if value is not None}
    if not {*names} <= {*WITHOUT_DATA} and "data" not in options and not data_folder().is_dir():
        print(f"The benchmark data is not in {data_folder()}: set DRILLRANK_DATA to its folder.")
        return 2
    for name in names:
        if name not in BENCHMARKS:
            print(f"No benchmark is called {name!r}; there are: {', '.join(BENCHMARKS)}.")
            return 2
        run = importlib.import_module(f"benchmarks.{name}").main
        if not set(options) <= set(inspect.signature(run).parameters):
            print(f"The benchmark {name!r} does not take all of: {', '.join(options)}.")
            return 2
        if name in OF_CHECKOUT and "data" not in options:
            print(f"{name}: give a checkout of {OF_CHECKOUT[name]} as --data.")
            continue
        try:
            run(**options)
        except ModuleNotFoundError as missing:
            print(f"{name}: left out. {missing}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
