"""Each paper's main tables, its own numbers next to ours on data and models that can be had.

`python -m benchmarks papers d3` prints those of one paper. Absolute numbers differ with data and models: the
papers search all of Wikipedia with models of billions of parameters. What is to be compared is what a step gains.
"""

from __future__ import annotations

import importlib

from rich.console import Console
from rich.table import Table

PAPERS = ("d3", "self_ask", "promptrank", "mc", "brmgr")
LEFT_OUT = {
    "DPR, FiD, ELECTRA, ColBERT, Contriever, E5, BGE, GTE": "weights in no package; MiniLM, m2v and SmolLM2 instead",
    "bart-large-cnn": "weights in no package; sentences of the text, or an LLM's summaries, instead",
    "all of Wikipedia": "pools of 1,260 passages (NQ), 6,370 (HotpotQA) and 4,316 (2Wiki)",
    "TriviaQA, WebQ, WikiWeb2M": "not in the data",
    "T0-3B, T5-XL, gpt-3.5-turbo": "Qwen2.5-Coder-1.5B-Instruct, SmolLM2-135M-Instruct, Gemma 3 270M; --model",
    "RAPTOR, Atomic chunks, GPT-4 as a judge": "need a large LLM",
}


def main(model: str | None = None, questions: int | None = None) -> None:
    """Print the tables of all papers, with the models of each unless one is named."""
    options = {key: value for key, value in (("model", model), ("questions", questions)) if value is not None}
    for name in PAPERS:
        importlib.import_module(f"benchmarks.papers_{name}").main(**options)
    table = Table("not reproduced", "why, and what instead")
    for what, why in LEFT_OUT.items():
        table.add_row(what, why)
    Console(width=150).print(table)
