from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.errors import DrillrankWarning
from drillrank.evaluation.settings_file import keyword_arguments
from drillrank.likelihood import UnigramModel
from drillrank.passages import Passage, Path
from drillrank.rerank.promptrank import PROMPTRANK_INSTRUCTIONS, PromptRank
from tests.drillrank.helpers import refuses

texts = st.text(max_size=5) | st.sampled_from(["a red fox", "a river", "{path}", " ", "?!"])
paths = st.lists(st.lists(st.builds(Passage, texts, title=texts), min_size=1, max_size=3).map(Path), max_size=4)
instructions = st.lists(st.sampled_from(PROMPTRANK_INSTRUCTIONS), min_size=1, max_size=4)
top_ns = st.none() | st.integers(1, 6)


def whole_prompt(path, instruction):
    documents = [f"{p.title} {p.text}" if p.title else p.text for p in path.passages]
    before, after = instruction.split("{path}")
    return before + " ".join(f"Document: {document}" for document in documents if document.strip()) + after


@given(paths, instructions, st.sampled_from(["max", "mean"]), st.sampled_from([1.0, 1.4]), top_ns)
def test_the_score_of_a_path_is_that_of_the_question_after_its_prompts(
    hash_model, paths, instructions, ensemble, temperature, top_n
):
    query = "who crossed the river"
    ranker = PromptRank(hash_model(), instructions=instructions, ensemble=ensemble, temperature=temperature)
    ranking = ranker.rank(query, paths, top_n)
    expected = []
    for path in paths:
        prompts = [whole_prompt(path, instruction) for instruction in instructions]
        means = [float(np.sum(hash_model.log_probs(prompt, query, temperature))) / 4 for prompt in prompts]
        expected.append(max(means) if ensemble == "max" else sum(means) / len(means))
    order = sorted(range(len(paths)), key=lambda i: (-expected[i], i))[:top_n]
    assert [entry.details["position"] for entry in ranking] == order
    assert [entry.score for entry in ranking] == pytest.approx([expected[i] for i in order])
    assert all(entry.passage is paths[i] for entry, i in zip(ranking, order, strict=True))
    assert [entry.details["path"] for entry in ranking] == [paths[i].ids for i in order]
    assert all(entry.details["tokens"] == 4 and entry.details["cut_tokens"] == 0 for entry in ranking)
    assert all(type(entry.score) is float for entry in ranking)


@given(paths)
def test_budgets_go_with_every_request(hash_model, paths):
    model = hash_model()
    PromptRank(model, settings={"max_document_tokens": 7, "max_prompt_tokens": 31}).score_paths("q", paths)
    assert len(model.requests) == 5 * len(paths)
    assert {request.max_tokens for request in model.requests} <= {31}
    limits = {part.max_tokens for request in model.requests for part in request.prompt if not isinstance(part, str)}
    assert limits <= {7}


BAD = [
    {"instructions": []}, {"instructions": ["no place"]}, {"instructions": "{path} Question:"}, {"ensemble": "median"},
    {"max_document_tokens": 0}, {"max_prompt_tokens": -1}, {"model": "unknown"}, {"temperature": -1},
]  # fmt: skip
test_what_cannot_be_ranked_is_refused_at_once = refuses(
    *((lambda bad=bad: PromptRank(**keyword_arguments(PromptRank, bad)), "") for bad in BAD),
    *((lambda item=item: PromptRank().rank("q", [Path((Passage("a"),)), item]), "Item 1 must be a Path")
      for item in ("text", Passage("text"), None, (Passage("text"),))),
)  # fmt: skip


def test_a_model_that_hears_no_instruction_is_asked_once(monkeypatch):
    asked = []
    whole = UnigramModel.log_likelihood_batch
    monkeypatch.setattr(
        UnigramModel, "log_likelihood_batch", lambda self, r, *rest: asked.extend(r) or whole(self, r, *rest)
    )
    paths = [Path((Passage("red fox"),)), Path((Passage("town"),))]
    ranker = PromptRank(UnigramModel().fit(["red fox", "town"]))
    with pytest.warns(DrillrankWarning, match="instructions has no effect"):
        bare = PromptRank(ranker.language_model, instructions=["{path}"])
    assert ranker.score_paths("fox", paths) == bare.score_paths("fox", paths)
    assert len(asked) == 4
    by_prompt = ranker.score_prompts("fox", paths)
    assert [len(of_path) for of_path in by_prompt] == [5, 5]
    assert all(
        contexts == [score]
        for of_path, (score, _) in zip(by_prompt, ranker.score_paths("fox", paths), strict=True)
        for contexts in of_path
    )
