"""Writes the table of components in docs/which-component.md anew, from `drillrank.components`.

python tools/component_table.py
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from drillrank.components import COMPONENTS, Component

ROOT = Path(__file__).resolve().parents[1]
FILES = {  # and the columns that each shows
    ROOT / "docs" / "which-component.md": ("job", "LlamaIndex", "LangChain", "core", "arguments", "paper"),
}
ARGUMENTS = {  # of the core class, by what a component needs
    "PromptRank": "`prompt_rank`: a `PromptRank`; `passages` or `first_stage`",
    "chunks": "`chunks`: those of `MultiViewChunker`",
    "llm": "`llm`",
    "neural model": "`model`: a neural one",
    "retriever": "`retrieve`: a function from a question to passages",
}
BEGIN, END = "<!-- components: python tools/component_table.py -->\n\n", "\n<!-- end of components -->\n"


def cells(one: Component) -> dict[str, str]:
    """What the table says of a component, by column."""
    return {
        "job": one.job,
        "LlamaIndex": code(one.llama_index),
        "LangChain": code(one.langchain),
        "core": code([one.name]),
        "arguments": "; ".join(ARGUMENTS[need] for need in one.needs) or "–",
        "paper": f"[{one.paper.authors}](https://arxiv.org/abs/{one.paper.arxiv})" if one.paper else "–",
    }


def code(names: Sequence[str]) -> str:
    """Names as code."""
    return ", ".join(f"`{name}`" for name in names)


def table(columns: Sequence[str]) -> str:
    """The table in Markdown."""
    rows = [[cells(one)[column] for column in columns] for one in COMPONENTS]
    head = f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"
    return head + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def written(text: str, columns: Sequence[str]) -> str:
    """A text with the table between its two marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("The text lacks the marks between which the table stands.")
    return f"{before}{begin}{table(columns)}{end}{after}"


if __name__ == "__main__":
    for file, shown in FILES.items():
        file.write_text(written(file.read_text(encoding="utf-8"), shown), encoding="utf-8")
