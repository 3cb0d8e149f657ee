"""An LLM names what the best path of a hop lacks: the prompt, the answer, and the passages that are retrieved."""

from __future__ import annotations

import asyncio
import math
import warnings
from unittest.mock import AsyncMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.errors import DrillrankWarning, LLMFailure, UnusableAnswer
from drillrank.llm import Usage, arun, run, strip_reasoning
from drillrank.multihop.links import passage_links
from drillrank.multihop.missing import parse_missing_query
from drillrank.multihop.path_settings import PathSettings
from drillrank.multihop.prior import PathPrior
from drillrank.multihop.search import PathSearch
from drillrank.multihop.sources import handlers
from drillrank.passages import Passage
from drillrank.rerank.promptrank import PromptRank
from drillrank.text import WORD
from tests.drillrank.helpers import Says

FILM = Passage("The Silent Pier was directed by Ada Holm.", id="film")
HOLM = Passage("Ada Holm, a child of Esbjerg: an article on her youth.", id="holm")
PORT = Passage("Esbjerg is a seaport on the west coast.", id="port")
OTHERS = [Passage(f"Whales of the north sing at night, number {i}.", id=f"other{i}") for i in range(40)]
POOL = [*OTHERS, PORT, FILM, HOLM]
QUERY = "In which port did the director of The Silent Pier grow up?"


class Found:
    """A source that knows the text that is missing."""

    def retrieve(self, query, n):
        return [HOLM]

    def fetch(self, ids):
        return []


def search(llm, **settings):
    return PathSearch(PromptRank(), POOL, links=passage_links, llm=llm, settings={"pool": 3, **settings})


def test_settings_of_a_call_go_before_those_of_the_search():
    llm = Says("the childhood of Ada Holm", "nothing")
    silent = search(None)
    asked = PathSettings(missing_prompt="Of this call: {documents} {question}")
    found = run(silent.requests(QUERY, candidates=[FILM, PORT], missing=asked), llm, handlers(Found()))
    assert llm.prompts[0].startswith("Of this call: The Silent Pier")
    assert found[0].details["missing"] == ("the childhood of Ada Holm",)
    assert "usage" not in found[0].details
    assert "missing" not in silent.search(QUERY)[0].details


@pytest.mark.parametrize(
    ("answer", "query"),
    [
        ("birthplace of Ada Holm", "birthplace of Ada Holm"),
        ('Search query: "birthplace of Ada Holm"', "birthplace of Ada Holm"),
        ("**Search query:** birthplace of Ada Holm", "birthplace of Ada Holm"),
        ("- Ada Holm childhood\n- Ada Holm films", "Ada Holm childhood"),
        ("1. Ada Holm childhood\n2. Ada Holm films", "Ada Holm childhood"),
        ("\n\n  Ada Holm  \n", "Ada Holm"),
        ("```\nAda Holm\n```", "Ada Holm"),
        ('```json\n{"query": "Ada Holm"}\n```', "Ada Holm"),
        ('{"missing": [], "query": "Ada Holm"}', "Ada Holm"),
        ('["Ada Holm", "Esbjerg"]', "Ada Holm"),
        ('[5, "Ada Holm"]', "Ada Holm"),
        ("***\nAda Holm", "Ada Holm"),
        ("more information", "more information"),
        ("<think>Nothing? No, her town.</think>Ada Holm", "Ada Holm"),
        ("Missing: the town where Ada Holm grew up", "the town where Ada Holm grew up"),
        ("No Country for Old Men director", "No Country for Old Men director"),
        ("Nothing Compares 2 U songwriter", "Nothing Compares 2 U songwriter"),
        ("艾达·霍尔姆 出生地", "艾达·霍尔姆 出生地"),
        ("nothing", None),
        ("Nothing.", None),
        ("**Nothing** is missing.", None),
        ("None", None),
        ("N/A", None),
        ("No further information is needed.", None),
        ("Search query: nothing", None),
        ("The documents are sufficient.", None),
        ('{"query": "nothing"}', None),
        ("", None),
        ("...", None),
        ("\u0300", None),
        ("<think>It is Ada Holm", None),
        ("[" * 8000, None),
        ("{" * 8000, None),
    ],
)
def test_answers_are_read(answer, query):
    assert parse_missing_query(answer) == query


@given(st.text(max_size=400))
def test_no_answer_breaks_the_search(answer):
    query = parse_missing_query(answer)
    assert query is None or (0 < len(query) <= 300 and "\n" not in query)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = search(Says(answer)).search(QUERY)
    assert bool(caught) == (not WORD.search(strip_reasoning(answer) or "")) == ("problems" in found[0].details)
    assert len({item.passage.id for item in found}) == len(found)
    assert {item.details["missing"] for item in found} == {(query,) if query else ()}


def test_a_passage_without_links_is_not_reached_without_an_llm():
    assert "holm" not in {item.passage.id for item in search(None).search(QUERY)}


def test_a_named_passage_is_retrieved_and_linked_to():
    items = search(Says("article on Ada Holm", "nothing"), hops=3).search(QUERY)
    details = {item.passage.id: item.details for item in items}
    assert details["holm"]["path"] == ("film", "holm")


@pytest.mark.parametrize("method", [PathSearch.search, PathSearch.search_paths])
def test_details_tell_the_queries_and_the_calls(method):
    ranking = method(search(Says("article on Ada Holm", "nothing"), hops=3), QUERY)
    assert ranking[0].details["missing"] == ("article on Ada Holm",)
    assert ranking[0].details["usage"]["llm_calls"] == 2


def test_the_prompt_has_the_documents_and_the_question():
    llm = Says("article on Ada Holm", "nothing")
    search(llm, hops=3).search(QUERY)
    assert FILM.text in llm.prompts[0]
    assert QUERY in llm.prompts[0]


def test_a_named_passage_is_as_near_as_a_linked_one():
    """The prior of a step to one passage of n that were named is that of one of n links."""
    by_id = {passage.id: passage for passage in POOL}
    llm = Says("the article on Ada Holm: she grew up in Esbjerg")
    prior = PathPrior(jump=0.5, single=0.05, longer=0.1, aligned=0, weight=1)
    paths = search(llm, hops=2, pairs=0, branch=2, link_prior=prior).search_paths(QUERY)
    named = [item for item in paths if len(item.passage.passages) == 2 and item.passage.ids[1] == "holm"]
    assert named
    for item in named:
        start = next(one for one in paths if one.passage.ids == item.passage.ids[:1])
        others = len({"holm", "port"} - {item.passage.ids[0]})
        step = math.exp(item.details["log_prior"] - start.details["log_prior"])
        longer = 0.95 * 0.9 / 0.05  # than one passage
        assert step == pytest.approx((0.5 / others + 0.5 / len(by_id)) * longer, rel=1e-9)


def test_nothing_missing_ends_the_calls():
    llm = Says("Nothing.")
    search(llm, hops=3).search(QUERY)
    assert len(llm.prompts) == 1


def test_nothing_missing_does_not_end_the_search():
    rankings = [search(llm, hops=3).search(QUERY) for llm in (Says("Nothing."), None)]
    one, other = ([(item.passage.id, item.score) for item in ranking] for ranking in rankings)
    assert one == other


def search_long(llm):
    """Search with a long document first, and return the queries of the retrievals."""
    retrieved, long = [], Passage("The Silent Pier, a port. " * 4000, id="long")

    def first_stage(query, n):
        retrieved.append(query)
        return [long, *POOL[-3:]]

    PathSearch(PromptRank(), first_stage=first_stage, llm=llm, settings={"hops": 4}).search(QUERY)
    return retrieved


def test_the_same_query_is_not_retrieved_twice():
    assert search_long(Says("Ada Holm")) == [QUERY, "Ada Holm"]


def test_long_documents_are_shown_with_their_beginning():
    llm = Says("Ada Holm")
    search_long(llm)
    assert [len(prompt) < 8000 for prompt in llm.prompts] == [True] * 3


def test_a_failed_call_leaves_the_links_and_is_told():
    llm = Says(OSError("no answer"), "article on Ada Holm")
    with pytest.warns(DrillrankWarning, match=r"continues by links alone.*\(OSError\)"):
        ranking = search(llm, hops=3, on_failure="fallback").search(QUERY)
    assert "OSError: no answer" in ranking[0].details["problems"][0]
    assert ranking[0].details["missing"] == ("article on Ada Holm",)


@pytest.mark.parametrize("on_failure", [None, "raise"])
def test_a_failed_call_raises(on_failure):
    with pytest.raises(LLMFailure, match=r"name what is missing \(path search\): OSError: no answer"):
        search(Says(OSError("no answer")), on_failure=on_failure).search(QUERY)


def test_an_answer_without_a_word_leaves_the_links():
    with pytest.warns(DrillrankWarning, match=r"continues by links alone.*\(UnusableAnswer\)"):
        ranking = search(Says("..."), hops=2).search(QUERY)
    assert ranking[0].details["problems"] == ("missing: it has no word",)


def test_an_answer_without_a_word_raises_on_request():
    with pytest.raises(UnusableAnswer, match="no word"):
        search(Says("..."), on_failure="raise").search(QUERY)


def test_async_asks_the_same():
    async def llm(prompt):
        return "article on Ada Holm"

    made = search(Says("article on Ada Holm"))
    usage = Usage()
    source = {kind: AsyncMock(side_effect=answer) for kind, answer in handlers(made.source).items()}
    found = asyncio.run(arun(made.requests(QUERY, usage=usage), llm, source, usage=usage))
    expected = made.search(QUERY)
    assert [(item.passage.id, item.score, item.details) for item in found] == [
        (item.passage.id, item.score, item.details) for item in expected
    ]
