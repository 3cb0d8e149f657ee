"""Resident memory while a component answers 10,000 questions over documents that it has not seen before."""

from __future__ import annotations

import multiprocessing
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from llama_index.core.schema import NodeWithScore, TextNode
from rich.console import Console
from rich.table import Table

import langchain_ext
import llama_index_ext
from drillrank import D3, UPR, load_language_model, parse_document

from .data import read
from .measure import resident

CALLS = (1_000, 2_000, 5_000, 10_000)
PASSAGES, WORDS = 20, 30

Ask = Callable[[str, list[str]], object]
WORD_LIST = tuple(
    f"{first}{middle}{last}" for first in "bdfkm" for middle in ("an", "ol", "ir", "eu") for last in "stxy"
)


def main() -> None:
    """Print megabytes after so many calls, each component in a process of its own; Linux only."""
    table = Table("component", *(f"MB after {calls:,}" for calls in CALLS), "bytes a call, last half")
    with tempfile.TemporaryDirectory() as folder:
        for name in COMPONENTS:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                sizes = pool.apply(_sizes, (name, folder))
            growth = (sizes[-1] - sizes[-2]) * 1024 / (CALLS[-1] - CALLS[-2])
            table.add_row(name, *(f"{size / 1024:.1f}" for size in sizes), f"{growth:,.0f}")
    Console(width=120).print(table)


def _sizes(name: str, folder: str) -> list[int]:
    """Kilobytes at each number of calls."""
    ask, sizes = COMPONENTS[name](folder), []
    for number, (question, texts) in enumerate(_asked(CALLS[-1]), start=1):
        ask(question, texts)
        if number in CALLS:
            sizes.append(resident())
    return sizes


def _asked(calls: int) -> Iterator[tuple[str, list[str]]]:
    draw = random.Random(0)
    for call in range(calls):
        texts = [f"{call}.{i} {' '.join(draw.choices(WORD_LIST, k=WORDS))}." for i in range(PASSAGES)]
        yield f"Where is {' '.join(draw.choices(WORD_LIST, k=5))} of {call}?", texts


def _upr(spec: str = "unigram", **options: Any) -> Ask:
    return UPR(load_language_model(spec, **options)).rank


def _hugging_face(folder: str) -> Ask:
    return _upr(f"hf:{_tiny(folder)}", dtype="float32")


def _converted(folder: str) -> Ask:
    from drillrank.likelihood.ct2 import convert

    return _upr(convert(_tiny(folder), f"{folder}/converted", overwrite=True))


def _tiny(folder: str) -> str:
    """A T5 small enough for 200,000 passages."""
    import torch
    import transformers

    from . import random_models

    place = Path(random_models.save_t5(Path(folder), [one["text"] for one in read("rerank/squad_passages")]))
    config = transformers.T5Config(
        vocab_size=32128, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0
    )
    torch.manual_seed(0)
    transformers.T5ForConditionalGeneration(config).save_pretrained(place)
    return str(place)


def _drill(_: str) -> Ask:
    return lambda question, texts: D3().retrieve(question, [parse_document(_book(texts), "markdown")])


def _book(texts: list[str]) -> str:
    return "\n\n".join(f"# Part {text.split()[0]}\n\n{text}" for text in texts)


def _in_llama_index(_: str) -> Ask:
    component = llama_index_ext.UPRRerank(top_n=5)

    def ask(question: str, texts: list[str]) -> object:
        nodes = [NodeWithScore(node=TextNode(text=text)) for text in texts]
        return component.postprocess_nodes(nodes, query_str=question)

    return ask


def _in_langchain(_: str) -> Ask:
    component = langchain_ext.UPRRerank(top_n=5)
    return lambda question, texts: component.compress_documents([Document(text) for text in texts], question)


def _views(_: str) -> Ask:
    component = llama_index_ext.MultiViewNodeParser()

    def ask(_: str, texts: list[str]) -> object:
        return component.get_nodes_from_documents([TextNode(text=_book(texts))])

    return ask


def _paths(_: str) -> Ask:
    component = langchain_ext.PromptRankRerank(top_n=5, links=("titles",))

    def ask(question: str, texts: list[str]) -> object:
        pages = [Document(text, id=str(i), metadata={"title": text.split()[3]}) for i, text in enumerate(texts)]
        return component.compress_documents(pages, question)

    return ask


COMPONENTS: dict[str, Callable[[str], Ask]] = {
    "UPR, unigram": lambda _: _upr(),
    "UPR, hf: (one layer)": _hugging_face,
    "UPR, ct2: (one layer)": _converted,
    "D3 without an LLM": _drill,
    "UPRRerank, LlamaIndex": _in_llama_index,
    "UPRRerank, LangChain": _in_langchain,
    "MultiViewNodeParser": _views,
    "PromptRankRerank, title mentions": _paths,
}
