"""Views of QASPER papers: how they are cut and described, and what a search over them finds."""

from __future__ import annotations

from typing import Any

from .building import build, got, imported
from .data import papers
from .taking import Recorder, ScriptedLLM

CHUNKER: dict[str, Any] = {
    "views": ("raw", "keywords", "summary"),
    "on_failure": "continue",
    "workers": 1,
    "chunking": "section",
    "max_tokens": None,
    "min_tokens": None,
    "tokens": None,
    "context": (),
    "summarizer": None,
    "llm": None,
    "writer": None,
}
CUTS: dict[str, dict[str, Any]] = {
    "sections": {},
    "sections of 200 tokens": {"max_tokens": 200},
    "small ones joined": {"min_tokens": 80, "max_tokens": 400},
    "paragraphs": {"chunking": "paragraph", "views": ("raw",), "context": ("headings",)},
    "content-aware": {"chunking": "content_aware_fixed", "max_tokens": 100, "context": ("headings", "keywords")},
    "fixed": {"chunking": "fixed", "max_tokens": 100, "views": ("raw", "keywords")},
    "by words": {"chunking": "fixed", "max_tokens": 60, "views": ("raw",), "tokens": lambda text: len(text.split())},
    "summarised": {"summarizer": lambda texts: [text[:60] for text in texts], "views": ("raw", "summary")},
}


def view_answers(prompt: str) -> str:
    """Of an LLM that is asked for keywords or a summary."""
    words = [word for word in prompt.split() if len(word) > 9][:6]
    return f'["{words[0]}", "{words[-1]}"]' if "keyword" in prompt.lower() else f"It says {' '.join(words)}."


def views(recorder: Recorder) -> None:
    """Chunks of every kind, and searches with every retriever and several weights."""
    parse, chunker = imported("drillrank:parse_document"), imported("drillrank.views:MultiViewChunker")
    index = imported("drillrank.views:MultiViewIndex")
    read = [(paper, parse(paper["markdown"], format="markdown")) for paper in recorder.some(papers(), 12)]
    for name, settings in CUTS.items():
        made: list[Any] = []
        for paper, document in read:
            cut = build(chunker, **CHUNKER | settings)
            found = recorder.take(f"{name}/{paper['id']}", lambda: _chunks(cut.chunks([(paper["id"], document)])))
            made += cut.chunks([(paper["id"], document)])[0] if found else []
        for retriever in ("bm25", "tfidf"):
            for weights in (None, {"raw": 1.0, "keywords": 0.5, "summary": 0.25}):
                searching = build(index, made, retriever=retriever, weights=weights)
                for paper, _ in read[:6]:
                    for asked in paper["questions"][:3]:
                        kind = f"search, {name}, {retriever}, {'weighted' if weights else 'best of each'}"
                        recorder.take(
                            f"{kind}/{asked['id']}", lambda: _sections(searching.search(asked["question"], 8))
                        )
        among = range(0, len(made), 2)
        first = read[0][0]["questions"][0]["question"]
        if name in ("paragraphs", "by words"):
            recorder.take(f"search, {name}/some", lambda: _sections(searching.search(first, 5, among=among)))
        recorder.take(f"search, {name}/many", lambda: [_sections(one) for one in searching.search_many([first], 3)])
    for name, llm in {
        "an llm": ScriptedLLM(recorder, view_answers),
        "a bad llm": ScriptedLLM(recorder, ["", "I cannot.", RuntimeError("down"), "[]"]),
    }.items():
        for paper, document in read[:4]:
            writing = build(chunker, **CHUNKER | {"llm": llm})
            recorder.take(f"{name}/{paper['id']}", lambda: _chunks(writing.chunks([(paper["id"], document)])))
    awaited = build(chunker, **CHUNKER | {"llm": ScriptedLLM(recorder, view_answers)})
    recorder.take("an llm, awaited/one", lambda: _awaited(awaited, read[-1]))
    summaries, keywords = imported("drillrank.views:summaries"), imported("drillrank.views:keywords")
    for paper, _ in read:
        texts = ["\n\n".join(section["paragraphs"]) for section in paper["sections"]]
        recorder.take(f"keywords/{paper['id']}", lambda: keywords(texts))
        recorder.take(f"summaries/{paper['id']}", lambda: list(summaries(texts)))


async def _awaited(chunker: Any, one: Any) -> Any:
    paper, document = one
    return _chunks(await chunker.achunks([(paper["id"], document)]))


def _chunks(found: Any) -> list[Any]:
    names = ("id", "view", "path", "level", "start", "end", "ordinal", "part", "section_id", "parent_id", "pages")
    return [
        {name: got(chunk, name) for name in names} | {"shown": chunk.text, "indexed": chunk.indexed_text}
        for chunks in found
        for chunk in chunks
    ]


def _sections(found: Any) -> list[Any]:
    return [{"id": got(one, "section_id"), "score": one.score, "views": got(one, "matched_views")} for one in found]
