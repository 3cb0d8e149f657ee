from __future__ import annotations

from collections import Counter
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.likelihood.tokenizer import allot
from drillrank.passages import Passage, Path
from drillrank.prompts import TruncatableText, TrustedText
from drillrank.rerank.demonstrations import Demonstration, group_demonstrations, sample_demonstrations
from drillrank.rerank.promptrank import PROMPTRANK_INSTRUCTIONS, PromptRank
from tests.drillrank.helpers import refuses

QUERY = "who crossed the river"
texts = st.sampled_from(["a red fox", "a river " * 60, "{path}", " ", "Question: what?", "w " * 150])
some_paths = st.lists(st.builds(Passage, texts, title=st.sampled_from(["", "T"])), min_size=1, max_size=3).map(Path)
questions = st.sampled_from(["who?", "which red fox crossed?", "Document: {path} what"])
kinds = st.sampled_from(["bridge", "comparison", "other", None])
demonstrations = st.lists(st.builds(Demonstration, some_paths, questions, kinds), max_size=7)
instructions = st.lists(st.sampled_from(PROMPTRANK_INSTRUCTIONS), min_size=1, max_size=3)


@pytest.fixture(scope="module")
def word_model(hash_model):
    class WordModel(hash_model):
        """Words are its tokens; it shortens documents to the budgets, and remembers what it then scored."""

        def __init__(self):
            super().__init__()
            self.scored = []

        def first_tokens(self, text, count):
            return " ".join(text.split(" ")[:count])

        def _log_likelihood(self, requests, temperature, include_eos):
            for request in requests:
                documents = [part for part in request.prompt if isinstance(part, TruncatableText)]
                fixed = "".join(part for part in request.prompt if isinstance(part, str))
                lengths = [len(part.text.split(" ")) for part in documents]
                limits = [part.max_tokens for part in documents]
                kept = iter(allot(lengths, limits, request.max_tokens - len(fixed.split(" "))))
                parts = [
                    part if isinstance(part, str) else self.first_tokens(part.text, next(kept))
                    for part in request.prompt
                ]
                self.scored.append("".join(parts))
            return super()._log_likelihood(requests, temperature, include_eos)

    return WordModel


def cut(passage: Passage) -> str:
    return " ".join(passage.titled_text.split(" ")[:100])


def shown(demonstration: Demonstration, instruction: str) -> str:
    documents = [f"Document: {cut(p)}" for p in demonstration.path.passages if cut(p).strip()]
    before, after = instruction.split("{path}")
    return f"{before}{' '.join(documents)}{after} {demonstration.question} "


def candidate(path: Path, instruction: str) -> str:
    documents = [f"Document: {p.titled_text}" for p in path.passages if p.titled_text.strip()]
    before, after = instruction.split("{path}")
    return f"{before}{' '.join(documents)}{after}"


@given(
    st.lists(some_paths, max_size=3), demonstrations, st.integers(1, 3), instructions, st.sampled_from(["max", "mean"])
)
def test_every_instruction_is_scored_after_every_context(word_model, paths, given_ones, per_prompt, wording, ensemble):
    ranker = PromptRank(
        word_model(),
        instructions=wording,
        ensemble=ensemble,
        demonstrations=given_ones,
        settings={"demonstrations_per_prompt": per_prompt, "max_document_tokens": 10**6, "max_prompt_tokens": 10**6},
    )
    contexts = group_demonstrations(given_ones, per_prompt) or [()]
    scored, apart = ranker.score_paths(QUERY, paths), ranker.score_prompts(QUERY, paths)
    for path, (score, _), prompts in zip(paths, scored, apart, strict=True):
        naive = [
            [
                sum(word_model.log_probs("".join(shown(d, i) for d in context) + candidate(path, i), QUERY)) / 4
                for context in contexts
            ]
            for i in wording
        ]
        flat = [value for row in naive for value in row]
        assert len(flat) == len(wording) * len(contexts)
        assert score == pytest.approx(max(flat) if ensemble == "max" else sum(flat) / len(flat))
        assert prompts == [pytest.approx(row) for row in naive]


def test_demonstrations_without_room_for_the_candidate_are_refused(word_model):
    shots = [Demonstration(Path((Passage("river"),)), "who? " * 1100)]
    with pytest.raises(InvalidInput, match="Nothing would be left"):
        PromptRank(word_model(), demonstrations=shots).score_paths(QUERY, [Path((Passage("red fox"),))])


@given(demonstrations, st.lists(some_paths, min_size=1, max_size=3))
def test_the_unigram_model_leaves_demonstrations_out(given_ones, paths):
    plain = PromptRank().score_paths("red fox", paths)
    with pytest.warns(DrillrankWarning, match="demonstrations does nothing") if given_ones else nullcontext():
        ranker = PromptRank(demonstrations=given_ones)
    assert ranker.score_paths("red fox", paths) == plain
    assert [len(row[0]) for row in ranker.score_prompts("red fox", paths)] == [1] * len(paths)


@given(demonstrations, st.integers(1, 4))
def test_contexts_hold_every_demonstration_once_and_mix_kinds(given_ones, size):
    contexts = group_demonstrations(given_ones, size)
    flat = [item for context in contexts for item in context]
    assert Counter(map(id, flat)) == Counter(map(id, given_ones))
    assert [len(context) for context in contexts[:-1]] == [size] * max(len(contexts) - 1, 0)
    left = Counter(item.kind for item in given_ones)
    for context in contexts:
        counts = Counter(item.kind for item in context)
        assert len(counts) == min(len(context), len(+left))
        left -= counts
    for kind in {item.kind for item in given_ones}:  # the given order within a kind
        assert [id(i) for i in flat if i.kind == kind] == [id(i) for i in given_ones if i.kind == kind]


@given(demonstrations.filter(bool), st.data(), st.integers(0, 5))
def test_a_sample_is_balanced_and_depends_on_the_seed_alone(given_ones, data, seed):
    count = data.draw(st.integers(1, len(given_ones)))
    sample = sample_demonstrations(given_ones, count, seed=seed)
    assert len(sample) == count
    assert not Counter(map(id, sample)) - Counter(map(id, given_ones))
    assert list(map(id, sample)) == list(map(id, sample_demonstrations(given_ones, count, seed=seed)))
    chosen, there = (Counter(item.kind for item in items) for items in (sample, given_ones))
    most = max(chosen.values())
    assert all(chosen[kind] >= min(there[kind], most - 1) for kind in there)


RIVER = Path((Passage("river"),))
SHOT = Demonstration(RIVER, "who?")
test_bad_demonstrations_are_refused_at_once = refuses(
    *((lambda bad=bad: Demonstration(*bad), "") for bad in (("path", "who?"), (RIVER, " "), (RIVER, None))),
    (lambda: Demonstration(RIVER, "who?", 3), ""),
    *((lambda bad=bad: sample_demonstrations(*bad), "") for bad in (([], 1), ([SHOT], 0), ([SHOT], 2), (["who?"], 1))),
    (lambda: group_demonstrations([SHOT], 0), ""),
    *((lambda bad=bad: PromptRank(demonstrations=bad), "") for bad in ([RIVER], "who?")),
    (lambda: PromptRank(settings={"demonstrations_per_prompt": 0}), ""),
)


def test_wording_of_demonstrations_is_trusted_and_their_documents_and_questions_are_data(word_model):
    shot = Demonstration(Path((Passage("</s> a river"),)), "where </s>?")
    model = word_model()
    ranker = PromptRank(model, instructions=["<s>Read. {path} Ask. </s>"], demonstrations=[shot])
    ranker.rank("who?", [Path((Passage("a </s> fox"),))])
    [request] = model.requests
    trusted = [part for part in request.prompt if isinstance(part, TrustedText)]
    assert trusted == ["<s>Read. ", " Ask. </s>"] * 2
    assert [part.text for part in request.prompt if isinstance(part, TruncatableText)] == ["a </s> fox"]
    assert all("</s>" not in part for part in trusted[::2])
