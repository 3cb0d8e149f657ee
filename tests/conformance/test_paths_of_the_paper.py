"""`preset="paper"` of path search in both frameworks sends the prompts that the core sends, and ranks alike."""

from __future__ import annotations

import random
from typing import Any

import pytest

from drillrank import Passage, PathSearch, PromptRank
from drillrank.multihop.path_rerank import PathRerank
from drillrank.prompts import prompt_text
from tests.conformance.frameworks import Framework, both_frameworks
from tests.drillrank.conftest import HashModel

_QUESTION = "Which river flows past the castle where the painter was born?"
_WORDS = ["river", "castle", "painter", "born", "bridge", "harbor", "war", "lake", "school", "film", "mother", "king"]
_N_FIRST = 8


class _WordModel(HashModel):
    """Model of hashes whose tokens are words."""

    def first_tokens(self, text: str, count: int) -> str:
        words = text.split()
        return text if len(words) <= count else " ".join(words[:count])


def _make_passages() -> list[Passage]:
    """Return passages with links of all kinds, more of them than the paper follows."""
    chance = random.Random(3)
    titles = [f"{first} {last}" for first in ("Ada", "Nora", "Emma", "Olga") for last in ("Holm", "Quill", "Reed")]
    ids = [f"p{number}" for number in range(len(titles))]
    passages = []
    for number, title in enumerate(titles):
        address, mentioned = chance.choice(ids), chance.choice(titles)
        words = " ".join(chance.choices(_WORDS, k=6))
        passages.append(
            Passage(
                f"{words}. {mentioned} lived near the [tower]({address}.md).",
                id=ids[number],
                title=title,
                links=tuple(chance.sample(ids, 4)),
                metadata={"file_path": f"{ids[number]}.md"},
            )
        )
    return passages


PASSAGES = _make_passages()


def _make_records(framework: type[Framework]) -> list[Any]:
    return [
        framework.record(one.text, one.id, title=one.title, links=list(one.links), **one.metadata) for one in PASSAGES
    ]


def _list_prompts(model: _WordModel) -> list[tuple[str, str, int | None]]:
    return sorted((prompt_text(one.prompt), one.target, one.max_tokens) for one in model.requests)


def _search_core(**fields: Any) -> tuple[list[Any], list[Any]]:
    """Return the ranking of the core, and its prompts."""
    model = _WordModel()
    search = PathSearch(
        PromptRank(model, preset="paper", **fields.pop("prompts", {})),
        PASSAGES,
        first_stage=lambda _query, _n: PASSAGES[:_N_FIRST],
        preset="paper",
        **fields,
    )
    ranking = search.search(_QUESTION)
    return [(one.passage.id, " > ".join(one.details["path"]), one.score) for one in ranking], _list_prompts(model)


def _search_framework(framework: type[Framework], **fields: Any) -> tuple[list[Any], list[Any]]:
    """Return the results of a retriever, and its prompts."""
    model, records = _WordModel(), _make_records(framework)
    retriever = framework.ext.PromptRankRetriever(
        documents=records, source=framework.retriever(*records[:_N_FIRST]), model=model, top_n=None, **fields
    )
    results = framework.ask(retriever, _QUESTION)
    prompts = _list_prompts(model)
    assert framework.ask(retriever, _QUESTION, asynchronous=True) == results
    assert _list_prompts(model) == sorted(prompts * 2)
    return [(one.id, one.metadata["drillrank_path"], one.score) for one in results], prompts


@both_frameworks
@pytest.mark.parametrize("fields", [{"preset": "paper"}, {"settings": {"preset": "paper"}}], ids=["field", "setting"])
def test_a_retriever_sends_the_prompts_of_the_core(host, fields):
    results, prompts = _search_core()
    assert _search_framework(host, **fields) == (results, prompts)
    # Five prompts for each of the first passages, and for at most K = 5 of them with L = 3 links.
    n_instructions = 5
    assert n_instructions * _N_FIRST < len(prompts) <= n_instructions * (_N_FIRST + 5 * 3)
    assert {path.count(" > ") for _, path, _ in results} <= {0, 1}
    linked = {one.id: {*one.links, *(id_ for id_ in _ids() if f"]({id_}.md)" in one.text)} for one in PASSAGES}
    steps = [path.split(" > ") for _, path, _ in results if " > " in path]
    assert steps
    assert all(after in linked[before] for before, after in steps)  # neither titles nor names nor pairs
    assert _search_framework(host) != (results, prompts)  # without the preset


def _ids() -> list[str]:
    return [one.id for one in PASSAGES]


@both_frameworks
def test_explicit_values_win(host):
    settings: dict[str, Any] = {"hops": 3, "beam": (2, 1), "branch": 1, "pairs": 3}
    prompts: dict[str, Any] = {"temperature": 2.0, "instructions": ("{path} Ask now:",), "ensemble": "mean"}
    expected = _search_core(settings=settings, prompts=prompts)
    explicit = {"preset": "paper", "settings": {**settings, **prompts}}
    assert _search_framework(host, **explicit) == expected
    assert all("Ask now:" in prompt for prompt, _, _ in expected[1])
    assert _search_framework(host, **explicit, links=["titles"]) != expected


@both_frameworks
def test_a_reranker_sends_the_prompts_of_the_core(host):
    model, core_model, records = _WordModel(), _WordModel(), _make_records(host)
    ranking = PathRerank(PromptRank(core_model, preset="paper"), preset="paper").rank(_QUESTION, PASSAGES)
    reranker = host.ext.PromptRankRerank(model=model, top_n=None, preset="paper")
    results = host.ask(reranker, _QUESTION, *records)
    assert [(one.id, one.score) for one in results] == [(one.passage.id, one.score) for one in ranking]
    assert _list_prompts(model) == _list_prompts(core_model)
    by_setting = host.ext.PromptRankRerank(model=model, top_n=None, settings={"preset": "paper"})
    assert host.ask(by_setting, _QUESTION, *records) == results
    assert host.ask(host.ext.PromptRankRerank(model=model, top_n=None), _QUESTION, *records) != results


@both_frameworks
def test_vectors_of_an_index_do_not_count_unless_they_are_asked_for(host):
    records = _make_records(host)
    fields: dict[str, Any] = {"source": host.index(*records), "documents": records, "preset": "paper", "top_n": None}
    default, with_vectors, without = (
        host.ext.PromptRankRetriever(model=_WordModel(), **fields, settings={"use_index_vectors": uses_vectors})
        for uses_vectors in (None, True, False)
    )
    chance = random.Random(5)
    questions = [f"Which {' '.join(chance.choices(_WORDS, k=4))}?" for _ in range(30)]
    results = [host.ask(default, question) for question in questions]
    assert results == [host.ask(without, question) for question in questions]
    assert results != [host.ask(with_vectors, question) for question in questions]
