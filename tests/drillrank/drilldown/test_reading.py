"""Evidence for a reader: the best paragraph of a passage, and a budget of tokens."""

from __future__ import annotations

import asyncio
import pickle

import pytest

from drillrank import D3, Corpus, parse_document
from drillrank.drilldown.outline import Outline, outline
from drillrank.drilldown.settings import D3Settings
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.text import count_tokens
from tests.drillrank.helpers import UNITS, paragraph_d3

MANUAL = "# Kettle\n\nRead me first.\n\n## Care\n\nBoil vinegar once a month.\n\n## Lid\n\nThe lid is new.\n"
LONG = "\n\n".join(
    f"# Part {n}\n\n" + " ".join(f"Sentence {m} of part {n} is about stones." for m in range(20 + n)) for n in range(12)
)
QUESTION = "Which sentence of part 7 is about stones?"


def result_texts(result):
    return [item.passage.text for item in result]


@pytest.mark.parametrize("in_corpus", [False, True])
def test_the_best_paragraph_has_the_words_of_the_question_and_an_exact_span(in_corpus):
    corpus = Corpus()
    corpus.add([("manual", parse_document(MANUAL))])
    [item] = D3().retrieve("When is vinegar boiled?", corpus if in_corpus else [MANUAL])
    best = item.details["best_paragraph"]
    assert best["text"] == "Boil vinegar once a month."
    assert MANUAL[slice(*best["span"])] == best["text"]
    assert "best_paragraph" not in paragraph_d3().retrieve("When is vinegar boiled?", [MANUAL])[0].details


def test_the_best_paragraph_may_stand_below_the_heading_that_the_question_names():
    text = "# Rivers\n\n## Rhine\n\nIt is about 1,230 km long.\n\n## Thames\n\nIt is about 346 km long.\n\nIt ebbs.\n"
    [item] = D3().retrieve("How long is the Thames?", [text])
    assert item.details["best_paragraph"]["text"] == "It is about 346 km long."


def test_the_first_paragraph_is_best_if_none_has_a_word_of_the_question():
    [item] = D3().retrieve("xylophone", [MANUAL], 1)
    assert item.details["best_paragraph"]["text"] == "Read me first."


@pytest.mark.parametrize("max_tokens", [150, 400, 900, 100_000])
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("llm", [None, lambda prompt: "1, 2, 3"], ids=["no LLM", "LLM"])
@pytest.mark.parametrize("in_corpus", [False, True])
@pytest.mark.filterwarnings("ignore::drillrank.errors.DrillrankWarning")
def test_a_token_budget_is_never_exceeded(max_tokens, unit, llm, in_corpus):
    d3, corpus = D3(llm, settings={"unit": unit}), Corpus(unit=unit)
    corpus.add([("long", parse_document(LONG))])
    documents = corpus if in_corpus else [LONG]
    result = d3.retrieve(QUESTION, documents, max_tokens=max_tokens)
    assert result
    assert sum(map(count_tokens, result_texts(result))) <= max_tokens
    assert [item.rank for item in result] == list(range(1, len(result) + 1))
    later = asyncio.run(d3.aretrieve(QUESTION, documents, max_tokens=max_tokens))
    assert result_texts(later) == result_texts(result)


def test_a_budget_is_filled_with_later_evidence_that_fits_and_neighbors_keep_document_order():
    everything = D3().retrieve(QUESTION, [LONG], max_tokens=100_000)
    starts = [item.passage.metadata["start"] for item in everything]
    assert starts == sorted(starts)  # all are neighbors
    text = "# A\n\n" + "The stone is grey and old. " * 30 + "\n\n# B\n\nAn owl sees the stone.\n"
    [short] = paragraph_d3(settings={"follow": False}).retrieve("stone grey old", [text], max_tokens=20)
    assert short.passage.text == "An owl sees the stone."


def test_a_text_that_is_too_long_is_truncated_with_a_warning():
    with pytest.warns(DrillrankWarning, match="max_tokens=20"):
        [item] = D3().retrieve(QUESTION, [LONG], max_tokens=20)
    assert count_tokens(item.passage.text) <= 20
    assert " … " in item.passage.text


def test_a_slice_is_a_result_and_a_pickle_has_no_documents():
    result = paragraph_d3().retrieve("vinegar lid", [MANUAL], 3)
    assert result_texts(result[:2]) == result_texts(result)[:2]
    assert (result[:2].usage, result[:2].confidence) == (result.usage, result.confidence)
    assert len(result[:2].explain()) == 2
    copy = pickle.loads(pickle.dumps(result))
    assert (copy.evidence, copy.steps, copy.problems) == (result.evidence, result.steps, result.problems)
    assert copy.trace.candidate_sections == ()
    with pytest.raises(InvalidInput, match="retrieve again"):
        copy.explain()


def test_explicit_settings_win_over_the_preset():
    asked = {"whole_paths": False, "unit": "passage", "summarizer": "llm", "sections_by": "json", "summarize_above": 9}
    completed = D3Settings(preset="paper", **asked).complete()
    assert {name: getattr(completed, name) for name in asked} == asked
    paper = D3Settings(preset="paper").complete()
    assert (paper.unit, paper.whole_paths, paper.sections_by, paper.summarize_above) == ("paragraph", True, "names", 0)
    plain = D3Settings().complete()
    assert (plain.unit, plain.whole_paths, plain.summarizer) == ("passage", False, None)


def test_the_preset_cuts_no_paragraph_that_one_prompt_has_room_for():
    text = "# A\n\n" + "The stone is grey and old. " * 60
    limits = {"max_prompt_tokens": 700, "unit": "paragraph", "summarizer": lambda texts: ["Sum."] * len(texts)}
    llm = lambda prompt: "1"  # noqa: E731
    counts = [
        len(D3(llm, settings={**limits, "preset": preset}).prepare([text]).outline.paragraphs)
        for preset in ("paper", None)
    ]
    assert counts[0] == 1 < counts[1]


def test_untitled_documents_are_numbered_only_if_names_of_sections_clash():
    different, equal = (
        ["# A\n\nOne.\n\n# B\n\nTwo.", "# C\n\nThree.\n\n# D\n\nFour."],
        ["# A\n\nOne.\n\n# B\n\nTwo."] * 2,
    )
    names = [
        [entry.name for entry in tree.leaves(tree.sections)] for tree in map(Outline, map(outline, (different, equal)))
    ]
    assert names[0] == ["A", "B", "C", "D"]
    assert names[1] == ["Document 1 > A", "Document 1 > B", "Document 2 > A", "Document 2 > B"]


@pytest.mark.parametrize("unit", UNITS)
def test_an_encoder_finds_a_document_that_shares_no_word_with_the_question(unit):
    def embed(texts):
        return [[1.0, 0.1] if "automobile" in text or "car" in text.split() else [0.1, 1.0] for text in texts]

    texts = [f"# Page {n}\n\nThe owl of house {n} sings." for n in range(40)]
    texts[17] = "# Vehicles\n\nMy automobile has four wheels."
    corpus = Corpus(unit=unit)
    corpus.add((str(n), parse_document(text)) for n, text in enumerate(texts))
    d3 = D3(embed=embed, settings={"unit": unit})
    [stored], [in_memory] = (d3.retrieve("fast car", documents, 1) for documents in (corpus, texts))
    assert "automobile" in stored.passage.text
    assert stored.passage.text == in_memory.passage.text
    assert stored.score == pytest.approx(in_memory.score)
