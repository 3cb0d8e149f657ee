"""Where links come from, and how they are followed wherever the passages are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drillrank.likelihood import UnigramModel
from drillrank.llm import LookupRequest, RetrievalRequest, run
from drillrank.multihop.links import (
    MetadataLinks,
    RetrievedLinks,
    bind_links,
    fetch_targets,
    links_from_metadata,
    list_targets,
    passage_links,
)
from drillrank.multihop.mentions import TitleMentions
from drillrank.multihop.path_rerank import PathRerank
from drillrank.multihop.search import PathSearch
from drillrank.multihop.sources import as_source, handlers
from drillrank.passages import Passage, Path, by_id
from drillrank.rerank.promptrank import PromptRank
from tests.drillrank.helpers import refuses

ids = st.sampled_from("abcdefg")  # "f" and "g" exist nowhere
graphs = st.dictionaries(st.sampled_from("abcde"), st.lists(ids, max_size=7), min_size=1)
QUERY = "which red fox crossed the river"
WORDS = dict(zip("abcde", ["red fox", "river", "which", "crossed the", "whale"], strict=True))


def pool_of(graph):
    return [Passage(WORDS[name], id=name, links=targets) for name, targets in graph.items()]


class Library:
    """A source that remembers what it was asked."""

    def __init__(self, passages, found=()):
        self.passages, self.found = by_id(passages), list(found)
        self.fetched, self.queries = [], []

    def retrieve(self, query, n):
        self.queries.append((query, n))
        return self.found[:n]

    def fetch(self, wanted):
        self.fetched += wanted
        return [self.passages[name] for name in wanted if name in self.passages]


@st.composite
def graphs_with_paths(draw):
    pool = pool_of(draw(graphs))
    paths = draw(st.lists(st.lists(st.sampled_from(pool), min_size=1, max_size=3, unique=True).map(Path), max_size=4))
    return pool, paths


@given(graphs_with_paths(), st.sets(st.sampled_from("abcde")))
def test_following_links_wherever_the_passages_are(pool_and_paths, at_hand):
    pool, paths = pool_and_paths
    known = by_id(pool)
    reachable = {name: passage for name, passage in known.items() if name in at_hand}
    library = Library(pool)
    found = run(
        fetch_targets(paths, [path.passages[-1].links for path in paths], reachable), handlers=handlers(library)
    )
    targets = [dict.fromkeys(path.passages[-1].links) for path in paths]
    assert found == [
        [known[name] for name in of_path if name in known and name not in path.ids]
        for path, of_path in zip(paths, targets, strict=True)
    ]
    missing = dict.fromkeys(name for of_path in targets for name in of_path if name not in at_hand & set(known))
    assert library.fetched == list(missing)
    assert set(reachable) == set(known) & (at_hand | set(missing))


@given(graphs, st.sets(st.sampled_from("abcde"), min_size=1), st.integers(1, 3))
def test_linked_passages_that_were_not_given_join_from_a_source_or_a_corpus(graph, chosen, hops):
    pool = pool_of(graph)
    first = [passage for passage in pool if passage.id in chosen]
    expected = {passage.id for passage in first}
    for _ in range(hops - 1):
        expected |= {target for name in expected for target in graph[name] if target in graph}
    prompt_rank = PromptRank(UnigramModel())
    wide = {"hops": hops, "beam": 99, "branch": 9}
    from_source = PathRerank(prompt_rank, settings=wide).rank(QUERY, first, source=Library(pool))
    in_corpus = PathRerank(prompt_rank, corpus=pool, settings=wide).rank(QUERY, first)
    for ranking in (from_source, in_corpus):
        assert sorted(item.passage.id for item in ranking) == sorted(expected)
        assert all((item.details["position"] < len(first)) == (item.passage in first) for item in ranking)
        assert [item.score for item in ranking] == sorted((item.score for item in ranking), reverse=True)


def test_links_that_see_the_question_and_the_path():
    class Asked:
        def follow(self, query, path):
            assert path.ids == ("a", "b")
            return ["c", Passage("new", id="d"), RetrievalRequest(query, 2)]

    pool = [Passage(name, id=name) for name in "abce"]
    reachable = by_id(pool)
    library = Library([], found=[pool[3], pool[0], pool[2]])
    [(kind, follow)] = bind_links(Asked(), pool)
    assert kind == "Asked"
    path = Path(pool[:2])
    [found] = run(fetch_targets([path], [list_targets(follow, "who?", path)], reachable), handlers=handlers(library))
    assert [passage.id for passage in found] == ["c", "d", "e"]  # "a" is on the path
    assert library.queries == [("who?", 2)]
    assert library.fetched == []
    assert reachable["d"].text == "new"


def test_the_lookups_of_a_hop_are_asked_for_together():
    paths = [Path([Passage("x", id=name)]) for name in "ab"]
    targets = [[f"{name}-linked", RetrievalRequest(name, 1), RetrievalRequest("the same", 1)] for name in "ab"]
    lookups = next(fetch_targets(paths, targets, {}))
    assert lookups == [
        LookupRequest(("a-linked", "b-linked")),
        RetrievalRequest("a", 1),
        RetrievalRequest("the same", 1),
        RetrievalRequest("b", 1),
    ]


def all_targets(links, path, query=QUERY):
    return [target for _, follow in links for target in list_targets(follow, query, path)]


def test_combined_links_keep_their_order():
    path = Path([Passage("a", links=("x", "y", "x"))])
    assert all_targets(bind_links([passage_links, lambda _: ["z", "y", "w"]], []), path) == ["x", "y", "z", "y", "w"]


def test_no_links_have_no_kind():
    assert bind_links([], []) == []


def test_nested_lists_of_links_are_flattened():
    assert [kind for kind, _ in bind_links([[passage_links], [MetadataLinks()]], [])] == ["link", "metadata"]


def test_no_links_given_are_those_of_the_passage():
    [(kind, follow)] = bind_links(None, [])
    assert (kind, list(follow("", Path([Passage("a", links=("x",))])))) == ("link", ["x"])


def test_a_retriever_function_is_a_source_that_fetches_nothing():
    source = as_source(lambda query, n: [Passage(query)] * n)
    assert (len(source.retrieve("a", 2)), list(source.fetch(["a"]))) == (2, [])


def test_links_that_need_the_passages_get_the_pool_or_else_the_candidates():
    turing = Passage("He was born in Maida Vale.", id="turing", title="Alan Turing")
    vale = Passage("It is a residential district of London.", id="vale", title="Maida Vale")
    query = "Which residential district was Alan Turing born in?"
    by_pool = PathSearch(PromptRank(), [turing, vale], links=TitleMentions(), settings={"pool": 1})
    by_candidates = PathSearch(PromptRank(), first_stage=lambda query, n: [turing, vale], links=TitleMentions())
    for search in (by_pool, by_candidates):
        assert search.search(query)[0].details["path"] == ("turing", "vale")


test_what_is_no_link_and_no_source_is_refused = refuses(
    *((lambda n=n: RetrievedLinks(n), "n must") for n in (0, -1, "3")),
    *((lambda links=links: PathSearch(PromptRank(), ["text"], links=links), "links must be a function")
      for links in ("titles", 7, [passage_links, 7], {passage_links}, TitleMentions, RetrievedLinks)),
    *((lambda to=to: PathSearch(PromptRank(), ["text"], links=lambda _: [to]).search("text"), "must lead to an id")
      for to in (7, None, ["a"], ("a",))),
    *((lambda source=source: as_source(source), "must be a function") for source in (7, "retriever", None, object())),
)  # fmt: skip


@pytest.mark.parametrize("kind", [tuple, set, dict.fromkeys, iter])
def test_a_function_may_tell_its_ids_in_any_form(kind):
    fox, river = Passage("a fox", id="fox"), Passage("a river", id="river")
    links = lambda passage: kind(["river"] if passage is fox else [])  # noqa: E731
    paths = PathSearch(PromptRank(), [fox, river], links=links).search_paths("Which fox crossed a river?")
    assert paths[0].passage.ids == ("fox", "river")


@pytest.mark.parametrize(
    ("value", "ids"),
    [
        *((nothing, ()) for nothing in (None, "", " , ,", 7, 1.5)),
        ("a", ("a",)),
        ("a,b , c", ("a", "b", "c")),
        (["a", " b ", ""], ("a", "b")),
        ((1, 2), ("1", "2")),
    ],
)
def test_links_from_metadata(value, ids):
    assert links_from_metadata(value) == ids
    assert MetadataLinks("see")(Passage("a", metadata={"see": value})) == ids
