"""Run the named benchmarks, or all."""

from __future__ import annotations

import importlib
import sys

from .data import data_folder

BENCHMARKS = ("unigram_speed", "multihop", "reranking")


def main(names: list[str]) -> int:
    if not data_folder().is_dir():
        print(f"The benchmark data is not in {data_folder()}: set DRILLRANK_DATA to its folder.")
        return 2
    for name in names or BENCHMARKS:
        if name not in BENCHMARKS:
            print(f"No benchmark is called {name!r}; there are: {', '.join(BENCHMARKS)}.")
            return 2
        importlib.import_module(f"tests.benchmarks.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
