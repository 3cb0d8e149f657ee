"""Settings, documents, models and functions that D3 refuses."""

from __future__ import annotations

import numpy as np
import pytest

from drillrank import D3, Corpus, Relevance, load_language_model, parse_document
from drillrank.drilldown.settings import D3Settings
from drillrank.errors import InvalidInput
from tests.drillrank.conftest import HashModel
from tests.drillrank.helpers import UNITS, Says, refuses

QUESTION = "When is the lid rinsed?"
BOOK = "# Kettle\n\nWater boils in nine minutes.\n\n# Care\n\nRinse the lid weekly."
LONG = f"# One\n\n{' '.join(f'Sentence number {n} about stones.' for n in range(40))}\n\n# Two\n\nShort."
JUDGE = Relevance(HashModel())
RIVERS = ["The Rhine is long.", "The Thames is short."]


def asked(documents: object = (BOOK,), llm: object = None, question: str = QUESTION, **fields: object) -> object:
    return D3(llm, **fields).retrieve(question, list(documents) if isinstance(documents, tuple) else documents)


def corpus_of(unit: str) -> Corpus:
    corpus = Corpus(unit=unit)
    corpus.add([parse_document(BOOK)])
    return corpus


test_input_that_d3_cannot_use_is_refused = refuses(
    *(
        (lambda wrong=wrong, unit=unit: asked(wrong, settings={"unit": unit}), message)
        for unit in UNITS
        for wrong, message in ((BOOK, "list"), ([5], "got a int"), ([None], "got a NoneType"))
    ),
    *((lambda unit=unit: D3(settings={"unit": unit}), "unit") for unit in ("page", 5)),
    *(
        (
            lambda unit=unit, other=other: asked(corpus_of(other), settings={"unit": unit}),
            f"Use Corpus.unit='{unit}'",
        )
        for unit, other in (("passage", "paragraph"), ("paragraph", "passage"))
    ),
    *((lambda hops=hops: D3(settings={"hops": hops}), "hops must be 1, 2 or None") for hops in (0, 3, "2", True, 2.0)),
    (lambda: D3(lambda _: "1", settings={"hops": 2}), "hops=2 requires"),
    *(
        (lambda judge=judge: D3(settings={"judge": judge}), "judge must be a MonoT5 or a Relevance")
        for judge in ("hf:x", 3)
    ),
    (lambda: D3(lambda _: "1", settings={"judge": JUDGE}), "judge adds to the scores of the built-in model"),
    (lambda: D3(model=HashModel(), settings={"judge": JUDGE}), "Remove judge"),
    (lambda: D3(model=load_language_model("unigram+2*unigram"), settings={"judge": JUDGE}), "Remove judge"),
    (lambda: D3Settings(preset="upr"), "preset"),
    (lambda: D3(settings={"paragraphs": "paragraph", "max_calls": 3}), "needs an LLM"),
    (lambda: D3(Says(""), settings={"summarizer": "llm", "max_prompt_tokens": 60}), "max_prompt_tokens=60"),
    (
        lambda: asked((LONG,), Says("none"), settings={"unit": "paragraph", "summarizer": lambda texts: []}),
        "summarizer",
    ),
    (lambda: D3().retrieve(QUESTION, [BOOK], llm=str), "Pass llm to D3"),
    *(
        (
            lambda vectors=vectors: D3(embed=lambda texts: [vectors] * len(texts)).prepare([BOOK]),
            "embed must return one vector",
        )
        for vectors in ("ab", [["a", "b"]], [None])
    ),
    (
        lambda: asked(RIVERS, embed=lambda texts: np.ones((len(texts), 3 if len(texts) > 1 else 4))),
        "4 dimensions for the question, the paragraphs have 3",
    ),
)


@pytest.mark.parametrize("question", ["Why? " * 2000, "y" * 50_000], ids=["words", "one word"])
def test_a_question_that_a_prompt_has_no_room_for_is_refused_before_a_call(question):
    llm = Says("")
    with pytest.raises(InvalidInput, match=r"question has .* max_prompt_tokens"):
        asked(llm=llm, question=question, settings={"max_prompt_tokens": 1000})
    assert not llm.prompts
