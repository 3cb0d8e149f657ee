"""First questions at the same time: documents are prepared and summarised once, in both hosts, sync and async."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conformance.frameworks import both_frameworks
from tests.conformance.readers import Crowd

TEXT = "\n\n".join(
    f"# Part {n}\n\n" + " ".join(f"Sentence {m} of part {n} is about stones." for m in range(20)) + "\n\nThe end."
    for n in range(3)
)


@both_frameworks
@pytest.mark.parametrize("how", ["threads", "tasks"])
def test_eight_first_questions_at_once_prepare_and_summarise_once(host, how):
    embedded = []

    def embed(texts):
        embedded.append(len(texts))
        return [[1.0, len(text)] for text in texts]

    crowd = Crowd(0.01)
    llm = host.reader(lambda prompt: "Stones." if "summarization" in prompt else "none", crowd)
    source = host.retriever(host.document(TEXT, "book"))
    retriever = host.ext.D3Retriever(
        source=source, llm=llm, settings={"summarizer": "llm", "unit": "paragraph"}, embed=embed
    )

    async def all_at_once():
        await asyncio.gather(*(host.aretrieve(retriever, "Which stones?") for _ in range(8)))

    if how == "tasks":
        asyncio.run(all_at_once())
    else:
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda question: host.retrieve(retriever, question), ["Which stones?"] * 8))
    assert sum("summarization" in prompt for prompt in crowd.prompts) == 3
    assert embedded.count(6) == 1  # the paragraphs; the rest are questions and reference texts
