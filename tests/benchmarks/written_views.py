"""Keywords and summaries written by a small real LLM, SmolLM2-135M-Instruct, beside the extractive ones.

The paper's table 5 compares LLMs that write the views; here a small one writes them for the shortest QASPER papers. Its
directory is `smollm2` below `DRILLRANK_MODELS`, by default `~/.cache/drillrank-models`; without it nothing is measured.
One core writes about one view in ten seconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from drillrank.llm import run
from drillrank.views import VIEWS, Chunk, Chunker, View, ViewWriter, section_chunks

from .view_arrangements import Chunks, Paper, load
from .views import BUDGETS, KS, Retriever, asked, bm25, curve, equal_k, equal_tokens, tfidf, union

PAPERS = 4
WRITTEN_TOKENS = {"keywords": 64, "summary": 128}
VIEW_SETS: dict[str, tuple[View, ...]] = {
    "raw": ("raw",),
    "keywords": ("keywords",),
    "summary": ("summary",),
    "keywords + summary": ("keywords", "summary"),
    "three views": VIEWS,
}


def main() -> None:
    folder = Path(os.environ.get("DRILLRANK_MODELS", "~/.cache/drillrank-models")).expanduser() / "smollm2"
    if not folder.is_dir():
        Console().print(f"{folder.name} is not there: nothing is written.")
        return
    chunker = Chunker()
    several = [paper for paper in load("longdoc/qasper") if len(paper.questions) > 2]
    chosen = sorted(several, key=lambda paper: len(paper.document.text))[:PAPERS]
    cut = {paper.id: chunker(paper.document) for paper in chosen}
    answers: dict[str, str] = {}
    generate = smollm2(folder)

    def llm(prompt: str) -> str:
        answers[prompt] = generate(prompt)
        return answers[prompt]

    cache: dict[str, str] = {}
    started, used = time.perf_counter(), time.process_time()
    texts = run(ViewWriter(cache=cache, retries=0).write(list(cut.values())), llm, workers=1)
    wall, used = time.perf_counter() - started, time.process_time() - used
    written = {paper.id: of_paper for paper, of_paper in zip(chosen, texts, strict=True)}
    console = Console(width=150)
    chunks = sum(map(len, cut.values()))
    console.print(
        f"{chunks} chunks of {PAPERS} papers: {len(answers)} prompts in {wall:.0f} s, {used:.0f} s of a core;"
    )
    console.print(f"{len(cache)} answers are of use. The last of either kind:")
    for kind in ("keyword extractor", "summarization"):
        console.print(*[repr(answer[:300]) for prompt, answer in answers.items() if kind in prompt][-1:], markup=False)
    retrievers: dict[str, Retriever] = {"BM25": bm25, "TF-IDF": tfidf}
    questions = sum(len(paper.questions) for paper in chosen)
    table = Table(
        "views",
        "written by",
        *(f"k = {k}" for k in KS),
        *(f"{budget} tokens" for budget in BUDGETS),
        "the paper's union",
        title=f"{questions} questions, mean of {', '.join(retrievers)}: recall",
    )
    for name, views in VIEW_SETS.items():
        for writer, of_papers in (("sentences and statistics", None), ("SmolLM2-135M", written)):
            if name == "raw" and of_papers is not None:
                continue
            held = [arranged(paper, cut[paper.id], views, of_papers and of_papers[paper.id]) for paper in chosen]
            curves = [curve(chosen, held, retriever) for retriever in retrievers.values()]
            at_k = np.array([equal_k(*own)[0] for own in curves]).mean(axis=0)
            at_tokens = np.array([equal_tokens(*own) for own in curves]).mean(axis=0)
            united = np.mean([union(asked(chosen, held, retriever)) for retriever in retrievers.values()], axis=0)
            cells = [f"{value:.3f}" for value in (*at_k, *at_tokens)]
            table.add_row(name, writer, *cells, " ".join(f"{recall:.3f}" for recall, _, _ in united))
    console.print(table)


def arranged(paper: Paper, cut: list[Chunk], views: tuple[View, ...], texts: Mapping[View, list[str]] | None) -> Chunks:
    """The chunks of a paper, found through some of their views."""
    made = section_chunks(paper.document, paper.id, VIEWS, chunker=lambda _: cut, texts=texts)
    raw = [chunk for chunk in made if chunk.view == "raw"]
    place = {chunk.id: position for position, chunk in enumerate(raw)}
    found = {view: [(place[c.section_id], c.indexed_text) for c in made if c.view == view] for view in views}
    return Chunks([(chunk.start, chunk.end) for chunk in raw], [len(chunk.text.split()) for chunk in raw], found)


def smollm2(folder: Path) -> Callable[[str], str]:
    """The model as a function from a prompt to its answer; nothing is sampled."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def generate(prompt: str) -> str:
        turns = [{"role": "user", "content": prompt}]
        inputs = tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_tensors="pt", return_dict=True)
        most = WRITTEN_TOKENS["keywords" if "keyword extractor" in prompt else "summary"]
        with torch.inference_mode():
            ids = model.generate(**inputs, max_new_tokens=most, do_sample=False, repetition_penalty=1.2)
        return str(tokenizer.decode(ids[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True))

    return generate
